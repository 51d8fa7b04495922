//! Calls of the actor that move data or ask something.

use std::ffi::CString;

use super::actor::{Names, code, flags, number};
use super::sci::{self, Pointer};

const STATUSES: [&str; 4] = ["OK", "RETRIABLE", "NOT_RETRIABLE", "PENDING"];

/// Makes the call of a line, and says what came of it.
pub fn make(names: &Names, words: &[&str]) -> String {
    let at = |index: usize| names.get(words[index]);
    let n = |index: usize| number(words[index]);
    let size = |index: usize| number(words[index]) as usize;
    match words[0] {
        "store" | "store_at" | "load" => access(names, words),
        "pointer" => sci::SCIGetMapPointer(at(1)).addr().to_string(),
        "absent" => code(sci::SCISetLocalCSR(core::ptr::null_mut(), 0, 0, 0, flags(&words[1..])).1),
        "start" => of_sequence(sci::SCIStartSequence(at(1), flags(&words[2..]))),
        "check" => of_sequence(sci::SCICheckSequence(at(1), flags(&words[2..]))),
        "barrier" => {
            sci::SCIStoreBarrier(at(1), flags(&words[2..]));
            sci::SCIFlush(at(1), flags(&words[2..]));
            "done".to_owned()
        }
        // copy SEQUENCE MAP OFFSET TEXT FLAGS, and so on.
        "copy" => {
            code(sci::SCIMemCpy(at(1), text(words[4]), at(2), size(3), words[4].len(), flags(&words[5..])).1)
        }
        "copy_null" => {
            code(sci::SCIMemCpy(at(1), core::ptr::null_mut(), at(2), size(3), size(4), flags(&words[5..])).1)
        }
        "copy_1" => {
            code(sci::SCIMemCopy(text(words[3]), at(1), n(2), words[3].len() as u32, flags(&words[4..])).1)
        }
        "copy_dual" => {
            let (memory, bytes) = (text(words[7]), words[7].len());
            let flags = flags(&words[8..]);
            code(sci::SCIMemCpy_dual(at(1), memory, at(2), size(3), at(4), at(5), size(6), bytes, flags).1)
        }
        "block" => code(sci::SCITransferBlock(at(1), n(2), at(3), n(4), n(5), flags(&words[6..])).1),
        "read" => read(at(1), at(2), size(3), size(4), flags(&words[5..])),
        // write MAP OFFSET TEXT: to the address that the map's has been.
        "write" => {
            let address = at(1).wrapping_byte_add(size(2));
            code(sci::SCIMemWrite(text(words[3]), address, words[3].len(), flags(&words[4..])).1)
        }
        "sync" => {
            code(sci::SCICacheSync(at(1), at(2).wrapping_byte_add(size(3)), size(4), flags(&words[5..])).1)
        }
        "probe" => {
            let (reached, error) = sci::SCIProbeNode(at(1), n(2), n(3), flags(&words[4..]));
            format!("{reached} {}", code(error))
        }
        "named" => named(words[1]),
        "query_text" => query_text(n(1), size(2)),
        "query_adapter" => query_adapter(n(1), n(2)),
        "query" => query(n(1), at(2), n(3)),
        // Addresses on the bus are in hexadecimal digits.
        "attach" => {
            let address = u64::from_str_radix(words[2], 16).unwrap();
            let none = core::ptr::null_mut();
            code(sci::SCIAttachPhysicalMemory(address, none, 0, size(3), at(1), flags(&words[4..])).1)
        }
        "register" => {
            let address = core::ptr::without_provenance_mut(usize::from_str_radix(words[2], 16).unwrap());
            code(sci::SCIRegisterSegmentMemory(address, size(3), at(1), flags(&words[4..])).1)
        }
        "physical" => format!("{:x}", sci::SCIGetMapPhysAddr(at(1))),
        "why" => last_error(),
        "errno_of_initialize" => {
            let error = sci::SCIInitialize(0).1;
            // Before anything else changes it.
            let number = std::io::Error::last_os_error().raw_os_error().unwrap_or_default();
            format!("{} {number}", code(error))
        }
        "errno_of_open" => errno_of_open(),
        "limit_locked" => limit_locked(u64::from(n(1))),
        _ => super::queues::make(names, words),
    }
}

/// The code of the first `SCIOpen`, and `errno`.
fn errno_of_open() -> String {
    sci::SCIInitialize(0);
    let mut descriptor = core::ptr::null_mut();
    let error = sci::SCIOpen(&raw mut descriptor, 0).1;
    // Before anything else changes it.
    let number = std::io::Error::last_os_error().raw_os_error().unwrap_or_default();
    format!("{} {number}", code(error))
}

