//! Up-links: what is on the far side of the NIC's wire.
//!
//! An up-link takes frames that the switch of `nic/process` sends out and gives frames that come in: back where they
//! came from ([`Loopback`]), to and from capture files ([`PcapIn`], [`PcapOut`]), to the kernel's network ([`Tap`]), to
//! an interface past the kernel ([`AfXdp`], and [`AfPacket`] where there is none).
//! Everything here is non-blocking and runs in the NIC's loop, so a frame costs what the operating system charges for
//! it; none of it is on the path between two ports.
//!
//! It knows no port, queue or register. Frames are Ethernet without FCS. They come from and go to `nic/process`
//! (`switch.rs`). kPIO+WC §IV uses the same trick: two interfaces looped back, so that nothing but the I/O path shows.
#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;

use beeline_spec::formats::MAX_FRAME_BYTES;

pub use beeline_contract_device::Accept;

#[cfg(target_os = "linux")]
mod af_packet;
#[cfg(target_os = "linux")]
mod af_xdp;
mod error;
mod loopback;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod net_interface;
mod pcap_in;
mod pcap_out;
mod records;
#[cfg(target_os = "linux")]
mod redirect;
#[cfg(target_os = "linux")]
mod tap;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub use af_packet::{AfPacket, AfPacketConfig};
#[cfg(target_os = "linux")]
pub use af_xdp::{AfXdp, AfXdpConfig, AfXdpStatistics, BusyPoll, XdpAttach, XdpCopy};
#[cfg(target_os = "linux")]
pub use beeline_mmio::XskSizes;
pub use error::UplinkError;
pub use loopback::Loopback;
#[cfg(target_os = "linux")]
pub use namespace::in_network_namespace;
pub use pcap_in::PcapIn;
pub use pcap_out::PcapOut;
#[cfg(target_os = "linux")]
pub use tap::Tap;
#[cfg(target_os = "linux")]
pub use tun::{Tun, TunConfig};
#[cfg(target_os = "linux")]
pub use wire::{BadWire, WireConfig, WireKind};

/// The type of Beeline's own frames: local experimental use (IEEE 802, 88-B5).
pub const ETHER_TYPE: u16 = 0x88b5;

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

/// Number of frames of a burst that an up-link took, from the first on. The caller still has the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "frames that were not taken are lost unless they are offered again"]
pub struct Taken(pub usize);

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

    /// Sends frames in order until one is refused.
    ///
    /// Up-links that have to tell the kernel do so once for all of them.
    fn send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, UplinkError> {
        for (index, frame) in frames.iter().enumerate() {
            if self.send(frame)? == Accept::Refused {
                return Ok(Taken(index));
            }
        }
        Ok(Taken(frames.len()))
    }

    /// Shows the next frame that came in to `look`; `false` when there is none, and `look` is not called.
    ///
    /// The frame is seen where it lies when the up-link can do so, and else in `scratch`, whose contents mean nothing
    /// before and after.
    fn poll_frame(
        &mut self,
        scratch: &mut Vec<u8>,
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, UplinkError> {
        let is_there = self.poll(scratch)?;
        if is_there {
            look(scratch);
        }
        Ok(is_there)
    }

    /// How many frames are known to be sent, since the up-link was opened; `None` where nothing says so.
    fn completed(&mut self) -> Result<Option<u64>, UplinkError> {
        Ok(None)
    }

    /// Bytes of the longest frame that can be sent; longer ones are lost. Never changes.
    fn longest_frame_bytes(&self) -> usize {
        MAX_FRAME_BYTES
    }

    /// Whether a look for frames that finds none costs a system call, so that it is worth looking more rarely.
    fn looks_by_system_call(&self) -> bool {
        self.descriptor().is_some()
    }

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
