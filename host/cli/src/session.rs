//! A port of a NIC, opened and ready: what every command that moves frames starts with.

use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig};
use beeline_driver::{
    DescriptorConfig, KpioConfig, MmioConfig, Pending, Port, PortConfig, PortState, Progress, RxRing,
    RxRingConfig, Stopped, Transmit,
};
use beeline_link_contract::Adversary;
use beeline_link_shm::{ShmDoorbell, ShmLink, ShmMemory, ShmOptions};
use beeline_mmio::StoreKernel;
use beeline_spec::Interface;

use crate::failure::Failure;

/// The receive half all commands use.
pub type Rx = RxRing<ShmMemory, ShmDoorbell>;

/// How long nothing may happen before a command gives up.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A queue of the port that a [`Job`] runs on.
const QUEUE: u32 = 0;

/// How to reach a NIC and how lines leave the core.
#[derive(Clone, Debug)]
pub struct Place {
    /// Domain of the NIC.
    pub domain: String,
    /// Name of the NIC.
    pub nic: String,
    /// Store kernel of transmit windows.
    pub kernel: StoreKernel,
}

/// How a transmit queue is opened.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// The interface.
    pub interface: Interface,
    /// Seed of the ordering adversary, if it is to stand before the window.
    pub adversary: Option<u64>,
}

/// What is done with an open queue; generic, so that the calls of the hot loop are not through a table.
pub trait Job {
    /// What it yields.
    type Output;

    /// Runs with both halves of a queue.
    ///
    /// # Errors
    /// What a person is to be told.
    fn run<T: Transmit>(
        self,
        session: &mut Session,
        tx: &mut T,
        rx: &mut Rx,
    ) -> Result<Self::Output, Failure>;
}

/// An open port.
pub struct Session {
    port: Port<ShmLink>,
    /// The domain must outlive the connection: its thread watches the NIC process.
    _domain: Domain,
    started: Instant,
}

impl Session {
    /// Connects to the NIC and brings a port up.
    ///
    /// # Errors
    /// No such NIC, or it is not one of ours.
    pub fn open(place: &Place) -> Result<Self, Failure> {
        let config = DomainConfig { root: None, name: place.domain.clone() };
        let domain = Domain::open(&config)
            .map_err(|e| Failure::new(format!("cannot open domain {}", place.domain)).because(e))?;
        let options =
            ShmOptions { service: place.nic.clone(), kernel: place.kernel, ..ShmOptions::default() };
        let link = ShmLink::connect(&domain, &options).map_err(|e| {
            Failure::new(format!("cannot reach a NIC called {} in domain {}", place.nic, place.domain))
                .because(e)
                .remedy(format!("start one: beeline nic --name {} --domain {}", place.nic, place.domain))
        })?;
        let port = Port::new(link, PortConfig::default());
        let mut session = Session { port, _domain: domain, started: Instant::now() };
        session.wait_for("the NIC to come up", |session| {
            let state = session.port.poll(session.now_ns());
            Ok((state.map_err(port_failure)? == PortState::Ready).then_some(()))
        })?;
        Ok(session)
    }

    /// Chooses how lines leave the core in queues opened from now on.
    pub fn set_kernel(&mut self, kernel: StoreKernel) {
        self.port.link().set_kernel(kernel);
    }

