//! Codes of domains and windows: the list of `include/beeline.h`, and how errors of the facade become codes and texts.

use core::error::Error;
use core::ffi::{CStr, c_char, c_int};
use core::fmt::Write as _;
use core::time::Duration;

use beeline::{ConnectError, NotifyError, OfferError, ProofError, RecvError, SendError, SubscriptionEnded};
use beeline_ffi::{Failure, Outcome};

macro_rules! codes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(pub(crate) const $name: c_int = $value;)*

        /// Every code, with its text.
        const CODES: &[(c_int, &str, &CStr)] = &[$(($value, stringify!($name), $text)),*];
    };
}

codes! {
    OK = 0, c"done";
    FULL = 1, c"there is no room now";
    EMPTY = 2, c"nothing is there yet";
    END = 3, c"the byte stream has ended";
    TOO_LONG = -30, c"the message can never fit";
    SENDER_GONE = -31, c"the sender has ended; everything it completed was received";
    TORN = -32, c"the sender has ended in the middle of a message; everything in front of it was received";
    SENDER_FAULTY = -33, c"the sender stored what is no message";
    RECEIVER_GONE = -34, c"the receiver has ended; what it had not received is lost";
    RECEIVER_FAULTY = -35, c"the receiver wrote what no sound one writes";
    SHUT_DOWN = -36, c"the byte stream was shut down before";
    SUBSCRIBER_GONE = -37, c"the subscriber has gone";
    NOTIFIER_GONE = -38, c"the notifier has gone, and everything that it told was taken";
    CUT_OFF = -39, c"the notifier has ended before all that it told had left";
    INVALID = -40, c"an argument is not what it must be";
    WRONG_THREAD = -41, c"the handle belongs to another thread";
    BUSY = -42, c"the handle is in use further up in this thread";
    NO_MESSAGE = -47, c"no message is held";
    NO_SPACE = -48, c"what comes next is longer than the memory for it";
    OPEN = -49, c"a reservation or a batch is open";
    NOT_OPEN = -50, c"no reservation or batch is open";
    LOST = -51, c"memory of the segment is gone";
    REFUSED = -60, c"no domain, no connection, or no name: see the last error";
    NO_TOKEN = -61, c"the other side of the connection sends something else than a token";
    INTERNAL = -99, c"a defect in the library";
}

// What the edge says by itself has the same code in every library, and no code has another meaning for calls.
const _: () = {
    use beeline_ffi::status;
    assert!(OK == status::OK && INVALID == status::INVALID && WRONG_THREAD == status::WRONG_THREAD);
    assert!(BUSY == status::BUSY && REFUSED == status::REFUSED && INTERNAL == status::INTERNAL);
};

/// A failure whose text is the error's, its causes' and what to do.
#[cold]
fn failure(status: c_int, error: &dyn Error, remedy: &str) -> Failure {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing into a string does not fail.
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    let _ = write!(text, "; {remedy}");
    Failure::new(status, text)
}

#[cold]
pub(crate) fn of_offer(error: &OfferError) -> Failure {
    let status = if let OfferError::Options { .. } = error { INVALID } else { REFUSED };
    failure(status, error, error.remedy())
}

#[cold]
pub(crate) fn of_connect(error: &ConnectError) -> Failure {
    let status = if let ConnectError::Options { .. } = error { INVALID } else { REFUSED };
    failure(status, error, error.remedy())
}

#[cold]
pub(crate) fn of_send(error: &SendError) -> Failure {
    let status = match error {
        SendError::TooLong { .. } => TOO_LONG,
        SendError::ReceiverGone => RECEIVER_GONE,
        SendError::ReceiverFaulty { .. } => RECEIVER_FAULTY,
        SendError::ShutDown => SHUT_DOWN,
        _ => INTERNAL,
    };
    failure(status, error, error.remedy())
}

/// `status` of a sender whose receiver lives, such as [`FULL`]; of one that has ended there is no room now, nor will there be.
#[inline]
pub(crate) fn unless_gone(is_receiver_gone: bool, status: c_int) -> Outcome<c_int> {
    if is_receiver_gone { Err(of_send(&SendError::ReceiverGone)) } else { Ok(status) }
}

#[cold]
pub(crate) fn of_recv(error: &RecvError) -> Failure {
    let status = match error {
        RecvError::SenderGone => SENDER_GONE,
        RecvError::Torn(_) => TORN,
        RecvError::SenderFaulty { .. } => SENDER_FAULTY,
        _ => INTERNAL,
    };
    failure(status, error, error.remedy())
}

#[cold]
pub(crate) fn of_notify(error: &NotifyError) -> Failure {
    let status = match error {
        NotifyError::Gone => SUBSCRIBER_GONE,
        NotifyError::TooLarge { .. } => TOO_LONG,
        _ => REFUSED,
    };
    failure(status, error, error.remedy())
}

#[cold]
pub(crate) fn of_end(ended: &SubscriptionEnded) -> Failure {
    let status = match ended {
        SubscriptionEnded::CutOff { .. } => CUT_OFF,
        SubscriptionEnded::OwnerFaulty { .. } | SubscriptionEnded::Misuse { .. } => REFUSED,
        _ => NOTIFIER_GONE,
    };
    failure(status, ended, ended.remedy())
}

#[cold]
pub(crate) fn of_proof(error: &ProofError) -> Failure {
    let status = match error {
        ProofError::WrongKind => INVALID,
        ProofError::NotToken => NO_TOKEN,
        _ => REFUSED,
    };
    failure(status, error, error.remedy())
}

/// A time that C gives in nanoseconds, without end for `BEELINE_NEVER`.
pub(crate) fn duration(timeout_ns: u64) -> Duration {
    if timeout_ns == u64::MAX { Duration::MAX } else { Duration::from_nanos(timeout_ns) }
}

#[unsafe(no_mangle)]
extern "C" fn beeline_status_text(status: c_int) -> *const c_char {
    let entry = CODES.iter().find(|(code, ..)| *code == status);
    entry.map_or(c"no status of windows", |(.., text)| text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../include/beeline.h");

    #[test]
    fn the_header_has_every_code_and_no_other() {
        let listed = |line: &&str| line.trim_start().starts_with("BEELINE_") && line.contains(" = ");
        let lines: Vec<&str> = HEADER.lines().filter(listed).collect();
        for (code, name, _) in CODES {
            let wanted = format!("BEELINE_{name} = {code}");
            let is_it = |line: &&str| line.trim_start().trim_end_matches(',') == wanted;
            assert_eq!(lines.iter().copied().filter(|line| is_it(line)).count(), 1, "{wanted}");
        }
        // And the two ways to wait.
        assert_eq!(lines.len(), CODES.len() + 2);
    }

    #[test]
    fn a_code_of_calls_that_windows_have_too_means_the_same() {
        for (code, name, _) in CODES {
            let of_calls = crate::status::CODES.iter().find(|(other, ..)| other == code);
            assert!(of_calls.is_none_or(|(_, other, ..)| other == name), "{code}");
        }
    }

    #[test]
    fn texts_say_what_happened_why_and_what_to_do() {
        let error = SendError::TooLong { bytes: 9, max_bytes: 8 };
        let failure = of_send(&error);
        assert_eq!(failure.status, TOO_LONG);
        assert_eq!(
            failure.why,
            "cannot send a message of 9 bytes: this window takes 8 at most; send less at once, or offer a window of more lines"
        );
    }
}
