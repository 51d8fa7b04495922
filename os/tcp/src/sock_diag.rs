//! One socket of TCP or UDP as the kernel lists it, asked for by its two addresses over netlink (`NETLINK_SOCK_DIAG`).
//!
//! The list is of this thread's network namespace. The kernel's answers are checked all the same: what does not fit the question is
//! no answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use beeline_tcp_sys::Descriptor;
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::bytes::retry;
use crate::listed::Listed;
use crate::state::State;
use crate::tuple::Tuple;

pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;
pub(crate) const NLMSG_ERROR: u16 = 2;
pub(crate) const NLM_F_REQUEST: u16 = 1;
const IPPROTO_TCP: u8 = 6;
pub(crate) const IPPROTO_UDP: u8 = 17;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Of a netlink message, behind which the answer follows.
pub(crate) const NETLINK_BYTES: usize = 16;
const REQUEST_BYTES: usize = NETLINK_BYTES + 56;
const ANSWER_BYTES: usize = NETLINK_BYTES + 72;
/// What the answer has behind what is looked at; attributes follow it.
const MAX_ANSWER_BYTES: usize = 4096;
/// Any number: one question is asked of a socket.
pub(crate) const SERIAL: u32 = 1;

/// A netlink socket of this thread's network namespace, for one question.
pub(crate) struct Question(Descriptor);

impl Question {
    pub(crate) fn new() -> Result<Question, Errno> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(SOCK_DIAG),
        )?;
        Ok(Question(socket.into()))
    }

    /// The connection with these addresses.
    pub(crate) fn ask(self, tuple: Tuple) -> Result<Option<Listed>, Errno> {
        // Where no connection has these addresses, the kernel answers with the socket that listens there.
        Ok(self.ask_raw(tuple)?.filter(|(found, _)| *found == tuple).map(|(_, listed)| listed))
    }

    /// The connection with these addresses, else the socket that listens at the first, and the addresses of what was found.
    pub(crate) fn ask_raw(self, tuple: Tuple) -> Result<Option<(Tuple, Listed)>, Errno> {
        self.put(&request(IPPROTO_TCP, tuple))
    }

    /// The socket of UDP to which the kernel gives a datagram that comes from `tuple.remote` to `tuple.local`, and its own addresses: unspecified
    /// where it has none.
    pub(crate) fn ask_for_receiver(self, tuple: Tuple) -> Result<Option<(Tuple, Listed)>, Errno> {
        // Of this protocol the kernel takes the first address for the one that the datagram comes from.
        self.put(&request(IPPROTO_UDP, tuple.mirrored()))
    }

    fn put(self, request: &[u8]) -> Result<Option<(Tuple, Listed)>, Errno> {
        self.put_to(request, answer)
    }

    /// Asks, and has the kernel's answer read.
    pub(crate) fn put_to<T>(
        &self,
        request: &[u8],
        answer: impl FnOnce(&[u8]) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let socket = self.0.as_fd();
        let kernel = SocketAddrNetlink::new(0, 0);
        retry(|| rustix::net::sendto(socket, request, SendFlags::empty(), &kernel))?;
        let mut buffer = [0; MAX_ANSWER_BYTES];
        loop {
            // The answer is there when the question has been sent: the kernel gives it meanwhile.
            let (bytes, _, from) =
                retry(|| rustix::net::recvfrom(socket, &mut buffer[..], RecvFlags::DONTWAIT))?;
            let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
            // Processes with privileges can send to such a socket too.
            if from.is_some_and(|from| from.pid() == 0) {
                return answer(&buffer[..bytes]);
            }
        }
    }
}

impl AsFd for Question {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn request(protocol: u8, tuple: Tuple) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    bytes[8..12].copy_from_slice(&SERIAL.to_ne_bytes());
    bytes[16] = if tuple.local.is_ipv4() { AF_INET } else { AF_INET6 };
    bytes[17] = protocol;
    bytes[20..24].copy_from_slice(&u32::MAX.to_ne_bytes());
    let id = &mut bytes[24..];
    id[0..2].copy_from_slice(&tuple.local.port().to_be_bytes());
    id[2..4].copy_from_slice(&tuple.remote.port().to_be_bytes());
    put_address(&mut id[4..20], tuple.local.ip());
    put_address(&mut id[20..36], tuple.remote.ip());
    // Whatever cookie it has.
    id[40..48].fill(0xff);
    bytes
}

