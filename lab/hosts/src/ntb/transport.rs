//! Messages as `ntb_transport` of Linux sends them, to compare: a frame for each in a ring in the other side's memory, a header at the frame's
//! end whose flag is stored behind a fence, a doorbell, and an index that the receiver stores back.
//!
//! What it stores, fences, rings and reads is that driver's (version 4 of its protocol), without what an operating system does around it.

use beeline_contract_memory::Line;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{HostId, Hosts, Region};

use super::link::NtbError;
use super::port::NtbPort;
use crate::programs::Core;
use crate::wiring::LINE_BYTES;

/// Bytes of a frame, of which the last two words are the header.
const FRAME_BYTES: usize = 2048;
/// The length and the number of the message, in one word, and behind it the flags.
const HEADER: usize = FRAME_BYTES - 16;
const FLAGS: usize = FRAME_BYTES - 8;
const FRAMES: usize = 32;
/// The last frame that the other side has emptied.
const EMPTIED: usize = FRAMES * FRAME_BYTES;
const BYTES: usize = EMPTIED + 4096;
const DONE: u64 = 1;
const WINDOW: u16 = 0;
/// The doorbell of the queue.
const DOORBELL: u64 = 1;

/// How whoever receives comes to know of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// By a doorbell with each message, whose interrupt wakes it.
    ByInterrupt,
    /// It looks for the flag; nobody is rung.
    ByPolling,
}

/// One side of a queue.
pub(super) struct Queue {
    port: NtbPort,
    core: Core,
    memory: Region,
    /// The ring in the other side's memory.
    to: u64,
    told: Told,
    sent: u64,
    received: u64,
    interrupts: u64,
    /// Whether it looks at its ring, as behind an interrupt, and does not wait for one.
    is_awake: bool,
}

impl Queue {
    /// Memory of a host for messages to it.
    pub(super) fn memory(hosts: &mut Hosts, host: HostId) -> Region {
        hosts.add_memory(host, BYTES)
    }

    /// A queue of a link that comes up; the ring of the other side is there soon behind.
    pub(super) fn open(core: &Core, memory: Region, told: Told) -> Result<Queue, NtbError> {
        let port = NtbPort::new(core);
        port.link_enable();
        port.mw_set_trans(WINDOW, memory).map_err(NtbError::Translation)?;
        let to = port.peer_mw_get_addr(WINDOW).ok_or(NtbError::Down)?;
        while !port.link_is_up() {
            core.sleep_until(core.now() + Picoseconds::from_ns(1_000));
        }
        // The first interrupt is to be of a message.
        port.db_clear(u64::MAX);
        port.db_unmask_only(if told == Told::ByInterrupt { DOORBELL } else { 0 });
        port.db_read();
        let (core, interrupts) = (core.clone(), port.interrupts());
        Ok(Queue { port, core, memory, to, told, sent: 0, received: 0, interrupts, is_awake: false })
    }

    /// Sends a message; `false` if the ring is full.
    pub(super) fn send(&mut self, message: &[u8]) -> bool {
        // The index that the other side has stored into this memory: one more than the last frame that it has emptied.
        if self.sent - self.core.load(self.memory, EMPTIED) == FRAMES as u64 {
            return false;
        }
        let frame = self.to + (self.sent as usize % FRAMES * FRAME_BYTES) as u64;
        self.core.store_word(frame + HEADER as u64, (message.len() as u64) << 32 | self.sent & 0xffff_ffff);
        for (at, bytes) in (frame..).step_by(LINE_BYTES).zip(message.chunks(LINE_BYTES)) {
            let line = words_of(bytes);
            if bytes.len() == LINE_BYTES {
                self.core.store_line(at, &line);
            } else {
                let words = &line[..bytes.len().div_ceil(8)];
                (at..).step_by(8).zip(words).for_each(|(at, word)| self.core.store_word(at, *word));
            }
        }
        self.core.fence();
        self.core.store_word(frame + FLAGS as u64, DONE);
        match self.told {
            Told::ByInterrupt => self.port.peer_db_set(DOORBELL),
            // The flag would wait in its buffer.
            Told::ByPolling => self.core.fence(),
        }
        self.sent += 1;
        true
    }

    /// Takes the next message, as soon as there is one.
    pub(super) fn receive(&mut self) -> Vec<u8> {
        loop {
            if self.told == Told::ByInterrupt && !self.is_awake {
                self.port.await_interrupt(self.interrupts, Picoseconds::NEVER);
                self.interrupts = self.port.interrupts();
                self.is_awake = true;
            }
            if let Some(message) = self.take() {
                return message;
            }
            match self.told {
                Told::ByPolling => self.core.wait(Next::Poll, Picoseconds::NEVER),
                Told::ByInterrupt => self.rests(),
            }
        }
    }

    /// The ring is empty: the doorbell is cleared, and the ring looked at once more, unless it was clear.
    fn rests(&mut self) {
        if self.port.db_read() & DOORBELL == 0 {
            self.is_awake = false;
            return;
        }
        self.port.db_clear(DOORBELL);
        // The clear is there when this is answered.
        self.port.db_read();
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let frame = self.received as usize % FRAMES * FRAME_BYTES;
        if self.core.load(self.memory, frame + FLAGS) & DONE == 0 {
            return None;
        }
        let header = self.core.load(self.memory, frame + HEADER);
        // What is not what was sent is found by whoever knows that.
        let mut message = vec![0; ((header >> 32) as usize).min(HEADER)];
        self.core.copy_out(self.memory, frame, &mut message);
        self.core.store(self.memory, frame + FLAGS, 0);
        self.received += 1;
        self.core.store_in_order(self.to + EMPTIED as u64, self.received);
        Some(message)
    }
}

fn words_of(bytes: &[u8]) -> Line {
    let mut padded = [0; LINE_BYTES];
    padded[..bytes.len()].copy_from_slice(bytes);
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(padded.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}
