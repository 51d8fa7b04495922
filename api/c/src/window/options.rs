//! Options of windows, as C gives them, become options of the facade.

use core::time::Duration;

use beeline::{FencePolicy, ReceiverOptions, SenderOptions, Token, Traffic};
use beeline_ffi::{Array, Failure, Handle, Options, OptionsOfC, Outcome, Text};

use crate::admission::{self, beeline_admissions, beeline_token};
use crate::options::{kernel, policy};

/// `BEELINE_WINDOW_HUGE_PAGES`.
const HUGE_PAGES: u32 = 1;
/// `BEELINE_WINDOW_LOCKED`.
const LOCKED: u32 = 2;
/// How long connecting takes at most unless told otherwise, as for clients of calls.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// `struct beeline_window_receiver_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_window_receiver_options<'a> {
    size: usize,
    lines: u32,
    wait: u32,
    flags: u32,
    reserved: u32,
    allowed_uids: Array<'a, u32>,
    allowed_uid_count: usize,
    tuning: Text<'a>,
    admissions: Handle<beeline_admissions>,
}

/// `struct beeline_window_sender_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_window_sender_options<'a> {
    size: usize,
    connect_timeout_ns: u64,
    store_kernel: Text<'a>,
    traffic: u32,
    wait: u32,
    flags: u32,
    fences: u32,
    token: Handle<beeline_token>,
}

/// Options of the first header: no program has less.
const FIRST_RECEIVER_BYTES: usize = 40;
const FIRST_SENDER_BYTES: usize = 40;

const _: () = assert!(
    size_of::<beeline_window_receiver_options<'_>>() == 56
        && size_of::<beeline_window_sender_options<'_>>() == 48
);

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_window_receiver_options<'_> {
    const FIRST_BYTES: usize = FIRST_RECEIVER_BYTES;
}

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_window_sender_options<'_> {
    const FIRST_BYTES: usize = FIRST_SENDER_BYTES;
}

fn check(flags: u32) -> Outcome<()> {
    if flags & !(HUGE_PAGES | LOCKED) != 0 {
        let why = "it must be 0 or made of BEELINE_WINDOW_HUGE_PAGES and _LOCKED";
        return Err(Failure::invalid(format!("options.flags = {flags:#x}; {why}")));
    }
    Ok(())
}

fn fence_policy(fences: u32) -> Outcome<FencePolicy> {
    match fences {
        0 => Ok(FencePolicy::None),
        1 => Ok(FencePolicy::PerWrap),
        2 => Ok(FencePolicy::PerMessage),
        3 => Ok(FencePolicy::PerLine),
        other => {
            let why = "it must be one of BEELINE_WINDOW_FENCE_NONE to _PER_LINE";
            Err(Failure::invalid(format!("options.fences = {other}; {why}")))
        }
    }
}

pub(crate) fn receiver(
    options: &Options<'_, beeline_window_receiver_options<'_>>,
) -> Outcome<ReceiverOptions> {
    let Some(given) = options.read()? else { return Ok(ReceiverOptions::new()) };
    check(given.flags)?;
    if given.reserved != 0 {
        return Err(Failure::invalid(format!("options.reserved = {}; it must be 0", given.reserved)));
    }
    let uids = given.allowed_uids.read(given.allowed_uid_count, 65_536, "options.allowed_uids")?;
    let mut chosen = ReceiverOptions::new()
        .wait(policy(given.wait)?)
        .huge_pages(given.flags & HUGE_PAGES != 0)
        .locked(given.flags & LOCKED != 0)
        .allowed_uids(uids.iter().copied());
    if given.lines != 0 {
        chosen = chosen.lines(given.lines);
    }
    if !given.tuning.is_null() {
        let tuning = given.tuning.read("options.tuning")?;
        let tuning = tuning.parse().map_err(|error| Failure::invalid(format!("options.tuning: {error}")))?;
        chosen = chosen.tuning(tuning);
    }
    if let Some(admissions) = admission::admissions(given.admissions)? {
        chosen = chosen.admissions(&admissions.into());
    }
    Ok(chosen)
}

/// How a sender connects.
pub(crate) struct Connecting {
    pub(crate) options: SenderOptions,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// What it shows.
    pub(crate) token: Option<Token>,
}

