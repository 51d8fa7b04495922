//! Options of windows, as C gives them, become options of the facade.

use core::time::Duration;

use beeline::{ReceiverOptions, SenderOptions, Traffic};
use beeline_ffi::{Array, Failure, Options, OptionsOfC, Outcome, Text};

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
    reserved: u32,
}

/// Options of the first header: no program has less.
const FIRST_RECEIVER_BYTES: usize = 40;
const FIRST_SENDER_BYTES: usize = 40;

const _: () = assert!(
    size_of::<beeline_window_receiver_options<'_>>() == 40
        && size_of::<beeline_window_sender_options<'_>>() == 40
);

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_window_receiver_options<'_> {
    const FIRST_BYTES: usize = FIRST_RECEIVER_BYTES;
}

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_window_sender_options<'_> {
    const FIRST_BYTES: usize = FIRST_SENDER_BYTES;
}

fn check(flags: u32, reserved: u32) -> Outcome<()> {
    if flags & !(HUGE_PAGES | LOCKED) != 0 {
        let why = "it must be 0 or made of BEELINE_WINDOW_HUGE_PAGES and _LOCKED";
        return Err(Failure::invalid(format!("options.flags = {flags:#x}; {why}")));
    }
    if reserved != 0 {
        return Err(Failure::invalid(format!("options.reserved = {reserved}; it must be 0")));
    }
    Ok(())
}

pub(crate) fn receiver(
    options: &Options<'_, beeline_window_receiver_options<'_>>,
) -> Outcome<ReceiverOptions> {
    let Some(given) = options.read()? else { return Ok(ReceiverOptions::new()) };
    check(given.flags, given.reserved)?;
    let uids = given.allowed_uids.read(given.allowed_uid_count, 65_536, "options.allowed_uids")?;
    let chosen = ReceiverOptions::new()
        .wait(policy(given.wait)?)
        .huge_pages(given.flags & HUGE_PAGES != 0)
        .locked(given.flags & LOCKED != 0)
        .allowed_uids(uids.iter().copied());
    Ok(if given.lines == 0 { chosen } else { chosen.lines(given.lines) })
}

/// Options of a sender, and how long connecting may take.
pub(crate) fn sender(
    options: &Options<'_, beeline_window_sender_options<'_>>,
) -> Outcome<(SenderOptions, Duration)> {
    let Some(given) = options.read()? else { return Ok((SenderOptions::new(), CONNECT_TIMEOUT)) };
    check(given.flags, given.reserved)?;
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
    Ok((chosen, timeout))
}
