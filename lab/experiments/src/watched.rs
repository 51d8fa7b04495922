//! A device that is watched: the same logic, with a note of what passes its pins.

use beeline_contract_device::{
    Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, WatchEnd, WatchTag, Write,
};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Aperture;

use crate::Spans;

/// What the logic of a device saw or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The device took a write.
    Write {
        /// Offset in its address space.
        offset_bytes: u64,
        bytes: u32,
    },
    /// The device was asked for a word.
    Load {
        /// Offset in its address space.
        offset_bytes: u64,
    },
    /// The device wanted to read memory.
    DmaRead { address: u64, bytes: u32, tag: u16 },
    /// The device had the data.
    DmaDone { tag: u16 },
    /// It was told that a line it watches has changed.
    LineChanged { tag: u16 },
    /// The device wrote memory.
    DmaWrite { address: u64, bytes: u32 },
    /// The device let a frame leave.
    Transmit { bytes: u32 },
    /// The device raised an interrupt.
    Interrupt,
}

/// An [`Act`] and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    pub at: Picoseconds,
    pub act: Act,
}

/// A device whose windows are watched for disorder, and whose doings are written down if somebody asks.
#[derive(Debug)]
pub struct Watched<D> {
    device: D,
    spans: Spans,
    now: Picoseconds,
    notes: Option<Vec<Noted>>,
}

impl<D> Watched<D> {
    /// Watches a device whose windows lie as `aperture` says.
    pub fn new(device: D, aperture: Aperture) -> Self {
        Watched { device, spans: Spans::new(aperture), now: Picoseconds::ZERO, notes: None }
    }

    /// Returns the device that is watched.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The disorder of its windows.
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// From now on everything is written down.
    pub fn start_notes(&mut self) {
        self.notes.get_or_insert_default();
    }

    /// What was written down since the last call.
    pub fn take_notes(&mut self) -> Vec<Noted> {
        self.notes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, act: impl FnOnce() -> Act) {
        if let Some(notes) = &mut self.notes {
            notes.push(Noted { at: self.now, act: act() });
        }
    }
}

impl<D: Device> Device for Watched<D> {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        let accept = self.device.write_arrived(write);
        if accept == Accept::Taken {
            self.spans.arrived(&write);
            let (offset_bytes, bytes) = (write.offset_bytes, write.data.len() as u32);
            self.note(|| Act::Write { offset_bytes, bytes });
        }
        accept
    }

    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag) {
        self.note(|| Act::Load { offset_bytes });
        self.device.read_arrived(offset_bytes, tag);
    }

    fn dma_completed(&mut self, tag: DmaTag, data: Result<&[u8], DmaError>) {
        self.note(|| Act::DmaDone { tag: tag.0 });
        self.device.dma_completed(tag, data);
    }

    fn line_changed(&mut self, tag: WatchTag, data: Result<&[u8], WatchEnd>) {
        self.note(|| Act::LineChanged { tag: tag.0 });
        self.device.line_changed(tag, data);
    }

    fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        self.device.frame_arrived(frame)
    }

    fn time_passed(&mut self, now: SimTime) {
        self.now = Picoseconds(now.0);
        self.device.time_passed(now);
    }

    fn wire_ready(&mut self, ready: bool) {
        self.device.wire_ready(ready);
    }

    fn wire_takes(&mut self, beats: u32) {
        self.device.wire_takes(beats);
    }

    fn next(&mut self) -> Option<Want<'_>> {
        let want = self.device.next()?;
        if let Some(notes) = &mut self.notes {
            let act = match want {
                Want::DmaRead { address, bytes, tag } => Some(Act::DmaRead { address, bytes, tag: tag.0 }),
                Want::DmaWrite { address, data } => Some(Act::DmaWrite { address, bytes: data.len() as u32 }),
                Want::Transmit { frame, .. } => Some(Act::Transmit { bytes: frame.len() as u32 }),
                Want::Interrupt { .. } => Some(Act::Interrupt),
                Want::WatchLine { .. }
                | Want::ForgetLine { .. }
                | Want::Aborted { .. }
                | Want::ReadCompletion { .. } => None,
            };
            notes.extend(act.map(|act| Noted { at: self.now, act }));
        }
        Some(want)
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.device.wake_at()
    }
}
