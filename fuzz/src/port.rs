//! A port in shared memory whose host is the fuzzer.
//!
//! The memory that a host makes is made once and cleared for each input: making it costs more than most inputs. The
//! port itself is new every time, so that an input alone decides what happens. Everything the host stores goes through
//! here and is told to [`Known`], which holds the port and the device against it.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use beeline_contract_device::{QueueId, SimTime};
use beeline_domain::Reply;
use beeline_link_shm::{DevicePort, PortConfig, PortControl, Wire, Wired};
use beeline_mmio::{MemoryOptions, Region, SharedMemory};
use beeline_spec::formats::{PORT_REGISTER_LINES, port_device_memory as device, port_host_memory as host};
use beeline_spec::regs;

use crate::device::{LINES, QUEUES, config};
use crate::watched::{Known, Watched};

const CHANNEL_WORDS: usize = PORT_REGISTER_LINES * 8;
/// Bytes of the port's own memory, its doorbells included.
const DEVICE_BYTES: usize = device::BYTES + 4096;
/// Bytes of the memories that the host lends. No page boundary ends the second, so only a check of its size protects
/// what follows it.
pub const LENT_BYTES: [usize; 2] = [32 << 10, 4096 + 72];
/// Turns after which a port that nobody touches has nothing left to do.
const SETTLED: u32 = 4096;

/// A wire that gives every frame back, and now and then is full.
#[derive(Debug, Default)]
pub struct Back {
    /// Frames that it still takes before it is full.
    pub room: Option<u8>,
}

impl Wire for Back {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        match &mut self.room {
            Some(0) => Wired::Full,
            Some(room) => {
                *room -= 1;
                Wired::Back
            }
            None => Wired::Back,
        }
    }
}

/// Memory that the host makes, once.
struct HostMade {
    port: (SharedMemory, Region),
    lent: [(SharedMemory, Region); 2],
}

thread_local! {
    static HOST_MADE: HostMade = HostMade { port: memory(host::BYTES), lent: LENT_BYTES.map(memory) };
}

fn memory(bytes: usize) -> (SharedMemory, Region) {
    let memory = SharedMemory::create("fuzz", bytes, MemoryOptions::default()).expect("memory is to be had");
    let region = memory.map().expect("there is address space");
    region.fill(0, bytes, 0);
    (memory, region)
}

/// A descriptor of memory that was made once, cleared, and where it is mapped.
fn cleared(memory: &(SharedMemory, Region)) -> (OwnedFd, Region) {
    memory.1.fill(0, memory.0.bytes(), 0);
    (memory.0.fd().try_clone_to_owned().expect("a descriptor is to be had"), memory.1.clone())
}

fn region_of(mut reply: Reply, bytes: usize) -> Region {
    let memory = SharedMemory::from_fd(reply.fds.remove(0), bytes).expect("the port made it");
    memory.map().expect("there is address space")
}

/// A port and the memory its host maps.
pub struct Bench {
    control: PortControl,
    pub port: DevicePort<Watched>,
    /// The wire behind it.
    pub wire: Back,
    /// Stores and frames that the checks know of.
    pub known: Rc<RefCell<Known>>,
    host: Region,
    lent: [Region; 2],
    /// Register channel and doorbells, and what the host stored there.
    device: Region,
    device_words: Vec<u64>,
    channel_blank: u64,
    windows: [Option<Region>; QUEUES as usize],
    posted: u32,
    now_ns: u64,
    is_closed: bool,
}

impl Bench {
    /// Opens a port as an honest host does, lends the first memory, and asks for every doorbell to be looked at.
    pub fn new(rx_lossless: bool) -> Self {
        let ((fd, host), lent) =
            HOST_MADE.with(|made| (cleared(&made.port), made.lent.each_ref().map(|lent| cleared(lent).1)));
        let known = Rc::new(RefCell::new(Known::new(&LENT_BYTES)));
        // The opening reads what the device is; that is the port's own doing.
        let nic = Watched::new(config(true, rx_lossless), Rc::clone(&known));
        let port = PortConfig { max_memory_bytes: 128 << 10, max_regions: 4, ..PortConfig::default() };
        let open = br#"{"request":"open","version":1,"loop_back":true}"#;
        let opened = PortControl::open(nic, &port, None, open, vec![fd]).expect("an honest opening");
        let device = region_of(opened.2, DEVICE_BYTES);
        let channel_blank = device.word(device::REGISTER_CHANNEL_OFFSET).load();
        *known.borrow_mut() = Known::new(&LENT_BYTES);
        let mut bench = Bench {
            control: opened.0,
            port: opened.1,
            wire: Back::default(),
            known,
            host,
            lent,
            device,
            device_words: vec![0; DEVICE_BYTES / 8],
            channel_blank,
            windows: [None, None, None],
            posted: 0,
            now_ns: 0,
            is_closed: false,
        };
        bench.port.set_lossless(rx_lossless);
        bench.lend(0, LENT_BYTES[0] as u64);
        for queue in 0..QUEUES {
            for register in [regs::doorbell::TX_TAIL, regs::doorbell::RX_FREED] {
                bench.doorbell(regs::DOORBELL + queue * regs::DOORBELL_STRIDE + register);
            }
        }
        bench
    }

