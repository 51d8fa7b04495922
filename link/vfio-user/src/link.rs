//! The function as a driver in user space sees it, without a guest: the client of its own socket.
//!
//! Windows and device-visible memory are plain memory. Registers and doorbells are messages, some microseconds each; the same
//! accesses of a guest are trapped by its emulator, which sends the same messages.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_contract_link::{Doorbell, Evidence, Link, LinkError, LinkKind, NoReads, RegisterRead};
use beeline_mmio::{DmaRegion, MemoryOptions, Region, SharedMemory, StoreKernel, StoreWindow};
use beeline_spec::caps::Capabilities;
use beeline_spec::{LINE_BYTES, regs};

use crate::client::{Client, ClientError, access, map, unmap};
use crate::layout::{CONFIG_REGION, REGISTER_REGION, WINDOW_REGION};
use crate::message::command;

/// Granularity of device-visible memory.
const PAGE_BYTES: usize = 4096;
/// Where device-visible memory begins: above what a 32-bit address reaches, so that nobody forgets the upper half.
const FIRST_ADDRESS: u64 = 1 << 32;
/// Calls of [`Link::is_device_gone`] between looks at the connection, which are system calls.
const CALLS_PER_LOOK: u32 = 1024;
/// Memory decoding and bus master, in the command register.
const COMMAND: (u64, [u8; 2]) = (4, [6, 0]);

/// A link to a function that a NIC process serves. Dropping it resets the function.
#[derive(Debug)]
pub struct FunctionLink {
    client: Arc<Mutex<Client>>,
    windows: Region,
    kernel: StoreKernel,
    memory: MemoryOptions,
    stride_bytes: u64,
    /// Lines of each queue's window.
    window_lines: Vec<u32>,
    in_use: Vec<Arc<AtomicBool>>,
    next_address: u64,
    is_gone: AtomicBool,
    calls: AtomicU32,
}

impl FunctionLink {
    /// Connects to the function that is served at `path`, and switches it on as a bus master. Windows leave the core by `kernel`.
    /// The other side must run, because it is asked for its sizes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect(path: &Path, kernel: StoreKernel, memory: MemoryOptions) -> Result<Self, ClientError> {
        let mut client = Client::connect(path)?;
        let (info, mut fds) = client.call(
            WINDOWS,
            command::REGION_INFO,
            &crate::message::words(&[32, 0, WINDOW_REGION, 0, 0, 0, 0, 0]),
            &[],
        )?;
        let unsound =
            |what, found: &dyn std::fmt::Debug| ClientError::Unsound { what, found: format!("{found:?}") };
        let bytes =
            info.get(16..).and_then(|rest| rest.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes));
        let (Some(bytes), Some(fd), true) = (bytes, fds.pop(), fds.is_empty()) else {
            return Err(unsound(WINDOWS, &info));
        };
        let bytes = usize::try_from(bytes).map_err(|_| unsound(WINDOWS, &bytes))?;
        let windows = SharedMemory::from_fd(fd, bytes)?.map()?;
        let mut body = access(COMMAND.0, CONFIG_REGION, 2);
        body.extend(COMMAND.1);
        client.call("its command register", command::REGION_WRITE, &body, &[])?;
        let (stride_bytes, window_lines) = sizes(&mut client, bytes as u64)?;
        Ok(FunctionLink {
            client: Arc::new(Mutex::new(client)),
            windows,
            kernel,
            memory,
            stride_bytes,
            in_use: window_lines.iter().map(|_| Arc::default()).collect(),
            window_lines,
            next_address: FIRST_ADDRESS,
            is_gone: AtomicBool::new(false),
            calls: AtomicU32::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Client> {
        lock(&self.client)
    }

    fn check(&self) -> Result<(), LinkError> {
        // Relaxed: nothing is read by it but that it is time to give up.
        if self.is_gone.load(Ordering::Relaxed) { Err(LinkError::DeviceGone) } else { Ok(()) }
    }

    fn gone<E>(&self) -> impl FnOnce(E) -> LinkError + '_ {
        |_| {
            self.is_gone.store(true, Ordering::Relaxed);
            LinkError::DeviceGone
        }
    }
}

