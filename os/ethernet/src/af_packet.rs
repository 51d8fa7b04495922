//! The up-link through an AF_PACKET socket: frames of one interface, a system call each.
//!
//! For machines without AF_XDP. The kernel copies every frame it receives to the socket and goes on with its own, so
//! that nothing is taken from it; a frame of an EtherType that nobody else knows ends there. What is sent passes no
//! queueing discipline. Tags of virtual networks (802.1Q) are taken off by the kernel and not put back here: use
//! AF_XDP, or an interface of that network, where they matter.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use beeline_ethernet_sys::{IntOption, bind, make_promiscuous, set};
use beeline_spec::formats::MAX_FRAME_BYTES;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use crate::net_interface::NetInterface;
use crate::{Accept, Traits, Uplink, UplinkError};

const NEEDS_RAW: &str =
    "it needs CAP_NET_RAW: run as root, or once `sudo setcap cap_net_raw+ep` on the program";
const DOWN: &str = "the interface is down: `ip link set dev NAME up`";
const OTHER: &str = "see `ip link` and the kernel log";

/// The interface and the frames that a socket receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfPacketConfig {
    pub interface: String,
    /// Receive frames of this EtherType only; every frame when it is `None`.
    pub ether_type: Option<u16>,
    /// Receive frames to other stations too, for a switch behind this up-link.
    pub is_promiscuous: bool,
}

/// A raw AF_PACKET socket on one interface.
pub struct AfPacket {
    name: String,
    interface: NetInterface,
    socket: OwnedFd,
    too_long: u64,
}

impl AfPacket {
    /// Opens a socket on an interface of this thread's network namespace.
    ///
    /// # Errors
    /// There is no such interface, or the process lacks CAP_NET_RAW.
    pub fn open(config: &AfPacketConfig) -> Result<Self, UplinkError> {
        let interface = NetInterface::find(&config.interface)?;
        let failed = |step| move |error| refused(&config.interface, step, error);
        let socket = make(&config.interface)?;
        if config.is_promiscuous {
            make_promiscuous(&socket, interface.index).map_err(failed("receive frames to any station"))?;
        }
        bind(&socket, interface.index, config.ether_type).map_err(failed("bind it to the interface"))?;
        Ok(AfPacket { name: format!("af-packet {}", interface.name), interface, socket, too_long: 0 })
    }

    /// Whether this process could open such a socket on some interface. Touches none.
    ///
    /// # Errors
    /// The process lacks CAP_NET_RAW, or the kernel has no AF_PACKET.
    pub fn probe() -> Result<(), UplinkError> {
        make("any interface").map(drop)
    }

    /// The station address of the interface.
    pub fn station_address(&self) -> [u8; 6] {
        self.interface.station
    }

    /// Frames that were longer than the interface's, and lost.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    #[cold]
    fn failed(&self, step: &'static str, error: Errno) -> UplinkError {
        let (name, interface) = (self.name.clone(), self.interface.name.clone());
        UplinkError::Socket { name, interface, step, error: error.into() }
    }
}

/// A socket that receives nothing yet: with no protocol, a frame of another interface never gets in before it is bound.
fn make(interface: &str) -> Result<OwnedFd, UplinkError> {
    let failed = |step| move |error| refused(interface, step, error);
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(failed("make it"))?;
    set(&socket, IntOption::PacketIgnoreOutgoing, 1).map_err(failed("leave out frames sent here"))?;
    set(&socket, IntOption::PacketQdiscBypass, 1).map_err(failed("pass by queueing disciplines"))?;
    Ok(socket)
}

fn refused(interface: &str, step: &'static str, error: Errno) -> UplinkError {
    UplinkError::SocketOpen {
        socket: format!("AF_PACKET socket on {interface}"),
        step,
        remedy: remedy(error).replace("NAME", interface),
        error: error.into(),
    }
}

fn remedy(error: Errno) -> &'static str {
    match error {
        Errno::PERM | Errno::ACCESS => NEEDS_RAW,
        Errno::NETDOWN => DOWN,
        _ => OTHER,
    }
}

impl Uplink for AfPacket {
    fn name(&self) -> &str {
        &self.name
    }

    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: false, gives: true, waits: false, learns: true }
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        match send(&self.socket, frame, SendFlags::DONTWAIT) {
            Ok(_) => Ok(Accept::Taken),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(Accept::Refused),
            Err(Errno::MSGSIZE) => {
                self.too_long += 1;
                Ok(Accept::Taken)
            }
            // Shorter than a header, or the interface is down: the wire dropped it.
            Err(Errno::INVAL | Errno::NETDOWN) => Ok(Accept::Taken),
            Err(error) => Err(self.failed("send", error)),
        }
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        frame.resize(MAX_FRAME_BYTES, 0);
        loop {
            return match recv(&self.socket, &mut frame[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                // Longer than any frame of ours: the kernel joined segments, which no wire of ours carries.
                Ok((_, bytes)) if bytes > MAX_FRAME_BYTES => {
                    self.too_long += 1;
                    continue;
                }
                Ok((_, bytes)) => {
                    frame.truncate(bytes);
                    Ok(bytes > 0)
                }
                Err(Errno::AGAIN | Errno::INTR) => Ok(false),
                // The interface went down, which is said once: nothing comes in until it is up again.
                Err(Errno::NETDOWN) => Ok(false),
                Err(error) => Err(self.failed("receive", error)),
            };
        }
    }

    fn longest_frame_bytes(&self) -> usize {
        self.interface.longest_frame_bytes.min(MAX_FRAME_BYTES)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_capability() {
        assert!(remedy(Errno::PERM).contains("CAP_NET_RAW"));
        assert!(remedy(Errno::NETDOWN).contains("ip link set"));
    }

    /// Where the kernel lets us, a frame crosses `lo`; where it does not, the error says why. Both are checked.
    #[test]
    fn frame_crosses_the_loopback_or_error_says_what_is_missing() {
        let config =
            AfPacketConfig { interface: "lo".into(), ether_type: Some(0x88b6), is_promiscuous: false };
        let mut uplink = match AfPacket::open(&config) {
            Ok(uplink) => uplink,
            Err(error) => {
                println!("no AF_PACKET here: {error}");
                assert!(error.to_string().contains("AF_PACKET socket on lo"), "{error}");
                return;
            }
        };
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0xb6]);
        frame.resize(60, 7);
        let mut found = Vec::new();
        let tries = 1_000_000;
        assert_eq!(uplink.send(&frame).unwrap(), Accept::Taken);
        let came = (0..tries).any(|_| uplink.poll(&mut found).unwrap() && found == frame);
        let up = std::fs::read_to_string("/sys/class/net/lo/operstate").unwrap_or_default();
        assert!(came || up.trim() == "down", "the frame did not come back on lo");
        assert!(!uplink.poll(&mut found).unwrap(), "once, and not as sent");
        assert!(uplink.descriptor().is_some() && uplink.station_address() == [0; 6]);
    }
}
