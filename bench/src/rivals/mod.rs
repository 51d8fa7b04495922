//! Rivals in processes of their own: what they are, how each is built here, and what to install where it cannot be.
//!
//! Their code is `bench/rivals/`: programs in C, compiled by a [`Workshop`] when a row asks for them, against Debian's
//! packages; and one program with crates of its own, which `make bench` builds beside this one. All of them speak the
//! words of `beeline-bench-echo`, so a [`crate::echo::Pair`] runs any of them; [`rings`] have both sides in one process. Not here: the bare copy
//! (`echo/bare.rs`), key-value servers (`kv/`), rivals in the row's own process (`peers/`).

pub mod rings;
mod workshop;

pub use workshop::{Found, Workshop};

/// A program in C, with the library it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InC {
    /// Its name, and that of its file without `.c`.
    pub name: &'static str,
    text: &'static str,
    library: Option<Library>,
}

/// A library that a program in C needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    /// One of the system: its name for pkg-config, and the package that brings it in Debian.
    Debian { name: &'static str, package: &'static str },
    /// Our `libsisci.so`, which lies beside this program where both were built.
    Sisci,
}

const UCX: InC = InC {
    name: "ucx",
    text: include_str!("../../rivals/c/ucx.c"),
    library: Some(Library::Debian { name: "ucx", package: "libucx-dev" }),
};
const LIBFABRIC: InC = InC {
    name: "libfabric",
    text: include_str!("../../rivals/c/libfabric.c"),
    library: Some(Library::Debian { name: "libfabric", package: "libfabric-dev" }),
};
const UCX_PUT: InC = InC {
    name: "ucx_put",
    text: include_str!("../../rivals/c/ucx_put.c"),
    library: Some(Library::Debian { name: "ucx", package: "libucx-dev" }),
};
const LIBFABRIC_PUT: InC = InC {
    name: "libfabric_put",
    text: include_str!("../../rivals/c/libfabric_put.c"),
    library: Some(Library::Debian { name: "libfabric", package: "libfabric-dev" }),
};
const SISCI: InC =
    InC { name: "sisci", text: include_str!("../../rivals/c/sisci.c"), library: Some(Library::Sisci) };
const SOCKETS: InC = InC { name: "sockets", text: include_str!("../../rivals/c/sockets.c"), library: None };

/// Where a rival's program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Compiled here.
    C(InC),
    /// `beeline-bench-rivals`.
    Crates,
}

/// A rival of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Name of the rival in figures.
    pub name: &'static str,
    /// Memory that its messages go through.
    pub memory: &'static str,
    /// How many times fewer trips a round makes than of the fastest: what it takes for a round of each to last about
    /// as long.
    pub slowness: u32,
    source: Source,
    /// Name that the rival's own program has for it.
    variant: &'static str,
}

impl Rival {
    const fn new(
        name: &'static str,
        memory: &'static str,
        slowness: u32,
        source: Source,
        variant: &'static str,
    ) -> Self {
        Rival { name, memory, slowness, source, variant }
    }
}

const SHARED: &str = "shared memory";
const KERNEL: &str = "kernel";

/// Round trips between processes of one machine, the promising ones first.
pub const ON_ONE_MACHINE: &[Rival] = &[
    Rival::new("iceoryx2", SHARED, 1, Source::Crates, "iceoryx2"),
    Rival::new("UCX am", SHARED, 1, Source::C(UCX), "am"),
    Rival::new("UCX tag", SHARED, 1, Source::C(UCX), "tag"),
    Rival::new("libfabric shm", SHARED, 1, Source::C(LIBFABRIC), "untagged"),
    Rival::new("libfabric shm tagged", SHARED, 1, Source::C(LIBFABRIC), "tagged"),
    Rival::new("TCP over loopback, polled", KERNEL, 10, Source::C(SOCKETS), "tcp-polled"),
    Rival::new("TCP over loopback", KERNEL, 20, Source::C(SOCKETS), "tcp"),
    Rival::new("UDP over loopback", KERNEL, 20, Source::C(SOCKETS), "udp"),
    Rival::new("gRPC over AF_UNIX", KERNEL, 50, Source::Crates, "grpc"),
];

