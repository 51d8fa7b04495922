//! A port from the host's side: its state, its registers, its interrupts.
//!
//! [`Port::poll`] is a non-blocking state machine: it does what the link allows now and says how far it is; waiting is
//! the caller's. Once the device is up (`bring_up.rs`), operations (open, close, recover a queue; read a register) are
//! queued as scripts and finished by ticket. Queues, once open, are independent of the port: they may move to other
//! threads.
//!
//! Not here: frames ([`crate::Transmit`], [`crate::Receive`]), waiting, and what kind of link it is. From: the link's
//! opener. To: `queues.rs`, which opens queues. docs/design.md, decisions 3 and 4; kPIO+WC §III.B for the multiplexer.

mod bring_up;
mod bring_up_state;
pub(crate) mod half;
pub(crate) mod queues;
mod script;
pub(crate) mod settings;
pub(crate) mod status;
mod steps;

use alloc::vec::Vec;

use beeline_contract_link::{Link, LinkError};
use beeline_spec::Interface;
use beeline_spec::caps::Capabilities;
use beeline_spec::regs::{self, field};

use crate::error::PortError;
use crate::port::bring_up_state::BringUp;
use crate::port::script::{Script, Step, Ticket};
use crate::port::settings::Mux;
use crate::port::settings::PortConfig;
use crate::port::steps::{mux_steps, until_active, write};

/// Progress of bring-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Bring-up is in progress.
    Starting,
    /// Queues can be opened; operations may be under way.
    Ready,
}

/// An operation under way that yields a `T`; hand it to [`Port::finish`].
///
/// A dropped one goes on without its result being seen; the memory of the queue in it goes with it.
#[must_use = "an operation's result is had from `Port::finish`"]
#[derive(Debug)]
pub struct Pending<T> {
    ticket: Ticket,
    value: T,
    /// Puts the last value read into the result.
    set: fn(T, u64) -> T,
    /// The next part of an operation that has two.
    then: Option<fn(T, &mut Script) -> Pending<T>>,
}

impl<T> Pending<T> {
    pub(crate) fn new(ticket: Ticket, value: T) -> Self {
        Pending { ticket, value, set: |value, _| value, then: None }
    }

    pub(crate) fn of_value(ticket: Ticket, value: T, set: fn(T, u64) -> T) -> Self {
        Pending { ticket, value, set, then: None }
    }

    pub(crate) fn then(self, next: fn(T, &mut Script) -> Pending<T>) -> Self {
        Pending { then: Some(next), ..self }
    }
}

/// Answer of [`Port::finish`].
#[must_use]
#[derive(Debug)]
pub enum Progress<T> {
    /// Not done: poll the port and try again with this.
    Pending(Pending<T>),
    Done(T),
}

/// A register's value, as an operation's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterValue(pub u64);

/// What kinds of event may interrupt the host; bits of the interrupt mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// A transmit completion was written.
    pub tx_completion: bool,
    /// A frame was received.
    pub rx_frame: bool,
    /// A queue failed or was quarantined.
    pub queue_failed: bool,
}

/// One port of a NIC on link `L`.
#[derive(Debug)]
pub struct Port<L> {
    pub(crate) link: L,
    pub(crate) script: Script,
    pub(crate) caps: Capabilities,
    pub(crate) config: PortConfig,
    pub(crate) bring_up: BringUp,
    /// The capability list as far as it was read.
    pub(crate) caps_words: Vec<u64>,
    pub(crate) mac: u64,
}

impl<L: Link> Port<L> {
    /// A port that has not been looked at yet; [`Port::poll`] brings it up.
    pub fn new(link: L, config: PortConfig) -> Self {
        Port {
            link,
            script: Script::new(config.answer_timeout_ns),
            caps: Capabilities::default(),
            config,
            bring_up: BringUp::New,
            caps_words: Vec::new(),
            mac: 0,
        }
    }

    /// Does what can be done now; never blocks. `now_ns` is any clock that does not run backwards, used only to tell
    /// that a device gives no answer.
    ///
    /// # Errors
    /// What makes the port useless: it is no Beeline NIC, its version or capabilities are wrong, it is gone. The
    /// error stays. What concerns one operation comes from [`Port::finish`].
    pub fn poll(&mut self, now_ns: u64) -> Result<PortState, PortError> {
        if let BringUp::Failed(error) = &self.bring_up {
            return Err(error.clone());
        }
        let result = self.step(now_ns);
        if let Err(error) = &result {
            self.bring_up = BringUp::Failed(error.clone());
        }
        result
    }

