//! Sets of receivers: many windows received from by one thread, each function a gate, a check and a call.

use core::ffi::{c_int, c_void};

use beeline::ReceiverSet;
use beeline_ffi::{
    Caller, Failure, Handle, HandleVariable, Kind, Options, Out, Outcome, Owned, SlotRef, Text, edge,
};

use super::message::{Held, Lending, Lent, MESSAGES, beeline_window_message};
use super::options::beeline_window_receiver_options;
use super::receiver::check_max;
use super::rendezvous;
use super::status::{EMPTY, OK, duration, of_recv};
use crate::descriptor::Described;
use crate::domain::beeline_rpc_domain;
use crate::options::policy;

/// `beeline_window_each_of`. Unwinds as `beeline_window_each` does.
type EachOf = unsafe extern "C-unwind" fn(
    context: *mut c_void,
    member: u64,
    message: Handle<beeline_window_message>,
    length: usize,
);

/// A set of C.
pub struct beeline_window_set {
    pub(crate) set: Described<ReceiverSet>,
    pub(crate) has_arena: bool,
    message: SlotRef<beeline_window_message>,
}

impl Kind for beeline_window_set {
    const NAME: &'static str = "set";
    const TAG: u8 = 0x39;
}

pub(crate) static SETS: Owned<beeline_window_set> = Owned::new();

impl beeline_window_set {
    /// Gives at most `max` messages to C's callback, and counts them in `given`; puts whose sender is over.
    fn drain(
        &mut self,
        caller: Caller,
        (max, timeout_ns): (usize, u64),
        (each, context): (EachOf, *mut c_void),
        (given, failed): (&mut usize, Out<'_, u64>),
    ) -> Outcome<c_int> {
        let lent = Lent::nothing();
        let lending = Lending::begin((self.message, caller), &lent);
        let drained = self.set.drain_timeout(max, duration(timeout_ns), |member, message| {
            // Counted first: a callback that ends the process has had its message.
            *given += 1;
            lending.lend(message, |message, length| {
                // SAFETY: what C gave to `beeline_window_set_drain` as a callback, with the context that goes with it; the header
                // has it be callable until that function returns.
                unsafe { each(context, member.number(), message, length) }
            });
        });
        match drained {
            Ok(0) => Ok(EMPTY),
            Ok(_) => Ok(OK),
            Err(error) => {
                failed.put_if_wanted(error.member.number());
                Err(of_recv(&error.error))
            }
        }
    }
}

impl Drop for beeline_window_set {
    fn drop(&mut self) {
        // It is nobody's, this thread's, or a thread's that has ended: whoever owns it owned the set.
        drop(MESSAGES.remove(self.message.handle()));
    }
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_open(
    burst: usize,
    wait: u32,
    set: Out<'_, Handle<beeline_window_set>>,
) -> c_int {
    edge("beeline_window_set_open", || {
        set.put(Handle::NULL, "set")?;
        let policy = policy(wait)?;
        let message = MESSAGES.slot(MESSAGES.insert(beeline_window_message(Held::Nothing))?);
        let receivers = if burst == 0 { ReceiverSet::new() } else { ReceiverSet::with_burst(burst) };
        let receivers = Described::new(receivers.wait(policy));
        let new = beeline_window_set { set: receivers, has_arena: false, message };
        set.put(SETS.insert(new)?, "set")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_close(set: HandleVariable<'_, beeline_window_set>) -> c_int {
    edge("beeline_window_set_close", || SETS.close(&set).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_release(set: Handle<beeline_window_set>) -> c_int {
    edge("beeline_window_set_release", || {
        let pass = SETS.enter(set)?;
        let message = pass.message;
        // So that it is this thread's, and can be given up by it.
        drop(message.enter_as(pass.caller())?);
        MESSAGES.release(message.handle())?;
        drop(pass);
        SETS.release(set)?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_offer(
    set: Handle<beeline_window_set>,
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_window_receiver_options<'_>>,
    member: Out<'_, u64>,
) -> c_int {
    edge("beeline_window_set_offer", || {
        member.put(0, "member")?;
        let mut set = SETS.enter(set)?;
        let receiver = rendezvous::offer(domain, name, &options)?;
        // What was announced does not stand for the new one.
        set.set.disarm();
        let id = set.set.insert(receiver);
        member.put(id.number(), "member")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_remove(set: Handle<beeline_window_set>, member: u64) -> c_int {
    edge("beeline_window_set_remove", || {
        let mut set = SETS.enter(set)?;
        let removed = set.set.member(member).and_then(|id| set.set.remove(id));
        if removed.is_none() {
            return Err(Failure::invalid(format!("member = {member}; the set has none of that number")));
        }
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_drain(
    set: Handle<beeline_window_set>,
    max: usize,
    timeout_ns: u64,
    each: Option<EachOf>,
    context: *mut c_void,
    taken: Out<'_, usize>,
    failed: Out<'_, u64>,
) -> c_int {
    edge("beeline_window_set_drain", || {
        taken.counted(|given| {
            failed.put(0, "failed")?;
            let mut set = SETS.enter(set)?;
            let caller = set.caller();
            let each = each.ok_or_else(|| Failure::invalid("each is NULL"))?;
            check_max(max)?;
            set.drain(caller, (max, timeout_ns), (each, context), (given, failed))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_descriptor(
    set: Handle<beeline_window_set>,
    descriptor: Out<'_, c_int>,
) -> c_int {
    edge("beeline_window_set_descriptor", || {
        descriptor.put(-1, "descriptor")?;
        SETS.enter(set)?.set.tell(descriptor)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_arm(set: Handle<beeline_window_set>, at_most_ns: Out<'_, u64>) -> c_int {
    edge("beeline_window_set_arm", || {
        at_most_ns.put(0, "at_most_ns")?;
        SETS.enter(set)?.set.arm(at_most_ns)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_window_set_disarm(set: Handle<beeline_window_set>) -> c_int {
    edge("beeline_window_set_disarm", || {
        SETS.enter(set)?.set.disarm();
        Ok(OK)
    })
}
