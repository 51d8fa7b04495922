//! The behavioural NIC behind the in-process link, and what every test does with it.
#![allow(dead_code, reason = "each test file uses its own part of this module")]

use beeline_contract_memory::Adversary;
use beeline_driver::{
    Batching, CoherentConfig, DescriptorConfig, EnsoConfig, InlineConfig, KpioConfig, MmioConfig, NiqConfig,
    Port, PortConfig, QueueHalf, Receive, Sent, Stopped, Transmit,
};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::Interface;

use super::{Aperture, InProcess, bring_up, finish};

pub type Link = InProcess<Nic>;

pub const LINES: u32 = 64;
pub const MAX_FRAME: u32 = 1518;

pub fn nic(blank: bool) -> (Link, Port<Link>) {
    let config = NicConfig {
        queues: 4,
        window_lines: LINES,
        span_lines: 32,
        contexts: 4,
        pool_lines: 4 * LINES,
        blank,
        max_frame_bytes: MAX_FRAME,
        ..NicConfig::default()
    };
    let stride_bytes = config.window_stride_bytes();
    let device = Nic::new(config).expect("the sizes are sound");
    let offset_bytes = aperture_of(&device);
    let link = InProcess::new(device, Aperture { offset_bytes, stride_bytes, lines: LINES }, 4, 7);
    let port = bring_up(&link, PortConfig::default());
    (link, port)
}

/// Where the windows begin, from the device itself.
pub fn aperture_of(device: &Nic) -> u64 {
    device.config().capabilities().aperture.expect("a NIC has windows").0
}

pub fn open<H: QueueHalf>(port: &mut Port<Link>, half: Stopped<H>) -> H {
    let pending = port.open(half);
    finish(port, pending).expect("the queue opens")
}

/// Frame `index`: every byte depends on both numbers, so a frame in the wrong place shows.
pub fn frame(index: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + index * 7 + 1) as u8).collect()
}

/// What arrives for a frame that was sent: padded with zeros to the interface's multiple.
pub fn padded(frame: &[u8], multiple: usize) -> Vec<u8> {
    let mut padded = frame.to_vec();
    padded.resize(frame.len().next_multiple_of(multiple), 0);
    padded
}

/// Sends all frames in bursts of `burst`, the device running whenever the queue is full, and checks what came out.
pub fn send_all(link: &Link, tx: &mut dyn Transmit, frames: &[Vec<u8>], burst: usize) {
    let views: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let (mut sent, mut idle_rounds) = (0, 0);
    while sent < frames.len() {
        let end = frames.len().min(sent + burst);
        let taken = if burst == 1 {
            usize::from(tx.try_send(views[sent]).expect("a sound device") == Sent::Sent)
        } else {
            tx.try_send_burst(&views[sent..end]).expect("a sound device").0
        };
        sent += taken;
        idle_rounds = if taken == 0 { idle_rounds + 1 } else { 0 };
        assert!(idle_rounds < 1000, "stuck after {sent} of {} frames", frames.len());
        if taken == 0 {
            tx.progress().expect("a sound device");
            link.pass(500);
        }
    }
    for _ in 0..1000 {
        tx.progress().expect("a sound device");
        link.pass(500);
        if tx.is_idle() {
            break;
        }
    }
    assert!(tx.is_idle(), "the device does not finish");
    let multiple = tx.declared().frame_multiple_bytes();
    let wire = link.take_wire();
    assert_eq!(wire.len(), frames.len());
    for (i, (found, sent)) in wire.iter().zip(frames).enumerate() {
        assert_eq!(found, &padded(sent, multiple), "frame {i} of {} bytes", sent.len());
    }
}

/// A transmit queue of an interface behind the adversary.
pub fn hostile_order(
    port: &mut Port<Link>,
    interface: Interface,
    seed: u64,
    batching: Batching,
) -> Box<dyn Transmit> {
    match interface {
        Interface::Mmio => {
            let config = MmioConfig { random: seed, batching, ..MmioConfig::default() };
            let half =
                port.mmio_behind(0, config, |window, bears| Adversary::new(window, bears, seed)).unwrap();
            Box::new(open(port, half))
        }
        Interface::Kpio => {
            let config = KpioConfig { random: seed, ..KpioConfig::default() };
            let half =
                port.kpio_behind(0, config, |window, bears| Adversary::new(window, bears, seed)).unwrap();
            Box::new(open(port, half))
        }
        Interface::Descriptor => {
            let config = DescriptorConfig {
                entries: 16,
                buffer_bytes: 4096,
                completion_frames: 4,
                ..Default::default()
            };
            let half = port.descriptor(0, config).unwrap();
            Box::new(open(port, half))
        }
        Interface::Inline => {
            let config = InlineConfig {
                random: seed,
                ring_lines: 32,
                buffer_bytes: 4096,
                completion_frames: 4,
                self_test: 5,
                ..Default::default()
            };
            let half =
                port.inline_behind(0, config, |window, bears| Adversary::new(window, bears, seed)).unwrap();
            Box::new(open(port, half))
        }
        Interface::Enso => {
            let config = EnsoConfig { lines: 64, completion_frames: 4, ..Default::default() };
            let half = port.enso(0, config).unwrap();
            Box::new(open(port, half))
        }
        Interface::Niq => {
            let config =
                NiqConfig { random: seed, buffer_bytes: 4096, completion_frames: 4, ..Default::default() };
            let half =
                port.niq_behind(0, config, |window, bears| Adversary::new(window, bears, seed)).unwrap();
            Box::new(open(port, half))
        }
        Interface::Coherent => {
            let config =
                CoherentConfig { entries: 4, short_buffers: 8, long_buffers: 3, ..Default::default() };
            let half = port.coherent(0, config).unwrap();
            Box::new(open(port, half))
        }
    }
}

pub fn counters(link: &Link) -> beeline_nic_model::Counters {
    link.0.borrow().device.counters()
}

/// Lets a frame arrive for every size and checks what the host gets; the ring wraps many times.
pub fn receive_all(link: &Link, rx: &mut impl Receive, frames: &[Vec<u8>], chunk: usize) {
    let mut received = 0;
    let mut bytes = Vec::new();
    for some in frames.chunks(chunk) {
        link.0.borrow_mut().arriving.extend(some.iter().cloned());
        // A pipe tells of the last frames only when it has learnt that the host took those before.
        let (all, mut rounds) = (received + some.len(), 0);
        while received < all || rounds < 2 {
            link.pass(100);
            while let Some(mut frame) = rx.poll().expect("a sound device") {
                frame.copy_to(&mut bytes);
                assert_eq!(bytes, frames[received], "frame {received}");
                let word = frames[received][..8].try_into().map(u64::from_le_bytes).ok();
                assert_eq!(frame.word(0), word);
                received += 1;
            }
            rounds += 1;
            assert!(rounds < 1000, "stuck after {received} frames");
        }
    }
    assert_eq!(received, frames.len());
}

/// What was sent before is on the wire, and another frame follows it.
pub fn send_all_after(link: &Link, tx: &mut dyn Transmit, before: usize) {
    for _ in 0..100 {
        tx.progress().unwrap();
        link.pass(5_000);
    }
    assert_eq!(link.take_wire().len(), before);
    send_all(link, tx, &[frame(5, 100)], 1);
}
