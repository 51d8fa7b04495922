//! A network device of the kernel's whose packets of IP a program carries: a TUN interface.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::tap::{EINVAL, EIO, is_interface_name, remedy};
use crate::{Accept, UplinkError};

const NEEDS_RIGHT: &str =
    "it needs CAP_NET_ADMIN: run it as root, or once `sudo setcap cap_net_admin+ep` on the program";

/// What a TUN interface is made with.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Its name, 1 to 15 bytes.
    pub interface: String,
    /// Bytes of the longest packet.
    pub mtu: u16,
    /// Its address, and the bits of the network's prefix.
    pub ipv4: Option<(Ipv4Addr, u8)>,
    pub ipv6: Option<(Ipv6Addr, u8)>,
}

/// A TUN interface, which the kernel routes packets to. It vanishes when this is dropped, unless it was made persistent with `ip tuntap add`.
///
/// Every packet costs a system call. All threads may use it.
pub struct Tun {
    interface: String,
    device: SyncDevice,
}

impl Tun {
    /// Opens, or makes, the interface, gives it its addresses, and sets it up.
    ///
    /// # Errors
    /// The kernel has no TUN, does not let this user have one, or another program has the name.
    pub fn open(config: &TunConfig) -> Result<Self, UplinkError> {
        let failed = |error: io::Error| {
            let remedy = match error.kind() {
                // With one that was made for a user its addresses would not be, nor its MTU.
                io::ErrorKind::PermissionDenied => NEEDS_RIGHT,
                _ => remedy(&error),
            };
            UplinkError::TunOpen { name: config.interface.clone(), error, remedy }
        };
        if !is_interface_name(&config.interface) {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        }
        let mut builder = DeviceBuilder::new()
            .name(config.interface.as_str())
            .layer(Layer::L3)
            .mtu(config.mtu)
            .enable(false);
        if let Some((address, prefix)) = config.ipv4 {
            builder = builder.ipv4(address, prefix, None);
        }
        if let Some((address, prefix)) = config.ipv6 {
            builder = builder.ipv6(address, prefix);
        }
        let device = builder.build_sync().map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        say_nothing_unasked(config);
        device.enabled(true).map_err(failed)?;
        Ok(Tun { interface: config.interface.clone(), device })
    }

    /// The name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The next packet that the kernel has for it, in `packet`; how many bytes it has, 0 where there is none.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&self, packet: &mut [u8]) -> Result<usize, UplinkError> {
        match self.device.recv(packet) {
            Ok(bytes) => Ok(bytes),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                // The interface is down: nothing comes until somebody sets it up again.
                _ if error.raw_os_error() == Some(EIO) => Ok(0),
                _ => Err(self.failed(error)),
            },
        }
    }

    /// Gives the kernel a packet, as if it had come by the interface. What the kernel does not take for one, or has no memory for, is lost, and counted there.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn send(&self, packet: &[u8]) -> Result<Accept, UplinkError> {
        match self.device.send(packet) {
            Ok(_) => Ok(Accept::Taken),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Accept::Refused),
                _ if matches!(error.raw_os_error(), Some(EINVAL | EIO | ENOBUFS | ENOMEM)) => {
                    Ok(Accept::Refused)
                }
                _ => Err(self.failed(error)),
            },
        }
    }

    /// Waits until the kernel has a packet, but no longer than `timeout`.
    pub fn wait(&self, timeout: Duration) {
        let mut readable = [PollFd::new(&self.device, PollFlags::IN)];
        let timeout =
            Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
        // A signal ends the wait sooner.
        let _ = poll(&mut readable, Some(&timeout));
        // An interface that somebody has taken down is in error at once and for as long as it is down.
        if readable[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn failed(&self, error: io::Error) -> UplinkError {
        UplinkError::Tun { name: self.interface.clone(), error }
    }
}

/// Has the kernel make no address of its own for the interface, nor ask for routers from it: nobody of its kind is there.
fn say_nothing_unasked(config: &TunConfig) {
    // The address stays, too, when somebody takes the interface down and up.
    let keys: &[&str] =
        if config.ipv6.is_some() { &["addr_gen_mode", "keep_addr_on_down"] } else { &["disable_ipv6"] };
    for key in keys {
        let path = format!("/proc/sys/net/ipv6/conf/{}/{key}", config.interface);
        // Without it a few packets are sent to nobody.
        if let Err(error) = std::fs::write(&path, "1") {
            tracing::debug!(%error, path, "the kernel looks for routers by a TUN interface");
        }
    }
}

const ENOMEM: i32 = 12;
const ENOBUFS: i32 = 105;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_names_are_refused_before_a_system_call() {
        for name in ["", "sixteen-bytes-xx", "a/b", "a b", ".", ".."] {
            let config = TunConfig { interface: name.to_owned(), mtu: 1500, ipv4: None, ipv6: None };
            let error = Tun::open(&config).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("1 to 15 bytes"), "{name:?}: {error}");
        }
    }
}
