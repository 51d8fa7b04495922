//! The device's side of every way to receive: where a frame goes, and the words that tell the host of it.
//!
//! Each does what a sound device does, in room that the host has told it of, except that every word which says something
//! passes through a [`Lie`] on its way. Nothing here trusts the host's counts to be sane: after a lie they are not.

use beeline_spec::coherent::{LineBuffer, LineHeader, LineKind, given_back, position_of};
use beeline_spec::entry::{self, EntryHeader, EntryKind};
use beeline_spec::formats::ENTRY_HEAD_BYTES;
use beeline_spec::pipe::{self, Notification};
use beeline_spec::regs::doorbell::{ENTRIES_FREED, RX_FREED};

use crate::opened::{Words, padded_words, rung};
use crate::scripted::Scripted;

/// Longest frame a receive buffer of these queues holds.
pub const MAX_FRAME_BYTES: usize = 1536;
/// Lines of each window, of the receive ring and of the pipe.
pub const LINES: u32 = 64;
/// Buffers that are lent by descriptors.
pub const BUFFERS: u32 = 8;
/// Notifications of a pipe's ring.
pub const NOTIFICATIONS: u32 = 4;
/// Entries of coherent lines, and their buffers.
pub const LINE_ENTRIES: u32 = 4;
/// Buffers beside them.
pub const LINE_BUFFERS: u32 = 2;

/// What a word says that is written for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// That a frame is there.
    There,
    /// How long it is, or where it lies, once another word has said that it is there.
    Which,
}

/// What becomes of a word that says something.
pub type Lie<'a> = &'a mut dyn FnMut(Says, u64) -> u64;

/// Tells the truth.
pub fn truth(_says: Says, word: u64) -> u64 {
    word
}

/// The device's side of one way to receive.
pub trait Filler {
    /// Puts a frame where the next one belongs; `false` when the host lends no room.
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool;

    /// Does what the device does without a frame: looks at what came back, tells what it could not tell before.
    fn progress(&mut self, _link: &Scripted) {}

    /// Frames that the host can find so far.
    fn announced(&self) -> u64;

    /// The doorbell by which the host frees, and what a frame of so many bytes takes.
    fn frees(&self, _frame_bytes: usize) -> Option<(u32, u64)> {
        None
    }

    /// The queue has a new life.
    fn restart(&mut self, epoch: u8);
}

/// Writes bytes at a word of a part of memory that begins at word `base` and wraps after `wrap` words.
fn write(words: &Words, (base, at, wrap): (usize, usize, usize), bytes: &[u8]) {
    let mut words = words.borrow_mut();
    for (index, word) in padded_words(bytes).into_iter().enumerate() {
        words[base + (at + index) % wrap] = word;
    }
}

/// A contiguous ring.
pub struct RingFiller {
    queue: u32,
    words: Words,
    filled: u64,
    frames: u64,
}

impl RingFiller {
    /// For the ring at the start of a queue's memory.
    pub fn new(queue: u32, words: Words) -> Self {
        RingFiller { queue, words, filled: 0, frames: 0 }
    }
}

impl Filler for RingFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        let lines = (8 + frame.len()).div_ceil(64) as u64;
        if self.filled.saturating_sub(rung(link, self.queue, RX_FREED)) + lines > LINES.into() {
            return false;
        }
        let (at, wrap) = ((self.filled % u64::from(LINES)) as usize * 8, LINES as usize * 8);
        write(&self.words, (0, at + 1, wrap), frame);
        self.words.borrow_mut()[at] = lie(Says::There, frame.len() as u64 | 1 << 32);
        (self.filled, self.frames) = (self.filled + lines, self.frames + 1);
        true
    }

    fn announced(&self) -> u64 {
        self.frames
    }

    fn frees(&self, frame_bytes: usize) -> Option<(u32, u64)> {
        Some((RX_FREED, (8 + frame_bytes).div_ceil(64) as u64))
    }

    fn restart(&mut self, _epoch: u8) {
        (self.filled, self.frames) = (0, 0);
    }
}

/// Buffers that the host lends: descriptors of two words, completions of one, then the buffers.
pub struct BufferFiller {
    queue: u32,
    words: Words,
    filled: u64,
}

impl BufferFiller {
    /// For the memory of a queue.
    pub fn new(queue: u32, words: Words) -> Self {
        BufferFiller { queue, words, filled: 0 }
    }
}

impl Filler for BufferFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        let buffers = u64::from(BUFFERS);
        if self.filled.saturating_sub(rung(link, self.queue, RX_FREED)) >= buffers {
            return false;
        }
        let slot = (self.filled % buffers) as usize;
        let (completions_at, buffers_at) = (2 * BUFFERS as usize, 3 * BUFFERS as usize);
        let lap = 1 - (self.filled / buffers & 1);
        write(&self.words, (buffers_at, slot * MAX_FRAME_BYTES / 8, usize::MAX), frame);
        let completion = lie(Says::There, frame.len() as u64 | lap << 32);
        self.words.borrow_mut()[completions_at + slot] = completion;
        self.filled += 1;
        true
    }

    fn announced(&self) -> u64 {
        self.filled
    }

    fn frees(&self, _frame_bytes: usize) -> Option<(u32, u64)> {
        Some((RX_FREED, 1))
    }

    fn restart(&mut self, _epoch: u8) {
        self.filled = 0;
    }
}

