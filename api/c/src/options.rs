//! Options, as C gives them: structs that begin with their own size, so that a program of an older header fits a newer
//! library, and a program of a newer one is told what an older library does not know.

use core::ffi::c_char;
use std::time::Duration;

use beeline_mmio::StoreKernel;
use beeline_rpc::WaitPolicy;
use beeline_rpc::shm::{ClientOptions, ServerOptions};

use crate::edge::{Failure, Outcome, text_of};

/// `BEELINE_RPC_WAIT_SLEEP`.
const SLEEP: u32 = 0;
/// `BEELINE_RPC_WAIT_SPIN`.
const SPIN: u32 = 1;

/// `struct beeline_rpc_client_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_rpc_client_options {
    size: usize,
    max_outstanding: u32,
    reply_lines: u32,
    connect_timeout_ns: u64,
    store_kernel: *const c_char,
    wait: u32,
    reserved: u32,
}

/// `struct beeline_rpc_server_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_rpc_server_options {
    size: usize,
    workers: u32,
    request_lines: u32,
    max_clients: u32,
    wait: u32,
    store_kernel: *const c_char,
    allowed_uids: *const u32,
    allowed_uid_count: usize,
}

const _: () =
    assert!(size_of::<beeline_rpc_client_options>() == 40 && size_of::<beeline_rpc_server_options>() == 48);

/// Options of the first header: no program has less.
const FIRST_CLIENT_BYTES: usize = 40;
const FIRST_SERVER_BYTES: usize = 48;

/// A struct of C that begins with its size and may be all zero.
///
/// # Safety
/// `#[repr(C)]`, of integers and pointers only, the first a `usize` that is its size.
unsafe trait OfItsSize: Copy {
    const FIRST_BYTES: usize;
}

// SAFETY: as declared above; integers and pointers.
unsafe impl OfItsSize for beeline_rpc_client_options {
    const FIRST_BYTES: usize = FIRST_CLIENT_BYTES;
}

// SAFETY: as declared above; integers and pointers.
unsafe impl OfItsSize for beeline_rpc_server_options {
    const FIRST_BYTES: usize = FIRST_SERVER_BYTES;
}

/// Reads options of whatever size they say they have; `None` for NULL.
///
/// # Safety
/// NULL, or memory that begins with a `size_t` and has as many bytes as that says, which nobody writes meanwhile.
unsafe fn read<T: OfItsSize>(options: *const T) -> Outcome<Option<T>> {
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: memory that begins with a `size_t`, by this function's contract.
    let size = unsafe { options.cast::<usize>().read_unaligned() };
    if size < T::FIRST_BYTES || size > 4096 {
        let least = T::FIRST_BYTES;
        return Err(Failure::invalid(format!(
            "options.size = {size}; set it with the initializer of the header, to at least {least}"
        )));
    }
    // SAFETY: as many bytes as `size` says, by this function's contract.
    let bytes = unsafe { core::slice::from_raw_parts(options.cast::<u8>(), size) };
    let (known, unknown) = bytes.split_at(size.min(size_of::<T>()));
    if unknown.iter().any(|byte| *byte != 0) {
        let ours = size_of::<T>();
        return Err(Failure::invalid(format!(
            "options of {size} bytes set something that this library does not know, which has {ours}; upgrade it"
        )));
    }
    let mut read = core::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: `known` is not longer than a `T`, and the two do not overlap.
    unsafe { core::ptr::copy_nonoverlapping(known.as_ptr(), read.as_mut_ptr().cast(), known.len()) };
    // SAFETY: zeroed, then overwritten by what C set; every pattern is one of integers and pointers.
    Ok(Some(unsafe { read.assume_init() }))
}

fn policy(wait: u32) -> Outcome<WaitPolicy> {
    match wait {
        SLEEP => Ok(WaitPolicy::default()),
        SPIN => Ok(WaitPolicy::SPIN),
        other => Err(Failure::invalid(format!(
            "options.wait = {other}; it must be BEELINE_RPC_WAIT_SLEEP or _SPIN"
        ))),
    }
}

/// # Safety
/// NULL or a text.
unsafe fn kernel(name: *const c_char) -> Outcome<Option<StoreKernel>> {
    if name.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    let name = unsafe { text_of(name, "options.store_kernel") }?;
    let kernel = name.parse().map_err(|error| Failure::invalid(format!("options.store_kernel: {error}")))?;
    Ok(Some(kernel))
}

