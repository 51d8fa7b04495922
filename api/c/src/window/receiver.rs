//! Receivers: what C calls, each function a gate, a check and a call.

use core::ffi::{c_int, c_void};

use beeline_ffi::{
    Failure, Handle, HandleVariable, Memory, Options, Out, Outcome, Owned, Places, Text, edge,
};

use super::inside::{Filled, beeline_window_receiver, beeline_window_span};
use super::message::{Each, beeline_window_message};
use super::options::beeline_window_receiver_options;
use super::rendezvous;
use super::status::{EMPTY, OK};
use crate::domain::beeline_rpc_domain;

pub(crate) static RECEIVERS: Owned<beeline_window_receiver> = Owned::new();

#[unsafe(no_mangle)]
extern "C" fn beeline_window_receiver_offer(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_window_receiver_options<'_>>,
    receiver: Out<'_, Handle<beeline_window_receiver>>,
) -> c_int {
    edge("beeline_window_receiver_offer", || {
        receiver.put(Handle::NULL, "receiver")?;
        let offered = rendezvous::offer(domain, name, &options)?;
        receiver.put(RECEIVERS.insert(beeline_window_receiver::new(offered)?)?, "receiver")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_receiver_close(receiver: HandleVariable<'_, beeline_window_receiver>) -> c_int {
    edge("beeline_window_receiver_close", || RECEIVERS.close(&receiver).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_receiver_release(receiver: Handle<beeline_window_receiver>) -> c_int {
    edge("beeline_window_receiver_release", || {
        let mut pass = RECEIVERS.enter(receiver)?;
        let caller = pass.caller();
        pass.release_message(caller)?;
        drop(pass);
        RECEIVERS.release(receiver)?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_receiver_sender(receiver: Handle<beeline_window_receiver>) -> c_int {
    edge("beeline_window_receiver_sender", || {
        let mut pass = RECEIVERS.enter(receiver)?;
        let caller = pass.caller();
        Ok(if pass.has_sender(caller) { OK } else { EMPTY })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_poll(
    receiver: Handle<beeline_window_receiver>,
    message: Out<'_, Handle<beeline_window_message>>,
    length: Out<'_, usize>,
) -> c_int {
    edge("beeline_window_poll", || {
        message.put(Handle::NULL, "message")?;
        length.put_if_wanted(0);
        let mut pass = RECEIVERS.enter(receiver)?;
        let caller = pass.caller();
        let Some(bytes) = pass.poll(caller)? else { return Ok(EMPTY) };
        message.put_if_wanted(pass.message());
        length.put_if_wanted(bytes);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_drain(
    receiver: Handle<beeline_window_receiver>,
    max: usize,
    each: Option<Each>,
    context: *mut c_void,
    taken: Out<'_, usize>,
) -> c_int {
    edge("beeline_window_drain", || {
        taken.counted(|given| {
            let mut pass = RECEIVERS.enter(receiver)?;
            let caller = pass.caller();
            let each = each.ok_or_else(|| Failure::invalid("each is NULL"))?;
            check_max(max)?;
            pass.drain(caller, max, (each, context), given)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_drain_into(
    receiver: Handle<beeline_window_receiver>,
    memory: Memory<'_>,
    capacity: usize,
    spans: Places<'_, beeline_window_span>,
    max: usize,
    taken: Out<'_, usize>,
) -> c_int {
    edge("beeline_window_drain_into", || {
        taken.put(0, "taken")?;
        let mut pass = RECEIVERS.enter(receiver)?;
        let caller = pass.caller();
        check_max(max)?;
        let mut filled = Filled::new(memory.fill(capacity, "memory")?, spans.fill(max, "spans")?);
        let status = pass.drain_into(caller, &mut filled);
        taken.put_if_wanted(filled.taken);
        status
    })
}

pub(crate) fn check_max(max: usize) -> Outcome<()> {
    if max == 0 {
        return Err(Failure::invalid("max = 0; a call takes at least one message"));
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_wait(receiver: Handle<beeline_window_receiver>, timeout_ns: u64) -> c_int {
    edge("beeline_window_wait", || {
        let mut pass = RECEIVERS.enter(receiver)?;
        let caller = pass.caller();
        pass.wait(caller, timeout_ns)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_receiver_descriptor(
    receiver: Handle<beeline_window_receiver>,
    descriptor: Out<'_, c_int>,
) -> c_int {
    edge("beeline_window_receiver_descriptor", || {
        descriptor.put(-1, "descriptor")?;
        RECEIVERS.enter(receiver)?.descriptor(descriptor)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_receiver_arm(
    receiver: Handle<beeline_window_receiver>,
    at_most_ns: Out<'_, u64>,
) -> c_int {
    edge("beeline_window_receiver_arm", || {
        at_most_ns.put(0, "at_most_ns")?;
        let mut pass = RECEIVERS.enter(receiver)?;
        let caller = pass.caller();
        pass.arm(caller, at_most_ns)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_receiver_disarm(receiver: Handle<beeline_window_receiver>) -> c_int {
    edge("beeline_window_receiver_disarm", || {
        let mut pass = RECEIVERS.enter(receiver)?;
        let caller = pass.caller();
        pass.disarm(caller);
        Ok(OK)
    })
}
