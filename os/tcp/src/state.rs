//! States of a connection, as the kernel numbers them.

/// Where a connection of TCP is between its beginning and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    Established = 1,
    SynSent = 2,
    SynReceived = 3,
    FinWait1 = 4,
    FinWait2 = 5,
    TimeWait = 6,
    /// Not connected: never, or no more. Also while bytes that came before a reset, or before the end of both directions, are unread.
    Closed = 7,
    CloseWait = 8,
    LastAck = 9,
    Listening = 10,
    Closing = 11,
    /// A request that no socket exists for yet. The kernel's lists show it as [`State::SynReceived`].
    Requested = 12,
}

impl State {
    /// The state with this number, or `None` if no kernel has one.
    pub fn from_number(number: u8) -> Option<State> {
        use State::*;
        let all = [
            Established,
            SynSent,
            SynReceived,
            FinWait1,
            FinWait2,
            TimeWait,
            Closed,
            CloseWait,
            LastAck,
            Listening,
            Closing,
            Requested,
        ];
        all.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Whether the socket's own FIN is among the bytes that it was given; `None` in a state that does not say.
    pub(crate) fn has_given_fin(self) -> Option<bool> {
        match self {
            State::Established | State::CloseWait => Some(false),
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait => {
                Some(true)
            }
            State::SynSent | State::SynReceived | State::Closed | State::Listening | State::Requested => None,
        }
    }

    /// Whether the other side's FIN is among the bytes that came; `None` in a state that does not say.
    pub(crate) fn has_received_fin(self) -> Option<bool> {
        match self {
            State::Established | State::FinWait1 | State::FinWait2 => Some(false),
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait => Some(true),
            State::SynSent | State::SynReceived | State::Closed | State::Listening | State::Requested => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_a_state_gives_that_state_and_no_other_does() {
        for number in 0..=u8::MAX {
            let found = State::from_number(number);
            assert_eq!(found.map(|state| state as u8), (1..=12).contains(&number).then_some(number));
        }
    }
}
