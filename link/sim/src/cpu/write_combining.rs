//! Write-combining buffers: where stores of a core become lines, and lose their order.
//!
//! A buffer holds one line while stores fill it. It leaves when it is full, when its place is wanted, after a time-out, at
//! an interrupt, an uncached access or a fence. What has left may go on in another order than it was filled, by the rule
//! of [`Release`]: this is the disorder that a receiver has to bear (HotOS'25, section 2.5).

use std::collections::VecDeque;

use beeline_contract_memory::Line;
use rand::RngExt;

use super::{CoreSettings, Release};
use crate::des::{Picoseconds, Stream};

/// Where lines go that leave.
pub trait Outlet {
    /// Whether there is room for one more piece.
    fn has_room(&self) -> bool;

    /// A piece leaves at `at`: the bytes of `mask` of a line, without a hole. Only called with room.
    fn leave(&mut self, at: Picoseconds, piece: &Piece, kept: Kept);
}

/// Whether something may be overtaken on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It does not overtake what left the core before.
    InOrder,
    /// A later piece may leave before it.
    InAnyOrder,
}

/// A line, or a part of one, on its way out of a core.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Offset of the line in the address space of the device.
    pub offset_bytes: u64,
    /// Which of its bytes were stored, bit 0 for the first.
    pub mask: u64,
    /// All 64 bytes of the line; the mask says which of them were stored.
    pub words: Line,
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// Of one that is free: from when on. Of one that is being filled: when it was last stored to. Of one that waits to
    /// leave: since when.
    since: Picoseconds,
    /// Order of opening; the smallest was opened first.
    number: u64,
    piece: Piece,
}

