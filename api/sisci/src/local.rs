//! Segments of this process.

use core::ffi::c_void;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use beeline_fabric::{AdapterNumber, Call, LocalEvent, LocalSegment, Refusal, SegmentId, Value};
use beeline_fabric_process::NotCreated;
use beeline_ffi::{Failure, Handle, Kind, Out, Outcome};
use beeline_mmio::MapError;

use crate::callback::{Argument, Caller, check_callback, check_waits};
use crate::constants::{
    SCI_CB_CONNECT, SCI_CB_DISCONNECT, SCI_CB_LOST, SCI_CB_NOT_OPERATIONAL, SCI_CB_OPERATIONAL,
    SCI_FLAG_ALLOW_UNICAST, SCI_FLAG_AUTO_ID, SCI_FLAG_BROADCAST, SCI_FLAG_DMA_SOURCE_ONLY, SCI_FLAG_EMPTY,
    SCI_FLAG_FORCE_DISCONNECT, SCI_FLAG_FORCE_REMOVE, SCI_FLAG_NOTIFY, SCI_FLAG_PRIVATE,
    SCI_FLAG_SHARE_EXTERNAL, SCI_FLAG_USE_CALLBACK,
};
use crate::edge::{Error, edge, edge_without_code, failure, refused, unexpected};
use crate::errors;
use crate::flags::{Flags, check_broadcast};
use crate::handles::{Object, Table};
use crate::lifecycle::{DESCRIPTORS, Descriptor};
use crate::node::timeout_nanos;
use crate::session::{Belongs, Session};
use crate::uses::Use;

/// `sci_local_segment_t`.
pub(crate) struct Local {
    belongs: Belongs,
    _of_descriptor: Use,
    pub(crate) segment: LocalSegment,
    id: SegmentId,
    /// Of an empty segment, what it is made for at most; 0 if that is not said.
    bytes: AtomicUsize,
    /// Processes of all nodes hold it together.
    pub(crate) is_group: bool,
    pub(crate) is_private: bool,
    pub(crate) is_source_only: bool,
    /// A bit for each adapter that it is prepared for.
    prepared: AtomicU16,
    /// Why others cannot be given its memory, which is the program's.
    not_shared: OnceLock<String>,
    /// The adapter on which it was made available last: connections are by that one.
    adapter: Arc<AtomicU32>,
    /// Of its callback, if it has one.
    caller: Option<Caller>,
}

impl Kind for Local {
    const NAME: &'static str = "sci_local_segment_t";
    const TAG: u8 = 0x53;
}

impl Object for Local {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

impl Local {
    /// Checks the size of memory that is to be put behind an empty segment.
    pub(crate) fn check_bytes(&self, bytes: usize) -> Outcome<()> {
        if bytes == 0 {
            return Err(failure(errors::SIZE_ALIGNMENT, "size = 0; memory has at least one byte"));
        }
        match self.bytes.load(Ordering::Relaxed) {
            made_for @ 1.. if bytes > made_for => {
                let why = format!("size = {bytes}; the segment is made for {made_for}");
                Err(failure(errors::OUT_OF_RANGE, why))
            }
            _ => Ok(()),
        }
    }

    /// The segment has memory of so many bytes, and why others cannot be given it.
    pub(crate) fn set_memory(&self, bytes: usize, not_shared: Option<String>) {
        self.bytes.store(bytes, Ordering::Relaxed);
        if let Some(why) = not_shared {
            let _ = self.not_shared.set(why);
        }
    }

    /// Fails if the segment is not prepared for an adapter.
    pub(crate) fn check_prepared(&self, adapter: AdapterNumber) -> Outcome<()> {
        if self.prepared.load(Ordering::Relaxed) & adapter.bits() == 0 {
            return Err(refused(Refusal::SegmentNotPrepared));
        }
        Ok(())
    }

    /// Fails if nothing but DMA of this process is to read the segment.
    pub(crate) fn check_not_source_only(&self) -> Outcome<()> {
        if self.is_source_only {
            let why = "the segment is a source of DMA only (SCI_FLAG_DMA_SOURCE_ONLY)";
            return Err(failure(errors::ILLEGAL_OPERATION, why));
        }
        Ok(())
    }