    fn step(&mut self, now_ns: u64) -> Result<PortState, PortError> {
        if self.link.is_device_gone() {
            // Operations under way must end too: `finish` reports the same.
            self.script.fail_all(&PortError::Link(LinkError::DeviceGone));
            return Err(LinkError::DeviceGone.into());
        }
        loop {
            self.script.poll(&mut self.link, now_ns)?;
            let before = self.bring_up.clone();
            self.advance_bring_up()?;
            if self.bring_up == BringUp::Ready {
                return Ok(PortState::Ready);
            }
            if self.bring_up == before {
                return Ok(PortState::Starting);
            }
        }
    }

    /// The capabilities, once ready.
    pub fn capabilities(&self) -> &Capabilities {
        &self.caps
    }

    /// The station address, once ready.
    pub fn mac(&self) -> [u8; 6] {
        let [a, b, c, d, e, f, _, _] = self.mac.to_le_bytes();
        [a, b, c, d, e, f]
    }

    /// Queues of the port, once ready.
    pub fn queues(&self) -> u32 {
        self.caps.queues.unwrap_or(0)
    }

    /// The longest frame the port carries, in bytes, once ready.
    pub fn max_frame_bytes(&self) -> usize {
        self.caps.max_frame_bytes.unwrap_or(0) as usize
    }

    /// Whether the device has a feature, a bit of [`beeline_spec::formats::feature`].
    pub fn has_feature(&self, feature: u8) -> bool {
        self.caps.features.unwrap_or(0) >> feature & 1 == 1
    }

    /// Whether the device has an interface.
    pub fn has_interface(&self, interface: Interface) -> bool {
        self.caps.interfaces.unwrap_or(0) >> interface.code() & 1 == 1
    }

    /// The link, for what only it knows (how to sleep on it, for one).
    pub fn link(&mut self) -> &mut L {
        &mut self.link
    }

    /// The result of an operation, or the operation back if it is under way.
    ///
    /// # Errors
    /// The error that ended the operation.
    pub fn finish<T>(&mut self, pending: Pending<T>) -> Result<Progress<T>, PortError> {
        let Some(outcome) = self.script.take(pending.ticket) else { return Ok(Progress::Pending(pending)) };
        let value = (pending.set)(pending.value, outcome?);
        Ok(match pending.then {
            Some(next) => Progress::Pending(next(value, &mut self.script)),
            None => Progress::Done(value),
        })
    }

    /// How far the port is, as [`Port::poll`] last said; a port that failed is starting for ever.
    pub fn state(&self) -> PortState {
        if self.bring_up == BringUp::Ready { PortState::Ready } else { PortState::Starting }
    }

    /// Whether no operation is under way.
    pub fn is_idle(&self) -> bool {
        self.script.is_idle()
    }

    /// Reads any register: status, counters. Costs a round trip of the link.
    pub fn read_register(&mut self, offset_bytes: u32) -> Pending<RegisterValue> {
        let ticket = self.start_read(offset_bytes, "answer a register read");
        Pending::of_value(ticket, RegisterValue(0), |_, value| RegisterValue(value))
    }

    /// Changes the multiplexer. Frames under way keep the path they are on.
    pub fn set_mux(&mut self, mux: Mux) -> Pending<()> {
        let ticket = self.script.push(mux_steps(mux).into_iter().chain([until_active(true)]));
        Pending::new(ticket, ())
    }

    /// Clears the causes seen and lets these, and no others, interrupt from now on. Once it is done the device has
    /// the mask; a waiter then looks at its queues once more ([`crate::Receive::wants_interrupt`]) and only then
    /// sleeps: what came before the mask raises nothing.
    pub fn arm(&mut self, causes: Causes) -> Pending<()> {
        let all = Causes { tx_completion: true, rx_frame: true, queue_failed: true }.bits();
        let read_back = Step::Until {
            offset: regs::IRQ_MASK,
            mask: all,
            value: causes.bits(),
            fatal: 0,
            what: "take an interrupt mask",
        };
        let steps = [write(regs::IRQ_CAUSE, all), write(regs::IRQ_MASK, causes.bits()), read_back];
        Pending::new(self.script.push(steps), ())
    }
}

impl Causes {
    const fn bits(self) -> u64 {
        use field::irq_mask as f;
        (self.tx_completion as u64) << f::TX_COMPLETION_LSB
            | (self.rx_frame as u64) << f::RX_FRAME_LSB
            | (self.queue_failed as u64) << f::QUEUE_FAILED_LSB
    }
}