/// # Safety
/// As `read`; texts in it are NULL or texts.
pub(crate) unsafe fn client(options: *const beeline_rpc_client_options) -> Outcome<ClientOptions> {
    let mut chosen = ClientOptions::default();
    // SAFETY: the caller's.
    let Some(given) = (unsafe { read(options) })? else { return Ok(chosen) };
    if given.reserved != 0 {
        return Err(Failure::invalid(format!("options.reserved = {}; it must be 0", given.reserved)));
    }
    if given.max_outstanding != 0 {
        chosen.max_outstanding = given.max_outstanding;
    }
    if given.reply_lines != 0 {
        chosen.reply_lines = given.reply_lines;
    }
    if given.connect_timeout_ns != 0 {
        chosen.timeout = Duration::from_nanos(given.connect_timeout_ns);
    }
    // SAFETY: the caller's.
    if let Some(kernel) = unsafe { kernel(given.store_kernel) }? {
        chosen.kernel = kernel;
    }
    chosen.policy = policy(given.wait)?;
    Ok(chosen)
}

/// Options of a server, and how its workers wait.
///
/// # Safety
/// As `read`; texts in it are NULL or texts, `allowed_uids` is NULL or as many numbers as `allowed_uid_count` says.
pub(crate) unsafe fn server(
    options: *const beeline_rpc_server_options,
) -> Outcome<(ServerOptions, WaitPolicy)> {
    let mut chosen = ServerOptions::default();
    // SAFETY: the caller's.
    let Some(given) = (unsafe { read(options) })? else { return Ok((chosen, WaitPolicy::default())) };
    if given.workers != 0 {
        chosen.workers = given.workers as usize;
    }
    if given.request_lines != 0 {
        chosen.request_lines = given.request_lines;
    }
    if given.max_clients != 0 {
        chosen.max_clients = given.max_clients as usize;
    }
    // SAFETY: the caller's.
    if let Some(kernel) = unsafe { kernel(given.store_kernel) }? {
        chosen.kernel = kernel;
    }
    let count = given.allowed_uid_count;
    if count > 65_536 || count > 0 && (given.allowed_uids.is_null() || !given.allowed_uids.is_aligned()) {
        let why = format!(
            "options.allowed_uid_count = {count}; 65536 at most, and options.allowed_uids must not be NULL"
        );
        return Err(Failure::invalid(why));
    }
    if count > 0 {
        // SAFETY: not NULL, and as many numbers as said, by this function's contract.
        chosen.allowed_uids = unsafe { core::slice::from_raw_parts(given.allowed_uids, count) }.to_vec();
    }
    Ok((chosen, policy(given.wait)?))
}

/// A time in nanoseconds that may be `BEELINE_RPC_NEVER`.
pub(crate) fn deadline(timeout_ns: u64) -> Option<beeline_rpc::Deadline> {
    (timeout_ns != u64::MAX).then(|| beeline_rpc::Deadline::after(Duration::from_nanos(timeout_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(size: usize) -> beeline_rpc_client_options {
        beeline_rpc_client_options {
            size,
            max_outstanding: 0,
            reply_lines: 0,
            connect_timeout_ns: 0,
            store_kernel: core::ptr::null(),
            wait: 0,
            reserved: 0,
        }
    }

    fn why(options: &beeline_rpc_client_options) -> String {
        // SAFETY: a struct that is there, of the size that it says or refused by it.
        unsafe { client(options) }.unwrap_err().why
    }

    #[test]
    fn what_is_not_set_is_as_rust_has_it() {
        // SAFETY: NULL.
        assert_eq!(unsafe { client(core::ptr::null()) }.unwrap(), ClientOptions::default());
        // SAFETY: a struct of the size that it says.
        assert_eq!(unsafe { client(&options(40)) }.unwrap(), ClientOptions::default());
        let mut given = options(40);
        (given.max_outstanding, given.wait, given.connect_timeout_ns) = (8, SPIN, 5);
        given.store_kernel = c"cached".as_ptr();
        // SAFETY: as above.
        let read = unsafe { client(&given) }.unwrap();
        assert_eq!((read.max_outstanding, read.policy, read.timeout.as_nanos()), (8, WaitPolicy::SPIN, 5));
    }

    #[test]
    fn sizes_and_values_that_make_no_sense_are_refused() {
        for size in [0, 39, 5000, usize::MAX] {
            assert!(why(&options(size)).contains("options.size"), "{size}");
        }
        let mut given = options(40);
        given.wait = 2;
        assert!(why(&given).contains("options.wait = 2"));
        given = options(40);
        given.store_kernel = c"quick".as_ptr();
        assert!(why(&given).contains("quick"));
        given = options(40);
        given.reserved = 1;
        assert!(why(&given).contains("reserved"));
    }

    #[test]
    fn a_newer_program_is_understood_unless_it_asks_for_what_is_new() {
        #[repr(C)]
        struct Newer(beeline_rpc_client_options, u64);
        let newer = Newer(options(48), 0);
        // SAFETY: a struct of the size that it says.
        assert!(unsafe { client((&raw const newer).cast()) }.is_ok());
        let newer = Newer(options(48), 1);
        // SAFETY: as above.
        let failure = unsafe { client((&raw const newer).cast()) }.unwrap_err();
        assert!(failure.why.contains("upgrade"), "{}", failure.why);
    }
}
