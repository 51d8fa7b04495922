//! The up-link into the kernel's network: a TAP interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use beeline_spec::formats::MAX_FRAME_BYTES;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::{Accept, Traits, Uplink, UplinkError};

const NEEDS_ROOT: &str = "it needs CAP_NET_ADMIN: run it as root, or once `sudo setcap cap_net_admin+ep` on the \
                          program, or make the interface for your user with `sudo ip tuntap add NAME mode tap user $USER`";
const NO_DEVICE: &str =
    "load the kernel module with `sudo modprobe tun`, or give the container `--device /dev/net/tun`";
const IN_USE: &str = "another program holds the interface; choose another name";
const BAD_NAME: &str = "interface names have 1 to 15 bytes, no `/` and no space";
const OTHER: &str = "see `ip link` and the kernel log";

/// A TAP interface: frames sent to it appear in the kernel as received there, and the other way round.
///
/// Every frame costs a system call. The interface vanishes when this is dropped, unless it was made persistent with
/// `ip tuntap add`.
pub struct Tap {
    name: String,
    interface: String,
    device: SyncDevice,
}

impl Tap {
    /// Opens, or makes, the TAP interface `interface`, and sets it up.
    pub fn open(interface: &str) -> Result<Self, UplinkError> {
        let failed = |error: io::Error| {
            let remedy = remedy(&error);
            UplinkError::TapOpen { name: interface.to_owned(), error, remedy }
        };
        if !is_interface_name(interface) {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        }
        let builder = DeviceBuilder::new().name(interface).layer(Layer::L2).enable(true);
        let device = builder.build_sync().map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        Ok(Tap { name: format!("tap {interface}"), interface: interface.to_owned(), device })
    }

    fn failed(&self, error: io::Error) -> UplinkError {
        UplinkError::Tap { name: self.interface.clone(), error }
    }
}

/// Whether an interface may have the name.
pub(crate) fn is_interface_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 15 && !name.contains(['/', ' ', '\0']) && name != "." && name != ".."
}

/// What to do where the kernel gives no interface of this kind.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => NEEDS_ROOT,
        io::ErrorKind::NotFound => NO_DEVICE,
        io::ErrorKind::ResourceBusy => IN_USE,
        io::ErrorKind::InvalidInput => BAD_NAME,
        _ => OTHER,
    }
}

impl Uplink for Tap {
    fn name(&self) -> &str {
        &self.name
    }

    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: false, gives: true, waits: false, learns: true }
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        match self.device.send(frame) {
            Ok(_) => Ok(Accept::Taken),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Accept::Refused),
                // The kernel refuses single frames (too long for the MTU, interface down): the wire dropped them.
                _ if matches!(error.raw_os_error(), Some(EINVAL | EIO | EMSGSIZE)) => Ok(Accept::Taken),
                _ => Err(self.failed(error)),
            },
        }
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        frame.resize(MAX_FRAME_BYTES, 0);
        match self.device.recv(frame) {
            Ok(bytes) => {
                frame.truncate(bytes);
                Ok(bytes > 0)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                // The interface is down: nothing comes in until somebody sets it up again.
                _ if error.raw_os_error() == Some(EIO) => Ok(false),
                _ => Err(self.failed(error)),
            },
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

pub(crate) const EIO: i32 = 5;
pub(crate) const EINVAL: i32 = 22;
const EMSGSIZE: i32 = 90;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_device_and_the_remedy() {
        for (kind, word) in [
            (io::ErrorKind::PermissionDenied, "CAP_NET_ADMIN"),
            (io::ErrorKind::NotFound, "modprobe tun"),
            (io::ErrorKind::ResourceBusy, "another name"),
        ] {
            let error: io::Error = kind.into();
            let remedy = remedy(&error);
            let text = UplinkError::TapOpen { name: "bee0".into(), error, remedy }.to_string();
            assert!(text.contains("/dev/net/tun") && text.contains("bee0") && text.contains(word), "{text}");
        }
    }

    #[test]
    fn impossible_interface_names_are_refused_before_a_system_call() {
        for name in ["", "sixteen-bytes-xx", "a/b", "a b"] {
            let error = Tap::open(name).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("1 to 15 bytes"), "{name:?}: {error}");
        }
    }

    /// Where the kernel lets us, a frame crosses; where it does not, the error says why. Both are checked.
    #[test]
    fn a_tap_opens_or_says_what_is_missing() {
        let interface = format!("beet{}", std::process::id() % 100_000);
        let mut tap = match Tap::open(&interface) {
            Ok(tap) => tap,
            Err(error) => {
                println!("no TAP here: {error}");
                assert!(error.to_string().contains("/dev/net/tun"));
                return;
            }
        };
        let mut frame = vec![0xff; 6];
        frame.extend_from_slice(&[2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
        frame.resize(60, 7);
        assert_eq!(tap.send(&frame).unwrap(), Accept::Taken);
        let counter = format!("/sys/class/net/{interface}/statistics/rx_packets");
        let received = std::fs::read_to_string(counter).unwrap();
        assert_eq!(received.trim(), "1", "the kernel counts the frame as received on {interface}");
        // Whatever the kernel itself has to say (router solicitations) is a whole Ethernet frame.
        let mut incoming = Vec::new();
        while tap.poll(&mut incoming).unwrap() {
            assert!(incoming.len() >= 14);
        }
        assert!(tap.descriptor().is_some());
    }
}
