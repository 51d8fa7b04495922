//! A port of a NIC: frames out, frames in.

use std::time::{Duration, Instant};

use beeline_contract_link::Link;
use beeline_domain::{Armed, Event, Source, listen_all};
use beeline_driver::{
    Choice, OnSendHalf, Port, PortConfig, PortState, Progress, QueueHalf, Receive, RxRing, RxRingConfig,
    Stopped, Transmit,
};
use beeline_link_shm::{ShmDoorbell, ShmLink, ShmMemory};
use beeline_wait::{Awake, Wait, WaitPolicy, Waiter};

use crate::port_options::PortOptions;
use crate::waiting::Waiting;
use crate::{Flushed, Frame, PortError, PortRecvError, PortSendError, Sent, Taken};

/// The queue of the port that is used, for both directions.
const QUEUE: u32 = 0;

/// One port of a NIC with a transmit and a receive queue. Made by [`crate::Domain::port`]; dropping it closes the port.
///
/// `Send`, not `Sync`: one thread at a time uses it. Frames are Ethernet without FCS, at least 14 bytes. Whatever the interface, no frame is lost between program and
/// NIC; between ports the NIC decides.
pub struct NicPort {
    parts: Parts,
    waiting: Waiting,
}

/// What a look of a waiting port needs.
struct Parts {
    port: Port<ShmLink>,
    tx: Box<dyn Transmit + Send>,
    rx: RxRing<ShmMemory, ShmDoorbell>,
}

/// The time that opening a port has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    started: Instant,
    timeout: Duration,
}

impl Opening {
    pub(crate) fn begin(timeout: Duration) -> Self {
        Opening { started: Instant::now(), timeout }
    }

    pub(crate) fn left(self) -> Duration {
        self.timeout.saturating_sub(self.started.elapsed())
    }

    fn elapsed_ns(self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// `None` where the clock does not go so far.
    fn deadline(self) -> Option<Instant> {
        self.started.checked_add(self.timeout)
    }

    fn timed_out(self) -> PortError {
        PortError::TimedOut { waited: self.timeout }
    }
}

impl NicPort {
    /// Brings the device up and opens its queue, in the time that is left.
    pub(crate) fn bring_up(link: ShmLink, options: PortOptions, opening: Opening) -> Result<Self, PortError> {
        let sleeper = link.sleeper();
        // No answer has a time of its own: all of them together have what opening has.
        let config = PortConfig { answer_timeout_ns: u64::MAX, ..PortConfig::default() };
        let mut port = Port::new(link, config);
        let mut waiting = Waiting { policy: options.wait.sleep(None), sleeper: None };
        let is_up = waiting.wait(
            &mut port,
            opening.deadline(),
            |port| Ok::<_, PortError>(port.poll(opening.elapsed_ns())? == PortState::Ready),
            |port| port.link().is_device_gone(),
        )?;
        if !is_up {
            return Err(opening.timed_out());
        }
        let random = getrandom::u64().map_err(|error| PortError::NoRandom { source: error.into() })?;
        let rx = port.rx_ring(QUEUE, RxRingConfig::default())?;
        let choice = Choice::of(options.interface, random);
        let (tx, rx) = choice.send_half(
            &mut port,
            |port| *port,
            QUEUE,
            OpenPair { rx, opening, wait: waiting.policy },
        )??;
        let waiting = Waiting { policy: options.wait, sleeper };
        Ok(NicPort { parts: Parts { port, tx, rx }, waiting })
    }

    /// The port's Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        self.parts.port.mac()
    }

    /// The longest frame in bytes.
    pub fn max_frame_bytes(&self) -> usize {
        self.parts.tx.max_frame_bytes()
    }