/// What the windows are called in errors.
const WINDOWS: &str = "its windows";

fn lock(client: &Mutex<Client>) -> MutexGuard<'_, Client> {
    client.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the function how many windows it has, how long they are and how far apart. Its word is not trusted: each lies in the BAR.
fn sizes(client: &mut Client, bar_bytes: u64) -> Result<(u64, Vec<u32>), ClientError> {
    let unsound = |found: String| ClientError::Unsound { what: "its capabilities", found };
    let place = read(client, regs::CAPS)?;
    let (offset, bytes) = (place as u32, (place >> 32) as u32);
    let offsets = (offset..offset.saturating_add(bytes.min(4096))).step_by(8);
    let list = offsets.map(|offset| read(client, offset)).collect::<Result<Vec<_>, _>>()?;
    let caps = Capabilities::parse(&list).map_err(|error| unsound(error.to_string()))?;
    let queues = caps.queues.filter(|queues| (1..=regs::QUEUE_COUNT).contains(queues));
    let queues = queues.ok_or_else(|| unsound(format!("{:?} queues", caps.queues)))?;
    let (_, stride) = caps.aperture.ok_or_else(|| unsound("no aperture".to_owned()))?;
    let lines = (0..queues).map(|queue| {
        let lines = read(client, regs::QUEUE + queue * regs::QUEUE_STRIDE + regs::queue::WINDOW_LINES)?;
        let end = stride
            .checked_mul(u64::from(queue))
            .and_then(|at| at.checked_add(lines.checked_mul(LINE_BYTES as u64)?));
        let is_sound = (2..=1 << 18).contains(&lines)
            && lines.is_power_of_two()
            && end.is_some_and(|end| end <= bar_bytes);
        if is_sound { Ok(lines as u32) } else { Err(unsound(format!("a window of {lines} lines"))) }
    });
    Ok((stride, lines.collect::<Result<_, _>>()?))
}

fn read(client: &mut Client, offset_bytes: u32) -> Result<u64, ClientError> {
    let body = access(u64::from(offset_bytes), REGISTER_REGION, 8);
    let (found, _) = client.call("a register", command::REGION_READ, &body, &[])?;
    value(&found).ok_or_else(|| ClientError::Unsound { what: "a register", found: format!("{found:?}") })
}

