//! The way from a core into the root complex: pieces of lines become packets.

use super::bodies::Lines;
use crate::cpu::{Load, Outlet, Piece, WayOut};
use crate::des::Picoseconds;
use crate::pcie::{Kind, Tlp};
use crate::root::Outbound;

/// What a core needs of its machine while it stores.
pub(super) struct Way<'a> {
    pub outbound: &'a mut Outbound,
    pub lines: &'a mut Lines,
    /// Where the device lies in the address space of the host.
    pub base: u64,
    pub latency: Picoseconds,
    pub core: u16,
    /// Whether packets will be acknowledged to the core.
    pub acknowledges: bool,
    /// Packets that left since somebody asked.
    pub left: u32,
}

impl Outlet for Way<'_> {
    #[inline]
    fn has_room(&self) -> bool {
        self.outbound.has_room()
    }

    /// One packet: a run of bytes without a hole is always a legal one (Base Specification, section 2.2.5).
    #[inline]
    fn leave(&mut self, at: Picoseconds, piece: Piece) {
        let (first, length) = (piece.mask.trailing_zeros(), piece.mask.count_ones());
        debug_assert_eq!(piece.mask >> first, u64::MAX >> (64 - length), "a piece with a hole");
        let body = self.lines.add(&piece.words, first as usize, length as usize);
        let address = self.base + piece.offset_bytes + u64::from(first);
        let tlp = Tlp { body, requester: self.core, ..Tlp::new(Kind::MemoryWrite, address, length) };
        self.outbound.enter(at + self.latency, tlp);
        self.left += 1;
    }
}

impl WayOut for Way<'_> {
    fn leave_load(&mut self, at: Picoseconds, load: Load) {
        let address = self.base + load.offset_bytes;
        let request = Tlp::new(Kind::MemoryRead, address, load.length_bytes);
        let request = Tlp { requester: self.core, tag: self.core, body: load.number.into(), ..request };
        self.outbound.enter(at + self.latency, request);
    }

    #[inline]
    fn take_left(&mut self) -> u32 {
        if self.acknowledges { std::mem::take(&mut self.left) } else { 0 }
    }
}
