//! A device under watch: what a link tells it and what it wants, held against what the host really did.
//!
//! It stands between [`beeline_link_shm::DevicePort`] and the NIC and knows, from the other side, every word the host
//! stored and every byte of memory it lent. So it sees what neither of them can: a word that arrives without having
//! been stored, or twice; an access outside lent memory, or one inside that was refused; an answer that is not what
//! lies there; a frame on the wire that the host never completely wrote. What it expects of memory at the end is
//! compared by `port.rs`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use beeline_contract_device::{
    Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, WatchEnd, WatchTag, Write,
};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::formats::{PORT_ANSWERS, port_host_memory as host, port_register_answer as answer};
use beeline_spec::regs::field::{control, queue_control};
use beeline_spec::regs::{self, queue as r};

use crate::BLANK;
use crate::device::{LINES, MAX_FRAME_BYTES, QUEUES};
use crate::stream::Stream;

/// A word of a window as the host left it.
#[derive(Clone, Copy, Debug)]
struct Stored {
    value: u64,
    /// Whether the store may still arrive.
    is_pending: bool,
}

/// Stores and frames of one queue.
#[derive(Debug, Default)]
pub struct Queue {
    /// Words of its window that the host stored, since the window was opened.
    stored: Vec<Option<Stored>>,
    arrived: Stream,
    is_enabled: bool,
    is_running: bool,
    /// Whether it takes lines and not messages.
    is_kpio: bool,
    blank: u64,
}

/// What host and device did, told by both.
#[derive(Debug, Default)]
pub struct Known {
    queues: Vec<Queue>,
    is_enabled: bool,
    /// Bytes of each memory that was made to be lent.
    pub lent: Vec<Vec<u8>>,
    /// Which of them is registered under a number.
    pub regions: BTreeMap<u32, usize>,
    /// Words of the memory that the host lent with the port.
    pub host: Vec<u64>,
    /// Every value that a free word may have had.
    pub blanks: Vec<u64>,
    /// DMA accesses that the port must have refused.
    pub bad_addresses: u64,
    reads: BTreeMap<u16, (u64, u32)>,
    watches: BTreeMap<u16, (u64, u64, u32)>,
    /// Data of each read that the device was answered.
    fetched: Vec<Vec<u8>>,
    asked: u64,
    answered: u64,
    is_wire_closed: bool,
    /// Whether a word was written into a window by a register access.
    is_anything_written: bool,
    /// Frames put on the wire.
    pub frames: u64,
}

impl Known {
    /// A port on which nothing has happened, with memories of these sizes to be lent.
    pub fn new(lent_bytes: &[usize]) -> Self {
        Known {
            queues: (0..QUEUES).map(|_| Queue { blank: BLANK, ..Queue::default() }).collect(),
            lent: lent_bytes.iter().map(|bytes| vec![0; *bytes]).collect(),
            host: vec![0; host::BYTES / 8],
            blanks: vec![BLANK, 0],
            ..Known::default()
        }
    }

    /// The queue has a fresh window.
    pub fn opened(&mut self, queue: u32) {
        self.queues[queue as usize].stored = vec![None; LINES as usize * 8];
    }

    /// The host stored a word into the queue's newest window.
    pub fn stored(&mut self, queue: u32, word: u32, value: u64) {
        self.queues[queue as usize].stored[word as usize] = Some(Stored { value, is_pending: true });
    }

    /// Whether a word of the queue's newest window may hold this.
    pub fn may_hold(&self, queue: u32, word: u32, value: u64) -> bool {
        let stored = self.queues[queue as usize].stored[word as usize];
        stored.is_some_and(|stored| stored.value == value) || self.blanks.contains(&value)
    }

    /// Checks what must hold when nothing is in flight.
    pub fn settled(&self) {
        assert_eq!(self.asked, self.answered, "a register read was not answered");
        assert!(self.reads.is_empty(), "DMA reads were not answered: {:?}", self.reads);
    }

    /// The lent memory and offset of an access, if all of it lies in one registered region.
    fn find(&self, address: u64, bytes: usize) -> Option<(usize, usize)> {
        let place = *self.regions.get(&u32::try_from(address >> 32).ok()?)?;
        let offset = (address & 0xffff_ffff) as usize;
        (offset + bytes <= self.lent[place].len()).then_some((place, offset))
    }

