//! Requests of an engine that are not answered, by their tags.

use super::landing::Landing;
use crate::pcie::{Kind, Tlp};

/// A request across.
#[derive(Debug)]
pub(in super::super) struct Read {
    id: u32,
    /// Of its transfer.
    pub number: u32,
    /// The word behind a transfer.
    pub is_answer: bool,
    address: u64,
    /// Where its bytes land.
    local_address: u64,
    /// What memory had when the request came to it: it travels with the packets of the answer.
    bytes: Vec<u8>,
    pub missing_bytes: u32,
    pub is_refused: bool,
}

#[derive(Debug)]
pub(in super::super) struct Reads {
    by_tag: Vec<Option<Read>>,
    next_id: u32,
}

impl Reads {
    pub(super) fn new(tags: u16) -> Self {
        Reads { by_tag: (0..tags.max(1)).map(|_| None).collect(), next_id: 0 }
    }

    pub(super) fn has_tag(&self) -> bool {
        self.by_tag.iter().any(Option::is_none)
    }

    /// Gives a request its tag, which it keeps until it is answered or lost, and its number, which no other one gets.
    pub(in super::super) fn begin(
        &mut self,
        (number, is_answer): (u32, bool),
        request: Tlp,
        local_address: u64,
    ) -> Tlp {
        let free = self.by_tag.iter().position(Option::is_none).expect("asked before whether there is a tag");
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.by_tag[free] = Some(Read {
            id,
            number,
            is_answer,
            address: request.address,
            local_address,
            bytes: Vec::new(),
            missing_bytes: request.length_bytes,
            is_refused: false,
        });
        Tlp { tag: free as u16, body: id, ..request }
    }

    fn of(&mut self, tlp: &Tlp) -> Option<&mut Read> {
        let read = self.by_tag.get_mut(usize::from(tlp.tag))?.as_mut()?;
        (read.id == tlp.body).then_some(read)
    }

    /// What a request finds in memory.
    pub(in super::super) fn found(&mut self, request: &Tlp, bytes: Vec<u8>) {
        if let Some(read) = self.of(request) {
            read.bytes = bytes;
        }
    }

    /// A part of the answer is there, unless nobody waits for it any more.
    pub(super) fn answered(&mut self, tlp: &Tlp) -> Option<&mut Read> {
        let read = self.of(tlp)?;
        if tlp.kind == Kind::Completion {
            // One without data ends its request, whatever of it had been answered.
            read.is_refused = true;
            read.missing_bytes = 0;
        } else {
            read.missing_bytes = read.missing_bytes.saturating_sub(tlp.length_bytes);
        }
        Some(read)
    }

    pub(super) fn free(&mut self, tag: u16) {
        self.by_tag[usize::from(tag)] = None;
    }

    /// Gives up a request: of which transfer it was, if it was not answered.
    pub(super) fn lose(&mut self, id: u32) -> Option<u32> {
        let has_id = |read: &Option<Read>| read.as_ref().is_some_and(|read| read.id == id);
        let slot = self.by_tag.iter_mut().find(|read| has_id(read))?;
        slot.take().map(|read| read.number)
    }
}

impl Read {
    /// The bytes of a packet of the answer, but of the word behind a transfer.
    pub(super) fn landing(&self, tlp: &Tlp) -> Option<Landing> {
        if self.is_answer || tlp.kind == Kind::Completion {
            return None;
        }
        let first = tlp.address.checked_sub(self.address)?;
        let bytes = self.bytes.get(first as usize..)?.get(..tlp.length_bytes as usize)?;
        Some(Landing { address: self.local_address + first, bytes: bytes.to_vec() })
    }

    pub(super) fn word(&self) -> u64 {
        self.bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}
