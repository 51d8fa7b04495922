//! Write-combining buffers: where stores of a core become lines, and lose their order.
//!
//! A buffer holds one line while stores fill it. It leaves when it is full, when its place is wanted, after a time-out, at
//! an interrupt, an uncached access or a fence. What has left may go on in another order than it was filled, by the rule
//! of [`Release`]: this is the disorder that a receiver has to bear (HotOS'25, section 2.5).

use beeline_link_contract::Line;
use rand::RngExt;

use super::{CoreSettings, Release};
use crate::des::{Picoseconds, Stream};

/// Where lines go that leave.
pub trait Outlet {
    /// Whether there is room for one more piece.
    fn has_room(&self) -> bool;

    /// A piece leaves at `at`: the bytes of `mask` of a line. Only called with room.
    fn leave(&mut self, at: Picoseconds, piece: Piece, kept: Kept);
}

/// Whether something may be overtaken on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It does not overtake what left the core before.
    InOrder,
    /// It may.
    InAnyOrder,
}

/// A line, or a part of one, on its way out of a core.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Offset of the line in the address space of the device.
    pub offset_bytes: u64,
    /// Which of its bytes were stored, bit 0 for the first.
    pub mask: u64,
    /// Its bytes, those not stored included.
    pub words: Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Free from `since` on.
    Free,
    /// Being filled; last stored to at `since`.
    Open,
    /// Waits to leave, since `since`.
    Waiting,
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    state: State,
    since: Picoseconds,
    /// Which one was opened first.
    number: u64,
    piece: Piece,
}

/// The buffers of one core. Costs a look at each of them per line, and no allocation.
#[derive(Debug)]
pub struct WriteCombining {
    buffers: Vec<Buffer>,
    opened: u64,
    waiting: usize,
    open: usize,
    /// When the way out is free.
    port_free: Picoseconds,
    random: Stream,
}

/// A store finds no buffer, since none can leave: the way out is blocked from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked;

impl WriteCombining {
    /// Empty buffers.
    pub fn new(settings: &CoreSettings, random: Stream) -> Self {
        let piece = Piece { offset_bytes: 0, mask: 0, words: [0; 8] };
        let free = Buffer { state: State::Free, since: Picoseconds::ZERO, number: 0, piece };
        WriteCombining {
            buffers: vec![free; settings.buffers],
            opened: 0,
            waiting: 0,
            open: 0,
            port_free: Picoseconds::ZERO,
            random,
        }
    }

    /// Words of a line are stored from `at` on, those of `words_mask`; returns when the last store has been made, which is
    /// later if there was no buffer. Bytes that are stored twice before the line leaves travel once.
    ///
    /// # Errors
    /// Nothing was stored; try again when the outlet has room.
    pub fn store(
        &mut self,
        at: Picoseconds,
        stored: &Piece,
        settings: &CoreSettings,
        outlet: &mut impl Outlet,
    ) -> Result<Picoseconds, Blocked> {
        self.drain(at, settings, outlet);
        let found = if self.open == 0 { None } else { self.find_open(stored.offset_bytes) };
        let (index, start) = match found {
            Some(index) => (index, at),
            None => self.open_buffer(at, stored.offset_bytes, settings, outlet)?,
        };
        let done = start + settings.store_time(stored.mask.count_ones() / 8);
        let buffer = &mut self.buffers[index];
        if buffer.piece.mask == 0 {
            buffer.piece = *stored;
        } else {
            merge(&mut buffer.piece, stored);
        }
        buffer.since = done;
        if buffer.piece.mask == u64::MAX {
            self.evict(index, done);
            self.drain_in_order(settings, outlet);
        }
        Ok(done)
    }

    /// Every line that is being filled is to leave, at `at` or when the way out is free.
    pub fn flush(&mut self, at: Picoseconds, settings: &CoreSettings, outlet: &mut impl Outlet) {
        while let Some(index) = self.oldest(State::Open) {
            self.evict(index, at.max(self.buffers[index].since));
        }
        self.drain_in_order(settings, outlet);
    }

    /// Lines that were not stored to for the time-out are to leave. Returns when to look again.
    pub fn expire(
        &mut self,
        now: Picoseconds,
        settings: &CoreSettings,
        outlet: &mut impl Outlet,
    ) -> Option<Picoseconds> {
        if settings.timeout == Picoseconds::ZERO {
            return None;
        }
        while let Some(index) = self.oldest(State::Open)
            && self.buffers[index].since + settings.timeout <= now
        {
            self.evict(index, now);
        }
        self.drain_in_order(settings, outlet);
        self.expires_at(settings)
    }

    /// When the next line leaves by its time-out, if one is being filled.
    pub fn expires_at(&self, settings: &CoreSettings) -> Option<Picoseconds> {
        if settings.timeout == Picoseconds::ZERO || self.open == 0 {
            return None;
        }
        let open = self.buffers.iter().filter(|buffer| buffer.state == State::Open);
        open.map(|buffer| buffer.since + settings.timeout).min()
    }

    /// Lets lines leave that may until `until`.
    #[inline]
    pub fn drain(&mut self, until: Picoseconds, settings: &CoreSettings, outlet: &mut impl Outlet) {
        while self.waiting > 0 && outlet.has_room() && self.next_departure() <= until {
            self.depart(settings, outlet);
        }
    }

    /// When the next line that waits could leave, if one does.
    pub fn drains_at(&self) -> Option<Picoseconds> {
        (self.waiting > 0).then(|| self.next_departure())
    }

