//! The store kernels and the kinds of traffic, by name.

use core::fmt;
use core::str::FromStr;

/// An instruction sequence that stores one line. None contains a fence or a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKernel {
    /// Plain stores, as wide as the CPU has them: they land in the cache and move by coherence.
    Cached,
    /// Eight 8-byte `movnti`.
    Nt8,
    /// Four 16-byte `movntdq`.
    NtSse2,
    /// Two 32-byte `vmovntdq`.
    NtAvx2,
    /// One 64-byte `vmovntdq`.
    NtAvx512,
    /// One `movdir64b`: the only x86 store that is one 64-byte write by definition.
    Movdir64b,
    /// Four aarch64 `stnp` (two, of vector registers, from the caller's memory).
    Stnp,
    /// One aarch64 `st64b`: one 64-byte write by definition, to device memory only.
    St64b,
}

/// What a window is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Traffic {
    /// One message and its answer at a time.
    Latency,
    /// Many messages in a row.
    Stream,
}

/// A name that is no kernel's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a store kernel: there are cached, nt8, nt-sse2, nt-avx2, nt-avx512, movdir64b, stnp and st64b"
)]
pub struct UnknownKernel(pub String);

impl StoreKernel {
    /// Every kernel, on whatever CPU.
    pub const ALL: [StoreKernel; 8] = [
        StoreKernel::Cached,
        StoreKernel::Nt8,
        StoreKernel::NtSse2,
        StoreKernel::NtAvx2,
        StoreKernel::NtAvx512,
        StoreKernel::Movdir64b,
        StoreKernel::Stnp,
        StoreKernel::St64b,
    ];

    /// The kernels this CPU can run, on the mappings that each is for.
    pub fn available() -> Vec<StoreKernel> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available()).collect()
    }

    /// Whether this CPU can run it.
    pub fn is_available(self) -> bool {
        crate::arch::lacks(self).is_none()
    }

    /// Whether it can store to memory, not only to a device.
    pub const fn is_for_memory(self) -> bool {
        !matches!(self, StoreKernel::St64b)
    }

    /// The kernel whose stores become visible in the order of the program, on x86-64; aarch64 has none. For what needs
    /// its lines in order, as kPIO+WC does: a window of ours needs nothing of the kind.
    pub const IN_ORDER: StoreKernel = StoreKernel::Cached;

    /// The name used in reports and options.
    pub const fn name(self) -> &'static str {
        match self {
            StoreKernel::Cached => "cached",
            StoreKernel::Nt8 => "nt8",
            StoreKernel::NtSse2 => "nt-sse2",
            StoreKernel::NtAvx2 => "nt-avx2",
            StoreKernel::NtAvx512 => "nt-avx512",
            StoreKernel::Movdir64b => "movdir64b",
            StoreKernel::Stnp => "stnp",
            StoreKernel::St64b => "st64b",
        }
    }
}

impl fmt::Display for StoreKernel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for StoreKernel {
    type Err = UnknownKernel;

    fn from_str(name: &str) -> Result<Self, UnknownKernel> {
        Self::ALL
            .into_iter()
            .find(|kernel| kernel.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownKernel(name.to_owned()))
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Traffic::Latency => "latency",
            Traffic::Stream => "stream",
        })
    }
}
