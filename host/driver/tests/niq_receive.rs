//! Receiving by reads of the BAR, against a device that a test plays by hand: what is asked for and when, and that
//! nothing a read brings leads outside an entry.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "support/scripted.rs"]
mod scripted;

use std::cell::RefCell;
use std::rc::Rc;

use beeline_driver::{
    LongFrameConfig, Must, Port, PortError, Progress, QueueHalf, Receive, RxError, RxNiq, RxNiqConfig,
    RxRingConfig, Stopped,
};
use beeline_spec::entry::{EntryHeader, EntryKind, position_of};
use beeline_spec::regs::{self, queue as r};
use proptest::prelude::*;
use scripted::{Bell, Memory, Reads, Scripted, queue_register};

const EPOCH: u8 = 5;
/// Of entries of two lines.
const ENTRIES: u64 = 16;

fn config() -> RxNiqConfig {
    let long = LongFrameConfig::Ring(RxRingConfig { lines: 64, ..RxRingConfig::default() });
    RxNiqConfig { epoch: EPOCH, long, ..RxNiqConfig::default() }
}

fn open<H: QueueHalf>(port: &mut Port<Scripted>, half: Stopped<H>) -> H {
    let mut pending = port.open(half);
    for now in 0..1000 {
        port.poll(now).unwrap();
        pending = match port.finish(pending).unwrap() {
            Progress::Done(half) => return half,
            Progress::Pending(pending) => pending,
        };
    }
    panic!("an operation does not end");
}

struct Rig {
    link: Scripted,
    port: Port<Scripted>,
    rx: RxNiq<Reads, Memory, Bell>,
    /// What reads of the window find.
    window: Rc<RefCell<Vec<u64>>>,
}

fn rig(config: RxNiqConfig) -> Rig {
    let link = Scripted::sound(32);
    let mut port = link.ready();
    let half = port.rx_niq(0, config).unwrap();
    let rx = open(&mut port, half);
    let window = Rc::clone(&link.0.borrow().readable[&0]);
    Rig { link, port, rx, window }
}

fn head(index: u64, length_bytes: u16, kind: EntryKind) -> u64 {
    EntryHeader { length_bytes, kind, wants_irq: false, epoch: EPOCH, position: position_of(index) }.encode()
}

impl Rig {
    /// Puts an entry of two lines where reads find it; its payload is words with their number.
    fn put(&self, index: u64, head: u64) {
        let mut window = self.window.borrow_mut();
        let at = (index % ENTRIES * 16) as usize;
        window[at] = head;
        for word in 2..16 {
            window[at + word] = index << 8 | word as u64;
        }
    }

    fn reads(&self) -> u32 {
        self.link.0.borrow().window_reads
    }

    fn hold(&self, holds: bool) {
        self.link.0.borrow_mut().holds = holds;
    }

    /// Count told last, and how often.
    fn told(&self) -> (u64, u32) {
        let offset = regs::DOORBELL + regs::doorbell::ENTRIES_FREED;
        self.link.0.borrow().rings.get(&offset).copied().unwrap_or_default()
    }

    fn is_empty(&mut self) -> bool {
        self.rx.poll().unwrap().is_none()
    }

    fn error(&mut self) -> RxError {
        let error = self.rx.poll().map(|_| ()).unwrap_err();
        assert_eq!(self.rx.wants_interrupt(), Err(error), "it stays");
        error
    }
}

#[test]
fn one_read_is_held_when_idle_and_the_next_during_a_frame() {
    let mut rig = rig(config());
    rig.hold(true);
    for _ in 0..5 {
        assert!(rig.is_empty());
    }
    assert_eq!(rig.reads(), 1, "it is held");
    assert!(!rig.rx.wants_interrupt().unwrap(), "the held read is the wait");
    rig.put(0, head(0, 48, EntryKind::Whole));
    rig.hold(false);
    let frame = rig.rx.poll().unwrap().unwrap();
    assert_eq!(
        (frame.len(), rig.link.0.borrow().window_reads),
        (48, 2),
        "the next entry is asked for meanwhile"
    );
    drop(frame);
    assert!(rig.is_empty());
    assert_eq!(rig.reads(), 3, "given up and asked again");
}

