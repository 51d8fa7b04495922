//! One socket of TCP as `/proc/net/tcp` and `tcp6` list it, for programs that may have no netlink socket.
//!
//! The lists are of this thread's network namespace, and say no cookie.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use beeline_tcp_sys::Descriptor;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::bytes::retry;
use crate::listed::Listed;
use crate::state::State;
use crate::tuple::Tuple;

/// How often the lists are read before a socket is not there: the kernel prints a list in parts, and may pass one over while others
/// come and go.
const LOOKS: usize = 4;
const PART_BYTES: usize = 64 << 10;

pub(crate) fn find_in_proc(tuple: Tuple) -> Result<Option<Listed>, Errno> {
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
        let lines = match read(list) {
            Err(Errno::NOENT) => continue,
            result => result?,
        };
        if let Some(listed) = only(&String::from_utf8_lossy(&lines), tuple) {
            return Ok(Some(listed));
        }
    }
    Ok(None)
}

fn read(path: &str) -> Result<Vec<u8>, Errno> {
    let file = retry(|| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()))?;
    let file = Descriptor::from(file);
    let mut bytes = Vec::new();
    let mut part = vec![0; PART_BYTES];
    loop {
        match retry(|| rustix::io::read(&file, &mut part[..]))? {
            0 => return Ok(bytes),
            more => bytes.extend_from_slice(&part[..more]),
        }
    }
}

/// The socket with these addresses; none where several have them. Addresses of one link are others' on the next, and the list does
/// not say on which link a socket is.
fn only(lines: &str, tuple: Tuple) -> Option<Listed> {
    let mut sockets = lines.lines().filter_map(line).filter(|(found, _)| *found == tuple);
    let (_, listed) = sockets.next()?;
    sockets.next().is_none().then_some(listed)
}

/// Reads a line of `/proc/net/tcp` or `/proc/net/tcp6`.
pub(crate) fn line(line: &str) -> Option<(Tuple, Listed)> {
    let mut columns = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (socket_address(columns.next()?)?, socket_address(columns.next()?)?);
    let state = State::from_number(u8::from_str_radix(columns.next()?, 16).ok()?)?;
    let uid = columns.nth(3)?.parse().ok()?;
    let inode = columns.nth(1)?.parse().ok()?;
    Some((Tuple::new(local, remote), Listed { state, cookie: None, uid, inode }))
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
    fn addresses_that_two_sockets_have_on_different_links_are_nobodys() {
        let end = "000080FE000000000000000001000000";
        let line = |uid, inode| format!("0: {end}:0001 {end}:0002 01 0:0 00:0 0 {uid} 0 {inode}\n");
        let address = |port| SocketAddr::new("fe80::1".parse().unwrap(), port);
        let tuple = Tuple::new(address(1), address(2));
        let expected = Listed { state: State::Established, cookie: None, uid: 7, inode: 8 };
        assert_eq!(only(&line(7, 8), tuple), Some(expected));
        assert_eq!(only(&(line(7, 8) + &line(9, 10)), tuple), None);
        assert_eq!(only(&line(7, 8), tuple.mirrored()), None);
    }

    #[test]
    fn line_that_is_none_is_no_socket() {
        for text in
            ["", "  sl  local_address rem_address   st", "0: é:1 0:0 01 x y z 0 0 5", "0: 0100007F:1F90"]
        {
            assert!(line(text).is_none(), "{text}");
        }
    }

    #[test]
    fn file_longer_than_one_read_is_read_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let expected: Vec<u8> = (0..3 * PART_BYTES + 5).map(|at| (at % 251) as u8).collect();
        file.write_all(&expected).unwrap();
        assert!(read(file.path().to_str().unwrap()) == Ok(expected));
        assert_eq!(read("/nowhere"), Err(Errno::NOENT));
    }
}
