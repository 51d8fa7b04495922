//! This target receives by reads of entries in the BAR (`RxNiq`). A hostile device controls every answer to a read and when
//! it comes, where long frames lie and what is said of them. The receive half does not panic, does not hang, does not read
//! outside window or memory, and gives no frame that is longer than its entry or buffer. What a device that has not lied
//! answers is received to the byte, and nothing of a life before a recovery is received. Freed counts never run ahead. An
//! error needs a lie, and stays.
#![no_main]

use arbitrary::Arbitrary;
use beeline_driver::{LongFrameConfig, Port, RxDescriptorConfig, RxEnsoConfig, RxNiqConfig, RxRingConfig};
use beeline_fuzz::Word;
use beeline_fuzz::fillers::{
    BUFFERS, BufferFiller, EntryFiller, Filler, LINES, NOTIFICATIONS, PipeFiller, RingFiller,
};
use beeline_fuzz::opened::{Opened, Words};
use beeline_fuzz::received::{FuzzedReceiver, Lies, Received, frame};
use beeline_fuzz::scripted::Scripted;
use beeline_spec::entry::{EntryHeader, EntryKind, position_of};
use libfuzzer_sys::fuzz_target;

const QUEUE: u32 = 2;

/// Where frames go that do not fit an entry.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Long {
    Dropped,
    Ring,
    Descriptors,
    Pipe,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    /// A frame is delivered.
    Deliver { bytes: u16, fill: u8, lies: Lies },
    /// Frames are received.
    Receive { times: u8 },
    /// The host asks whether it may sleep.
    Look,
    /// Reads are held, or answered.
    Hold(bool),
    /// A read of a word of the window finds this.
    Answer { word: u16, value: Word },
    /// An entry reads as this one would.
    Head { place: u8, kind: u8, length_bytes: u16, epoch: u8, index: u8 },
    /// A word of the memory in which long frames lie.
    Poke { word: u16, value: Word },
    /// The queue is recovered.
    Recover,
}

#[derive(Arbitrary, Debug)]
struct Input {
    entry_lines_log2: u8,
    freed_coalesce: u8,
    long: Long,
    epoch: u8,
    operations: Vec<Operation>,
}

fn config(input: &Input) -> RxNiqConfig {
    let long = match input.long {
        Long::Dropped => LongFrameConfig::Dropped,
        Long::Ring => LongFrameConfig::Ring(RxRingConfig { lines: LINES, ..Default::default() }),
        Long::Descriptors => {
            LongFrameConfig::Descriptors(RxDescriptorConfig { entries: BUFFERS, ..Default::default() })
        }
        Long::Pipe => LongFrameConfig::Pipe(RxEnsoConfig {
            lines: LINES,
            notifications: NOTIFICATIONS,
            ..RxEnsoConfig::default()
        }),
    };
    let (entry_lines_log2, freed_coalesce) = (u32::from(input.entry_lines_log2 % 3), input.freed_coalesce);
    // At most half the entries.
    let freed_coalesce = u32::from(freed_coalesce) % (LINES / 2 >> entry_lines_log2);
    RxNiqConfig { entry_lines_log2, freed_coalesce, long, epoch: input.epoch, ..RxNiqConfig::default() }
}

/// The queue, its window and the memory of long frames.
fn open(
    input: &Input,
    port: &mut Port<Scripted>,
    link: &Scripted,
) -> (Box<dyn FuzzedReceiver>, Words, Words) {
    let config = config(input);
    let opened = Opened::new(port, link, |port| port.rx_niq(QUEUE, config)).expect("a sound device");
    let (window, memory) = (link.0.borrow().readable[&QUEUE].clone(), opened.words());
    let long: Option<Box<dyn Filler>> = match input.long {
        Long::Dropped => None,
        Long::Ring => Some(Box::new(RingFiller::new(QUEUE, memory.clone()))),
        Long::Descriptors => Some(Box::new(BufferFiller::new(QUEUE, memory.clone()))),
        Long::Pipe => Some(Box::new(PipeFiller::new(QUEUE, memory.clone()))),
    };
    let life = (QUEUE, opened.epoch());
    let filler = EntryFiller::new(life, window.clone(), config.entry_lines_log2, long);
    (Box::new(Received::new(opened, filler)), window, memory)
}

fn store(words: &Words, at: usize, value: u64) {
    let mut words = words.borrow_mut();
    if let Some(at) = at.checked_rem(words.len()) {
        words[at] = value;
    }
}

fuzz_target!(|input: Input| {
    let link = Scripted::sound(LINES);
    let mut port = link.ready();
    let (mut rx, window, memory) = open(&input, &mut port, &link);
    for operation in input.operations {
        match operation {
            Operation::Deliver { bytes, fill, lies } => rx.deliver(&link, &frame(bytes, fill), lies),
            Operation::Receive { times } => {
                for _ in 0..times % 16 {
                    rx.poll(&link);
                }
            }
            Operation::Look => rx.look(&link),
            Operation::Hold(holds) => link.0.borrow_mut().holds = holds,
            Operation::Answer { word, value } => {
                store(&window, word.into(), value.value());
                rx.lied();
            }
            Operation::Head { place, kind, length_bytes, epoch, index } => {
                let kinds = [EntryKind::Whole, EntryKind::Address, EntryKind::Nothing];
                let kind = kinds[usize::from(kind) % kinds.len()];
                let position = position_of(index.into());
                let head = EntryHeader {
                    length_bytes: length_bytes % 2048,
                    kind,
                    wants_irq: false,
                    epoch,
                    position,
                };
                store(&window, usize::from(place) * 8, head.encode());
                rx.lied();
            }
            Operation::Poke { word, value } => {
                store(&memory, word.into(), value.value());
                rx.lied();
            }
            Operation::Recover => assert!(rx.recover(&mut port), "a sound device lets a queue be recovered"),
        }
    }
});