    /// A register is about to be written by the host.
    fn register(&mut self, offset: u32, value: u64) {
        let has = |lsb: u32, mask: u64| value >> lsb & mask != 0;
        let inside = offset.wrapping_sub(regs::QUEUE);
        let (queue, register) = ((inside / regs::QUEUE_STRIDE) as usize, inside % regs::QUEUE_STRIDE);
        if offset == regs::CONTROL {
            let is_reset = has(control::RESET_LSB, control::RESET_MASK);
            self.is_enabled = !is_reset && has(control::ENABLE_LSB, control::ENABLE_MASK);
            self.queues.iter_mut().for_each(|queue| queue.is_enabled &= !is_reset);
        } else if offset >= regs::QUEUE && queue < self.queues.len() && register == r::CONTROL {
            self.queues[queue].is_enabled = has(queue_control::ENABLE_LSB, queue_control::ENABLE_MASK);
            let interface = value >> queue_control::IFACE_LSB & queue_control::IFACE_MASK;
            self.queues[queue].is_kpio |= interface == u64::from(beeline_spec::Interface::Kpio.code());
        } else if offset >= regs::QUEUE && queue < self.queues.len() && register == r::BLANK {
            self.queues[queue].blank = value;
            self.blanks.push(value);
        }
        for queue in &mut self.queues {
            let runs = self.is_enabled && queue.is_enabled;
            if runs && !queue.is_running {
                // The window is blank from here on, and positions begin anew.
                queue.stored.iter_mut().flatten().for_each(|stored| stored.is_pending = false);
                queue.arrived.restart();
            }
            queue.is_running = runs;
        }
    }

    /// Words arrived in a window.
    fn line_arrived(&mut self, queue: usize, line: u32, write: &Write<'_>) {
        let queue = &mut self.queues[queue];
        assert!(queue.is_running && write.data.len() == 64, "{write:?}");
        for (word, bytes) in write.data.as_chunks::<8>().0.iter().enumerate() {
            if !write.enables.has(word * 8) {
                continue;
            }
            let (value, place) = (u64::from_le_bytes(*bytes), line as usize * 8 + word);
            match &mut queue.stored[place] {
                Some(stored) if stored.is_pending && stored.value == value => stored.is_pending = false,
                other => {
                    panic!("{value:#x} arrived as word {word} of line {line}, where {other:?} was stored")
                }
            }
            queue.arrived.word(line, word, value);
        }
    }

    fn wanted(&mut self, want: &Want<'_>) {
        match want {
            Want::DmaRead { address, bytes, tag } => {
                assert!((1..=4096).contains(bytes));
                assert_eq!(self.reads.insert(tag.0, (*address, *bytes)), None, "a tag is used twice");
            }
            Want::WatchLine { tag, address, known, bytes } => {
                let watch = (*address, *known, *bytes);
                assert_eq!(self.watches.insert(tag.0, watch), None, "a tag is used twice");
            }
            Want::ForgetLine { tag } => assert!(self.watches.contains_key(&tag.0), "nothing to forget"),
            Want::DmaWrite { address, data } => match self.find(*address, data.len()) {
                Some((place, offset)) => self.lent[place][offset..offset + data.len()].copy_from_slice(data),
                None => self.bad_addresses += 1,
            },
            Want::Transmit { queue, frame } => {
                assert!(!self.is_wire_closed && (14..=MAX_FRAME_BYTES as usize).contains(&frame.len()));
                let state = &mut self.queues[usize::from(queue.0)];
                let was_written = self.is_anything_written
                    || state.arrived.has_frame(frame, state.blank)
                    || state.is_kpio && state.arrived.has_lines(frame)
                    || is_fetched(&self.fetched, frame);
                assert!(
                    was_written,
                    "queue {} puts a frame on the wire that nobody wrote: {frame:x?}",
                    queue.0
                );
                self.frames += 1;
            }
            Want::ReadCompletion { tag, value } => {
                self.answered += 1;
                let entry = (host::ANSWERS_OFFSET + usize::from(tag.0) % PORT_ANSWERS * answer::BYTES) / 8;
                self.host[entry + answer::VALUE_OFFSET / 8] = *value;
                self.host[entry + answer::STAMP_OFFSET / 8] = 1 << 16 | u64::from(tag.0);
            }
            Want::Aborted { .. } => {}
            Want::Interrupt { vector } => assert!(u32::from(*vector) < QUEUES),
        }
    }
}

