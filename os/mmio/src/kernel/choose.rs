//! Which kernel to use: named by the user, or timed here and now.
//!
//! Nothing is remembered between calls; whoever opens many windows keeps the [`Choice`].

use core::fmt;

use super::store_kernel::{StoreKernel, Traffic, UnknownKernel};
use super::timing::{self, KernelTiming};

/// The environment variable that names the kernel for every traffic.
pub const KERNEL_VARIABLE: &str = "BEELINE_STORE_KERNEL";

/// Why a kernel was chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The caller named it.
    Named,
    /// It was the fastest between two cores.
    FastestBetweenCores,
    /// It was the fastest without a reader, because there was no second core.
    FastestAlone,
}

/// A kernel for a kind of traffic, and what it was chosen from. Prints as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub traffic: Traffic,
    pub kernel: StoreKernel,
    /// Why.
    pub reason: Reason,
    /// What was timed, fastest first; empty when the kernel was named.
    pub timings: Vec<KernelTiming>,
}

/// A kernel that was named and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChosen {
    /// There is no such kernel.
    #[error(transparent)]
    Unknown(#[from] UnknownKernel),
    /// The kernel cannot be run on this CPU or memory.
    #[error("store kernel {kernel} needs {lacks}, which this machine lacks")]
    Unavailable {
        kernel: StoreKernel,
        /// CPU feature or memory type that is lacking.
        lacks: &'static str,
    },
    #[error("store kernel {0} stores to device memory only, not to the memory of a peer")]
    DeviceOnly(StoreKernel),
}

impl StoreKernel {
    /// The kernel for a kind of traffic between two cores of this machine: the one that [`KERNEL_VARIABLE`] names, or
    /// the fastest of a timing of some milliseconds. [`Choice`] says why; a variable that cannot be followed is
    /// warned of and ignored.
    pub fn choose(traffic: Traffic) -> StoreKernel {
        let wanted = kernel_from_environment().unwrap_or_else(|error| {
            tracing::warn!("{KERNEL_VARIABLE}: {error}; the kernel is timed instead");
            None
        });
        Choice::make(traffic, wanted).unwrap_or_else(|_| Choice::timed(traffic)).kernel
    }
}

impl Choice {
    /// Takes the kernel that the caller wants, or times them.
    pub fn make(traffic: Traffic, wanted: Option<StoreKernel>) -> Result<Self, NotChosen> {
        let Some(kernel) = wanted else { return Ok(Self::timed(traffic)) };
        if let Some(lacks) = crate::arch::lacks(kernel) {
            return Err(NotChosen::Unavailable { kernel, lacks });
        }
        if !kernel.is_for_memory() {
            return Err(NotChosen::DeviceOnly(kernel));
        }
        Ok(Choice { traffic, kernel, reason: Reason::Named, timings: Vec::new() })
    }

    /// Times every kernel that this CPU has on memory; a few milliseconds.
    pub fn timed(traffic: Traffic) -> Self {
        let kernels: Vec<_> =
            StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()).collect();
        let (mut timings, reason) = match timing::between_cores(traffic, &kernels) {
            Some(timings) => (timings, Reason::FastestBetweenCores),
            None => (timing::alone(&kernels), Reason::FastestAlone),
        };
        timings.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        // `cached` is always there; without a second core nothing speaks against it.
        let fastest = timings.first().map_or(StoreKernel::Cached, |timing| timing.kernel);
        Choice { traffic, kernel: fastest, reason, timings }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, what) = match (self.traffic, &self.reason) {
            (_, Reason::Named) => return write!(out, "{}: {}, as named", self.traffic, self.kernel),
            (_, Reason::FastestAlone) => ("ns a line", "stored without a reader, for want of a second core"),
            (Traffic::Latency, _) => ("ns", "there and back between two cores"),
            (Traffic::Stream, _) => ("ns a line", "stored, read and blanked on two cores"),
        };
        write!(out, "{}: {}, the fastest of those {what}", self.traffic, self.kernel)?;
        for timing in &self.timings {
            write!(out, "\n  {:<10} {:>8.1} {unit}", timing.kernel, timing.ns)?;
        }
        Ok(())
    }
}

/// The kernel that [`KERNEL_VARIABLE`] names, if it names one.
///
/// # Errors
/// The name is no kernel's, or that kernel cannot be used here.
pub fn kernel_from_environment() -> Result<Option<StoreKernel>, NotChosen> {
    named(std::env::var(KERNEL_VARIABLE).ok().as_deref())
}

/// The kernel of a name that can be used here; an empty name is none.
fn named(name: Option<&str>) -> Result<Option<StoreKernel>, NotChosen> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let choice = Choice::make(Traffic::Stream, Some(name.parse()?))?;
    Ok(Some(choice.kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_kernel_is_taken_or_refused_with_the_reason() {
        let choice = Choice::make(Traffic::Latency, Some(StoreKernel::Cached)).unwrap();
        assert_eq!(choice.to_string(), "latency: cached, as named");
        let foreign = if cfg!(target_arch = "aarch64") { StoreKernel::NtSse2 } else { StoreKernel::Stnp };
        let error = Choice::make(Traffic::Stream, Some(foreign)).unwrap_err();
        assert!(error.to_string().contains("instruction set, which this machine lacks"), "{error}");
    }

    #[test]
    fn a_name_from_outside_is_checked() {
        assert_eq!(named(None), Ok(None));
        assert_eq!(named(Some("")), Ok(None));
        assert_eq!(named(Some("Cached")), Ok(Some(StoreKernel::Cached)));
        assert_eq!(named(Some("fast")), Err(NotChosen::Unknown(UnknownKernel("fast".to_owned()))));
        assert!(matches!(
            named(Some("st64b")),
            Err(NotChosen::Unavailable { .. } | NotChosen::DeviceOnly(_))
        ));
    }

    #[test]
    fn a_timed_choice_is_the_fastest_of_all_that_run_here() {
        for traffic in [Traffic::Latency, Traffic::Stream] {
            let choice = Choice::timed(traffic);
            let timed: Vec<_> = choice.timings.iter().map(|timing| timing.kernel).collect();
            for kernel in StoreKernel::available() {
                assert_eq!(timed.contains(&kernel), kernel.is_for_memory(), "{choice}");
            }
            assert_eq!(choice.kernel, timed[0]);
            assert!(choice.timings.iter().all(|timing| timing.ns > 0.0 && timing.ns.is_finite()), "{choice}");
            assert!(choice.timings.is_sorted_by(|a, b| a.ns <= b.ns), "{choice}");
            let lines = choice.to_string().lines().count();
            assert_eq!(lines, 1 + choice.timings.len(), "{choice}");
        }
    }
}
