//! This target runs the host half of every interface. A hostile device controls every word of every ring, completion and
//! credit, and what registers read. The host half does not panic, does not hang, and does not leave a ring or a window (the
//! link panics when it does). A frame that was sent lies whole where the device will look, and inside the queue's own
//! memory. A count of finished work that runs ahead is an error. What a device delivers without lying is received to the
//! byte. Freed counts never run ahead, and a receive error stays.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fuzz::Word;
use beeline_fuzz::queues::Host;
use beeline_fuzz::received::{Lies, frame};
use beeline_fuzz::scripted::queue_register;
use beeline_spec::regs;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Operation {
    /// A frame is sent.
    Send { which: u8, bytes: u16, fill: Word },
    /// Five frames are sent.
    Burst { which: u8, bytes: [u16; 5] },
    /// The device says that it has finished so many more than it was given, and the driver looks.
    Finished { which: u8, more: i8 },
    /// The queue looks at what was finished.
    Progress { which: u8 },
    /// A frame is delivered.
    Deliver { which: u8, bytes: u16, fill: u8, lies: Lies },
    /// Frames are received.
    Receive { which: u8, times: u8 },
    /// A receive queue is asked whether the host may sleep.
    Look { which: u8 },
    /// Reads of windows are held, or answered.
    Hold(bool),
    /// A word of the driver's memory, near the start, where counts and completions are.
    Poke { region: u8, word: u8, value: Word },
    /// A word anywhere in it.
    PokeFar { region: u8, word: u16, value: Word },
    /// A register of a queue reads this; `None`: what a sound device says.
    Register { queue: u8, index: u8, value: Option<u64> },
    /// The device takes only every other access, does not answer, or is gone.
    Device { is_busy: bool, is_silent: bool, is_gone: bool },
    /// A queue is recovered.
    Recover { which: u8 },
}

fn run(host: &mut Host, operation: Operation) {
    match operation {
        Operation::Send { which, bytes, fill } => {
            let bytes = usize::from(bytes % 1600);
            let frame = fill.value().to_le_bytes().repeat(bytes.div_ceil(8));
            host.send(which, &frame[..bytes]);
        }
        Operation::Burst { which, bytes } => {
            let frames = bytes.map(|length| &[0x5a; 2048][..usize::from(length % 2048)]);
            let Some(tx) = host.transmit(which) else { return };
            if let Ok(taken) = tx.try_send_burst(&frames) {
                assert!(taken.0 <= frames.len());
            }
        }
        Operation::Finished { which, more } => host.finished(which, more),
        Operation::Progress { which } => {
            let Some(tx) = host.transmit(which) else { return };
            let _ = (tx.progress(), tx.is_idle());
        }
        Operation::Deliver { which, bytes, fill, lies } => host.deliver(which, &frame(bytes, fill), lies),
        Operation::Receive { which, times } => {
            for _ in 0..times % 16 {
                if !host.receive(which) {
                    break;
                }
            }
        }
        Operation::Look { which } => host.look(which),
        Operation::Hold(holds) => host.link.0.borrow_mut().holds = holds,
        Operation::Poke { region, word, value } => host.poke(region, usize::from(word % 32), value),
        Operation::PokeFar { region, word, value } => host.poke(region, word.into(), value),
        Operation::Register { queue, index, value } => {
            let (_, register) = regs::queue::ALL[usize::from(index) % regs::queue::ALL.len()];
            let offset = queue_register(u32::from(queue % 4), register);
            let mut shared = host.link.0.borrow_mut();
            let _ = match value {
                Some(value) => shared.registers.insert(offset, value),
                None => shared.registers.remove(&offset),
            };
        }
        Operation::Device { is_busy, is_silent, is_gone } => {
            let mut shared = host.link.0.borrow_mut();
            (shared.busy, shared.silent, shared.gone) = (is_busy, is_silent, is_gone);
        }
        Operation::Recover { which } => host.recover(which),
    }
}

fuzz_target!(|input: (bool, Vec<Operation>)| {
    let (is_blank, operations) = input;
    let mut host = Host::new(is_blank);
    operations.into_iter().for_each(|operation| run(&mut host, operation));
});