    /// The failure with the reason, if it is because others cannot be given the memory.
    fn why_not_shared(&self, refused: Failure) -> Failure {
        match self.not_shared.get() {
            Some(why) if refused.status.cast_unsigned() == errors::ILLEGAL_OPERATION => {
                failure(errors::ILLEGAL_OPERATION, why.clone())
            }
            _ => refused,
        }
    }
}

pub(crate) static LOCALS: Table<Local> = Table::new();

/// `sci_cb_local_segment_t`.
pub(crate) type LocalCallback = extern "C" fn(*mut c_void, Handle<Local>, u32, u32, u32, u32) -> u32;

const CREATE: Flags = Flags {
    done: SCI_FLAG_USE_CALLBACK
        | SCI_FLAG_EMPTY
        | SCI_FLAG_PRIVATE
        | SCI_FLAG_AUTO_ID
        | SCI_FLAG_DMA_SOURCE_ONLY
        | SCI_FLAG_BROADCAST,
    not_done: SCI_FLAG_ALLOW_UNICAST | SCI_FLAG_SHARE_EXTERNAL,
};
const PREPARE: Flags = Flags { done: SCI_FLAG_DMA_SOURCE_ONLY | SCI_FLAG_BROADCAST, not_done: 0 };
const ATTACH: Flags = Flags { done: SCI_FLAG_USE_CALLBACK, not_done: 0 };
/// A segment of a group has the number of its group, and memory that all have.
const OF_NO_GROUP: u32 = SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID | SCI_FLAG_EMPTY;
const UNAVAILABLE: Flags = Flags { done: SCI_FLAG_FORCE_DISCONNECT | SCI_FLAG_NOTIFY, not_done: 0 };
const REMOVE: Flags = Flags { done: SCI_FLAG_FORCE_REMOVE, not_done: 0 };

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn create(
    descriptor: Handle<Descriptor>,
    segment: Out<'_, Handle<Local>>,
    id: u32,
    bytes: usize,
    callback: Option<LocalCallback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCICreateSegment", error, (), || {
        segment.put(Handle::NULL, "segment")?;
        let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
            CREATE.check(flags)?;
            check_callback(flags, callback.is_some())?;
            Ok((descriptor.session().clone(), descriptor.uses.begin()?))
        })?;
        let is_group = flags & SCI_FLAG_BROADCAST != 0;
        let (local, id) = if is_group {
            if flags & OF_NO_GROUP != 0 {
                let why = format!(
                    "flags = {flags:#x}; a segment of a group has the number and the memory of the group"
                );
                return Err(failure(errors::ILLEGAL_FLAG, why));
            }
            let local = session.member().join_group(SegmentId(id), bytes as u64).map_err(refused)?;
            (local, SegmentId(id))
        } else {
            let create = Call::CreateSegment {
                id: SegmentId(id),
                is_auto: flags & SCI_FLAG_AUTO_ID != 0,
                bytes: bytes as u64,
                is_private: flags & SCI_FLAG_PRIVATE != 0,
                is_empty: flags & SCI_FLAG_EMPTY != 0,
                has_callback: false,
            };
            let created = session.member().create_segment(create).map_err(not_created)?;
            let Value::Local(local, id) = created else { return Err(unexpected()) };
            (local, id)
        };
        make((&session, of_descriptor), segment, What { local, id, bytes, flags }, (callback, argument))
    });
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn attach(
    descriptor: Handle<Descriptor>,
    segment: Out<'_, Handle<Local>>,
    id: u32,
    size: Out<'_, usize>,
    callback: Option<LocalCallback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIAttachLocalSegment", error, (), || {
        segment.put(Handle::NULL, "segment")?;
        size.check("size")?;
        let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
            ATTACH.check(flags)?;
            check_callback(flags, callback.is_some())?;
            Ok((descriptor.session().clone(), descriptor.uses.begin()?))
        })?;
        let (local, bytes) = session.member().attach(SegmentId(id)).map_err(|refusal| match refusal {
            Refusal::NoSuchSegment | Refusal::ConnectionRefused => {
                let why = format!("segmentId = {id}; nobody of this node has shared such a segment");
                failure(errors::ACCESS, why)
            }
            refusal => refused(refusal),
        })?;
        let bytes = bytes as usize;
        let what = What { local, id: SegmentId(id), bytes, flags };
        make((&session, of_descriptor), segment, what, (callback, argument))?;
        size.put(bytes, "size")
    });
}

pub(crate) fn share(segment: Handle<Local>, flags: u32, error: Error<'_>) {
    edge("SCIShareSegment", error, (), || {
        LOCALS.with(segment, |local| {
            Flags::NONE.check(flags)?;
            local.check_not_source_only()?;
            local.session().member().share(local.segment).map_err(refused)
        })
    });
}

