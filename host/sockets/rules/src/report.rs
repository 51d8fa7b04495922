//! What a preloaded library says on standard error of a program that knows nothing of it.

use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::net::{AddressFamily, sockopt};

use crate::{Rules, Settings};

impl Settings {
    /// The rules for this process, read when they are first asked for and then kept: files and variables that change later change
    /// nothing. Rules that are wrong are reported once, and the library does nothing in this process: `None`.
    pub fn of_this_process() -> Option<&'static Settings> {
        static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
        let read = || match Rules::read() {
            Ok(rules) => Some(rules.for_this_program()),
            Err(error) => {
                report(format_args!("{error}\n  nothing is accelerated in this process"));
                None
            }
        };
        SETTINGS.get_or_init(read).as_ref()
    }
}

/// Says something on standard error, behind `beeline sockets: `. Nothing is said where descriptor 2 is a connection by now: a program that closed its
/// standard error may have opened one under that number.
pub fn report(what: impl Display) {
    let stderr = std::io::stderr();
    if !is_connection(stderr.as_fd()) {
        // One call, so that lines of several processes do not mix. What is not written is lost.
        let _ = rustix::io::write(&stderr, format!("beeline sockets: {what}\n").as_bytes());
    }
}

fn is_connection(fd: BorrowedFd<'_>) -> bool {
    matches!(sockopt::socket_domain(fd), Ok(AddressFamily::INET | AddressFamily::INET6))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connection_of_the_program_is_told_from_a_file_and_from_the_journal() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (journal, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        assert!(is_connection(client.as_fd()) && is_connection(listener.as_fd()));
        assert!(!is_connection(journal.as_fd()) && !is_connection(file.as_fd()));
    }
}
