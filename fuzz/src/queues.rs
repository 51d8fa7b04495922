//! Queues of a driver whose device is the fuzzer, opened when the input first uses them.
//!
//! The device's memory is plain words that the fuzzer writes. What the driver did is looked up where a device would
//! look: in the window, in the descriptor ring, at the doorbell.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use beeline_driver::{
    DescriptorConfig, KpioConfig, MmioConfig, Pending, Port, PortError, Progress, QueueHalf, Receive,
    RxDescriptor, RxDescriptorConfig, RxError, RxRing, RxRingConfig, Sent, Stopped, Transmit, TxDescriptor,
    TxError, TxKpio, TxMmio,
};
use beeline_spec::escape::blank_from_random;
use beeline_spec::formats::{KPIO_EOP_DEFAULT, header};
use beeline_spec::header::lines_of;
use beeline_spec::regs;

use crate::Word;
use crate::scripted::{Bell, Memory, Scripted, Window};

/// Longest frame a receive buffer of these queues holds.
pub const MAX_FRAME_BYTES: usize = 1536;
/// Lines of each window and of the receive ring.
pub const LINES: u32 = 64;
/// Entries of the descriptor rings.
pub const ENTRIES: u64 = 8;

/// Words of a region of the driver's memory.
type Words = Rc<RefCell<Vec<u64>>>;

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
    /// The driver's half; gone when the device did not let it recover.
    pub half: H,
    queue: u32,
    words: Words,
    /// Bus address of the first word.
    address: u64,
}

impl<H: QueueHalf> Opened<H> {
    /// Opens a queue; `None` when the device does not let it.
    fn new(
        port: &mut Port<Scripted>,
        link: &Scripted,
        queue: u32,
        make: impl FnOnce(&mut Port<Scripted>) -> Result<Stopped<H>, PortError>,
    ) -> Option<Self> {
        let before = link.0.borrow().regions.len();
        let stopped = make(port).ok()?;
        let pending = port.open(stopped);
        let half = finish(port, pending).ok()?;
        // Every queue has one region, and the link counts them from 1.
        let words = Rc::clone(&link.0.borrow().regions[before]);
        Some(Opened { half, queue, words, address: (before as u64 + 1) << 32 })
    }

    /// Recovers the queue; `None` when the device does not let it.
    fn recovered(self, port: &mut Port<Scripted>) -> Option<Self> {
        let pending = port.recover(self.half);
        let half = finish(port, pending).ok()?;
        Some(Opened { half, ..self })
    }

    fn word(&self, at: usize) -> u64 {
        self.words.borrow()[at]
    }
}

/// What the device did to receive queues.
#[derive(Debug, Default)]
pub struct Delivered {
    /// Lines, or buffers, that it filled.
    pub filled: u64,
    /// Those that the host took.
    taken: u64,
    /// Frames that the host has not taken yet, unless the device lied.
    frames: VecDeque<Vec<u8>>,
    /// Whether anything but whole frames was written.
    pub is_lie: bool,
    failed: Option<RxError>,
}

/// A port, and its queues as far as they are open.
pub struct Host {
    /// What driver and device share.
    pub link: Scripted,
    port: Port<Scripted>,
    mmio: Option<Opened<TxMmio<Window, Memory>>>,
    kpio: Option<Opened<TxKpio<Window, Memory>>>,
    descriptor: Option<Opened<TxDescriptor<Memory, Bell>>>,
    ring: Option<Opened<RxRing<Memory, Bell>>>,
    buffers: Option<Opened<RxDescriptor<Memory, Bell>>>,
    /// What came by the ring, and by buffers.
    pub delivered: [Delivered; 2],
}

impl Default for Host {
    fn default() -> Self {
        let link = Scripted::sound(LINES);
        let port = link.ready();
        let delivered = [Delivered::default(), Delivered::default()];
        Host { link, port, mmio: None, kpio: None, descriptor: None, ring: None, buffers: None, delivered }
    }
}

