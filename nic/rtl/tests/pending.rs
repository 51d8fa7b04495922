//! What the registers say of writes that wait, unjudged, behind a line for which there is no room.
//!
//! The RTL takes some writes in before it judges them. The model judges a write as it takes it, and whatever stands behind
//! a refused one, reads too, the link keeps. So the same traffic ends in the same state on both, and on neither may an
//! answer be too old without saying so.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::{HashMap, VecDeque};

use beeline_contract_device::{Accept, Device, Enables, ReadTag, Want, Write};
use beeline_nic_model::{Nic, NicConfig};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_spec::entry::{EntryHeader, EntryKind};
use beeline_spec::regs::field::queue_status::{self as status, cause};
use beeline_spec::regs::field::{queue_control as control, status as device_status};
use beeline_spec::regs::{self, counter, queue};
use beeline_spec::{Interface, LINE_BYTES};

const WINDOW_LINES: u32 = 16;
const EOP: u64 = 0x0102_0304_0506_0708;
const EPOCH: u8 = 1;
/// The queue that has back-pressure, and the honest or faulty one behind it.
const FULL: u32 = 1;
const BEHIND: u32 = 0;

/// A link in order: what is refused keeps what stands behind it, reads too.
struct Port<D> {
    device: D,
    aperture: (u64, u64),
    posted: VecDeque<Posted>,
    answers: HashMap<u16, u64>,
    frames: usize,
    reads: u16,
}

enum Posted {
    Write(u64, Vec<u8>),
    Read(u64, u16),
}

impl<D: Device> Port<D> {
    fn new(device: D, aperture: (u64, u64)) -> Self {
        let (posted, answers) = (VecDeque::new(), HashMap::new());
        let mut port = Port { device, aperture, posted, answers, frames: 0, reads: 0 };
        port.register(regs::CONTROL, 1);
        port
    }

    fn register(&mut self, offset: u32, value: u64) {
        self.posted.push_back(Posted::Write(offset.into(), value.to_le_bytes().to_vec()));
        self.pump();
    }

    fn start(&mut self, index: u32, interface: Interface, has_back_pressure: bool) {
        let base = regs::QUEUE + index * regs::QUEUE_STRIDE;
        self.register(base + queue::KPIO_EOP, EOP);
        let flags = 1 | u64::from(has_back_pressure) << control::BACKPRESSURE_LSB;
        let code = u64::from(interface.code()) << control::IFACE_LSB;
        self.register(base + queue::CONTROL, flags | code | u64::from(EPOCH) << control::EPOCH_LSB);
    }

    /// Writes into a queue's window, as far as the device takes it now.
    fn store(&mut self, index: u32, offset_bytes: u64, data: &[u8]) {
        let base = self.aperture.0 + u64::from(index) * self.aperture.1;
        let window_bytes = u64::from(WINDOW_LINES) * LINE_BYTES as u64;
        self.posted.push_back(Posted::Write(base + offset_bytes % window_bytes, data.to_vec()));
        self.pump();
    }

    /// The answer to a read, unless it has none yet.
    fn read(&mut self, offset: u32) -> Option<u64> {
        let tag = self.reads;
        self.reads += 1;
        self.posted.push_back(Posted::Read(offset.into(), tag));
        self.pump();
        self.answers.get(&tag).copied()
    }

    fn status(&mut self, index: u32) -> Option<u64> {
        self.read(regs::QUEUE + index * regs::QUEUE_STRIDE + queue::STATUS)
    }

    fn pump(&mut self) {
        self.serve();
        while let Some(posted) = self.posted.front() {
            match posted {
                Posted::Write(offset_bytes, data) => {
                    let write = Write { offset_bytes: *offset_bytes, data, enables: Enables::All };
                    if self.device.write_arrived(write) == Accept::Refused {
                        break;
                    }
                }
                Posted::Read(offset_bytes, tag) => self.device.read_arrived(*offset_bytes, ReadTag(*tag)),
            }
            self.posted.pop_front();
            self.serve();
        }
        self.serve();
    }