/// A ring of notifications.
pub struct NotifyFiller {
    words: Words,
    written: u64,
}

impl NotifyFiller {
    /// For the ring at the start of the owner's memory.
    pub fn new(words: Words) -> Self {
        NotifyFiller { words, written: 0 }
    }

    /// Writes the next one.
    pub fn tell(&mut self, told: Notification, lie: Lie<'_>) {
        let slot = (self.written % u64::from(NOTIFICATIONS)) as usize;
        let word = lie(Says::There, told.encode(self.written, NOTIFICATIONS));
        self.words.borrow_mut()[slot] = word;
        self.written += 1;
    }

    /// The owner has a new life.
    pub fn restart(&mut self) {
        self.written = 0;
    }
}

/// One pipe, without the ring that tells of it.
pub struct Pipe {
    queue: u32,
    /// What notifications say of the queue's epoch.
    pub epoch: u8,
    words: Words,
    /// Word at which the pipe begins.
    at: usize,
    written: u64,
    told: u64,
    told_before: u64,
    frames: u64,
    told_frames: u64,
}

impl Pipe {
    /// A pipe that begins at a word of a queue's memory.
    pub fn new(queue: u32, epoch: u8, words: Words, at: usize) -> Self {
        Pipe { queue, epoch, words, at, written: 0, told: 0, told_before: 0, frames: 0, told_frames: 0 }
    }

    /// Appends a frame; `false` when the host lends no room.
    pub fn append(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        let lines = u64::from(pipe::lines_of(frame.len() as u32));
        if self.written.saturating_sub(rung(link, self.queue, RX_FREED)) + lines > LINES.into() {
            return false;
        }
        let (at, wrap) = ((self.written % u64::from(LINES)) as usize * 8, LINES as usize * 8);
        write(&self.words, (self.at, at + 1, wrap), frame);
        self.words.borrow_mut()[self.at + at] = lie(Says::Which, pipe::header(frame.len() as u16));
        (self.written, self.frames) = (self.written + lines, self.frames + 1);
        true
    }

    /// What is to be told now: the host has seen what was told last, and frames have come since.
    pub fn due(&self, link: &Scripted) -> Option<Notification> {
        let freed = rung(link, self.queue, RX_FREED);
        let has_seen_last = freed > self.told_before || freed == self.told;
        (self.written > self.told && has_seen_last).then(|| self.notification())
    }

    /// How far it is written.
    pub fn notification(&self) -> Notification {
        Notification { tail_lines: self.written as u32, queue: self.queue as u16, epoch: self.epoch }
    }

    /// The notification was written.
    pub fn was_told(&mut self) {
        (self.told_before, self.told, self.told_frames) = (self.told, self.written, self.frames);
    }

    /// Frames that were told of.
    pub fn told_frames(&self) -> u64 {
        self.told_frames
    }

    /// The queue has a new life.
    pub fn restart(&mut self) {
        (self.written, self.told, self.told_before, self.frames, self.told_frames) = (0, 0, 0, 0, 0);
    }
}

/// A pipe and its own ring, in one memory: the notifications on a line, then the pipe.
pub struct PipeFiller {
    pipe: Pipe,
    ring: NotifyFiller,
}

impl PipeFiller {
    /// For the memory of a queue.
    pub fn new(queue: u32, words: Words) -> Self {
        PipeFiller { pipe: Pipe::new(queue, 0, words.clone(), 8), ring: NotifyFiller::new(words) }
    }

    fn tell(&mut self, link: &Scripted, lie: Lie<'_>) {
        if let Some(told) = self.pipe.due(link) {
            self.ring.tell(told, lie);
            self.pipe.was_told();
        }
    }
}

impl Filler for PipeFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        let is_put = self.pipe.append(link, frame, lie);
        self.tell(link, lie);
        is_put
    }

    fn progress(&mut self, link: &Scripted) {
        self.tell(link, &mut truth);
    }

    fn announced(&self) -> u64 {
        self.pipe.told_frames
    }

    fn frees(&self, frame_bytes: usize) -> Option<(u32, u64)> {
        Some((RX_FREED, pipe::lines_of(frame_bytes as u32).into()))
    }

    fn restart(&mut self, _epoch: u8) {
        self.pipe.restart();
        self.ring.restart();
    }
}

/// Entries of coherent lines, then buffers.
pub struct LineFiller {
    words: Words,
    address: u64,
    entry_bytes: usize,
    /// Header and buffer of each entry that is out.
    out: [(u64, Option<u32>); LINE_ENTRIES as usize],
    free: Vec<u32>,
    written: u64,
    back: u64,
}

impl LineFiller {
    /// For memory at a bus address, with entries of 2 to a power lines.
    pub fn new(words: Words, address: u64, entry_lines_log2: u32) -> Self {
        let free = (0..LINE_BUFFERS).collect();
        let entry_bytes = 64 << entry_lines_log2;
        LineFiller { words, address, entry_bytes, out: Default::default(), free, written: 0, back: 0 }
    }

