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

/// A library of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Library {
    /// Name of the package for pkg-config.
    name: &'static str,
    /// The package that brings it, in Debian.
    package: &'static str,
}

const UCX: InC = InC {
    name: "ucx",
    text: include_str!("../../rivals/c/ucx.c"),
    library: Some(Library { name: "ucx", package: "libucx-dev" }),
};
const LIBFABRIC: InC = InC {
    name: "libfabric",
    text: include_str!("../../rivals/c/libfabric.c"),
    library: Some(Library { name: "libfabric", package: "libfabric-dev" }),
};
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

/// Round trips over a wire, by the kernel.
pub const OVER_A_WIRE: &[Rival] = &[
    Rival::new("UDP", KERNEL, 20, Source::C(SOCKETS), "udp"),
    Rival::new("UDP, SO_BUSY_POLL", KERNEL, 20, Source::C(SOCKETS), "udp-busy-poll"),
    Rival::new("UDP, polled sockets", KERNEL, 20, Source::C(SOCKETS), "udp-polled"),
];
