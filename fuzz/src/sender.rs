//! A host's senders: frames in the format of each interface, whole or with one flaw.
//!
//! Random stores hardly ever add up to a message, so most of what lies behind the first check of a header would not be
//! reached. Here a message is whole unless the input asks for a flaw, and the flaw is near what is right.

use arbitrary::Arbitrary;
use beeline_spec::formats::{KPIO_EOP_DEFAULT, header, tx_descriptor};
use beeline_spec::header::lines_of;
use beeline_spec::regs::{self, queue as r};

use crate::device::{LINES, QUEUES, Setup};
use crate::port::Bench;

/// Entries of a descriptor ring that an honest set-up has.
const ENTRIES: u64 = 16;
/// Where the parts of a queue lie in the first memory that is lent, in bytes.
const QUEUE_BYTES: u64 = 0x2800;
const TX_RING: u64 = 0x100;
const RX_COMPLETIONS: u64 = 0xc00;
const RX_RING: u64 = 0x1000;
const BUFFERS: u64 = 0x2000;
/// Bytes of a receive buffer.
const BUFFER_BYTES: u64 = 128;
/// Bus address of the first byte of the first memory.
const LENT: u64 = 1 << 32;

/// What is wrong with a frame.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Flaw {
    /// The frame is sound.
    None,
    /// The header names another epoch.
    Epoch(u8),
    /// Its length is another by so much.
    Length(i16),
    /// The header names another kind.
    Kind(u8),
    /// A word of it is never stored.
    Missing(u8),
    /// Its lines are stored last first.
    Backwards,
    /// A chain of escapes begins at this word, which is a link to that one.
    Escape(u8, u8),
    /// The frame starts this many lines late.
    Late(u8),
    /// The doorbell counts so many more, or a descriptor's flags are these.
    Doorbell(i8),
    /// Its descriptor points so many bytes before the end of a region.
    Address { region: u8, before_end: i16 },
    /// The end-of-packet word stands in the middle.
    EarlyEnd(u8),
}

/// Frames that a host sends by the interface that a queue was last set up with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender {
    interface: u8,
    epoch: u8,
    /// Lines stored, or descriptors written, since then.
    next: u64,
}

impl Sender {
    /// Sets a queue up as a driver does, its rings so many bytes away from where they should be, and opens its window
    /// if it needs one.
    pub fn set_up(bench: &mut Bench, setup: &Setup, shift: i16) -> Self {
        let (queue, interface, epoch) = setup.queue();
        if matches!(interface, 1 | 2) && !bench.has_window(queue) {
            bench.reopen(queue);
        }
        let base = u64::from(queue) * QUEUE_BYTES;
        if setup.lends_buffers() {
            for entry in 0..ENTRIES {
                let buffer = LENT + base + BUFFERS + entry * BUFFER_BYTES;
                write_descriptor(bench, base + RX_RING, entry, buffer, BUFFER_BYTES);
            }
        }
        bench.write(regs::QUEUE + queue * regs::QUEUE_STRIDE + r::KPIO_EOP, KPIO_EOP_DEFAULT);
        setup.registers(|offset, value| {
            let inside = match (offset - regs::QUEUE) % regs::QUEUE_STRIDE {
                r::CREDIT_ADDRESS => 0,
                r::TX_HEAD_ADDRESS => 64,
                r::TX_RING_ADDRESS => TX_RING,
                r::RX_COMPLETION_ADDRESS => RX_COMPLETIONS,
                r::RX_RING_ADDRESS => RX_RING,
                _ => return bench.write(offset, value),
            };
            bench.write(offset, (LENT + base + inside).wrapping_add_signed(shift.into()));
        });
        bench.turns(3, 0);
        Sender { interface, epoch, next: 0 }
    }

    /// Sends a frame of so many bytes, or something like it.
    pub fn send(&mut self, bench: &mut Bench, queue: u32, bytes: u16, fill: u8, flaw: Flaw) {
        let payload: Vec<u8> = (0..bytes).map(|at| (at as u8).wrapping_mul(fill) ^ fill).collect();
        match self.interface {
            1 => self.send_message(bench, queue, &payload, flaw),
            2 => self.send_lines(bench, queue, &payload, flaw),
            _ => self.send_descriptor(bench, queue, &payload, flaw),
        }
    }