/// Bytes of the program, which are never freed: a program of a test is short.
fn text(word: &str) -> Pointer {
    Box::leak(word.as_bytes().to_vec().into_boxed_slice()).as_mut_ptr().cast()
}

fn of_sequence((status, error): (u32, u32)) -> String {
    if error == 0 { STATUSES[status as usize].to_owned() } else { code(error) }
}

fn read(sequence: Pointer, map: Pointer, offset: usize, bytes: usize, flags: u32) -> String {
    let mut memory = vec![b'?'; bytes];
    match sci::SCIMemCpy(sequence, memory.as_mut_ptr().cast(), map, offset, bytes, flags | 1).1 {
        0 => String::from_utf8(memory).unwrap(),
        error => code(error),
    }
}

/// Stores bytes into a map, or loads as many: `store MAP OFFSET TEXT`, `store_at ADDRESS OFFSET TEXT`, `load MAP OFFSET BYTES`.
fn access(names: &Names, words: &[&str]) -> String {
    let named = names.get(words[1]);
    let start = if words[0] == "store_at" { named } else { sci::SCIGetMapPointer(named) }.cast::<u8>();
    let offset = number(words[2]) as usize;
    if words[0] != "load" {
        for (at, byte) in words[3].bytes().enumerate() {
            // SAFETY: a map of the library, inside which the test stores.
            unsafe { start.wrapping_add(offset + at).write_volatile(byte) };
        }
        return "OK".to_owned();
    }
    // SAFETY: a map of the library, inside which the test loads.
    let bytes =
        (0..number(words[3]) as usize).map(|at| unsafe { start.wrapping_add(offset + at).read_volatile() });
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}

fn named(name: &str) -> String {
    let name = CString::new(name).unwrap();
    let (mut nodes, mut adapters, mut kind) = ([9; 16], [9_u32; 16], 0);
    let (_, error) = sci::SCIGetNodeIdByAdapterName(name.as_ptr(), &raw mut nodes, &raw mut kind, 0);
    if error != 0 {
        return code(error);
    }
    let first = nodes;
    let (_, error) = sci::SCIGetNodeInfoByAdapterName(
        name.as_ptr(),
        adapters.as_mut_ptr(),
        &raw mut nodes,
        core::ptr::null_mut(),
        0,
    );
    assert_eq!((first, error), (nodes, 0));
    format!("{:?} {:?}", &nodes[..3], &adapters[..3])
}

#[repr(C)]
struct QueryText {
    text: *mut u8,
    bytes: u32,
}

fn query_text(command: u32, bytes: usize) -> String {
    let mut memory = vec![b'?'; bytes];
    let mut query = QueryText { text: memory.as_mut_ptr(), bytes: bytes as u32 };
    match sci::SCIQuery(command, (&raw mut query).cast(), 0).1 {
        0 => String::from_utf8(memory.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap(),
        error => code(error),
    }
}

#[repr(C)]
struct QueryAdapter {
    adapter: u32,
    port: u32,
    subcommand: u32,
    data: *mut u32,
}

fn query_adapter(adapter: u32, subcommand: u32) -> String {
    let mut answer = u32::MAX;
    let mut query = QueryAdapter { adapter, port: 0, subcommand, data: &raw mut answer };
    match sci::SCIQuery(4, (&raw mut query).cast(), 0).1 {
        0 => answer.to_string(),
        error => code(error),
    }
}

#[repr(C)]
struct QueryObject {
    object: Pointer,
    subcommand: u32,
    answer: u64,
}

fn query(command: u32, object: Pointer, subcommand: u32) -> String {
    let mut query = QueryObject { object, subcommand, answer: 0 };
    match sci::SCIQuery(command, (&raw mut query).cast(), 0).1 {
        0 => format!("OK {:x}", query.answer),
        error => code(error),
    }
}

fn last_error() -> String {
    // SAFETY: a string that ends, and that this thread replaces with its next failure.
    unsafe { std::ffi::CStr::from_ptr(sci::beeline_sisci_last_error()) }.to_string_lossy().into_owned()
}

/// Has this thread lock no more than so many bytes, whoever's it is.
fn limit_locked(bytes: u64) -> String {
    let mut capabilities = rustix::thread::capabilities(None).unwrap();
    capabilities.effective.remove(rustix::thread::CapabilitySet::IPC_LOCK);
    rustix::thread::set_capabilities(None, capabilities).unwrap();
    let limit = rustix::process::Rlimit { current: Some(bytes), maximum: Some(bytes) };
    rustix::process::setrlimit(rustix::process::Resource::Memlock, limit).unwrap();
    "OK".to_owned()
}
