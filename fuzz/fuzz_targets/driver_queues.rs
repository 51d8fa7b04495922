//! The host half of every interface. A hostile device controls every word of every ring, completion and credit, and what
//! registers read. No panic, no hang, no access outside a ring or window (the link panics on one); frames received fit
//! what they lie in, and a receive error stays.
#![no_main]

use arbitrary::Arbitrary;
use beeline_driver::{
    DescriptorConfig, KpioConfig, MmioConfig, Pending, Port, PortError, Progress, QueueHalf, Receive,
    RxDescriptorConfig, RxError, RxRingConfig, Stopped, Transmit,
};
use beeline_fuzz::Word;
use beeline_fuzz::scripted::{Scripted, queue_register};
use beeline_spec::regs;
use libfuzzer_sys::fuzz_target;

const MAX_FRAME_BYTES: usize = 1536;

#[derive(Arbitrary, Debug)]
enum Step {
    /// A word of the driver's memory, near the start, where counts and completions are.
    Poke {
        region: u8,
        word: u8,
        value: Word,
    },
    /// A word anywhere in it.
    PokeFar {
        region: u8,
        word: u16,
        value: Word,
    },
    /// The first word of a line: a header of the receive ring.
    PokeLine {
        region: u8,
        line: u8,
        value: Word,
    },
    Register {
        queue: u8,
        index: u8,
        value: Option<u64>,
    },
    Send {
        which: u8,
        bytes: u16,
        fill: Word,
    },
    Burst {
        which: u8,
        bytes: [u16; 5],
    },
    Progress {
        which: u8,
    },
    Receive {
        which: u8,
        times: u8,
    },
    Recover {
        which: bool,
    },
}

fn finish<T>(port: &mut Port<Scripted>, mut pending: Pending<T>) -> Result<T, PortError> {
    for round in 0..2000 {
        port.poll(round * 10_000_000)?;
        pending = match port.finish(pending)? {
            Progress::Done(value) => return Ok(value),
            Progress::Pending(pending) => pending,
        };
    }
    panic!("an operation does not end");
}

fn open<H: QueueHalf>(port: &mut Port<Scripted>, half: Result<Stopped<H>, PortError>) -> H {
    let pending = port.open(half.expect("a sound device"));
    finish(port, pending).expect("a sound device")
}

fn receive(rx: &mut dyn Receive, bytes: &mut [u8]) -> Result<bool, RxError> {
    let Some(mut frame) = rx.poll()? else { return Ok(false) };
    let length = frame.copy_out(bytes);
    assert!(length <= MAX_FRAME_BYTES && length == frame.len());
    for index in 0..=length.div_ceil(8) {
        assert_eq!(frame.word(index).is_some(), index * 8 < length);
    }
    Ok(true)
}

/// Writes a word into a region of the driver's memory, if it has one there.
fn poke(link: &Scripted, region: u8, word: usize, value: Word) {
    let shared = link.0.borrow();
    let Some(place) = usize::from(region).checked_rem(shared.regions.len()) else { return };
    let mut words = shared.regions[place].borrow_mut();
    if let Some(word) = words.get_mut(word) {
        *word = value.value();
    }
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
            (Step::PokeLine { region, line, value }, _) => {
                poke(&link, region, usize::from(line % 64) * 8, value)
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
                        Ok(more) => {
                            assert!(failed.is_none(), "something was received after an error");
                            if !more {
                                break;
                            }
                        }
                        Err(error) => assert_eq!(*failed.get_or_insert(error), error, "an error is final"),
                    }
                }
            }
            (Step::Recover { which: true }, _) => {
                mmio = mmio.and_then(|half| {
                    let pending = port.recover(half);
                    finish(&mut port, pending).ok()
                });
            }
            (Step::Recover { which: false }, _) => {
                descriptor = descriptor.and_then(|half| {
                    let pending = port.recover(half);
                    finish(&mut port, pending).ok()
                });
            }
            (Step::Send { .. } | Step::Burst { .. } | Step::Progress { .. }, None) => {}
        }
    }
});
