//! The player must notice every kind of difference: a scripted device does all that a small case wants, or all but
//! one thing.

use beeline_contract_device::{DmaError, DmaTag};

use super::*;
use crate::case::{Count, DeviceParameters, Expectation, WindowKind};

/// What the scripted device does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    NoMagic,
    NoFrame,
    TwoFrames,
    Refuses,
    NextStart,
    Credit,
    Status,
    Counter,
    Reads,
    Interrupts,
    Silent,
}

/// A device that answers one write with one frame and one freed line.
struct Scripted {
    fault: Fault,
    wants: VecDeque<Owned>,
    frame: Vec<u8>,
    lent: Option<Owned>,
}

#[derive(Clone)]
enum Owned {
    Frame,
    Credit(u64, [u8; 8]),
    Answer(u64),
    Read,
    Interrupt,
}

const APERTURE: u64 = 0x40_0000;

impl Scripted {
    fn register(&self, offset: u32) -> u64 {
        let list = {
            let mut words = Vec::new();
            let caps = Capabilities { aperture: Some((APERTURE, 0x1000)), ..Capabilities::default() };
            caps.write(|word| words.push(word));
            words
        };
        let wrong = |fault| u64::from(self.fault == fault);
        const NEXT_START: u32 = regs::QUEUE + queue::NEXT_START;
        const STATUS: u32 = regs::QUEUE + queue::STATUS;
        const TX_WRITES: u32 = regs::COUNTERS + regs::counter::TX_WRITES;
        const TX_FRAMES: u32 = regs::COUNTERS + regs::counter::TX_FRAMES;
        const TX_FRAME_BYTES: u32 = regs::COUNTERS + regs::counter::TX_FRAME_BYTES;
        match offset {
            regs::MAGIC => regs::field::magic::VALUE_RESET ^ wrong(Fault::NoMagic),
            regs::CAPS => u64::from(regs::CAPABILITIES) | (list.len() as u64 * 8) << caps_offset::BYTES_LSB,
            regs::CAPABILITIES..regs::COUNTERS => list[(offset - regs::CAPABILITIES) as usize / 8],
            NEXT_START => 1 + wrong(Fault::NextStart),
            STATUS => 1 << queue_status::ACTIVE_LSB | wrong(Fault::Status) << queue_status::QUARANTINED_LSB,
            TX_WRITES => 1 + wrong(Fault::Counter),
            TX_FRAMES => 1,
            TX_FRAME_BYTES => 14,
            _ => 0,
        }
    }
}

impl Device for Scripted {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        if write.offset_bytes < APERTURE {
            return Accept::Taken;
        }
        if self.fault == Fault::Refuses {
            return Accept::Refused;
        }
        let frames = match self.fault {
            Fault::NoFrame => 0,
            Fault::TwoFrames => 2,
            _ => 1,
        };
        self.frame = write.data.to_vec();
        self.wants.extend(std::iter::repeat_n(Owned::Frame, frames));
        let freed = 1 + u64::from(self.fault == Fault::Credit);
        self.wants.push_back(Owned::Credit(CREDIT_ADDRESS, freed.to_le_bytes()));
        match self.fault {
            Fault::Reads => self.wants.push_back(Owned::Read),
            Fault::Interrupts => self.wants.push_back(Owned::Interrupt),
            _ => {}
        }
        Accept::Taken
    }

    fn read_arrived(&mut self, offset_bytes: u64, _tag: ReadTag) {
        if self.fault != Fault::Silent {
            self.wants.push_back(Owned::Answer(self.register(offset_bytes as u32)));
        }
    }

    fn dma_completed(&mut self, _tag: DmaTag, data: Result<&[u8], DmaError>) {
        assert_eq!(data, Err(DmaError::BadAddress));
    }

    fn frame_arrived(&mut self, _frame: &[u8]) -> Accept {
        Accept::Taken
    }

    fn time_passed(&mut self, _now: SimTime) {}

    fn wire_ready(&mut self, _ready: bool) {}

    fn next(&mut self) -> Option<Want<'_>> {
        self.lent = self.wants.pop_front();
        Some(match self.lent.as_ref()? {
            Owned::Frame => Want::Transmit { queue: beeline_contract_device::QueueId(0), frame: &self.frame },
            Owned::Credit(address, data) => Want::DmaWrite { address: *address, data },
            Owned::Answer(value) => Want::ReadCompletion { tag: ReadTag(0), value: *value },
            Owned::Read => Want::DmaRead { address: 64, bytes: 64, tag: DmaTag(0) },
            Owned::Interrupt => Want::Interrupt { vector: 0 },
        })
    }

    fn wake_at(&self) -> Option<SimTime> {
        None
    }
}

