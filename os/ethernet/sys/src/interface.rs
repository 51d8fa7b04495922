//! What the kernel knows about an interface, in the network namespace of the socket that asks.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::options::check;

/// `ETHTOOL_GDRVINFO` of Linux's `ethtool.h`.
const ETHTOOL_GDRVINFO: u32 = 3;

/// `struct ethtool_drvinfo`: as the kernel lays it out, so far as it is looked at.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

const _: () = assert!(size_of::<DriverInfo>() == 196 && std::mem::offset_of!(DriverInfo, driver) == 4);

/// The most bytes of payload of a frame.
///
/// # Errors
/// `NODEV` without such an interface.
pub fn mtu(socket: impl AsFd, interface: &str) -> Result<u32, Errno> {
    let mut request = request(interface)?;
    // SAFETY: SIOCGIFMTU reads the name and writes the integer of the request.
    unsafe { ask(socket, libc::SIOCGIFMTU, &mut request)? };
    // SAFETY: the call succeeded, so that the integer is what the kernel left in the union.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(u32::try_from(mtu).unwrap_or(0))
}

/// The station address.
///
/// # Errors
/// `NODEV` without such an interface.
pub fn station_address(socket: impl AsFd, interface: &str) -> Result<[u8; 6], Errno> {
    let mut request = request(interface)?;
    // SAFETY: SIOCGIFHWADDR reads the name and writes the address of the request.
    unsafe { ask(socket, libc::SIOCGIFHWADDR, &mut request)? };
    // SAFETY: the call succeeded, so that an address is what the kernel left in the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    let mut station = [0; 6];
    for (to, from) in station.iter_mut().zip(address) {
        *to = from as u8;
    }
    Ok(station)
}

/// The name of the driver.
///
/// # Errors
/// `NODEV` without such an interface, `OPNOTSUPP` when its driver does not say.
pub fn driver(socket: impl AsFd, interface: &str) -> Result<String, Errno> {
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: SIOCETHTOOL reads the name and the pointer; with this command it writes the 196 bytes of
    // `struct ethtool_drvinfo` that the pointer leads to, which is as large as `info`, by the assertion above.
    unsafe { ask(socket, libc::SIOCETHTOOL, &mut request)? };
    let name = info.driver.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// A request about this interface.
fn request(interface: &str) -> Result<libc::ifreq, Errno> {
    let mut name = [0; libc::IFNAMSIZ];
    if interface.is_empty() || interface.len() >= name.len() || interface.contains('\0') {
        return Err(Errno::NODEV);
    }
    for (to, from) in name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the structure holds integers and pointers, for which zeros are values.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name = name;
    Ok(request)
}

/// # Safety
/// The call reads and writes the request, and what a pointer in it leads to, and nothing else.
unsafe fn ask(socket: impl AsFd, call: libc::c_ulong, request: &mut libc::ifreq) -> Result<(), Errno> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call; the rest is the caller's promise.
    check(unsafe { libc::ioctl(fd, call as _, std::ptr::from_mut(request)) })
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketType, socket};

    use super::*;

    #[test]
    fn the_loop_back_interface_is_known() {
        let udp = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        assert!(mtu(&udp, "lo").unwrap() >= 1280);
        assert_eq!(station_address(&udp, "lo").unwrap(), [0; 6]);
        assert_eq!(driver(&udp, "lo"), Err(Errno::OPNOTSUPP));
    }

    #[test]
    fn an_interface_that_is_not_there_is_not_found() {
        let udp = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        for name in ["", "no-such-one", "a-name-that-is-far-too-long", "l\0o"] {
            assert_eq!(mtu(&udp, name), Err(Errno::NODEV), "{name:?}");
            assert_eq!(station_address(&udp, name), Err(Errno::NODEV), "{name:?}");
            assert_eq!(driver(&udp, name), Err(Errno::NODEV), "{name:?}");
        }
    }
}
