//! Why a subscriber cannot be told something, and why nothing more is told.

use beeline_domain::{MisuseError, NotificationsEnded};

use super::cause::Cause;

/// Why a subscriber cannot be told something; nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// It has ended or unsubscribed, or was disconnected.
    #[error("the subscriber has gone")]
    Gone,
    /// More than a notification may have.
    #[error("cannot notify of {bytes} bytes with {fds} descriptors")]
    TooLarge {
        /// Bytes of the payload.
        bytes: usize,
        /// Number of descriptors.
        fds: usize,
    },
    /// The call came from a forked child, or the library's descriptor was closed.
    #[error("cannot notify from here")]
    Misuse {
        /// The rule that was broken.
        source: Cause,
    },
    /// The kernel refused something.
    #[error("cannot notify the subscriber")]
    System {
        /// What the kernel said.
        source: Cause,
    },
}

impl NotifyError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            NotifyError::Gone => "leave this subscriber out; one that comes again is another one",
            NotifyError::TooLarge { .. } => {
                "tell at most 4096 bytes and 4 descriptors; put the rest into a window or a segment"
            }
            NotifyError::Misuse { .. } => {
                "notify in the process that offers; leave the descriptors that `descriptors` lists alone"
            }
            NotifyError::System { .. } => {
                "see what the kernel refused; `ulimit -a` shows the limits of this process"
            }
        }
    }
}

impl From<beeline_domain::NotifyError> for NotifyError {
    #[cold]
    fn from(error: beeline_domain::NotifyError) -> Self {
        use beeline_domain::NotifyError as Below;
        match error {
            Below::Gone => NotifyError::Gone,
            Below::TooLarge { bytes, fds } => NotifyError::TooLarge { bytes, fds },
            Below::System { errno } => NotifyError::System { source: errno.into() },
            Below::Misuse(error) => NotifyError::Misuse { source: error.into() },
        }
    }
}

/// Why a subscription gives nothing more. What came before was taken first.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscriptionEnded {
    /// This process ended it.
    #[error("the subscription was ended on this side")]
    Unsubscribed,
    /// The notifier ended it, and everything that it had told was taken.
    #[error("the notifier has ended the subscription")]
    Closed,
    /// The notifier ended it while notifications waited there for room; those are lost.
    #[error("the notifier has ended the subscription before all that it told had left")]
    CutOff {
        /// How many are lost, where the notifier could say it.
        missing: Option<u32>,
    },
    /// The notifier's process has ended. What had left it was taken.
    #[error("the notifier's process has ended")]
    OwnerDied,
    /// The notifier sent what no sound one sends.
    #[error("the notifier is faulty")]
    OwnerFaulty {
        /// What it sent.
        source: Cause,
    },
    /// The call came from a forked child or from a callback that must not wait, or the library's descriptor was closed.
    #[error("no notification can be taken from here")]
    Misuse {
        /// The rule that was broken.
        source: Cause,
    },
}

impl SubscriptionEnded {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            SubscriptionEnded::Unsubscribed => "take notifications before the subscription is dropped",
            SubscriptionEnded::Closed | SubscriptionEnded::OwnerDied => {
                "subscribe again, with a time to wait for the next notifier"
            }
            SubscriptionEnded::CutOff { .. } => {
                "subscribe again and ask for what was missed; take notifications as fast as they come"
            }
            SubscriptionEnded::OwnerFaulty { .. } => {
                "see that both programs are of one release; end the notifier"
            }
            SubscriptionEnded::Misuse { .. } => {
                "take notifications in the process that subscribed; leave the descriptors that `descriptors` lists alone"
            }
        }
    }
}

impl From<NotificationsEnded> for SubscriptionEnded {
    #[cold]
    fn from(ended: NotificationsEnded) -> Self {
        use NotificationsEnded as Below;
        let misuse = |error: MisuseError| SubscriptionEnded::Misuse { source: error.into() };
        match ended {
            Below::ClosedHere => SubscriptionEnded::Unsubscribed,
            Below::Closed => SubscriptionEnded::Closed,
            Below::CutOff { missing } => SubscriptionEnded::CutOff { missing },
            Below::OwnerDied => SubscriptionEnded::OwnerDied,
            Below::Broken(error) => SubscriptionEnded::OwnerFaulty { source: error.into() },
            Below::Misuse(error) => misuse(error),
        }
    }
}
