//! Plays a case through a device, touching nothing but what a host would: registers, the window, the wire.
//!
//! After each event the device is asked for its wants until it has none, so what a device does at once and what it
//! does after a pipeline look the same here.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};

use beeline_contract_device::{Accept, Device, Enables, ReadTag, SimTime, Want, Watches, Write};
use beeline_spec::caps::Capabilities;
use beeline_spec::regs::field::{
    caps_offset, control, credit_coalesce, cut_through, entry, moderation, queue_control, queue_status,
    rx_mode,
};
use beeline_spec::regs::{self, doorbell, queue};

use crate::case::{Action, Case, Doorbell, Event, HostSide, QueueStatus, Then};
use crate::check::counter_offset;
use crate::host::{Area, HostMemory};

/// Where the device is told to push credits.
const CREDIT_ADDRESS: u64 = 0x1000;

/// The counter of frames that were dropped for want of room.
const LOST_FRAMES: &str = "rx_no_space";

/// The tag of register reads; reads of the window have others.
const REGISTER: ReadTag = ReadTag(0);

/// A device did something else than the case says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Name of the case.
    pub case: String,
    /// Where: an event with its note, or the end.
    pub place: String,
    /// What was expected, and what came.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "case {}, {}: {}", self.case, self.place, self.what)
    }
}

impl std::error::Error for Mismatch {}

/// Plays `case` on a device in its reset state that was made with [`Case::device`]; only queue 0 is used.
///
/// # Errors
/// The first thing that differs.
pub fn run<D: Device>(case: &Case, device: D) -> Result<(), Mismatch> {
    let mut player = Player::new(device);
    let at = |place: String| move |what| Mismatch { case: case.name.clone(), place: place.clone(), what };
    player.bring_up(case).map_err(at("bringing the queue up".to_owned()))?;
    for (index, event) in case.events.iter().enumerate() {
        let place = format!("event {index} ({})", event.note);
        player.play(case, event).and_then(|()| player.compare(&event.then)).map_err(at(place))?;
    }
    player.compare_end(case).map_err(at("the end".to_owned()))
}

/// A device and what came out of it.
struct Player<D> {
    device: D,
    now: SimTime,
    aperture: u64,
    frames: Vec<Vec<u8>>,
    /// What had left of frames that ended with an abort mark.
    aborted: Vec<Vec<u8>>,
    freed_lines: u64,
    answer: Option<u64>,
    /// Answers to reads of the window.
    answers: Vec<u64>,
    next_read: u16,
    is_frame_refused: bool,
    /// Writes and frames that the device had counted as refused, and those frames, when it was last asked.
    refusals: [u64; 2],
    host: HostMemory,
    watches: Watches,
    wire_ready: bool,
    /// Refused writes, oldest first; those behind one wait with it.
    kept: VecDeque<(u64, Vec<u8>, Enables)>,
    /// What the device wanted that nobody expected.
    surprise: Option<String>,
}

impl<D: Device> Player<D> {
    fn new(device: D) -> Self {
        Player {
            device,
            now: SimTime(0),
            aperture: 0,
            frames: Vec::new(),
            aborted: Vec::new(),
            freed_lines: 0,
            answer: None,
            answers: Vec::new(),
            next_read: 1,
            is_frame_refused: false,
            refusals: [0; 2],
            host: HostMemory::new(),
            watches: Watches::new(),
            wire_ready: true,
            kept: VecDeque::new(),
            surprise: None,
        }
    }

    /// Takes everything the device wants, then offers refused writes again, until nothing moves.
    fn settle(&mut self) {
        loop {
            self.take_wants();
            let Some((offset_bytes, data, enables)) = self.kept.front() else { return };
            let write = Write { offset_bytes: *offset_bytes, data, enables: *enables };
            if self.device.write_arrived(write) == Accept::Refused {
                return;
            }
            self.kept.pop_front();
        }
    }

