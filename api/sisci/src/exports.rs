//! The functions of the library that are there; `absent.rs` has the others.

use core::ffi::{c_char, c_void};

use beeline_ffi::{Array, Bytes, Handle, HandleVariable, Memory, Out, Text};

use crate::data_interrupt::LengthVariable;
use crate::dma::{DmaCallback, Piece, Queue};
use crate::edge::Error;
use crate::interrupt::NumberVariable;
use crate::lifecycle::Descriptor;
use crate::local::{Local, LocalCallback};
use crate::map::Map;
use crate::node::NodeIds;
use crate::remote::{Remote, RemoteCallback};
use crate::sequence::Sequence;
use crate::{
    copy, data_interrupt, dma, errors, interrupt, lifecycle, local, map, message_queue, node,
    plain_interrupt, query, registered, remote, sequence,
};

/// Exports a function under its name and the two that macros of other headers make of it, which begin with `$prefix`.
macro_rules! three_names {
    ($prefix:literal, $name:ident, $arguments:tt $(-> $gives:ty)?, $body:block) => {
        crate::exports::one_name!(stringify!($name), $arguments $(-> $gives)?, $body);
        crate::exports::one_name!(concat!($prefix, "ST_", stringify!($name)), $arguments $(-> $gives)?, $body);
        crate::exports::one_name!(concat!($prefix, "MT_", stringify!($name)), $arguments $(-> $gives)?, $body);
    };
}

macro_rules! one_name {
    ($export:expr, ($($argument:ident: $type:ty),* $(,)?) $(-> $gives:ty)?, $body:block) => {
        const _: () = {
            #[unsafe(export_name = $export)]
            extern "C" fn exported($($argument: $type),*) $(-> $gives)? $body
        };
    };
}

pub(crate) use {one_name, three_names};

/// Exports functions: the name for C and the parameters, the function of this crate that does it, and perhaps another name of it.
macro_rules! exports {
    ($prefix:literal: $($name:ident $arguments:tt $(-> $gives:ty)? = $does:path $(, $other:ident)?;)*) => {$(
        export!($prefix, $name $(, $other)?, $arguments $(-> $gives)?, $does);
    )*};
}

macro_rules! export {
    ($prefix:literal, $name:ident, ($($argument:ident: $type:ty),* $(,)?) $(-> $gives:ty)?, $does:path) => {
        three_names!($prefix, $name, ($($argument: $type),*) $(-> $gives)?, { $does($($argument),*) });
    };
    ($prefix:literal, $name:ident, $other:ident, $arguments:tt $(-> $gives:ty)?, $does:path) => {
        export!($prefix, $name, $arguments $(-> $gives)?, $does);
        export!($prefix, $other, $arguments $(-> $gives)?, $does);
    };
}

