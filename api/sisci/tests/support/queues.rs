//! Calls of the actor whose end is told later: queues of DMA, and what has a callback.

use super::actor::{Names, code, flags, how, number};
use super::sci::{self, Pointer};

const STATES: [&str; 6] = ["IDLE", "GATHER", "POSTED", "DONE", "ABORTED", "ERROR"];

/// Makes the call of a line, and says what came of it.
pub fn make(names: &Names, words: &[&str]) -> String {
    let at = |index: usize| names.get(words[index]);
    let n = |index: usize| number(words[index]);
    let size = |index: usize| number(words[index]) as usize;
    match words[0] {
        "create_told" => {
            let (id, bytes, flags, how) = (n(3), n(4) as usize, flags(&words[5..6]), how(words[6]));
            let (callback, sd) = (super::told::ON_LOCAL as Pointer, at(1));
            code(
                names
                    .put(words[2], |place| sci::SCICreateSegment(sd, place, id, bytes, callback, how, flags))
                    .1,
            )
        }
        "many_told" | "many_connected" => many(names, words),
        "threads" => std::fs::read_dir("/proc/self/task").unwrap().count().to_string(),
        "connect_told" => {
            let (node, id, flags, how) = (n(3), n(4), flags(&words[5..6]), how(words[6]));
            let (callback, sd) = (super::told::ON_REMOTE as Pointer, at(1));
            let connect = |place| sci::SCIConnectSegment(sd, place, node, id, 0, callback, how, 0, flags);
            code(names.put(words[2], connect).1)
        }
        "dma" => {
            let (adapter, entries, flags) = (n(3), n(4), flags(&words[5..]));
            code(names.put(words[2], |place| sci::SCICreateDMAQueue(at(1), place, adapter, entries, flags)).1)
        }
        "told" => super::told::next(n(1)),
        "undma" => code(sci::SCIRemoveDMAQueue(at(1), flags(&words[2..])).1),
        "transfer" => {
            let (callback, argument) = match words.get(8) {
                Some(how) => (super::told::ON_DMA as Pointer, super::actor::how(how)),
                None => (core::ptr::null_mut(), core::ptr::null_mut()),
            };
            let flags = flags(&words[7..8]);
            let (local_offset, bytes, offset) = (size(4), size(5), size(6));
            let (queue, local, remote) = (at(1), at(2), at(3));
            code(
                sci::SCIStartDmaTransfer(
                    queue,
                    local,
                    remote,
                    local_offset,
                    bytes,
                    offset,
                    callback,
                    argument,
                    flags,
                )
                .1,
            )
        }
        // vector QUEUE LOCAL REMOTE FLAGS BYTES:LOCAL:REMOTE:FLAGS ...
        "vector" => {
            let piece = |word: &&str| -> [u32; 4] {
                word.split(':').map(number).collect::<Vec<_>>().try_into().unwrap()
            };
            let pieces: Vec<_> = words[5..].iter().map(piece).collect();
            let (start, none) = (pieces.as_ptr(), core::ptr::null_mut());
            let flags = flags(&words[4..5]);
            code(sci::SCIStartDmaTransferVec(at(1), at(2), at(3), pieces.len(), start, none, none, flags).1)
        }
        "state" => STATES[sci::SCIDMAQueueState(at(1)) as usize].to_owned(),
        "wait_dma" => {
            let (state, error) = sci::SCIWaitForDMAQueue(at(1), n(2), flags(&words[3..]));
            format!("{} {}", STATES[state as usize], code(error))
        }
        "abort" => code(sci::SCIAbortDMAQueue(at(1), flags(&words[2..])).1),
        _ => super::interrupts::make(names, words),
    }
}

/// Makes many segments with callbacks, or connects to them.
fn many(names: &Names, words: &[&str]) -> String {
    let n = |index: usize| number(words[index]);
    let (sd, null) = (names.get(words[1]), core::ptr::null_mut());
    let (first, count) = if words[0] == "many_told" { (n(2), n(3)) } else { (n(3), n(4)) };
    let make = |id: u32| {
        let name = format!("many{id}");
        if words[0] == "many_connected" {
            let connect = |place| sci::SCIConnectSegment(sd, place, n(2), id, 0, null, null, 0, 0);
            return names.put(&name, connect).1;
        }
        let (callback, how) = (super::told::ON_LOCAL as Pointer, how(words[4]));
        let create = |place| sci::SCICreateSegment(sd, place, id, 64, callback, how, 1);
        let made = names.put(&name, create).1;
        let prepared = sci::SCIPrepareSegment(names.get(&name), 0, 0).1;
        // All of them are done, or the test fails.
        made | prepared | sci::SCISetSegmentAvailable(names.get(&name), 0, 0).1
    };
    code((first..first + count).map(make).find(|code| *code != 0).unwrap_or(0))
}