    /// Sends a frame, waiting for room.
    ///
    /// # Errors
    /// The frame cannot be sent, or the NIC is gone or faulty.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), PortSendError> {
        let look = |parts: &mut Parts| Ok(parts.tx.try_send(frame)? == Sent::Sent);
        self.waiting.wait(&mut self.parts, None, look, Parts::is_gone).map(drop)
    }

    /// Sends a frame if there is room: [`Sent::Full`] when there is none, and nothing was sent. Never waits.
    ///
    /// # Errors
    /// The frame cannot be sent, or the NIC is faulty.
    #[inline]
    pub fn try_send(&mut self, frame: &[u8]) -> Result<Sent, PortSendError> {
        Ok(self.parts.tx.try_send(frame)?)
    }

    /// Sends as many of the frames as there is room for, from the first on, sharing lines or doorbells. Never waits.
    ///
    /// # Errors
    /// The first frame cannot be sent, or the NIC is faulty; a later bad frame ends the burst before it.
    #[inline]
    pub fn send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, PortSendError> {
        Ok(self.parts.tx.try_send_burst(frames)?)
    }

    /// Waits until the NIC has taken everything sent, for at most `timeout`. Dropping the port loses what it has not taken.
    ///
    /// # Errors
    /// As [`NicPort::send`].
    pub fn flush(&mut self, timeout: Duration) -> Result<Flushed, PortSendError> {
        let look = |parts: &mut Parts| {
            parts.tx.progress()?;
            Ok(parts.tx.is_idle())
        };
        let deadline = Instant::now().checked_add(timeout);
        self.waiting.wait(&mut self.parts, deadline, look, Parts::is_gone).map(Flushed::when)
    }

    /// The next frame, waited for. Dropping it frees its place.
    ///
    /// # Errors
    /// The NIC is gone or faulty.
    pub fn recv(&mut self) -> Result<Frame<'_>, PortRecvError> {
        let frame = self.recv_until(None)?;
        Ok(frame.expect("without a deadline it waits until there is one"))
    }

    /// As [`NicPort::recv`], for at most `timeout`: `None` when nothing came.
    ///
    /// # Errors
    /// As [`NicPort::recv`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Frame<'_>>, PortRecvError> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// The next frame if it is there. Never waits, never reads the device.
    ///
    /// # Errors
    /// The NIC is faulty, or gone and everything it gave was received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<Frame<'_>>, PortRecvError> {
        // In this order: what the NIC stored before it went is visible to a look after it is known to be gone.
        if self.parts.is_gone() && self.parts.rx.wants_interrupt()? {
            return Err(PortRecvError::NicGone);
        }
        Ok(self.parts.rx.poll()?)
    }

    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<Option<Frame<'_>>, PortRecvError> {
        // Looking takes nothing, so that the frame can be handed out after the wait.
        let look = |parts: &mut Parts| Ok::<_, PortRecvError>(!parts.rx.wants_interrupt()?);
        self.waiting.wait(&mut self.parts, deadline, look, Parts::is_gone)?;
        Ok(self.parts.rx.poll()?)
    }
}

/// Ready while a frame or the end of the NIC may be there for [`NicPort::try_recv`].
impl Source for NicPort {
    fn listen(&mut self, event: &Event) -> Armed {
        // A device that wakes nobody has to be polled.
        let Some(sleeper) = &mut self.waiting.sleeper else { return Armed::Ready };
        sleeper.announce(event);
        listen_all([&*sleeper]);
        let is_idle = matches!(self.parts.rx.wants_interrupt(), Ok(true)) && !self.parts.is_gone();
        if is_idle { Armed::Wait } else { Armed::Ready }
    }

    fn unlisten(&mut self) {
        if let Some(sleeper) = &mut self.waiting.sleeper {
            sleeper.unlisten();
        }
    }
}

impl Parts {
    fn is_gone(&mut self) -> bool {
        self.port.link().is_device_gone()
    }
}

impl core::fmt::Debug for NicPort {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("NicPort").field("mac", &self.mac()).finish_non_exhaustive()
    }
}

/// Both halves of an open queue.
type Halves = (Box<dyn Transmit + Send>, RxRing<ShmMemory, ShmDoorbell>);

/// Opens the chosen transmit half together with a receive half.
struct OpenPair {
    rx: Stopped<RxRing<ShmMemory, ShmDoorbell>>,
    opening: Opening,
    wait: WaitPolicy,
}

impl OnSendHalf<&mut Port<ShmLink>> for OpenPair {
    type Output = Result<Halves, PortError>;

    fn run<T: Transmit + QueueHalf + Send + 'static>(
        self,
        port: &mut Port<ShmLink>,
        tx: Stopped<T>,
    ) -> Result<Halves, PortError> {
        let mut pending = Some(port.open(tx.with(self.rx)?));
        let opened = Waiter::new(&self.wait, &mut Awake, self.opening.deadline()).wait(|_| {
            port.poll(self.opening.elapsed_ns())?;
            let under_way = pending.take().expect("a queue is either under way or was returned");
            match port.finish(under_way)? {
                Progress::Done(halves) => Ok(Some(halves)),
                Progress::Pending(again) => {
                    pending = Some(again);
                    Ok::<_, PortError>(None)
                }
            }
        })?;
        let (tx, rx) = opened.ok_or_else(|| self.opening.timed_out())?;
        Ok((Box::new(tx), rx))
    }
}
