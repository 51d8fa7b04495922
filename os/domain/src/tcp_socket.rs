//! One socket of TCP as the kernel lists it: asked for by its two addresses, over netlink (`NETLINK_SOCK_DIAG`), or looked for in
//! `/proc` where a program may have no netlink socket.
//!
//! Both lists are of this thread's network namespace. The kernel's answers are checked all the same: what does not fit the
//! question is no answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Two addresses of a connection: the end that is looked for, and what it is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuple {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

impl Tuple {
    /// IPv4 in the guise of IPv6 is the same connection, of which each end may have another guise.
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Tuple { local: canonical(local), remote: canonical(remote) }
    }

    /// The other end of the connection.
    pub(crate) fn mirrored(self) -> Self {
        Tuple { local: self.remote, remote: self.local }
    }
}

/// A socket in the kernel's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) is_established: bool,
    /// The user who made or accepted the socket.
    pub(crate) uid: u32,
    /// 0 for a connection that waits to be accepted, which belongs to nobody yet.
    pub(crate) inode: u32,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const IPPROTO_TCP: u8 = 6;
const ESTABLISHED: u8 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Of a netlink message, behind which the answer follows.
const NETLINK_BYTES: usize = 16;
const REQUEST_BYTES: usize = NETLINK_BYTES + 56;
const ANSWER_BYTES: usize = NETLINK_BYTES + 72;
/// What the answer has behind what is looked at; attributes follow it.
const MAX_ANSWER_BYTES: usize = 4096;
/// How often the lists in `/proc` are read before a socket is not there: the kernel prints a list in parts, and may pass one over
/// while others come and go.
const LOOKS: usize = 4;
/// Any number: one question is asked of a socket.
const SERIAL: u32 = 1;

/// The socket with these addresses, established or not.
pub(crate) fn find(tuple: Tuple) -> Result<Option<Listed>, Errno> {
    match ask(tuple) {
        // A seccomp filter, a kernel without the list, or one that does not load it.
        Err(Errno::PERM | Errno::ACCESS | Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT | Errno::OPNOTSUPP) => {
            find_in_proc(tuple)
        }
        // The kernel says this of a list that it does not have and of a socket that is not in it.
        Ok(None) if !is_supported() => find_in_proc(tuple),
        found => found,
    }
}

/// Whether the kernel answers questions for sockets by their addresses.
pub(crate) fn is_supported() -> bool {
    /// 0 for not known. Not a `OnceLock`: in a child of fork it could be one that is filled for ever.
    static SUPPORTED: AtomicU8 = AtomicU8::new(0);
    // Relaxed: the value alone matters, and who comes first twice finds the same.
    match SUPPORTED.load(Ordering::Relaxed) {
        0 => {
            // Without a socket to ask for, as where the loopback is down or descriptors are short, it is asked again.
            let Some(is_supported) = answers() else { return false };
            SUPPORTED.store(1 + u8::from(is_supported), Ordering::Relaxed);
            is_supported
        }
        known => known == 2,
    }
}

/// Asks for a socket of our own, which is found if anything is; `None` where there can be none.
fn answers() -> Option<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let local = listener.local_addr().ok()?;
    let remote = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    Some(matches!(ask_raw(Tuple { local, remote }), Ok(Some(_))))
}

fn ask(tuple: Tuple) -> Result<Option<Listed>, Errno> {
    // Where no connection has these addresses, the kernel answers with the socket that listens there.
    Ok(ask_raw(tuple)?.filter(|(found, _)| *found == tuple).map(|(_, listed)| listed))
}

fn ask_raw(tuple: Tuple) -> Result<Option<(Tuple, Listed)>, Errno> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(SOCK_DIAG),
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    retry(|| rustix::net::sendto(&socket, &request(tuple), SendFlags::empty(), &kernel))?;
    let mut buffer = [0; MAX_ANSWER_BYTES];
    loop {
        // The answer is there when the question has been sent: the kernel gives it meanwhile.
        let (bytes, _, from) =
            retry(|| rustix::net::recvfrom(&socket, &mut buffer[..], RecvFlags::DONTWAIT))?;
        let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
        // Processes with privileges can send to such a socket too.
        if from.is_some_and(|from| from.pid() == 0) {
            return answer(&buffer[..bytes]);
        }
    }
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

