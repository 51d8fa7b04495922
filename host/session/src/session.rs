//! A port of a NIC, opened and ready: what everything that moves frames starts with.
//!
//! It waits where the driver does not, gives the core away meanwhile, and gives up when the NIC is gone or nothing has
//! happened for [`crate::TIMEOUT`]. To: `host/driver` over `link/shm`.

use std::fmt;
use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig};
use beeline_driver::{
    Choice, OnHalf, Pending, Port, PortConfig, PortState, Progress, QueueHalf, RxRing, RxRingConfig, Stopped,
    Transmit,
};
use beeline_link_shm::{ShmDoorbell, ShmLink, ShmMemory, ShmOptions};
use beeline_mmio::StoreKernel;
use beeline_spec::{Interface, Stores, regs};
use beeline_wait::{Awake, Wait, WaitPolicy, Waiter};
use beeline_window::FencePolicy;

use crate::NicError;

/// The receive half of every session.
pub type Rx = RxRing<ShmMemory, ShmDoorbell>;

/// A queue of the port that a [`Job`] runs on.
const QUEUE: u32 = 0;

/// How long nothing may happen before a measurement gives up.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Gives the core away between two looks, so that a NIC on the same core can answer.
const YIELDING: WaitPolicy = WaitPolicy::new().spins(0).yields(0).sleep(None);

/// How to reach a NIC and how lines leave the core.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Domain of the NIC.
    pub domain: DomainConfig,
    /// The domain's owner, if that is another user; the NIC must allow this one.
    pub owner_uid: Option<u32>,
    /// Name of the NIC.
    pub nic: String,
    /// Store kernel of transmit windows.
    pub kernel: StoreKernel,
    /// How long a NIC that is not there yet is waited for.
    pub timeout: Duration,
}

impl SessionOptions {
    /// Options for a NIC in a domain of this user that is there already.
    pub fn new(domain: DomainConfig, nic: impl Into<String>, kernel: StoreKernel) -> Self {
        SessionOptions { domain, owner_uid: None, nic: nic.into(), kernel, timeout: Duration::ZERO }
    }
}

/// Settings of the transmit queue.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub interface: Interface,
    /// Seed of the ordering adversary, if it is to stand before the window.
    pub adversary: Option<u64>,
    /// Where an `mmio` sender fences; the other interfaces never do.
    pub fences: FencePolicy,
}

impl Queue {
    /// A queue as it is used: no adversary, no fence.
    pub const fn of(interface: Interface) -> Self {
        Queue { interface, adversary: None, fences: FencePolicy::None }
    }
}

/// The store kernel that a figure names when `kernel` was asked for. An interface that needs its lines in order always
/// has the kernel that keeps them so.
pub fn kernel_name(interface: Interface, kernel: StoreKernel) -> &'static str {
    match interface.stores() {
        Stores::AnyOrder => kernel.name(),
        Stores::InOrder => StoreKernel::IN_ORDER.name(),
        Stores::None => "-",
    }
}

/// What is done with an open queue; generic, so that the calls of the hot loop are not through a table.
pub trait Job {
    /// Result of the job.
    type Output;
    /// Why it may fail.
    type Error: From<NicError>;

    /// Runs with both halves of a queue.
    ///
    /// # Errors
    /// The job's own, or those of the session.
    fn run<T: Transmit>(
        self,
        session: &mut Session,
        tx: &mut T,
        rx: &mut Rx,
    ) -> Result<Self::Output, Self::Error>;
}

/// An open port.
pub struct Session {
    port: Port<ShmLink>,
    kernel: StoreKernel,
    /// The domain must outlive the connection: its thread watches the NIC process.
    _domain: Domain,
    started: Instant,
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session").field("mac", &self.port.mac()).finish_non_exhaustive()
    }
}

/// A job, to be run when the half that was chosen has a queue.
struct Open<J>(J);

impl<J: Job> OnHalf<&mut Session> for Open<J> {
    type Output = Result<J::Output, J::Error>;

    fn run<T: Transmit + QueueHalf>(self, session: &mut Session, half: Stopped<T>) -> Self::Output {
        session.run(half, self.0)
    }
}

impl Session {
    /// Connects to the NIC and brings a port up.
    ///
    /// # Errors
    /// No such NIC, or it is not one of ours.
    pub fn open(options: &SessionOptions) -> Result<Self, NicError> {
        let SessionOptions { domain, owner_uid, nic, kernel, timeout } = options.clone();
        let called = Instant::now();
        let opened = match owner_uid {
            Some(owner_uid) => Domain::open_foreign_awaiting(&domain, owner_uid, timeout),
            None => Domain::open(&domain),
        };
        let opened = opened.map_err(|source| {
            let (nic, domain) = (nic.clone(), domain.clone());
            NicError::Domain { nic, domain, owner_uid, source: Box::new(source) }
        })?;
        let options = ShmOptions { service: nic.clone(), kernel, ..ShmOptions::default() };
        let left = timeout.saturating_sub(called.elapsed());
        let link = opened.retry_until_offered(left, |_| ShmLink::connect(&opened, &options));
        let link = link.map_err(|source| {
            let source = Box::new(source);
            NicError::Reach { nic, domain, owner_uid, source }
        })?;
        let port = Port::new(link, PortConfig::default());
        let mut session = Session { port, kernel, _domain: opened, started: Instant::now() };
        session.wait_for("the NIC to come up", |session| {
            let state = session.port.poll(session.now_ns())?;
            Ok((state == PortState::Ready).then_some(()))
        })?;
        Ok(session)
    }

