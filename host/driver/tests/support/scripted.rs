//! A link without a device: tests play the device by answering registers and writing to the driver's memory by hand.
#![allow(dead_code, reason = "each test file uses its own part of this module")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use beeline_contract_link::{
    DmaMemory, Doorbell, Evidence, Link, LinkError, LinkKind, ReadPort, RegisterRead, WindowRead,
};
use beeline_contract_memory::{Line, StorePort};
use beeline_driver::{Port, PortConfig, PortState};
use beeline_spec::caps::Capabilities;
use beeline_spec::formats::feature;
use beeline_spec::regs;

/// What the device's hand and the driver share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Values of registers; missing ones read as `default`.
    pub registers: HashMap<u32, u64>,
    pub default: u64,
    /// Reads that are never answered.
    pub silent: bool,
    /// Refuses every other register access at first.
    pub busy: bool,
    turn: bool,
    reads: Vec<u32>,
    pub writes: Vec<(u32, u64)>,
    pub gone: bool,
    /// Each region's words.
    pub regions: Vec<Rc<RefCell<Vec<u64>>>>,
    /// Last value and number of rings by doorbell offset.
    pub rings: HashMap<u32, (u64, u32)>,
    /// Words of the windows as stored.
    pub windows: HashMap<u32, Rc<RefCell<Vec<u64>>>>,
    pub window_lines: u32,
    /// What reads of the windows find.
    pub readable: HashMap<u32, Rc<RefCell<Vec<u64>>>>,
    /// Reads of windows are not answered for now.
    pub holds: bool,
    /// Reads of windows so far.
    pub window_reads: u32,
    pub fences: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Scripted(pub Rc<RefCell<Shared>>);

/// What a sound device says.
pub fn sound_capabilities() -> Capabilities {
    Capabilities {
        reorder_span_lines: Some(64),
        aperture: Some((1 << 22, 1 << 16)),
        queues: Some(4),
        blank: Some(true),
        interfaces: Some(0b1111_1110),
        pool_lines: Some(4096),
        contexts: Some(4),
        max_frame_bytes: Some(1518),
        features: Some(1 << feature::SHARED_NOTIFICATIONS),
    }
}

impl Scripted {
    /// A device that is brought up without complaint and whose queues start and stop at once.
    pub fn sound(window_lines: u32) -> Self {
        Scripted::with(window_lines, &sound_capabilities())
    }

    pub fn with(window_lines: u32, capabilities: &Capabilities) -> Self {
        let link = Scripted::default();
        {
            let mut shared = link.0.borrow_mut();
            shared.window_lines = window_lines;
            let mut words = Vec::new();
            capabilities.write(|word| words.push(word));
            let place = u64::from(regs::CAPABILITIES) | (words.len() as u64 * 8) << 32;
            let set = &mut shared.registers;
            set.insert(regs::MAGIC, u64::from_le_bytes(*b"BEELINE1"));
            set.insert(regs::VERSION, 1);
            set.insert(regs::CAPS, place);
            for (i, word) in words.iter().enumerate() {
                set.insert(regs::CAPABILITIES + 8 * i as u32, *word);
            }
            for queue in 0..4 {
                set.insert(queue_register(queue, regs::queue::WINDOW_LINES), u64::from(window_lines));
            }
        }
        link
    }

    /// The port of a sound device, ready.
    pub fn ready(&self) -> Port<Scripted> {
        let mut port = Port::new(self.clone(), PortConfig::default());
        for now in 0..100 {
            if port.poll(now).expect("a sound device") == PortState::Ready {
                return port;
            }
        }
        panic!("a sound device does not become ready");
    }
}

pub const fn queue_register(queue: u32, offset: u32) -> u32 {
    regs::QUEUE + queue * regs::QUEUE_STRIDE + offset
}

/// Device and queues obey their control registers at once.
fn status(registers: &HashMap<u32, u64>, offset: u32) -> Option<u64> {
    if offset == regs::STATUS {
        return Some(registers.get(&regs::CONTROL).copied().unwrap_or(0) & 1);
    }
    let in_queue = offset.checked_sub(regs::QUEUE)?;
    if in_queue % regs::QUEUE_STRIDE != regs::queue::STATUS || in_queue / regs::QUEUE_STRIDE >= 4 {
        return None;
    }
    let control = registers.get(&(offset - regs::queue::STATUS + regs::queue::CONTROL)).copied().unwrap_or(0);
    Some(control & 0xff01)
}

impl LinkKind for Scripted {
    const EVIDENCE: Evidence = Evidence::OneProcess;
}

impl Link for Scripted {
    type Window = Window;
    type Memory = Memory;
    type Doorbell = Bell;
    type Reads = Reads;

    fn window(&mut self, queue: u32) -> Result<Window, LinkError> {
        let mut shared = self.0.borrow_mut();
        let lines = shared.window_lines;
        let words = Rc::new(RefCell::new(vec![0; lines as usize * 8]));
        shared.windows.insert(queue, Rc::clone(&words));
        Ok(Window { words, lines, shared: Rc::clone(&self.0) })
    }

    fn window_reads(&mut self, queue: u32) -> Result<Reads, LinkError> {
        let mut shared = self.0.borrow_mut();
        let lines = shared.window_lines;
        let words = Rc::clone(
            shared
                .readable
                .entry(queue)
                .or_insert_with(|| Rc::new(RefCell::new(vec![0; lines as usize * 8]))),
        );
        Ok(Reads { words, lines, outstanding: [None; 4], shared: Rc::clone(&self.0) })
    }