fn put_address(place: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(address) => place[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => place.copy_from_slice(&address.octets()),
    }
}

/// Reads the kernel's answer: the socket that it found, and its addresses.
pub(crate) fn answer(bytes: &[u8]) -> Result<Option<(Tuple, Listed)>, Errno> {
    let word = |at: usize| bytes.get(at..at + 4)?.first_chunk::<4>().map(|word| u32::from_ne_bytes(*word));
    let half = |at: usize| bytes.get(at..at + 2)?.first_chunk::<2>().map(|half| u16::from_ne_bytes(*half));
    let (Some(kind), Some(serial)) = (half(4), word(8)) else { return Err(Errno::PROTO) };
    if serial != SERIAL {
        return Err(Errno::PROTO);
    }
    if kind == NLMSG_ERROR {
        return refusal(word(16)).map(|()| None);
    }
    if kind != SOCK_DIAG_BY_FAMILY || bytes.len() < ANSWER_BYTES {
        return Err(Errno::PROTO);
    }
    let (family, id) = (bytes[16], &bytes[20..68]);
    let port = |at: usize| u16::from_be_bytes([id[at], id[at + 1]]);
    let address = |at: usize| -> Result<IpAddr, Errno> {
        let octets = id[at..at + 16].first_chunk::<16>().ok_or(Errno::PROTO)?;
        match family {
            AF_INET => Ok(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into()),
            AF_INET6 => Ok(Ipv6Addr::from(*octets).into()),
            _ => Err(Errno::PROTO),
        }
    };
    let local = SocketAddr::new(address(4)?, port(0));
    let found = Tuple::new(local, SocketAddr::new(address(20)?, port(2)));
    let (Some(low), Some(high), Some(uid), Some(inode)) = (word(60), word(64), word(80), word(84)) else {
        return Err(Errno::PROTO);
    };
    let state = State::from_number(bytes[17]).ok_or(Errno::PROTO)?;
    let cookie = Some(u64::from(high) << 32 | u64::from(low));
    Ok(Some((found, Listed { state, cookie, uid, inode })))
}

/// The device to which the socket of an answer is bound; 0: to none.
pub(crate) fn device_in(bytes: &[u8]) -> Option<u32> {
    bytes.get(NETLINK_BYTES + 40..)?.first_chunk().map(|device| u32::from_ne_bytes(*device))
}

/// What the kernel says in place of a socket: that there is none, or why it does not answer.
pub(crate) fn refusal(code: Option<u32>) -> Result<(), Errno> {
    match code.ok_or(Errno::PROTO)?.cast_signed().checked_neg() {
        Some(2) => Ok(()),
        // `Errno` takes what the kernel may say, and panics at other numbers.
        Some(code @ 1..=4095) => Err(Errno::from_raw_os_error(code)),
        _ => Err(Errno::PROTO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_makes_it_panic_and_a_part_of_one_is_none() {
        let mut good = vec![0; ANSWER_BYTES];
        good[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        good[8..12].copy_from_slice(&SERIAL.to_ne_bytes());
        good[16] = AF_INET;
        good[17] = State::CloseWait as u8;
        good[60..64].copy_from_slice(&1_u32.to_ne_bytes());
        good[64..68].copy_from_slice(&2_u32.to_ne_bytes());
        let (_, listed) = answer(&good).unwrap().unwrap();
        assert_eq!((listed.state, listed.cookie), (State::CloseWait, Some(0x2_0000_0001)));
        for bytes in 0..ANSWER_BYTES {
            assert!(answer(&good[..bytes]).is_err(), "{bytes} bytes");
            for value in 0..=255 {
                let mut spoiled = good.clone();
                spoiled[bytes] = value;
                let _ = answer(&spoiled);
            }
        }
        good[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        for code in [i32::MIN, -4096, -4095, -13, -2, 0, 1, i32::MAX] {
            good[16..20].copy_from_slice(&code.to_ne_bytes());
            let expected = match code {
                -2 => Ok(None),
                -4095 | -13 => Err(Errno::from_raw_os_error(-code)),
                _ => Err(Errno::PROTO),
            };
            assert_eq!(answer(&good), expected, "{code}");
        }
    }
}
