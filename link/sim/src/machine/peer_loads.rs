//! Reads of a device by another.

use beeline_contract_device::ReadTag;

use crate::pcie::Tlp;

/// Reads of peers that a device answers at a time; one more waits in front of it.
const PEER_LOADS: usize = 16;

/// Words of the longest read: it does not cross 4 KiB.
pub(super) const LOAD_WORDS: u64 = 512;

/// Tags of words of loads of cores end below.
pub(super) const FIRST_TAG: u16 = 8192;

pub(super) const WORD_BYTES: u64 = 8;

/// Reads of a device by its peers that its logic has not answered whole.
#[derive(Debug, Default)]
pub(super) struct PeerLoads {
    pub(super) loads: Vec<PeerLoad>,
    pub(super) free: Vec<u16>,
}

#[derive(Debug)]
pub(super) struct PeerLoad {
    pub(super) request: Tlp,
    missing_words: u64,
    /// Whole words, from the one on that has the first byte.
    pub(super) bytes: Vec<u8>,
}

impl PeerLoads {
    /// Returns how many loads are not answered.
    pub(super) fn held(&self) -> usize {
        self.loads.len() - self.free.len()
    }

    /// A place for a read, if there is one: its number, and the words from the first offset on.
    pub(super) fn begin(&mut self, request: &Tlp) -> Option<(u16, u64)> {
        let words =
            (request.address % WORD_BYTES + u64::from(request.length_bytes)).div_ceil(WORD_BYTES).max(1);
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.loads.len() < PEER_LOADS => {
                self.loads.push(PeerLoad { request: *request, missing_words: 0, bytes: Vec::new() });
                self.loads.len() as u16 - 1
            }
            None => return None,
        };
        let load = &mut self.loads[usize::from(number)];
        load.request = *request;
        load.missing_words = words;
        load.bytes.clear();
        load.bytes.resize((words * WORD_BYTES) as usize, 0);
        Some((number, words))
    }

    /// A word of one is there; its number, when that was the last.
    pub(super) fn answer(&mut self, tag: ReadTag, value: u64) -> Option<u16> {
        let place = u64::from(tag.0 - FIRST_TAG);
        let (number, word) = ((place / LOAD_WORDS) as u16, (place % LOAD_WORDS) as usize);
        let load = &mut self.loads[usize::from(number)];
        let at = word * WORD_BYTES as usize;
        load.bytes[at..at + WORD_BYTES as usize].copy_from_slice(&value.to_le_bytes());
        load.missing_words -= 1;
        (load.missing_words == 0).then_some(number)
    }
}