    /// Chooses how lines leave the core in queues opened from now on, where the interface bears any order.
    pub fn set_kernel(&mut self, kernel: StoreKernel) {
        self.kernel = kernel;
    }

    /// The port's Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        self.port.mac()
    }

    /// Whether the NIC process is gone.
    pub fn is_nic_gone(&mut self) -> bool {
        use beeline_contract_link::Link;
        self.port.link().is_device_gone()
    }

    /// Frames that the port has put on the wire since the NIC started, as the device counts them.
    ///
    /// # Errors
    /// As [`Session::counter`].
    pub fn frames_on_the_wire(&mut self) -> Result<u64, NicError> {
        self.counter(regs::counter::TX_FRAMES)
    }

    /// A counter of the device, by its offset in the block of counters. Costs a round trip of the link; counts wrap at
    /// 2^64.
    ///
    /// # Errors
    /// The NIC does not answer.
    pub fn counter(&mut self, offset_bytes: u32) -> Result<u64, NicError> {
        let pending = self.port.read_register(regs::COUNTERS + offset_bytes);
        Ok(self.settle("a counter to be read", pending)?.0)
    }

    /// Opens a queue, runs the job, closes the queue.
    ///
    /// # Errors
    /// The queue cannot be opened, or what the job says.
    pub fn with_queue<J: Job>(&mut self, queue: Queue, job: J) -> Result<J::Output, J::Error> {
        let random = getrandom::u64().map_err(NicError::Random)?;
        let mut choice = Choice { adversary: queue.adversary, ..Choice::of(queue.interface, random) };
        choice.mmio.fence_policy = queue.fences;
        self.port.link().set_kernel(match queue.interface.stores() {
            Stores::InOrder => StoreKernel::IN_ORDER,
            Stores::AnyOrder | Stores::None => self.kernel,
        });
        choice.half(self, |session| &mut session.port, QUEUE, Open(job)).map_err(NicError::Port)?
    }

    fn run<T, J>(&mut self, tx: Stopped<T>, job: J) -> Result<J::Output, J::Error>
    where
        T: Transmit + QueueHalf,
        J: Job,
    {
        let rx = self.port.rx_ring(QUEUE, RxRingConfig::default()).map_err(NicError::Port)?;
        let opening = self.port.open(tx.with(rx).map_err(NicError::Port)?);
        let (mut tx, mut rx) = self.settle("a queue to open", opening)?;
        let output = job.run(self, &mut tx, &mut rx)?;
        let closing = self.port.close((tx, rx));
        let _stopped = self.settle("a queue to close", closing)?;
        Ok(output)
    }

    /// Waits for an operation of the port.
    fn settle<T>(&mut self, what: &str, pending: Pending<T>) -> Result<T, NicError> {
        let mut pending = Some(pending);
        self.wait_for(what, move |session| {
            let now_ns = session.now_ns();
            session.port.poll(now_ns)?;
            let under_way = pending.take().expect("an operation is either under way or was returned");
            match session.port.finish(under_way)? {
                Progress::Done(value) => Ok(Some(value)),
                Progress::Pending(again) => {
                    pending = Some(again);
                    Ok(None)
                }
            }
        })
    }

    /// Polls until there is a value.
    fn wait_for<T>(
        &mut self,
        what: &str,
        mut poll: impl FnMut(&mut Self) -> Result<Option<T>, NicError>,
    ) -> Result<T, NicError> {
        let deadline = Instant::now() + TIMEOUT;
        let found = Waiter::new(&YIELDING, &mut Awake, Some(deadline)).wait(|_| match poll(self)? {
            None if self.is_nic_gone() => Err(NicError::Gone { what: what.to_owned() }),
            found => Ok(found),
        })?;
        found.ok_or_else(|| NicError::TimedOut { seconds: TIMEOUT.as_secs(), what: what.to_owned() })
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}

/// Whether what has been waited for so long can still come.
///
/// # Errors
/// [`NicError::Gone`], [`NicError::TimedOut`].
pub(crate) fn still_makes_sense(session: &mut Session, waited: Duration, what: &str) -> Result<(), NicError> {
    if session.is_nic_gone() {
        return Err(NicError::Gone { what: what.to_owned() });
    }
    if waited > TIMEOUT {
        return Err(NicError::TimedOut { seconds: TIMEOUT.as_secs(), what: what.to_owned() });
    }
    Ok(())
}
