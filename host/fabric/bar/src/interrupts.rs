//! Interrupts of this member, whose counts and messages others store and whoever waits looks for: nobody wakes anybody here.

mod each;
mod inbox;
mod link;
mod triggers;
pub(crate) mod waited;
pub(crate) mod yard;

use std::sync::Arc;
use std::time::Duration;

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{Call, InterruptKind, InterruptNumber, LocalInterrupt, Refusal, Value};

use self::inbox::TooSmall;
pub use self::triggers::{BarDataTrigger, BarTrigger};
use self::waited::{Waited, What};
use crate::member::BarMember;
use crate::shared::Shared;

/// How an interrupt is made and waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct BarInterruptOptions {
    /// Its number, which no living member of the node may have; `None`: one that is free.
    pub number: Option<InterruptNumber>,
    /// It is one of several of its number, of this member and others of the node: a trigger reaches each of them. Not of data interrupts.
    pub is_shared: bool,
    /// It is one of several of its number, of members of any nodes: a message to the group reaches each of them. Of data interrupts alone.
    pub is_group: bool,
    /// Each trigger is one that is taken; otherwise all that come between two waits are one. Not of data interrupts.
    pub is_counting: bool,
    /// How long to look without a rest. After it a wait rests for some 200 µs between two looks.
    pub wait: WaitPolicy,
}

/// An interrupt of this member. It is removed when this is dropped.
#[derive(Debug)]
pub struct BarInterrupt(Own);

/// An interrupt of this member that is triggered with messages. It is removed when this is dropped.
#[derive(Debug)]
pub struct BarDataInterrupt(Own);

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// The buffer is smaller than the next message, which stays. SISCI's `SCI_ERR_OVERFLOW`.
    #[error("the next message has {bytes} bytes, which is more than the buffer")]
    Overflow { bytes: usize },
    /// No message came, or none can come any more.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

#[derive(Debug)]
struct Own {
    shared: Arc<Shared>,
    local: LocalInterrupt,
    number: InterruptNumber,
    waited: Arc<Waited>,
    wait: WaitPolicy,
}

impl BarInterrupt {
    /// Returns the number by which others connect to it.
    pub fn number(&self) -> InterruptNumber {
        self.0.number
    }

    /// Waits until it is triggered, at most `timeout`; `None` is for ever, and at zero it looks once.
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: it was not triggered. [`Refusal::Cancelled`]: it was removed meanwhile.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<(), Refusal> {
        self.0.shared.check()?;
        self.0.waited.wait(self.0.policy(), timeout, |what| match what {
            What::Counts(take) => take.take().then_some(()),
            What::Messages(_) => None,
        })
    }

    /// Removes it, and ends every wait for it. Whoever is connected to it is told by the next trigger.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: it is removed.
    pub fn remove(&self) -> Result<(), Refusal> {
        self.0.remove()
    }
}

impl BarInterrupt {
    /// Takes a trigger, if one has come.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`]: it is removed.
    pub fn try_take(&self) -> Result<bool, Refusal> {
        self.0.shared.check_process()?;
        let taken = self.0.waited.try_take(|what| match what {
            What::Counts(take) => take.take().then_some(()),
            What::Messages(_) => None,
        });
        taken.map(|taken| taken.is_some())
    }
}

impl BarDataInterrupt {
    /// Whether a message has come, which the next [`BarDataInterrupt::wait`] takes.
    ///
    /// # Errors
    /// As for [`BarInterrupt::try_take`].
    pub fn has_message(&self) -> Result<bool, Refusal> {
        self.0.shared.check_process()?;
        let (space, own) = (&self.0.waited.space, self.0.waited.own);
        let has_come = self.0.waited.try_take(|what| match what {
            What::Messages(inbox) => inbox.has_message((space, own)).then_some(()),
            What::Counts(_) => None,
        });
        has_come.map(|has_come| has_come.is_some())
    }

    /// Returns the number by which others connect to it.
    pub fn number(&self) -> InterruptNumber {
        self.0.number
    }

    /// Waits for the next message, as [`BarInterrupt::wait`] does for a trigger, and copies it into `buffer`. How long it is.
    ///
    /// # Errors
    /// [`NotTaken::Overflow`]: `buffer` is smaller than the message. Others as [`BarInterrupt::wait`] has them.
    pub fn wait(&self, buffer: &mut [u8], timeout: Option<Duration>) -> Result<usize, NotTaken> {
        self.0.shared.check()?;
        let (space, own) = (&self.0.waited.space, self.0.waited.own);
        let taken = self.0.waited.wait(self.0.policy(), timeout, |what| match what {
            What::Messages(inbox) => inbox.take((space, own), buffer),
            What::Counts(_) => None,
        })?;
        taken.map_err(|TooSmall(bytes)| NotTaken::Overflow { bytes })
    }

    /// As [`BarInterrupt::remove`]. Messages that are not taken are lost.
    ///
    /// # Errors
    /// As [`BarInterrupt::remove`].
    pub fn remove(&self) -> Result<(), Refusal> {
        self.0.remove()
    }
}

impl Own {
    fn policy(&self) -> WaitPolicy {
        self.shared.policy(self.wait)
    }

    fn remove(&self) -> Result<(), Refusal> {
        if !self.shared.process.is_this() {
            return Err(Refusal::System);
        }
        if self.waited.remove() {
            return Err(Refusal::IllegalParameter);
        }
        self.shared.enter(|state, now| {
            state.interrupts.remove(&self.local);
            state.member.call(Call::RemoveInterrupt(self.local), now).map(|_| ())
        })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // One that was removed is not there any more.
        let _removed = self.remove();
    }
}

impl BarMember {
    /// Makes an interrupt that is triggered without data.
    ///
    /// # Errors
    /// [`Refusal::IntnoUsed`]: a living member of the node has the number, and one of both is not shared. [`Refusal::MaxEntries`]: there is no room for another.
    pub fn create_interrupt(&self, options: BarInterruptOptions) -> Result<BarInterrupt, Refusal> {
        let kind = if options.is_counting { InterruptKind::Counting } else { InterruptKind::Plain };
        self.own_interrupt(kind, options).map(BarInterrupt)
    }

    /// Makes an interrupt that is triggered with messages.
    ///
    /// # Errors
    /// As [`BarMember::create_interrupt`].
    pub fn create_data_interrupt(&self, options: BarInterruptOptions) -> Result<BarDataInterrupt, Refusal> {
        self.own_interrupt(InterruptKind::Data, options).map(BarDataInterrupt)
    }

    fn own_interrupt(&self, kind: InterruptKind, options: BarInterruptOptions) -> Result<Own, Refusal> {
        let shared = Arc::clone(&self.shared);
        let number = options.number;
        let create = match kind {
            InterruptKind::Plain | InterruptKind::Counting if options.is_shared => {
                Call::CreateSharedInterrupt { number, is_counting: options.is_counting }
            }
            InterruptKind::Data if options.is_group => Call::CreateGroupInterrupt { number },
            kind => Call::CreateInterrupt { number, kind },
        };
        let Value::Interrupt(local, number, _, _) = shared.call(create)? else { return Err(Refusal::System) };
        let waited = shared.lock().interrupts.get(&local).cloned().ok_or(Refusal::System)?;
        Ok(Own { shared, local, number, waited, wait: options.wait })
    }
}
