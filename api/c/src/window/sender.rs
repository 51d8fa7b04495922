//! Senders: what C calls, each function a gate, a check and a call.

use core::ffi::c_int;

use beeline_ffi::{Bytes, Handle, HandleVariable, Options, Out, Owned, Pieces, Text, edge, edge_or};

use super::open::beeline_window_sender;
use super::options::beeline_window_sender_options;
use super::rendezvous;
use super::status::OK;
use crate::domain::beeline_rpc_domain;

pub(crate) static SENDERS: Owned<beeline_window_sender> = Owned::new();

#[unsafe(no_mangle)]
extern "C" fn beeline_window_sender_connect(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_window_sender_options<'_>>,
    sender: Out<'_, Handle<beeline_window_sender>>,
) -> c_int {
    edge("beeline_window_sender_connect", || {
        sender.put(Handle::NULL, "sender")?;
        let connected = rendezvous::connect(domain, name, &options)?;
        sender.put(SENDERS.insert(beeline_window_sender::new(connected))?, "sender")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_sender_close(sender: HandleVariable<'_, beeline_window_sender>) -> c_int {
    edge("beeline_window_sender_close", || SENDERS.close(&sender).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_sender_release(sender: Handle<beeline_window_sender>) -> c_int {
    edge("beeline_window_sender_release", || SENDERS.release(sender).map(|()| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_sender_receiver(sender: Handle<beeline_window_sender>) -> c_int {
    edge("beeline_window_sender_receiver", || SENDERS.enter(sender)?.check_receiver())
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_sender_max_length(sender: Handle<beeline_window_sender>) -> usize {
    edge_or("beeline_window_sender_max_length", |_| 0, || Ok(SENDERS.enter(sender)?.max_bytes))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_try_send(
    sender: Handle<beeline_window_sender>,
    message: Bytes<'_>,
    length: usize,
) -> c_int {
    edge("beeline_window_try_send", || {
        let mut sender = SENDERS.enter(sender)?;
        sender.try_send(message.read(length, "message")?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_send(
    sender: Handle<beeline_window_sender>,
    message: Bytes<'_>,
    length: usize,
    timeout_ns: u64,
) -> c_int {
    edge("beeline_window_send", || {
        let mut sender = SENDERS.enter(sender)?;
        sender.send(message.read(length, "message")?, timeout_ns)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_try_send_all(
    sender: Handle<beeline_window_sender>,
    messages: Pieces<'_>,
    count: usize,
    sent: Out<'_, usize>,
) -> c_int {
    edge("beeline_window_try_send_all", || {
        sent.check("sent")?;
        sent.counted(|done| {
            let mut sender = SENDERS.enter(sender)?;
            sender.try_send_all(messages.read(count, "messages")?, done)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_send_all(
    sender: Handle<beeline_window_sender>,
    messages: Pieces<'_>,
    count: usize,
    timeout_ns: u64,
    sent: Out<'_, usize>,
) -> c_int {
    edge("beeline_window_send_all", || {
        sent.counted(|done| {
            let mut sender = SENDERS.enter(sender)?;
            sender.send_all(messages.read(count, "messages")?, timeout_ns, done)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_wait_for_room(
    sender: Handle<beeline_window_sender>,
    length: usize,
    timeout_ns: u64,
) -> c_int {
    edge("beeline_window_wait_for_room", || SENDERS.enter(sender)?.wait_for_room(length, timeout_ns))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_flush(sender: Handle<beeline_window_sender>, timeout_ns: u64) -> c_int {
    edge("beeline_window_flush", || SENDERS.enter(sender)?.flush(timeout_ns))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_reserve(
    sender: Handle<beeline_window_sender>,
    max_length: usize,
    timeout_ns: u64,
) -> c_int {
    edge("beeline_window_reserve", || SENDERS.enter(sender)?.reserve(max_length, timeout_ns))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_write(
    sender: Handle<beeline_window_sender>,
    bytes: Bytes<'_>,
    length: usize,
) -> c_int {
    edge("beeline_window_write", || {
        let mut sender = SENDERS.enter(sender)?;
        sender.write(bytes.read(length, "bytes")?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_batch(
    sender: Handle<beeline_window_sender>,
    max_length: usize,
    timeout_ns: u64,
) -> c_int {
    edge("beeline_window_batch", || SENDERS.enter(sender)?.batch(max_length, timeout_ns))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_push(
    sender: Handle<beeline_window_sender>,
    message: Bytes<'_>,
    length: usize,
) -> c_int {
    edge("beeline_window_push", || {
        let mut sender = SENDERS.enter(sender)?;
        sender.push(message.read(length, "message")?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_commit(sender: Handle<beeline_window_sender>) -> c_int {
    edge("beeline_window_commit", || SENDERS.enter(sender)?.commit())
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_discard(sender: Handle<beeline_window_sender>) -> c_int {
    edge("beeline_window_discard", || SENDERS.enter(sender)?.discard())
}