/// The register in an answer to a read.
fn value(answer: &[u8]) -> Option<u64> {
    answer.get(16..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn posted(client: &mut Client, offset_bytes: u32, value: u64) -> Result<(), crate::socket::Ended> {
    let mut body = access(u64::from(offset_bytes), REGISTER_REGION, 8);
    body.extend(value.to_le_bytes());
    client.post(command::REGION_WRITE, &body)
}

/// Takes memory back from the device when it is dropped, before it is unmapped here.
#[derive(Debug)]
struct Mapped {
    client: Arc<Mutex<Client>>,
    address: u64,
    bytes: u64,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // A connection that has ended has no memory. What the device writes until it has heard of this goes to a mapping of its own.
        let _ = lock(&self.client).post(command::DMA_UNMAP, &unmap(self.address, self.bytes));
    }
}

/// Lets another sender have the window.
#[derive(Debug)]
struct InUse(Arc<AtomicBool>);

impl Drop for InUse {
    fn drop(&mut self) {
        // Release: this sender's stores are before those of the next; pairs with the swap in `FunctionLink::window`.
        self.0.store(false, Ordering::Release);
    }
}

/// A doorbell: a register that is written by a message.
#[derive(Debug)]
pub struct FunctionDoorbell {
    client: Arc<Mutex<Client>>,
    offset_bytes: u32,
}

impl Doorbell for FunctionDoorbell {
    fn ring(&mut self, value: u64) {
        // The message follows every store before it: the system call orders them. A connection that has ended is found by the link.
        let _ = posted(&mut lock(&self.client), self.offset_bytes, value);
    }
}

impl LinkKind for FunctionLink {
    const EVIDENCE: Evidence = Evidence::Kernel;
}

impl Link for FunctionLink {
    type Window = StoreWindow;
    type Memory = DmaRegion;
    type Doorbell = FunctionDoorbell;
    /// A load of memory cannot be held by a device.
    type Reads = NoReads;

    fn window(&mut self, queue: u32) -> Result<StoreWindow, LinkError> {
        self.check()?;
        let queues = self.window_lines.len() as u32;
        let no_queue = LinkError::NoSuchQueue(queue, queues);
        let (lines, in_use) =
            self.window_lines.get(queue as usize).zip(self.in_use.get(queue as usize)).ok_or(no_queue)?;
        // Acquire: the former sender's stores are over; pairs with the drop of its window.
        if in_use.swap(true, Ordering::Acquire) {
            return Err(LinkError::WindowTaken(queue));
        }
        let (offset, bytes) = (u64::from(queue) * self.stride_bytes, *lines as usize * LINE_BYTES);
        let part = self.windows.part(offset as usize, bytes, InUse(Arc::clone(in_use)));
        Ok(part.store_window(0, *lines, self.kernel))
    }

    fn memory(&mut self, bytes: usize) -> Result<DmaRegion, LinkError> {
        self.check()?;
        let no_memory = || LinkError::NoMemory(bytes);
        let rounded = bytes.max(1).checked_next_multiple_of(PAGE_BYTES).ok_or_else(no_memory)?;
        let memory = SharedMemory::create("beeline-dma", rounded, self.memory).map_err(|_| no_memory())?;
        let region = memory.map().map_err(|_| no_memory())?;
        let (address, length) = (self.next_address, rounded as u64);
        let answer =
            self.lock().call(MEMORY, command::DMA_MAP, &map(address, length), &[memory.fd().as_fd()]);
        match answer {
            Ok(_) => {}
            Err(ClientError::Refused { what, errno }) => {
                return Err(LinkError::Refused { what, reason: errno.to_string() });
            }
            Err(error) => return Err(self.gone()(error)),
        }
        // A page between two pieces is nobody's: what runs over the end of one is noticed.
        self.next_address = address + length + PAGE_BYTES as u64;
        let mapped = Mapped { client: Arc::clone(&self.client), address, bytes: length };
        Ok(region.part(0, rounded, mapped).dma_memory(0, rounded, address))
    }

    fn doorbell(&mut self, offset_bytes: u32) -> Result<FunctionDoorbell, LinkError> {
        self.check()?;
        let is_doorbell = offset_bytes.checked_sub(regs::DOORBELL).is_some_and(|inside| {
            inside.is_multiple_of(8) && ((inside / regs::DOORBELL_STRIDE) as usize) < self.window_lines.len()
        });
        if !is_doorbell {
            return Err(LinkError::NotExpressible);
        }
        Ok(FunctionDoorbell { client: Arc::clone(&self.client), offset_bytes })
    }

    fn write_register(&mut self, offset_bytes: u32, value: u64) -> Result<bool, LinkError> {
        self.check()?;
        let written = posted(&mut self.lock(), offset_bytes, value);
        written.map(|()| true).map_err(self.gone())
    }

    fn start_read(&mut self, offset_bytes: u32) -> Result<Option<RegisterRead>, LinkError> {
        self.check()?;
        let started =
            self.lock().start(command::REGION_READ, &access(u64::from(offset_bytes), REGISTER_REGION, 8));
        started.map(|number| Some(RegisterRead(number))).map_err(self.gone())
    }

    fn poll_read(&mut self, read: RegisterRead) -> Result<Option<u64>, LinkError> {
        let answer = self.lock().answer(read.0);
        // What is no register is answered with ones, as by a bus.
        let answer = answer.map_err(self.gone())?;
        Ok(answer.map(|(_, (body, _))| value(&body).unwrap_or(u64::MAX)))
    }

    fn is_device_gone(&self) -> bool {
        // Relaxed: a count of calls, and a flag by which nothing is read.
        if self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(CALLS_PER_LOOK)
            && self.lock().has_ended()
        {
            self.is_gone.store(true, Ordering::Relaxed);
        }
        self.is_gone.load(Ordering::Relaxed)
    }
}

/// What memory is called in errors.
const MEMORY: &str = "device-visible memory";
