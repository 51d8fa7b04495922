//! Messages taken in bulk: a loop over what has arrived, without a handle that is dropped for each message.
//!
//! Where a group of lines has arrived whole, which one branch tells, each plain message of one line among them costs a load
//! of its header and one comparison, and the lines are made free together. That is less work a message, but above all it
//! lets the core fetch several lines from the sender's cache at a time: what the program does with a message no longer
//! stands between the loads of two lines, and no store but that of the blank waits behind it. Everything else (longer
//! messages, batches, escapes, the end of what has arrived) goes the way that a poll goes.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use beeline_contract_memory::{CreditSink, GROUP_LINES, Group, Groups, LoadPort};

use crate::arrival::ArrivalTest;
use crate::error::ReceiveError;
use crate::payload::HEAD_BYTES;
use crate::{Message, MessageRef, Receiver};

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// Gives `each` the messages that have arrived, `max` at most, and frees each when `each` returns, or soon after that.
    /// Returns how many there were. A message on which `each` panics is given again by the next poll (of a batch, the next
    /// record).
    ///
    /// # Errors
    /// As [`Receiver::poll`]; the messages in front of the error were given.
    #[inline]
    pub fn drain(
        &mut self,
        max: usize,
        mut each: impl FnMut(MessageRef<'_, L, S, A>),
    ) -> Result<usize, ReceiveError> {
        let mut taken = 0;
        while taken < max {
            let groups = self.groups_in_a_row(max - taken);
            if groups > 0 {
                let given = self.drain_groups(groups, &mut each);
                taken += given as usize;
                if given == groups * GROUP_LINES {
                    continue;
                }
            }
            let Some(delivery) = self.advance()? else { return Ok(taken) };
            each(MessageRef::any(Message::new(self, delivery)));
            self.release(delivery);
            taken += 1;
        }
        Ok(max)
    }

    /// How many groups of lines, from the next start on, may be looked at one after the other: up to the end of the window, to
    /// `max` messages, and until credits are due. None where that was asked not long ago and the lines had not arrived.
    #[inline(always)]
    fn groups_in_a_row(&self, max: usize) -> u32 {
        if self.next_start < self.groups_from || self.is_long || self.test.blank().is_none() {
            return 0;
        }
        let lines = (self.mask + 1 - u64::from(self.line(0))).min(max as u64);
        let until_due = self.push_at.saturating_sub(self.next_start);
        (lines / u64::from(GROUP_LINES)).min(until_due.div_ceil(u64::from(GROUP_LINES))) as u32
    }

    /// Gives the messages of `groups` groups, up to the first that has not arrived or has anything else than plain messages of
    /// one line, and frees them. Returns how many there were.
    #[inline(always)]
    fn drain_groups(&mut self, groups: u32, each: &mut impl FnMut(MessageRef<'_, L, S, A>)) -> u32 {
        let (first_line, blank) = (self.line(0), self.test.blank().unwrap_or_default());
        let prefetches = self.pace.ahead_lines > 0;
        let (plain_header, next_start) = (self.plain_header, &mut self.next_start);
        let run = self.port.groups(first_line, groups);
        let mut given = Given::<L, _> { run, blank, next_start, groups: 0, messages: 0, port: PhantomData };
        while given.groups < groups && given.run.arrived(given.groups, blank) {
            // Whoever has found two groups in a row is behind the sender, and takes no line from it that it is about to store.
            // One group ahead is best, near and far: lines that are asked for earlier have to wait for each other.
            if prefetches && given.groups > 0 && given.groups + 1 < groups {
                given.run.prefetch(given.groups + 1);
            }
            let lines = given.run.group(given.groups);
            while given.messages < GROUP_LINES {
                // The header is read once: the word that is checked here is the length that the message has.
                let length_bytes = lines.word(given.messages, 0).wrapping_sub(plain_header);
                if length_bytes == HEAD_BYTES as u64 {
                    // A full line, as in a stream of one size, whose length is known where the program's code is compiled.
                    each(MessageRef::line(lines, given.messages, HEAD_BYTES));
                } else if length_bytes < HEAD_BYTES as u64 {
                    each(MessageRef::line(lines, given.messages, length_bytes as usize));
                } else {
                    break;
                }
                given.messages += 1;
            }
            if given.messages < GROUP_LINES {
                break;
            }
            given.free_group();
        }
        let messages = given.finish();
        if messages < groups * GROUP_LINES {
            // The question waits for as many lines: a line that is looked at before it is stored must be fetched back by the
            // sender.
            self.groups_from = self.next_start + u64::from(GROUP_LINES - messages % GROUP_LINES);
        }
        self.push_when_due();
        messages
    }
}

/// Messages of groups that were given and whose lines are not free yet. When the program panics, its drop frees them, so
/// that none of them is given twice.
struct Given<'r, L: LoadPort, G: Groups<L>> {
    run: G,
    blank: u64,
    next_start: &'r mut u64,
    /// Groups that were given whole, and are free.
    groups: u32,
    /// Messages of the next group that were given.
    messages: u32,
    port: PhantomData<fn(L)>,
}

