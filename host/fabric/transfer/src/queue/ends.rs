//! Both directions of an open message queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_fabric::{Refusal, SequenceStart, SequenceStatus};
use beeline_mmio::fence::order_all;
use beeline_window::{SendError, Sent};

use super::terms::Received;
use crate::credits::{Inlet, Sender, push_out};
use crate::segments::Sequences;

#[derive(Debug)]
pub(crate) struct Ends {
    sender: Mutex<Sender>,
    inbox: Mutex<Inbox>,
    /// Of the connection to the other end's segment.
    sequence: Arc<dyn Sequences>,
    /// The longest message that both ends have said.
    max_message_bytes: usize,
    /// Whether the segments are of a device, to which stores may be combined and held back.
    is_device: bool,
}

#[derive(Debug)]
struct Inbox {
    inlet: Inlet,
    /// Bytes of messages, the first of which were given to the program.
    kept: Vec<u8>,
    given: usize,
    /// Whether `inlet` knows that nothing more will come.
    is_over: bool,
}

impl Ends {
    pub(crate) fn new(
        sender: Sender,
        inlet: Inlet,
        sequence: Arc<dyn Sequences>,
        max_message_bytes: u32,
        is_device: bool,
    ) -> Self {
        let inbox = Inbox { inlet, kept: Vec::new(), given: 0, is_over: false };
        let max_message_bytes = (max_message_bytes as usize).min(sender.max_payload_bytes());
        Ends { sender: Mutex::new(sender), inbox: Mutex::new(inbox), sequence, max_message_bytes, is_device }
    }

    pub(crate) fn send(&self, message: &[u8]) -> Result<Sent, Refusal> {
        if message.len() > self.max_message_bytes {
            return Err(Refusal::IllegalParameter);
        }
        if self.start()?.is_none() {
            return Ok(Sent::Full);
        }
        if message.is_empty() {
            return Ok(Sent::Sent);
        }
        match lock(&self.sender).try_send(message) {
            Ok(sent) => {
                self.flush();
                Ok(sent)
            }
            // It counts lines as free that were never sent.
            Err(SendError::Credits(_) | SendError::ReceiverGone) => Err(Refusal::NotConnected),
            Err(SendError::TooLong { .. }) => Err(Refusal::IllegalParameter),
        }
    }

    pub(crate) fn send_checked(&self, message: &[u8]) -> Result<Sent, Refusal> {
        let Some(start) = self.start()? else { return Ok(Sent::Full) };
        let sent = self.send(message)?;
        match self.sequence.check(start) {
            SequenceStatus::NotRetriable => Err(Refusal::NotConnected),
            // A link that went down meanwhile: the bytes are in memory nevertheless, and leave with the next store that gets through.
            SequenceStatus::Ok | SequenceStatus::Retriable | SequenceStatus::Pending => Ok(sent),
        }
    }

    /// Where a sequence begins; nothing while a link is down.
    fn start(&self) -> Result<Option<SequenceStart>, Refusal> {
        match self.sequence.start() {
            (SequenceStatus::NotRetriable, _) => Err(Refusal::NotConnected),
            (_, start) => Ok(start),
        }
    }

    pub(crate) fn receive(&self, into: &mut [u8]) -> Result<Received, Refusal> {
        let received = lock(&self.inbox).receive(into, &*self.sequence);
        // The lines that were freed by it.
        self.flush();
        received
    }

    fn flush(&self) {
        if self.is_device {
            push_out();
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.sequence.is_there()
    }

    pub(crate) fn longest_bytes(&self) -> usize {
        self.max_message_bytes
    }

    pub(crate) fn free_bytes(&self) -> usize {
        let free_lines = lock(&self.sender).free_lines() as usize;
        (free_lines * 64).saturating_sub(8).min(self.max_message_bytes)
    }

    pub(crate) fn kept_bytes(&self) -> usize {
        lock(&self.inbox).kept_bytes()
    }
}

impl Inbox {
    fn kept_bytes(&self) -> usize {
        self.kept.len() - self.given
    }

    fn receive(&mut self, into: &mut [u8], sequence: &dyn Sequences) -> Result<Received, Refusal> {
        while self.kept_bytes() < into.len() {
            match self.inlet.poll() {
                // No sound end sends one. Who sends nothing else would be listened to for ever.
                Ok(Some(message)) if message.is_empty() => return Err(Refusal::NotConnected),
                // What is asked for is mostly what was sent: then nothing is kept in between.
                Ok(Some(mut message)) if self.kept.is_empty() && message.len() == into.len() => {
                    message.copy_out(into);
                    return Ok(Received::All);
                }
                Ok(Some(mut message)) => {
                    message.copy_to(&mut self.kept);
                    continue;
                }
                Ok(None) => {}
                // It is gone, or what it sent is no message.
                Err(_) => return Err(Refusal::NotConnected),
            }
            if self.is_over || sequence.is_there() {
                return Ok(Received::TooFew);
            }
            // What the other end stored before it went is looked at after it was found gone.
            order_all();
            self.inlet.sender_gone();
            self.is_over = true;
        }
        let end = self.given + into.len();
        into.copy_from_slice(&self.kept[self.given..end]);
        self.given = end;
        if self.given == self.kept.len() {
            self.kept.clear();
            self.given = 0;
        } else if self.given >= self.kept.len() / 2 {
            self.kept.drain(..self.given);
            self.given = 0;
        }
        Ok(Received::All)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use beeline_mmio::Region;

    use super::super::header::{Room, Words};
    use super::*;

    /// A connection that is whole.
    #[derive(Debug)]
    struct Whole;

    impl Sequences for Whole {
        fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
            unreachable!("nothing is sent by the end that is tried")
        }

        fn check(&self, _: SequenceStart) -> SequenceStatus {
            SequenceStatus::Ok
        }

        fn is_there(&self) -> bool {
            true
        }

        fn fails_over(&self) -> bool {
            false
        }
    }

    #[test]
    fn end_that_is_sent_a_message_of_no_bytes_listens_no_more() {
        let region = Region::private(4096);
        let [here, there] = [0, 2048].map(|start| Words::new(region.clone(), start));
        let room = Room::of(4, 100).unwrap();
        let (our_header, their_header) = (here.begin(room, [2, 1]), there.begin(room, [4, 3]));
        let mut liar = here.sender(&our_header, &there);
        let ends = Ends::new(
            there.sender(&their_header, &here),
            here.inlet(&our_header, &there),
            Arc::new(Whole),
            100,
            false,
        );
        assert_eq!(ends.receive(&mut [0]), Ok(Received::TooFew));
        assert!(matches!(liar.try_send(&[]), Ok(Sent::Sent)));
        assert_eq!(ends.receive(&mut [0]), Err(Refusal::NotConnected));
    }
}
