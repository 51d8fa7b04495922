//! Messages sent in bulk: a loop over messages that are at hand, with one account of lines and one look for a sleeping
//! receiver for all of them.
//!
//! Nothing but the lines themselves is stored while it runs: what stands between two lines in the store buffer keeps lines
//! from being fetched from the receiver's cache at the same time. Longer messages, and those that must be escaped, go the
//! way that [`Writer::try_send`] goes.

use beeline_contract_memory::{CreditSource, StorePort, StoreTask};
use beeline_spec::{Header, Kind};

use crate::error::SendError;
use crate::payload::HEAD_BYTES;
use crate::writer::FenceMasks;
use crate::{Sent, Taken, Writer};

impl<P: StorePort, C: CreditSource> Writer<P, C> {
    /// Sends messages in order, as many as there is room for, and returns how many were sent. A receiver that sleeps is woken when
    /// the last of them is stored, or there is no more room.
    ///
    /// # Errors
    /// As [`Writer::try_send`], for the first of `messages`; nothing was sent then. Where a later one cannot be sent, those in
    /// front of it are, and a call that begins with it says why.
    #[inline]
    pub fn try_send_all<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<Taken, SendError> {
        let mut sent = 0;
        loop {
            sent += self.send_run(&messages[sent..]);
            let Some(message) = messages.get(sent) else { return Ok(Taken(sent)) };
            match self.try_send(message.as_ref()) {
                Ok(Sent::Sent) => sent += 1,
                Err(error) if sent == 0 => return Err(error),
                Ok(Sent::Full) | Err(_) => return Ok(Taken(sent)),
            }
        }
    }

    /// Sends the messages of one line that stand in front, as many as there is known to be room for, up to one that must be
    /// escaped. Returns how many there were.
    #[inline(always)]
    fn send_run<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> usize {
        let room = self.credits.known_free() as usize;
        let mut run = Run { stored: 0, writer: self };
        let writer = &mut *run.writer;
        writer.port.run_stores(HeadLines {
            messages: &messages[..room.min(messages.len())],
            start: writer.credits.next(),
            mask: writer.mask,
            header: Header::new(Kind::Data, 0, 0).encode() | writer.epoch_bits,
            sought: writer.sought,
            fence_masks: writer.fence_masks,
            stored: &mut run.stored,
        });
        run.stored as usize
    }
}

/// Messages of one line each, to be stored one after the other. One decision of the port for all of them.
struct HeadLines<'m, M> {
    messages: &'m [M],
    /// Position of the first.
    start: u64,
    mask: u64,
    /// Header of a message of no length; length is its lowest field.
    header: u64,
    sought: u64,
    fence_masks: FenceMasks,
    /// Where it is put how many were stored, also when the program panics.
    stored: &'m mut u32,
}

impl<M: AsRef<[u8]>> StoreTask for HeadLines<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run<P: StorePort + ?Sized>(self, port: &mut P) {
        // A local account, written when it is dropped: one that is written for every message would stand between the lines
        // in the store buffer.
        let mut account = Account { stored: 0, total: self.stored };
        for (position, message) in (self.start..).zip(self.messages) {
            let payload = message.as_ref();
            let (line, length_bytes) = ((position & self.mask) as u32, payload.len());
            if length_bytes > HEAD_BYTES
                || !port.store_head_line_unless(line, self.header | length_bytes as u64, payload, self.sought)
            {
                break;
            }
            // Nothing is prefetched: stores that follow each other at once fetch their lines together by themselves, and a
            // line that is asked for early is taken from a receiver that is still at work beside it.
            if self.fence_masks.is_due(position) {
                port.fence();
            }
            account.stored += 1;
        }
    }
}

/// How many lines were stored.
struct Account<'t> {
    stored: u32,
    total: &'t mut u32,
}

impl Drop for Account<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.total = self.stored;
    }
}

/// Lines that were stored and are not yet counted as sent. They are counted when this is dropped, which a panic of the
/// program does too (in `as_ref`), so that none of them is stored again.
struct Run<'w, P: StorePort, C: CreditSource> {
    stored: u32,
    writer: &'w mut Writer<P, C>,
}

