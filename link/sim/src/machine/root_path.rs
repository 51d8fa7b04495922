//! The path from a core into the root complex, where pieces of lines become packets.

use rand::RngExt;

use super::payloads::Lines;
use crate::cpu::{CoreOutlet, Kept, Load, Outlet, Piece};
use crate::des::{Picoseconds, Stream};
use crate::pcie::{Kind, Tlp};
use crate::root::Outbound;

/// State that the paths of all cores share.
pub(super) struct RootPaths {
    pub outbound: Outbound,
    /// Payloads in flight.
    pub lines: Lines,
    /// Where the first device lies in the address space of the host.
    pub base: u64,
    pub latency: Picoseconds,
    pub jitter: Picoseconds,
    pub random: Stream,
    /// Whether packets will be acknowledged to the cores.
    pub acknowledges: bool,
}

/// How far what left a core has come.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// When everything that left this core is ready.
    last_ready: Picoseconds,
    /// Nothing that leaves this core from now on is ready before.
    floor: Picoseconds,
    /// Packets that left since somebody asked.
    left: u32,
}

/// What a core needs of its machine while it stores.
pub(super) struct RootPath<'a> {
    pub shared: &'a mut RootPaths,
    pub lane: &'a mut Lane,
    pub core: u16,
}

impl Outlet for RootPath<'_> {
    #[inline]
    fn has_room(&self) -> bool {
        self.shared.outbound.has_room()
    }

    /// One packet: a run of bytes without a hole is always a legal one (Base Specification, section 2.2.5).
    #[inline]
    fn leave(&mut self, at: Picoseconds, piece: &Piece, kept: Kept) {
        let (first, length) = (piece.mask.trailing_zeros(), piece.mask.count_ones());
        debug_assert_eq!(piece.mask >> first, u64::MAX >> (64 - length), "a piece with a hole");
        let body = self.shared.lines.add(&piece.words, first as usize, length as usize);
        let address = self.shared.base + piece.offset_bytes + u64::from(first);
        let tlp = Tlp { body, requester: self.core, ..Tlp::new(Kind::MemoryWrite, address, length) };
        let ready = self.ready(at, kept);
        self.shared.outbound.enter(ready, tlp);
        self.lane.left += 1;
    }
}

impl RootPath<'_> {
    /// When something that leaves at `at` may go on the wire.
    #[inline]
    fn ready(&mut self, at: Picoseconds, kept: Kept) -> Picoseconds {
        let mut ready = at + self.shared.latency;
        if kept == Kept::InOrder {
            ready = ready.max(self.lane.last_ready);
        } else if self.shared.jitter > Picoseconds::ZERO {
            ready += Picoseconds(self.shared.random.random_range(0..=self.shared.jitter.0));
        }
        ready = ready.max(self.lane.floor);
        self.lane.last_ready = ready.max(self.lane.last_ready);
        if kept == Kept::InOrder {
            self.lane.floor = ready;
        }
        ready
    }
}

impl CoreOutlet for RootPath<'_> {
    fn leave_load(&mut self, at: Picoseconds, load: Load) {
        let address = self.shared.base + load.offset_bytes;
        let request = Tlp::new(Kind::MemoryRead, address, load.length_bytes);
        let request = Tlp { requester: self.core, tag: self.core, body: load.number.into(), ..request };
        let ready = self.ready(at, Kept::InOrder);
        self.shared.outbound.enter(ready, request);
    }

    fn fenced(&mut self) {
        self.lane.floor = self.lane.last_ready;
    }

    #[inline]
    fn take_left(&mut self) -> u32 {
        let left = std::mem::take(&mut self.lane.left);
        if self.shared.acknowledges { left } else { 0 }
    }
}
