//! A network interface of this thread's namespace: what up-links on sockets have to know of it.

use std::os::fd::OwnedFd;

use beeline_ethernet_sys as sys;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::UplinkError;

/// Bytes of an Ethernet header.
const HEADER_BYTES: usize = 14;

#[derive(Clone, Debug)]
pub(crate) struct NetInterface {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Bytes of the longest frame, header included.
    pub(crate) longest_frame_bytes: usize,
    pub(crate) station: [u8; 6],
    /// The name of its driver; `unknown` when it does not say.
    pub(crate) driver: String,
}

impl NetInterface {
    /// Asks the kernel.
    pub(crate) fn find(name: &str) -> Result<Self, UplinkError> {
        let missing = |error: Errno| UplinkError::NoInterface { name: name.to_owned(), error: error.into() };
        if name.is_empty() || name.len() > 15 || name.contains(['/', ' ', '\0']) {
            return Err(missing(Errno::NODEV));
        }
        let asked: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .map_err(missing)?;
        let mtu = sys::mtu(&asked, name).map_err(missing)?;
        Ok(NetInterface {
            name: name.to_owned(),
            index: name_to_index(&asked, name).map_err(missing)?,
            longest_frame_bytes: mtu as usize + HEADER_BYTES,
            station: sys::station_address(&asked, name).map_err(missing)?,
            driver: sys::driver(&asked, name).unwrap_or_else(|_| "unknown".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said_by_name() {
        for name in ["", "no-such-one", "a/b", "sixteen-bytes-xx"] {
            let error = NetInterface::find(name).unwrap_err().to_string();
            assert!(
                error.contains(&format!("no interface `{name}`")) && error.contains("ip link"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_loop_back_interface_is_found() {
        let found = NetInterface::find("lo").unwrap();
        assert_eq!((found.name.as_str(), found.station, found.driver.as_str()), ("lo", [0; 6], "unknown"));
        assert!(found.index > 0 && found.longest_frame_bytes > 1280);
    }
}