    fn send_message(&mut self, bench: &mut Bench, queue: u32, payload: &[u8], flaw: Flaw) {
        let (mut kind, mut length, mut epoch, mut escape_last) = (1, payload.len() as u64, self.epoch, 0);
        match flaw {
            Flaw::Kind(other) => kind = u64::from(other),
            Flaw::Length(more) => length = length.wrapping_add_signed(more.into()),
            Flaw::Epoch(other) => epoch = other,
            Flaw::Escape(last, _) => escape_last = u64::from(last),
            _ => {}
        }
        let first = (kind & header::KIND_MASK) << header::KIND_LSB
            | (length & header::LENGTH_BYTES_MASK) << header::LENGTH_BYTES_LSB
            | (escape_last & header::ESCAPE_LAST_MASK) << header::ESCAPE_LAST_LSB
            | u64::from(epoch) << header::EPOCH_LSB;
        let mut words = vec![first];
        words.extend(payload.chunks(8).map(word));
        words.resize(lines_of(payload.len() as u32) as usize * 8, 0);
        if let Flaw::Escape(last, previous) = flaw
            && let Some(word) = words.get_mut(usize::from(last).max(1))
        {
            *word = beeline_spec::escape::link(previous.into());
        }
        self.store(bench, queue, &words, flaw);
    }

    fn send_lines(&mut self, bench: &mut Bench, queue: u32, payload: &[u8], flaw: Flaw) {
        let mut words: Vec<u64> = payload.chunks(8).map(word).collect();
        // A frame that fills its last line is followed by a line of signatures.
        words.resize((words.len() + 1).next_multiple_of(8), KPIO_EOP_DEFAULT);
        if let Flaw::EarlyEnd(at) = flaw {
            let length = words.len();
            words[usize::from(at) % length] = KPIO_EOP_DEFAULT;
        }
        self.store(bench, queue, &words, flaw);
    }

    fn store(&mut self, bench: &mut Bench, queue: u32, words: &[u64], flaw: Flaw) {
        let late = if let Flaw::Late(lines) = flaw { u64::from(lines % 4) } else { 0 };
        let start = self.next + late;
        let lines = words.len() / 8;
        for turn in 0..lines {
            let line = if matches!(flaw, Flaw::Backwards) { lines - 1 - turn } else { turn };
            for (word, value) in words[line * 8..line * 8 + 8].iter().enumerate() {
                if !matches!(flaw, Flaw::Missing(missing) if usize::from(missing) % words.len() == line * 8 + word)
                {
                    bench.store(queue, (start + line as u64) * 8 + word as u64, *value);
                }
            }
            // A sender that knows no credits waits for room.
            if turn % 8 == 7 {
                bench.turns(2, 10);
            }
        }
        self.next = start + lines as u64;
        debug_assert!(lines <= 4 * LINES as usize);
    }

    fn send_descriptor(&mut self, bench: &mut Bench, queue: u32, payload: &[u8], flaw: Flaw) {
        let base = u64::from(queue) * QUEUE_BYTES;
        // Two frames at most have room next to each other.
        let buffer = base + BUFFERS + self.next % 2 * 1024;
        bench.store_lent(0, buffer as usize, &payload[..payload.len().min(1024)]);
        let (mut address, mut length, mut posted) = (LENT + buffer, payload.len() as u64, self.next + 1);
        match flaw {
            Flaw::Address { region, before_end } => {
                let end = [0x8000, 4096 + 72][usize::from(region % 2)];
                address = (u64::from(region % 4) << 32 | end).wrapping_add_signed(-i64::from(before_end));
            }
            Flaw::Length(more) => length = length.wrapping_add_signed(more.into()),
            Flaw::Doorbell(more) => posted = posted.wrapping_add_signed(more.into()),
            Flaw::Kind(flags) => length |= u64::from(flags) << 32,
            _ => {}
        }
        write_descriptor(bench, base + TX_RING, self.next % ENTRIES, address, length);
        bench.ring(queue, false, posted);
        self.next += 1;
    }
}

fn write_descriptor(bench: &mut Bench, ring: u64, entry: u64, address: u64, length_and_flags: u64) {
    let mut bytes = [0; tx_descriptor::BYTES];
    bytes[tx_descriptor::ADDRESS_OFFSET..][..8].copy_from_slice(&address.to_le_bytes());
    bytes[tx_descriptor::LENGTH_BYTES_OFFSET..][..8].copy_from_slice(&length_and_flags.to_le_bytes());
    bench.store_lent(0, ring as usize + entry as usize * bytes.len(), &bytes);
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

pub type Senders = [Sender; QUEUES as usize];
