//! The slow path of a port: opening it, its windows, doorbells and memory.
//!
//! It runs on a worker of the domain and must not wait for the loop that runs the device: it makes and
//! checks memory, and leaves what it made in a channel that the loop empties before it looks at the next register
//! access of the host. So whatever a host was told is there, is there before the device hears of it. Nothing a host
//! sends is trusted: numbers are bounds-checked, memory must be a sealed memfd of exactly the size it claims. Nor can it
//! outrun the loop: the channel has an end, and memory is counted until the loop has dropped it (`account.rs`).

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use beeline_contract_device::Device;
use beeline_domain::{Peer, Reply, Waker};
use beeline_mmio::{Pace, Region, SharedMemory, StoreKernel, Unpaced, Word};
use beeline_spec::LINE_BYTES;
use beeline_spec::escape::blank_from_random;
use beeline_spec::formats::{port_closed, port_device_memory as device_memory, port_host_memory as host};

use super::DevicePort;
use super::account::{Charge, MemoryAccount};
use super::device_layout::DeviceLayout;
use super::port_config::PortConfig;
use super::port_parts::{HostWords, PortParts, Update};
use super::registers::RegisterServer;
use crate::error::ControlError;
use crate::event::EventReceiver;
use crate::layout::{self, FIRST_REGION, HOST_BYTES, REGISTER_LINES, region_address};
use crate::messages::{Answer, Request, VERSION, to_bytes};

/// Things that a host may open or close before the loop has taken over any of them, and mappings that may be on their way to
/// the loop, or from it to where they are dropped.
const MAX_UPDATES: usize = 512;

/// The side of a port that answers its host's requests.
#[derive(Debug)]
pub struct PortControl {
    layout: DeviceLayout,
    config: PortConfig,
    updates: SyncSender<Update>,
    account: MemoryAccount,
    /// Accounts of its process and user.
    shared_accounts: Vec<MemoryAccount>,
    /// Doorbells and register channel.
    device_region: Region,
    closed: Word,
    /// Numbers of the regions the host has.
    regions: BTreeSet<u32>,
}

impl PortControl {
    /// Opens a port with `device` behind it, as the first message of a connection asks; gives the halves and the
    /// answer to send. `peer` is whom to wake when it sleeps; without it the host polls.
    ///
    /// # Errors
    /// The request is not one to open a port, what came with it cannot be trusted, or memory cannot be had.
    pub fn open<D: Device>(
        mut device: D,
        config: &PortConfig,
        peer: Option<&Peer>,
        request: &[u8],
        mut fds: Vec<OwnedFd>,
    ) -> Result<(PortControl, DevicePort<D>, Reply), ControlError> {
        let Request::Open { version, loop_back } = parse(request)? else {
            return Err(ControlError::Order("this first request"));
        };
        if version != VERSION {
            return Err(ControlError::Version { found: version, expected: VERSION });
        }
        let host_fd = only_descriptor(&mut fds)?;
        let host_region = SharedMemory::from_fd(host_fd, HOST_BYTES)?.map()?;
        let layout = DeviceLayout::read(&mut device)?;
        let device_memory =
            SharedMemory::create("beeline-port", layout::device_bytes(layout.queues), config.memory)?;
        let device_region = device_memory.map()?;
        let channel_blank = random_blank()?;
        let registers = {
            let at = device_memory::REGISTER_CHANNEL_OFFSET;
            device_region.fill(at, REGISTER_LINES as usize * LINE_BYTES, channel_blank);
            let channel = device_region.load_window(at, REGISTER_LINES);
            let taken = host_region.word(host::REGISTERS_TAKEN_OFFSET);
            RegisterServer::new(channel, channel_blank, taken, layout::answers(&host_region))
        };
        let (event, host_event) = EventReceiver::pair()
            .map_err(|errno| ControlError::Descriptor { what: "make an event", errno })?;
        let words = HostWords::new(&host_region);
        let waker = peer.map(|peer| Waker::new(words.host_waiting.clone(), peer));
        let (sender, updates) = sync_channel(MAX_UPDATES);
        let answer = Answer::Opened { queues: layout.queues };
        let reply = Reply { payload: to_bytes(&answer), fds: vec![copy(&device_memory.fd())?, host_event] };
        let control = PortControl {
            layout: layout.clone(),
            config: *config,
            updates: sender,
            account: MemoryAccount::new(config.max_memory_bytes),
            shared_accounts: Vec::new(),
            device_region,
            closed: words.closed.clone(),
            regions: BTreeSet::new(),
        };
        let parts = PortParts { layout, config: *config, registers, words, waker, event, updates, loop_back };
        Ok((control, DevicePort::new(device, parts), reply))
    }

    /// Answers a later request of the host.
    ///
    /// # Errors
    /// The request is garbage, asks for what is not there, or for more than a port may have. The port goes on.
    pub fn request(&mut self, request: &[u8], fds: Vec<OwnedFd>) -> Result<Reply, ControlError> {
        self.request_paced(request, fds, &Unpaced)
    }