    fn serve(&mut self) {
        while let Some(want) = self.device.next() {
            match want {
                Want::ReadCompletion { tag, value } => drop(self.answers.insert(tag.0, value)),
                Want::Transmit { .. } => self.frames += 1,
                _ => {}
            }
        }
    }

    fn wire_ready(&mut self, ready: bool) {
        self.device.wire_ready(ready);
        self.pump();
    }
}

fn rtl() -> Port<RtlNic> {
    let config = RtlConfig { window_lines: WINDOW_LINES, span_lines: 8, ..RtlConfig::default() };
    Port::new(RtlNic::new(&config).unwrap(), config.aperture())
}

fn model() -> Port<Nic> {
    let config = NicConfig { window_lines: WINDOW_LINES, span_lines: 8, ..NicConfig::default() };
    let aperture = (config.aperture_bytes(), config.window_stride_bytes());
    Port::new(Nic::new(config).unwrap(), aperture)
}

/// A frame of 56 bytes in one line of kPIO+WC.
fn kpio_line() -> [u8; LINE_BYTES] {
    let mut line = [0x5a; LINE_BYTES];
    line[56..].copy_from_slice(&EOP.to_le_bytes());
    line
}

/// An entry of 64 bytes with a frame of 40.
fn niq_entry(position: u32) -> [u8; LINE_BYTES] {
    let mut line = [0x5a; LINE_BYTES];
    let kind = EntryKind::Whole;
    let header = EntryHeader { length_bytes: 40, kind, wants_irq: false, epoch: EPOCH, position };
    line[..8].copy_from_slice(&header.encode().to_le_bytes());
    line
}

/// Fills a queue while the wire stands: a line waits, and so many come behind it.
fn fill<D: Device>(port: &mut Port<D>, interface: Interface, behind: u32) -> u32 {
    port.wire_ready(false);
    port.start(FULL, interface, true);
    let lines = WINDOW_LINES + 1 + behind;
    for position in 0..lines {
        let line = if interface == Interface::Kpio { kpio_line() } else { niq_entry(position) };
        port.store(FULL, u64::from(position) * LINE_BYTES as u64, &line);
    }
    lines
}

fn is_pending(value: u64) -> bool {
    value >> status::PENDING_LSB & status::PENDING_MASK == 1
}

/// A queue fails behind a full one; every answer until the wire goes on again says so, or that it may be too old.
fn a_failure_behind_a_full_queue<D: Device>(port: &mut Port<D>) {
    port.start(BEHIND, Interface::Kpio, false);
    let lines = fill(port, Interface::Kpio, 1);
    // A byte twice.
    port.store(BEHIND, 0, &[1; 8]);
    port.store(BEHIND, 0, &[2; 8]);
    let before =
        [port.read(regs::STATUS), port.status(BEHIND), port.read(regs::COUNTERS + counter::CLOBBERS)];
    let failed = 1 << status::QUARANTINED_LSB
        | cause::CLOBBER << status::CAUSE_LSB
        | u64::from(EPOCH) << status::EPOCH_LSB;
    if let Some(value) = before[1] {
        assert!(value == failed || is_pending(value), "{value:#x} is too old and does not say so");
    }
    if let [Some(value), _, Some(clobbers)] = before {
        let is_pending = value >> device_status::PENDING_LSB & device_status::PENDING_MASK == 1;
        assert!(clobbers == 1 || is_pending, "{clobbers} clobbers, status {value:#x}");
    }
    port.wire_ready(true);
    assert_eq!(port.status(BEHIND), Some(failed));
    assert_eq!(port.read(regs::COUNTERS + counter::CLOBBERS), Some(1));
    let attention = 1 << device_status::ACTIVE_LSB | 1 << device_status::ATTENTION_LSB;
    assert_eq!(port.read(regs::STATUS), Some(attention));
    assert_eq!(port.frames, lines as usize);
}

/// Whether a write of the queue waits for room: the RTL has taken it in, the model has refused it.
fn waits<D: Device>(port: &mut Port<D>, index: u32) -> bool {
    port.status(index).is_none_or(is_pending)
}

