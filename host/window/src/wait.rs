//! Waiting for room and for messages, by whoever the caller has wait: the state machines themselves do not
//! (`os/wait` has the loop).

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort, Wait};

use crate::arrival::ArrivalTest;
use crate::error::{ReceiveError, SendError};
use crate::{Message, Receiver, Sent, Writer};

impl<P: StorePort, C: CreditSource> Writer<P, C> {
    /// Sends one message, waiting for room as long as `waiter` does: [`Sent::Full`] when its time is over.
    ///
    /// # Errors
    /// As [`Writer::try_send`], and [`SendError::ReceiverGone`].
    pub fn send_wait(&mut self, payload: &[u8], waiter: &mut impl Wait) -> Result<Sent, SendError> {
        let sent = waiter.wait(|peer_gone| match self.try_send(payload)? {
            Sent::Sent => Ok(Some(Sent::Sent)),
            Sent::Full if peer_gone => Err(SendError::ReceiverGone),
            Sent::Full => Ok(None),
        })?;
        Ok(sent.unwrap_or(Sent::Full))
    }

    /// Waits until `lines` lines can be stored, as long as `waiter` does: `false` when its time is over. For
    /// reservations and batches, which cannot wait themselves; all lines of the window are free when everything sent
    /// was received. More lines than the window has are taken for all.
    ///
    /// # Errors
    /// As [`Writer::try_send`], and [`SendError::ReceiverGone`].
    pub fn room_wait(&mut self, lines: u32, waiter: &mut impl Wait) -> Result<bool, SendError> {
        let lines = lines.min(self.lines());
        let found = waiter.wait(|peer_gone| {
            if self.free_lines() >= lines || self.refresh()? >= lines {
                Ok(Some(()))
            } else if peer_gone {
                Err(SendError::ReceiverGone)
            } else {
                Ok(None)
            }
        })?;
        Ok(found.is_some())
    }
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// The next message, waited for as long as `waiter` does: `None` when its time is over. A sender that it
    /// knows to be gone is taken note of as by [`Receiver::sender_gone`].
    ///
    /// # Errors
    /// As [`Receiver::poll`].
    pub fn recv_wait(
        &mut self,
        waiter: &mut impl Wait,
    ) -> Result<Option<Message<'_, L, S, A>>, ReceiveError> {
        let delivery = waiter.wait(|peer_gone| {
            if peer_gone {
                self.sender_gone();
            }
            self.advance()
        })?;
        Ok(delivery.map(|delivery| Message::new(self, delivery)))
    }
}

#[cfg(test)]
mod tests;