/// Messages through segments of our `libsisci`, and through memory that both processes have mapped without it, the floor.
pub const BY_STORES: Rival = Rival::new("stores", SHARED, 1, Source::C(SISCI), "stores");
pub const BY_MEM_CPY: Rival = Rival::new("SCIMemCpy", SHARED, 1, Source::C(SISCI), "memcpy");
pub const BARE: Rival = Rival::new("bare line", SHARED, 1, Source::C(SISCI), "bare");
/// The time of one store of 8 bytes until the other process sees it, in place of a round trip.
pub const STORE_SEEN: Rival = Rival::new("store until seen", SHARED, 1, Source::C(SISCI), "stores-one-way");
pub const BARE_SEEN: Rival = Rival::new("bare line until seen", SHARED, 1, Source::C(SISCI), "bare-one-way");

/// Messages and answers one after the other, many of which are one trip: without the clock, checks and copies between them, as a program
/// that measures itself alone counts.
pub const STORES_IN_BURSTS: Rival =
    Rival::new("stores, back to back", SHARED, 1, Source::C(SISCI), "stores-burst");
pub const MEM_CPY_IN_BURSTS: Rival =
    Rival::new("SCIMemCpy, back to back", SHARED, 1, Source::C(SISCI), "memcpy-burst");
pub const BARE_IN_BURSTS: Rival =
    Rival::new("bare line, back to back", SHARED, 1, Source::C(SISCI), "bare-burst");
pub const PUTS_IN_BURSTS: Rival =
    Rival::new("UCX put, back to back", SHARED, 1, Source::C(UCX_PUT), "put-burst");

/// Messages put into the other process's memory, and answered there.
pub const INTO_MEMORY: &[Rival] = &[
    Rival::new("UCX put", SHARED, 1, Source::C(UCX_PUT), "put"),
    Rival::new("libfabric shm write", SHARED, 4, Source::C(LIBFABRIC_PUT), "write"),
];

/// Streams of messages put into memory: ours, the floor, rivals. A trip is a whole stream.
pub const STREAMS_BY_STORES: Rival = Rival::new("stores", SHARED, 1, Source::C(SISCI), "stores-stream");
pub const STREAMS_BY_MEM_CPY: Rival = Rival::new("SCIMemCpy", SHARED, 1, Source::C(SISCI), "memcpy-stream");
pub const BARE_STREAMS: Rival = Rival::new("bare stores", SHARED, 1, Source::C(SISCI), "bare-stream");
pub const STREAMS_INTO_MEMORY: &[Rival] = &[
    Rival::new("UCX put", SHARED, 1, Source::C(UCX_PUT), "put-stream"),
    Rival::new("libfabric shm write", SHARED, 10, Source::C(LIBFABRIC_PUT), "write-stream"),
];

/// By the kernel, beside segments by size: there and back, and one behind the other, each message by a call.
pub const SOCKETS_BY_SIZE: &[Rival] = &[
    Rival::new("TCP over loopback", KERNEL, 20, Source::C(SOCKETS), "tcp"),
    Rival::new("AF_UNIX", KERNEL, 20, Source::C(SOCKETS), "unix"),
    Rival::new("TCP over loopback, polled", KERNEL, 10, Source::C(SOCKETS), "tcp-polled"),
    Rival::new("AF_UNIX, polled", KERNEL, 10, Source::C(SOCKETS), "unix-polled"),
];
pub const SOCKET_STREAMS: &[Rival] = &[
    Rival::new("TCP over loopback", KERNEL, 20, Source::C(SOCKETS), "tcp-stream"),
    Rival::new("AF_UNIX", KERNEL, 20, Source::C(SOCKETS), "unix-stream"),
];

/// Round trips over a wire, by the kernel.
pub const OVER_A_WIRE: &[Rival] = &[
    Rival::new("UDP", KERNEL, 20, Source::C(SOCKETS), "udp"),
    Rival::new("UDP, SO_BUSY_POLL", KERNEL, 20, Source::C(SOCKETS), "udp-busy-poll"),
    Rival::new("UDP, polled sockets", KERNEL, 20, Source::C(SOCKETS), "udp-polled"),
];