/// Without a faulty queue: what waits is pending until the wire has taken a frame, and nothing else ever is.
fn a_line_waits_until_the_wire_takes_a_frame<D: Device>(port: &mut Port<D>, interface: Interface) {
    port.start(BEHIND, interface, true);
    let active = 1 << status::ACTIVE_LSB | u64::from(EPOCH) << status::EPOCH_LSB;
    assert_eq!([FULL, BEHIND].map(|index| port.status(index)), [Some(0), Some(active)]);
    let lines = fill(port, interface, 0);
    assert!(waits(port, FULL) && waits(port, BEHIND), "of {lines} lines all have room");
    port.wire_ready(true);
    assert_eq!([FULL, BEHIND].map(|index| port.status(index)), [Some(active); 2]);
    assert_eq!(port.frames, lines as usize);
}

#[test]
fn a_failure_behind_a_full_queue_is_told_or_the_status_is_pending() {
    a_failure_behind_a_full_queue(&mut model());
    let mut rtl = rtl();
    a_failure_behind_a_full_queue(&mut rtl);
    assert!(!rtl.device.has_failed(), "an assertion of the RTL failed");
}

#[test]
fn a_write_without_room_is_pending_until_the_wire_takes_a_frame() {
    for interface in [Interface::Kpio, Interface::Niq] {
        a_line_waits_until_the_wire_takes_a_frame(&mut model(), interface);
        let mut rtl = rtl();
        a_line_waits_until_the_wire_takes_a_frame(&mut rtl, interface);
        assert!(!rtl.device.has_failed(), "an assertion of the RTL failed");
    }
}

#[test]
fn registers_answer_and_the_full_queue_stops_while_the_wire_stands() {
    for interface in [Interface::Kpio, Interface::Niq] {
        let mut port = rtl();
        port.wire_ready(false);
        // What stands at the wire is another queue's: a stop would wait for the frame of its own that has begun.
        port.start(BEHIND, Interface::Kpio, false);
        for line in 0..u64::from(WINDOW_LINES) / 2 {
            port.store(BEHIND, line * LINE_BYTES as u64, &kpio_line());
        }
        fill(&mut port, interface, 0);
        assert!(port.status(BEHIND).is_some_and(is_pending));
        assert_eq!(port.read(regs::MAGIC), Some(regs::field::magic::VALUE_RESET));
        // The stop takes with it what waited.
        port.register(regs::QUEUE + FULL * regs::QUEUE_STRIDE + queue::CONTROL, 0);
        assert_eq!(port.status(FULL), Some(u64::from(EPOCH) << status::EPOCH_LSB), "{interface:?}");
        assert!(!port.device.has_failed(), "an assertion of the RTL failed");
    }
}

#[test]
fn no_status_is_pending_while_every_line_has_room() {
    let mut port = rtl();
    port.start(BEHIND, Interface::Kpio, false);
    // Lines in many pieces are judged slowest: a status behind them waits, and tells what came of them.
    for line in 0..u64::from(WINDOW_LINES) {
        for word in 0..8 {
            let offset_bytes = line * LINE_BYTES as u64 + word * 8;
            let bytes = if word == 7 { EOP.to_le_bytes() } else { [0x5a; 8] };
            port.store(BEHIND, offset_bytes, &bytes);
        }
        assert_eq!(
            port.status(BEHIND),
            Some(1 << status::ACTIVE_LSB | u64::from(EPOCH) << status::EPOCH_LSB)
        );
        assert_eq!(port.read(regs::COUNTERS + counter::SPLIT_LINES), Some(line + 1));
        assert_eq!(port.read(regs::STATUS), Some(1 << device_status::ACTIVE_LSB));
    }
    port.store(BEHIND, 0, &[1; 8]);
    port.store(BEHIND, 0, &[2; 8]);
    assert_eq!(
        port.status(BEHIND).map(|value| value >> status::CAUSE_LSB & status::CAUSE_MASK),
        Some(cause::CLOBBER)
    );
    assert!(!port.device.has_failed(), "an assertion of the RTL failed");
}
