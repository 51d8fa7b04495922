//! A member of a group as one end of what a socket of UDP sends it: all that makes it another one than its neighbours, in the place of an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

use beeline_tcp::{OtherSocket, Tuple};

/// A socket of UDP that is a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupMember {
    /// The group, and the port of the socket.
    pub group: SocketAddrV4,
    /// The number of the device by which it has joined.
    pub device: u32,
    /// Of the socket (`SO_COOKIE`).
    pub cookie: u64,
}

impl GroupMember {
    /// The group, the device and the cookie where an address of IPv6 would be: it begins as no address that a socket has, since a group does.
    pub(crate) fn to_address(self) -> SocketAddr {
        let bits = u128::from(self.group.ip().to_bits()) << 96
            | u128::from(self.device) << 64
            | u128::from(self.cookie);
        SocketAddr::new(Ipv6Addr::from_bits(bits).into(), self.group.port())
    }

    pub(crate) fn of_address(address: SocketAddr) -> Option<Self> {
        let IpAddr::V6(ip) = address.ip() else { return None };
        let bits = ip.to_bits();
        let group = Ipv4Addr::from_bits((bits >> 96) as u32);
        let group = SocketAddrV4::new(group, address.port());
        Some(GroupMember { group, device: (bits >> 64) as u32, cookie: bits as u64 })
    }
}

/// The socket at the first end by the kernel's word: the member, if there is one that has the port, or the sender.
pub(crate) fn socket_at(namespace_cookie: u64, ends: Tuple) -> Option<OtherSocket> {
    if let Some(member) = GroupMember::of_address(ends.local) {
        let all = beeline_tcp::bound_to_port(namespace_cookie, member.group.port()).ok()??;
        let found = all.into_iter().find(|bound| bound.cookie == member.cookie)?;
        return Some(OtherSocket { cookie: found.cookie, uid: found.uid, inode: found.inode });
    }
    let group = GroupMember::of_address(ends.remote)?.group;
    // One that is connected to the group is found by that.
    beeline_tcp::receiver(namespace_cookie, Tuple::new(ends.local, group.into())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnectionEnds;

    const MEMBER: GroupMember = GroupMember {
        group: SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 7), 4711),
        device: 3,
        cookie: 0xfedc_ba98_7654_3210,
    };
    const SENDER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 40_000);

    #[test]
    fn member_is_all_in_its_address_and_ends_show_the_group() {
        assert_eq!(GroupMember::of_address(MEMBER.to_address()), Some(MEMBER));
        let ends = ConnectionEnds::of_group(7, SENDER, MEMBER);
        assert_eq!((ends.local(), ends.remote()), (SENDER.into(), MEMBER.group.into()));
        assert_eq!(ends.mirrored().local(), MEMBER.group.into());
        assert!(!ends.is_unix() && !ends.is_connection());
    }

    #[test]
    fn members_of_other_groups_devices_and_sockets_are_other_ends() {
        let ends = |member| ConnectionEnds::of_group(7, SENDER, member);
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 8), 4711);
        let others = [
            GroupMember { group, ..MEMBER },
            GroupMember { device: 4, ..MEMBER },
            GroupMember { cookie: 1, ..MEMBER },
        ];
        for other in others {
            assert_ne!(ends(other), ends(MEMBER));
            assert_ne!(ends(other).datagrams_cookie(9), ends(MEMBER).datagrams_cookie(9));
        }
        // What the same socket has with an address is another thing.
        assert_ne!(ConnectionEnds::of_datagrams(7, SENDER.into(), MEMBER.group.into()), ends(MEMBER));
    }

    #[test]
    fn both_sockets_are_found_at_the_kernel() {
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let member = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let namespace = beeline_tcp::netns_cookie(&sender).unwrap();
        let group = SocketAddrV4::new(*MEMBER.group.ip(), member.local_addr().unwrap().port());
        let cookie = beeline_tcp::cookie(&member).unwrap();
        let SocketAddr::V4(from) = sender.local_addr().unwrap() else { panic!("of IPv4") };
        let ends = ConnectionEnds::of_group(namespace, from, GroupMember { group, device: 1, cookie });
        let found = |ends: &ConnectionEnds| ends.cookie_at_the_kernel();
        let of_sender = ends.datagrams_cookie(beeline_tcp::cookie(&sender).unwrap());
        assert_eq!(
            (found(&ends), found(&ends.mirrored())),
            (Some(of_sender), Some(ends.mirrored().datagrams_cookie(cookie)))
        );
        let nobody = GroupMember { group, device: 1, cookie: cookie + 1_000_000 };
        assert_eq!(found(&ConnectionEnds::of_group(namespace, from, nobody).mirrored()), None);
        // Also where it sends to no other address.
        sender.connect(SocketAddr::from(group)).unwrap();
        assert_eq!(found(&ends), Some(of_sender));
    }
}