    /// The port's Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        self.port.mac()
    }

    /// Whether the NIC process is gone.
    pub fn is_nic_gone(&mut self) -> bool {
        use beeline_link_contract::Link;
        self.port.link().is_device_gone()
    }

    /// Opens a queue, runs the job, closes the queue.
    ///
    /// # Errors
    /// The queue cannot be opened, or what the job says.
    pub fn with_queue<J: Job>(&mut self, queue: Queue, job: J) -> Result<J::Output, Failure> {
        let random = random_word()?;
        let mmio = MmioConfig { random, ..MmioConfig::default() };
        let kpio = KpioConfig { random, ..KpioConfig::default() };
        let port = &mut self.port;
        match (queue.interface, queue.adversary) {
            (Interface::Mmio, None) => {
                let tx = port.mmio(QUEUE, mmio).map_err(port_failure)?;
                self.run(tx, job)
            }
            (Interface::Mmio, Some(seed)) => {
                let wrap = |window, tolerance| Adversary::new(window, tolerance, seed);
                let tx = port.mmio_behind(QUEUE, mmio, wrap).map_err(port_failure)?;
                self.run(tx, job)
            }
            (Interface::Kpio, None) => {
                let tx = port.kpio(QUEUE, kpio).map_err(port_failure)?;
                self.run(tx, job)
            }
            (Interface::Kpio, Some(seed)) => {
                let wrap = |window, tolerance| Adversary::new(window, tolerance, seed);
                let tx = port.kpio_behind(QUEUE, kpio, wrap).map_err(port_failure)?;
                self.run(tx, job)
            }
            (Interface::Descriptor, _) => {
                let tx = port.descriptor(QUEUE, DescriptorConfig::default()).map_err(port_failure)?;
                self.run(tx, job)
            }
        }
    }

    fn run<T, J>(&mut self, tx: Stopped<T>, job: J) -> Result<J::Output, Failure>
    where
        T: Transmit + beeline_driver::QueueHalf,
        J: Job,
    {
        let rx = self.port.rx_ring(QUEUE, RxRingConfig::default()).map_err(port_failure)?;
        let opening = self.port.open(tx.with(rx).map_err(port_failure)?);
        let (mut tx, mut rx) = self.settle("a queue to open", opening)?;
        let output = job.run(self, &mut tx, &mut rx)?;
        let closing = self.port.close((tx, rx));
        let _stopped = self.settle("a queue to close", closing)?;
        Ok(output)
    }

    /// Waits for an operation of the port.
    fn settle<T>(&mut self, what: &str, pending: Pending<T>) -> Result<T, Failure> {
        let mut pending = Some(pending);
        self.wait_for(what, move |session| {
            let now_ns = session.now_ns();
            session.port.poll(now_ns).map_err(port_failure)?;
            let under_way = pending.take().expect("an operation is either under way or was returned");
            match session.port.finish(under_way).map_err(port_failure)? {
                Progress::Done(value) => Ok(Some(value)),
                Progress::Pending(again) => {
                    pending = Some(again);
                    Ok(None)
                }
            }
        })
    }

    /// Polls until there is a value; yields the core between polls, so that a NIC on the same core can answer.
    pub fn wait_for<T>(
        &mut self,
        what: &str,
        mut poll: impl FnMut(&mut Self) -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        loop {
            if let Some(value) = poll(self)? {
                return Ok(value);
            }
            if self.is_nic_gone() {
                return Err(Failure::new(format!("the NIC process ended while waiting for {what}")));
            }
            if start.elapsed() > PATIENCE {
                return Err(Failure::new(format!("waited {} s for {what}", PATIENCE.as_secs())).remedy(
                    "beeline stat shows whether the NIC still counts; beeline doctor what may be wrong",
                ));
            }
            std::thread::yield_now();
        }
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}

/// Counts polls that found nothing, and now and then looks whether waiting still makes sense: cheap enough for a loop
/// whose time is measured.
pub struct Watchdog {
    idle_polls: u32,
    since: Option<Instant>,
}

impl Watchdog {
    /// Nothing waited for yet.
    pub const fn new() -> Self {
        Watchdog { idle_polls: 0, since: None }
    }

    /// Something happened.
    #[inline]
    pub fn pat(&mut self) {
        self.idle_polls = 0;
        self.since = None;
    }

    /// Nothing happened.
    ///
    /// # Errors
    /// For longer than [`PATIENCE`], or the NIC is gone.
    #[inline]
    pub fn idle(&mut self, session: &mut Session, what: &str) -> Result<(), Failure> {
        self.idle_polls += 1;
        if self.idle_polls < 1 << 16 {
            return Ok(());
        }
        self.look(session, what)
    }

    #[cold]
    fn look(&mut self, session: &mut Session, what: &str) -> Result<(), Failure> {
        self.idle_polls = 0;
        if session.is_nic_gone() {
            return Err(Failure::new(format!("the NIC process ended while waiting for {what}")));
        }
        if self.since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return Err(Failure::new(format!("waited {} s for {what}", PATIENCE.as_secs())));
        }
        Ok(())
    }
}

fn port_failure(error: beeline_driver::PortError) -> Failure {
    Failure::new("the port cannot be used").because(error)
}

fn random_word() -> Result<u64, Failure> {
    getrandom::u64().map_err(|e| Failure::new("the kernel gives no random numbers").because(e))
}