/// Options of a sender. The token of C is used: this is the last that is read of what C gives.
pub(crate) fn sender(options: &Options<'_, beeline_window_sender_options<'_>>) -> Outcome<Connecting> {
    let Some(given) = options.read()? else {
        return Ok(Connecting { options: SenderOptions::new(), timeout: CONNECT_TIMEOUT, token: None });
    };
    check(given.flags)?;
    let traffic = match given.traffic {
        0 => Traffic::Latency,
        1 => Traffic::Stream,
        other => {
            let why = "it must be BEELINE_WINDOW_LATENCY or _STREAM";
            return Err(Failure::invalid(format!("options.traffic = {other}; {why}")));
        }
    };
    let mut chosen = SenderOptions::new()
        .traffic(traffic)
        .fences(fence_policy(given.fences)?)
        .wait(policy(given.wait)?)
        .huge_pages(given.flags & HUGE_PAGES != 0)
        .locked(given.flags & LOCKED != 0);
    if let Some(kernel) = kernel(given.store_kernel)? {
        chosen = chosen.kernel(kernel);
    }
    let timeout = match given.connect_timeout_ns {
        0 => CONNECT_TIMEOUT,
        timeout_ns => Duration::from_nanos(timeout_ns),
    };
    let token = admission::token(given.token)?.map(Token::from);
    Ok(Connecting { options: chosen, timeout, token })
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;
    use core::mem::{transmute, zeroed};

    use super::*;

    fn given<T>(options: &T) -> Options<'_, T> {
        // SAFETY: `Options` is a transparent pointer, here to what is borrowed for as long.
        unsafe { transmute(options) }
    }

    fn text(text: &CStr) -> Text<'_> {
        // SAFETY: `Text` is a transparent pointer, here to a string that is borrowed for as long.
        unsafe { transmute(text.as_ptr()) }
    }

    fn of_receiver<'a>() -> beeline_window_receiver_options<'a> {
        // SAFETY: integers and pointers (`OptionsOfC`), all of which may be zero.
        let zero: beeline_window_receiver_options<'a> = unsafe { zeroed() };
        beeline_window_receiver_options { size: size_of_val(&zero), ..zero }
    }

    fn of_sender<'a>() -> beeline_window_sender_options<'a> {
        // SAFETY: integers and pointers (`OptionsOfC`), all of which may be zero.
        let zero: beeline_window_sender_options<'a> = unsafe { zeroed() };
        beeline_window_sender_options { size: size_of_val(&zero), ..zero }
    }

    #[test]
    fn tuning_of_a_receiver_is_the_one_named() {
        let none = receiver(&given(&of_receiver())).unwrap();
        assert_eq!(none, ReceiverOptions::new());
        let named = "prefetch=read:16,group=1,credits=4";
        let options = beeline_window_receiver_options {
            tuning: text(c"prefetch=read:16,group=1,credits=4"),
            ..of_receiver()
        };
        assert_eq!(
            receiver(&given(&options)).unwrap(),
            ReceiverOptions::new().tuning(named.parse().unwrap())
        );
        let first = beeline_window_receiver_options { size: FIRST_RECEIVER_BYTES, ..options };
        assert_eq!(
            receiver(&given(&first)).unwrap(),
            ReceiverOptions::new(),
            "an older header has no tuning"
        );
    }

    #[test]
    fn tuning_that_is_none_is_invalid() {
        for (tuning, words) in [(c"group=1", "no whole tuning"), (c"group=2", "1 or 8"), (c"", "no whole")] {
            let options = beeline_window_receiver_options { tuning: text(tuning), ..of_receiver() };
            let failure = receiver(&given(&options)).unwrap_err();
            let why = &failure.why;
            assert!(why.contains("options.tuning") && why.contains(words), "{why}");
        }
    }

    #[test]
    fn fences_of_a_sender_are_those_named() {
        let policies =
            [FencePolicy::None, FencePolicy::PerWrap, FencePolicy::PerMessage, FencePolicy::PerLine];
        assert_eq!(policies, FencePolicy::ALL);
        for (fences, policy) in policies.into_iter().enumerate() {
            let options = beeline_window_sender_options { fences: fences as u32, ..of_sender() };
            assert_eq!(sender(&given(&options)).unwrap().options, SenderOptions::new().fences(policy));
        }
        let options = beeline_window_sender_options { fences: 4, ..of_sender() };
        assert!(sender(&given(&options)).err().unwrap().why.contains("options.fences = 4"));
    }
}