impl Host {
    fn mmio(&mut self) -> Option<&mut Opened<TxMmio<Window, Memory>>> {
        if self.mmio.is_none() {
            self.mmio =
                Opened::new(&mut self.port, &self.link, 0, |port| port.mmio(0, MmioConfig::default()));
        }
        self.mmio.as_mut()
    }

    fn kpio(&mut self) -> Option<&mut Opened<TxKpio<Window, Memory>>> {
        if self.kpio.is_none() {
            self.kpio =
                Opened::new(&mut self.port, &self.link, 1, |port| port.kpio(1, KpioConfig::default()));
        }
        self.kpio.as_mut()
    }

    fn descriptor(&mut self) -> Option<&mut Opened<TxDescriptor<Memory, Bell>>> {
        if self.descriptor.is_none() {
            let config = DescriptorConfig {
                entries: ENTRIES as u32,
                buffer_bytes: 4096,
                completion_frames: 2,
                ..Default::default()
            };
            self.descriptor = Opened::new(&mut self.port, &self.link, 2, |port| port.descriptor(2, config));
        }
        self.descriptor.as_mut()
    }

    fn ring(&mut self) -> Option<&mut Opened<RxRing<Memory, Bell>>> {
        if self.ring.is_none() {
            let config = RxRingConfig { lines: LINES, ..RxRingConfig::default() };
            self.ring = Opened::new(&mut self.port, &self.link, 0, |port| port.rx_ring(0, config));
        }
        self.ring.as_mut()
    }

    fn buffers(&mut self) -> Option<&mut Opened<RxDescriptor<Memory, Bell>>> {
        if self.buffers.is_none() {
            let config = RxDescriptorConfig { entries: ENTRIES as u32, ..RxDescriptorConfig::default() };
            self.buffers = Opened::new(&mut self.port, &self.link, 3, |port| port.rx_descriptor(3, config));
        }
        self.buffers.as_mut()
    }

    /// A transmit queue, if it can be opened.
    pub fn transmit(&mut self, which: u8) -> Option<&mut dyn Transmit> {
        match which % 3 {
            0 => self.mmio().map(|opened| &mut opened.half as _),
            1 => self.kpio().map(|opened| &mut opened.half as _),
            _ => self.descriptor().map(|opened| &mut opened.half as _),
        }
    }

    /// Sends a frame, and looks for it where the device would.
    pub fn send(&mut self, which: u8, frame: &[u8]) {
        let link = self.link.clone();
        match which % 3 {
            0 => {
                let Some(opened) = self.mmio() else { return };
                let start = opened.half.writer().position().0;
                if opened.half.try_send(frame) == Ok(Sent::Sent) {
                    assert_eq!(
                        opened.half.writer().position().0,
                        start + u64::from(lines_of(frame.len() as u32))
                    );
                    check_message(&window(&link, 0), start, frame);
                }
            }
            1 => {
                let Some(opened) = self.kpio() else { return };
                let start = opened.half.stored_lines();
                if opened.half.try_send(frame) == Ok(Sent::Sent) {
                    check_lines(&window(&link, 1), start, opened.half.stored_lines(), frame);
                }
            }
            _ => {
                let Some(opened) = self.descriptor() else { return };
                if opened.half.try_send(frame) == Ok(Sent::Sent) {
                    check_descriptor(opened, &link, frame);
                }
            }
        }
    }

    /// The device says that it has finished so many more than were handed over (less, if negative), and the driver
    /// looks.
    pub fn finished(&mut self, which: u8, more: i8) {
        let (handed_over, words) = match which % 3 {
            0 => match self.mmio() {
                Some(opened) => (opened.half.writer().position().0, Rc::clone(&opened.words)),
                None => return,
            },
            1 => match self.kpio() {
                Some(opened) => (opened.half.stored_lines(), Rc::clone(&opened.words)),
                None => return,
            },
            _ => match self.descriptor() {
                Some(opened) => (opened.half.posted(), Rc::clone(&opened.words)),
                None => return,
            },
        };
        let finished = handed_over.wrapping_add_signed(more.into());
        words.borrow_mut()[0] = finished;
        let Some(tx) = self.transmit(which) else { return };
        let outcome: Result<(), TxError> = tx.progress();
        assert!(outcome.is_err() || finished <= handed_over, "{finished} of {handed_over} were finished");
        if outcome.is_ok() && more == 0 {
            assert!(tx.is_idle(), "all {handed_over} are finished");
        }
    }

