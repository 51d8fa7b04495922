//! A port of a NIC process, as a driver sees it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use beeline_contract_device::Device;
use beeline_contract_link::{Evidence, Link, LinkError, LinkKind, NoReads, RegisterRead};
use beeline_domain::{DEFAULT_TIMEOUT, Domain, MemorySleeper, Peer};
use beeline_mmio::{Flag, MemoryOptions, Region, SharedMemory, StoreKernel, Word};
use beeline_spec::LINE_BYTES;
use beeline_spec::formats::{port_closed, port_host_memory as host};
use beeline_spec::header::MAX_PAYLOAD_BYTES;

use super::channel::RegisterChannel;
use super::connection::{Requests, Unanswered};
use super::memory::{Dropped, ShmMemory};
use super::window::{NicWaker, ShmDoorbell, ShmWindow};
use crate::error::{ConnectError, ControlError};
use crate::event::EventSender;
use crate::layout::{self, HOST_BYTES, region_address};
use crate::messages::{Answer, Request, VERSION, to_bytes};
use crate::{DevicePort, PortConfig, PortControl};

/// Granularity of device-visible memory.
const PAGE_BYTES: usize = 4096;
/// Most lines of a window, 16 MiB: the longest message that a header can name. A NIC that says more is not believed.
const MAX_WINDOW_LINES: u32 = (MAX_PAYLOAD_BYTES + 1) / LINE_BYTES as u32;

/// How a host opens a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShmOptions {
    /// Name under which the NIC process offers its ports.
    pub service: String,
    /// How lines leave the core for windows opened from now on.
    pub kernel: StoreKernel,
    /// How device-visible memory is backed.
    pub memory: MemoryOptions,
    /// Whether every frame that the port sends shall come back to it: one program can then measure a round trip.
    pub loop_back: bool,
}

impl Default for ShmOptions {
    fn default() -> Self {
        ShmOptions {
            service: "nic".into(),
            kernel: StoreKernel::Cached,
            memory: MemoryOptions::default(),
            loop_back: false,
        }
    }
}

/// A link to one port of a NIC process. Dropping it closes the port.
#[derive(Debug)]
pub struct ShmLink {
    requests: Requests,
    kernel: StoreKernel,
    memory: MemoryOptions,
    queues: u32,
    device_region: Region,
    host_region: Region,
    channel: RegisterChannel,
    waker: NicWaker,
    closed: Word,
    /// Which windows have a sender.
    in_use: Vec<Arc<AtomicBool>>,
    dropped: Arc<Dropped>,
}

impl ShmLink {
    /// Opens a port of the NIC process that offers `options.service` in `domain`, which has [`DEFAULT_TIMEOUT`] to answer.
    ///
    /// # Errors
    /// Nobody offers it, it refuses, or memory cannot be had; the text says which and what to do.
    pub fn connect(domain: &Domain, options: &ShmOptions) -> Result<Self, ConnectError> {
        Self::connect_within(domain, options, DEFAULT_TIMEOUT)
    }

    /// As [`ShmLink::connect`], but the NIC process has `timeout` to answer.
    ///
    /// # Errors
    /// As [`ShmLink::connect`].
    pub fn connect_within(
        domain: &Domain,
        options: &ShmOptions,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        let host_memory = SharedMemory::create("beeline-host", HOST_BYTES, options.memory)?;
        // So that a NIC process may sleep without our senders fencing; where it fails we fence (`NicWaker`).
        if let Err(error) = beeline_mmio::membarrier::register() {
            tracing::debug!("no membarrier: {error}; stores are fenced before a sleeping NIC is looked for");
        }
        let open = to_bytes(&Request::Open { version: VERSION, loop_back: options.loop_back });
        let (connection, reply) = domain
            .connect_within(&options.service, &open, &[host_memory.fd()], timeout)
            .map_err(|source| ConnectError::Rendezvous { service: options.service.clone(), source })?;
        let answer = serde_json::from_slice(&reply.payload).map_err(|error| ConnectError::Answer {
            expected: "the opening of a port",
            found: error.to_string(),
        })?;
        Self::opened(Requests::Domain(Arc::new(connection)), host_memory, answer, reply.fds, options)
    }