    fn slot(&self, count: u64) -> (usize, usize) {
        let slot = (count % u64::from(LINE_ENTRIES)) as usize;
        (slot, slot * self.entry_bytes / 8)
    }
}

impl Filler for LineFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        self.progress(link);
        let fits = frame.len() + 8 <= self.entry_bytes;
        let is_full = self.written - self.back == u64::from(LINE_ENTRIES);
        if is_full || !fits && self.free.is_empty() {
            return false;
        }
        let (slot, at) = self.slot(self.written);
        let buffer = if fits { None } else { self.free.pop() };
        let kind = if fits { LineKind::Whole(frame.len() as u16) } else { LineKind::Buffers(1) };
        match buffer {
            None => write(&self.words, (0, at + 1, usize::MAX), frame),
            Some(buffer) => {
                let place = LINE_ENTRIES as usize * self.entry_bytes + buffer as usize * MAX_FRAME_BYTES;
                write(&self.words, (0, place / 8, usize::MAX), frame);
                let address = self.address + place as u64;
                let named = LineBuffer { length_bytes: frame.len() as u16, address }.encode();
                self.words.borrow_mut()[at + 1] = lie(Says::Which, named);
            }
        }
        let header = LineHeader { kind, epoch: 0, position: position_of(self.written) }.encode();
        let header = lie(Says::There, header);
        self.words.borrow_mut()[at] = header;
        self.out[slot] = (header, buffer);
        self.written += 1;
        true
    }

    fn progress(&mut self, _link: &Scripted) {
        while self.back < self.written {
            let (slot, at) = self.slot(self.back);
            let (header, buffer) = self.out[slot];
            if self.words.borrow()[at] != given_back(header) {
                return;
            }
            self.free.extend(buffer);
            self.back += 1;
        }
    }

    fn announced(&self) -> u64 {
        self.written
    }

    fn restart(&mut self, _epoch: u8) {
        *self = LineFiller::new(self.words.clone(), self.address, self.entry_bytes.ilog2() - 6);
    }
}

/// Entries in the BAR, and another way for frames that do not fit one.
pub struct EntryFiller {
    queue: u32,
    epoch: u8,
    window: Words,
    entry_bytes: usize,
    long: Option<Box<dyn Filler>>,
    written: u64,
    /// Entries that the host was known to have freed when last looked.
    freed: u64,
}

impl EntryFiller {
    /// For the window that a queue's reads find, with entries of 2 to a power lines.
    pub fn new(
        (queue, epoch): (u32, u8),
        window: Words,
        entry_lines_log2: u32,
        long: Option<Box<dyn Filler>>,
    ) -> Self {
        let entry_bytes = 64 << entry_lines_log2;
        EntryFiller { queue, epoch, window, entry_bytes, long, written: 0, freed: 0 }
    }

    fn entries(&self) -> u64 {
        u64::from(LINES) * 64 / self.entry_bytes as u64
    }

    fn place(&self, index: u64) -> usize {
        (index % self.entries()) as usize * self.entry_bytes / 8
    }
}

impl Filler for EntryFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        self.progress(link);
        if self.written.saturating_sub(self.freed) >= self.entries() {
            return false;
        }
        let fits = frame.len() + ENTRY_HEAD_BYTES <= self.entry_bytes;
        if !fits && !self.long.as_mut().is_some_and(|long| long.put(link, frame, lie)) {
            return false;
        }
        let kind = if fits { EntryKind::Whole } else { EntryKind::Address };
        let head = EntryHeader {
            length_bytes: frame.len() as u16,
            kind,
            wants_irq: false,
            epoch: self.epoch,
            position: entry::position_of(self.written),
        };
        let at = self.place(self.written);
        if fits {
            write(&self.window, (0, at + 2, usize::MAX), frame);
        }
        self.window.borrow_mut()[at] = lie(Says::There, head.encode());
        self.written += 1;
        true
    }

    /// An entry that was freed is not there until it is written: a read of it is held, and answered with zero in the end.
    fn progress(&mut self, link: &Scripted) {
        let freed = rung(link, self.queue, ENTRIES_FREED);
        // After a lie more may be freed than there ever was.
        for index in self.freed..freed.min(self.freed + self.entries()) {
            let at = self.place(index);
            self.window.borrow_mut()[at..at + self.entry_bytes / 8].fill(0);
        }
        self.freed = self.freed.max(freed);
        if let Some(long) = &mut self.long {
            long.progress(link);
        }
    }

    fn announced(&self) -> u64 {
        self.written
    }

    fn frees(&self, _frame_bytes: usize) -> Option<(u32, u64)> {
        Some((ENTRIES_FREED, 1))
    }

    fn restart(&mut self, epoch: u8) {
        (self.epoch, self.written, self.freed) = (epoch, 0, 0);
        self.window.borrow_mut().fill(0);
        if let Some(long) = &mut self.long {
            long.restart(epoch);
        }
    }
}
