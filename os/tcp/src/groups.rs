//! Groups of UDP (multicast of IPv4): which sockets have a port, by which device a datagram to a group leaves, and which options a member and a sender may set.
//!
//! All of it is asked of this thread's network namespace. What the kernel lists of a port is of one moment: it holds the lock of the port's sockets meanwhile.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use beeline_tcp_sys::Descriptor;
use libc::{IPPROTO_IP, SOL_SOCKET};
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::bytes::retry;
use crate::ends::{NoOtherSocket, netns_cookie};
use crate::find::is_supported;
use crate::sock_diag::{
    IPPROTO_UDP, NETLINK_BYTES, NLM_F_REQUEST, NLMSG_ERROR, SERIAL, answer, device_in, refusal, request,
};
use crate::tuple::Tuple;

/// `NETLINK_ROUTE` is protocol 0, which is the default.
const ROUTE: Option<Protocol> = None;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_ROOT | NLM_F_MATCH`: the whole table, not one entry.
const NLM_F_DUMP: u16 = 0x300;
const AF_INET: u8 = 2;
const RTM_GETADDR: u16 = 22;
const RTM_NEWADDR: u16 = 20;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWROUTE: u16 = 24;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
/// As much as the kernel answers at once.
const MOST_BYTES: usize = 32 << 10;

/// A socket of UDP that has a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Unspecified where it is at every address of the host.
    pub address: IpAddr,
    pub cookie: u64,
    pub uid: u32,
    pub inode: u32,
    /// Whether it is of IPv4, has no other address of its own to hear from, and takes what comes by whichever device.
    pub is_open: bool,
}

/// All sockets of UDP that have this port in the network namespace with this cookie ([`netns_cookie`]), of either family, whoever has them. `None` where there are more
/// than the kernel tells at once.
///
/// # Errors
/// [`NoOtherSocket`] says why they are not known.
pub fn bound_to_port(namespace_cookie: u64, port: u16) -> Result<Option<Vec<Bound>>, NoOtherSocket> {
    let socket = netlink(Some(SOCK_DIAG)).map_err(NoOtherSocket::System)?;
    if netns_cookie(&socket).map_err(NoOtherSocket::System)? != namespace_cookie {
        return Err(NoOtherSocket::OtherNamespace);
    }
    let mut all = Vec::new();
    for any in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6([0; 16].into())] {
        let ends = Tuple { local: SocketAddr::new(any, port), remote: SocketAddr::new(any, 0) };
        let mut question = request(IPPROTO_UDP, ends);
        question[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        let told = ask_all(&socket, &question).map_err(NoOtherSocket::System)?;
        if told.is_in_parts {
            return Ok(None);
        }
        for message in &told.messages {
            let bound = read_bound(message, port).map_err(NoOtherSocket::System)?;
            all.extend(bound);
        }
    }
    match all.is_empty() && !is_supported() {
        true => Err(NoOtherSocket::System(Errno::OPNOTSUPP)),
        false => Ok(Some(all)),
    }
}

/// The device by which what a socket without an address and an interface of its own sends to a group leaves, and from which address. A socket that joins the group and
/// names no interface joins it there.
///
/// # Errors
/// Nothing leads there, or the kernel does not say which device.
pub fn route_towards_group(group: Ipv4Addr) -> Result<(u32, Ipv4Addr), Errno> {
    let mut question = netlink_header(RTM_GETROUTE, NLM_F_REQUEST);
    // `struct rtmsg`: the family, the bits of the destination, and what is asked for is left open.
    question.extend([AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    question.extend(8_u16.to_ne_bytes());
    question.extend(RTA_DST.to_ne_bytes());
    question.extend(group.octets());
    let told = ask_all(&netlink(ROUTE)?, &with_length(question))?;
    let message = told.messages.first().ok_or(Errno::PROTO)?;
    if kind_of(message) != Some(RTM_NEWROUTE) {
        return Err(Errno::PROTO);
    }
    let attributes = attributes_of(message, NETLINK_BYTES + 12);
    let of = |wanted: u16| attributes.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value);
    let device = of(RTA_OIF).map(u32::from_ne_bytes).ok_or(Errno::NODEV)?;
    Ok((device, of(RTA_PREFSRC).map(Ipv4Addr::from).ok_or(Errno::ADDRNOTAVAIL)?))
}

/// The device that has an address of this host; `None` where none has it, or several.
///
/// # Errors
/// What the kernel says.
pub fn device_of(address: Ipv4Addr) -> Result<Option<u32>, Errno> {
    let mut question = netlink_header(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP);
    question.extend([AF_INET, 0, 0, 0, 0, 0, 0, 0]);
    let told = ask_all(&netlink(ROUTE)?, &with_length(question))?;
    let mut found = Vec::new();
    for message in told.messages.iter().filter(|message| kind_of(message) == Some(RTM_NEWADDR)) {
        let Some(device) = word_at(message, NETLINK_BYTES + 4) else { return Err(Errno::PROTO) };
        let of_device = attributes_of(message, NETLINK_BYTES + 8);
        let local =
            of_device.iter().find(|(kind, _)| *kind == IFA_LOCAL).map(|(_, value)| Ipv4Addr::from(*value));
        // The host is at every address of its loopback.
        let is_it = |local: Ipv4Addr| local == address || local.is_loopback() && address.is_loopback();
        if local.is_some_and(is_it) && !found.contains(&device) {
            found.push(device);
        }
    }
    Ok(match found[..] {
        [device] => Some(device),
        _ => None,
    })
}

/// Whether a socket of UDP on which this option is set may be a member of groups, or may send to them, beside the kernel, where all members are known and each has what is sent once;
/// beside those of [`crate::is_neutral_for_datagrams`].
///
/// | options | why |
/// |---|---|
/// | `SO_REUSEADDR`, `SO_REUSEPORT` | each of the sockets that share a port has what is sent to a group |
/// | `IP_ADD_MEMBERSHIP`, `IP_DROP_MEMBERSHIP` | what makes a member |
/// | `IP_MULTICAST_ALL` | says what a socket has of groups that others have joined; who has not joined is no member |
pub fn is_neutral_for_groups(level: i32, name: i32) -> bool {
    match level {
        SOL_SOCKET => matches!(name, libc::SO_REUSEADDR | libc::SO_REUSEPORT),
        IPPROTO_IP => {
            matches!(name, libc::IP_ADD_MEMBERSHIP | libc::IP_DROP_MEMBERSHIP | libc::IP_MULTICAST_ALL)
        }
        _ => false,
    }
}

/// What the kernel has told.
struct Told {
    messages: Vec<Vec<u8>>,
    /// Whether it was more than fits into one answer: what changed meanwhile may be missing.
    is_in_parts: bool,
}

fn netlink(protocol: Option<Protocol>) -> Result<Descriptor, Errno> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol).map(Descriptor::from)
}

fn netlink_header(kind: u16, flags: u16) -> Vec<u8> {
    let mut bytes = vec![0; NETLINK_BYTES];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[8..12].copy_from_slice(&SERIAL.to_ne_bytes());
    bytes
}

fn with_length(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u32;
    bytes[0..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// Asks, and gathers what the kernel answers until it says that this was all, or answers a question for one thing.
fn ask_all(socket: &Descriptor, question: &[u8]) -> Result<Told, Errno> {
    let is_list = question[6..8] == (NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes();
    retry(|| {
        rustix::net::sendto(socket.as_fd(), question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))
    })?;
    let mut told = Told { messages: Vec::new(), is_in_parts: false };
    let mut buffer = vec![0; MOST_BYTES];
    loop {
        let (bytes, _, from) =
            retry(|| rustix::net::recvfrom(socket.as_fd(), &mut buffer[..], RecvFlags::DONTWAIT))?;
        // Processes with privileges can send to such a socket too.
        if from.and_then(|from| SocketAddrNetlink::try_from(from).ok()).is_none_or(|from| from.pid() != 0) {
            continue;
        }
        let before = told.messages.len();
        for message in messages_in(&buffer[..bytes])? {
            match kind_of(message) {
                Some(NLMSG_DONE) => return Ok(told),
                Some(NLMSG_ERROR) => return refusal(word_at(message, NETLINK_BYTES)).map(|()| told),
                _ if word_at(message, 8) != Some(SERIAL) => return Err(Errno::PROTO),
                _ => told.messages.push(message.to_vec()),
            }
        }
        if !is_list {
            return Ok(told);
        }
        told.is_in_parts |= before > 0 && told.messages.len() > before;
    }
}

/// The messages of an answer, each with its header.
fn messages_in(mut bytes: &[u8]) -> Result<Vec<&[u8]>, Errno> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let length = word_at(bytes, 0).ok_or(Errno::PROTO)? as usize;
        if length < NETLINK_BYTES || length > bytes.len() {
            return Err(Errno::PROTO);
        }
        messages.push(&bytes[..length]);
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(messages)
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn kind_of(message: &[u8]) -> Option<u16> {
    message.get(4..)?.first_chunk().map(|kind| u16::from_ne_bytes(*kind))
}

/// Attributes of four bytes, behind the first `at` of a message.
fn attributes_of(message: &[u8], at: usize) -> Vec<(u16, [u8; 4])> {
    let mut found = Vec::new();
    let mut rest = message.get(at..).unwrap_or_default();
    while let [a, b, c, d, ..] = *rest {
        let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        if length < 4 || length > rest.len() {
            break;
        }
        if let Ok(value) = rest[4..length].try_into() {
            found.push((kind, value));
        }
        rest = &rest[length.next_multiple_of(4).min(rest.len())..];
    }
    found
}

/// A socket of a list, if it has the port.
fn read_bound(message: &[u8], port: u16) -> Result<Option<Bound>, Errno> {
    let (Some((ends, listed)), Some(device)) = (answer(message)?, device_in(message)) else {
        return Err(Errno::PROTO);
    };
    let cookie = listed.cookie.ok_or(Errno::PROTO)?;
    if ends.local.port() != port {
        return Ok(None);
    }
    let hears_all = ends.remote.ip().is_unspecified() && ends.remote.port() == 0;
    let is_open = ends.local.is_ipv4() && ends.remote.is_ipv4() && hears_all && device == 0;
    let (uid, inode) = (listed.uid, listed.inode);
    Ok(Some(Bound { address: ends.local.ip(), cookie, uid, inode, is_open }))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::cookie;

    fn shared(address: &str) -> UdpSocket {
        let address: SocketAddr = address.parse().unwrap();
        let socket = rustix::net::socket(AddressFamily::of(address), SocketType::DGRAM, None).unwrap();
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        rustix::net::bind(&socket, &address).unwrap();
        UdpSocket::from(socket)
    }

    trait OfAddress {
        fn of(address: SocketAddr) -> AddressFamily;
    }

    impl OfAddress for AddressFamily {
        fn of(address: SocketAddr) -> AddressFamily {
            if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
        }
    }

    #[test]
    fn each_socket_of_a_port_is_listed_with_what_it_hears() {
        let any = shared("0.0.0.0:0");
        let port = any.local_addr().unwrap().port();
        let of_group = shared(&format!("239.255.7.7:{port}"));
        let of_loopback = shared(&format!("127.0.0.1:{port}"));
        let connected = shared(&format!("0.0.0.0:{port}"));
        connected.connect("127.0.0.1:9").unwrap();
        let of_v6 = shared(&format!("[::]:{port}"));
        let namespace = netns_cookie(&any).unwrap();
        let listed = bound_to_port(namespace, port).unwrap().unwrap();
        assert_eq!(listed.len(), 5);
        let of = |socket: &UdpSocket| {
            let own = cookie(socket).unwrap();
            let found = listed.iter().find(|bound| bound.cookie == own).unwrap();
            assert_eq!(u64::from(found.inode), rustix::fs::fstat(socket).unwrap().st_ino);
            (found.address, found.is_open)
        };
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(of(&any), (address("0.0.0.0"), true));
        assert_eq!(of(&of_group), (address("239.255.7.7"), true));
        assert_eq!(of(&of_loopback), (address("127.0.0.1"), true));
        assert!(!of(&connected).1 && !of(&of_v6).1);
        assert_eq!(bound_to_port(namespace + 1, port), Err(NoOtherSocket::OtherNamespace));
        drop((any, of_group, of_loopback, connected, of_v6));
        assert_eq!(bound_to_port(namespace, port), Ok(Some(Vec::new())));
    }

    #[test]
    fn more_sockets_than_are_told_at_once_are_not_taken_for_all() {
        let first = shared("0.0.0.0:0");
        let port = first.local_addr().unwrap().port();
        let more: Vec<UdpSocket> = (0..400).map(|_| shared(&format!("0.0.0.0:{port}"))).collect();
        assert_eq!(bound_to_port(netns_cookie(&first).unwrap(), port), Ok(None));
        drop(more);
        let one = bound_to_port(netns_cookie(&first).unwrap(), port).unwrap().unwrap();
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn device_of_the_loopback_is_the_first_of_every_host() {
        assert_eq!(device_of(Ipv4Addr::LOCALHOST), Ok(Some(1)));
        assert_eq!(device_of(Ipv4Addr::new(127, 0, 0, 9)), Ok(Some(1)));
        // Of nobody.
        assert_eq!(device_of(Ipv4Addr::new(192, 0, 2, 77)), Ok(None));
    }

    #[test]
    fn route_to_a_group_is_by_the_device_of_its_source() {
        // A host without a network has no route there.
        match route_towards_group(Ipv4Addr::new(239, 255, 7, 7)) {
            Ok((device, source)) => assert_eq!(device_of(source), Ok(Some(device))),
            Err(errno) => assert_eq!(errno, Errno::NETUNREACH),
        }
    }

    #[test]
    fn no_answer_makes_it_panic() {
        let mut message = netlink_header(RTM_NEWADDR, 0);
        message.extend([0; 24]);
        let message = with_length(message);
        for at in 0..message.len() {
            for value in 0..=255 {
                let mut spoiled = message.clone();
                spoiled[at] = value;
                for part in messages_in(&spoiled).unwrap_or_default() {
                    let _ = (attributes_of(part, NETLINK_BYTES + 8), read_bound(part, 9));
                }
                let _ = messages_in(&spoiled[..at]);
            }
        }
    }
}
