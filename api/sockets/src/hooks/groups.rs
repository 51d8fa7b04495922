//! Options by which a socket of UDP joins groups, leaves them, and sends to them, where groups are of programs of this domain alone (`multicast = "host"`).

use core::ffi::{c_int, c_void};
use core::slice;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use beeline_socket_engine::Membership;
use beeline_socket_rules::Why;
use libc::socklen_t;

use crate::errno;
use crate::process::{Known, forbid, guarded};
use crate::real;

/// Of `linux/in.h`; `struct group_req` has the interface first, and the group as an address of any family behind eight bytes.
const MCAST_JOIN_GROUP: c_int = 42;
const MCAST_LEAVE_GROUP: c_int = 45;
const GROUP_REQUEST_BYTES: usize = 8 + size_of::<libc::sockaddr_storage>();

/// What an option does to groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Join(Membership),
    Leave(Ipv4Addr),
    /// What is sent to groups goes another way from now on.
    Sends,
    /// The socket may share its port, or says which groups of others it has.
    Shares,
}

/// Sets an option that has to do with groups, if that leaves the socket one that may have windows of groups; `None`: it is an option like others.
///
/// # Safety
/// As `setsockopt`.
pub unsafe fn set(
    known: Known,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> Option<c_int> {
    let bytes: &[u8] = match value.is_null() {
        true => &[],
        // SAFETY: not null, and the program says that as many bytes are there; no option that is looked at has more than a request.
        false => unsafe { slice::from_raw_parts(value.cast(), (length as usize).min(GROUP_REQUEST_BYTES)) },
    };
    let Some(change) = change_of(level, name, bytes) else {
        if (level, name) == (libc::IPPROTO_IP, libc::IP_MULTICAST_IF) {
            forbid(known.socket.as_raw_fd(), Why::Option);
        }
        return None;
    };
    if change != Change::Sends && !guarded(|| known.sockets.may_have_groups(known.socket)) {
        return None;
    }
    // SAFETY: what the program gives.
    let result = unsafe { real::setsockopt(known.socket.as_raw_fd(), level, name, value, length) };
    if result == 0 {
        errno::preserved(|| {
            guarded(|| match change {
                Change::Join(membership) => known.sockets.joined(known.socket, membership),
                Change::Leave(group) => known.sockets.left(known.socket, group),
                Change::Sends => known.sockets.sends_to_groups_otherwise(known.socket),
                Change::Shares => {}
            });
        });
    }
    Some(result)
}

fn change_of(level: c_int, name: c_int, bytes: &[u8]) -> Option<Change> {
    let address = |at: usize| -> Option<Ipv4Addr> {
        let octets: [u8; 4] = bytes.get(at..)?.first_chunk().copied()?;
        Some(octets.into())
    };
    let device =
        |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_ne_bytes(*word));
    match (level, name) {
        (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP) => {
            // `struct ip_mreq`, or `struct ip_mreqn` with a number behind it.
            Some(Change::Join(Membership { group: address(0)?, address: address(4)?, device: device(8) }))
        }
        (libc::IPPROTO_IP, libc::IP_DROP_MEMBERSHIP) => Some(Change::Leave(address(0)?)),
        (libc::IPPROTO_IP, MCAST_JOIN_GROUP | MCAST_LEAVE_GROUP) => {
            let family =
                bytes.get(8..)?.first_chunk().map(|family| libc::sa_family_t::from_ne_bytes(*family))?;
            let group = address(12).filter(|_| c_int::from(family) == libc::AF_INET)?;
            let membership = Membership { group, address: Ipv4Addr::UNSPECIFIED, device: device(0) };
            Some(if name == MCAST_JOIN_GROUP { Change::Join(membership) } else { Change::Leave(group) })
        }
        (libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP) => Some(Change::Sends),
        // An interface that is named by its number alone cannot be asked for.
        (libc::IPPROTO_IP, libc::IP_MULTICAST_IF) if device(8) == 0 => Some(Change::Sends),
        _ => beeline_tcp::is_neutral_for_groups(level, name).then_some(Change::Shares),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 1, 2);
    const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn of_ip(name: c_int, bytes: &[u8]) -> Option<Change> {
        change_of(libc::IPPROTO_IP, name, bytes)
    }

    #[test]
    fn membership_is_read_from_each_form_of_it() {
        let short = [GROUP.octets(), LOOPBACK.octets()].concat();
        let long = [&short[..], &7_u32.to_ne_bytes()].concat();
        let join = |address, device| Some(Change::Join(Membership { group: GROUP, address, device }));
        assert_eq!(of_ip(libc::IP_ADD_MEMBERSHIP, &short), join(LOOPBACK, 0));
        assert_eq!(of_ip(libc::IP_ADD_MEMBERSHIP, &long), join(LOOPBACK, 7));
        assert_eq!(of_ip(libc::IP_DROP_MEMBERSHIP, &short), Some(Change::Leave(GROUP)));
        let mut request = vec![0; GROUP_REQUEST_BYTES];
        request[..4].copy_from_slice(&3_u32.to_ne_bytes());
        request[8..10].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        request[12..16].copy_from_slice(&GROUP.octets());
        assert_eq!(of_ip(MCAST_JOIN_GROUP, &request), join(Ipv4Addr::UNSPECIFIED, 3));
        assert_eq!(of_ip(MCAST_LEAVE_GROUP, &request), Some(Change::Leave(GROUP)));
        request[8..10].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        assert_eq!(of_ip(MCAST_JOIN_GROUP, &request), None, "of IPv6");
    }

    #[test]
    fn value_that_is_cut_and_interface_without_an_address_are_no_change_of_ours() {
        let long = [GROUP.octets(), LOOPBACK.octets(), 7_u32.to_ne_bytes()].concat();
        for bytes in 0..8 {
            assert_eq!(of_ip(libc::IP_ADD_MEMBERSHIP, &long[..bytes]), None, "{bytes} bytes");
        }
        assert_eq!(of_ip(libc::IP_MULTICAST_IF, &long), None);
        assert_eq!(of_ip(libc::IP_MULTICAST_IF, &long[..8]), Some(Change::Sends));
        assert_eq!(of_ip(libc::IP_ADD_SOURCE_MEMBERSHIP, &long), None);
        assert_eq!(change_of(libc::SOL_SOCKET, libc::SO_REUSEADDR, &[1, 0, 0, 0]), Some(Change::Shares));
        assert_eq!(change_of(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &long), None);
    }
}
