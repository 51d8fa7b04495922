//! Segments of other processes, connected to.

use core::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use beeline_fabric::{AdapterNumber, Call, NodeId, RemoteEvent, RemoteSegment, SegmentId, Value};
use beeline_ffi::{Handle, Kind, Out, Outcome};

use crate::callback::{Argument, Caller, check_callback, check_waits};
use crate::constants::{
    SCI_CB_CONNECT, SCI_CB_DISCONNECT, SCI_CB_LOST, SCI_CB_NOT_OPERATIONAL, SCI_CB_OPERATIONAL,
    SCI_FLAG_ASYNCHRONOUS_CONNECT, SCI_FLAG_BROADCAST, SCI_FLAG_USE_CALLBACK,
};
use crate::edge::{Error, edge, edge_without_code, unexpected};
use crate::errors;
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::lifecycle::{DESCRIPTORS, Descriptor};
use crate::node::{node_or_group, timeout_nanos};
use crate::session::{Belongs, Session};
use crate::uses::Use;

/// `sci_remote_segment_t`.
pub(crate) struct Remote {
    belongs: Belongs,
    _of_descriptor: Use,
    pub(crate) segment: RemoteSegment,
    pub(crate) adapter: AdapterNumber,
    node: NodeId,
    id: SegmentId,
    /// Zero until it is connected.
    bytes: Arc<AtomicUsize>,
    /// Of its callback, if it has one.
    caller: Option<Caller>,
}

impl Kind for Remote {
    const NAME: &'static str = "sci_remote_segment_t";
    const TAG: u8 = 0x55;
}

impl Object for Remote {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

pub(crate) static REMOTES: Table<Remote> = Table::new();

/// `sci_cb_remote_segment_t`.
pub(crate) type RemoteCallback = extern "C" fn(*mut c_void, Handle<Remote>, u32, u32) -> u32;

const CONNECT: Flags =
    Flags { done: SCI_FLAG_USE_CALLBACK | SCI_FLAG_ASYNCHRONOUS_CONNECT | SCI_FLAG_BROADCAST, not_done: 0 };

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn connect(
    descriptor: Handle<Descriptor>,
    segment: Out<'_, Handle<Remote>>,
    node: u32,
    id: u32,
    adapter: u32,
    callback: Option<RemoteCallback>,
    argument: *mut c_void,
    timeout: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIConnectSegment", error, (), || {
        segment.put(Handle::NULL, "segment")?;
        // The descriptor is not held while this waits: so that it is not hung by who closes it.
        let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
            CONNECT.check(flags)?;
            check_callback(flags, callback.is_some())?;
            Ok((descriptor.session().clone(), descriptor.uses.begin()?))
        })?;
        let (node, id) = (node_or_group(node, flags)?, SegmentId(id));
        let adapter = session.adapter(adapter)?;
        let connected = session.call(Call::Connect {
            node,
            id,
            adapter,
            timeout_nanos: timeout_nanos(timeout),
            is_asynchronous: flags & SCI_FLAG_ASYNCHRONOUS_CONNECT != 0,
            has_callback: flags & SCI_FLAG_USE_CALLBACK != 0,
        })?;
        let Value::Remote(remote, bytes) = connected else { return Err(unexpected()) };
        let has_callback = flags & SCI_FLAG_USE_CALLBACK != 0;
        let bytes = Arc::new(AtomicUsize::new(bytes as usize));
        let make = |belongs| Remote {
            belongs,
            _of_descriptor: of_descriptor,
            segment: remote,
            adapter,
            node,
            id,
            bytes: Arc::clone(&bytes),
            caller: has_callback.then(Caller::default),
        };
        match REMOTES.make(&session, make, remove) {
            Ok(handle) => {
                segment.put(handle, "segment")?;
                match callback.filter(|_| has_callback) {
                    Some(callback) => begin_calls(handle, remote, bytes, (callback, argument)),
                    None => Ok(()),
                }
            }
            Err(failure) => {
                // There is no handle for it, so nobody else has ended it.
                let _ended = session.call(Call::Disconnect(remote));
                Err(failure)
            }
        }
    });
}

impl Remote {
    pub(crate) fn is_group(&self) -> bool {
        self.node == NodeId::GROUPS
    }
}