    /// Both halves in one process, for tests and simulations of a NIC on another thread. There is nobody to wake, so
    /// both sides poll.
    ///
    /// # Errors
    /// As [`PortControl::open`].
    pub fn pair<D: Device>(
        device: D,
        config: &PortConfig,
        options: &ShmOptions,
    ) -> Result<(Self, DevicePort<D>), ControlError> {
        let host_memory = SharedMemory::create("beeline-host", HOST_BYTES, options.memory)?;
        let open = to_bytes(&Request::Open { version: VERSION, loop_back: options.loop_back });
        let fd = host_memory.fd().try_clone_to_owned();
        let fd = fd.map_err(|error| ControlError::Closed(error.to_string()))?;
        let (control, port, reply) = PortControl::open(device, config, None, &open, vec![fd])?;
        let answer =
            serde_json::from_slice(&reply.payload).map_err(|e| ControlError::Garbage(e.to_string()))?;
        let requests = Requests::Pair(Arc::new(Mutex::new(control)));
        let link = Self::opened(requests, host_memory, answer, reply.fds, options);
        Ok((link.map_err(|error| ControlError::Device(error.to_string()))?, port))
    }

    fn opened(
        requests: Requests,
        host_memory: SharedMemory,
        answer: Answer,
        fds: Vec<OwnedFd>,
        options: &ShmOptions,
    ) -> Result<Self, ConnectError> {
        let wrong = |found: String| ConnectError::Answer { expected: "the opening of a port", found };
        let Answer::Opened { queues } = answer else { return Err(wrong(format!("{answer:?}"))) };
        let fds: [OwnedFd; 2] =
            fds.try_into().map_err(|fds: Vec<_>| wrong(format!("{} descriptors", fds.len())))?;
        if !(1..=beeline_spec::regs::QUEUE_COUNT).contains(&queues) {
            return Err(wrong(format!("a port of {queues} queues")));
        }
        let [device_fd, event] = fds;
        let event = EventSender::from_fd(event).map_err(wrong)?;
        let device_region = SharedMemory::from_fd(device_fd, layout::device_bytes(queues))?.map()?;
        let host_region = host_memory.map()?;
        let waker = NicWaker {
            waiting: host_region.flag(host::NIC_WAITING_OFFSET),
            event: Arc::new(event),
            needs_fence: requests.peer().is_some_and(Peer::needs_full_fence),
        };
        Ok(ShmLink {
            kernel: options.kernel,
            memory: options.memory,
            queues,
            channel: RegisterChannel::new(&device_region, &host_region),
            waker,
            closed: host_region.word(host::CLOSED_OFFSET),
            in_use: (0..queues).map(|_| Arc::new(AtomicBool::new(false))).collect(),
            dropped: Arc::new(Dropped::new()),
            requests,
            device_region,
            host_region,
        })
    }

    /// Queues of the port.
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Chooses how lines leave the core for windows opened from now on.
    pub fn set_kernel(&mut self, kernel: StoreKernel) {
        self.kernel = kernel;
    }

    /// The NIC process; `None` for a pair.
    pub fn peer(&self) -> Option<&Peer> {
        self.requests.peer()
    }

    /// The futex word on which this host sleeps for frames, credits or interrupts.
    pub fn waiting_flag(&self) -> Flag {
        self.host_region.flag(host::HOST_WAITING_OFFSET)
    }

    /// A way to sleep until the device has written to this host's memory; `None` for a pair, which polls. One thread
    /// of a port may sleep at a time.
    pub fn sleeper(&self) -> Option<MemorySleeper> {
        Some(MemorySleeper::new(self.waiting_flag(), self.requests.peer()?))
    }

    /// Interrupts raised so far. Relaxed.
    pub fn interrupts(&self) -> u64 {
        self.host_region.word(host::INTERRUPTS_OFFSET).load()
    }

    fn check(&self) -> Result<(), LinkError> {
        if self.is_device_gone() { Err(LinkError::DeviceGone) } else { Ok(()) }
    }

