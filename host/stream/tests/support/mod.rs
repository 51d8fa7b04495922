//! One end of a connection of TCP of this machine, with windows in memory that both ends map.
#![allow(dead_code, reason = "each test uses a part of it")]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

pub mod ends;
mod memory;
mod tcp;

use std::net::TcpStream;

use beeline_ledger::{Path, Received, Receiver, Sender};
use beeline_mmio::{LoadWindow, Region, StoreWindow};
use beeline_stream::*;
use beeline_tcp::Side;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

pub use memory::{Direction, Memory, Pushed, Theirs, WINDOW_BYTES, Words};
pub use tcp::Limited;

/// How a window's two ends are made, and whether they stand a scribble.
pub trait Windows {
    type Sink: WindowSink;
    type Source: beeline_ledger::WindowPath;
    /// Whether bytes are kept, so that windows may be scribbled over.
    const KEEPS: bool;
    fn sink(writer: beeline_window::Writer<StoreWindow, Pushed>, stream: StreamId) -> Self::Sink;
    fn source(receiver: beeline_window::Receiver<LoadWindow, Pushed>, stream: StreamId) -> Self::Source;
}

pub struct Plain;
pub struct Checked;

impl Windows for Plain {
    type Sink = PlainWriter<StoreWindow, Pushed>;
    type Source = PlainReader<LoadWindow, Pushed>;
    const KEEPS: bool = false;

    fn sink(writer: beeline_window::Writer<StoreWindow, Pushed>, _stream: StreamId) -> Self::Sink {
        PlainWriter::new(writer)
    }

    fn source(receiver: beeline_window::Receiver<LoadWindow, Pushed>, _stream: StreamId) -> Self::Source {
        PlainReader::new(receiver)
    }
}

impl Windows for Checked {
    type Sink = CheckedWriter<StoreWindow, Pushed>;
    type Source = CheckedReader<LoadWindow, Pushed>;
    const KEEPS: bool = true;

    fn sink(writer: beeline_window::Writer<StoreWindow, Pushed>, stream: StreamId) -> Self::Sink {
        CheckedWriter::new(writer, stream)
    }

    fn source(receiver: beeline_window::Receiver<LoadWindow, Pushed>, stream: StreamId) -> Self::Source {
        CheckedReader::new(receiver, stream)
    }
}

/// Byte `at` of the stream of a direction.
pub fn byte(direction: usize, at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(direction as u64 * 77) >> 29) as u8
}

/// Sockets 1 and 2, of which the first sends in direction 0.
pub fn stream_id(direction: usize) -> StreamId {
    StreamId::new(1 + direction as u64, 2 - direction as u64)
}

/// More than a window and a socket's buffers.
pub const KEPT_BYTES: usize = 64 << 20;

/// Looks of which none showed that the receiver had gone on, until a sender goes down. Nothing depends on how many but time.
const PATIENCE: u32 = 2_000;

/// What one end did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub ups: u64,
    pub by_window_bytes: u64,
    pub scribbles: u64,
    pub windows: u64,
}

pub struct End<W: Windows> {
    pub tcp: Limited,
    pub outgoing: Outgoing<Words, Theirs, W::Sink>,
    pub incoming: Incoming<Words, Theirs, W::Source, TcpError>,
    sends: Direction,
    receives: Direction,
    /// 0 or 1: which of the two directions it sends.
    number: usize,
    random: Xoshiro256PlusPlus,
    region: Region,
    taken_windows: u64,
    untaken: (u64, u32),
    pub leaves_full_windows: bool,
    pub counts: Counts,
}

impl<W: Windows> End<W> {
    /// End 0 or 1 of the connection.
    pub fn new(memory: &Memory, number: usize, stream: TcpStream, seed: u64) -> Self {
        let (sends, receives) = (memory.direction(number), memory.direction(1 - number));
        let outgoing = Outgoing::new(Sender::new(sends.sender_words(), sends.theirs_of_sender(), 0));
        End {
            tcp: Limited::new(stream, if number == 0 { Side::Connected } else { Side::Accepted }),
            outgoing: if W::KEEPS { outgoing.keeping(KEPT_BYTES) } else { outgoing },
            incoming: Incoming::new(Receiver::new(
                receives.receiver_words(),
                receives.theirs_of_receiver(),
                0,
            )),
            sends,
            receives,
            number,
            random: Xoshiro256PlusPlus::seed_from_u64(seed * 2 + number as u64),
            region: memory.region(),
            taken_windows: 0,
            untaken: (0, 0),
            leaves_full_windows: true,
            counts: Counts::default(),
        }
    }

