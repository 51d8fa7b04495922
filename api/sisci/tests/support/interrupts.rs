//! Calls of the actor on interrupts.

use super::actor::{Names, code, flags, how, number};
use super::sci::{self, Pointer};
use super::told;

/// Makes the call of a line, and says what came of it.
pub fn make(names: &Names, words: &[&str]) -> String {
    let at = |index: usize| names.get(words[index]);
    let n = |index: usize| number(words[index]);
    match words[0] {
        // int SD NAME NUMBER FLAGS HOW, data likewise.
        "int" | "data" => create(names, words),
        "named_int" => {
            let name = (words[3] != "-").then(|| std::ffi::CString::new(words[3]).unwrap());
            let text = name.as_ref().map_or(core::ptr::null(), |name| name.as_ptr());
            let (sd, null, flags) = (at(1), core::ptr::null_mut(), flags(&words[4..]));
            let create = |place| sci::SCICreateNamedInterrupt(sd, place, 0, text, null, null, flags);
            code(names.put(words[2], create).1)
        }
        "int_null" => {
            let (null, nothing) = (core::ptr::null_mut(), core::ptr::null_mut());
            code(names.put("x", |place| sci::SCICreateInterrupt(at(1), place, 0, nothing, null, null, 0)).1)
        }
        "unint" => code(sci::SCIRemoveInterrupt(at(1), flags(&words[2..])).1),
        "undata" => code(sci::SCIRemoveDataInterrupt(at(1), flags(&words[2..])).1),
        "wait_int" => code(sci::SCIWaitForInterrupt(at(1), n(2), flags(&words[3..])).1),
        "wait_data" => wait_data(at(1), n(2), n(3), flags(&words[4..])),
        "connect_int" => {
            let (sd, node, adapter, number, timeout) = (at(1), n(3), n(4), n(5), n(6));
            let flags = flags(&words[7..]);
            let connect = |place| sci::SCIConnectInterrupt(sd, place, node, adapter, number, timeout, flags);
            code(names.put(words[2], connect).1)
        }
        "connect_data" => {
            let (sd, node, adapter, number, timeout) = (at(1), n(3), n(4), n(5), n(6));
            let flags = flags(&words[7..]);
            let connect =
                |place| sci::SCIConnectDataInterrupt(sd, place, node, adapter, number, timeout, flags);
            code(names.put(words[2], connect).1)
        }
        "disconnect_int" => code(sci::SCIDisconnectInterrupt(at(1), flags(&words[2..])).1),
        "disconnect_data" => code(sci::SCIDisconnectDataInterrupt(at(1), flags(&words[2..])).1),
        "trigger" => code(sci::SCITriggerInterrupt(at(1), flags(&words[2..])).1),
        "trigger_data" => {
            let mut data = words[2].as_bytes().to_vec();
            let flags = flags(&words[3..]);
            code(sci::SCITriggerDataInterrupt(at(1), data.as_mut_ptr().cast(), data.len() as u32, flags).1)
        }
        "trigger_bytes" => {
            let mut data = vec![b'x'; n(2) as usize];
            code(sci::SCITriggerDataInterrupt(at(1), data.as_mut_ptr().cast(), n(2), 0).1)
        }
        "trigger_null" => code(sci::SCITriggerDataInterrupt(at(1), core::ptr::null_mut(), n(2), 0).1),
        other => panic!("no call `{other}`"),
    }
}

fn create(names: &Names, words: &[&str]) -> String {
    let (sd, mut taken, flags) = (names.get(words[1]), number(words[3]), flags(&words[4..5]));
    let how = words.get(5).map(|word| how(word));
    let (_, error) = names.put(words[2], |place| {
        let (number, argument) = (&raw mut taken, how.unwrap_or_default());
        if words[0] == "int" {
            let callback = how.map_or(core::ptr::null_mut(), |_| told::ON_INTERRUPT as Pointer);
            sci::SCICreateInterrupt(sd, place, 0, number, callback, argument, flags)
        } else {
            let callback = how.map_or(core::ptr::null_mut(), |_| told::ON_DATA as Pointer);
            sci::SCICreateDataInterrupt(sd, place, 0, number, callback, argument, flags)
        }
    });
    if error == 0 { format!("OK {taken}") } else { code(error) }
}

fn wait_data(interrupt: Pointer, room: u32, timeout: u32, flags: u32) -> String {
    let mut memory = vec![0_u8; room as usize];
    let mut length = room;
    let (_, error) =
        sci::SCIWaitForDataInterrupt(interrupt, memory.as_mut_ptr().cast(), &raw mut length, timeout, flags);
    match code(error).as_str() {
        "OK" => format!("OK {}", String::from_utf8_lossy(&memory[..length as usize])),
        "OVERFLOW" => format!("OVERFLOW {length}"),
        other => other.to_owned(),
    }
}