    /// As [`PortControl::request`]; `pace` decides when each piece of memory is made, mapped or filled.
    ///
    /// # Errors
    /// As [`PortControl::request`].
    pub fn request_paced(
        &mut self,
        request: &[u8],
        mut fds: Vec<OwnedFd>,
        pace: &dyn Pace,
    ) -> Result<Reply, ControlError> {
        if self.closed.load() != u64::from(port_closed::OPEN) {
            return Err(ControlError::Closed("the NIC process said so before".into()));
        }
        let request = parse(request)?;
        if !matches!(request, Request::Memory { .. }) && !fds.is_empty() {
            return Err(ControlError::Descriptors { found: fds.len(), expected: 0 });
        }
        match request {
            Request::Open { .. } => Err(ControlError::Order("another port on the same connection")),
            Request::Window { queue, is_cached } => self.window(queue, is_cached, pace),
            Request::Doorbell { offset_bytes } => self.doorbell(offset_bytes),
            Request::Memory { bytes } => self.memory(bytes, only_descriptor(&mut fds)?, pace),
            Request::Release { region } => self.release(region),
        }
    }

    fn window(&mut self, queue: u32, is_cached: bool, pace: &dyn Pace) -> Result<Reply, ControlError> {
        let queues = self.layout.queues;
        let lines = self.layout.window_lines.get(queue as usize).copied();
        let lines = lines.ok_or(ControlError::Queue { queue, queues })?;
        // Always fresh memory: stores of a former sender that are still on their way must not land in this window.
        let bytes = lines as usize * LINE_BYTES;
        let charge = self.charge(bytes as u64)?;
        let memory = SharedMemory::create("beeline-window", bytes, self.config.memory)?;
        let region = memory.map_paced(pace)?;
        let blank = random_blank()?;
        region.fill_paced(0, memory.bytes(), blank, pace);
        let fd = copy(&memory.fd())?;
        let kernel = if is_cached { StoreKernel::Cached } else { StoreKernel::Nt8 };
        let port = region.load_window(0, lines).for_sender(kernel);
        self.update(Update::Window { queue, port, charge, blank })?;
        Ok(Reply { payload: to_bytes(&Answer::Window { lines }), fds: vec![fd] })
    }

    /// Charges the port's account for a mapping that is about to be made.
    fn charge(&self, bytes: u64) -> Result<Charge, ControlError> {
        let in_use = self.regions.len() + self.layout.queues as usize;
        if self.account.mappings() as usize >= in_use + MAX_UPDATES {
            return Err(ControlError::Behind { updates: MAX_UPDATES });
        }
        let regions = self.regions.len();
        let mut charge = self.account.charge(bytes, regions)?;
        self.shared_accounts.iter().try_for_each(|account| charge.add(account, regions))?;
        Ok(charge)
    }

    /// Has everything that is mapped from now on charged to these accounts, too, which other ports share.
    pub fn charge_also(&mut self, accounts: Vec<MemoryAccount>) {
        self.shared_accounts = accounts;
    }

    fn doorbell(&mut self, offset_bytes: u32) -> Result<Reply, ControlError> {
        let place = layout::doorbell_place(offset_bytes, self.layout.queues);
        let place = place.ok_or(ControlError::Doorbell { offset_bytes })?;
        self.update(Update::Doorbell { offset_bytes, word: self.device_region.word(place) })?;
        Ok(Reply::new(to_bytes(&Answer::Done)))
    }

    fn memory(&mut self, bytes: u64, fd: OwnedFd, pace: &dyn Pace) -> Result<Reply, ControlError> {
        let regions = self.regions.len();
        if regions >= self.config.max_regions as usize || bytes == 0 || bytes > u64::from(u32::MAX) {
            let (used, limit) = (self.account.used(), self.config.max_memory_bytes);
            return Err(ControlError::TooMuchMemory { asked: bytes, used, limit, regions });
        }
        let charge = self.charge(bytes)?;
        let region = SharedMemory::from_fd(fd, bytes as usize)?.map_paced(pace)?;
        let number = (FIRST_REGION..).find(|number| !self.regions.contains(number));
        let number = number.expect("fewer regions than numbers are registered");
        let memory = region.dma_memory(0, bytes as usize, region_address(number));
        self.update(Update::Region { number, memory, charge })?;
        self.regions.insert(number);
        Ok(Reply::new(to_bytes(&Answer::Region { region: number })))
    }

    fn release(&mut self, region: u32) -> Result<Reply, ControlError> {
        if !self.regions.contains(&region) {
            return Err(ControlError::Region { region });
        }
        self.update(Update::Release { number: region })?;
        self.regions.remove(&region);
        Ok(Reply::new(to_bytes(&Answer::Done)))
    }

    fn update(&self, update: Update) -> Result<(), ControlError> {
        self.updates.try_send(update).map_err(|error| match error {
            TrySendError::Full(_) => ControlError::Behind { updates: MAX_UPDATES },
            TrySendError::Disconnected(_) => ControlError::Closed("the NIC no longer serves it".into()),
        })
    }
}

fn parse(request: &[u8]) -> Result<Request, ControlError> {
    serde_json::from_slice(request).map_err(|error| ControlError::Garbage(error.to_string()))
}

fn only_descriptor(fds: &mut Vec<OwnedFd>) -> Result<OwnedFd, ControlError> {
    let found = fds.len();
    match (fds.pop(), found) {
        (Some(fd), 1) => Ok(fd),
        _ => Err(ControlError::Descriptors { found, expected: 1 }),
    }
}

fn copy(fd: &impl AsFd) -> Result<OwnedFd, ControlError> {
    rustix::io::fcntl_dupfd_cloexec(fd, 0)
        .map_err(|errno| ControlError::Descriptor { what: "copy a descriptor", errno })
}

fn random_blank() -> Result<u64, ControlError> {
    let random = getrandom::u64().map_err(|error| ControlError::Random(error.to_string()))?;
    Ok(blank_from_random(random))
}