fn case() -> Case {
    let status = QueueStatus { active: true, quarantined: false, cause: 0 };
    let write = crate::case::Write { at: 0, bytes: vec![7; 14], enables: None };
    let then =
        Then { frames: vec![vec![7; 14]], next_start: Some(1), freed_lines: Some(1), ..Then::default() };
    Case {
        name: "scripted".to_owned(),
        why: "It tests the player.".to_owned(),
        source: "here".to_owned(),
        device: DeviceParameters {
            interface: beeline_spec::Interface::Mmio,
            window: WindowKind::Observed,
            window_lines: 4,
            span_lines: 2,
            contexts: 1,
            pool_lines: 4,
            max_frame_bytes: 100,
            epoch: 0,
            hole_timeout_ns: 0,
            backpressure: false,
            checksums: false,
            cut_through_lines: 0,
            kpio_eop: 0,
            host: HostSide::default(),
        },
        events: vec![Event { note: "a frame".to_owned(), action: Action::Write(write), then }],
        expect: Expectation {
            status,
            freed_lines: 1,
            counters: [("tx_writes".to_owned(), Count::Exactly(1))].into(),
        },
    }
}

fn play(fault: Fault) -> Result<(), String> {
    let device = Scripted { fault, wants: VecDeque::new(), frame: Vec::new(), lent: None };
    run(&case(), device).map_err(|mismatch| mismatch.to_string())
}

#[test]
fn a_device_that_does_as_the_case_says_passes() {
    assert_eq!(play(Fault::Nothing), Ok(()));
}

#[test]
fn every_difference_is_told() {
    for (fault, said) in [
        (Fault::NoMagic, "bringing the queue up: magic is"),
        (Fault::Silent, "register 0x0 was not answered"),
        (Fault::NoFrame, "event 0 (a frame): frames [], expected [0707"),
        (Fault::TwoFrames, "event 0 (a frame): frames [0707"),
        (Fault::Refuses, "event 0 (a frame): frames []"),
        (Fault::NextStart, "next start is 2, expected 1"),
        (Fault::Credit, "freed lines is 2, expected 1"),
        (Fault::Status, "quarantined: true"),
        (Fault::Counter, "the end: tx_writes is 2, expected Exactly(1)"),
        (Fault::Reads, "the device wants a DMA read of 0x40"),
        (Fault::Interrupts, "the device wants interrupt 0"),
    ] {
        let found = play(fault).unwrap_err();
        assert!(found.starts_with("case scripted, ") && found.contains(said), "{fault:?}: {found}");
    }
}

#[test]
fn a_refused_write_must_be_expected() {
    let mut case = case();
    case.events[0].then = Then { refused: true, ..Then::default() };
    let device = |fault| Scripted { fault, wants: VecDeque::new(), frame: Vec::new(), lent: None };
    let end = run(&case, device(Fault::Refuses)).unwrap_err();
    assert_eq!((end.place.as_str(), end.what.as_str()), ("the end", "freed lines is 0, expected 1"));
    case.events[0].then.frames = vec![vec![7; 14]];
    assert!(run(&case, device(Fault::Nothing)).unwrap_err().what.contains("it was taken"));
}
