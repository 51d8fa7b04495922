//! What the two processes of a pair have agreed on: which connections they share, and which slot each of these has. No message is sent
//! or taken here.
//!
//! One says which of its sockets, by the kernel's word, is connected to which of the other's. The other asks the kernel as well, and
//! accepts or refuses. So both have confirmed both sockets before either counts on it. The process that owns the connection
//! between the two gives the slots out. What the other process says is checked, and refused and counted where it cannot be.

use std::collections::{BTreeMap, BTreeSet};

/// Slots of a pair.
pub(crate) const SLOTS: u32 = 16_384;
pub(crate) const MESSAGE_BYTES: usize = 24;
/// Slots that were given back and whose memory stays for the next connections: emptying it costs as much as meeting.
pub(crate) const KEPT: usize = 32;

/// The sockets of a connection, by the numbers that the kernel never gives twice (`SO_COOKIE`), as one end has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cookies {
    pub(crate) own: u64,
    pub(crate) other: u64,
}

impl Cookies {
    pub(super) fn mirrored(self) -> Self {
        Cookies { own: self.other, other: self.own }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saying {
    /// The sender has confirmed that this connection is shared; with the slot, where the sender gives them out.
    Announce(Option<u32>),
    /// So has the receiver of an announcement.
    Accept(u32),
    Refuse,
    /// The sender has done with the connection.
    Release,
}

/// Something about a connection that one process says to the other, with the cookies as the sender has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) saying: Saying,
    pub(crate) cookies: Cookies,
}

const NO_SLOT: u32 = u32::MAX;

impl Message {
    pub(crate) fn to_bytes(self) -> [u8; MESSAGE_BYTES] {
        let (kind, slot) = match self.saying {
            Saying::Announce(slot) => (1_u32, slot.unwrap_or(NO_SLOT)),
            Saying::Accept(slot) => (2, slot),
            Saying::Refuse => (3, NO_SLOT),
            Saying::Release => (4, NO_SLOT),
        };
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&slot.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.cookies.own.to_le_bytes());
        bytes[16..].copy_from_slice(&self.cookies.other.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; MESSAGE_BYTES] = bytes.try_into().ok()?;
        let (numbers, cookies) = bytes.split_at(8);
        let number = |at: usize| numbers[at..].first_chunk().map(|word| u32::from_le_bytes(*word));
        let cookie = |at: usize| cookies[at..].first_chunk().map(|word| u64::from_le_bytes(*word));
        let saying = match (number(0)?, number(4)?) {
            (1, NO_SLOT) => Saying::Announce(None),
            (1, slot @ 0..SLOTS) => Saying::Announce(Some(slot)),
            (2, slot @ 0..SLOTS) => Saying::Accept(slot),
            (3, NO_SLOT) => Saying::Refuse,
            (4, NO_SLOT) => Saying::Release,
            _ => return None,
        };
        Some(Message { saying, cookies: Cookies { own: cookie(0)?, other: cookie(8)? } })
    }
}

/// The connections of a pair, as one of its processes knows them.
#[derive(Debug)]
pub(crate) struct Agreements {
    /// Whether this process gives the slots out.
    gives_slots: bool,
    /// By the cookie of this process's socket.
    known: BTreeMap<u64, Entry>,
    used: BTreeSet<u32>,
    /// Slots that were given out and may be again: those whose memory is as it was left, the last one behind, those whose memory is
    /// empty; and the first that never was.
    returned: Vec<u32>,
    emptied: Vec<u32>,
    fresh: u32,
    wrong: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    other: u64,
    slot: Option<u32>,
    is_agreed: bool,
    is_released_here: bool,
    is_released_there: bool,
}

/// What is to be done after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Nothing,
    Reply(Message),
    /// It cannot be: counted, and a refusal goes back where there was something to refuse.
    Wrong(Option<Message>),
}

impl Agreements {
    pub(crate) fn new(gives_slots: bool) -> Self {
        let (known, used, returned, emptied) = (BTreeMap::new(), BTreeSet::new(), Vec::new(), Vec::new());
        Agreements { gives_slots, known, used, returned, emptied, fresh: 0, wrong: 0 }
    }

