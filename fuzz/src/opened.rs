//! A queue of a driver whose device is the fuzzer: the driver's half, and the memory that both look at.

use std::cell::RefCell;
use std::rc::Rc;

use beeline_driver::{Pending, Port, PortError, Progress, QueueHalf, Stopped};
use beeline_spec::regs::{self, field::queue_control};

use crate::scripted::Scripted;

/// Words of a region of the driver's memory, or of a window.
pub type Words = Rc<RefCell<Vec<u64>>>;

/// Polls until an operation ends, with ten milliseconds between polls.
///
/// # Errors
/// As the operation.
pub fn finish<T>(port: &mut Port<Scripted>, mut pending: Pending<T>) -> Result<T, PortError> {
    for round in 0..2000 {
        port.poll(round * 10_000_000)?;
        pending = match port.finish(pending)? {
            Progress::Done(value) => return Ok(value),
            Progress::Pending(pending) => pending,
        };
    }
    panic!("an operation does not end");
}

/// An open queue, its number and its memory.
pub struct Opened<H> {
    /// The driver's half.
    pub half: H,
    pub queue: u32,
    words: Option<Words>,
    /// Bus address of the first word.
    pub address: u64,
}

impl<H: QueueHalf> Opened<H> {
    /// Opens a queue; `None` when the device does not let it.
    pub fn new(
        port: &mut Port<Scripted>,
        link: &Scripted,
        make: impl FnOnce(&mut Port<Scripted>) -> Result<Stopped<H>, PortError>,
    ) -> Option<Self> {
        let before = link.0.borrow().regions.len();
        let stopped = make(port).ok()?;
        let queue = stopped.queue();
        let pending = port.open(stopped);
        let half = finish(port, pending).ok()?;
        begin_freed(link, &half);
        // A queue has one region or none, and the link counts them from 1.
        let words = link.0.borrow().regions.get(before).map(Rc::clone);
        Some(Opened { half, queue, words, address: (before as u64 + 1) << 32 })
    }

    /// Around a half that is open already.
    pub fn around(half: H, queue: u32, words: Words) -> Self {
        Opened { half, queue, words: Some(words), address: 0 }
    }

    /// Recovers the queue; `None` when the device does not let it.
    pub fn recovered(self, port: &mut Port<Scripted>) -> Option<Self> {
        let epoch_before = self.epoch();
        let pending = port.recover(self.half);
        let half = finish(port, pending).ok()?;
        assert_eq!(half.epoch().number(), epoch_before.wrapping_add(1));
        begin_freed(port.link(), &half);
        Some(Opened { half, ..self })
    }

    /// The epoch of the queue's present life.
    pub fn epoch(&self) -> u8 {
        self.half.epoch().number()
    }

    /// Its memory; no word where it has none.
    pub fn words(&self) -> Words {
        self.words.as_ref().map(Rc::clone).unwrap_or_default()
    }
}

/// What a doorbell of a queue was last rung with.
pub fn rung(link: &Scripted, queue: u32, doorbell: u32) -> u64 {
    let offset = regs::DOORBELL + queue * regs::DOORBELL_STRIDE + doorbell;
    link.0.borrow().rings.get(&offset).map_or(0, |ring| ring.0)
}

/// What the host frees is counted anew with each life of a queue that receives.
fn begin_freed(link: &Scripted, half: &impl QueueHalf) {
    if half.control() >> queue_control::IFACE_LSB & queue_control::IFACE_MASK != 0 {
        return;
    }
    let first = regs::DOORBELL + half.queue() * regs::DOORBELL_STRIDE;
    for doorbell in [regs::doorbell::RX_FREED, regs::doorbell::ENTRIES_FREED] {
        link.0.borrow_mut().rings.remove(&(first + doorbell));
    }
}

/// The words of some bytes, the last one padded with zeros.
pub fn padded_words(bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    bytes.chunks(8).map(word).collect()
}