    fn take_wants(&mut self) {
        loop {
            match self.device.next() {
                None => match self.host.answer() {
                    None if self.watches.look(&mut self.device, &mut self.host) => {}
                    None => return,
                    Some((tag, data)) => {
                        self.device.dma_completed(tag, data.as_deref().map_err(|error| *error));
                    }
                },
                Some(Want::Transmit { frame, .. }) => self.frames.push(frame.to_vec()),
                Some(Want::Aborted { frame, .. }) => self.aborted.push(frame.to_vec()),
                Some(Want::DmaWrite { address: CREDIT_ADDRESS, data }) => match <[u8; 8]>::try_from(data) {
                    Ok(word) => self.freed_lines = u64::from_le_bytes(word),
                    Err(_) => self.surprise = Some(format!("a credit push of {} bytes", data.len())),
                },
                Some(Want::ReadCompletion { tag: REGISTER, value }) => self.answer = Some(value),
                Some(Want::ReadCompletion { value, .. }) => self.answers.push(value),
                Some(Want::DmaRead { tag, address, bytes }) => {
                    if !self.host.is_there {
                        self.surprise = Some(format!("a DMA read of {address:#x}"));
                    }
                    self.host.ask(tag, address, bytes);
                }
                Some(Want::DmaWrite { address, data }) => {
                    if !self.host.store(address, data) {
                        self.surprise = Some(format!("a DMA write to {address:#x}"));
                    }
                }
                Some(watch @ (Want::WatchLine { .. } | Want::ForgetLine { .. })) => {
                    self.watches.take(&watch);
                }
                Some(Want::Interrupt { vector }) => {
                    self.surprise = Some(format!("interrupt {vector}, which is masked"))
                }
            }
        }
    }

    fn write_register(&mut self, offset: u32, value: u64) {
        let write = Write { offset_bytes: offset.into(), data: &value.to_le_bytes(), enables: Enables::All };
        if self.device.write_arrived(write) == Accept::Refused {
            self.surprise = Some(format!("register write at {offset:#x} was refused"));
        }
        self.settle();
    }

    fn read_register(&mut self, offset: u32) -> Result<u64, String> {
        self.answer = None;
        self.device.read_arrived(offset.into(), REGISTER);
        self.settle();
        self.answer.ok_or_else(|| format!("the read of register {offset:#x} was not answered"))
    }

    /// As a driver does it: finds the windows by the capability list, sets the queue up, enables it.
    fn bring_up(&mut self, case: &Case) -> Result<(), String> {
        let magic = self.read_register(regs::MAGIC)?;
        if magic != regs::field::magic::VALUE_RESET {
            return Err(format!("magic is {magic:#018x}"));
        }
        let list = self.read_register(regs::CAPS)?;
        let offset = (list >> caps_offset::OFFSET_LSB & caps_offset::OFFSET_MASK) as u32;
        let bytes = (list >> caps_offset::BYTES_LSB & caps_offset::BYTES_MASK) as u32;
        let words =
            (0..bytes / 8).map(|i| self.read_register(offset + 8 * i)).collect::<Result<Vec<_>, _>>()?;
        let caps = Capabilities::parse(&words).map_err(|error| error.to_string())?;
        self.aperture = caps.aperture.ok_or("the capability list names no aperture")?.0;
        let device = &case.device;
        for (register, value) in [
            (queue::BLANK, device.window.blank()),
            (queue::CREDIT_ADDRESS, CREDIT_ADDRESS),
            (queue::CREDIT_COALESCE, 1 << credit_coalesce::LINES_LSB),
            (queue::HOLE_TIMEOUT_NS, device.hole_timeout_ns),
            (queue::KPIO_EOP, device.kpio_eop),
            (queue::CUT_THROUGH, u64::from(device.cut_through_lines) << cut_through::LINES_LSB),
        ] {
            self.write_register(regs::QUEUE + register, value);
        }
        self.host.is_there = device.host.has_memory;
        for (register, value) in host_registers(&device.host) {
            self.write_register(regs::QUEUE + register, value);
        }
        self.write_register(regs::CONTROL, 1 << control::ENABLE_LSB);
        self.enable(case, device.epoch);
        Ok(())
    }

    fn enable(&mut self, case: &Case, epoch: u8) {
        let device = &case.device;
        let value = 1 << queue_control::ENABLE_LSB
            | u64::from(device.interface.code()) << queue_control::IFACE_LSB
            | u64::from(epoch) << queue_control::EPOCH_LSB
            | 1 << queue_control::WEIGHT_LSB
            | u64::from(device.backpressure) << queue_control::BACKPRESSURE_LSB
            | u64::from(device.checksums) << queue_control::CHECKSUMS_LSB;
        self.write_register(regs::QUEUE + queue::CONTROL, value);
    }