    /// Messages that could not be.
    pub(crate) fn wrong(&self) -> u64 {
        self.wrong
    }

    /// Free slots whose memory is to be emptied: nobody gets one of them before [`Agreements::emptied`].
    pub(crate) fn take_to_empty(&mut self) -> Vec<u32> {
        let more = self.returned.len().saturating_sub(KEPT);
        self.returned.drain(..more).collect()
    }

    pub(crate) fn emptied(&mut self, slots: Vec<u32>) {
        self.emptied.extend(slots);
    }

    /// The other cookie and the slot of a connection on which both have agreed and that neither has released.
    pub(crate) fn agreed(&self, own_cookie: u64) -> Option<(u64, u32)> {
        let entry = self.known.get(&own_cookie)?;
        let is_agreed = entry.is_agreed && !entry.is_released_here && !entry.is_released_there;
        entry.slot.filter(|_| is_agreed).map(|slot| (entry.other, slot))
    }

    pub(crate) fn knows(&self, own_cookie: u64) -> bool {
        self.known.contains_key(&own_cookie)
    }

    /// What is to be said of a connection that this process has confirmed; `None` where it has been said, or no slot is free.
    pub(crate) fn announce(&mut self, cookies: Cookies) -> Option<Message> {
        if self.known.contains_key(&cookies.own) {
            return None;
        }
        let slot = if self.gives_slots { Some(self.take_slot()?) } else { None };
        self.known.insert(cookies.own, Entry::new(cookies.other, slot));
        Some(Message { saying: Saying::Announce(slot), cookies })
    }

    /// This process has done with a connection: what is to be said of it.
    pub(crate) fn release(&mut self, own_cookie: u64) -> Option<Message> {
        let entry = self.known.get_mut(&own_cookie).filter(|entry| !entry.is_released_here)?;
        entry.is_released_here = true;
        let (other, is_over) = (entry.other, entry.is_released_there);
        if is_over {
            self.forget(own_cookie);
        }
        Some(Message { saying: Saying::Release, cookies: Cookies { own: own_cookie, other } })
    }

    /// Takes what the other process says. `is_shared` is whether this process has the connection of an announcement, by the kernel's
    /// word for both sockets.
    pub(crate) fn hear(&mut self, message: Message, is_shared: bool) -> Heard {
        let cookies = message.cookies.mirrored();
        let heard = match message.saying {
            Saying::Announce(slot) => self.announced(cookies, slot, is_shared),
            Saying::Accept(slot) => self.accepted(cookies, slot),
            Saying::Refuse => self.refused(cookies),
            Saying::Release => self.released(cookies),
        };
        if let Heard::Wrong(_) = heard {
            self.wrong += 1;
        }
        heard
    }

    fn announced(&mut self, cookies: Cookies, told: Option<u32>, is_shared: bool) -> Heard {
        let refusal = Heard::Wrong(Some(Message { saying: Saying::Refuse, cookies }));
        // Whoever gives the slots out names one, and nobody else does.
        if told.is_some() == self.gives_slots || !is_shared {
            return refusal;
        }
        let known = self.known.get(&cookies.own).copied();
        if known.is_some_and(|entry| entry.other != cookies.other || entry.is_released_here) {
            return refusal;
        }
        let had = known.and_then(|entry| entry.slot);
        let slot = match (told, had) {
            (Some(told), Some(had)) if told != had => return refusal,
            (Some(told), None) if self.used.contains(&told) => return refusal,
            (Some(told), _) => told,
            (None, Some(had)) => had,
            (None, None) => match self.take_slot() {
                Some(slot) => slot,
                // As many as there can be: nothing that the other did wrong.
                None => return Heard::Reply(Message { saying: Saying::Refuse, cookies }),
            },
        };
        self.agree(cookies, slot);
        Heard::Reply(Message { saying: Saying::Accept(slot), cookies })
    }