impl<L: LoadPort, G: Groups<L>> Given<'_, L, G> {
    /// The program has had every message of the group.
    #[inline(always)]
    fn free_group(&mut self) {
        self.run.blank(self.groups, self.blank);
        self.groups += 1;
        self.messages = 0;
    }

    /// Frees what was given, moves the next start past it, and says how many messages that were. Not left to the drop, which
    /// the compiler keeps in one piece: the count would then be stored for every message, between the lines in the store buffer.
    #[inline(always)]
    fn finish(self) -> u32 {
        let mut given = ManuallyDrop::new(self);
        for ahead in 0..given.messages {
            let (group, blank) = (given.groups, given.blank);
            given.run.blank_line(group, ahead, blank);
        }
        let messages = given.groups * GROUP_LINES + given.messages;
        *given.next_start += u64::from(messages);
        messages
    }
}

impl<L: LoadPort, G: Groups<L>> Drop for Given<'_, L, G> {
    #[inline(always)]
    fn drop(&mut self) {
        // The program has panicked: what it had is free, and the credits follow with the next poll. Short and in line, so that
        // the counts stay in registers until here; a call with a reference would give them a place in memory, to which each
        // message's count would be stored.
        *self.next_start += u64::from(self.groups * GROUP_LINES + self.messages);
        for ahead in 0..self.messages {
            self.run.blank_line(self.groups, ahead, self.blank);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Sent;
    use crate::writer::tests::BLANK;
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

    /// Lines of a window that is read in groups.
    const LINES: u32 = 32;
    /// Miri is thousands of times slower: it has some of the cases.
    const STRIDE: usize = if cfg!(miri) { 7 } else { 1 };

    #[test]
    fn groups_are_given_whole_up_to_what_is_no_plain_line() -> Result<(), Box<dyn std::error::Error>> {
        let (window, mut writer, mut receiver) = pair(LINES);
        // Every message of one line that is not plain, and one of two lines, at each place of a group. Ten laps and more.
        for other in (0..40usize).step_by(4 * STRIDE - 3) {
            let mut expected = Vec::new();
            for number in 0..19usize {
                let bytes = if number == other % 10 { 60 } else { (other + number) % 57 };
                let mut payload = vec![number as u8 + 1; bytes];
                if number == (other + 5) % 10 && bytes >= 8 {
                    payload[..8].copy_from_slice(&BLANK.to_le_bytes());
                }
                assert_eq!(writer.try_send(&payload)?, Sent::Sent);
                expected.push(payload);
            }
            let mut found = Vec::new();
            let taken = receiver.drain(18, |mut message| {
                found.push(Vec::new());
                let out = found.last_mut().expect("just pushed");
                message.copy_to(out);
                let last = out.len() / 8;
                let tail = out[last * 8..].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                assert_eq!((message.word(last), message.word(last + 1)), (tail, 0));
            })?;
            assert_eq!((taken, &found[..]), (18, &expected[..18]));
            assert_eq!(receiver.drain(100, |message| assert_eq!(message.len(), expected[18].len()))?, 1);
            assert_eq!((window.arrived_words(), receiver.next_start()), (0, writer.position()));
        }
        Ok(())
    }

    #[test]
    fn hole_in_a_group_ends_what_is_given() -> Result<(), Box<dyn std::error::Error>> {
        for hole in (0..8).step_by(STRIDE) {
            let (window, mut writer, mut receiver) = pair(LINES);
            window.hold();
            for number in 0..10 {
                assert_eq!(writer.try_send(&[number; 20])?, Sent::Sent);
            }
            // Everything but the last word of one line arrives.
            let missing = hole * 8 + 7;
            (0..missing).for_each(|_| window.release(0));
            (missing..79).for_each(|_| window.release(1));
            let mut next = 0;
            assert_eq!(receiver.drain(100, |message| next += u64::from(message.len() == 20))?, hole);
            assert_eq!((receiver.next_start().0, next), (hole as u64, hole as u64));
            window.release(0);
            assert_eq!(
                receiver.drain(100, |message| assert!(message.word(0) as u8 >= hole as u8))?,
                10 - hole
            );
        }
        Ok(())
    }

    #[test]
    fn panic_in_a_group_frees_what_was_given_before() -> Result<(), Box<dyn std::error::Error>> {
        for at in (0..8).step_by(STRIDE) {
            let (window, mut writer, mut receiver) = pair(LINES);
            for number in 0..8 {
                assert_eq!(writer.try_send(&[number; 20])?, Sent::Sent);
            }
            let mut given = 0;
            let panicking = std::panic::AssertUnwindSafe(|| {
                receiver.drain(8, |_| {
                    assert_ne!(given, at, "on purpose");
                    given += 1;
                })
            });
            assert!(std::panic::catch_unwind(panicking).is_err());
            assert_eq!((receiver.next_start().0, window.arrived_words()), (at, 8 * (8 - at)));
            assert_eq!(receiver.poll()?.map(|message| message.word(0) as u8), Some(at as u8));
            assert_eq!(receiver.drain(100, |_| ())? as u64, 7 - at);
        }
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