    fn play(&mut self, case: &Case, event: &Event) -> Result<(), String> {
        match &event.action {
            Action::Write(write) => {
                let enables = write.enables.map_or(Enables::All, Enables::Mask);
                self.kept.push_back((self.aperture + write.at, write.bytes.clone(), enables));
                self.settle();
            }
            Action::Time(ns) => {
                self.now = SimTime(self.now.0 + SimTime::from_ns(*ns).0);
                self.device.time_passed(self.now);
            }
            Action::WireReady(ready) => {
                self.wire_ready = *ready;
                self.device.wire_ready(*ready);
            }
            Action::WireBeats(beats) => {
                self.wire_ready = false;
                self.device.wire_takes(*beats);
            }
            Action::Memory(bytes) => {
                let stored = self.host.store(bytes.area.address() + bytes.at, &bytes.bytes);
                debug_assert!(stored, "areas lie in the memory, and bytes in their area");
            }
            Action::Doorbell(which, value) => {
                let register = match which {
                    Doorbell::TxTail => doorbell::TX_TAIL,
                    Doorbell::RxFreed => doorbell::RX_FREED,
                    Doorbell::EntriesFreed => doorbell::ENTRIES_FREED,
                };
                self.write_register(regs::DOORBELL + register, *value);
            }
            Action::Frame(frame) => {
                self.is_frame_refused = self.device.frame_arrived(frame) == Accept::Refused;
            }
            Action::Read { at, words } => {
                for word in 0..u64::from(*words) {
                    self.device.read_arrived(self.aperture + at + 8 * word, ReadTag(self.next_read));
                    self.next_read = self.next_read.wrapping_add(1).max(1);
                }
            }
            Action::DmaReady(ready) => self.host.is_ready = *ready,
            Action::Restart { epoch } => {
                self.write_register(regs::QUEUE + queue::CONTROL, 0);
                // The read-back pushes writes that are still on their way to the queue in front of it.
                self.read_register(regs::QUEUE + queue::STATUS)?;
                self.freed_lines = 0;
                self.enable(case, *epoch);
            }
        }
        self.settle();
        Ok(())
    }

    fn compare(&mut self, then: &Then) -> Result<(), String> {
        let frames = std::mem::take(&mut self.frames);
        if frames != then.frames {
            return Err(format!("frames {}, expected {}", hex(&frames), hex(&then.frames)));
        }
        self.compare_aborted(&then.aborted)?;
        let answers = std::mem::take(&mut self.answers);
        if answers != then.answers {
            return Err(format!("answers {answers:016x?}, expected {:016x?}", then.answers));
        }
        for expected in &then.memory {
            let found = self.host.load(expected.area.address() + expected.at, expected.bytes.len());
            if found != Some(&expected.bytes) {
                let what = format!("{:?} at {}", expected.area, expected.at);
                let found = found.map(<[u8]>::to_vec).unwrap_or_default();
                return Err(format!(
                    "{what} is {}, expected {}",
                    hex(&[found]),
                    hex(std::slice::from_ref(&expected.bytes))
                ));
            }
        }
        let is_frame_refused = std::mem::take(&mut self.is_frame_refused);
        let is_refused = !self.kept.is_empty() || is_frame_refused;
        if then.refused != (is_refused || then.refused && self.has_counted_refusal()?) {
            let found = if then.refused { "taken" } else { "refused" };
            return Err(format!("it was {found}"));
        }
        if let Some(expected) = then.next_start {
            let found = self.read_register(regs::QUEUE + queue::NEXT_START)?;
            // A message that waits for the wire may be told as if it were incomplete (nic.rdl, next_start).
            if self.wire_ready || found > expected {
                same("next start", found, expected)?;
            }
        }
        if let Some(expected) = then.freed_lines {
            same("freed lines", self.freed_lines, expected)?;
        }
        if let Some(expected) = then.status {
            self.compare_status(expected)?;
        }
        self.surprise.take().map_or(Ok(()), |surprise| Err(format!("the device wants {surprise}")))
    }

    /// Whether a device that had room at its pins let the write wait inside, or dropped the frame, and counted that.
    fn has_counted_refusal(&mut self) -> Result<bool, String> {
        let before = self.refusals;
        for (refusals, name) in ["refused_writes", LOST_FRAMES].into_iter().enumerate() {
            let offset = counter_offset(name).ok_or_else(|| format!("no counter {name}"))?;
            self.refusals[refusals] = self.read_register(regs::COUNTERS + offset)?;
        }
        Ok(self.refusals != before)
    }

