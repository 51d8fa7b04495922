//! Messages taken in bulk: a loop over what has arrived, without a handle that is dropped for each message.

use core::mem::ManuallyDrop;

use beeline_contract_memory::{CreditSink, LoadPort};

use crate::arrival::ArrivalTest;
use crate::error::ReceiveError;
use crate::{Message, Receiver};

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// Gives `each` the messages that have arrived, `max` at most, and frees each when `each` returns. Returns how many there
    /// were. A message on which `each` panics is given again by the next poll (of a batch, the next record).
    ///
    /// # Errors
    /// As [`Receiver::poll`]; the messages in front of the error were given.
    #[inline]
    pub fn drain(
        &mut self,
        max: usize,
        mut each: impl FnMut(&mut Message<'_, L, S, A>),
    ) -> Result<usize, ReceiveError> {
        for taken in 0..max {
            let Some(delivery) = self.advance()? else { return Ok(taken) };
            each(&mut ManuallyDrop::new(Message::new(self, delivery)));
            self.release(delivery);
        }
        Ok(max)
    }
}

#[cfg(test)]
mod tests {
    use crate::Sent;
    use crate::writer::tests::pair;

    #[test]
    fn drain_gives_messages_of_every_kind_in_order_and_frees_them() -> Result<(), Box<dyn std::error::Error>>
    {
        let (window, mut writer, mut receiver) = pair(64);
        assert_eq!(writer.try_send(b"short")?, Sent::Sent);
        assert_eq!(writer.try_send(&[7; 200])?, Sent::Sent);
        let mut batch = writer.batch(100)?.expect("room");
        assert_eq!((batch.push(b"one")?, batch.push(b"two")?), (Sent::Sent, Sent::Sent));
        batch.send();
        let mut lengths = Vec::new();
        let taken = receiver.drain(3, |message| lengths.push((message.len(), message.word(0) as u8)))?;
        assert_eq!((taken, lengths), (3, vec![(5, b's'), (200, 7), (3, b'o')]));
        assert_eq!(receiver.drain(10, |message| assert_eq!(message.word(0) as u8, b't'))?, 1);
        assert_eq!(receiver.drain(10, |_| panic!("nothing is left"))?, 0);
        assert_eq!((window.arrived_words(), receiver.next_start()), (0, writer.position()));
        Ok(())
    }

    #[test]
    fn message_on_which_the_program_panics_is_given_again() -> Result<(), Box<dyn std::error::Error>> {
        let (_, mut writer, mut receiver) = pair(8);
        assert_eq!(writer.try_send(b"kept")?, Sent::Sent);
        let panicking = std::panic::AssertUnwindSafe(|| receiver.drain(1, |_| panic!("on purpose")));
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(receiver.poll()?.map(|message| message.len()), Some(4));
        Ok(())
    }
}