fn request(tuple: Tuple) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    bytes[8..12].copy_from_slice(&SERIAL.to_ne_bytes());
    bytes[16] = if tuple.local.is_ipv4() { AF_INET } else { AF_INET6 };
    bytes[17] = IPPROTO_TCP;
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
fn answer(bytes: &[u8]) -> Result<Option<(Tuple, Listed)>, Errno> {
    let word = |at: usize| bytes.get(at..at + 4)?.first_chunk::<4>().map(|word| u32::from_ne_bytes(*word));
    let half = |at: usize| bytes.get(at..at + 2)?.first_chunk::<2>().map(|half| u16::from_ne_bytes(*half));
    let (Some(kind), Some(serial)) = (half(4), word(8)) else { return Err(Errno::PROTO) };
    if serial != SERIAL {
        return Err(Errno::PROTO);
    }
    if kind == NLMSG_ERROR {
        let code = word(16).ok_or(Errno::PROTO)?.cast_signed();
        return match code.checked_neg() {
            Some(2) => Ok(None),
            // `Errno` takes what the kernel may say, and panics at other numbers.
            Some(code @ 1..=4095) => Err(Errno::from_raw_os_error(code)),
            _ => Err(Errno::PROTO),
        };
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
    let (Some(uid), Some(inode)) = (word(80), word(84)) else { return Err(Errno::PROTO) };
    Ok(Some((found, Listed { is_established: bytes[17] == ESTABLISHED, uid, inode })))
}

fn find_in_proc(tuple: Tuple) -> Result<Option<Listed>, Errno> {
    look_again(|| look_in_proc(tuple))
}

/// The first thing that one of some looks finds.
fn look_again<T>(mut look: impl FnMut() -> Result<Option<T>, Errno>) -> Result<Option<T>, Errno> {
    for _ in 1..LOOKS {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
    }
    look()
}

fn look_in_proc(tuple: Tuple) -> Result<Option<Listed>, Errno> {
    // A socket of IPv6 may be connected over IPv4.
    for list in ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"] {
        let lines = match std::fs::read_to_string(list) {
            Ok(lines) => lines,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        };
        if let Some(listed) = only(&lines, tuple) {
            return Ok(Some(listed));
        }
    }
    Ok(None)
}

/// The socket with these addresses; none where several have them. Addresses of one link are others' on the next, and the list does
/// not say on which link a socket is.
fn only(lines: &str, tuple: Tuple) -> Option<Listed> {
    let mut sockets = lines.lines().filter_map(line).filter(|(found, _)| *found == tuple);
    let (_, listed) = sockets.next()?;
    sockets.next().is_none().then_some(listed)
}

/// Reads a line of `/proc/net/tcp` or `/proc/net/tcp6`.
fn line(line: &str) -> Option<(Tuple, Listed)> {
    let mut columns = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (socket_address(columns.next()?)?, socket_address(columns.next()?)?);
    let state = u8::from_str_radix(columns.next()?, 16).ok()?;
    let uid = columns.nth(3)?.parse().ok()?;
    let inode = columns.nth(1)?.parse().ok()?;
    Some((Tuple::new(local, remote), Listed { is_established: state == ESTABLISHED, uid, inode }))
}

/// Reads an address as the kernel prints it: each word of it as a number in this machine's order, then the port.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            Ipv6Addr::from(*words.as_flattened().first_chunk::<16>()?).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Reads an answer of the kernel, for [`crate::fuzzing`].
#[cfg(fuzzing)]
pub(crate) fn read_answer(bytes: &[u8]) -> bool {
    answer(bytes).is_ok_and(|found| found.is_some())
}

