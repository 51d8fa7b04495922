//! System calls of packet sockets and BPF that neither rustix nor another well-kept crate offers.
//!
//! FFI and nothing else: every function is safe, takes descriptors by reference and gives them as owned, checks what
//! the kernel would have to trust, and gives the kernel's error as it is. What to do about it is said in `os/ethernet`,
//! which is the only user. Memory that the kernel shares with us is not touched here but in `os/mmio`.
#![expect(unsafe_code, reason = "system calls without a safe interface")]
#![cfg(target_os = "linux")]

mod bpf;
mod interface;
mod options;
mod packet;

pub use bpf::{AttachMode, Instruction, SocketMap, XdpLink, XdpProgram};
pub use interface::{driver, mtu, station_address};
pub use options::{IntOption, set};
pub use packet::{bind, make_promiscuous};
