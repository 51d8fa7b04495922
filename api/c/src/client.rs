//! Clients: what C calls, each function a gate, a check and a call.

use core::ffi::c_int;

use beeline_rpc::shm::{Client, ClientOptions};
use beeline_rpc::{CallError, CallFailure, Deadline, Method, Started};

use beeline_ffi::{
    Bytes, Failure, Handle, HandleVariable, Kind, Memory, Options, Out, Outcome, Owned, Text, edge, edge_or,
    keep,
};

use crate::domain::{DOMAINS, beeline_rpc_domain};
use crate::inside::{Held, Inside};
use crate::options::{self, beeline_rpc_client_options, deadline};
use crate::status::{self, EMPTY, FULL, NOT_CONNECTED, OK, TRUNCATED};

/// A client of one server.
pub struct beeline_rpc_client(Inside);

impl Kind for beeline_rpc_client {
    const NAME: &'static str = "client";
    const TAG: u8 = 0x23;
}

static CLIENTS: Owned<beeline_rpc_client> = Owned::new();

/// `struct beeline_rpc_completion`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_rpc_completion {
    call: u64,
    length: u64,
    status: i32,
    slot: u32,
    code: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<beeline_rpc_completion>() == 32);

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_client_connect(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_rpc_client_options<'_>>,
    client: Out<'_, Handle<beeline_rpc_client>>,
) -> c_int {
    edge("beeline_rpc_client_connect", || {
        client.put(Handle::NULL, "client")?;
        let domain = DOMAINS.get(domain)?;
        let (name, (options, token)) = (name.read("name")?, options::client(&options)?);
        let (domain, left) = domain.opened_within(options.timeout)?;
        let connected = match token {
            None => Client::connect_within(domain, name, options, left),
            Some(token) => domain.retry_until_offered(left, |left| {
                let options = ClientOptions { timeout: left, ..options.clone() };
                Client::connect_proving(domain, &token, name, options)
            }),
        };
        let inside = Inside::new(connected.map_err(|error| status::refused(&error))?);
        client.put(CLIENTS.insert(beeline_rpc_client(inside))?, "client")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_client_close(client: HandleVariable<'_, beeline_rpc_client>) -> c_int {
    edge("beeline_rpc_client_close", || CLIENTS.close(&client).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_client_release(client: Handle<beeline_rpc_client>) -> c_int {
    edge("beeline_rpc_client_release", || {
        CLIENTS.release(client)?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_client_server(
    client: Handle<beeline_rpc_client>,
    server_pid: Out<'_, u32>,
) -> c_int {
    edge("beeline_rpc_client_server", || {
        let inside = &mut CLIENTS.enter(client)?.0;
        let client = inside.client();
        if let Some(loss) = client.loss() {
            return Err(Failure::new(NOT_CONNECTED, loss.to_string()));
        }
        let pid = client.transport().peer().map_or(0, |peer| peer.pid());
        server_pid.put_if_wanted(pid);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_start(
    client: Handle<beeline_rpc_client>,
    method: u16,
    request: Bytes<'_>,
    length: usize,
    timeout_ns: u64,
    call: Out<'_, u64>,
) -> c_int {
    edge("beeline_rpc_start", || {
        let inside = &mut CLIENTS.enter(client)?.0;
        let request = request.read(length, "request")?;
        match inside.client().start(Method(method), request, deadline(timeout_ns)) {
            Ok(Started::Call(id)) => {
                let number = inside.calls.begin(id);
                call.put_if_wanted(number);
                Ok(OK)
            }
            Ok(Started::Full) => Ok(FULL),
            Err(error) => Err(Failure::new(status::of_start(&error), error.to_string())),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_poll(
    client: Handle<beeline_rpc_client>,
    completion: Out<'_, beeline_rpc_completion>,
) -> c_int {
    edge("beeline_rpc_poll", || {
        completion.check("completion")?;
        let inside = &mut CLIENTS.enter(client)?.0;
        let Some((id, result)) = inside.poll() else { return Ok(EMPTY) };
        let call = inside.calls.end(id);
        let (status, code) = match &result {
            Ok(()) => (OK, 0),
            Err(error) => failed(error),
        };
        let length = inside.held.as_ref().map_or(0, Held::length) as u64;
        let slot = id.slot() as u32;
        let ended = beeline_rpc_completion { call, length, status, slot, code, reserved: 0 };
        completion.put_if_wanted(ended);
        Ok(OK)
    })
}

/// The status and code of a call that failed; its text is kept.
#[cold]
fn failed(error: &CallError) -> (c_int, u32) {
    let code = if let CallError::Failed { code, .. } = error { u32::from(*code) } else { 0 };
    let failure = Failure::new(status::of_call(error), error.to_string());
    (keep("beeline_rpc_poll", &failure), code)
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_wait(client: Handle<beeline_rpc_client>, timeout_ns: u64) -> c_int {
    edge("beeline_rpc_wait", || {
        let inside = &mut CLIENTS.enter(client)?.0;
        let client = inside.client();
        if timeout_ns == u64::MAX && client.outstanding() == 0 {
            let why = "no call is outstanding: a wait without a time-out would never end";
            return Err(Failure::invalid(why));
        }
        Ok(if client.wait(deadline(timeout_ns)) { OK } else { EMPTY })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_client_descriptor(
    client: Handle<beeline_rpc_client>,
    descriptor: Out<'_, c_int>,
) -> c_int {
    edge("beeline_rpc_client_descriptor", || {
        descriptor.put(-1, "descriptor")?;
        CLIENTS.enter(client)?.0.descriptor.tell(descriptor)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_client_arm(client: Handle<beeline_rpc_client>, at_most_ns: Out<'_, u64>) -> c_int {
    edge("beeline_rpc_client_arm", || {
        at_most_ns.put(0, "at_most_ns")?;
        let inside = &mut CLIENTS.enter(client)?.0;
        let (client, descriptor) = inside.client_and_descriptor();
        descriptor.arm(client, at_most_ns)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_client_disarm(client: Handle<beeline_rpc_client>) -> c_int {
    edge("beeline_rpc_client_disarm", || {
        let inside = &mut CLIENTS.enter(client)?.0;
        let (client, descriptor) = inside.client_and_descriptor();
        descriptor.disarm(client);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_cancel(client: Handle<beeline_rpc_client>, call: u64) -> c_int {
    edge("beeline_rpc_cancel", || {
        let inside = &mut CLIENTS.enter(client)?.0;
        let was_waiting = inside.calls.find(call).is_some_and(|id| inside.client().cancel(id));
        Ok(if was_waiting { OK } else { EMPTY })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_call(
    client: Handle<beeline_rpc_client>,
    method: u16,
    request: Bytes<'_>,
    length: usize,
    answer: Memory<'_>,
    capacity: usize,
    answer_length: Out<'_, usize>,
    timeout_ns: u64,
) -> c_int {
    edge("beeline_rpc_call", || {
        answer_length.put_if_wanted(0);
        let inside = &mut CLIENTS.enter(client)?.0;
        let request = request.read(length, "request")?;
        let answer = answer.fill(capacity, "answer")?;
        let came = call(inside, Method(method), request, deadline(timeout_ns))?;
        answer_length.put_if_wanted(came);
        inside.held()?.copy_from(0, answer);
        if came > capacity {
            let why = format!(
                "the answer has {came} bytes, and there is memory for {capacity}; the rest can be copied still"
            );
            return Err(Failure::new(TRUNCATED, why));
        }
        Ok(OK)
    })
}

/// Makes a call and holds its answer, or the detail of its failure; the answer's length.
fn call(inside: &mut Inside, method: Method, request: &[u8], deadline: Option<Deadline>) -> Outcome<usize> {
    if let Some(Held::Bytes(bytes)) = inside.held.take() {
        inside.spare = bytes;
    }
    let mut answer = core::mem::take(&mut inside.spare);
    match inside.client().call(method, request, &mut answer, deadline) {
        Ok(()) => {
            let length = answer.len();
            inside.held = Some(Held::Bytes(answer));
            Ok(length)
        }
        Err(error) => {
            if let CallFailure::Call(CallError::Failed { detail, .. }) = &error {
                inside.held = Some(Held::Bytes(detail.to_vec()));
            }
            Err(Failure::new(status::of_failure(&error), error.to_string()))
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_answer_length(client: Handle<beeline_rpc_client>) -> usize {
    edge_or(
        "beeline_rpc_answer_length",
        |_| 0,
        || {
            let inside = &mut CLIENTS.enter(client)?.0;
            Ok(inside.held()?.length())
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_answer_word(client: Handle<beeline_rpc_client>, index: usize) -> u64 {
    edge_or(
        "beeline_rpc_answer_word",
        |_| 0,
        || {
            let inside = &mut CLIENTS.enter(client)?.0;
            Ok(inside.held()?.word(index))
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_answer_copy(
    client: Handle<beeline_rpc_client>,
    first_word: usize,
    out: Memory<'_>,
    capacity: usize,
) -> usize {
    edge_or(
        "beeline_rpc_answer_copy",
        |_| 0,
        || {
            let inside = &mut CLIENTS.enter(client)?.0;
            let out = out.fill(capacity, "out")?;
            Ok(inside.held()?.copy_from(first_word, out))
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_answer_release(client: Handle<beeline_rpc_client>) -> c_int {
    edge("beeline_rpc_answer_release", || {
        let inside = &mut CLIENTS.enter(client)?.0;
        inside.held = None;
        Ok(OK)
    })
}
