//! What came in: order, duplicates, what is held, and what the other side is told about it.
//!
//! A message that is next goes to the program from the frame it came in. One that came too early, or that the program
//! does not take now, is copied into a ring and delivered from there. Nothing that was acknowledged is dropped again,
//! so the other side may forget what it was told has arrived.

use crate::MOST_WINDOW;
use crate::ring::{REORDER_DEGREE, stride};
use crate::sequence::{Sequence, Session};

const SLOTS: usize = MOST_WINDOW as usize;

/// Relation of a datagram to those received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one, to be delivered from its frame. Held ones may follow it.
    Next,
    /// Kept; something may now be delivered out of the ring if it was the next one.
    Held,
    /// The datagram was received before.
    Duplicate,
    /// There is no room for its number, or it comes after the last one.
    Beyond,
}

/// One side's receiving half.
#[derive(Debug)]
pub(crate) struct Inbox {
    ring: Box<[u8]>,
    stride: usize,
    lengths: [u16; SLOTS],
    /// The earliest number that is not here.
    next: Sequence,
    /// The earliest number that was not delivered.
    delivered: Sequence,
    /// Bit i: number `next + 1 + i` is held. The same bits as on the wire.
    held: u64,
    window: u32,
    /// Number of the other side's close, once it came.
    close: Option<Sequence>,
    /// The program takes nothing for now.
    pub(crate) is_paused: bool,
}

impl Inbox {
    /// For messages of a side with session `theirs`, at most `message_bytes` long.
    pub(crate) fn new(theirs: Session, window: u8, message_bytes: usize) -> Self {
        let stride = stride(message_bytes);
        let first = Sequence::first(theirs);
        Inbox {
            ring: vec![0; stride * SLOTS].into_boxed_slice(),
            stride,
            lengths: [0; SLOTS],
            next: first,
            delivered: first,
            held: 0,
            window: window.into(),
            close: None,
            is_paused: false,
        }
    }

    /// Starts afresh with another side, in the same memory.
    pub(crate) fn reset(&mut self, theirs: Session) {
        let first = Sequence::first(theirs);
        (self.next, self.delivered, self.held) = (first, first, 0);
        (self.close, self.is_paused) = (None, false);
    }

    /// Takes a message. With `must_hold` it goes into the ring even if it is next.
    #[inline]
    pub(crate) fn take(&mut self, number: u32, message: &[u8], must_hold: bool) -> Arrival {
        if self.next.distance(number) == 0
            && self.delivered == self.next
            && !(self.is_paused || must_hold || self.close.is_some())
        {
            self.advance();
            self.delivered = self.delivered.plus(1);
            return Arrival::Next;
        }
        self.take_out_of_order(number, message)
    }

    fn take_out_of_order(&mut self, number: u32, message: &[u8]) -> Arrival {
        let arrival = self.place(number);
        if let Ok(sequence) = arrival {
            if self.close.is_some_and(|close| sequence >= close) {
                return Arrival::Beyond;
            }
            let slot = sequence.slot();
            let start = slot * self.stride;
            self.ring[start..start + message.len()].copy_from_slice(message);
            self.lengths[slot] = message.len() as u16;
            self.mark(sequence);
            return Arrival::Held;
        }
        arrival.err().unwrap_or(Arrival::Beyond)
    }

    /// Takes the other side's close: what follows it can be no message.
    pub(crate) fn take_close(&mut self, number: u32) -> Arrival {
        match self.place(number) {
            Ok(sequence) => {
                let ahead = sequence.since(self.next);
                // Bit i of `held` is the number next + 1 + i, so everything after the close begins at bit `ahead`.
                if self.close.is_some() || ahead < 64 && self.held >> ahead != 0 {
                    return Arrival::Beyond;
                }
                self.close = Some(sequence);
                self.lengths[sequence.slot()] = 0;
                self.mark(sequence);
                Arrival::Held
            }
            Err(arrival) => arrival,
        }
    }

    /// The full number of a datagram that is new and for which there is room.
    fn place(&self, number: u32) -> Result<Sequence, Arrival> {
        let ahead = self.next.distance(number);
        if ahead < 0 {
            return Err(Arrival::Duplicate);
        }
        let ahead = ahead as u32;
        let waiting = self.next.since(self.delivered);
        if ahead >= self.window.saturating_sub(waiting) {
            return Err(Arrival::Beyond);
        }
        if ahead > 0 && self.held >> (ahead - 1) & 1 == 1 {
            return Err(Arrival::Duplicate);
        }
        Ok(self.next.plus(ahead))
    }

