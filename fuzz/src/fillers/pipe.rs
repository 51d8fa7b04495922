//! A pipe and the ring of notifications that tells of it, apart, because a ring may tell of several pipes.

use beeline_spec::pipe::{self, Notification};
use beeline_spec::regs::doorbell::RX_FREED;

use super::{Filler, LINES, Lie, NOTIFICATIONS, Says, truth, write};
use crate::opened::{Words, rung};
use crate::scripted::Scripted;

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

    /// Returns a notification of how far the pipe is written.
    pub fn notification(&self) -> Notification {
        Notification { tail_lines: self.written as u32, queue: self.queue as u16, epoch: self.epoch }
    }

    /// The notification was written.
    pub fn was_told(&mut self) {
        (self.told_before, self.told, self.told_frames) = (self.told, self.written, self.frames);
    }

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
