//! The host's receiver on the vectors: what a device must make of a sequence of writes, a program must too.
//!
//! A blank case's writes are stored into memory, an observed case's are handed over; messages and next starts must be
//! those that the case names for frames.

use std::cell::RefCell;
use std::rc::Rc;

use beeline_contract_memory::{CreditSink, Line, LoadPort};
use beeline_vectors::{Action, Case, Event, WindowKind, Write, load};
use beeline_window::{ArrivalTest, Observed, ReceiveError, Receiver, WindowConfig};

/// Counters of what only a device has: time-outs, a span, a wire, a pool, a shortest frame. A case in which one of
/// them moves is not for a host.
const DEVICE_ONLY: [&str; 6] =
    ["hole_timeouts", "span_exceeded", "overruns", "runts", "no_pool", "refused_writes"];

/// A receiver in a program takes messages of any length that fits its window, so a case about the longest frame is not
/// for it either.
const LONGEST_FRAME: &str = "bad_length";

fn is_for_hosts(case: &Case) -> bool {
    let counters = case.counters();
    case.device.interface == beeline_spec::Interface::Mmio
        && case.name != LONGEST_FRAME
        && !case.device.checksums
        && !case.events.iter().any(|event| matches!(event.action, Action::WireReady(_)))
        && DEVICE_ONLY.iter().all(|name| counters[*name].admits(0))
}

/// Credits that nobody waits for.
struct NoSink;

impl CreditSink for NoSink {
    fn publish(&mut self, _freed_lines: u64) {}
}

/// Memory that the test stores into and the receiver loads from.
#[derive(Clone)]
struct Memory(Rc<RefCell<Vec<Line>>>);

impl LoadPort for Memory {
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        self.0.borrow().len() as u32
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        self.0.borrow()[line as usize][word as usize]
    }

    fn load_line(&mut self, line: u32) -> Line {
        self.0.borrow()[line as usize]
    }

    fn blank_line(&mut self, line: u32, blank: u64) {
        self.0.borrow_mut()[line as usize] = [blank; 8];
    }
}

/// A receiver of either kind of window.
enum Either {
    Blank(Memory, Box<Receiver<Memory, NoSink>>),
    Observed(Box<Receiver<beeline_window::DataBuffer, NoSink, Observed>>),
}

impl Either {
    fn new(case: &Case, epoch: u8) -> Self {
        let lines = case.device.window_lines;
        match case.device.window {
            WindowKind::Blank(blank) => {
                let memory = Memory(Rc::new(RefCell::new(vec![[blank; 8]; lines as usize])));
                let receiver = Receiver::new(memory.clone(), NoSink, WindowConfig::blank(blank, epoch));
                Either::Blank(memory, Box::new(receiver))
            }
            WindowKind::Observed => {
                Either::Observed(Box::new(Receiver::observed(lines, NoSink, WindowConfig::observed(epoch))))
            }
        }
    }

    /// A write arrives; gives the messages that are complete now.
    fn write(&mut self, write: &Write) -> Result<Vec<Vec<u8>>, ReceiveError> {
        match self {
            Either::Blank(memory, receiver) => {
                for (i, word) in write.bytes.as_chunks::<8>().0.iter().enumerate() {
                    let at = write.at as usize / 8 + i;
                    memory.0.borrow_mut()[at / 8][at % 8] = u64::from_le_bytes(*word);
                }
                messages(receiver)
            }
            Either::Observed(receiver) => {
                receiver.write_arrived(write.at, &write.bytes, write.enables)?;
                messages(receiver)
            }
        }
    }

    fn next_start(&self) -> u64 {
        match self {
            Either::Blank(_, receiver) => receiver.next_start().0,
            Either::Observed(receiver) => receiver.next_start().0,
        }
    }
}

fn messages<L: LoadPort, A: ArrivalTest>(
    receiver: &mut Receiver<L, NoSink, A>,
) -> Result<Vec<Vec<u8>>, ReceiveError> {
    let mut found = Vec::new();
    while let Some(mut message) = receiver.poll()? {
        let mut bytes = vec![0; message.len()];
        message.copy_out(&mut bytes);
        found.push(bytes);
    }
    Ok(found)
}

/// Plays one event; `None` stands for a receiver that has failed and drops what comes.
fn play(case: &Case, event: &Event, receiver: &mut Option<Either>) {
    let place = format!("case {} ({})", case.name, event.note);
    match &event.action {
        Action::Restart { epoch } => *receiver = Some(Either::new(case, *epoch)),
        Action::Time(_) | Action::WireReady(_) | Action::WireBeats(_) => {}
        Action::Memory(_)
        | Action::Doorbell(..)
        | Action::Frame(_)
        | Action::Read { .. }
        | Action::DmaReady(_) => panic!("{place}: not an event of a window"),
        Action::Write(write) => {
            let Some(alive) = receiver else { return };
            let fails = event.then.status.is_some_and(|status| status.quarantined);
            match alive.write(write) {
                Ok(found) if !fails => {
                    assert_eq!(found, event.then.frames, "{place}");
                    let expected = event.then.next_start.unwrap_or(alive.next_start());
                    assert_eq!(alive.next_start(), expected, "{place}: next start");
                }
                Err(_) if fails => *receiver = None,
                Ok(_) => panic!("{place}: must fail"),
                Err(error) => panic!("{place}: {error}"),
            }
        }
    }
}

#[test]
fn the_host_s_receiver_does_as_every_vector_says() {
    let cases = load().unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.iter().any(|case| case.name == LONGEST_FRAME), "there is no case {LONGEST_FRAME}");
    let of_windows = cases.iter().filter(|case| case.device.interface == beeline_spec::Interface::Mmio);
    assert!(
        cases.iter().filter(|case| is_for_hosts(case)).count() > of_windows.count() / 2,
        "most cases of messages are for hosts too"
    );
    for case in cases.iter().filter(|case| is_for_hosts(case)) {
        let mut receiver = Some(Either::new(case, case.device.epoch));
        for event in &case.events {
            play(case, event, &mut receiver);
        }
    }
}