/// Reads a line of the list in `/proc`, for [`crate::fuzzing`].
#[cfg(fuzzing)]
pub(crate) fn read_line(text: &str) -> bool {
    line(text).is_some()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::net::TcpStream;
    use std::os::fd::AsFd;

    use super::*;

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        // By IPv4, also to a listener of IPv6.
        let client = match address {
            "[::1]:0" => TcpStream::connect((Ipv6Addr::LOCALHOST, port)),
            _ => TcpStream::connect((Ipv4Addr::LOCALHOST, port)),
        };
        (client.unwrap(), listener.accept().unwrap().0)
    }

    fn tuple(stream: &TcpStream) -> Tuple {
        Tuple::new(stream.local_addr().unwrap(), stream.peer_addr().unwrap())
    }

    fn inode(stream: &TcpStream) -> u32 {
        rustix::fs::fstat(stream.as_fd()).unwrap().st_ino as u32
    }

    #[test]
    fn both_lists_name_both_ends_of_a_connection() {
        for address in ["127.0.0.1:0", "[::]:0", "[::1]:0"] {
            let (a, b) = pair(address);
            assert_eq!(tuple(&a), tuple(&b).mirrored(), "{address}");
            for find in [ask, find_in_proc] {
                for end in [&a, &b] {
                    let listed = find(tuple(end)).unwrap().unwrap();
                    let uid = rustix::process::geteuid().as_raw();
                    assert_eq!(listed, Listed { is_established: true, uid, inode: inode(end) }, "{address}");
                }
            }
        }
    }

    #[test]
    fn socket_that_a_list_passed_over_is_found_by_another_look() {
        for (missing, expected) in [(0, Some(1)), (LOOKS - 1, Some(LOOKS)), (LOOKS, None)] {
            let mut looks = 0;
            let found = look_again(|| {
                looks += 1;
                Ok((looks > missing).then_some(looks))
            });
            assert_eq!((found, looks), (Ok(expected), expected.unwrap_or(LOOKS)), "{missing} times");
        }
        assert_eq!(look_again(|| Err::<Option<()>, _>(Errno::MFILE)), Err(Errno::MFILE));
    }

    #[test]
    fn listener_is_not_taken_for_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let nobody = Tuple::new(local, "127.0.0.1:1".parse().unwrap());
        for find in [find, ask, find_in_proc] {
            assert_eq!(find(nobody), Ok(None));
        }
        assert!(is_supported());
    }

    #[test]
    fn connection_that_waits_to_be_accepted_has_no_inode() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for find in [ask, find_in_proc] {
            assert_eq!(find(tuple(&client).mirrored()).unwrap().unwrap().inode, 0);
        }
    }

    #[test]
    fn addresses_that_two_sockets_have_on_different_links_are_nobodys() {
        let end = "000080FE000000000000000001000000";
        let line = |uid, inode| format!("0: {end}:0001 {end}:0002 01 0:0 00:0 0 {uid} 0 {inode}\n");
        let address = |port| SocketAddr::new("fe80::1".parse().unwrap(), port);
        let tuple = Tuple::new(address(1), address(2));
        let expected = Listed { is_established: true, uid: 7, inode: 8 };
        assert_eq!(only(&line(7, 8), tuple), Some(expected));
        assert_eq!(only(&(line(7, 8) + &line(9, 10)), tuple), None);
        assert_eq!(only(&line(7, 8), tuple.mirrored()), None);
    }

    #[test]
    fn no_answer_makes_it_panic_and_a_part_of_one_is_none() {
        let mut good = vec![0; ANSWER_BYTES];
        good[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        good[8..12].copy_from_slice(&SERIAL.to_ne_bytes());
        good[16] = AF_INET;
        assert!(answer(&good).is_ok_and(|found| found.is_some()));
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
        for text in
            ["", "  sl  local_address rem_address   st", "0: é:1 0:0 01 x y z 0 0 5", "0: 0100007F:1F90"]
        {
            assert!(line(text).is_none(), "{text}");
        }
    }
}
