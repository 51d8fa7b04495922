//! Which kernel to use: named by the user, or timed here and now.
//!
//! Nothing is remembered between calls; whoever opens many windows keeps the [`Choice`]. Windows of programs, `beeline doctor` and
//! `beeline compare` have theirs from `host/tuning`, which times the writer and the receiver that they run; this way stands for who
//! is below that floor or uses [`StoreKernel::choose`] alone, and has neither of the two, so its reader is a plain loop.

use core::fmt;

use super::store_kernel::{StoreKernel, Traffic, UnknownKernel};
use super::timing::{self, KernelTiming};

/// The environment variable that names the kernel for every traffic.
pub const KERNEL_VARIABLE: &str = "BEELINE_STORE_KERNEL";

/// Timings from which a kernel is chosen: one alone may have met an interrupt, or a change of placement, in one kernel's turn.
pub const TIMINGS: usize = if cfg!(miri) { 1 } else { 5 };

/// Another kernel is taken instead of `cached` when it takes at most this share of its time. Below that the difference is as
/// likely one of the moment, and `cached` has the least to lose where the other core is far or shared.
pub const CLEARLY_FASTER: f64 = 0.85;

/// Why a kernel was chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The caller named it.
    Named,
    /// It was the best between two cores: clearly faster than `cached`, or `cached` because none was.
    FastestBetweenCores,
    /// It was the best without a reader, because there was no second core.
    FastestAlone,
}

/// A kernel for a kind of traffic, and what it was chosen from. Prints as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub traffic: Traffic,
    pub kernel: StoreKernel,
    /// Why.
    pub reason: Reason,
    /// The middle of what was timed, fastest first; empty when the kernel was named.
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
    /// what [`Choice::timed`] finds best. [`Choice`] says why; a variable that cannot be followed is
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

    /// Times every kernel that this CPU has on memory, five times; some ten milliseconds. Takes `cached` unless another
    /// one is clearly faster. What runs on the second core meanwhile spoils it: choose before such a thing is started.
    pub fn timed(traffic: Traffic) -> Self {
        let kernels: Vec<_> =
            StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()).collect();
        // The first timing that takes too long is the last: somebody else is on the other core, and who opens a window waits.
        let timed: Vec<_> = (0..TIMINGS).map_while(|_| timing::between_cores(traffic, &kernels)).collect();
        if timed.is_empty() {
            return Self::of(traffic, Reason::FastestAlone, &[timing::alone(&kernels)]);
        }
        Self::of(traffic, Reason::FastestBetweenCores, &timed)
    }

    /// Chooses from several timings of the same kernels in the same order, `cached` among them.
    ///
    /// A kernel is compared with `cached` inside each timing, since another timing may have met another placement.
    fn of(traffic: Traffic, reason: Reason, timed: &[Vec<KernelTiming>]) -> Self {
        let of_cached = |timing: &[KernelTiming]| {
            timing.iter().find(|one| one.kernel == StoreKernel::Cached).map_or(f64::INFINITY, |one| one.ns)
        };
        let count = timed.first().map_or(0, Vec::len);
        let mut timings: Vec<(f64, KernelTiming)> = (0..count)
            .map(|index| {
                let share = middle(timed.iter().map(|timing| timing[index].ns / of_cached(timing)));
                let ns = middle(timed.iter().map(|timing| timing[index].ns));
                (share, KernelTiming { kernel: timed[0][index].kernel, ns })
            })
            .collect();
        timings.sort_by(|a, b| a.0.total_cmp(&b.0));
        let fastest = timings.first().filter(|(share, _)| *share <= CLEARLY_FASTER);
        let kernel = fastest.map_or(StoreKernel::Cached, |(_, timing)| timing.kernel);
        timings.sort_by(|a, b| a.1.ns.total_cmp(&b.1.ns));
        Choice { traffic, kernel, reason, timings: timings.into_iter().map(|(_, timing)| timing).collect() }
    }
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, what) = match (self.traffic, &self.reason) {
            (_, Reason::Named) => return write!(out, "{}: {}, as named", self.traffic, self.kernel),
            (_, Reason::FastestAlone) => ("ns a line", "stored without a reader, for want of a second core"),
            (Traffic::Latency, _) => ("ns", "there and back between two cores"),
            (Traffic::Stream, _) => ("ns a line", "stored, read and blanked on two cores"),
        };
        let why = match self.kernel {
            StoreKernel::Cached => "none is clearly faster",
            _ => "clearly faster than cached",
        };
        write!(out, "{}: {}, {why} {what} (middle of up to {TIMINGS} timings)", self.traffic, self.kernel)?;
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

    fn timings(ns: [f64; 3]) -> Vec<KernelTiming> {
        let kernels = [StoreKernel::Cached, StoreKernel::Nt8, StoreKernel::NtSse2];
        kernels.into_iter().zip(ns).map(|(kernel, ns)| KernelTiming { kernel, ns }).collect()
    }

    #[test]
    fn cached_is_taken_unless_another_is_clearly_faster_in_most_timings() {
        let choose = |timed: &[[f64; 3]]| {
            let timed: Vec<_> = timed.iter().map(|ns| timings(*ns)).collect();
            Choice::of(Traffic::Stream, Reason::FastestBetweenCores, &timed).kernel
        };
        assert_eq!(choose(&[[10.0, 9.0, 8.6]]), StoreKernel::Cached, "faster, but not clearly");
        assert_eq!(choose(&[[10.0, 8.4, 8.0]]), StoreKernel::NtSse2);
        // One timing in which `cached` was starved, and one that met another placement, decide nothing.
        let starved = [[10.0, 12.0, 13.0], [90.0, 12.0, 13.0], [40.0, 48.0, 52.0]];
        assert_eq!(choose(&starved), StoreKernel::Cached);
        assert_eq!(choose(&[[10.0, 5.0, 20.0], [40.0, 20.0, 80.0], [10.0, 50.0, 20.0]]), StoreKernel::Nt8);
    }

    #[test]
    fn timed_choice_is_made_from_all_kernels_that_run_here() {
        for traffic in [Traffic::Latency, Traffic::Stream] {
            let choice = Choice::timed(traffic);
            let timed: Vec<_> = choice.timings.iter().map(|timing| timing.kernel).collect();
            for kernel in StoreKernel::available() {
                assert_eq!(timed.contains(&kernel), kernel.is_for_memory(), "{choice}");
            }
            assert!(timed.contains(&choice.kernel), "{choice}");
            assert!(choice.timings.iter().all(|timing| timing.ns > 0.0 && timing.ns.is_finite()), "{choice}");
            assert!(choice.timings.is_sorted_by(|a, b| a.ns <= b.ns), "{choice}");
            let lines = choice.to_string().lines().count();
            assert_eq!(lines, 1 + choice.timings.len(), "{choice}");
        }
    }
}
