//! What stands around the logic of one device of a machine: ports, wire, reads, and what it has counted.

use beeline_contract_device::DmaTag;

use super::peer_loads::PeerLoads;
use super::{DeviceId, MachineSettings, Totals};
use crate::des::Picoseconds;
use crate::device::{Line, Ports, Wire};

/// A read of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub tag: DmaTag,
    pub block: u32,
    pub address: u64,
    pub bytes: u32,
    pub missing_bytes: u32,
    /// An answer said that it is no memory.
    pub is_bad: bool,
}

/// A device's end of a machine.
pub(super) struct DeviceEnd {
    /// Its requester ID.
    pub requester: u16,
    pub link: usize,
    /// Where it lies in the address space of the host.
    pub base: u64,
    /// Time that an acknowledgement takes back to a core.
    pub return_time: Picoseconds,
    pub ports: Ports,
    pub wire: Wire,
    /// Frames that come by the wire; the device may refuse the first for a while.
    pub coming: Line<Vec<u8>>,
    pub reads: Vec<Read>,
    pub free_reads: Vec<u32>,
    /// Bytes that the request of each tag still waits for.
    pub tag_bytes: Vec<u32>,
    /// Reads of it by other devices.
    pub peer_loads: PeerLoads,
    /// When an event will come to wake it.
    pub wakes_at: Picoseconds,
    /// The logic refused a write, which waits with everything behind it.
    pub is_stalled: bool,
    /// The logic refused a frame, which waits with those behind it.
    pub frame_is_refused: bool,
    pub windows_taken: Vec<bool>,
    pub readers_taken: Vec<bool>,
    pub totals: Totals,
}

impl DeviceEnd {
    /// An idle device.
    pub(super) fn new(
        device: DeviceId,
        link: usize,
        base: u64,
        return_time: Picoseconds,
        settings: &MachineSettings,
    ) -> DeviceEnd {
        let queues = settings.aperture.queues as usize;
        DeviceEnd {
            requester: device.requester(),
            link,
            base,
            return_time,
            ports: Ports::new(&settings.device),
            wire: Wire::default(),
            coming: Line::default(),
            reads: Vec::new(),
            free_reads: Vec::new(),
            tag_bytes: vec![0; usize::from(settings.device.read_tags)],
            peer_loads: PeerLoads::default(),
            wakes_at: Picoseconds::NEVER,
            is_stalled: false,
            frame_is_refused: false,
            windows_taken: vec![false; queues],
            readers_taken: vec![false; queues],
            totals: Totals::default(),
        }
    }

    pub(super) fn add_read(&mut self, read: Read) -> u32 {
        match self.free_reads.pop() {
            Some(number) => {
                self.reads[number as usize] = read;
                number
            }
            None => {
                self.reads.push(read);
                self.reads.len() as u32 - 1
            }
        }
    }
}