/// Whether a frame was read from the host's memory, in one piece or in two.
fn is_fetched(fetched: &[Vec<u8>], frame: &[u8]) -> bool {
    let is_piece = |bytes: &[u8]| bytes.is_empty() || fetched.iter().any(|piece| piece == bytes);
    let mut heads = fetched.iter().filter(|piece| !piece.is_empty());
    heads.any(|head| frame.strip_prefix(&head[..]).is_some_and(is_piece))
}

/// The NIC, and who watches it.
#[derive(Debug)]
pub struct Watched {
    nic: Nic,
    known: Rc<RefCell<Known>>,
}

impl Watched {
    /// A NIC that has just been made.
    pub fn new(config: NicConfig, known: Rc<RefCell<Known>>) -> Self {
        Watched { nic: Nic::new(config).expect("the sizes are sound"), known }
    }
}

impl Device for Watched {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        let config = self.nic.config();
        let (base, stride) = (config.aperture_bytes(), config.window_stride_bytes());
        if let Ok(value) = <[u8; 8]>::try_from(write.data) {
            let mut known = self.known.borrow_mut();
            if write.offset_bytes < base {
                known.register(write.offset_bytes as u32, u64::from_le_bytes(value));
            } else {
                // A host may post into a window what it has not stored there: then nobody knows what was written.
                known.is_anything_written = true;
            }
            drop(known);
            return self.nic.write_arrived(write);
        }
        let place = write.offset_bytes.checked_sub(base).map(|place| (place / stride, place % stride));
        let inside = place.filter(|(queue, at)| *queue < u64::from(QUEUES) && *at < u64::from(LINES) * 64);
        let Some((queue, at)) = inside else { panic!("outside the windows: {write:?}") };
        let accept = self.nic.write_arrived(write);
        if accept == Accept::Taken {
            self.known.borrow_mut().line_arrived(queue as usize, at as u32 / 64, &write);
        }
        accept
    }

    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag) {
        self.known.borrow_mut().asked += 1;
        self.nic.read_arrived(offset_bytes, tag);
    }

    fn dma_completed(&mut self, tag: DmaTag, data: Result<&[u8], DmaError>) {
        {
            let mut known = self.known.borrow_mut();
            let (address, bytes) = known.reads.remove(&tag.0).expect("the device asked for it");
            let lies_there = known.find(address, bytes as usize);
            let lies_there =
                lies_there.map(|(place, at)| known.lent[place][at..at + bytes as usize].to_vec());
            assert_eq!(data.ok(), lies_there.as_deref(), "{bytes} bytes at {address:#x}");
            known.bad_addresses += u64::from(lies_there.is_none());
            known.fetched.extend(lies_there);
        }
        self.nic.dma_completed(tag, data);
    }

    fn line_changed(&mut self, tag: WatchTag, data: Result<&[u8], WatchEnd>) {
        {
            let mut known = self.known.borrow_mut();
            let (address, before, bytes) = known.watches.remove(&tag.0).expect("the device watches it");
            let lies_there = known.find(address, bytes as usize);
            let lies_there = lies_there.map(|(place, at)| &known.lent[place][at..at + bytes as usize]);
            match data {
                Err(WatchEnd::Forgotten) => {}
                Err(_) => assert_eq!(lies_there, None, "{bytes} bytes at {address:#x}"),
                Ok(line) => {
                    assert_eq!(Some(line), lies_there, "{bytes} bytes at {address:#x}");
                    assert_ne!(line[..8], before.to_le_bytes(), "nothing has changed at {address:#x}");
                    // A frame that is whole in its entry: as many bytes behind the header as that says.
                    let whole = 8 + usize::from(u16::from_le_bytes([line[0], line[1]]));
                    let whole = line.get(8..whole).map(<[u8]>::to_vec);
                    known.fetched.extend(whole);
                }
            }
        }
        self.nic.line_changed(tag, data);
    }

    fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        self.nic.frame_arrived(frame)
    }

    fn time_passed(&mut self, now: SimTime) {
        self.nic.time_passed(now);
    }

    fn wire_ready(&mut self, ready: bool) {
        self.known.borrow_mut().is_wire_closed = !ready;
        self.nic.wire_ready(ready);
    }

    fn next(&mut self) -> Option<Want<'_>> {
        let want = self.nic.next()?;
        self.known.borrow_mut().wanted(&want);
        Some(want)
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.nic.wake_at()
    }
}