#[cold]
fn not_created(error: NotCreated) -> Failure {
    match error {
        NotCreated::Refused(refusal) => refused(refusal),
        NotCreated::Memory(error @ MapError::Lock { .. }) => failure(errors::SYSTEM, error.to_string()),
        NotCreated::Memory(error) => failure(errors::NOSPC, error.to_string()),
    }
}

/// A segment that has no handle yet.
struct What {
    local: LocalSegment,
    id: SegmentId,
    bytes: usize,
    flags: u32,
}

/// Makes the handle of a segment, which is removed if that cannot be.
fn make(
    (session, of_descriptor): (&Arc<Session>, Use),
    segment: Out<'_, Handle<Local>>,
    what: What,
    (callback, argument): (Option<LocalCallback>, *mut c_void),
) -> Outcome<()> {
    let What { local, id, bytes, flags } = what;
    let has_callback = flags & SCI_FLAG_USE_CALLBACK != 0;
    let adapter = Arc::new(AtomicU32::new(0));
    let make = |belongs| Local {
        belongs,
        _of_descriptor: of_descriptor,
        segment: local,
        id,
        bytes: AtomicUsize::new(bytes),
        is_group: flags & SCI_FLAG_BROADCAST != 0,
        is_private: flags & SCI_FLAG_PRIVATE != 0,
        is_source_only: flags & SCI_FLAG_DMA_SOURCE_ONLY != 0,
        prepared: AtomicU16::new(0),
        not_shared: OnceLock::new(),
        adapter: Arc::clone(&adapter),
        caller: has_callback.then(Caller::default),
    };
    match LOCALS.make(session, make, |local| remove(local, true)) {
        Ok(handle) => {
            segment.put(handle, "segment")?;
            match callback.filter(|_| has_callback) {
                Some(callback) => begin_calls(handle, local, adapter, (callback, argument)),
                None => Ok(()),
            }
        }
        Err(failure) => {
            // There is no handle for it, so nobody else has removed it.
            let _removed = session.call(Call::RemoveSegment { local, is_forced: true });
            Err(failure)
        }
    }
}

/// Begins to tell the callback of a segment what happens to it; the segment is removed if that cannot be.
fn begin_calls(
    handle: Handle<Local>,
    local: LocalSegment,
    adapter: Arc<AtomicU32>,
    (callback, argument): (LocalCallback, *mut c_void),
) -> Outcome<()> {
    let argument = Argument::of(argument);
    let begun = LOCALS.with(handle, |segment| {
        let session = Arc::clone(segment.session());
        session.member().tell_segment(local);
        let member = Arc::clone(&session);
        let next = move || {
            let event = member.member().next_event_of_segment(local)?;
            Some(as_told(&member, event, &adapter))
        };
        let call = move |(reason, node, adapter)| {
            callback(argument.get(), handle, reason, node, adapter, errors::OK)
        };
        segment.caller.as_ref().map_or(Ok(()), |caller| session.begin_calls(caller, next, call))
    });
    begun.or_else(|failure| {
        remove(handle, true)?;
        Err(failure)
    })
}

/// Waits for what happens to a segment next: what C is told, from which node, by which adapter.
fn next_event(
    session: &Session,
    local: LocalSegment,
    timeout_nanos: Option<u64>,
    adapter: &AtomicU32,
) -> Outcome<(u32, u32, u32)> {
    let Value::LocalEvent(event) = session.call(Call::WaitLocal { local, timeout_nanos })? else {
        return Err(unexpected());
    };
    Ok(as_told(session, event, adapter))
}

/// An event as C is told: what it is, from which node, by which adapter.
fn as_told(session: &Session, event: LocalEvent, adapter: &AtomicU32) -> (u32, u32, u32) {
    let (own, by) = (session.member().node(), adapter.load(Ordering::Relaxed));
    let (reason, from, by) = match event {
        LocalEvent::Connect(node) => (SCI_CB_CONNECT, node, by),
        LocalEvent::Disconnect(node) => (SCI_CB_DISCONNECT, node, by),
        LocalEvent::Lost(node) => (SCI_CB_LOST, node, by),
        LocalEvent::NotOperational(adapter) => (SCI_CB_NOT_OPERATIONAL, own, adapter.number()),
        LocalEvent::Operational(adapter) => (SCI_CB_OPERATIONAL, own, adapter.number()),
    };
    (reason, from.0.into(), by)
}

