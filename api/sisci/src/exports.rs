//! The functions of the library, each under its name and the two that macros of other headers make of it.

use core::ffi::{c_char, c_void};

use beeline_ffi::{Handle, Out};

use crate::edge::Error;
use crate::lifecycle::Descriptor;
use crate::local::{Local, LocalCallback};
use crate::map::Map;
use crate::remote::{Remote, RemoteCallback};
use crate::{errors, lifecycle, local, map, node, remote};

/// Exports functions: the name for C and the parameters, and the function of this crate that does it.
macro_rules! exports {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $gives:ty)? = $does:path;)*) => {
        $(exports!(@each $name, $name, ($($argument: $type),*) $(-> $gives)?, $does);
        exports!(@each $name, concat!("_SISCI_PUBLIC_FUNC_ST_", stringify!($name)), ($($argument: $type),*) $(-> $gives)?, $does);
        exports!(@each $name, concat!("_SISCI_PUBLIC_FUNC_MT_", stringify!($name)), ($($argument: $type),*) $(-> $gives)?, $does);)*
    };
    (@each $name:ident, $same:ident, $arguments:tt $(-> $gives:ty)?, $does:path) => {
        exports!(@each $name, stringify!($same), $arguments $(-> $gives)?, $does);
    };
    (@each $name:ident, $export:expr, ($($argument:ident: $type:ty),*) $(-> $gives:ty)?, $does:path) => {
        const _: () = {
            #[unsafe(export_name = $export)]
            extern "C" fn exported($($argument: $type),*) $(-> $gives)? {
                $does($($argument),*)
            }
        };
    };
}

exports! {
    SCIInitialize(flags: u32, error: Error<'_>) = lifecycle::initialize;
    SCITerminate() = lifecycle::terminate;
    SCIOpen(sd: Out<'_, Handle<Descriptor>>, flags: u32, error: Error<'_>) = lifecycle::open;
    SCIClose(sd: Handle<Descriptor>, flags: u32, error: Error<'_>) = lifecycle::close;
    SCIGetErrorString(error: u32) -> *const c_char = errors::text;

    SCICreateSegment(
        sd: Handle<Descriptor>,
        segment: Out<'_, Handle<Local>>,
        id: u32,
        size: usize,
        callback: Option<LocalCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = local::create;
    SCIPrepareSegment(segment: Handle<Local>, adapter: u32, flags: u32, error: Error<'_>) = local::prepare;
    SCISetSegmentAvailable(segment: Handle<Local>, adapter: u32, flags: u32, error: Error<'_>) = local::set_available;
    SCISetSegmentUnavailable(segment: Handle<Local>, adapter: u32, flags: u32, error: Error<'_>) = local::set_unavailable;
    SCIRemoveSegment(segment: Handle<Local>, flags: u32, error: Error<'_>) = local::remove_segment;
    SCIGetLocalSegmentId(segment: Handle<Local>) -> u32 = local::id;
    SCIGetLocalSegmentSize(segment: Handle<Local>) -> usize = local::size;
    SCIWaitForLocalSegmentEvent(
        segment: Handle<Local>,
        node: Out<'_, u32>,
        adapter: Out<'_, u32>,
        timeout: u32,
        flags: u32,
        error: Error<'_>,
    ) -> u32 = local::wait;

    SCIConnectSegment(
        sd: Handle<Descriptor>,
        segment: Out<'_, Handle<Remote>>,
        node: u32,
        id: u32,
        adapter: u32,
        callback: Option<RemoteCallback>,
        argument: *mut c_void,
        timeout: u32,
        flags: u32,
        error: Error<'_>,
    ) = remote::connect;
    SCIDisconnectSegment(segment: Handle<Remote>, flags: u32, error: Error<'_>) = remote::disconnect;
    SCIGetRemoteSegmentId(segment: Handle<Remote>) -> u32 = remote::id;
    SCIGetRemoteSegmentNodeId(segment: Handle<Remote>) -> u32 = remote::node;
    SCIGetRemoteSegmentSize(segment: Handle<Remote>) -> usize = remote::size;
    SCIWaitForRemoteSegmentEvent(
        segment: Handle<Remote>,
        status: Out<'_, u32>,
        timeout: u32,
        flags: u32,
        error: Error<'_>,
    ) -> u32 = remote::wait;

    SCIMapLocalSegment(
        segment: Handle<Local>,
        map: Out<'_, Handle<Map>>,
        offset: usize,
        size: usize,
        address: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) -> *mut c_void = map::map_local;
    SCIMapRemoteSegment(
        segment: Handle<Remote>,
        map: Out<'_, Handle<Map>>,
        offset: usize,
        size: usize,
        address: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) -> *mut c_void = map::map_remote;
    SCIUnmapSegment(map: Handle<Map>, flags: u32, error: Error<'_>) = map::unmap;
    SCIGetMapPointer(map: Handle<Map>) -> *mut c_void = map::pointer;

    SCIGetLocalNodeId(adapter: u32, node: Out<'_, u32>, flags: u32, error: Error<'_>) = node::local_node_id;
}