    pub fn below(&mut self, end: u32) -> u32 {
        self.random.random_range(0..end)
    }

    /// Offers the sender a window if it has none, as far as there are any.
    pub fn offer(&mut self) {
        if self.incoming.has_window() {
            return;
        }
        let blank = self.random.next_u64();
        if let Some(receiver) = self.receives.next_window(blank) {
            self.incoming.set_window(W::source(receiver, stream_id(1 - self.number)));
            self.receives.tell_offered();
        }
    }

    /// Takes a window that was offered.
    pub fn take_window(&mut self) {
        if let Some((number, writer)) = self.sends.offered(self.taken_windows)
            && self.outgoing.set_window(W::sink(writer, stream_id(self.number))).is_ok()
        {
            self.taken_windows = number;
            self.counts.windows += 1;
        }
    }

    pub fn go_up(&mut self) -> bool {
        let was_up = self.outgoing.path() == Path::Window;
        let is_up = self.outgoing.go_up(&mut self.tcp).is_ok();
        self.counts.ups += u64::from(is_up && !was_up);
        is_up
    }

    /// Stores anything anywhere in the window by which it sends: a few words, or zeros, or what was there before.
    pub fn scribble(&mut self) {
        let Some(start) = self.sends.window_bytes(self.taken_windows) else { return };
        let at = start + self.below(WINDOW_BYTES as u32) as usize;
        let mut bytes = vec![0; 1 + self.below(40) as usize];
        bytes.truncate(start + WINDOW_BYTES - at);
        match self.below(3) {
            0 => self.random.fill_bytes(&mut bytes),
            1 => {}
            _ => {
                let from = start + self.below((WINDOW_BYTES - bytes.len()) as u32) as usize;
                self.region.copy_out(from, &mut bytes);
            }
        }
        self.region.copy_in(at, &bytes);
        self.counts.scribbles += 1;
    }

    /// Sends a piece of its stream, which has `total` bytes.
    pub fn send(&mut self, total: u64) -> Result<(), Failure<TcpError>> {
        let from = self.outgoing.sent_bytes();
        let most = [1, 64, 5000, 30_000][self.below(4) as usize];
        let bytes: Vec<u8> = (from..total.min(from + 1 + u64::from(self.below(most))))
            .map(|at| byte(self.number, at))
            .collect();
        if bytes.is_empty() {
            return self.outgoing.tend(&mut self.tcp);
        }
        let was_up = self.outgoing.path() == Path::Window;
        let sent = self.outgoing.send(&bytes, &mut self.tcp)?;
        if let Sent::Bytes(sent) = sent
            && was_up
            && self.outgoing.path() == Path::Window
        {
            self.counts.by_window_bytes += sent as u64;
        }
        if sent == Sent::WindowFull && self.leaves_full_windows && self.below(20) == 0 {
            self.outgoing.go_down();
        }
        Ok(())
    }

    /// Goes down if nothing has moved for long.
    pub fn suspect(&mut self) {
        let untaken = self.outgoing.untaken_bytes();
        self.untaken = if untaken == self.untaken.0 { (untaken, self.untaken.1 + 1) } else { (untaken, 0) };
        if untaken > 0 && self.untaken.1 > PATIENCE {
            self.outgoing.go_down();
            self.untaken.1 = 0;
        }
    }

    /// Receives a piece, peeks at it first at times, and checks every byte.
    pub fn receive(&mut self) -> Result<Received, Failure<TcpError>> {
        let most = [1, 100, 20_000][self.below(3) as usize];
        let mut out = vec![0; 1 + self.below(most) as usize];
        let from = self.incoming.taken_bytes();
        if self.below(8) == 0
            && let Received::Bytes(bytes) = self.incoming.peek(&mut out, &mut self.tcp)?
        {
            self.check(from, &out[..bytes]);
        }
        let found = self.incoming.receive(&mut out, &mut self.tcp)?;
        if let Received::Bytes(bytes) = found {
            self.check(from, &out[..bytes]);
            assert_eq!(self.incoming.taken_bytes(), from + bytes as u64);
        }
        Ok(found)
    }

    fn check(&self, from: u64, bytes: &[u8]) {
        let wrong = bytes.iter().zip(from..).position(|(found, at)| *found != byte(1 - self.number, at));
        if let Some(at) = wrong {
            panic!("byte {} of {} is another one", from + at as u64, self.number);
        }
    }
}