impl<P: StorePort, C: CreditSource> Drop for Run<'_, P, C> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.stored != 0 {
            self.writer.credits.spend(self.stored);
            self.writer.port.wake_receiver();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::error::SendError;
    use crate::writer::tests::{BLANK, pair};
    use crate::{FencePolicy, Receiver, Sent, Taken, WindowConfig, Writer};

    /// Takes everything that is there.
    fn received<L, S, A>(receiver: &mut Receiver<L, S, A>) -> Vec<Vec<u8>>
    where
        L: beeline_contract_memory::LoadPort,
        S: beeline_contract_memory::CreditSink,
        A: crate::ArrivalTest,
    {
        let mut all = Vec::new();
        let taken = receiver.drain(1000, |mut message| {
            let mut payload = Vec::new();
            message.copy_to(&mut payload);
            all.push(payload);
        });
        assert_eq!(taken, Ok(all.len()));
        all
    }

    #[test]
    fn messages_of_every_kind_leave_in_order_until_the_window_is_full() -> Result<(), SendError> {
        let (window, mut writer, mut receiver) = pair(16);
        // Miri is slow: fewer, which go round the window all the same.
        let messages: Vec<Vec<u8>> = (0..if cfg!(miri) { 20 } else { 50usize })
            .map(|number| {
                let mut payload = vec![number as u8; [0, 8, 56, 57, 20, 130][number % 6]];
                if number % 5 == 2 && payload.len() >= 8 {
                    payload[..8].copy_from_slice(&BLANK.to_le_bytes());
                }
                payload
            })
            .collect();
        let mut sent = 0;
        while sent < messages.len() {
            let Taken(count) = writer.try_send_all(&messages[sent..])?;
            assert!((6..=16).contains(&count) || sent + count == messages.len(), "{count} in 16 lines");
            assert_eq!(received(&mut receiver), &messages[sent..sent + count]);
            sent += count;
        }
        assert_eq!((writer.try_send_all::<&[u8]>(&[])?, window.arrived_words()), (Taken(0), 0));
        Ok(())
    }

    #[test]
    fn message_that_is_too_long_is_an_error_once_it_is_the_first() -> Result<(), SendError> {
        let (_, mut writer, mut receiver) = pair(8);
        let messages = [vec![1; 8], vec![2; 8], vec![3; 1000], vec![4; 8]];
        assert_eq!(writer.try_send_all(&messages)?, Taken(2));
        assert_eq!(
            writer.try_send_all(&messages[2..]),
            Err(SendError::TooLong { bytes: 1000, max_bytes: 8 * 64 - 8 })
        );
        assert_eq!(writer.try_send_all(&messages[3..])?, Taken(1));
        assert_eq!(received(&mut receiver), [&messages[0], &messages[1], &messages[3]].map(Clone::clone));
        Ok(())
    }

    #[test]
    fn lines_stored_before_a_panic_count_as_sent() -> Result<(), SendError> {
        struct Panics(u8);
        impl AsRef<[u8]> for Panics {
            fn as_ref(&self) -> &[u8] {
                assert_ne!(self.0, 3, "on purpose");
                core::slice::from_ref(&self.0)
            }
        }
        let (_, mut writer, mut receiver) = pair(8);
        let panicking = std::panic::AssertUnwindSafe(|| writer.try_send_all(&[1, 2, 3, 4].map(Panics)));
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(writer.try_send(&[5])?, Sent::Sent);
        assert_eq!(received(&mut receiver), [[1], [2], [5]]);
        Ok(())
    }

    #[test]
    fn policies_fence_as_they_do_for_single_messages() -> Result<(), SendError> {
        for policy in FencePolicy::ALL {
            let fences = [true, false].map(|in_bulk| {
                let (window, ..) = pair(8);
                let config = WindowConfig::blank(BLANK, 3).with_fences(policy);
                let mut writer = Writer::new(window.clone(), window.clone(), config);
                let mut receiver = Receiver::new(window.clone(), window.clone(), config);
                for _ in 0..5 {
                    let messages = [[7u8; 30]; 5];
                    let sent = if in_bulk {
                        writer.try_send_all(&messages)
                    } else {
                        messages
                            .iter()
                            .try_for_each(|m| writer.try_send(m).map(|sent| assert_eq!(sent, Sent::Sent)))
                            .map(|()| Taken(5))
                    };
                    assert_eq!((sent, received(&mut receiver).len()), (Ok(Taken(5)), 5));
                }
                window.fences()
            });
            assert_eq!(fences[0], fences[1], "{policy}");
        }
        Ok(())
    }
}
