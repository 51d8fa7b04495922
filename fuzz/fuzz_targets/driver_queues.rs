//! The host half of every interface. A hostile device controls every word of every ring, completion and credit, and what
//! registers read. No panic, no hang, no access outside a ring or window (the link panics on one); frames received fit
//! what they lie in, and a receive error stays.
#![no_main]

use arbitrary::Arbitrary;
use beeline_driver::{
    DescriptorConfig, KpioConfig, MmioConfig, Receive, RxDescriptorConfig, RxError, RxRingConfig, Transmit,
};
use beeline_fuzz::Word;
use beeline_fuzz::queues::{MAX_FRAME_BYTES, open, poke, receive, recover};
use beeline_fuzz::scripted::{Scripted, queue_register};
use beeline_spec::header::lines_of;
use beeline_spec::regs;
use libfuzzer_sys::fuzz_target;

/// The fourth and fifth region of memory that the driver asks for, and the word of the latter where completions begin.
const RING: u8 = 3;
const BUFFERS: u8 = 4;
const COMPLETIONS: usize = 16;

#[derive(Arbitrary, Debug)]
enum Step {
    /// A word of the driver's memory, near the start, where counts and completions are.
    Poke { region: u8, word: u8, value: Word },
    /// A word anywhere in it.
    PokeFar { region: u8, word: u16, value: Word },
    /// The word that says whether the next frame is there, of one way to receive or the other.
    Deliver { which: u8, length_bytes: u16, flags: u8 },
    /// What a register of a queue reads; `None`: what a sound device says.
    Register { queue: u8, index: u8, value: Option<u64> },
    /// A frame is sent.
    Send { which: u8, bytes: u16, fill: Word },
    /// Five frames are.
    Burst { which: u8, bytes: [u16; 5] },
    /// The queue looks at what was finished.
    Progress { which: u8 },
    /// Frames are received.
    Receive { which: u8, times: u8 },
    /// The first transmit queue is recovered, or the third.
    Recover { which: bool },
}

fuzz_target!(|steps: Vec<Step>| {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let config =
        DescriptorConfig { entries: 8, buffer_bytes: 4096, completion_frames: 2, ..Default::default() };
    let (mmio, kpio) = (port.mmio(0, MmioConfig::default()), port.kpio(1, KpioConfig::default()));
    let descriptor = port.descriptor(2, config);
    let ring = port.rx_ring(0, RxRingConfig { lines: 64, ..RxRingConfig::default() });
    let buffers = port.rx_descriptor(3, RxDescriptorConfig { entries: 8, ..RxDescriptorConfig::default() });
    let mut mmio = Some(open(&mut port, mmio));
    let mut kpio = open(&mut port, kpio);
    let mut descriptor = Some(open(&mut port, descriptor));
    let mut receivers: [(Box<dyn Receive>, Option<RxError>); 2] =
        [(Box::new(open(&mut port, ring)), None), (Box::new(open(&mut port, buffers)), None)];
    let mut bytes = [0; MAX_FRAME_BYTES];
    let mut next = [0, 0];
    for step in steps {
        let tx: Option<&mut dyn Transmit> = match &step {
            Step::Send { which, .. } | Step::Burst { which, .. } | Step::Progress { which } => {
                match which % 3 {
                    0 => mmio.as_mut().map(|tx| tx as _),
                    1 => Some(&mut kpio),
                    _ => descriptor.as_mut().map(|tx| tx as _),
                }
            }
            _ => None,
        };
        match (step, tx) {
            (Step::Poke { region, word, value }, _) => poke(&link, region, usize::from(word % 32), value),
            (Step::PokeFar { region, word, value }, _) => poke(&link, region, word.into(), value),
            (Step::Deliver { which, length_bytes, flags }, _) => {
                let value = Word::Mark { length_bytes, flags };
                match which % 2 {
                    0 => poke(&link, RING, next[0] % 64 * 8, value),
                    _ => poke(&link, BUFFERS, COMPLETIONS + next[1] % 8, value),
                }
            }
            (Step::Register { queue, index, value }, _) => {
                let (_, register) = regs::queue::ALL[usize::from(index) % regs::queue::ALL.len()];
                let offset = queue_register(u32::from(queue % 4), register);
                let mut shared = link.0.borrow_mut();
                let _ = match value {
                    Some(value) => shared.registers.insert(offset, value),
                    None => shared.registers.remove(&offset),
                };
            }
            (Step::Send { bytes, fill, .. }, Some(tx)) => {
                let frame = fill.value().to_le_bytes().repeat(usize::from(bytes % 2048).div_ceil(8));
                let _ = tx.try_send(&frame[..usize::from(bytes % 2048)]);
            }
            (Step::Burst { bytes: lengths, .. }, Some(tx)) => {
                let frames = lengths.map(|length| &[0x5a; 2048][..usize::from(length % 2048)]);
                assert!(tx.try_send_burst(&frames).is_ok_and(|taken| taken <= 5) || !frames.is_empty());
            }
            (Step::Progress { .. }, Some(tx)) => drop((tx.progress(), tx.is_idle())),
            (Step::Receive { which, times }, _) => {
                let (rx, failed) = &mut receivers[usize::from(which % 2)];
                for _ in 0..times {
                    match receive(rx.as_mut(), &mut bytes) {
                        Ok(None) if failed.is_none() => break,
                        Ok(Some(bytes)) if failed.is_none() => {
                            next[usize::from(which % 2)] +=
                                if which % 2 == 0 { lines_of(bytes as u32) as usize } else { 1 };
                        }
                        Ok(_) => panic!("a poll went well after an error"),
                        Err(error) => assert_eq!(*failed.get_or_insert(error), error, "an error is final"),
                    }
                }
            }
            (Step::Recover { which: true }, _) => mmio = mmio.and_then(|half| recover(&mut port, half)),
            (Step::Recover { which: false }, _) => {
                descriptor = descriptor.and_then(|half| recover(&mut port, half));
            }
            (Step::Send { .. } | Step::Burst { .. } | Step::Progress { .. }, None) => {}
        }
    }
});