    fn ask(
        &self,
        request: &Request,
        fds: &[std::os::fd::BorrowedFd<'_>],
        what: &'static str,
    ) -> Result<(Answer, Vec<OwnedFd>), LinkError> {
        self.requests.call(request, fds).map_err(|error| match error {
            Unanswered::Gone => LinkError::DeviceGone,
            Unanswered::Refused(reason) => LinkError::Refused { what, reason },
        })
    }

    /// Tells the NIC process about regions that were dropped. One that it does not release is told again next time.
    fn release_dropped(&self) -> Result<(), LinkError> {
        // No lock is held while it waits for the answer: whoever drops memory must not wait for the NIC.
        while let Some(region) = self.dropped.pop() {
            if let Err(error) = self.ask(&Request::Release { region }, &[], "the release of memory") {
                self.dropped.push(region);
                return Err(error);
            }
        }
        Ok(())
    }

    fn new_region(&self, bytes: usize) -> Result<(Region, u32), LinkError> {
        let no_memory = |error| {
            tracing::warn!("no memory for the device: {error}");
            LinkError::NoMemory(bytes)
        };
        let memory = SharedMemory::create("beeline-dma", bytes, self.memory).map_err(no_memory)?;
        let mapped = memory.map().map_err(no_memory)?;
        let request = Request::Memory { bytes: bytes as u64 };
        match self.ask(&request, &[memory.fd().as_fd()], MEMORY)? {
            (Answer::Region { region }, _) => Ok((mapped, region)),
            (other, fds) => Err(unsound(MEMORY, &other, fds.len())),
        }
    }
}

/// What a window and memory are called in errors.
const WINDOW: &str = "a window";
const MEMORY: &str = "device-visible memory";

fn unsound(what: &'static str, answer: &Answer, descriptors: usize) -> LinkError {
    LinkError::Unsound { what, found: format!("{answer:?} with {descriptors} descriptors") }
}

/// Maps the window that a NIC process passed, and says how many lines it has. Its word is not trusted: pages are present
/// once they are mapped, so an answer without bounds would be as much memory as it likes.
fn map_window(answer: Answer, mut fds: Vec<OwnedFd>) -> Result<(Region, u32), LinkError> {
    let (lines, fd) = match (&answer, fds.len()) {
        (Answer::Window { lines }, 1) => (*lines, fds.pop()),
        _ => return Err(unsound(WINDOW, &answer, fds.len())),
    };
    let is_sound = lines.is_power_of_two() && (2..=MAX_WINDOW_LINES).contains(&lines);
    let Some(fd) = fd.filter(|_| is_sound) else { return Err(unsound(WINDOW, &answer, 1)) };
    let region = SharedMemory::from_fd(fd, lines as usize * LINE_BYTES).and_then(|memory| memory.map());
    let region = region.map_err(|error| LinkError::Unsound { what: WINDOW, found: error.to_string() })?;
    Ok((region, lines))
}

impl LinkKind for ShmLink {
    const EVIDENCE: Evidence = Evidence::Kernel;
}

impl Link for ShmLink {
    type Window = ShmWindow;
    type Memory = ShmMemory;
    type Doorbell = ShmDoorbell;
    /// A load of memory cannot be held by a device.
    type Reads = NoReads;

    fn window(&mut self, queue: u32) -> Result<ShmWindow, LinkError> {
        self.check()?;
        let in_use = self.in_use.get(queue as usize).ok_or(LinkError::NoSuchQueue(queue, self.queues))?;
        // Acquire: the former sender's stores are over; pairs with the drop of its window.
        if in_use.swap(true, Ordering::Acquire) {
            return Err(LinkError::WindowTaken(queue));
        }
        let in_use = Arc::clone(in_use);
        let request = Request::Window { queue, is_cached: self.kernel == StoreKernel::Cached };
        match self.ask(&request, &[], WINDOW).and_then(|(answer, fds)| map_window(answer, fds)) {
            Ok((region, lines)) => {
                let store = region.store_window(0, lines, self.kernel);
                Ok(ShmWindow { store, waker: self.waker.clone(), in_use })
            }
            Err(error) => {
                in_use.store(false, Ordering::Release);
                Err(error)
            }
        }
    }

    fn memory(&mut self, bytes: usize) -> Result<ShmMemory, LinkError> {
        self.check()?;
        self.release_dropped()?;
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE_BYTES).ok_or(LinkError::NoMemory(bytes))?;
        let (region, number) = self.new_region(bytes)?;
        let region = region.dma_memory(0, bytes, region_address(number));
        let (dropped, waker) = (Arc::clone(&self.dropped), self.waker.clone());
        Ok(ShmMemory { region, number, dropped, waker })
    }

    fn doorbell(&mut self, offset_bytes: u32) -> Result<ShmDoorbell, LinkError> {
        self.check()?;
        let place = layout::doorbell_place(offset_bytes, self.queues).ok_or(LinkError::NotExpressible)?;
        self.ask(&Request::Doorbell { offset_bytes }, &[], "a doorbell")?;
        Ok(ShmDoorbell { word: self.device_region.word(place), waker: self.waker.clone() })
    }

    fn write_register(&mut self, offset_bytes: u32, value: u64) -> Result<bool, LinkError> {
        self.check()?;
        let is_posted = self.channel.write(offset_bytes, value);
        self.waker.stored();
        Ok(is_posted)
    }

    fn start_read(&mut self, offset_bytes: u32) -> Result<Option<RegisterRead>, LinkError> {
        self.check()?;
        let read = self.channel.read(offset_bytes);
        self.waker.stored();
        Ok(read.map(RegisterRead))
    }

    fn poll_read(&mut self, read: RegisterRead) -> Result<Option<u64>, LinkError> {
        match self.channel.poll_read(read.0) {
            Some(value) => Ok(Some(value)),
            None => self.check().map(|()| None),
        }
    }

    #[inline]
    fn is_device_gone(&self) -> bool {
        !self.requests.is_alive() || self.closed.load() != u64::from(port_closed::OPEN)
    }
}