exports! {
    "_SISCI_PUBLIC_FUNC_":
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

    SCIShareSegment(segment: Handle<Local>, flags: u32, error: Error<'_>) = local::share;
    SCIAttachLocalSegment(
        sd: Handle<Descriptor>,
        segment: Out<'_, Handle<Local>>,
        id: u32,
        size: Out<'_, usize>,
        callback: Option<LocalCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = local::attach;

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
    SCIRegisterSegmentMemory(
        address: *mut c_void,
        bytes: usize,
        segment: Handle<Local>,
        flags: u32,
        error: Error<'_>,
    ) = registered::register;
    SCIAttachPhysicalMemory(
        bus_address: u64,
        address: *mut c_void,
        bus: u32,
        bytes: usize,
        segment: Handle<Local>,
        flags: u32,
        error: Error<'_>,
    ) = registered::attach;

    SCIGetLocalNodeId(adapter: u32, node: Out<'_, u32>, flags: u32, error: Error<'_>) = node::local_node_id;
    SCIProbeNode(sd: Handle<Descriptor>, adapter: u32, node: u32, flags: u32, error: Error<'_>) -> i32 = node::probe;
    SCIGetNodeIdByAdapterName(
        name: Text<'_>,
        nodes: Out<'_, NodeIds>,
        kind: Out<'_, u32>,
        flags: u32,
        error: Error<'_>,
    ) = node::by_name;
    SCIGetNodeInfoByAdapterName(
        name: Text<'_>,
        adapter: Out<'_, u32>,
        nodes: Out<'_, NodeIds>,
        kind: Out<'_, u32>,
        flags: u32,
        error: Error<'_>,
    ) = node::info_by_name;
    SCIGetAdapterTypeString(kind: u32) -> *const c_char = node::kind_text;
    SCIGetAdapterFamilyString(kind: u32) -> *const c_char = node::family_text;
    SCIQuery(command: u32, data: *mut c_void, flags: u32, error: Error<'_>) = query::query;

    SCICreateMapSequence(map: Handle<Map>, sequence: Out<'_, Handle<Sequence>>, flags: u32, error: Error<'_>) = sequence::create;
    SCIRemoveSequence(sequence: Handle<Sequence>, flags: u32, error: Error<'_>) = sequence::remove_sequence;
    SCIStartSequence(sequence: Handle<Sequence>, flags: u32, error: Error<'_>) -> u32 = sequence::start;
    SCICheckSequence(sequence: Handle<Sequence>, flags: u32, error: Error<'_>) -> u32 = sequence::check;
    SCIStoreBarrier(sequence: Handle<Sequence>, flags: u32) = sequence::store_barrier;
    SCIFlush(sequence: Handle<Sequence>, flags: u32) = sequence::flush;
    SCIFlushReadBuffers(sequence: Handle<Sequence>) = sequence::flush_read_buffers;
    SCICacheSync(map: Handle<Map>, address: *mut c_void, bytes: usize, flags: u32, error: Error<'_>) = sequence::cache_sync;

    SCIMemCpy(
        sequence: Handle<Sequence>,
        memory: *mut c_void,
        map: Handle<Map>,
        offset: usize,
        bytes: usize,
        flags: u32,
        error: Error<'_>,
    ) = copy::mem_cpy;
    SCIMemCpy_dual(
        sequence: Handle<Sequence>,
        memory: *mut c_void,
        map: Handle<Map>,
        offset: usize,
        other_sequence: Handle<Sequence>,
        other_map: Handle<Map>,
        other_offset: usize,
        bytes: usize,
        flags: u32,
        error: Error<'_>,
    ) = copy::mem_cpy_dual;
    SCIMemWrite(memory: *mut c_void, address: *mut c_void, bytes: usize, flags: u32, error: Error<'_>) = copy::mem_write;
    SCIMemCopy(memory: *mut c_void, map: Handle<Map>, offset: u32, bytes: u32, flags: u32, error: Error<'_>) = copy::mem_copy;
    SCITransferBlock(
        source: Handle<Map>,
        source_offset: u32,
        destination: Handle<Map>,
        destination_offset: u32,
        bytes: u32,
        flags: u32,
        error: Error<'_>,
    ) = copy::transfer_block;
    GetSciMemCopyFunction() -> u32 = copy::copy_function;
    SetSciMemCopyFunction(function: u32) = copy::set_copy_function;
    SCIGetMapPhysAddr(map: Handle<Map>) -> u64 = map::physical_address;

    SCICreateDMAQueue(
        sd: Handle<Descriptor>,
        queue: Out<'_, Handle<Queue>>,
        adapter: u32,
        max_entries: u32,
        flags: u32,
        error: Error<'_>,
    ) = dma::create;
    SCIRemoveDMAQueue(queue: Handle<Queue>, flags: u32, error: Error<'_>) = dma::remove_queue;
    SCIStartDmaTransfer(
        queue: Handle<Queue>,
        local: Handle<Local>,
        remote: Handle<Remote>,
        local_offset: usize,
        bytes: usize,
        remote_offset: usize,
        callback: Option<DmaCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = dma::start, DISStartDmaTransfer;
    SCIStartDmaTransferVec(
        queue: Handle<Queue>,
        local: Handle<Local>,
        remote: Handle<Remote>,
        count: usize,
        pieces: Array<'_, Piece>,
        callback: Option<DmaCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = dma::start_vector, DISStartDmaTransferVec;
    SCIDMAQueueState(queue: Handle<Queue>) -> u32 = dma::state;
    SCIStartDmaTransferMem(
        queue: Handle<Queue>,
        address: *mut c_void,
        remote: Handle<Remote>,
        bytes: usize,
        remote_offset: usize,
        callback: Option<DmaCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = dma::start_memory;
    SCIEnqueueDMATransfer(
        queue: Handle<Queue>,
        local: Handle<Local>,
        remote: Handle<Remote>,
        local_offset: u32,
        remote_offset: u32,
        bytes: u32,
        flags: u32,
        error: Error<'_>,
    ) = dma::enqueue;
    SCIPostDMAQueue(
        queue: Handle<Queue>,
        callback: Option<DmaCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = dma::post;
    SCIResetDMAQueue(queue: Handle<Queue>, flags: u32, error: Error<'_>) = dma::reset;
    SCIWaitForDMAQueue(queue: Handle<Queue>, timeout: u32, flags: u32, error: Error<'_>) -> u32 = dma::wait;
    SCIAbortDMAQueue(queue: Handle<Queue>, flags: u32, error: Error<'_>) = dma::abort;

    SCICreateInterrupt(
        sd: Handle<Descriptor>,
        interrupt: Out<'_, Handle<plain_interrupt::Local>>,
        adapter: u32,
        number: NumberVariable,
        callback: Option<plain_interrupt::InterruptCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = interrupt::create;
    SCICreateNamedInterrupt(
        sd: Handle<Descriptor>,
        interrupt: Out<'_, Handle<plain_interrupt::Local>>,
        adapter: u32,
        name: Text<'_>,
        callback: Option<plain_interrupt::InterruptCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = interrupt::create_named;
    SCIRemoveInterrupt(interrupt: Handle<plain_interrupt::Local>, flags: u32, error: Error<'_>) = interrupt::remove_interrupt;
    SCIConnectInterrupt(
        sd: Handle<Descriptor>,
        interrupt: Out<'_, Handle<plain_interrupt::Remote>>,
        node: u32,
        adapter: u32,
        number: u32,
        timeout: u32,
        flags: u32,
        error: Error<'_>,
    ) = interrupt::connect;
    SCIDisconnectInterrupt(interrupt: Handle<plain_interrupt::Remote>, flags: u32, error: Error<'_>) = interrupt::disconnect;
    SCIWaitForInterrupt(interrupt: Handle<plain_interrupt::Local>, timeout: u32, flags: u32, error: Error<'_>) = plain_interrupt::wait;
    SCITriggerInterrupt(interrupt: Handle<plain_interrupt::Remote>, flags: u32, error: Error<'_>) = plain_interrupt::trigger;

    SCICreateDataInterrupt(
        sd: Handle<Descriptor>,
        interrupt: Out<'_, Handle<data_interrupt::Local>>,
        adapter: u32,
        number: NumberVariable,
        callback: Option<data_interrupt::DataCallback>,
        argument: *mut c_void,
        flags: u32,
        error: Error<'_>,
    ) = interrupt::create;
    SCIRemoveDataInterrupt(interrupt: Handle<data_interrupt::Local>, flags: u32, error: Error<'_>) = interrupt::remove_interrupt;
    SCIConnectDataInterrupt(
        sd: Handle<Descriptor>,
        interrupt: Out<'_, Handle<data_interrupt::Remote>>,
        node: u32,
        adapter: u32,
        number: u32,
        timeout: u32,
        flags: u32,
        error: Error<'_>,
    ) = interrupt::connect;
    SCIDisconnectDataInterrupt(interrupt: Handle<data_interrupt::Remote>, flags: u32, error: Error<'_>) = interrupt::disconnect;
    SCIWaitForDataInterrupt(
        interrupt: Handle<data_interrupt::Local>,
        data: Memory<'_>,
        length: LengthVariable,
        timeout: u32,
        flags: u32,
        error: Error<'_>,
    ) = data_interrupt::wait;
    SCITriggerDataInterrupt(
        interrupt: Handle<data_interrupt::Remote>,
        data: Bytes<'_>,
        length: u32,
        flags: u32,
        error: Error<'_>,
    ) = data_interrupt::trigger;
}

// `scilib.h`
exports! {
    "_SCIL_PUBLIC_FUNC_":
    SCILInit(flags: u32) -> u32 = message_queue::initialize;
    SCILDestroy(flags: u32) -> u32 = message_queue::destroy;
    SCILCreateMsgQueue(
        queue: HandleVariable<'_, message_queue::Queue>,
        adapter: u32,
        node: u32,
        local: u32,
        remote: u32,
        max_messages: u32,
        max_message_bytes: u32,
        timeout: u32,
        flags: u32,
    ) -> u32 = message_queue::create, SCILConnectMsgQueue;
    SCILRemoveMsgQueue(queue: HandleVariable<'_, message_queue::Queue>, flags: u32) -> u32
        = message_queue::remove_queue, SCILDisconnectMsgQueue;
    SCILSendMsg(
        queue: Handle<message_queue::Queue>,
        message: Bytes<'_>,
        bytes: u32,
        free: Out<'_, u32>,
        flags: u32,
    ) -> u32 = message_queue::send;
    SCILReceiveMsg(
        queue: Handle<message_queue::Queue>,
        into: Memory<'_>,
        bytes: u32,
        left: Out<'_, u32>,
        flags: u32,
    ) -> u32 = message_queue::receive;
}
