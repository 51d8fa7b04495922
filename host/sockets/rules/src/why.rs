//! Why a connection is not accelerated.

use std::fmt;

/// Declares the reasons once: variant, number on a board, the sentence that people read.
macro_rules! reasons {
    ($($variant:ident = $code:literal, $sentence:literal;)*) => {
        /// Why the kernel carries a connection. Numbers are those on a board and never change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Why {
            $(#[doc = $sentence] $variant = $code,)*
        }

        impl Why {
            /// All reasons, by their numbers.
            pub const ALL: &[Why] = &[$(Why::$variant),*];

            /// The reason in a sentence without a full stop.
            pub fn sentence(self) -> &'static str {
                match self { $(Why::$variant => $sentence,)* }
            }

            /// Its name, for programs.
            pub fn name(self) -> &'static str {
                match self { $(Why::$variant => stringify!($variant),)* }
            }

            /// The reason of a number; `None` for 0, which is no reason, and for numbers that stand for none.
            pub fn of_code(code: u64) -> Option<Why> {
                match code { $($code => Some(Why::$variant),)* _ => None }
            }
        }
    };
}

reasons! {
    NotYet = 1, "too few messages and bytes so far (begin_after_messages, begin_after_bytes)";
    RulesOff = 2, "the rules say accelerate = false";
    RulesProgram = 3, "the rules leave this program out (programs, never_programs)";
    RulesAddress = 4, "the rules leave its addresses out (addresses, never_addresses)";
    RulesPort = 5, "the rules leave its ports out (ports, never_ports)";
    PeerUnknown = 6, "no process of this domain has the other end: it runs without the library, as another user (other_users), or on another host";
    PeerNotOurs = 7, "the process at the other end did not confirm the connection";
    PeerVersion = 8, "the library at the other end is of another version";
    PeerRefuses = 9, "the process at the other end keeps the connection with the kernel";
    Option = 10, "the program set a socket option that the fast path does not have";
    Duplicated = 11, "the program duplicated the descriptor";
    Passed = 12, "the descriptor was passed to another process";
    Forked = 13, "a child of fork uses the connection";
    Executed = 14, "the process executed another program while it held the connection";
    Inherited = 15, "the process did not make the socket itself";
    OutOfBand = 16, "out-of-band data is used";
    ZeroCopy = 17, "MSG_ZEROCOPY is used";
    ErrorQueue = 18, "the error queue of the socket is read";
    SetOneShot = 19, "it is a one-shot member of an epoll";
    SetExclusive = 20, "it is an exclusive member of an epoll";
    SetNested = 21, "its epoll is a member of another one";
    SetShared = 22, "its epoll is shared with another process";
    Poll = 23, "it is waited for by a call that the library cannot wake";
    Memory = 24, "there is no memory for its windows (memory_bytes)";
    OwnPeer = 25, "both ends are in this process, and it could not be its own peer";
    Stream = 26, "the program reads or writes it as a stream of C (fdopen)";
    IoUring = 27, "the process has set up io_uring";
    Seccomp = 28, "the process has installed a filter of system calls";
    Namespace = 29, "the process changed a namespace or its root";
    UserChanged = 30, "the process changed its user";
    PeerGone = 31, "the process at the other end has ended";
    Broken = 32, "its window was written over; the socket carries it again";
    Lost = 33, "its window was lost, and bytes with it; the connection was reset";
    Splice = 34, "sendfile or splice is used";
    OtherWriter = 35, "something besides the library wrote to or read from the socket";
    HalfClosed = 36, "one direction is closed";
    Disconnected = 37, "the socket was disconnected or connected anew";
    Descriptors = 38, "the process is out of descriptors";
    NotTcp = 39, "it is no connection of TCP";
    Domain = 40, "the domain cannot be opened";
    Signal = 41, "a signal handler uses it";
    Retain = 42, "the rules say retain = copy, and of datagrams and streams of AF_UNIX no copy is kept";
    Down = 43, "`beeline sockets down` has taken it off its window; `beeline sockets up` brings it back";
    DeepBind = 44, "the process has opened a library whose calls go past this one (RTLD_DEEPBIND, dlmopen)";
    Ancillary = 45, "descriptors or credentials are sent with its bytes (SCM_RIGHTS, SCM_CREDENTIALS)";
}

impl Why {
    /// Its number, on a board.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.sentence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_stands_for_one_reason_and_0_for_none() {
        for why in Why::ALL {
            assert_eq!(Why::of_code(why.code().into()), Some(*why));
            assert!(!why.sentence().is_empty() && !why.sentence().ends_with('.'), "{why}");
        }
        let numbers: Vec<_> = (0..=u64::from(u8::MAX) + 300).filter_map(Why::of_code).collect();
        assert_eq!(numbers, Why::ALL);
        assert_eq!(Why::of_code(0), None);
    }
}