    fn memory(&mut self, bytes: usize) -> Result<Memory, LinkError> {
        let words = Rc::new(RefCell::new(vec![0; bytes.div_ceil(8)]));
        let mut shared = self.0.borrow_mut();
        shared.regions.push(Rc::clone(&words));
        Ok(Memory { words, address: (shared.regions.len() as u64) << 32 })
    }

    fn doorbell(&mut self, offset_bytes: u32) -> Result<Bell, LinkError> {
        Ok(Bell { shared: Rc::clone(&self.0), offset_bytes })
    }

    fn write_register(&mut self, offset: u32, value: u64) -> Result<bool, LinkError> {
        let mut shared = self.0.borrow_mut();
        shared.turn = !shared.turn;
        if shared.busy && shared.turn {
            return Ok(false);
        }
        shared.writes.push((offset, value));
        shared.registers.insert(offset, value);
        Ok(true)
    }

    fn start_read(&mut self, offset: u32) -> Result<Option<RegisterRead>, LinkError> {
        let mut shared = self.0.borrow_mut();
        shared.turn = !shared.turn;
        if shared.busy && shared.turn {
            return Ok(None);
        }
        shared.reads.push(offset);
        Ok(Some(RegisterRead((shared.reads.len() - 1) as u16)))
    }

    fn poll_read(&mut self, read: RegisterRead) -> Result<Option<u64>, LinkError> {
        let shared = self.0.borrow();
        if shared.silent {
            return Ok(None);
        }
        let offset = shared.reads[usize::from(read.0)];
        let obedient = status(&shared.registers, offset);
        let told = shared.registers.get(&offset).copied();
        Ok(Some(told.or(obedient).unwrap_or(shared.default)))
    }

    fn is_device_gone(&self) -> bool {
        self.0.borrow().gone
    }
}

#[derive(Debug)]
pub struct Window {
    words: Rc<RefCell<Vec<u64>>>,
    lines: u32,
    shared: Rc<RefCell<Shared>>,
}

impl StorePort for Window {
    fn lines(&self) -> u32 {
        self.lines
    }
    fn store_line(&mut self, line: u32, words: &Line) {
        self.words.borrow_mut()[line as usize * 8..][..8].copy_from_slice(words);
    }
    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        self.words.borrow_mut()[line as usize * 8 + word as usize] = value;
    }
    fn fence(&mut self) {
        self.shared.borrow_mut().fences += 1;
    }
    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}

/// Reads find what the test put there by the time they are looked at.
#[derive(Debug)]
pub struct Reads {
    words: Rc<RefCell<Vec<u64>>>,
    lines: u32,
    /// First word and count.
    outstanding: [Option<(u32, u32)>; 4],
    shared: Rc<RefCell<Shared>>,
}

impl ReadPort for Reads {
    fn lines(&self) -> u32 {
        self.lines
    }
    fn start_read(&mut self, line: u32, first_word: u32, words: u32) -> Option<WindowRead> {
        assert!(line < self.lines && words >= 1 && first_word + words <= 8, "a read of {words} in {line}");
        let index = self.outstanding.iter().position(Option::is_none)?;
        self.outstanding[index] = Some((line * 8 + first_word, words));
        self.shared.borrow_mut().window_reads += 1;
        Some(WindowRead(index as u16))
    }
    fn poll_read(&mut self, read: WindowRead, into: &mut Line) -> bool {
        if self.shared.borrow().holds {
            return false;
        }
        let (first, words) = self.outstanding[usize::from(read.0)].take().expect("the read is outstanding");
        into[..words as usize].copy_from_slice(&self.words.borrow()[first as usize..][..words as usize]);
        true
    }
    fn abandon(&mut self) {
        self.outstanding = [None; 4];
    }
}

/// Memory that panics on an access outside it or off a word, as the contract says.
#[derive(Debug)]
pub struct Memory {
    words: Rc<RefCell<Vec<u64>>>,
    address: u64,
}

impl DmaMemory for Memory {
    fn address(&self) -> u64 {
        self.address
    }
    fn bytes(&self) -> usize {
        self.words.borrow().len() * 8
    }
    fn load(&mut self, at: usize) -> u64 {
        assert!(at.is_multiple_of(8));
        self.words.borrow()[at / 8]
    }
    fn load_acquire(&mut self, at: usize) -> u64 {
        self.load(at)
    }
    fn store(&mut self, at: usize, value: u64) {
        assert!(at.is_multiple_of(8));
        self.words.borrow_mut()[at / 8] = value;
    }
    fn store_release(&mut self, at: usize, value: u64) {
        self.store(at, value);
    }
    fn copy_in(&mut self, at: usize, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            let word = &mut self.words.borrow_mut()[(at + i) / 8];
            let shift = (at + i) % 8 * 8;
            *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
        }
    }
    fn copy_out(&mut self, at: usize, bytes: &mut [u8]) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = (self.words.borrow()[(at + i) / 8] >> ((at + i) % 8 * 8)) as u8;
        }
    }
}

#[derive(Debug)]
pub struct Bell {
    shared: Rc<RefCell<Shared>>,
    offset_bytes: u32,
}

impl Doorbell for Bell {
    fn ring(&mut self, value: u64) {
        let mut shared = self.shared.borrow_mut();
        let ring = shared.rings.entry(self.offset_bytes).or_default();
        *ring = (value, ring.1 + 1);
    }
}