pub(crate) fn disconnect(segment: Handle<Remote>, flags: u32, error: Error<'_>) {
    edge("SCIDisconnectSegment", error, (), || {
        REMOTES.with(segment, |_| Flags::NONE.check(flags))?;
        remove(segment)
    });
}

pub(crate) fn remove(segment: Handle<Remote>) -> Outcome<()> {
    REMOTES.with_last(segment, |remote| {
        // Who waits for an event of it is told, and leaves it.
        remote.session().call(Call::Disconnect(remote.segment))
    })?;
    // The callback may be running, and may use the handle, which is refused from here on.
    let removed = REMOTES.remove(segment)?;
    if let Some(caller) = &removed.caller {
        caller.stop();
    }
    Ok(())
}

pub(crate) fn id(segment: Handle<Remote>) -> u32 {
    edge_without_code("SCIGetRemoteSegmentId", 0, || REMOTES.with(segment, |remote| Ok(remote.id.0)))
}

pub(crate) fn node(segment: Handle<Remote>) -> u32 {
    edge_without_code("SCIGetRemoteSegmentNodeId", 0, || {
        REMOTES.with(segment, |remote| Ok(remote.node.0.into()))
    })
}

pub(crate) fn size(segment: Handle<Remote>) -> usize {
    edge_without_code("SCIGetRemoteSegmentSize", 0, || {
        REMOTES.with(segment, |remote| Ok(remote.bytes.load(Ordering::Relaxed)))
    })
}

pub(crate) fn wait(
    segment: Handle<Remote>,
    status: Out<'_, u32>,
    timeout: u32,
    flags: u32,
    error: Error<'_>,
) -> u32 {
    edge("SCIWaitForRemoteSegmentEvent", error, 0, || {
        REMOTES.with(segment, |remote| {
            Flags::NONE.check(flags)?;
            status.check("status")?;
            check_waits(remote.caller.is_some())?;
            let (reason, code) =
                next_event(remote.session(), remote.segment, timeout_nanos(timeout), &remote.bytes)?;
            status.put(code, "status")?;
            Ok(reason)
        })
    })
}

/// Begins to tell the callback of a connection what happens to it; the connection is ended if that cannot be.
fn begin_calls(
    handle: Handle<Remote>,
    remote: RemoteSegment,
    bytes: Arc<AtomicUsize>,
    (callback, argument): (RemoteCallback, *mut c_void),
) -> Outcome<()> {
    let argument = Argument::of(argument);
    let begun = REMOTES.with(handle, |segment| {
        let session = Arc::clone(segment.session());
        session.member().tell_connection(remote);
        let member = Arc::clone(&session);
        let next = move || Some(as_told(member.member().next_event_of_connection(remote)?, &bytes));
        let call = move |(reason, code)| callback(argument.get(), handle, reason, code);
        segment.caller.as_ref().map_or(Ok(()), |caller| session.begin_calls(caller, next, call))
    });
    begun.or_else(|failure| {
        remove(handle)?;
        Err(failure)
    })
}

/// Waits for what happens to a connection next: reason and code that C is told.
fn next_event(
    session: &Session,
    remote: RemoteSegment,
    timeout_nanos: Option<u64>,
    size: &AtomicUsize,
) -> Outcome<(u32, u32)> {
    let Value::RemoteEvent(event) = session.call(Call::WaitRemote { remote, timeout_nanos })? else {
        return Err(unexpected());
    };
    Ok(as_told(event, size))
}

/// An event as C is told: reason and code.
fn as_told(event: RemoteEvent, size: &AtomicUsize) -> (u32, u32) {
    match event {
        RemoteEvent::Connect(bytes) => {
            size.store(bytes as usize, Ordering::Relaxed);
            (SCI_CB_CONNECT, errors::OK)
        }
        RemoteEvent::NotMade(refusal) => (SCI_CB_LOST, refusal.code()),
        RemoteEvent::NotOperational => (SCI_CB_NOT_OPERATIONAL, errors::OK),
        RemoteEvent::Operational => (SCI_CB_OPERATIONAL, errors::OK),
        RemoteEvent::Disconnect => (SCI_CB_DISCONNECT, errors::OK),
        RemoteEvent::Lost => (SCI_CB_LOST, errors::OK),
    }
}
