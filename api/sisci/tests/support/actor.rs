//! A program that makes the calls that it reads, a line each: the call, the names of handles, numbers.
//!
//! A name that was given to no handle is NULL, and `-` a pointer to nothing where the call wants a place for a handle. Flags are names
//! without `SCI_FLAG_`, joined by `|`, or a number.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io::{BufRead, Write};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::sci::{self, Pointer};

/// The values of flags, by their names without `SCI_FLAG_`.
fn flag(name: &str) -> u32 {
    static FACTS: LazyLock<toml::Table> = LazyLock::new(|| include_str!("../../facts.toml").parse().unwrap());
    match FACTS["flags"].get(format!("SCI_FLAG_{name}")) {
        Some(fact) => fact["value"].as_integer().unwrap() as u32,
        None => number(name),
    }
}

/// Addresses of handles and maps by name; addresses are kept as numbers, so that threads can have them.
#[derive(Clone, Default)]
pub struct Names(Arc<Mutex<BTreeMap<String, usize>>>);

impl Names {
    pub fn get(&self, name: &str) -> Pointer {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(name).copied().map_or(core::ptr::null_mut(), core::ptr::with_exposed_provenance_mut)
    }

    fn set(&self, name: &str, pointer: Pointer) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_owned(), pointer.expose_provenance());
    }

    /// Runs a call that puts a handle, which has a name from then on unless it is `-`: then the call has NULL for its place.
    pub fn put<T>(&self, name: &str, call: impl FnOnce(*mut Pointer) -> (T, u32)) -> (T, u32) {
        if name == "-" {
            return call(core::ptr::null_mut());
        }
        let mut place: Pointer = core::ptr::without_provenance_mut(0x5a5a);
        let (given, error) = call(&raw mut place);
        self.set(name, place);
        (given, error)
    }
}

pub fn run() {
    let (names, mut threads) = (Names::default(), BTreeMap::<String, JoinHandle<String>>::new());
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["thread", name, ..] => {
                let (names, call) = (names.clone(), words[2..].join(" "));
                let thread = std::thread::spawn(move || make(&names, &call));
                threads.insert(name.to_owned(), thread);
                say("OK");
            }
            ["join", name] => say(&threads.remove(name).unwrap().join().unwrap()),
            ["child", ..] => in_child(&names, &words[1..].join(" ")),
            _ => say(&make(&names, &line)),
        }
    }
    std::process::exit(0);
}

