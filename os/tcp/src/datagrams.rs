//! Which socket of UDP a datagram comes to within this host, from which address, and which options change neither.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use beeline_tcp_sys::Descriptor;
use libc::{IPPROTO_IP, IPPROTO_IPV6, SOL_SOCKET};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::ends::{NoOtherSocket, OtherSocket, netns_cookie};
use crate::find::is_supported;
use crate::sock_diag::Question;
use crate::tuple::Tuple;

/// Any port: nothing is sent there.
const SOME_PORT: u16 = 9;

/// Whether the kernel carries the socket's datagrams by UDP and nothing else.
pub fn is_udp(socket: impl AsFd) -> bool {
    let socket = socket.as_fd();
    sockopt::socket_type(socket) == Ok(SocketType::DGRAM)
        && sockopt::socket_protocol(socket) == Ok(Some(ipproto::UDP))
}

/// The socket to which the kernel gives a datagram that comes from `tuple.remote` to `tuple.local`, in the network namespace with this cookie
/// ([`netns_cookie`]). The kernel looks as it does when it delivers one, so of several on one port it is the one that it would choose now.
///
/// # Errors
/// [`NoOtherSocket`] says why it is not known: also where the address is not this host's, since datagrams to it leave the host whatever is bound here.
pub fn receiver(namespace_cookie: u64, tuple: Tuple) -> Result<OtherSocket, NoOtherSocket> {
    let question = Question::new().map_err(NoOtherSocket::System)?;
    if netns_cookie(&question).map_err(NoOtherSocket::System)? != namespace_cookie {
        return Err(NoOtherSocket::OtherNamespace);
    }
    if !is_of_this_host(tuple.local.ip()) {
        return Err(NoOtherSocket::Elsewhere);
    }
    match question.ask_for_receiver(tuple).map_err(NoOtherSocket::System)? {
        Some((found, listed)) if found.local.port() == tuple.local.port() => {
            let cookie = listed.cookie.ok_or(NoOtherSocket::Elsewhere)?;
            Ok(OtherSocket { cookie, uid: listed.uid, inode: listed.inode })
        }
        None if !is_supported() => Err(NoOtherSocket::System(Errno::OPNOTSUPP)),
        _ => Err(NoOtherSocket::Elsewhere),
    }
}

/// The address from which this host sends to another one, where a socket has none of its own. By a socket that sends nothing.
///
/// # Errors
/// Nothing leads there, it is a broadcast address, or the process is out of descriptors.
pub fn source_towards(remote: IpAddr) -> Result<IpAddr, Errno> {
    let family = if remote.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let socket = Descriptor::from(socket);
    rustix::net::connect(&socket, &SocketAddr::new(remote, SOME_PORT))?;
    let local = SocketAddr::try_from(rustix::net::getsockname(&socket)?).map_err(|_| Errno::AFNOSUPPORT)?;
    Ok(local.ip())
}

/// Whether datagrams to an address stay on this host and come to one socket. An address of this host is its own best source; some are not (a second one of a
/// device), and are taken for another host's.
pub fn is_of_this_host(address: IpAddr) -> bool {
    let is_one = match address {
        IpAddr::V4(address) => !address.is_multicast() && address != Ipv4Addr::UNSPECIFIED,
        IpAddr::V6(address) => !address.is_multicast() && address != Ipv6Addr::UNSPECIFIED,
    };
    // Broadcasts are refused to a socket that has not asked for them.
    is_one && source_towards(address).is_ok_and(|source| source == address || address.is_loopback())
}

/// Whether datagrams to an address may come to a socket of this host: it is one of the host's, of everybody or of a group. The kernel lets a socket have no
/// other address; where it lets a socket have any (`ip_nonlocal_bind`), or does not say, this is true of all.
pub fn may_come_to_this_host(address: IpAddr) -> bool {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let bound =
        socket.and_then(|socket| rustix::net::bind(Descriptor::from(socket), &SocketAddr::new(address, 0)));
    bound != Err(Errno::ADDRNOTAVAIL)
}

/// Whether a program that sets this option on a socket of UDP asks for nothing that a path beside the kernel's could not give. Others than those of TCP
/// ([`crate::is_neutral`]): one that lets sockets share a port changes whose a datagram is.
///
/// | options | why they are neutral |
/// |---|---|
/// | `SO_SNDBUF*`, `SO_RCVBUF*` | room of the kernel's path, to which a window adds its own |
/// | `SO_RCVTIMEO`, `SO_SNDTIMEO` | how long calls wait; whoever waits in their place asks the socket for it |
/// | `SO_PRIORITY`, `IP_TOS`, `IPV6_TCLASS`, `IP_TTL`, `IPV6_UNICAST_HOPS` | fields of packets that do not leave the host |
/// | `SO_BROADCAST`, `IP_MULTICAST_TTL`, `_LOOP`, `_IF` and those of IPv6 | of datagrams that the kernel carries |
/// | `SO_BUSY_POLL`, `SO_PREFER_BUSY_POLL`, `SO_BUSY_POLL_BUDGET`, `SO_INCOMING_CPU` | how the kernel looks for packets, and where |
/// | `SO_LINGER`, `SO_KEEPALIVE`, `IPV6_V6ONLY` | nothing of what a datagram is; the last how the socket is bound |
pub fn is_neutral_for_datagrams(level: i32, name: i32) -> bool {
    match level {
        SOL_SOCKET => matches!(
            name,
            libc::SO_SNDBUF
                | libc::SO_SNDBUFFORCE
                | libc::SO_RCVBUF
                | libc::SO_RCVBUFFORCE
                | libc::SO_RCVTIMEO
                | libc::SO_SNDTIMEO
                | libc::SO_PRIORITY
                | libc::SO_BROADCAST
                | libc::SO_BUSY_POLL
                | libc::SO_PREFER_BUSY_POLL
                | libc::SO_BUSY_POLL_BUDGET
                | libc::SO_INCOMING_CPU
                | libc::SO_LINGER
                | libc::SO_KEEPALIVE
        ),
        IPPROTO_IP => matches!(
            name,
            libc::IP_TOS
                | libc::IP_TTL
                | libc::IP_MULTICAST_TTL
                | libc::IP_MULTICAST_LOOP
                | libc::IP_MULTICAST_IF
        ),
        IPPROTO_IPV6 => matches!(
            name,
            libc::IPV6_V6ONLY
                | libc::IPV6_TCLASS
                | libc::IPV6_UNICAST_HOPS
                | libc::IPV6_MULTICAST_HOPS
                | libc::IPV6_MULTICAST_LOOP
                | libc::IPV6_MULTICAST_IF
        ),
        _ => false,
    }
}
