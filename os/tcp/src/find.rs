//! A socket of TCP by its two addresses, from whichever list of the kernel can be asked.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};

use beeline_tcp_sys::Descriptor;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::listed::Listed;
use crate::proc_net::find_in_proc;
use crate::sock_diag::Question;
use crate::tuple::Tuple;

/// Finds the socket of this thread's network namespace with these addresses, established or not; `None` if there is none.
///
/// Over netlink, else in `/proc`, which takes longer the more connections there are and tells no cookie.
///
/// # Errors
/// What the kernel says when neither can be asked.
pub fn find(tuple: Tuple) -> Result<Option<Listed>, Errno> {
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
pub fn is_supported() -> bool {
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
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let listener = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).ok()?;
    let listener = Descriptor::from(listener);
    rustix::net::bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).ok()?;
    rustix::net::listen(&listener, 1).ok()?;
    let local = rustix::net::getsockname(&listener).ok()?.try_into().ok()?;
    let remote = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let found = Question::new().and_then(|question| question.ask_raw(Tuple { local, remote }));
    Some(matches!(found, Ok(Some(_))))
}

fn ask(tuple: Tuple) -> Result<Option<Listed>, Errno> {
    Question::new()?.ask(tuple)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, TcpListener, TcpStream};

    use super::*;
    use crate::State;

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

    fn inode(stream: &TcpStream) -> u32 {
        rustix::fs::fstat(stream).unwrap().st_ino as u32
    }

    #[test]
    fn both_lists_name_both_ends_of_a_connection() {
        for address in ["127.0.0.1:0", "[::]:0", "[::1]:0"] {
            let (a, b) = pair(address);
            assert_eq!(Tuple::of(&a).unwrap(), Tuple::of(&b).unwrap().mirrored(), "{address}");
            for (find, has_cookies) in [(ask as fn(_) -> _, true), (find_in_proc, false)] {
                for end in [&a, &b] {
                    let listed = find(Tuple::of(end).unwrap()).unwrap().unwrap();
                    let uid = rustix::process::geteuid().as_raw();
                    let cookie = rustix::net::sockopt::socket_cookie(end).unwrap();
                    let cookie = has_cookies.then_some(cookie);
                    let expected = Listed { state: State::Established, cookie, uid, inode: inode(end) };
                    assert_eq!(listed, expected, "{address}");
                }
            }
        }
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
            let tuple = Tuple::of(&client).unwrap();
            assert_eq!(find(tuple.mirrored()).unwrap().unwrap().inode, 0);
        }
    }
}
