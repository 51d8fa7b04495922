//! Interrupts of this member: who waits for them takes what others have triggered.
//!
//! Nothing of it takes the member's lock but to make, connect, end and remove. What is taken comes from counts that each triggerer alone stores
//! (`words.rs`), or from messages in windows that one pair has alone (`yard.rs`); whoever sleeps does so on the interrupt's own flag
//! (`bell.rs`), and the trigger itself wakes it. Record 0044.

mod each;
pub(crate) mod gear;
pub(crate) mod inbox;
mod joining;
mod link;
mod triggers;
pub(crate) mod waited;

use std::sync::Arc;
use std::time::Duration;

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{Call, InterruptNumber, LocalInterrupt, Refusal};

use self::inbox::TooSmall;
pub use self::triggers::{DataTrigger, Trigger};
use self::waited::{Waited, What};
use crate::shared::Shared;

/// How an interrupt is made and waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterruptOptions {
    /// Its number, which no living process of the node may have; `None`: one that is free.
    pub number: Option<InterruptNumber>,
    /// It is one of several of its number, of this process and others of the node: a trigger reaches each of them. Not of data interrupts.
    pub is_shared: bool,
    /// It is one of several of its number, of members of any nodes: a message to the group reaches each of them. Of data interrupts alone.
    pub is_group: bool,
    /// Each trigger is one that is taken; otherwise all that come between two waits are one. Not of data interrupts.
    pub is_counting: bool,
    /// Forgets at the start of each wait what came before it. Not of data interrupts.
    pub forgets: bool,
    /// How long to look before a sleep. With [`WaitPolicy::SPIN`] nobody ever sleeps, and no trigger makes a system call.
    pub wait: WaitPolicy,
}

/// An interrupt of this member. It is removed when this is dropped.
///
/// Of several threads that wait each trigger, or each that are one, ends the wait of one.
#[derive(Debug)]
pub struct Interrupt(Own);

/// An interrupt of this member that is triggered with messages. It is removed when this is dropped.
#[derive(Debug)]
pub struct DataInterrupt(Own);

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// The buffer is smaller than the next message, which stays. SISCI's `SCI_ERR_OVERFLOW`.
    #[error("the next message has {bytes} bytes, which is more than the buffer")]
    Overflow {
        /// Its size.
        bytes: usize,
    },
    /// No message came, or none can come any more.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) shared: Arc<Shared>,
    pub(crate) local: LocalInterrupt,
    pub(crate) number: InterruptNumber,
    pub(crate) waited: Arc<Waited>,
    pub(crate) options: InterruptOptions,
}

impl Interrupt {
    pub(crate) fn new(own: Own) -> Self {
        Interrupt(own)
    }

    pub(crate) fn own(&self) -> &Own {
        &self.0
    }

    /// Returns the number by which others connect to it.
    pub fn number(&self) -> InterruptNumber {
        self.0.number
    }

    /// Waits until it is triggered, at most `timeout`; `None` is for ever, and at zero it looks once.
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: it was not triggered. [`Refusal::Cancelled`]: it was removed meanwhile.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<(), Refusal> {
        self.0.check()?;
        if self.0.options.forgets {
            self.0.waited.forget();
        }
        self.0.waited.wait(self.0.policy(), timeout, |what| match what {
            What::Counts(take) => take.take().then_some(()),
            What::Messages(_) => None,
        })
    }

    /// Triggers it from this process, as one that is connected to it does: so a program makes events of its own.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: it is removed.
    pub fn raise(&self) -> Result<(), Refusal> {
        self.0.check()?;
        self.0.waited.raise()
    }

    /// Removes it, and ends every wait for it. Whoever is connected to it is told by the next trigger.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: it is removed.
    pub fn remove(&self) -> Result<(), Refusal> {
        self.0.remove()
    }
}

impl DataInterrupt {
    pub(crate) fn new(own: Own) -> Self {
        DataInterrupt(own)
    }

    pub(crate) fn own(&self) -> &Own {
        &self.0
    }

    /// Returns the number by which others connect to it.
    pub fn number(&self) -> InterruptNumber {
        self.0.number
    }

    /// Waits for the next message, as [`Interrupt::wait`] does for a trigger, and copies it into `buffer`. How long it is.
    ///
    /// # Errors
    /// [`NotTaken::Overflow`]: `buffer` is smaller than the message. Others as [`Interrupt::wait`] has them.
    pub fn wait(&self, buffer: &mut [u8], timeout: Option<Duration>) -> Result<usize, NotTaken> {
        self.0.check()?;
        let taken = self.0.waited.wait(self.0.policy(), timeout, |what| match what {
            What::Messages(inbox) => inbox.take(buffer),
            What::Counts(_) => None,
        })?;
        taken.map_err(|TooSmall(bytes)| NotTaken::Overflow { bytes })
    }

    /// As [`Interrupt::remove`]. Messages that are not taken are lost.
    ///
    /// # Errors
    /// As [`Interrupt::remove`].
    pub fn remove(&self) -> Result<(), Refusal> {
        self.0.remove()
    }
}

impl Own {
    /// A child of fork has none of the memory mapped.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.shared.process.is_this() { Ok(()) } else { Err(Refusal::System) }
    }

    fn policy(&self) -> WaitPolicy {
        if self.shared.polls() { WaitPolicy::SPIN } else { self.options.wait }
    }

    fn remove(&self) -> Result<(), Refusal> {
        self.check()?;
        if self.waited.remove() {
            return Err(Refusal::IllegalParameter);
        }
        self.shared.forget_interrupt(self.local);
        // Last: then the entry of the board, and with it the flag, may be another interrupt's.
        self.shared.call(Call::RemoveInterrupt(self.local)).map(|_| ())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // One that was removed is not there any more.
        let _removed = self.remove();
    }
}