    /// Whether the port is over.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Sends any request; the regions that an honest answer names are known.
    fn ask(&mut self, request: &[u8], fds: Vec<OwnedFd>) -> Option<Reply> {
        let reply = self.control.request(request, fds).ok();
        // As the NIC process does between its turns.
        self.port.apply_updates();
        reply
    }

    /// Sends a request as it comes, without a descriptor. Memory cannot be lent so, and a window or a region that it
    /// names is left alone: what it would change is asked for by the calls below.
    pub fn request(&mut self, request: &[u8]) {
        let text = String::from_utf8_lossy(request);
        if !["window", "release", "\\u"].iter().any(|word| text.contains(word)) {
            self.ask(request, Vec::new());
        }
    }

    /// Asks for a doorbell to be looked at.
    pub fn doorbell(&mut self, offset: u32) {
        let request = format!(r#"{{"request":"doorbell","offset_bytes":{offset}}}"#);
        self.ask(request.as_bytes(), Vec::new());
    }

    /// Lends one of the memories, saying that it has so many bytes.
    pub fn lend(&mut self, which: usize, bytes: u64) {
        let fd = HOST_MADE.with(|made| made.lent[which].0.fd().try_clone_to_owned());
        let request = format!(r#"{{"request":"memory","bytes":{bytes}}}"#);
        let reply = self.ask(request.as_bytes(), vec![fd.expect("a descriptor is to be had")]);
        if reply.is_some() {
            assert_eq!(bytes, LENT_BYTES[which] as u64, "memory of another size was taken");
            // The lowest number that is free.
            let mut known = self.known.borrow_mut();
            let number =
                (1..).find(|number| !known.regions.contains_key(number)).expect("some number is free");
            known.regions.insert(number, which);
        }
    }

    /// Takes a region back.
    pub fn release(&mut self, number: u32) {
        let request = format!(r#"{{"request":"release","region":{number}}}"#);
        if self.is_marked_closed() {
            return;
        }
        let is_done = self.ask(request.as_bytes(), Vec::new()).is_some();
        let was_there = self.known.borrow_mut().regions.remove(&number).is_some();
        assert_eq!(is_done, was_there, "region {number}");
    }

    /// Whether the word that says so says that the port is over; the host may have written it.
    fn is_marked_closed(&self) -> bool {
        self.host.word(host::CLOSED_OFFSET).load() != 0
    }

    /// Opens a queue's window, once more perhaps.
    pub fn reopen(&mut self, queue: u32) {
        let request = format!(r#"{{"request":"window","queue":{queue},"is_cached":true}}"#);
        let Some(reply) = self.ask(request.as_bytes(), Vec::new()) else { return };
        let window = region_of(reply, LINES as usize * 64);
        let mut known = self.known.borrow_mut();
        known.opened(queue);
        known.blanks.push(window.word(0).load());
        self.windows[queue as usize] = Some(window);
    }

    pub fn has_window(&self, queue: u32) -> bool {
        self.windows[queue as usize].is_some()
    }

    /// Stores a word into a window, if the queue has one. `place` counts words from the window's start and wraps.
    pub fn store(&mut self, queue: u32, place: u64, value: u64) {
        let Some(window) = &self.windows[queue as usize] else { return };
        let place = (place % (u64::from(LINES) * 8)) as usize;
        window.copy_in(place * 8, &value.to_le_bytes());
        self.known.borrow_mut().stored(queue, place as u32, value);
    }

    /// Stores a word into the register channel or behind it.
    pub fn store_device(&mut self, word: usize, value: u64) {
        let word = word % self.device_words.len();
        self.device_words[word] = value;
        self.device.copy_in(word * 8, &value.to_le_bytes());
    }

    /// Rings a doorbell.
    pub fn ring(&mut self, queue: u32, is_rx: bool, value: u64) {
        let inside = queue * regs::DOORBELL_STRIDE + if is_rx { regs::doorbell::RX_FREED } else { 0 };
        self.store_device((device::BYTES + inside as usize) / 8, value);
    }

    /// Stores a word into the memory that came with the port.
    pub fn store_host(&mut self, word: usize, value: u64) {
        let word = word % (host::BYTES / 8);
        self.known.borrow_mut().host[word] = value;
        self.host.copy_in(word * 8, &value.to_le_bytes());
    }

    /// Stores bytes into memory made to be lent; what does not fit is left out.
    pub fn store_lent(&mut self, which: usize, at: usize, bytes: &[u8]) {
        let at = at % LENT_BYTES[which];
        let bytes = &bytes[..bytes.len().min(LENT_BYTES[which] - at)];
        self.lent[which].copy_in(at, bytes);
        self.known.borrow_mut().lent[which][at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Posts an access: its operation and tag, its offset, its value.
    pub fn post(&mut self, operation: u64, offset: u32, value: u64) {
        let line = self.posted as usize % PORT_REGISTER_LINES * 8;
        let head = u64::from(offset) | operation << 32;
        for (word, value) in [head, value & 0xffff_ffff, value >> 32, 0, 0, 0, 0, 0].into_iter().enumerate() {
            self.store_device(line + word, value);
        }
        self.posted += 1;
        // Never more than the channel holds, or an honest access would be garbage.
        if self.posted.is_multiple_of(8) {
            self.turns(1, 0);
        }
    }

    /// Posts a register write in good form.
    pub fn write(&mut self, offset: u32, value: u64) {
        self.post(1, offset, value);
    }

    /// One turn of the NIC process; whether it did anything.
    fn turn(&mut self, ns: u64) -> bool {
        self.now_ns += ns;
        self.port.time_passed(SimTime::from_ns(self.now_ns));
        let Ok(any) = self.port.poll() else {
            self.close();
            return false;
        };
        any | (self.port.drive(&mut self.wire).wants > 0)
    }

    /// Lets the NIC process run so many turns, `ns` apart, unless it has closed the port.
    pub fn turns(&mut self, count: u8, ns: u64) {
        for _ in 0..count {
            if self.is_closed {
                return;
            }
            self.turn(ns);
        }
    }

    /// Makes room on the wire for so many frames, or for all.
    pub fn set_wire(&mut self, room: Option<u8>) {
        self.wire.room = room;
        self.port.set_wire_ready(room != Some(0));
    }

    /// The host died, or broke a rule: the NIC process closes the port.
    pub fn close(&mut self) {
        assert!(self.port.torn_queues().all(|queue| queue < QUEUES));
        self.port.close(None);
        assert!(self.is_marked_closed() && self.control.request(b"{}", Vec::new()).is_err());
        self.is_closed = true;
    }

    /// Lets everything that is under way end, and compares all memory with what was stored into it.
    pub fn finish(&mut self) {
        if !self.is_closed {
            self.set_wire(None);
            let is_settled = (0..SETTLED).any(|_| !self.turn(0));
            assert!(is_settled, "the port has something to do for ever");
        }
        let known = self.known.borrow();
        if !self.is_closed {
            known.settled();
        }
        assert_eq!(self.port.counters().bad_addresses, known.bad_addresses);
        for (lent, expected) in self.lent.iter().zip(&known.lent) {
            let found = bytes_of(lent, expected.len());
            assert!(found == *expected, "lent memory holds what neither host nor device wrote");
        }
        for (queue, window) in (0..).zip(&self.windows) {
            let Some(window) = window else { continue };
            for (word, value) in (0..).zip(words_of(window, LINES as usize * 64)) {
                assert!(known.may_hold(queue, word, value), "word {word} of window {queue}: {value:#x}");
            }
        }
        self.check_own_memory(&known);
    }

    fn check_own_memory(&self, known: &Known) {
        let told = [
            host::NIC_WAITING_OFFSET,
            host::CLOSED_OFFSET,
            host::REGISTERS_TAKEN_OFFSET,
            host::INTERRUPTS_OFFSET,
        ];
        let mut found = words_of(&self.host, host::BYTES);
        told.iter().for_each(|offset| found[offset / 8] = known.host[offset / 8]);
        assert_eq!(found, known.host, "the host's memory holds what neither host nor device wrote");
        let found = words_of(&self.device, DEVICE_BYTES);
        for (word, (value, stored)) in found.into_iter().zip(&self.device_words).enumerate() {
            // Lines of the channel are blank again once they are taken, doorbells zero when their queue starts.
            let empty = if word < CHANNEL_WORDS { self.channel_blank } else { 0 };
            assert!(value == *stored || value == empty, "word {word} of the port's memory: {value:#x}");
        }
    }
}

fn bytes_of(region: &Region, bytes: usize) -> Vec<u8> {
    let mut found = vec![0; bytes];
    region.copy_out(0, &mut found);
    found
}

fn words_of(region: &Region, bytes: usize) -> Vec<u64> {
    bytes_of(region, bytes).as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}