#[test]
fn nothing_is_asked_for_while_a_frame_is_used_if_so_configured() {
    let mut rig = rig(RxNiqConfig { reads_ahead: false, ..config() });
    rig.put(0, head(0, 48, EntryKind::Whole));
    let frame = rig.rx.poll().unwrap().unwrap();
    assert_eq!((frame.len(), rig.link.0.borrow().window_reads), (48, 1));
    drop(frame);
    assert_eq!(rig.reads(), 1, "the caller may answer first");
    rig.hold(true);
    rig.put(1, head(1, 56, EntryKind::Whole));
    assert!(rig.is_empty());
    assert_eq!(rig.reads(), 2, "the next look asks");
    rig.hold(false);
    assert_eq!(rig.rx.poll().unwrap().unwrap().len(), 56);
}

#[test]
fn the_lines_behind_the_first_are_read_when_its_head_says_so() {
    let mut rig = rig(config());
    rig.put(0, head(0, 48 + 20, EntryKind::Whole));
    let mut frame = rig.rx.poll().unwrap().unwrap();
    assert_eq!(rig.link.0.borrow().window_reads, 3, "both lines, and the next entry's first");
    assert_eq!((frame.word(0), frame.word(8), frame.word(9)), (Some(2), Some(10), None));
    let mut bytes = [0; 68];
    assert_eq!(frame.copy_out(&mut bytes), 68);
    assert_eq!(bytes[64..], [10, 0, 0, 0]);
}

#[test]
fn what_was_read_once_does_not_change_under_the_reader() {
    let mut rig = rig(config());
    rig.put(0, head(0, 112, EntryKind::Whole));
    let mut frame = rig.rx.poll().unwrap().unwrap();
    rig.window.borrow_mut().fill(u64::MAX);
    assert_eq!((frame.len(), frame.word(13)), (112, Some(15)));
}

#[test]
fn a_frame_that_is_not_dropped_is_found_again() {
    let mut rig = rig(config());
    rig.put(0, head(0, 20, EntryKind::Whole));
    std::mem::forget(rig.rx.poll().unwrap());
    assert_eq!(rig.rx.poll().unwrap().unwrap().len(), 20);
    assert_eq!(rig.rx.frames(), 1);
}

#[test]
fn freed_entries_are_told_after_a_quarter_and_when_nothing_comes() {
    let mut rig = rig(config());
    rig.put(0, head(0, 20, EntryKind::Whole));
    for index in 0..4 {
        rig.put(index + 1, head(index + 1, 20, EntryKind::Whole));
        assert_eq!(rig.told(), (0, 0));
        assert!(!rig.is_empty());
    }
    assert_eq!(rig.told(), (4, 1));
    // The read of entry 5 was under way before there was one, and is given up.
    assert!(!rig.is_empty());
    assert!(rig.is_empty());
    assert_eq!(rig.told(), (5, 2));
}

#[test]
fn a_long_frame_is_waited_for_in_memory_and_must_have_its_entrys_length() {
    let mut rig = rig(config());
    let ring = Rc::clone(&rig.link.0.borrow().regions[0]);
    rig.put(0, head(0, 500, EntryKind::Address));
    assert!(rig.is_empty(), "the ring does not have it yet");
    ring.borrow_mut()[0] = 500 | 1 << 32;
    ring.borrow_mut()[1] = 0x77;
    assert_eq!(rig.rx.poll().unwrap().unwrap().word(0), Some(0x77));
    rig.put(1, head(1, 499, EntryKind::Address));
    ring.borrow_mut()[8 * 8] = 500 | 1 << 32;
    assert_eq!(rig.error(), RxError::OtherLength { entry: 1, entry_bytes: 499, found_bytes: 500 });
}

#[test]
fn heads_that_cannot_be_are_errors_with_the_word() {
    let good = head(0, 20, EntryKind::Whole);
    for word in [u64::MAX, 1, good ^ 1 << 24, head(1, 20, EntryKind::Whole), head(0, 0, EntryKind::Nothing)] {
        let mut rig = rig(config());
        rig.put(0, word);
        assert_eq!(rig.error(), RxError::BadEntry { entry: 0, word });
    }
    let mut rig = rig(RxNiqConfig { long: LongFrameConfig::Dropped, ..config() });
    let word = head(0, 200, EntryKind::Address);
    rig.put(0, word);
    assert_eq!(rig.error(), RxError::BadEntry { entry: 0, word }, "there is nowhere that it could be");
}