/// The buffers of one core. A line costs a look at those that are being filled and those that wait, and no allocation.
#[derive(Debug)]
pub struct WriteCombining {
    buffers: Vec<Buffer>,
    /// Those that are free; the first is free first, since lines leave one after the other and all buffers are as busy.
    free: VecDeque<u8>,
    /// A bit for each that is being filled, and for each that waits.
    open: u64,
    waiting: u64,
    opened: u64,
    /// When the outlet is free.
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
        let empty = Buffer { since: Picoseconds::ZERO, number: 0, piece };
        WriteCombining {
            buffers: vec![empty; settings.buffers],
            free: (0..settings.buffers as u8).collect(),
            open: 0,
            waiting: 0,
            opened: 0,
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
        if self.open != 0 {
            self.expire(at, settings, outlet);
        }
        self.drain(at, settings, outlet);
        if let Some(done) = self.pass(at, stored, settings, outlet) {
            return Ok(done);
        }
        let (index, start) = match self.find_open(stored.offset_bytes) {
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

    /// As [`WriteCombining::store`] of a whole line that leaves at once: what most stores are. It is not put into its buffer
    /// to be taken out again.
    #[inline]
    fn pass(
        &mut self,
        at: Picoseconds,
        stored: &Piece,
        settings: &CoreSettings,
        outlet: &mut impl Outlet,
    ) -> Option<Picoseconds> {
        let is_alone = self.open | self.waiting == 0;
        if !(is_alone && settings.split_per_mille == 0 && stored.mask == u64::MAX && outlet.has_room()) {
            return None;
        }
        let first = *self.free.front()?;
        let buffer = &mut self.buffers[usize::from(first)];
        let done = at.max(buffer.since) + settings.store_time(8);
        // A line that waits for the way out may be overtaken; one that finds it free cannot, and need not be looked at again
        // when its last word is stored. It takes its place behind the way out now.
        if settings.release != Release::Fifo && self.port_free > done {
            return None;
        }
        self.free.pop_front();
        self.free.push_back(first);
        let leaves_at = done.max(self.port_free);
        outlet.leave(leaves_at, stored, Kept::InAnyOrder);
        self.port_free = leaves_at + settings.drain_interval;
        buffer.since = leaves_at + settings.busy;
        Some(done)
    }

    /// Every line that is being filled is to leave, at `at` or when the way out is free.
    pub fn flush(&mut self, at: Picoseconds, settings: &CoreSettings, outlet: &mut impl Outlet) {
        while let Some(index) = self.oldest_open() {
            self.evict(index, at.max(self.buffers[index].since));
        }
        self.drain_in_order(settings, outlet);
    }

    /// Lines that were not stored to for the time-out are to leave, each when its own is over. Returns when to look again.
    pub fn expire(
        &mut self,
        now: Picoseconds,
        settings: &CoreSettings,
        outlet: &mut impl Outlet,
    ) -> Option<Picoseconds> {
        while let Some((at, index)) = self.first_to_expire(settings).filter(|(at, _)| *at <= now) {
            self.evict(index, at);
        }
        self.drain_in_order(settings, outlet);
        self.expires_at(settings)
    }

    /// When the next line leaves by its time-out, if one is being filled.
    #[inline]
    pub fn expires_at(&self, settings: &CoreSettings) -> Option<Picoseconds> {
        self.first_to_expire(settings).map(|(at, _)| at)
    }

    /// Lets lines leave that may until `until`.
    #[inline]
    pub fn drain(&mut self, until: Picoseconds, settings: &CoreSettings, outlet: &mut impl Outlet) {
        while self.waiting != 0 && outlet.has_room() && self.next_departure() <= until {
            self.depart(settings, outlet);
        }
    }

    /// When the next line that waits could leave, if one does.
    #[inline]
    pub fn drains_at(&self) -> Option<Picoseconds> {
        (self.waiting != 0).then(|| self.next_departure())
    }

    /// Returns when the last buffer is free. Only of buffers none of which is being filled or waits.
    pub fn all_free_at(&self) -> Option<Picoseconds> {
        let last = self.free.back().filter(|_| self.open | self.waiting == 0)?;
        Some(self.buffers[usize::from(*last)].since)
    }

    /// Whether a line is being filled.
    #[inline]
    pub fn is_filling(&self) -> bool {
        self.open != 0
    }

    /// Lines that are in buffers: those that are being filled, and those that wait.
    pub fn held(&self) -> usize {
        (self.open | self.waiting).count_ones() as usize
    }

    /// Returns when the outlet is free.
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

    #[inline]
    fn find_open(&self, offset_bytes: u64) -> Option<usize> {
        ones(self.open).find(|index| self.buffers[*index].piece.offset_bytes == offset_bytes)
    }

    fn oldest_open(&self) -> Option<usize> {
        ones(self.open).min_by_key(|index| self.buffers[*index].number)
    }

    #[inline]
    fn first_to_expire(&self, settings: &CoreSettings) -> Option<(Picoseconds, usize)> {
        if settings.timeout == Picoseconds::ZERO || self.open == 0 {
            return None;
        }
        let first = ones(self.open).min_by_key(|index| self.buffers[*index].since)?;
        Some((self.buffers[first].since + settings.timeout, first))
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
        // With every buffer taken, those of lines on their way out included, the oldest line that is not full makes room. As
        // long as a buffer is free it stays, however many full lines pass it: what an interrupt left of a line does so.
        if self.open != 0 && self.waiting == 0 {
            self.make_room(at);
        }
        let first = loop {
            if let Some(first) = self.free.pop_front() {
                break usize::from(first);
            }
            if !outlet.has_room() {
                return Err(Blocked);
            }
            // One that leaves in pieces takes more than one departure to be free.
            self.depart(settings, outlet);
        };
        let buffer = &mut self.buffers[first];
        buffer.number = self.opened;
        buffer.piece.offset_bytes = offset_bytes;
        buffer.piece.mask = 0;
        self.opened += 1;
        self.open |= 1 << first;
        Ok((first, at.max(buffer.since)))
    }

    /// Evicts the oldest line that is not full, unless a buffer is idle. Out of the way of whole lines, which are most stores.
    #[cold]
    fn make_room(&mut self, at: Picoseconds) {
        let is_idle = |first: &u8| self.buffers[usize::from(*first)].since <= at;
        if !self.free.front().is_some_and(is_idle)
            && let Some(index) = self.oldest_open()
        {
            self.evict(index, at);
        }
    }

    #[inline]
    fn evict(&mut self, index: usize, at: Picoseconds) {
        self.buffers[index].since = at;
        self.open &= !(1 << index);
        self.waiting |= 1 << index;
    }

    #[inline]
    fn next_departure(&self) -> Picoseconds {
        let since = ones(self.waiting).map(|index| self.buffers[index].since).min();
        since.unwrap_or(Picoseconds::NEVER).max(self.port_free)
    }

    /// One of the lines that wait leaves: whole, or as much of it as can be one packet. What is left of it waits on, and
    /// finds the way out as another line would.
    #[inline]
    fn depart(&mut self, settings: &CoreSettings, outlet: &mut impl Outlet) {
        let at = self.next_departure();
        let Some(index) = self.choose(at, settings.release) else { return };
        let mask = self.first_part(self.buffers[index].piece.mask, settings);
        let buffer = &mut self.buffers[index];
        outlet.leave(at, &Piece { mask, ..buffer.piece }, Kept::InAnyOrder);
        self.port_free = at + settings.drain_interval;
        buffer.piece.mask &= !mask;
        if buffer.piece.mask == 0 {
            buffer.since = at + settings.busy;
            self.waiting &= !(1 << index);
            self.free.push_back(index as u8);
        }
    }

    /// The first run of bytes without a hole, or less of it if the line is one of those that leave in two pieces.
    #[inline]
    fn first_part(&mut self, mask: u64, settings: &CoreSettings) -> u64 {
        if mask == u64::MAX {
            let is_split =
                settings.split_per_mille > 0 && self.random.random_range(0..1000) < settings.split_per_mille;
            let words = if is_split { self.random.random_range(1..8) } else { 8 };
            return u64::MAX >> (64 - words * 8);
        }
        let first = mask.trailing_zeros();
        let beyond = first + (mask >> first).trailing_ones();
        mask & u64::MAX.checked_shl(beyond).map_or(u64::MAX, |rest| !rest)
    }

    /// Which of those that wait leaves at `at`.
    #[inline]
    fn choose(&mut self, at: Picoseconds, release: Release) -> Option<usize> {
        let is_alone = self.waiting.is_power_of_two();
        let takes_any = match release {
            Release::Fifo => false,
            Release::OldestRandom => !is_alone && self.random.random_bool(0.5),
            Release::Random => !is_alone,
        };
        if !takes_any {
            return ones(self.waiting).min_by_key(|index| {
                let Buffer { since, number, .. } = self.buffers[*index];
                (since, number)
            });
        }
        // A line that begins to wait later has not been stored yet: programs run ahead of their time.
        let waits = |index: &usize| self.buffers[*index].since <= at;
        let count = ones(self.waiting).filter(waits).count();
        let nth = self.random.random_range(0..count.max(1));
        let chosen = ones(self.waiting).filter(waits).nth(nth)?;
        // What was stored to a line twice arrives in that order on every machine.
        let line = self.buffers[chosen].piece.offset_bytes;
        let same = ones(self.waiting).filter(|index| self.buffers[*index].piece.offset_bytes == line);
        same.min_by_key(|index| self.buffers[*index].number)
    }
}

/// The places of the bits that are set, lowest first.
#[inline]
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        place
    })
}

fn merge(into: &mut Piece, stored: &Piece) {
    for word in 0..8 {
        if stored.mask >> (word * 8) & 0xff != 0 {
            into.words[word] = stored.words[word];
        }
    }
    into.mask |= stored.mask;
}
