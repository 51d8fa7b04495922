//! What is measured, as a word on the command line of the side that answers.

/// Bytes of a notification and of a packet.
pub(super) const BYTES: usize = 8;

/// What carries a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// Notifications of a domain, in both directions.
    Notification,
    /// An eventfd for each direction.
    EventFd,
    /// A pair of Unix sockets that keep packets apart.
    SeqPacket,
    /// An interrupt of each of two members of a fabric.
    Interrupt,
    /// The same with a message.
    DataInterrupt,
}

/// How a side waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Asks again and again.
    Polled,
    /// Sleeps in `poll` on the descriptor.
    Asleep,
    /// The side that answers has a callback on a thread of its own; the side that asks sleeps.
    Callback,
}

/// What the side that answers does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Sends each back.
    Echo,
    /// Takes all of them and sends one back after the last.
    Take,
}

/// A carrier, how it is waited for, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(super) carrier: Carrier,
    pub(super) waiting: Waiting,
    pub(super) work: Work,
}

impl Role {
    /// The word: what is named by it is one of [`Role::all`].
    pub(super) fn word(self) -> String {
        let Role { carrier, waiting, work } = self;
        let carrier = match carrier {
            Carrier::Notification => "notification",
            Carrier::EventFd => "eventfd",
            Carrier::SeqPacket => "seqpacket",
            Carrier::Interrupt => "interrupt",
            Carrier::DataInterrupt => "data-interrupt",
        };
        format!("wake-up-{carrier}-{waiting:?}-{work:?}").to_lowercase()
    }

    /// `None` where the word names no role: none of ours, or one that makes no sense.
    pub(crate) fn of_word(word: &str) -> Option<Role> {
        Role::all().find(|role| role.word() == word)
    }

    pub(super) fn all() -> impl Iterator<Item = Role> {
        let carriers = [
            Carrier::Notification,
            Carrier::EventFd,
            Carrier::SeqPacket,
            Carrier::Interrupt,
            Carrier::DataInterrupt,
        ];
        let ways = [Waiting::Polled, Waiting::Asleep, Waiting::Callback];
        let with_way = move |carrier| ways.into_iter().map(move |waiting| (carrier, waiting));
        let roles = carriers.into_iter().flat_map(with_way).flat_map(|(carrier, waiting)| {
            [Work::Echo, Work::Take].map(|work| Role { carrier, waiting, work })
        });
        // Only notifications have callbacks, and a callback that only counts is no other path. Interrupts that come at once are one.
        roles.filter(|role| match role.waiting {
            Waiting::Callback => role.carrier == Carrier::Notification && role.work == Work::Echo,
            Waiting::Polled | Waiting::Asleep => !role.is_interrupt() || role.work == Work::Echo,
        })
    }

    pub(super) fn is_interrupt(self) -> bool {
        matches!(self.carrier, Carrier::Interrupt | Carrier::DataInterrupt)
    }

    /// Whether interrupts are compared with it: round trips of eventfds and of their own.
    pub(super) fn is_beside_interrupts(self) -> bool {
        self.is_interrupt() || (self.carrier == Carrier::EventFd && self.work == Work::Echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_comes_back_from_its_word() {
        assert_eq!(Role::all().count(), 17);
        assert_eq!(Role::all().filter(|role| role.is_beside_interrupts()).count(), 6);
        assert!(Role::all().all(|role| Role::of_word(&role.word()) == Some(role)));
        assert_eq!(Role::of_word("wake-up-eventfd-callback-echo"), None);
    }
}
