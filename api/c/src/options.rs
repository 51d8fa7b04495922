//! Options, as C gives them, become options of `beeline-rpc`.

use std::time::Duration;

use beeline_domain::Token;
use beeline_ffi::{Array, Failure, Handle, Options, OptionsOfC, Outcome, Text};
use beeline_mmio::StoreKernel;
use beeline_rpc::WaitPolicy;
use beeline_rpc::shm::{ClientOptions, ServerOptions};

use crate::admission::{self, beeline_admissions, beeline_token};

/// `BEELINE_RPC_WAIT_SLEEP`.
const SLEEP: u32 = 0;
/// `BEELINE_RPC_WAIT_SPIN`.
const SPIN: u32 = 1;

/// `struct beeline_rpc_client_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_rpc_client_options<'a> {
    size: usize,
    max_outstanding: u32,
    reply_lines: u32,
    connect_timeout_ns: u64,
    store_kernel: Text<'a>,
    wait: u32,
    reserved: u32,
    token: Handle<beeline_token>,
}

/// `struct beeline_rpc_server_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_rpc_server_options<'a> {
    size: usize,
    workers: u32,
    request_lines: u32,
    max_clients: u32,
    wait: u32,
    store_kernel: Text<'a>,
    allowed_uids: Array<'a, u32>,
    allowed_uid_count: usize,
    admissions: Handle<beeline_admissions>,
}

const _: () = assert!(
    size_of::<beeline_rpc_client_options<'_>>() == 48 && size_of::<beeline_rpc_server_options<'_>>() == 56
);

/// Options of the first header: no program has less.
const FIRST_CLIENT_BYTES: usize = 40;
const FIRST_SERVER_BYTES: usize = 48;

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_rpc_client_options<'_> {
    const FIRST_BYTES: usize = FIRST_CLIENT_BYTES;
}

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_rpc_server_options<'_> {
    const FIRST_BYTES: usize = FIRST_SERVER_BYTES;
}

pub(crate) fn policy(wait: u32) -> Outcome<WaitPolicy> {
    match wait {
        SLEEP => Ok(WaitPolicy::default()),
        SPIN => Ok(WaitPolicy::SPIN),
        other => Err(Failure::invalid(format!(
            "options.wait = {other}; it must be BEELINE_RPC_WAIT_SLEEP or _SPIN"
        ))),
    }
}

pub(crate) fn kernel(name: Text<'_>) -> Outcome<Option<StoreKernel>> {
    if name.is_null() {
        return Ok(None);
    }
    let name = name.read("options.store_kernel")?;
    let kernel = name.parse().map_err(|error| Failure::invalid(format!("options.store_kernel: {error}")))?;
    Ok(Some(kernel))
}

/// Options of a client, and what it shows. The token of C is used: this is the last that is read of what C gives.
pub(crate) fn client(
    options: &Options<'_, beeline_rpc_client_options<'_>>,
) -> Outcome<(ClientOptions, Option<Token>)> {
    let mut chosen = ClientOptions::default();
    let Some(given) = options.read()? else { return Ok((chosen, None)) };
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
    if let Some(kernel) = kernel(given.store_kernel)? {
        chosen.kernel = kernel;
    }
    chosen.policy = policy(given.wait)?;
    Ok((chosen, admission::token(given.token)?))
}

/// Options of a server, and how its workers wait.
pub(crate) fn server(
    options: &Options<'_, beeline_rpc_server_options<'_>>,
) -> Outcome<(ServerOptions, WaitPolicy)> {
    let mut chosen = ServerOptions::default();
    let Some(given) = options.read()? else { return Ok((chosen, WaitPolicy::default())) };
    if given.workers != 0 {
        chosen.workers = given.workers as usize;
    }
    if given.request_lines != 0 {
        chosen.request_lines = given.request_lines;
    }
    if given.max_clients != 0 {
        chosen.max_clients = given.max_clients as usize;
    }
    if let Some(kernel) = kernel(given.store_kernel)? {
        chosen.kernel = kernel;
    }
    let uids = given.allowed_uids.read(given.allowed_uid_count, 65_536, "options.allowed_uids")?;
    chosen.allowed_uids = uids.to_vec();
    chosen.admissions = admission::admissions(given.admissions)?;
    Ok((chosen, policy(given.wait)?))
}

/// A time in nanoseconds that may be `BEELINE_RPC_NEVER`.
pub(crate) fn deadline(timeout_ns: u64) -> Option<beeline_rpc::Deadline> {
    (timeout_ns != u64::MAX).then(|| beeline_rpc::Deadline::after(Duration::from_nanos(timeout_ns)))
}
