//! Numbers of datagrams: 32 bits on the wire, 64 inside, so that nothing inside ever wraps.

/// Names one side's end of one connection: random, so that an attacker cannot guess it and a restarted side has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Session(pub(crate) u64);

impl Session {
    /// No session: what stands in a frame where a side's session is not known yet.
    pub(crate) const NONE: Session = Session(0);
}

/// The number of a datagram, counted without wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sequence(u64);

impl Sequence {
    /// The first number of the side with this session: the session's low half, which both sides know.
    ///
    /// One lap of the wire's numbers is added, so that numbers before the first exist and need no special case.
    pub(crate) const fn first(session: Session) -> Self {
        Sequence((1 << 32) + (session.0 & 0xffff_ffff))
    }

    /// The number as it goes on the wire.
    pub(crate) const fn wire(self) -> u32 {
        self.0 as u32
    }

    /// The index of its slot in a ring of [`crate::MOST_WINDOW`] slots.
    pub(crate) const fn slot(self) -> usize {
        (self.0 % crate::MOST_WINDOW as u64) as usize
    }

    /// The number so many later.
    #[must_use]
    pub(crate) const fn plus(self, count: u32) -> Self {
        Sequence(self.0 + count as u64)
    }

    /// The number so many earlier.
    #[must_use]
    pub(crate) const fn minus(self, count: u32) -> Self {
        Sequence(self.0 - count as u64)
    }

    /// How many numbers lie from `earlier` to this one; `earlier` must not be later.
    pub(crate) const fn since(self, earlier: Sequence) -> u32 {
        debug_assert!(earlier.0 <= self.0 && self.0 - earlier.0 <= u32::MAX as u64);
        (self.0 - earlier.0) as u32
    }

    /// How far the number on the wire lies after this one, negative when before: the nearer of the two ways round.
    pub(crate) const fn distance(self, wire: u32) -> i32 {
        wire.wrapping_sub(self.wire()) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_s_numbers_wrap_and_ours_do_not() {
        let last = Sequence::first(Session(0xabcd_0000_ffff_ffff));
        assert_eq!(last.wire(), u32::MAX);
        let next = last.plus(1);
        assert_eq!(next.wire(), 0);
        assert_eq!(next.since(last), 1);
        assert!(last < next);
        assert_eq!(last.distance(0), 1);
        assert_eq!(next.distance(u32::MAX), -1);
        assert_eq!(next.slot(), (last.slot() + 1) % 64);
    }
}