/// Makes calls in a child of fork, which says what came of the last one.
fn in_child(names: &Names, lines: &str) {
    match fork::fork().unwrap() {
        fork::Fork::Parent(child) => {
            fork::waitpid(child).unwrap();
        }
        fork::Fork::Child => {
            let answers = lines.split(" then ").map(|line| make(names, line));
            say(&answers.last().unwrap_or_default());
            // Without destructors: what they would end is the parent's.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}

fn say(what: &str) {
    println!("@{what}");
    std::io::stdout().flush().unwrap();
}

pub fn number(word: &str) -> u32 {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
        None => word.parse().unwrap(),
    }
}

pub fn flags(words: &[&str]) -> u32 {
    let Some(word) = words.first() else { return 0 };
    word.split('|').map(flag).fold(0, core::ops::BitOr::bitor)
}

pub fn code(error: u32) -> String {
    // SAFETY: the library gives strings that end and are never freed.
    let text = unsafe { CStr::from_ptr(sci::SCIGetErrorString(error)) }.to_str().unwrap();
    let name = text.split(':').next().unwrap_or(text);
    name.strip_prefix("SCI_ERR_").map_or_else(|| format!("{error:#x}"), str::to_owned)
}

pub const REASONS: [&str; 6] = ["none", "CONNECT", "DISCONNECT", "NOT_OPERATIONAL", "OPERATIONAL", "LOST"];

/// Makes the call of a line, and says what came of it.
fn make(names: &Names, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = |index: usize| names.get(words[index]);
    let n = |index: usize| number(words[index]);
    let null: Pointer = core::ptr::null_mut();
    let error = match words[0] {
        "initialize" => sci::SCIInitialize(flags(&words[1..])).1,
        "terminate" => {
            sci::SCITerminate();
            0
        }
        "open" => names.put(words[1], |place| sci::SCIOpen(place, flags(&words[2..]))).1,
        "close" => sci::SCIClose(at(1), flags(&words[2..])).1,
        "create" => {
            let (id, bytes, flags) = (n(3), n(4) as usize, flags(&words[5..]));
            names.put(words[2], |place| sci::SCICreateSegment(at(1), place, id, bytes, null, null, flags)).1
        }
        "prepare" => sci::SCIPrepareSegment(at(1), n(2), flags(&words[3..])).1,
        "available" => sci::SCISetSegmentAvailable(at(1), n(2), flags(&words[3..])).1,
        "unavailable" => sci::SCISetSegmentUnavailable(at(1), n(2), flags(&words[3..])).1,
        "remove" => sci::SCIRemoveSegment(at(1), flags(&words[2..])).1,
        "connect" => {
            let (node, id, adapter, timeout, flags) = (n(3), n(4), n(5), n(6), flags(&words[7..]));
            let connect =
                |place| sci::SCIConnectSegment(at(1), place, node, id, adapter, null, null, timeout, flags);
            names.put(words[2], connect).1
        }
        "disconnect" => sci::SCIDisconnectSegment(at(1), flags(&words[2..])).1,
        "map" | "map_remote" => return map(names, &words),
        "unmap" => sci::SCIUnmapSegment(at(1), flags(&words[2..])).1,
        "wait" | "wait_remote" | "node" => return ask(names, &words),
        "id" => return sci::SCIGetLocalSegmentId(at(1)).to_string(),
        "size" => return sci::SCIGetLocalSegmentSize(at(1)).to_string(),
        "remote_id" => return sci::SCIGetRemoteSegmentId(at(1)).to_string(),
        "remote_node" => return sci::SCIGetRemoteSegmentNodeId(at(1)).to_string(),
        "remote_size" => return sci::SCIGetRemoteSegmentSize(at(1)).to_string(),
        "copy_handle" => {
            names.set(words[2], at(1));
            0
        }
        // Again and again, as long as something ends the wait.
        "insist" => loop {
            let said = make(names, &words[1..].join(" "));
            if said != "CANCELLED" {
                return said;
            }
        },
        "address" => {
            names.set(words[2], sci::SCIGetMapPointer(at(1)));
            0
        }
        "shift" => {
            names.set(words[3], at(1).wrapping_byte_add(n(2) as usize));
            0
        }
        "same" => return if at(1) == at(2) { "OK" } else { "they differ" }.to_owned(),
        "wild" => {
            names.set(words[1], core::ptr::without_provenance_mut(n(2) as usize));
            0
        }
        "sequence" => {
            names.put(words[2], |place| sci::SCICreateMapSequence(at(1), place, flags(&words[3..]))).1
        }
        "unsequence" => sci::SCIRemoveSequence(at(1), flags(&words[2..])).1,
        _ => return super::data::make(names, &words),
    };
    code(error)
}

/// Makes a call that gives more than a code.
fn ask(names: &Names, words: &[&str]) -> String {
    let at = |index: usize| names.get(words[index]);
    let n = |index: usize| number(words[index]);
    let error = match words[0] {
        "wait" => {
            let (mut node, mut adapter) = (u32::MAX, u32::MAX);
            let (reason, error) = sci::SCIWaitForLocalSegmentEvent(
                at(1),
                &raw mut node,
                &raw mut adapter,
                n(2),
                flags(&words[3..]),
            );
            if error == 0 {
                return format!("OK {} {node} {adapter}", REASONS[reason as usize]);
            }
            error
        }
        "wait_remote" => {
            let mut status = u32::MAX;
            let (reason, error) =
                sci::SCIWaitForRemoteSegmentEvent(at(1), &raw mut status, n(2), flags(&words[3..]));
            if error == 0 {
                return format!("OK {} {}", REASONS[reason as usize], code(status));
            }
            error
        }
        "node" => {
            let mut node = u32::MAX;
            let (_, error) = sci::SCIGetLocalNodeId(n(1), &raw mut node, flags(&words[2..]));
            if error == 0 {
                return format!("OK {node}");
            }
            error
        }
        other => panic!("no call `{other}`"),
    };
    code(error)
}

/// What a callback is to do, in the place of its argument.
pub fn how(word: &str) -> Pointer {
    core::ptr::without_provenance_mut(super::told::HOW.iter().position(|how| *how == word).unwrap())
}

fn map(names: &Names, words: &[&str]) -> String {
    let (offset, bytes) = (number(words[3]) as usize, number(words[4]) as usize);
    let (segment, flags) = (names.get(words[1]), flags(&words[5..]));
    let address = words.get(6).map_or(core::ptr::null_mut(), |name| names.get(name));
    let (start, error) = names.put(words[2], |place| match words[0] {
        "map" => sci::SCIMapLocalSegment(segment, place, offset, bytes, address, flags),
        _ => sci::SCIMapRemoteSegment(segment, place, offset, bytes, address, flags),
    });
    assert_eq!(start.is_null(), error != 0, "a map has an address, and nothing else has one");
    if error == 0 {
        assert_eq!(sci::SCIGetMapPointer(names.get(words[2])), start);
    }
    code(error)
}