    fn mark(&mut self, sequence: Sequence) {
        match sequence.since(self.next) {
            0 => self.advance(),
            ahead => self.held |= 1 << (ahead - 1),
        }
    }

    /// The next number is here, and with it those held right behind it.
    #[inline]
    fn advance(&mut self) {
        let run = self.held.trailing_ones();
        self.next = self.next.plus(1 + run);
        self.held = self.held.checked_shr(1 + run).unwrap_or(0);
    }

    /// Whether [`Inbox::deliver`] or [`Inbox::is_closed`] has something for the program.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.delivered != self.next && !self.is_paused
    }

    /// The next message out of the ring: where it is, by [`Inbox::message`]. It stays until the next one is taken.
    pub(crate) fn deliver(&mut self) -> Option<(usize, usize)> {
        if !self.has_ready() || self.is_closed() {
            return None;
        }
        let slot = self.delivered.slot();
        self.delivered = self.delivered.plus(1);
        Some((slot, self.lengths[slot].into()))
    }

    /// The bytes of a slot that [`Inbox::deliver`] gave.
    pub(crate) fn message(&self, slot: usize, bytes: usize) -> &[u8] {
        let start = slot * self.stride;
        self.ring.get(start..start + bytes).unwrap_or_default()
    }

    /// Whether everything up to the other side's close was delivered.
    pub(crate) fn is_closed(&self) -> bool {
        self.close.is_some_and(|close| close == self.delivered && self.next > close)
    }

    /// The earliest number that is not here.
    #[inline]
    pub(crate) fn next(&self) -> Sequence {
        self.next
    }

    /// Whether the other side should learn at once of what came last, out of order: it made a new gap, or it is one of
    /// the few by which a gap is told from mere disorder. Many more may come while the gap is mended.
    pub(crate) fn is_gap_news(&self, number: u32) -> bool {
        let ahead = self.next.distance(number);
        // Bit i of `held` is the number next + 1 + i, so the number before this one is bit `ahead - 2`.
        let follows = ahead >= 2 && self.held >> (ahead - 2) & 1 == 1;
        !follows || u64::from(self.held.count_ones()) <= REORDER_DEGREE + 1
    }

    /// Returns the datagrams received beyond the cumulative acknowledgement, as the bitmap of the wire format.
    #[inline]
    pub(crate) fn selective(&self) -> u64 {
        self.held
    }

    /// Numbers from `next` on for which there is room.
    #[inline]
    pub(crate) fn room(&self) -> u8 {
        self.window.saturating_sub(self.next.since(self.delivered)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: Session = Session(0xffff_fffe);

    fn inbox(window: u8) -> Inbox {
        Inbox::new(THEIRS, window, 16)
    }

    fn number(index: u32) -> u32 {
        0xffff_fffe_u32.wrapping_add(index)
    }

    fn delivered(inbox: &mut Inbox) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some((slot, bytes)) = inbox.deliver() {
            all.extend(inbox.message(slot, bytes));
        }
        all
    }

    #[test]
    fn order_is_restored_across_the_wrap() {
        let mut inbox = inbox(8);
        assert_eq!(inbox.take(number(0), b"0", false), Arrival::Next);
        assert_eq!(inbox.take(number(3), b"3", false), Arrival::Held);
        assert_eq!(inbox.take(number(2), b"2", false), Arrival::Held);
        assert_eq!((inbox.selective(), inbox.room()), (0b11, 8));
        assert_eq!(delivered(&mut inbox), b"");
        assert_eq!(inbox.take(number(1), b"1", false), Arrival::Next);
        assert_eq!((inbox.next().wire(), inbox.selective(), inbox.room()), (number(4), 0, 6));
        assert_eq!(delivered(&mut inbox), b"23");
        assert_eq!(inbox.room(), 8);
    }

    #[test]
    fn duplicates_are_known_wherever_they_lie() {
        let mut inbox = inbox(8);
        assert_eq!(inbox.take(number(0), b"0", false), Arrival::Next);
        assert_eq!(inbox.take(number(0), b"0", false), Arrival::Duplicate);
        assert_eq!(inbox.take(number(5), b"5", false), Arrival::Held);
        assert_eq!(inbox.take(number(5), b"5", false), Arrival::Duplicate);
        assert_eq!(inbox.take(number(0).wrapping_sub(1), b"", false), Arrival::Duplicate);
        assert_eq!(inbox.take(number(1 << 31), b"", false), Arrival::Beyond);
        assert_eq!(
            inbox.take(number((1 << 31) + 1), b"", false),
            Arrival::Duplicate,
            "the far side counts as past"
        );
    }

    #[test]
    fn room_is_kept_to_the_number() {
        let mut inbox = inbox(4);
        assert_eq!(inbox.take(number(4), b"4", false), Arrival::Beyond);
        assert_eq!(inbox.take(number(3), b"3", false), Arrival::Held);
        inbox.is_paused = true;
        for index in 0..3 {
            assert_eq!(inbox.take(number(index), b"x", false), Arrival::Held);
        }
        assert_eq!((inbox.room(), inbox.next().wire()), (0, number(4)));
        assert_eq!(inbox.take(number(4), b"4", false), Arrival::Beyond);
        assert!(!inbox.has_ready());
        inbox.is_paused = false;
        assert_eq!(delivered(&mut inbox), b"xxx3");
        assert_eq!(inbox.room(), 4);
    }

    #[test]
    fn what_is_next_waits_for_what_was_held_before_it() {
        let mut inbox = inbox(8);
        assert_eq!(inbox.take(number(1), b"1", false), Arrival::Held);
        assert_eq!(inbox.take(number(0), b"0", false), Arrival::Next);
        assert_eq!(inbox.take(number(2), b"2", false), Arrival::Held, "the program has not seen 1 yet");
        assert_eq!(delivered(&mut inbox), b"12");
        assert_eq!(inbox.take(number(3), b"3", false), Arrival::Next);
    }

    #[test]
    fn a_full_window_can_be_held() {
        let mut inbox = inbox(64);
        for index in 1..64 {
            assert_eq!(inbox.take(number(index), &[index as u8], false), Arrival::Held);
        }
        assert_eq!(inbox.selective(), u64::MAX >> 1);
        assert_eq!(inbox.take(number(64), b"", false), Arrival::Beyond);
        assert_eq!(inbox.take(number(0), b"", false), Arrival::Next);
        assert_eq!(delivered(&mut inbox), (1..64).collect::<Vec<u8>>());
        assert_eq!((inbox.selective(), inbox.next().wire()), (0, number(64)));
    }

    #[test]
    fn a_close_ends_the_numbers() {
        let mut inbox = inbox(8);
        assert_eq!(inbox.take_close(number(2)), Arrival::Held);
        assert_eq!(inbox.take(number(3), b"3", false), Arrival::Beyond);
        assert_eq!(inbox.take_close(number(1)), Arrival::Beyond, "there is one close");
        assert_eq!(inbox.take(number(1), b"1", false), Arrival::Held);
        assert_eq!(
            inbox.take(number(0), b"0", false),
            Arrival::Held,
            "once a close is known, all go by the ring"
        );
        assert!(!inbox.is_closed(), "not before all is delivered");
        assert_eq!(delivered(&mut inbox), b"01");
        assert!(inbox.is_closed());
        assert_eq!(inbox.take_close(number(2)), Arrival::Duplicate);
    }

    #[test]
    fn a_close_before_what_is_held_is_refused() {
        let mut inbox = inbox(8);
        assert_eq!(inbox.take(number(4), b"4", false), Arrival::Held);
        assert_eq!(inbox.take_close(number(3)), Arrival::Beyond);
        assert_eq!(inbox.take_close(number(5)), Arrival::Held);
    }

    #[test]
    fn a_gap_is_news_for_a_while() {
        let mut inbox = inbox(64);
        let mut news = Vec::new();
        for index in [1, 2, 3, 4, 5, 6, 9, 10] {
            assert_eq!(inbox.take(number(index), b"", false), Arrival::Held);
            if inbox.is_gap_news(number(index)) {
                news.push(index);
            }
        }
        assert_eq!(news, [1, 2, 3, 4, 9], "the first four behind the first gap, and the second gap");
    }
}