    /// What has left of a frame before its abort mark is the front of what may have left.
    fn compare_aborted(&mut self, expected: &[Vec<u8>]) -> Result<(), String> {
        let aborted = std::mem::take(&mut self.aborted);
        let is_front = |(found, may): (&Vec<u8>, &Vec<u8>)| !found.is_empty() && may.starts_with(found);
        if aborted.len() == expected.len() && aborted.iter().zip(expected).all(is_front) {
            return Ok(());
        }
        Err(format!("aborted frames {}, expected fronts of {}", hex(&aborted), hex(expected)))
    }

    fn compare_status(&mut self, expected: QueueStatus) -> Result<(), String> {
        let word = self.read_register(regs::QUEUE + queue::STATUS)?;
        let found = QueueStatus {
            active: word >> queue_status::ACTIVE_LSB & 1 == 1,
            quarantined: word >> queue_status::QUARANTINED_LSB & 1 == 1,
            cause: (word >> queue_status::CAUSE_LSB & queue_status::CAUSE_MASK) as u8,
        };
        if found == expected { Ok(()) } else { Err(format!("status {found:?}, expected {expected:?}")) }
    }

    fn compare_end(&mut self, case: &Case) -> Result<(), String> {
        self.compare_status(case.expect.status)?;
        same("freed lines", self.freed_lines, case.expect.freed_lines)?;
        let mut different = String::new();
        for (name, expected) in case.counters() {
            let offset = counter_offset(&name).ok_or_else(|| format!("no counter {name}"))?;
            let found = self.read_register(regs::COUNTERS + offset)?;
            // Frames that were to be refused and were dropped instead have been looked at.
            let refused = if name == LOST_FRAMES { self.refusals[1] } else { 0 };
            if !expected.admits(found.wrapping_sub(refused)) {
                let _ = write!(different, "{name} is {found}, expected {expected:?}; ");
            }
        }
        if different.is_empty() { Ok(()) } else { Err(different) }
    }
}

/// The registers that name what a queue has in the host's memory, those that are not zero.
fn host_registers(host: &HostSide) -> impl Iterator<Item = (u32, u64)> {
    let ring = |lines: u32, area: Area| if lines == 0 { 0 } else { area.address() };
    let entry = u64::from(host.entry_lines_log2) << entry::LINES_LOG2_LSB
        | u64::from(host.entry_hold_ns) << entry::HOLD_NS_LSB;
    let rx_mode = u64::from(host.rx_mode) << rx_mode::MODE_LSB
        | u64::from(host.rx_reads) << rx_mode::READS_LSB
        | u64::from(host.rx_entry_lines_log2.is_some()) << rx_mode::LINES_LSB
        | u64::from(host.rx_entry_lines_log2.unwrap_or(0)) << rx_mode::LINES_LOG2_LSB;
    // What does not fit an entry of lines lies among the buffers.
    let completions = match host.rx_buffers {
        0 => ring(host.notifications, Area::Notifications),
        _ => Area::Buffers.address(),
    };
    [
        (queue::TX_RING_ADDRESS, ring(host.ring_lines, Area::Ring)),
        (queue::TX_RING_ENTRIES, host.ring_lines.into()),
        (queue::TX_HEAD_ADDRESS, if host.has_memory { Area::Head.address() } else { 0 }),
        (queue::TX_MODERATION, u64::from(host.has_memory) << moderation::FRAMES_LSB),
        (queue::TX_PUSH, host.self_test.into()),
        (queue::ENTRY, entry),
        (queue::RX_MODE, rx_mode),
        (queue::RX_RING_ADDRESS, ring(host.rx_lines, Area::Received)),
        (queue::RX_RING_ENTRIES, host.rx_lines.into()),
        (queue::RX_COMPLETION_ADDRESS, completions),
        (queue::RX_NOTIFY_ENTRIES, host.notifications.max(host.rx_buffers).into()),
    ]
    .into_iter()
    .filter(|(_, value)| *value != 0)
}

fn same(what: &str, found: u64, expected: u64) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found}, expected {expected}")) }
}

fn hex(frames: &[Vec<u8>]) -> String {
    let one = |frame: &Vec<u8>| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("[{}]", frames.iter().map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
