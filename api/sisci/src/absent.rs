//! Functions that are not there: each says so, and none pretends to have done anything.
//!
//! `NOT_SUPPORTED` are those that memory of one host has nothing for: registers and addresses of a bus, lent devices, interrupts that a store
//! triggers. `DEPRECATED` are those of version 1 that have another way.

use core::ffi::c_void;

use beeline_ffi::Out;

use crate::constants::*;
use crate::edge::{Error, edge, failure};
use crate::errors::{DEPRECATED, DMA_NOT_AVAILABLE, ILLEGAL_PARAMETER, NOT_SUPPORTED};
use crate::exports::three_names;
use crate::flags::Flags;
use crate::session;

/// A handle, or an address that is not looked at.
type Pointer = *mut c_void;
/// Where C wants a handle.
type Place<'a> = Out<'a, Pointer>;

/// `sci_address_t`
#[repr(C)]
struct Address {
    node: u16,
    upper: u16,
    lower: u32,
}

/// Exports functions that give a code and do nothing else. In brackets is where a handle would be put, which is NULL then; then come the
/// flags that the function knows.
macro_rules! absent {
    ($code:ident: $($name:ident($($argument:ident: $type:ty),*) $(-> $gives:ty)? $([$place:ident])?, $flags:expr;)*) => {$(
        three_names!("_SISCI_PUBLIC_FUNC_", $name, ($($argument: $type,)* flags: u32, error: Error<'_>) $(-> $gives)?, {
            let _not_looked_at = ($($argument,)*);
            $($place.put_if_wanted(core::ptr::null_mut());)?
            let _zero = answer(stringify!($name), ($flags, flags), $code, error);
            $(0 as $gives)?
        });
    )*};
}

/// Gives the code of a function, if there is nothing worse.
fn answer(name: &str, (known, flags): (u32, u32), code: u32, error: Error<'_>) -> u32 {
    edge(name, error, 0, || {
        session::config()?;
        Flags { done: known, not_done: 0 }.check(flags)?;
        let why = match code {
            DEPRECATED => "this function of version 1 does nothing; its manual page names what does",
            DMA_NOT_AVAILABLE => "no adapter has channels of DMA: a queue needs none",
            ILLEGAL_PARAMETER => "no channel of DMA was given, so the handle is of none",
            _ => "nothing on this platform does that: the function is there to be linked",
        };
        Err(failure(code, why))
    })
}

absent! {
    NOT_SUPPORTED:
    SCIConnectSCISpace(sd: Pointer, local_adapter_no: u32, segment: Place, address: Address, size: usize) [segment], 0;
    SCIRegisterInterruptFlag(local_adapter_no: u32, interrupt: Place, segment: Pointer, offset: usize, callback: Pointer, arg: Pointer) [interrupt], SCI_FLAG_USE_CALLBACK | SCI_FLAG_CONDITIONAL_INTERRUPT;
    SCIEnableConditionalInterrupt(map: Pointer), 0;
    SCIDisableConditionalInterrupt(map: Pointer), 0;
    SCIGetConditionalInterruptTrigCounter(map: Pointer, count: Pointer), 0;
    SCIGetCSRRegister(sd: Pointer, local_adapter_no: u32, node_id: u32, offset: u32, value: Pointer), 0;
    SCISetCSRRegister(sd: Pointer, local_adapter_no: u32, node_id: u32, offset: u32, value: u32), 0;
    SCIGetLocalCSR(sd: Pointer, local_adapter_no: u32, offset: u32, value: Pointer), 0;
    SCISetLocalCSR(sd: Pointer, local_adapter_no: u32, offset: u32, value: u32), 0;
    SCIRegisterPCIeRequester(sd: Pointer, local_adapter_no: u32, bus: u32, devfn: u32), SCI_FLAG_PCIE_REQUESTER_GLOBAL;
    SCIUnregisterPCIeRequester(sd: Pointer, local_adapter_no: u32, bus: u32, devfn: u32), SCI_FLAG_PCIE_REQUESTER_GLOBAL;
    SCIBorrowDevice(sd: Pointer, device: Place, fdid: u64) [device], SCI_FLAG_EXCLUSIVE;
    SCIReturnDevice(device: Pointer), 0;
    SCIReleaseExclusiveBorrow(device: Pointer), 0;
    SCICreateDeviceSegment(sd: Pointer, segment: Place, segment_id: u32, device: Pointer, size: usize, access: u32, callback: Pointer, arg: Pointer) [segment], SCI_FLAG_USE_CALLBACK | SCI_FLAG_AUTO_ID | SCI_FLAG_DEVICE_SIDE_ONLY | SCI_FLAG_LOCAL_ONLY;
    SCIConnectDeviceSegment(sd: Pointer, segment: Place, device: Pointer, mem_id: u32, mem_type: u32, callback: Pointer, arg: Pointer) [segment], SCI_FLAG_USE_CALLBACK | SCI_FLAG_SPECIFY_PATH;
    SCIConnectDeviceSegmentPath(sd: Pointer, segment: Place, device: Pointer, mem_id: u32, mem_type: u32, local_adapter_no: u32, callback: Pointer, arg: Pointer) [segment], SCI_FLAG_USE_CALLBACK | SCI_FLAG_SPECIFY_PATH;
    SCIConnectDeviceMemory(sd: Pointer, segment: Place, device: Pointer, mem_id: u32, mem_type: u32, callback: Pointer, arg: Pointer) [segment], SCI_FLAG_USE_CALLBACK;
    SCIMapLocalSegmentForDevice(segment: Pointer, device: Pointer, ioaddress: Pointer), 0;
    SCIUnmapLocalSegmentForDevice(segment: Pointer, device: Pointer), 0;
    SCIMapRemoteSegmentForDevice(segment: Pointer, device: Pointer, ioaddress: Pointer), 0;
    SCIUnmapRemoteSegmentForDevice(segment: Pointer, device: Pointer), 0;
    SCIGetDeviceList(sd: Pointer, fdids: Pointer, length: u32, count: Pointer), 0;
    SCIGetFabricDeviceId(device: Pointer) -> u64, 0;
    SCIphDmaEnqueue(dq: Pointer, size: u32, local_bus_addr: u32, remote_high_addr: u32, remote_low_addr: u32), SCI_FLAG_DMA_READ;
    SCIphDmaStart(dq: Pointer, callback: Pointer, arg: Pointer), SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_WAIT;
}

absent! {
    DEPRECATED:
    SCITransferBlockAsync(source_map: Pointer, source_offset: u32, destination_map: Pointer, destination_offset: u32, size: u32, block: Place, callback: Pointer, arg: Pointer) [block], SCI_FLAG_USE_CALLBACK;
    SCIWaitForBlockTransfer(block: Pointer, timeout: u32), 0;
    SCIAbortBlockTransfer(block: Pointer), 0;
}

absent! {
    DMA_NOT_AVAILABLE:
    SCIRequestDMAChannel(sd: Pointer, channel: Place<'_>, local_adapter_no: u32, kind: u32, channel_id: u32) [channel], SCI_FLAG_DMA_CHANNEL_SHARED;
}

// No channel is ever given.
absent! {
    ILLEGAL_PARAMETER:
    SCIAssignDMAChannel(channel: Pointer, dq: Pointer), 0;
}

three_names!("_SISCI_PUBLIC_FUNC_", SCIReturnDMAChannel, (_channel: Pointer, error: Error<'_>), {
    let _zero = answer("SCIReturnDMAChannel", (0, 0), ILLEGAL_PARAMETER, error);
});
