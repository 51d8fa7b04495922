//! What the kernel says of one socket of TCP, and what can be asked of it without waiting.
//!
//! For a library that carries a connection's bytes by another path while the kernel's socket stays what it is. It has to know how many bytes went
//! through the socket, whoever sent or received them ([`given`], [`taken`]); to look at bytes before it takes them ([`peek`], [`take`]); which sockets
//! the two ends are ([`cookie`], [`other_socket`]); whether a program has asked for what the other path cannot give ([`is_neutral`]); how many the socket
//! takes at once ([`room`]); and to end a connection that cannot go on ([`reset`]). `os/domain` asks for the other end's user ([`find()`]). Each function borrows a descriptor, keeps nothing, and waits for no other process.
//!
//! A preloaded library replaces functions of the C library, and must not come to itself when it calls this crate. On x86, ARM and RISC-V (64 bits)
//! every system call here is an instruction: rustix makes its own there (`linux_raw`, its default), and `os/tcp/sys` does the same for what
//! rustix lacks. No function of the C library is called, and `errno` is neither read nor changed. On other machines rustix calls the C library, and so
//! does this crate: a library that is preloaded there has to let its own calls through.
//!
//! | call | nanoseconds | system calls |
//! |---|---|---|
//! | [`given`], [`taken`] | 1,030, 1,070 | 3, more while the connection moves |
//! | [`state()`] | 410 | 1 |
//! | [`cookie`], [`netns_cookie`] | 260, 250 | 1 |
//! | [`other_socket`] | 9,500 | 9 |
//! | [`find()`] over netlink | 7,400 | 4 |
//! | [`peek`] of nothing, of 64 bytes | 220, 350 | 1 |
//! | [`send`] of 64 bytes, then `recv`; then [`peek`] and [`take`] | 5,300; 5,560 | 2; 3 |
//! | [`reset`] | 4,100 | 1 |
//!
//! Measured on a guest of two cores (Linux 6.18, both ends on one thread, medians of one run) by `cargo run --release -p beeline-tcp --example call_cost`.
//!
//! Of UDP it says which socket a datagram comes to ([`receiver()`]), from which address ([`source_towards`]), and which options are neutral there
//! ([`is_neutral_for_datagrams`]): record 0069. Of groups it says who has a port ([`bound_to_port`]) and by which device they are reached ([`route_towards_group`],
//! [`device_of`]): record 0085.
//!
//! Of streams of `AF_UNIX` it says which sockets the two ends are ([`unix_tuple`], [`unix_established`]), whether all that was sent was taken ([`unix_is_drained`]), and with
//! which bytes something comes that another path has no place for ([`unix_peek`]): record 0083.
//!
//! Which bytes go by which path is in `host/ledger`. Record 0071.

mod bytes;
mod counts;
mod datagrams;
mod ends;
mod find;
#[cfg(fuzzing)]
pub mod fuzzing;
mod groups;
mod listed;
mod options;
mod proc_net;
mod sock_diag;
mod state;
mod tuple;
mod unix;

pub use beeline_tcp_sys::second_of;
pub use bytes::{Peeked, TakeError, peek, reset, room, send, take};
pub use counts::{CountError, Progress, Side, given, progress, state, taken};
pub use datagrams::{
    is_neutral_for_datagrams, is_of_this_host, is_udp, may_come_to_this_host, receiver, source_towards,
};
pub use ends::{NoOtherSocket, OtherSocket, cookie, established, is_tcp, netns_cookie, other_socket};
pub use find::{find, is_supported};
pub use groups::{Bound, bound_to_port, device_of, is_neutral_for_groups, route_towards_group};
pub use listed::Listed;
pub use options::is_neutral;
pub use state::State;
pub use tuple::{Tuple, TupleError};
pub use unix::{
    is_unix_stream, unix_established, unix_inode, unix_is_drained, unix_peek, unix_take, unix_tuple,
};