    /// Writes a frame where the next one belongs, and then the word that says so, changed by `lie`.
    pub fn deliver(&mut self, which: u8, frame: &[u8], lie: impl FnOnce(u64) -> u64) {
        let which = usize::from(which % 2);
        let state = &self.delivered[which];
        let (filled, used) = (state.filled, state.filled - state.taken);
        let lines = (8 + frame.len()).div_ceil(64) as u64;
        let (mark_at, bytes_at, valid, units) = if which == 0 {
            let at = (filled % u64::from(LINES)) as usize * 8;
            (at, at + 1, 1, lines)
        } else {
            // Eight descriptors of two words, eight completions of one, then the buffers.
            let slot = (filled % ENTRIES) as usize;
            (16 + slot, 24 + slot * MAX_FRAME_BYTES / 8, 1 - (filled / ENTRIES & 1), 1)
        };
        let room = if which == 0 { u64::from(LINES) } else { ENTRIES };
        let words = match which {
            0 => self.ring().map(|opened| Rc::clone(&opened.words)),
            _ => self.buffers().map(|opened| Rc::clone(&opened.words)),
        };
        let Some(words) = words.filter(|_| used + units <= room) else { return };
        let mut words = words.borrow_mut();
        let wrap = if which == 0 { words.len() } else { usize::MAX };
        for (at, bytes) in (bytes_at..).zip(frame.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            words[at % wrap] = u64::from_le_bytes(word);
        }
        let mark = frame.len() as u64 | valid << 32;
        let told = lie(mark);
        words[mark_at] = told;
        let state = &mut self.delivered[which];
        state.is_lie |= told != mark;
        state.filled += units;
        state.frames.push_back(frame.to_vec());
    }

    /// Polls a receive queue; whether a frame came. A device that did not lie is believed to the byte.
    pub fn receive(&mut self, which: u8) -> bool {
        let which = usize::from(which % 2);
        let rx: Option<(&mut dyn Receive, u32)> = match which {
            0 => self.ring().map(|opened| (&mut opened.half as _, opened.queue)),
            _ => self.buffers().map(|opened| (&mut opened.half as _, opened.queue)),
        };
        let Some((rx, queue)) = rx else { return false };
        let mut bytes = [0; MAX_FRAME_BYTES];
        let found = receive(rx, &mut bytes);
        let state = &mut self.delivered[which];
        match (found, state.failed) {
            (Err(error), failed) => {
                assert_eq!(failed.unwrap_or(error), error, "an error is final");
                assert!(state.is_lie, "an error without a lie: {error}");
                state.failed = Some(error);
                return false;
            }
            (Ok(_), Some(_)) => panic!("a poll went well after an error"),
            (Ok(None), None) => assert!(state.is_lie || state.frames.is_empty(), "a frame is not found"),
            (Ok(Some(length)), None) => {
                let expected = state.frames.pop_front();
                assert!(
                    state.is_lie || expected.is_some_and(|frame| frame == bytes[..length]),
                    "another frame"
                );
                state.taken += if which == 0 { (8 + length).div_ceil(64) as u64 } else { 1 };
            }
        }
        // A lie about a length frees other lines than were filled.
        state.filled = state.filled.max(state.taken);
        let offset = regs::DOORBELL + queue * regs::DOORBELL_STRIDE + regs::doorbell::RX_FREED;
        let told = self.link.0.borrow().rings.get(&offset).map_or(0, |ring| ring.0);
        assert!(told <= state.taken, "the device is told that {told} of {} are free", state.taken);
        found.is_ok_and(|length| length.is_some())
    }

