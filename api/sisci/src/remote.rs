//! Segments of other processes, connected to.

use core::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use beeline_fabric::{AdapterNumber, Call, NodeId, RemoteEvent, RemoteSegment, SegmentId, Value};
use beeline_ffi::{Handle, Kind, Out, Outcome};

use crate::constants::{
    SCI_CB_CONNECT, SCI_CB_LOST, SCI_CB_NOT_OPERATIONAL, SCI_CB_OPERATIONAL, SCI_FLAG_ASYNCHRONOUS_CONNECT,
    SCI_FLAG_BROADCAST, SCI_FLAG_USE_CALLBACK,
};
use crate::edge::{Error, edge, edge_without_code, refused, unexpected};
use crate::errors;
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::lifecycle::{DESCRIPTORS, Descriptor};
use crate::node::{node_id, timeout_nanos};
use crate::session::Belongs;
use crate::uses::Use;

/// `sci_remote_segment_t`.
pub(crate) struct Remote {
    belongs: Belongs,
    _of_descriptor: Use,
    pub(crate) segment: RemoteSegment,
    node: NodeId,
    id: SegmentId,
    /// Zero until it is connected.
    bytes: AtomicUsize,
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
    Flags { done: SCI_FLAG_ASYNCHRONOUS_CONNECT, not_done: SCI_FLAG_USE_CALLBACK | SCI_FLAG_BROADCAST };

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn connect(
    descriptor: Handle<Descriptor>,
    segment: Out<'_, Handle<Remote>>,
    node: u32,
    id: u32,
    adapter: u32,
    _callback: Option<RemoteCallback>,
    _argument: *mut c_void,
    timeout: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIConnectSegment", error, (), || {
        segment.put(Handle::NULL, "segment")?;
        // The descriptor is not held while this waits: so that it is not hung by who closes it.
        let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
            CONNECT.check(flags)?;
            Ok((descriptor.session().clone(), descriptor.uses.begin()?))
        })?;
        let (node, id) = (node_id(node)?, SegmentId(id));
        let connected = session.call(Call::Connect {
            node,
            id,
            adapter: AdapterNumber::new(adapter).map_err(refused)?,
            timeout_nanos: timeout_nanos(timeout),
            is_asynchronous: flags & SCI_FLAG_ASYNCHRONOUS_CONNECT != 0,
            has_callback: false,
        })?;
        let Value::Remote(remote, bytes) = connected else { return Err(unexpected()) };
        let make = |belongs| Remote {
            belongs,
            _of_descriptor: of_descriptor,
            segment: remote,
            node,
            id,
            bytes: AtomicUsize::new(bytes as usize),
        };
        match REMOTES.make(&session, make, remove) {
            Ok(handle) => segment.put(handle, "segment"),
            Err(failure) => {
                // There is no handle for it, so nobody else has ended it.
                let _ended = session.call(Call::Disconnect(remote));
                Err(failure)
            }
        }
    });
}

pub(crate) fn disconnect(segment: Handle<Remote>, flags: u32, error: Error<'_>) {
    edge("SCIDisconnectSegment", error, (), || {
        REMOTES.with(segment, |_| Flags::NONE.check(flags))?;
        remove(segment)
    });
}

pub(crate) fn remove(segment: Handle<Remote>) -> Outcome<()> {
    REMOTES.with(segment, |remote| {
        // Who waits for an event of it is told, and leaves it.
        remote.session().call(Call::Disconnect(remote.segment))
    })?;
    REMOTES.remove(segment).map(drop)
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
            let wait = Call::WaitRemote { remote: remote.segment, timeout_nanos: timeout_nanos(timeout) };
            let Value::RemoteEvent(event) = remote.session().call(wait)? else { return Err(unexpected()) };
            let (reason, code) = remote.told(event);
            status.put(code, "status")?;
            Ok(reason)
        })
    })
}

impl Remote {
    /// What C is told of an event: reason and code.
    fn told(&self, event: RemoteEvent) -> (u32, u32) {
        match event {
            RemoteEvent::Connect(bytes) => {
                self.bytes.store(bytes as usize, Ordering::Relaxed);
                (SCI_CB_CONNECT, errors::OK)
            }
            RemoteEvent::NotMade(refusal) => (SCI_CB_LOST, refusal as u32),
            RemoteEvent::NotOperational => (SCI_CB_NOT_OPERATIONAL, errors::OK),
            RemoteEvent::Operational => (SCI_CB_OPERATIONAL, errors::OK),
            RemoteEvent::Lost => (SCI_CB_LOST, errors::OK),
        }
    }
}
