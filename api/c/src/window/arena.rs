//! Arenas: what `include/beeline_arena.h` declares, each function a gate, a check and a call.

use core::ffi::c_int;

use beeline::{ArenaOptions, ReceiverArena, SenderArena};
use beeline_ffi::{
    Array, Failure, Handle, HandleVariable, Kind, Options, OptionsOfC, Out, Outcome, Shared, Text, edge,
};

use super::inside::beeline_window_receiver;
use super::open::beeline_window_sender;
use super::options::{self, Connecting, beeline_window_sender_options};
use super::receiver::RECEIVERS;
use super::sender::SENDERS;
use super::set::{SETS, beeline_window_set};
use super::status::{EMPTY, OK, duration, of_connect, of_offer};
use crate::admission::{self, beeline_admissions};
use crate::domain::{DOMAINS, beeline_rpc_domain};
use crate::options::policy;

/// The receiving side of arenas of C. Any thread may use it.
pub struct beeline_arena_receiver(ReceiverArena);

impl Kind for beeline_arena_receiver {
    const NAME: &'static str = "arena";
    const TAG: u8 = 0x3d;
}

/// The sending side of an arena of C. Any thread may use it.
pub struct beeline_arena_sender(SenderArena);

impl Kind for beeline_arena_sender {
    const NAME: &'static str = "arena";
    const TAG: u8 = 0x3f;
}

static RECEIVER_ARENAS: Shared<beeline_arena_receiver> = Shared::new();
static SENDER_ARENAS: Shared<beeline_arena_sender> = Shared::new();

/// `struct beeline_arena_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_arena_options<'a> {
    size: usize,
    lines: u32,
    windows: u32,
    bytes: u64,
    clients: u32,
    wait: u32,
    allowed_uids: Array<'a, u32>,
    allowed_uid_count: usize,
    admissions: Handle<beeline_admissions>,
}

const _: () = assert!(size_of::<beeline_arena_options<'_>>() == 56);

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_arena_options<'_> {
    const FIRST_BYTES: usize = 48;
}

fn read(options: &Options<'_, beeline_arena_options<'_>>) -> Outcome<ArenaOptions> {
    let Some(given) = options.read()? else { return Ok(ArenaOptions::new()) };
    let uids = given.allowed_uids.read(given.allowed_uid_count, 65_536, "options.allowed_uids")?;
    let mut chosen = ArenaOptions::new().wait(policy(given.wait)?).allowed_uids(uids.iter().copied());
    if given.lines != 0 {
        chosen = chosen.lines(given.lines);
    }
    if given.windows != 0 {
        chosen = chosen.windows(given.windows);
    }
    if given.bytes != 0 {
        // What is more than an address is out of the bounds, too.
        chosen = chosen.bytes(usize::try_from(given.bytes).unwrap_or(usize::MAX));
    }
    if given.clients != 0 {
        chosen = chosen.clients(given.clients as usize);
    }
    if let Some(admissions) = admission::admissions(given.admissions)? {
        chosen = chosen.admissions(&admissions.into());
    }
    Ok(chosen)
}

fn offer(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: &Options<'_, beeline_arena_options<'_>>,
) -> Outcome<ReceiverArena> {
    let domain = DOMAINS.get(domain)?;
    let (name, options) = (name.read("name")?, read(options)?);
    let domain = domain.facade()?;
    domain.receiver_arena_with(name, options).map_err(|error| of_offer(&error))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_arena_offer(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_arena_options<'_>>,
    arena: Out<'_, Handle<beeline_arena_receiver>>,
) -> c_int {
    edge("beeline_arena_offer", || {
        arena.put(Handle::NULL, "arena")?;
        let offered = beeline_arena_receiver(offer(domain, name, &options)?);
        arena.put(RECEIVER_ARENAS.insert(offered)?, "arena")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_arena_accept(
    arena: Handle<beeline_arena_receiver>,
    timeout_ns: u64,
    receiver: Out<'_, Handle<beeline_window_receiver>>,
) -> c_int {
    edge("beeline_arena_accept", || {
        receiver.put(Handle::NULL, "receiver")?;
        let accepted = RECEIVER_ARENAS.get(arena)?.0.accept_timeout(duration(timeout_ns));
        let Some(accepted) = accepted else { return Ok(EMPTY) };
        receiver.put(RECEIVERS.insert(beeline_window_receiver::new(accepted)?)?, "receiver")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_arena_receiver_close(arena: HandleVariable<'_, beeline_arena_receiver>) -> c_int {
    edge("beeline_arena_receiver_close", || RECEIVER_ARENAS.close(&arena).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_arena_offer_to_set(
    set: Handle<beeline_window_set>,
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_arena_options<'_>>,
) -> c_int {
    edge("beeline_arena_offer_to_set", || {
        let mut set = SETS.enter(set)?;
        if set.has_arena {
            return Err(Failure::invalid("set has an arena already; open another set"));
        }
        let offered = offer(domain, name, &options)?;
        // What was announced does not stand for the new one.
        set.set.disarm();
        let before = set.set.set_arena(Some(offered));
        debug_assert!(before.is_none(), "there was none");
        set.has_arena = true;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_arena_join(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    lines: u32,
    options: Options<'_, beeline_window_sender_options<'_>>,
    arena: Out<'_, Handle<beeline_arena_sender>>,
) -> c_int {
    edge("beeline_arena_join", || {
        arena.put(Handle::NULL, "arena")?;
        let domain = DOMAINS.get(domain)?;
        let (name, connecting) = (name.read("name")?, options::sender(&options)?);
        let Connecting { options, timeout, token } = connecting;
        let (domain, left) = domain.facade_within(timeout)?;
        let options = options.timeout(left);
        let joined = match token {
            None => domain.sender_arena_with(name, lines, options),
            Some(token) => domain.sender_arena_proving(name, lines, token, options),
        };
        let joined = beeline_arena_sender(joined.map_err(|error| of_connect(&error))?);
        arena.put(SENDER_ARENAS.insert(joined)?, "arena")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_arena_open(
    arena: Handle<beeline_arena_sender>,
    lines: u32,
    sender: Out<'_, Handle<beeline_window_sender>>,
) -> c_int {
    edge("beeline_arena_open", || {
        sender.put(Handle::NULL, "sender")?;
        let arena = SENDER_ARENAS.get(arena)?;
        let opened = if lines == 0 { arena.0.open() } else { arena.0.open_sized(lines) };
        let opened = beeline_window_sender::new(opened.map_err(|error| of_connect(&error))?);
        sender.put(SENDERS.insert(opened)?, "sender")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_arena_sender_close(arena: HandleVariable<'_, beeline_arena_sender>) -> c_int {
    edge("beeline_arena_sender_close", || SENDER_ARENAS.close(&arena).map(|_| OK))
}
