//! A core and its write-combining buffers, without a machine around them.

mod buffers;
mod core;
mod properties;

use beeline_link_sim::cpu::{CoreOutlet, CoreSettings, FenceAck, Kept, Load, Outlet, Piece, Release};
use beeline_link_sim::des::Picoseconds;

/// A core whose times tell which of them was added: no sum of few is another sum of few.
fn settings() -> CoreSettings {
    CoreSettings {
        store_bytes: 8,
        store: Picoseconds(1),
        buffers: 4,
        release: Release::Fifo,
        drain_interval: Picoseconds(30),
        busy: Picoseconds(500),
        timeout: Picoseconds::ZERO,
        split_per_mille: 0,
        uncached_store: Picoseconds(7_000),
        uncached_load_bytes: 8,
        uncached_load: Picoseconds(90_000),
        cached_line: Picoseconds(2),
        poll: Picoseconds(2),
        line_wake: Picoseconds(60),
        fence: Picoseconds(1_000_000),
        fence_ack: FenceAck::Uncore,
        interrupt_interval: Picoseconds::ZERO,
        interrupt: Picoseconds::ZERO,
    }
}

/// Words of a line, numbered from `first` on; those of `words` are stored.
fn piece(line: u64, words: u8, first: u64) -> Piece {
    let mask = (0..8).filter(|word| words >> word & 1 == 1).map(|word| 0xff << (word * 8)).sum();
    Piece { offset_bytes: line * 64, mask, words: std::array::from_fn(|word| first + word as u64) }
}

/// A way out with so much room, which keeps what left.
#[derive(Debug)]
struct Path {
    room: usize,
    left: Vec<(Picoseconds, Piece)>,
    loads: Vec<(Picoseconds, Load)>,
    acknowledges: bool,
    not_told: u32,
}

impl Path {
    fn with_room(room: usize) -> Path {
        Path { room, left: Vec::new(), loads: Vec::new(), acknowledges: false, not_told: 0 }
    }

    /// Times and lines of what left.
    fn lines(&self) -> Vec<(u64, u64)> {
        self.left.iter().map(|(at, piece)| (at.0, piece.offset_bytes / 64)).collect()
    }

    fn masks(&self) -> Vec<u64> {
        self.left.iter().map(|(_, piece)| piece.mask).collect()
    }
}

impl Outlet for Path {
    fn has_room(&self) -> bool {
        self.room > 0
    }

    fn leave(&mut self, at: Picoseconds, piece: &Piece, _kept: Kept) {
        self.room = self.room.checked_sub(1).expect("pieces leave only where there is room");
        let run = piece.mask >> piece.mask.trailing_zeros();
        assert!(
            run != 0 && run & run.wrapping_add(1) == 0,
            "a piece has bytes and no hole: {:#x}",
            piece.mask
        );
        self.left.push((at, *piece));
        self.not_told += 1;
    }
}

impl CoreOutlet for Path {
    fn fenced(&mut self) {}

    fn leave_load(&mut self, at: Picoseconds, load: Load) {
        self.room = self.room.checked_sub(1).expect("loads leave only where there is room");
        self.loads.push((at, load));
    }

    fn take_left(&mut self) -> u32 {
        if self.acknowledges { std::mem::take(&mut self.not_told) } else { 0 }
    }
}
