//! Callbacks of the actor: what they were told is asked for by `told`.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use super::actor::{REASONS, code};
use super::sci::{self, Pointer};

/// What a callback does besides saying what it was told, by its argument.
pub const HOW: [&str; 4] = ["go_on", "cancel", "remove", "wait_for_another"];

pub const ON_LOCAL: extern "C" fn(Pointer, Pointer, u32, u32, u32, u32) -> u32 = on_local;
pub const ON_REMOTE: extern "C" fn(Pointer, Pointer, u32, u32) -> u32 = on_remote;
pub const ON_DMA: extern "C" fn(Pointer, Pointer, u32) -> u32 = on_dma;

pub const ON_INTERRUPT: extern "C" fn(Pointer, Pointer, u32) -> u32 = on_interrupt;
pub const ON_DATA: extern "C" fn(Pointer, Pointer, Pointer, u32, u32) -> u32 = on_data;

const CANCEL: u32 = 1;
const CONTINUE: u32 = 2;

type Told = (Sender<String>, Mutex<Receiver<String>>);

fn queue() -> Told {
    let (tell, told) = channel();
    (tell, Mutex::new(told))
}

static TOLD: LazyLock<Told> = LazyLock::new(queue);
/// Callbacks that wait for another one go on when that has run.
static OTHERS: LazyLock<Told> = LazyLock::new(queue);

/// What a callback was told next; `nothing` if none is called for so many milliseconds.
pub fn next(milliseconds: u32) -> String {
    let told = TOLD.1.lock().unwrap().recv_timeout(Duration::from_millis(milliseconds.into()));
    told.unwrap_or_else(|_| "nothing".to_owned())
}

extern "C" fn on_local(
    how: Pointer,
    segment: Pointer,
    reason: u32,
    node: u32,
    adapter: u32,
    error: u32,
) -> u32 {
    assert_eq!(error, 0);
    act(how, format!("{} {node} {adapter}", REASONS[reason as usize]), || {
        sci::SCIRemoveSegment(segment, 0x20).1
    })
}

extern "C" fn on_remote(how: Pointer, segment: Pointer, reason: u32, error: u32) -> u32 {
    act(how, format!("{} {}", REASONS[reason as usize], code(error)), || {
        sci::SCIDisconnectSegment(segment, 0).1
    })
}

extern "C" fn on_interrupt(how: Pointer, interrupt: Pointer, error: u32) -> u32 {
    act(how, format!("TRIGGERED {}", code(error)), || sci::SCIRemoveInterrupt(interrupt, 0).1)
}

extern "C" fn on_data(how: Pointer, interrupt: Pointer, data: Pointer, length: u32, error: u32) -> u32 {
    // SAFETY: the library passes so many bytes, which are there until this returns.
    let data = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), length as usize) };
    let what = format!("DATA {} {}", String::from_utf8_lossy(data), code(error));
    act(how, what, || sci::SCIRemoveDataInterrupt(interrupt, 0).1)
}

extern "C" fn on_dma(how: Pointer, queue: Pointer, error: u32) -> u32 {
    let state = sci::SCIDMAQueueState(queue);
    act(how, format!("{} {state}", code(error)), || sci::SCIRemoveDMAQueue(queue, 0).1)
}

fn act(how: Pointer, what: String, remove: impl FnOnce() -> u32) -> u32 {
    let how = HOW[how.addr()];
    if how == "wait_for_another" {
        OTHERS.1.lock().unwrap().recv().unwrap();
    }
    let what = if how == "remove" { format!("{what} {}", code(remove())) } else { what };
    TOLD.0.send(what).unwrap();
    OTHERS.0.send(String::new()).unwrap();
    if how == "cancel" { CANCEL } else { CONTINUE }
}
