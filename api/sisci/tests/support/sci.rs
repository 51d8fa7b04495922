//! The functions as C declares them: any address is a handle, and memory is what the caller says.

use core::ffi::{c_char, c_void};

use sisci as _;

pub type Pointer = *mut c_void;

/// Declares functions of the library, each with the pointer to its code at the end, and makes safe calls of them that give the code.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $gives:ty)?;)*) => {$(
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "functions of C")]
        pub fn $name($($argument: $type),*) -> (functions!(@gives $($gives)?), u32) {
            unsafe extern "C" {
                fn $name($($argument: $type,)* error: *mut u32) $(-> $gives)?;
            }
            let mut error = u32::MAX;
            // SAFETY: the signature is that of the headers; the library looks at pointers before it follows them, and those that are
            // followed are variables of the actor.
            let given = unsafe { $name($($argument,)* &raw mut error) };
            (given, error)
        }
    )*};
    (@gives) => { () };
    (@gives $gives:ty) => { $gives };
}

functions! {
    SCIInitialize(flags: u32);
    SCIOpen(sd: *mut Pointer, flags: u32);
    SCIClose(sd: Pointer, flags: u32);
    SCICreateSegment(sd: Pointer, segment: *mut Pointer, id: u32, size: usize, callback: Pointer, argument: Pointer, flags: u32);
    SCIPrepareSegment(segment: Pointer, adapter: u32, flags: u32);
    SCISetSegmentAvailable(segment: Pointer, adapter: u32, flags: u32);
    SCISetSegmentUnavailable(segment: Pointer, adapter: u32, flags: u32);
    SCIRemoveSegment(segment: Pointer, flags: u32);
    SCIWaitForLocalSegmentEvent(segment: Pointer, node: *mut u32, adapter: *mut u32, timeout: u32, flags: u32) -> u32;
    SCIConnectSegment(sd: Pointer, segment: *mut Pointer, node: u32, id: u32, adapter: u32, callback: Pointer, argument: Pointer, timeout: u32, flags: u32);
    SCIDisconnectSegment(segment: Pointer, flags: u32);
    SCIWaitForRemoteSegmentEvent(segment: Pointer, status: *mut u32, timeout: u32, flags: u32) -> u32;
    SCIAttachPhysicalMemory(address: u64, mapped: Pointer, bus: u32, size: usize, segment: Pointer, flags: u32);
    SCIRegisterSegmentMemory(address: Pointer, size: usize, segment: Pointer, flags: u32);
    SCIMapLocalSegment(segment: Pointer, map: *mut Pointer, offset: usize, size: usize, address: Pointer, flags: u32) -> Pointer;
    SCIMapRemoteSegment(segment: Pointer, map: *mut Pointer, offset: usize, size: usize, address: Pointer, flags: u32) -> Pointer;
    SCIUnmapSegment(map: Pointer, flags: u32);
    SCICreateMapSequence(map: Pointer, sequence: *mut Pointer, flags: u32);
    SCIRemoveSequence(sequence: Pointer, flags: u32);
    SCIStartSequence(sequence: Pointer, flags: u32) -> u32;
    SCICheckSequence(sequence: Pointer, flags: u32) -> u32;
    SCICacheSync(map: Pointer, address: Pointer, bytes: usize, flags: u32);
    SCIMemCpy(sequence: Pointer, memory: Pointer, map: Pointer, offset: usize, bytes: usize, flags: u32);
    SCIMemCpy_dual(sequence: Pointer, memory: Pointer, map: Pointer, offset: usize, other: Pointer, other_map: Pointer, other_offset: usize, bytes: usize, flags: u32);
    SCIMemWrite(memory: Pointer, address: Pointer, bytes: usize, flags: u32);
    SCIMemCopy(memory: Pointer, map: Pointer, offset: u32, bytes: u32, flags: u32);
    SCITransferBlock(source: Pointer, source_offset: u32, map: Pointer, offset: u32, bytes: u32, flags: u32);
    SCISetLocalCSR(sd: Pointer, adapter: u32, offset: u32, value: u32, flags: u32);
    SCICreateDMAQueue(sd: Pointer, queue: *mut Pointer, adapter: u32, entries: u32, flags: u32);
    SCIRemoveDMAQueue(queue: Pointer, flags: u32);
    SCIStartDmaTransfer(queue: Pointer, local: Pointer, remote: Pointer, local_offset: usize, bytes: usize, remote_offset: usize, callback: Pointer, argument: Pointer, flags: u32);
    SCIStartDmaTransferVec(queue: Pointer, local: Pointer, remote: Pointer, count: usize, pieces: *const [u32; 4], callback: Pointer, argument: Pointer, flags: u32);
    SCIWaitForDMAQueue(queue: Pointer, timeout: u32, flags: u32) -> u32;
    SCIAbortDMAQueue(queue: Pointer, flags: u32);
    SCICreateInterrupt(sd: Pointer, interrupt: *mut Pointer, adapter: u32, number: *mut u32, callback: Pointer, argument: Pointer, flags: u32);
    SCICreateNamedInterrupt(sd: Pointer, interrupt: *mut Pointer, adapter: u32, name: *const c_char, callback: Pointer, argument: Pointer, flags: u32);
    SCIRemoveInterrupt(interrupt: Pointer, flags: u32);
    SCIWaitForInterrupt(interrupt: Pointer, timeout: u32, flags: u32);
    SCIConnectInterrupt(sd: Pointer, interrupt: *mut Pointer, node: u32, adapter: u32, number: u32, timeout: u32, flags: u32);
    SCIDisconnectInterrupt(interrupt: Pointer, flags: u32);
    SCITriggerInterrupt(interrupt: Pointer, flags: u32);
    SCICreateDataInterrupt(sd: Pointer, interrupt: *mut Pointer, adapter: u32, number: *mut u32, callback: Pointer, argument: Pointer, flags: u32);
    SCIRemoveDataInterrupt(interrupt: Pointer, flags: u32);
    SCIWaitForDataInterrupt(interrupt: Pointer, data: Pointer, length: *mut u32, timeout: u32, flags: u32);
    SCIConnectDataInterrupt(sd: Pointer, interrupt: *mut Pointer, node: u32, adapter: u32, number: u32, timeout: u32, flags: u32);
    SCIDisconnectDataInterrupt(interrupt: Pointer, flags: u32);
    SCITriggerDataInterrupt(interrupt: Pointer, data: Pointer, length: u32, flags: u32);
    SCIProbeNode(sd: Pointer, adapter: u32, node: u32, flags: u32) -> i32;
    SCIQuery(command: u32, data: Pointer, flags: u32);
    SCIGetNodeIdByAdapterName(name: *const c_char, nodes: *mut [u32; 16], kind: *mut u32, flags: u32);
    SCIGetNodeInfoByAdapterName(name: *const c_char, adapter: *mut u32, nodes: *mut [u32; 16], kind: *mut u32, flags: u32);
    SCIGetLocalNodeId(adapter: u32, node: *mut u32, flags: u32);
}

/// Declares functions without a code.
macro_rules! getters {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $gives:ty)?;)*) => {$(
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "functions of C")]
        pub fn $name($($argument: $type),*) $(-> $gives)? {
            unsafe extern "C" {
                fn $name($($argument: $type),*) $(-> $gives)?;
            }
            // SAFETY: as above.
            unsafe { $name($($argument),*) }
        }
    )*};
}

getters! {
    SCITerminate();
    SCIGetErrorString(error: u32) -> *const c_char;
    SCIGetLocalSegmentId(segment: Pointer) -> u32;
    SCIGetLocalSegmentSize(segment: Pointer) -> usize;
    SCIGetRemoteSegmentId(segment: Pointer) -> u32;
    SCIGetRemoteSegmentNodeId(segment: Pointer) -> u32;
    SCIGetRemoteSegmentSize(segment: Pointer) -> usize;
    SCIStoreBarrier(sequence: Pointer, flags: u32);
    SCIFlush(sequence: Pointer, flags: u32);
    SCIDMAQueueState(queue: Pointer) -> u32;
    SCIGetMapPointer(map: Pointer) -> Pointer;
    SCIGetMapPhysAddr(map: Pointer) -> u64;
    beeline_sisci_last_error() -> *const c_char;
}
