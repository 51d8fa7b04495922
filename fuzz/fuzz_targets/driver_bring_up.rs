//! This target brings up a port. A hostile device, or none, answers every register read with what it likes, late or never,
//! and may vanish. Bring-up ends with a port that can be used or with an error that stays; it never panics and never polls
//! for ever.
#![no_main]

use arbitrary::Arbitrary;
use beeline_driver::{MmioConfig, Port, PortConfig, PortState, RxRingConfig};
use beeline_fuzz::scripted::Scripted;
use beeline_spec::caps::header;
use beeline_spec::regs;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    /// The device starts as a sound one, of which some answers change.
    sound: bool,
    busy: bool,
    silent: bool,
    window_lines: u8,
    default: u64,
    capabilities: Option<Vec<ListWord>>,
    answers: Vec<(u16, u64)>,
    /// The device vanishes after so many polls.
    gone_after: Option<u8>,
    mac: Option<[u8; 6]>,
    /// Answers that change while the port is polled.
    later: Vec<(u16, u64)>,
}

/// A word of a capability list.
#[derive(Arbitrary, Debug)]
enum ListWord {
    Header { kind: u8, bytes: u8 },
    Small(u16),
    Any(u64),
}

/// Registers that a driver reads, and some others.
fn offset(index: u16) -> u32 {
    match index % 4 {
        0 => u32::from(index / 4 % 9) * 8,
        1 => regs::CAPABILITIES + u32::from(index / 4 % 40) * 8,
        2 => regs::QUEUE + u32::from(index / 4 % 0x80) * 8,
        _ => u32::from(index) * 8,
    }
}

fn link(input: &Input) -> Scripted {
    let link = if input.sound { Scripted::sound(64) } else { Scripted::default() };
    {
        let mut shared = link.0.borrow_mut();
        // A window that is no power of two, or empty, is the link's to give and the driver's to refuse.
        shared.window_lines = if input.sound { 64 } else { input.window_lines.into() };
        (shared.default, shared.busy, shared.silent) = (input.default, input.busy, input.silent);
        if let Some(words) = &input.capabilities {
            let place = u64::from(regs::CAPABILITIES) | (words.len() as u64 * 8) << 32;
            shared.registers.insert(regs::CAPS, place);
            for (at, word) in (regs::CAPABILITIES..).step_by(8).zip(words) {
                let word = match *word {
                    ListWord::Header { kind, bytes } => header(kind % 10, u16::from(bytes % 24)),
                    ListWord::Small(word) => word.into(),
                    ListWord::Any(word) => word,
                };
                shared.registers.insert(at, word);
            }
        }
        shared.registers.extend(input.answers.iter().map(|(index, value)| (offset(*index), *value)));
    }
    link
}

fuzz_target!(|input: Input| {
    let link = link(&input);
    let mut port = Port::new(link.clone(), PortConfig { mac: input.mac, ..PortConfig::default() });
    let mut later = input.later.iter();
    // Ten milliseconds between polls; each answer is awaited for two seconds, and a list has at most 256 words.
    for round in 0..60_000u64 {
        if input.gone_after.is_some_and(|after| u64::from(after) == round) {
            link.0.borrow_mut().gone = true;
        }
        if let Some((index, value)) = later.next() {
            link.0.borrow_mut().registers.insert(offset(*index), *value);
        }
        match port.poll(round * 10_000_000) {
            Ok(PortState::Starting) => {}
            Ok(PortState::Ready) => {
                assert!((1..=1024).contains(&port.queues()));
                let _ = port.mmio(0, MmioConfig::default());
                let _ = port.rx_ring(port.queues(), RxRingConfig::default());
                return;
            }
            Err(error) => {
                assert_eq!(port.poll((round + 1) * 10_000_000), Err(error), "an error is final");
                return;
            }
        }
    }
    panic!("bring-up neither ends nor fails");
});