    /// When the last buffer is free. Only of buffers none of which is being filled or waits.
    pub fn all_free_at(&self) -> Option<Picoseconds> {
        let is_empty = self.open == 0 && self.waiting == 0;
        is_empty.then(|| self.buffers.iter().map(|buffer| buffer.since).max().unwrap_or_default())
    }

    /// When the way out is free.
    pub fn port_free_at(&self) -> Picoseconds {
        self.port_free
    }

    /// The way out is taken until then, by something that needs no buffer.
    pub fn port_taken_until(&mut self, until: Picoseconds) {
        self.port_free = self.port_free.max(until);
    }

    /// In order, what leaves does not depend on what is stored later: it may leave at once, in the future.
    #[inline]
    fn drain_in_order(&mut self, settings: &CoreSettings, outlet: &mut impl Outlet) {
        if settings.release == Release::Fifo {
            self.drain(Picoseconds::NEVER, settings, outlet);
        }
    }

    fn find_open(&self, offset_bytes: u64) -> Option<usize> {
        self.buffers
            .iter()
            .position(|buffer| buffer.state == State::Open && buffer.piece.offset_bytes == offset_bytes)
    }

    fn oldest(&self, state: State) -> Option<usize> {
        let (index, _) = self
            .buffers
            .iter()
            .enumerate()
            .filter(|(_, buffer)| buffer.state == state)
            .min_by_key(|(_, buffer)| buffer.number)?;
        Some(index)
    }

    /// A buffer for a new line, and when it can be stored to.
    #[inline]
    fn open_buffer(
        &mut self,
        at: Picoseconds,
        offset_bytes: u64,
        settings: &CoreSettings,
        outlet: &mut impl Outlet,
    ) -> Result<(usize, Picoseconds), Blocked> {
        if self.open + self.waiting == self.buffers.len() {
            if self.waiting == 0
                && let Some(index) = self.oldest(State::Open)
            {
                self.evict(index, at);
            }
            if !outlet.has_room() {
                return Err(Blocked);
            }
            self.depart(settings, outlet);
        }
        let mut best: Option<(usize, Picoseconds)> = None;
        for (index, buffer) in self.buffers.iter().enumerate() {
            if buffer.state == State::Free && best.is_none_or(|(_, since)| buffer.since < since) {
                best = Some((index, buffer.since));
            }
        }
        let (index, since) = best.ok_or(Blocked)?;
        let buffer = &mut self.buffers[index];
        buffer.state = State::Open;
        buffer.number = self.opened;
        buffer.piece.offset_bytes = offset_bytes;
        buffer.piece.mask = 0;
        self.opened += 1;
        self.open += 1;
        Ok((index, at.max(since)))
    }

    fn evict(&mut self, index: usize, at: Picoseconds) {
        let buffer = &mut self.buffers[index];
        buffer.state = State::Waiting;
        buffer.since = at;
        self.open -= 1;
        self.waiting += 1;
    }

    #[inline]
    fn next_departure(&self) -> Picoseconds {
        let waiting = self.buffers.iter().filter(|buffer| buffer.state == State::Waiting);
        waiting.map(|buffer| buffer.since).min().unwrap_or(Picoseconds::NEVER).max(self.port_free)
    }

    /// One of the lines that wait leaves.
    fn depart(&mut self, settings: &CoreSettings, outlet: &mut impl Outlet) {
        let at = self.next_departure();
        let Some(index) = self.choose(at, settings.release) else { return };
        let piece = self.buffers[index].piece;
        let is_split = settings.split_per_mille > 0
            && piece.mask == u64::MAX
            && self.random.random_range(0..1000) < settings.split_per_mille;
        let mut last = at;
        if is_split {
            let words = self.random.random_range(1..8);
            let front = (1u64 << (words * 8)) - 1;
            outlet.leave(at, Piece { mask: front, ..piece }, Kept::InAnyOrder);
            // The second piece finds the way out as the next line would, if there is room for it.
            last = at + settings.drain_interval;
            outlet.leave(last, Piece { mask: !front, ..piece }, Kept::InAnyOrder);
        } else {
            outlet.leave(at, piece, Kept::InAnyOrder);
        }
        self.port_free = last + settings.drain_interval;
        let buffer = &mut self.buffers[index];
        buffer.state = State::Free;
        buffer.since = last + settings.busy;
        self.waiting -= 1;
    }

    fn choose(&mut self, at: Picoseconds, release: Release) -> Option<usize> {
        let takes_any = match release {
            Release::Fifo => false,
            Release::OldestRandom => self.waiting > 1 && self.random.random_bool(0.5),
            Release::Random => self.waiting > 1,
        };
        if !takes_any {
            return self.oldest(State::Waiting);
        }
        let waits = |buffer: &Buffer| buffer.state == State::Waiting && buffer.since <= at;
        let count = self.buffers.iter().filter(|buffer| waits(buffer)).count();
        let nth = self.random.random_range(0..count.max(1));
        let mut waiting = self.buffers.iter().enumerate().filter(|(_, buffer)| waits(buffer));
        waiting.nth(nth).map(|(index, _)| index)
    }
}

fn merge(into: &mut Piece, stored: &Piece) {
    for word in 0..8 {
        if stored.mask >> (word * 8) & 0xff != 0 {
            into.words[word] = stored.words[word];
        }
    }
    into.mask |= stored.mask;
}
