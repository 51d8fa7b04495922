//! AF_PACKET sockets: which interface, which frames.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::options::{check, set_bytes};

/// Binds an AF_PACKET socket to an interface. From here on it receives frames of `ether_type`; of every type when it is
/// `None`.
///
/// # Errors
/// What the kernel says: `NODEV` without such an interface, `NETDOWN` when it is down.
pub fn bind(socket: impl AsFd, interface_index: u32, ether_type: Option<u16>) -> Result<(), Errno> {
    let protocol = ether_type.unwrap_or(libc::ETH_P_ALL as u16);
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: i32::try_from(interface_index).map_err(|_| Errno::NODEV)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let bytes = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call and the kernel reads `bytes` bytes of `address`, which lives
    // through it.
    check(unsafe { libc::bind(fd, (&raw const address).cast(), bytes) })
}

/// Makes an interface receive frames to any station, as long as this AF_PACKET socket is open.
///
/// # Errors
/// What the kernel says: `NODEV` without such an interface.
pub fn make_promiscuous(socket: impl AsFd, interface_index: u32) -> Result<(), Errno> {
    let membership = libc::packet_mreq {
        mr_ifindex: i32::try_from(interface_index).map_err(|_| Errno::NODEV)?,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_bytes(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}