/// Makes a call on a segment and an adapter.
fn on_adapter(
    segment: Handle<Local>,
    adapter: u32,
    (known, flags): (&Flags, u32),
    call: impl FnOnce(LocalSegment, AdapterNumber) -> Call,
) -> Outcome<()> {
    LOCALS.with(segment, |local| {
        known.check(flags)?;
        let number = local.session().adapter(adapter)?;
        let call = call(local.segment, number);
        local.session().call(call)?;
        match call {
            Call::SetAvailable(..) => local.adapter.store(adapter, Ordering::Relaxed),
            Call::Prepare(..) => drop(local.prepared.fetch_or(number.bits(), Ordering::Relaxed)),
            _ => {}
        }
        Ok(())
    })
}

pub(crate) fn prepare(segment: Handle<Local>, adapter: u32, flags: u32, error: Error<'_>) {
    edge("SCIPrepareSegment", error, (), || {
        LOCALS.with(segment, |local| check_broadcast(flags, local.is_group))?;
        on_adapter(segment, adapter, (&PREPARE, flags), Call::Prepare)
    });
}

pub(crate) fn set_available(segment: Handle<Local>, adapter: u32, flags: u32, error: Error<'_>) {
    edge("SCISetSegmentAvailable", error, (), || {
        LOCALS.with(segment, |local| {
            Flags::NONE.check(flags)?;
            local.check_not_source_only()
        })?;
        on_adapter(segment, adapter, (&Flags::NONE, flags), Call::SetAvailable)
            .or_else(|failure| Err(LOCALS.with(segment, |local| Ok(local.why_not_shared(failure)))?))
    });
}

pub(crate) fn set_unavailable(segment: Handle<Local>, adapter: u32, flags: u32, error: Error<'_>) {
    edge("SCISetSegmentUnavailable", error, (), || {
        let is_forced = flags & SCI_FLAG_FORCE_DISCONNECT != 0;
        on_adapter(segment, adapter, (&UNAVAILABLE, flags), |local, adapter| Call::SetUnavailable {
            local,
            adapter,
            is_forced,
        })?;
        if flags & SCI_FLAG_NOTIFY == 0 {
            return Ok(());
        }
        LOCALS.with(segment, |local| local.session().call(Call::Notify(local.segment)).map(drop))
    });
}

pub(crate) fn remove_segment(segment: Handle<Local>, flags: u32, error: Error<'_>) {
    edge("SCIRemoveSegment", error, (), || {
        LOCALS.with(segment, |_| REMOVE.check(flags))?;
        remove(segment, flags & SCI_FLAG_FORCE_REMOVE != 0)
    });
}

pub(crate) fn remove(segment: Handle<Local>, is_forced: bool) -> Outcome<()> {
    LOCALS.with_last(segment, |local| {
        // Who waits for an event of it is told, and leaves it.
        match local.session().member().call(Call::RemoveSegment { local: local.segment, is_forced }) {
            // Somebody has removed it from outside (`beeline fabric rm`). Its handle is the program's still.
            Err(Refusal::IllegalParameter) => Ok(()),
            removed => removed.map(drop).map_err(refused),
        }
    })?;
    // The callback may be running, and may use the handle, which is refused from here on.
    let removed = LOCALS.remove(segment)?;
    if let Some(caller) = &removed.caller {
        caller.stop();
    }
    Ok(())
}

pub(crate) fn id(segment: Handle<Local>) -> u32 {
    edge_without_code("SCIGetLocalSegmentId", 0, || LOCALS.with(segment, |local| Ok(local.id.0)))
}

pub(crate) fn size(segment: Handle<Local>) -> usize {
    edge_without_code("SCIGetLocalSegmentSize", 0, || {
        LOCALS.with(segment, |local| Ok(local.bytes.load(Ordering::Relaxed)))
    })
}

pub(crate) fn wait(
    segment: Handle<Local>,
    node: Out<'_, u32>,
    adapter: Out<'_, u32>,
    timeout: u32,
    flags: u32,
    error: Error<'_>,
) -> u32 {
    edge("SCIWaitForLocalSegmentEvent", error, 0, || {
        LOCALS.with(segment, |local| {
            Flags::NONE.check(flags)?;
            node.check("sourceNodeId")?;
            adapter.check("localAdapterNo")?;
            check_waits(local.caller.is_some())?;
            let (reason, from, by) =
                next_event(local.session(), local.segment, timeout_nanos(timeout), &local.adapter)?;
            node.put(from, "sourceNodeId")?;
            adapter.put(by, "localAdapterNo")?;
            Ok(reason)
        })
    })
}