    fn accepted(&mut self, cookies: Cookies, slot: u32) -> Heard {
        let Some(entry) = self.known.get(&cookies.own).copied() else { return Heard::Wrong(None) };
        let is_free = entry.slot.is_none() && !self.gives_slots && !self.used.contains(&slot);
        if entry.other != cookies.other || !(entry.slot == Some(slot) || is_free) {
            return Heard::Wrong(None);
        }
        self.agree(cookies, slot);
        Heard::Nothing
    }

    fn refused(&mut self, cookies: Cookies) -> Heard {
        match self.known.get(&cookies.own) {
            Some(entry) if entry.other == cookies.other && !entry.is_agreed => {
                self.forget(cookies.own);
                Heard::Nothing
            }
            _ => Heard::Wrong(None),
        }
    }

    fn released(&mut self, cookies: Cookies) -> Heard {
        let Some(entry) = self.known.get_mut(&cookies.own).filter(|entry| entry.other == cookies.other)
        else {
            // It was refused meanwhile, or never accepted.
            return Heard::Nothing;
        };
        entry.is_released_there = true;
        if entry.is_released_here || !entry.is_agreed {
            self.forget(cookies.own);
        }
        Heard::Nothing
    }

    fn agree(&mut self, cookies: Cookies, slot: u32) {
        self.used.insert(slot);
        let entry = self.known.entry(cookies.own).or_insert(Entry::new(cookies.other, None));
        (entry.slot, entry.is_agreed) = (Some(slot), true);
    }

    fn forget(&mut self, own_cookie: u64) {
        if let Some(Entry { slot: Some(slot), .. }) = self.known.remove(&own_cookie) {
            self.used.remove(&slot);
            if self.gives_slots {
                self.returned.push(slot);
            }
        }
    }

    fn take_slot(&mut self) -> Option<u32> {
        let slot = self.returned.pop().or_else(|| self.emptied.pop()).or_else(|| {
            let fresh = self.fresh;
            self.fresh += u32::from(fresh < SLOTS);
            (fresh < SLOTS).then_some(fresh)
        })?;
        self.used.insert(slot);
        Some(slot)
    }
}

