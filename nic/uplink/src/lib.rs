//! Up-links: what is on the far side of the NIC's wire.
//!
//! An up-link takes frames that the switch of `nic/process` sends out and gives frames that come in: back where they
//! came from ([`Loopback`]), to and from capture files ([`PcapIn`], [`PcapOut`]), to the kernel's network ([`Tap`]).
//! Everything here is non-blocking and runs in the NIC's loop, so a frame costs what the operating system charges for
//! it; none of it is on the path between two ports.
//!
//! It knows no port, queue or register. Frames are Ethernet without FCS. They come from and go to `nic/process`
//! (`switch.rs`). kPIO+WC §IV uses the same trick: two interfaces looped back, so that nothing but the I/O path shows.
#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;

pub use beeline_nic_contract::Accept;

mod error;
mod loopback;
mod pcap_in;
mod pcap_out;
mod records;
#[cfg(target_os = "linux")]
mod tap;

pub use error::UplinkError;
pub use loopback::Loopback;
pub use pcap_in::PcapIn;
pub use pcap_out::PcapOut;
#[cfg(target_os = "linux")]
pub use tap::Tap;

/// How the switch has to treat an up-link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Frames may be sent to it.
    pub takes: bool,
    /// It is sent every frame that enters the switch, wherever it goes; a capture, not a station's way.
    pub mirrors: bool,
    /// Frames come from it.
    pub gives: bool,
    /// A frame that came from it may be held until its receiver has room; `false` for a network, which does not wait.
    pub waits: bool,
    /// The source addresses of its frames say where stations are; `false` for what only gives frames back.
    pub learns: bool,
}

/// One up-link of a NIC.
pub trait Uplink: Send {
    /// What it is, for people: `loopback`, `pcap-in trace.pcap`, `tap bee0`.
    fn name(&self) -> &str;

    /// How the switch has to treat it; never changes.
    fn traits(&self) -> Traits;

    /// Sends a frame out. Refused frames may be offered again or dropped, as the caller pleases.
    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError>;

    /// Puts the next frame that came in into `frame`, replacing what was there; `false` when there is none.
    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError>;

    /// Whether no frame will ever come in again.
    fn is_finished(&self) -> bool {
        !self.traits().gives
    }

    /// Brings what was sent to where it goes; called now and then, and at the end.
    fn flush(&mut self) -> Result<(), UplinkError> {
        Ok(())
    }

    /// A descriptor that becomes readable when frames come in, for a NIC that sleeps; `None`: look without.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
