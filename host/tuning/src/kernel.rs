//! One store kernel, chosen by timing for one kind of traffic: for reports that say what it was chosen from.

use core::fmt;

use beeline_mmio::{StoreKernel, Traffic};

use crate::measure::{NotTimed, Timing, measure_kernel};
use crate::stream::ROUNDS;

/// A kernel for a kind of traffic, and what it was chosen from. Prints as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelChoice {
    pub traffic: Traffic,
    pub kernel: StoreKernel,
    /// The middle of what each kernel took, the fastest first; or why nothing was timed. `None` where it was named.
    pub timings: Option<Result<Vec<Timing>, NotTimed>>,
}

impl KernelChoice {
    /// What was named stands; nothing is timed.
    pub fn named(traffic: Traffic, kernel: StoreKernel) -> Self {
        KernelChoice { traffic, kernel, timings: None }
    }

    /// Times the kernels as [`crate::Tuning::find`] does, whatever is kept, between two cores with nothing to do; keeps nothing.
    /// Where nothing can be timed it is `cached`.
    pub fn timed(traffic: Traffic, cores: [usize; 2]) -> Self {
        match measure_kernel(Some(cores), traffic) {
            Ok(mut measured) => {
                measured.timings.sort_by(|a, b| a.ns.total_cmp(&b.ns));
                KernelChoice { traffic, kernel: measured.kernel, timings: Some(Ok(measured.timings)) }
            }
            Err(why) => KernelChoice { traffic, kernel: StoreKernel::Cached, timings: Some(Err(why)) },
        }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}, ", self.traffic, self.kernel)?;
        let timings = match &self.timings {
            None => return out.write_str("as named"),
            Some(Err(why)) => return write!(out, "not timed: {why}"),
            Some(Ok(timings)) => timings,
        };
        let (unit, what) = match self.traffic {
            Traffic::Stream => ("ns a message", "for messages sent and received in bulk between two cores"),
            _ => ("ns", "for a message there and back between two cores"),
        };
        let why = match self.kernel {
            StoreKernel::Cached => "none is clearly faster",
            _ => "clearly faster than cached",
        };
        write!(out, "{why} {what} (middle of {ROUNDS} timings)")?;
        for timing in timings {
            write!(out, "\n  {:<10} {:>8.1} {unit}", timing.candidate, timing.ns)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use beeline_mmio::cpu;

    use super::*;

    #[test]
    fn choice_says_what_it_was_made_from() {
        let timing =
            |candidate: &str, ns| Timing { of: "stream".to_owned(), candidate: candidate.to_owned(), ns };
        let timings = vec![timing("cached", 4.25), timing("nt8", 7.0)];
        let traffic = Traffic::Stream;
        let choice = KernelChoice { traffic, kernel: StoreKernel::Cached, timings: Some(Ok(timings)) };
        let text = choice.to_string();
        for part in
            ["stream: cached, none is clearly faster", "5 timings", "cached          4.2 ns a message"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let untimed = KernelChoice { timings: Some(Err(NotTimed::OneCore)), ..choice };
        assert!(untimed.to_string().ends_with("not timed: this process may run on one core only"));
        let named = KernelChoice::named(traffic, StoreKernel::Nt8);
        assert_eq!(named.to_string(), "stream: nt8, as named");
    }

    #[test]
    fn kernels_are_timed_for_their_traffic_or_cached_stands() {
        for traffic in [Traffic::Latency, Traffic::Stream] {
            let nowhere = KernelChoice::timed(traffic, [1 << 20, 1 << 21]);
            assert_eq!((nowhere.kernel, nowhere.timings), (StoreKernel::Cached, Some(Err(NotTimed::Taken))));
            let Some(cores) = cpu::two_cores() else { return };
            if let KernelChoice { kernel, timings: Some(Ok(timings)), .. } =
                KernelChoice::timed(traffic, cores)
            {
                assert!(timings.is_sorted_by(|a, b| a.ns <= b.ns), "{timings:?}");
                assert!(timings.iter().any(|timing| timing.candidate == kernel.name()), "{timings:?}");
            }
        }
    }
}