    /// Recovers a queue that is open.
    pub fn recover(&mut self, which: u8) {
        let port = &mut self.port;
        match which % 3 {
            0 => self.mmio = self.mmio.take().and_then(|opened| opened.recovered(port)),
            1 => self.kpio = self.kpio.take().and_then(|opened| opened.recovered(port)),
            _ => self.descriptor = self.descriptor.take().and_then(|opened| opened.recovered(port)),
        }
    }

    /// Writes a word into a region of the driver's memory, if it has one there.
    pub fn poke(&mut self, region: u8, word: usize, value: Word) {
        let shared = self.link.0.borrow();
        let Some(place) = usize::from(region).checked_rem(shared.regions.len()) else { return };
        if let Some(word) = shared.regions[place].borrow_mut().get_mut(word) {
            *word = value.value();
        }
        self.delivered.iter_mut().for_each(|delivered| delivered.is_lie = true);
    }
}

/// Receives a frame and reads all of it; its length, if there was one.
fn receive(rx: &mut dyn Receive, bytes: &mut [u8]) -> Result<Option<usize>, RxError> {
    let Some(mut frame) = rx.poll()? else { return Ok(None) };
    let length = frame.copy_out(bytes);
    assert!(length <= MAX_FRAME_BYTES && length == frame.len());
    for index in 0..=length.div_ceil(8) {
        assert_eq!(frame.word(index).is_some(), index * 8 < length);
    }
    Ok(Some(length))
}

fn window(link: &Scripted, queue: u32) -> Vec<u64> {
    link.0.borrow().windows[&queue].borrow().clone()
}

fn padded_words(frame: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    frame.chunks(8).map(word).collect()
}

/// A message of this frame starts at a line: its length, then its words; a word equal to the blank is escaped.
fn check_message(window: &[u64], start: u64, frame: &[u8]) {
    let at = |index: usize| window[(start as usize * 8 + index) % window.len()];
    let (blank, words) = (blank_from_random(0), padded_words(frame));
    assert_eq!(at(0) >> header::LENGTH_BYTES_LSB & header::LENGTH_BYTES_MASK, frame.len() as u64);
    for (index, word) in (1..).zip(&words) {
        assert!(
            at(index) != blank && (*word == blank || at(index) == *word),
            "word {index}: {:#x}",
            at(index)
        );
    }
    (words.len() + 1..lines_of(frame.len() as u32) as usize * 8).for_each(|index| assert_eq!(at(index), 0));
}

/// The lines are the frame's words and then signatures, one at least.
fn check_lines(window: &[u64], start: u64, end: u64, frame: &[u8]) {
    let words = padded_words(frame);
    let stored = (end - start) as usize * 8;
    assert!(words.len() < stored && stored <= words.len() + 8);
    for index in 0..stored {
        let expected = words.get(index).copied().unwrap_or(KPIO_EOP_DEFAULT);
        assert_eq!(window[(start as usize * 8 + index) % window.len()], expected, "word {index}");
    }
}

/// The newest descriptor names memory of the queue, outside the ring, in which the frame lies; its doorbell rang.
fn check_descriptor(opened: &Opened<TxDescriptor<Memory, Bell>>, link: &Scripted, frame: &[u8]) {
    let slot = ((opened.half.posted() - 1) % ENTRIES) as usize;
    let (address, length) = (opened.word(8 + slot * 2), opened.word(9 + slot * 2) as u32 as usize);
    let (first, end) = ((64 + ENTRIES * 16) as usize, opened.words.borrow().len() * 8);
    let offset = address.wrapping_sub(opened.address) as usize;
    assert!(length == frame.len() && offset >= first && offset.is_multiple_of(8) && offset + length <= end);
    let found = (0..frame.len().div_ceil(8)).map(|word| opened.word(offset / 8 + word));
    let bytes: Vec<u8> = found.flat_map(u64::to_le_bytes).collect();
    assert_eq!(&bytes[..length], frame);
    let doorbell = regs::DOORBELL + opened.queue * regs::DOORBELL_STRIDE + regs::doorbell::TX_TAIL;
    assert_eq!(link.0.borrow().rings[&doorbell].0, opened.half.posted());
}