#[test]
fn lengths_that_cannot_be_are_errors_with_the_numbers() {
    for (kind, bytes, max_bytes) in [(EntryKind::Whole, 113, 112), (EntryKind::Address, 1519, 1518)] {
        let mut rig = rig(config());
        rig.put(0, head(0, bytes, kind));
        assert_eq!(rig.error(), RxError::BadLength { frame: 0, bytes: bytes.into(), max_bytes });
    }
}

#[test]
fn a_restart_gives_the_held_read_up_and_takes_the_next_epoch() {
    let mut rig = rig(config());
    rig.put(0, head(0, 20, EntryKind::Whole));
    assert!(!rig.is_empty());
    rig.hold(true);
    assert!(rig.is_empty());
    let reads = rig.reads();
    let mut pending = rig.port.recover(rig.rx);
    let mut now = 1000;
    let mut rx = loop {
        rig.port.poll(now).unwrap();
        now += 1;
        pending = match rig.port.finish(pending).unwrap() {
            Progress::Done(half) => break half,
            Progress::Pending(pending) => pending,
        };
    };
    let register = |offset| rig.link.0.borrow().registers[&queue_register(0, offset)];
    assert_eq!(register(r::CONTROL) >> 8 & 0xff, u64::from(EPOCH) + 1);
    assert_eq!(register(r::ENTRY), 1 | 10_000 << 32);
    assert_eq!(register(r::RX_MODE), 1 | 1 << 4, "a ring, and reads");
    rig.link.0.borrow_mut().holds = false;
    rig.window.borrow_mut()[0] = head(0, 20, EntryKind::Whole) + (1 << 24);
    assert_eq!(rx.poll().unwrap().unwrap().len(), 20);
    assert_eq!(rig.link.0.borrow().window_reads, reads + 2);
}

#[test]
fn settings_out_of_range_are_refused() {
    let link = Scripted::sound(4);
    let mut port = link.ready();
    let mut refuse = |config: RxNiqConfig| port.rx_niq(0, config).map(|_| ()).unwrap_err();
    let what = "power of two of an entry's lines";
    let error = refuse(RxNiqConfig { entry_lines_log2: 3, ..config() });
    assert_eq!(error, PortError::Config { what, value: 3, must: Must::Between(0, 2) });
    let error = refuse(RxNiqConfig { entry_lines_log2: 2, ..config() });
    assert_eq!(error, PortError::WindowSize { queue: 0, register: 0, window: 4 });
    let what = "entries between receive credits";
    let error = refuse(RxNiqConfig { freed_coalesce: 2, ..config() });
    assert_eq!(error, PortError::Config { what, value: 2, must: Must::Between(0, 1) });
}

/// A head near a sound one, or anything.
fn any_head() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => (0u64..20, 0u16..140, any::<bool>()).prop_map(|(index, bytes, is_whole)| {
            head(index, bytes, if is_whole { EntryKind::Whole } else { EntryKind::Address })
        }),
        1 => any::<u64>(),
        1 => Just(0),
    ]
}

/// Receives for a while, touching every byte it is allowed to.
fn drain(rx: &mut impl Receive) -> Result<(), RxError> {
    let mut bytes = [0; 1518];
    for _ in 0..100 {
        let Some(mut frame) = rx.poll()? else { continue };
        let length = frame.copy_out(&mut bytes);
        assert_eq!(frame.word(length.div_ceil(8)), None);
        for (word, chunk) in bytes[..length].chunks(8).enumerate() {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            assert_eq!(frame.word(word), Some(u64::from_le_bytes(padded)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_entries_give_frames_in_bounds_or_an_error(
        heads in proptest::collection::vec((0u64..16, any_head()), 0..60),
        ring in proptest::collection::vec((0usize..64, 0u64..1600), 0..20),
        rounds in 1usize..4,
    ) {
        let mut rig = rig(config());
        let long = Rc::clone(&rig.link.0.borrow().regions[0]);
        for _ in 0..rounds {
            // In their order from the first on, so that sound ones are found one behind the other.
            (0..16).for_each(|index| rig.put(index, head(index, 20 + index as u16, EntryKind::Whole)));
            heads.iter().for_each(|(index, head)| rig.put(*index, *head));
            ring.iter().for_each(|(line, length)| long.borrow_mut()[line * 8] = length | 1 << 32);
            if let Err(error) = drain(&mut rig.rx) {
                prop_assert_eq!(rig.rx.poll().map(|_| ()), Err(error));
            }
        }
    }
}