impl Entry {
    fn new(other: u64, slot: Option<u32>) -> Self {
        Entry { other, slot, is_agreed: false, is_released_here: false, is_released_there: false }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// The connection of this number: the first process has the even cookie.
    fn cookies(connection: u64, process: usize) -> Cookies {
        let first = Cookies { own: 2 * connection, other: 2 * connection + 1 };
        if process == 0 { first } else { first.mirrored() }
    }

    /// Two processes, the first of which gives the slots out, and what is on its way to each.
    struct Pair {
        sides: [Agreements; 2],
        to: [VecDeque<Message>; 2],
    }

    impl Pair {
        fn new() -> Self {
            Pair { sides: [true, false].map(Agreements::new), to: Default::default() }
        }

        fn say(&mut self, from: usize, message: Option<Message>) {
            self.to[1 - from].extend(message);
        }

        fn deliver(&mut self, to: usize) -> bool {
            let Some(message) = self.to[to].pop_front() else { return false };
            let bytes = message.to_bytes();
            let message = Message::from_bytes(&bytes).unwrap();
            match self.sides[to].hear(message, true) {
                Heard::Nothing => {}
                Heard::Reply(reply) => self.say(to, Some(reply)),
                Heard::Wrong(reply) => self.say(to, reply),
            }
            true
        }

        fn deliver_all(&mut self) {
            while self.deliver(0) || self.deliver(1) {}
        }

        fn agreed(&self, connection: u64) -> [Option<u32>; 2] {
            [0, 1].map(|side| {
                let (other, slot) = self.sides[side].agreed(cookies(connection, side).own)?;
                assert_eq!(other, cookies(connection, side).other);
                Some(slot)
            })
        }
    }

    #[test]
    fn both_agree_whoever_announces_and_also_when_both_do() {
        for announcing in [[true, false], [false, true], [true, true]] {
            let mut pair = Pair::new();
            for side in [0, 1] {
                if announcing[side] {
                    let message = pair.sides[side].announce(cookies(5, side));
                    pair.say(side, message);
                    assert_eq!(pair.agreed(5), [None, None], "the other has not confirmed it");
                }
            }
            pair.deliver_all();
            assert_eq!(pair.agreed(5), [Some(0), Some(0)]);
            assert_eq!(pair.sides.each_ref().map(Agreements::wrong), [0, 0]);
        }
    }

    #[test]
    fn slot_is_given_out_again_when_both_have_released_it() {
        let mut pair = Pair::new();
        let announce = |pair: &mut Pair, connection| {
            let message = pair.sides[1].announce(cookies(connection, 1));
            pair.say(1, message);
            pair.deliver_all();
        };
        announce(&mut pair, 1);
        let released = pair.sides[1].release(cookies(1, 1).own);
        pair.say(1, released);
        pair.deliver_all();
        assert_eq!(pair.agreed(1), [None, None]);
        announce(&mut pair, 2);
        assert_eq!(pair.agreed(2), [Some(1), Some(1)], "one of them has not");
        let released = pair.sides[0].release(cookies(1, 0).own);
        pair.say(0, released);
        pair.deliver_all();
        announce(&mut pair, 3);
        assert_eq!(pair.agreed(3), [Some(0), Some(0)]);
        assert_eq!(pair.sides.each_ref().map(Agreements::wrong), [0, 0]);
    }

    #[test]
    fn slot_whose_memory_is_to_be_emptied_is_given_out_behind_that() {
        let mut side = Agreements::new(true);
        let count = KEPT as u64 + 3;
        for connection in 0..count {
            side.announce(cookies(connection, 0));
            assert!(side.take_to_empty().is_empty());
            side.hear(
                Message { saying: Saying::Accept(connection as u32), cookies: cookies(connection, 1) },
                true,
            );
        }
        for connection in 0..count {
            side.release(cookies(connection, 0).own);
            side.hear(Message { saying: Saying::Release, cookies: cookies(connection, 1) }, true);
        }
        let to_empty = side.take_to_empty();
        assert_eq!((to_empty.as_slice(), side.take_to_empty()), ([0, 1, 2].as_slice(), Vec::new()));
        let given = |side: &mut Agreements| {
            (0..KEPT + 2).filter_map(|_| side.take_slot()).filter(|slot| to_empty.contains(slot)).count()
        };
        assert_eq!(given(&mut side), 0, "they are being emptied");
        side.emptied(to_empty.clone());
        assert_eq!(given(&mut side), 3);
    }

    #[test]
    fn announcement_that_cannot_be_is_refused_and_counted() {
        let announce = |slot, cookies: Cookies| Message { saying: Saying::Announce(slot), cookies };
        let (theirs, refusal) = (cookies(1, 0), Message { saying: Saying::Refuse, cookies: cookies(1, 1) });
        let mut side = Agreements::new(false);
        assert_eq!(side.hear(announce(Some(3), theirs), false), Heard::Wrong(Some(refusal)), "not shared");
        assert_eq!(side.hear(announce(None, theirs), true), Heard::Wrong(Some(refusal)), "no slot");
        assert!(matches!(side.hear(announce(Some(3), theirs), true), Heard::Reply(_)));
        assert_eq!(side.hear(announce(Some(4), theirs), true), Heard::Wrong(Some(refusal)), "another slot");
        assert!(matches!(side.hear(announce(Some(3), cookies(2, 0)), true), Heard::Wrong(Some(_))), "used");
        let other = Cookies { own: 99, ..theirs };
        assert!(matches!(side.hear(announce(Some(5), other), true), Heard::Wrong(Some(_))), "another socket");
        assert!(matches!(side.hear(announce(Some(3), other), true), Heard::Wrong(Some(_))), "on that slot");
        assert_eq!((side.wrong(), side.agreed(theirs.other)), (6, Some((theirs.own, 3))));
        assert_eq!(side.hear(Message { saying: Saying::Refuse, cookies: theirs }, true), Heard::Wrong(None));
        assert_eq!(side.agreed(theirs.other), Some((theirs.own, 3)), "too late to refuse");
        let mut giver = Agreements::new(true);
        assert!(matches!(giver.hear(announce(Some(3), theirs), true), Heard::Wrong(Some(_))));
        let accept = Message { saying: Saying::Accept(0), cookies: theirs };
        assert_eq!(giver.hear(accept, true), Heard::Wrong(None), "nothing was announced");
    }

    #[test]
    fn pair_has_as_many_slots_as_there_are_and_no_more() {
        let mut pair = Pair::new();
        for connection in 0..u64::from(SLOTS) {
            assert!(pair.sides[0].announce(cookies(connection, 0)).is_some());
        }
        assert_eq!(pair.sides[0].announce(cookies(1 << 20, 0)), None);
        let message = pair.sides[1].announce(cookies(1 << 21, 1));
        pair.say(1, message);
        pair.deliver_all();
        assert_eq!((pair.agreed(1 << 21), pair.sides[0].wrong()), ([None, None], 0));
        assert!(!pair.sides[1].knows(cookies(1 << 21, 1).own), "it may be tried again");
    }

    proptest! {
        #[test]
        fn in_any_order_both_agree_on_the_same_slots_and_none_is_given_twice(
            steps in proptest::collection::vec((0_u8..8, 0_usize..2, 0_u64..6), 1..120)
        ) {
            let mut pair = Pair::new();
            let mut released = BTreeSet::new();
            for (step, side, connection) in steps {
                let own = cookies(connection, side);
                match step {
                    0..=2 if !released.contains(&connection) => {
                        let message = pair.sides[side].announce(own);
                        pair.say(side, message);
                    }
                    3 => {
                        released.insert(connection);
                        let message = pair.sides[side].release(own.own);
                        pair.say(side, message);
                    }
                    _ => _ = pair.deliver(side),
                }
                for side in &pair.sides {
                    let slots: Vec<u32> = side.known.values().filter_map(|entry| entry.slot).collect();
                    prop_assert_eq!(slots.iter().collect::<BTreeSet<_>>().len(), slots.len());
                    prop_assert!(slots.iter().all(|slot| side.used.contains(slot)));
                }
            }
            pair.deliver_all();
            for connection in (0..6).filter(|connection| !released.contains(connection)) {
                let [first, second] = pair.agreed(connection);
                prop_assert_eq!(first, second);
            }
        }

        #[test]
        fn whatever_is_said_nothing_is_agreed_that_this_process_has_not_confirmed(
            gives: bool,
            said in proptest::collection::vec(
                (1_u32..5, prop_oneof![0..SLOTS + 3, Just(NO_SLOT)], 0_u64..8, 0_u64..8, any::<bool>()), 1..200)
        ) {
            let mut side = Agreements::new(gives);
            side.announce(cookies(0, 0));
            let mut confirmed = BTreeSet::from([cookies(0, 0)]);
            for (kind, slot, own, other, is_shared) in said {
                let mut bytes = [0; MESSAGE_BYTES];
                bytes[..4].copy_from_slice(&kind.to_le_bytes());
                bytes[4..8].copy_from_slice(&slot.to_le_bytes());
                bytes[8..16].copy_from_slice(&own.to_le_bytes());
                bytes[16..].copy_from_slice(&other.to_le_bytes());
                let Some(message) = Message::from_bytes(&bytes) else { continue };
                prop_assert_eq!(message.to_bytes(), bytes);
                if is_shared && matches!(message.saying, Saying::Announce(_)) {
                    confirmed.insert(message.cookies.mirrored());
                }
                side.hear(message, is_shared);
            }
            let mut slots = BTreeSet::new();
            for own in 0..8 {
                let Some((other, slot)) = side.agreed(own) else { continue };
                let cookies = Cookies { own, other };
                prop_assert!(confirmed.contains(&cookies));
                prop_assert!(slot < SLOTS && slots.insert(slot));
            }
        }
    }
}
