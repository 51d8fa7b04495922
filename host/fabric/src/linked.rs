//! Connecting to one of several that come and go: what is connected to may go before it can be used.

use core::time::Duration;

use crate::calls::FIRST_CONTACT_NANOS;
use crate::refusal::Refusal;

/// How long an attempt that is made at once goes on at most where others come and go.
const PATIENCE: Duration = Duration::from_nanos(FIRST_CONTACT_NANOS);

/// Connects until what is connected to stays long enough for `link`, at most `timeout`; at zero as long as others come and go that are there
/// at once. `elapsed` is the time since the call began; `connect` is given the time that is left.
///
/// # Errors
/// What `connect` refuses; [`Refusal::Timeout`], or [`Refusal::NodeNotResponding`] at zero, where each went.
pub fn until_linked<R, T>(
    timeout: Option<Duration>,
    elapsed: impl Fn() -> Duration,
    mut connect: impl FnMut(Option<Duration>) -> Result<R, Refusal>,
    mut link: impl FnMut(R) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let is_once = timeout == Some(Duration::ZERO);
    let mut left = timeout;
    loop {
        match link(connect(left)?) {
            Err(Refusal::NotConnected) => {}
            linked => return linked,
        }
        if is_once && elapsed() >= PATIENCE {
            return Err(Refusal::NodeNotResponding);
        }
        if !is_once {
            left = timeout.map(|timeout| timeout.saturating_sub(elapsed()));
            if left == Some(Duration::ZERO) {
                return Err(Refusal::Timeout);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;

    #[test]
    fn who_connects_once_to_what_always_goes_is_refused_at_last() {
        let connect = |_| Ok(());
        for (timeout, refusal) in
            [(Duration::ZERO, Refusal::NodeNotResponding), (Duration::from_secs(3), Refusal::Timeout)]
        {
            let seconds = Cell::new(0);
            let elapsed = || Duration::from_secs(seconds.replace(seconds.get() + 1));
            let refused =
                until_linked(Some(timeout), elapsed, connect, |()| Err::<(), _>(Refusal::NotConnected));
            assert_eq!(refused, Err(refusal));
        }
        let never = || unreachable!("it is refused for another reason");
        let refused = until_linked(None, never, connect, |()| Err::<(), _>(Refusal::ConnectionRefused));
        assert_eq!(refused, Err(Refusal::ConnectionRefused));
    }
}
