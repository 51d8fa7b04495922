//! Finding a tuning: named by the user, kept from before, timed now, or the defaults, in this order.

use std::path::PathBuf;
use std::time::SystemTime;

use beeline_mmio::{KERNEL_VARIABLE, StoreKernel, Traffic, kernel_from_environment};

use crate::in_use::{in_use, take_up};
use crate::kept::{Entry, Kept};
use crate::line::same_placement;
use crate::measure::{Measured, MeasuredKernel, NotTimed, Timing, line_ns, measure, measure_kernel};
use crate::once::OncePerProcess;
use crate::overrides::{Overrides, TUNING_VARIABLE};
use crate::tuning::{ReceiveTuning, Tuning};

/// Where a tuning comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// It was timed just now.
    Timed,
    /// It was timed before, and a line takes about the time that it took then.
    Kept,
    /// Nothing could be timed now. It is what was kept last, or the default.
    Untimed(NotTimed),
}

/// A tuning, and what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// As it was timed: the environment may say otherwise.
    pub tuning: Tuning,
    pub basis: Basis,
    /// Round trip of a bare line now, in nanoseconds.
    pub line_ns: Option<f64>,
    /// Round trip of a bare line when the tuning was timed.
    pub line_then_ns: Option<f64>,
    /// When it was timed; `None` of the default.
    pub found: Option<SystemTime>,
    /// What it was chosen from.
    pub timings: Vec<Timing>,
}

impl Found {
    /// Looks how long a line takes between two cores, those given or this thread's and another one, a millisecond. Takes the
    /// tuning that was found for about that time; otherwise times one, in some tenth of a second, and keeps it. What runs on
    /// the second core meanwhile spoils it.
    pub fn now(cores: Option<[usize; 2]>) -> Self {
        Self::from(Kept::of_this_user().as_ref(), || line_ns(cores), || measure(cores)).take_up()
    }

    /// As [`Found::now`], but times one whatever is kept.
    pub fn anew(cores: Option<[usize; 2]>) -> Self {
        Self::timed(Kept::of_this_user().as_ref(), None, || measure(cores)).take_up()
    }

    /// Has windows that this process opens from now on go by what was found, if anything was.
    pub(crate) fn take_up(self) -> Self {
        if self.found.is_some() {
            take_up(self.tuning);
        }
        self
    }

    pub(crate) fn from(
        kept: Option<&Kept>,
        line: impl FnOnce() -> Result<f64, NotTimed>,
        measure: impl FnOnce() -> Result<Measured, NotTimed>,
    ) -> Self {
        let line_ns = match line() {
            Ok(line_ns) => line_ns,
            Err(why) => return Self::untimed(kept, None, why),
        };
        if let Some((kept, entry, tuning)) = kept.and_then(|kept| kept_for(kept, line_ns)) {
            // It is the one in use from now on, for whoever does not look at the line.
            kept.keep(entry.clone());
            return Self::of_entry(entry, tuning, Basis::Kept, Some(line_ns));
        }
        Self::timed(kept, Some(line_ns), measure)
    }

    fn timed(
        kept: Option<&Kept>,
        line_ns: Option<f64>,
        measure: impl FnOnce() -> Result<Measured, NotTimed>,
    ) -> Self {
        let Measured { tuning, line_ns, timings } = match measure() {
            Ok(measured) => measured,
            Err(why) => return Self::untimed(kept, line_ns, why),
        };
        let entry = Entry {
            line_ns,
            found: kept.map_or_else(SystemTime::now, Kept::now),
            latency: Some(tuning.latency),
            stream: Some(tuning.stream),
            receive: Some(tuning.receive),
            timings,
        };
        if let Some(kept) = kept {
            kept.keep(entry.clone());
        }
        Self::of_entry(entry, tuning, Basis::Timed, Some(line_ns))
    }

    fn untimed(kept: Option<&Kept>, line_ns: Option<f64>, why: NotTimed) -> Self {
        let basis = Basis::Untimed(why);
        match kept.and_then(last) {
            Some((entry, tuning)) => Self::of_entry(entry, tuning, basis, line_ns),
            None => Found {
                tuning: Tuning::default(),
                basis,
                line_ns,
                line_then_ns: None,
                found: None,
                timings: Vec::new(),
            },
        }
    }

    fn of_entry(entry: Entry, tuning: Tuning, basis: Basis, line_ns: Option<f64>) -> Self {
        Found {
            tuning,
            basis,
            line_ns,
            line_then_ns: Some(entry.line_ns),
            found: Some(entry.found),
            timings: entry.timings,
        }
    }
}

/// The file in which tunings are kept; `None` where this user has no folder for it.
pub fn kept_file() -> Option<PathBuf> {
    Kept::of_this_user().map(|kept| kept.path())
}

/// A whole tuning that was found for a line of about this time.
fn kept_for(kept: &Kept, line_ns: f64) -> Option<(&Kept, Entry, Tuning)> {
    let entries = kept.entries().into_iter();
    entries
        .filter(|entry| same_placement(entry.line_ns, line_ns))
        .find_map(|entry| entry.tuning().map(|tuning| (kept, entry, tuning)))
}

/// The whole tuning that was in use last.
fn last(kept: &Kept) -> Option<(Entry, Tuning)> {
    kept.entries().into_iter().find_map(|entry| entry.tuning().map(|tuning| (entry, tuning)))
}

impl Tuning {
    /// The tuning for the cores of this machine as they lie now: what the environment names, what was found before for a line
    /// of about this round trip, or what is timed now, which takes some tenth of a second and a second core. Where nothing can be
    /// timed, as [`Tuning::kept`].
    pub fn find() -> Self {
        Found::now(None).tuning.overridden()
    }

    /// What the environment names and what was found last, else the default; times nothing.
    pub fn kept() -> Self {
        let found = Kept::of_this_user().as_ref().and_then(last);
        found.map(|(_, tuning)| tuning).unwrap_or_default().overridden()
    }

    pub(crate) fn overridden(self) -> Self {
        let kernel = kernel_from_environment().ok().flatten();
        let Tuning { latency, stream, .. } = self;
        let stream = kernel.unwrap_or(stream);
        let receive = received(environment(), Some(self), Some(stream));
        Tuning { latency: kernel.unwrap_or(latency), stream, receive }
    }
}

/// How to receive from a sender that stores so: as the environment says, as was found last for that kernel, in this process or
/// else before it, or by default. Times nothing; the file is read once in a process.
pub fn receive_for(sender: Option<StoreKernel>) -> ReceiveTuning {
    static KEPT: OncePerProcess<(Overrides, Option<Tuning>)> = OncePerProcess::new();
    let (overrides, tuning) = *KEPT.get_or_init(|| {
        let found = Kept::of_this_user().as_ref().and_then(last);
        (environment(), found.map(|(_, tuning)| tuning))
    });
    received(overrides, in_use().or(tuning), sender)
}

fn received(overrides: Overrides, tuning: Option<Tuning>, sender: Option<StoreKernel>) -> ReceiveTuning {
    let default = ReceiveTuning::for_sender(sender);
    // What was timed with one kernel says nothing about another: lines come from its cache, or from memory.
    let timed = tuning.filter(|tuning| sender == Some(tuning.stream) && !overrides.ignores_kept);
    overrides.over(timed.map_or(default, |tuning| tuning.receive))
}

/// What the environment says of receivers; what cannot be followed is told once and is as good as nothing.
fn environment() -> Overrides {
    Overrides::from_environment().unwrap_or_else(|error| {
        tracing::warn!("{TUNING_VARIABLE}: {error}; it is ignored");
        Overrides::default()
    })
}

/// The store kernel for a kind of traffic: what the environment names, what this process found last, what was found before it, or
/// what is timed now, once in a process, which takes some milliseconds and is kept. Does not look at the line where something is kept.
pub fn kernel_for(traffic: Traffic) -> StoreKernel {
    static NAMED: OncePerProcess<Option<StoreKernel>> = OncePerProcess::new();
    static LATENCY: OncePerProcess<StoreKernel> = OncePerProcess::new();
    static STREAM: OncePerProcess<StoreKernel> = OncePerProcess::new();
    let known = NAMED.get_or_init(kernel_named).or_else(|| in_use().map(|tuning| tuning.kernel(traffic)));
    if let Some(kernel) = known {
        return kernel;
    }
    let known = match traffic {
        Traffic::Stream => &STREAM,
        _ => &LATENCY,
    };
    *known.get_or_init(|| {
        let kept = Kept::of_this_user();
        let known =
            kept.as_ref().and_then(|kept| kept.entries().into_iter().find_map(|entry| entry.kernel(traffic)));
        known.unwrap_or_else(|| kernel_timed(kept.as_ref(), traffic, measure_kernel(None, traffic)))
    })
}

/// As [`kernel_for`], but what was found before holds only if a line takes about the time that it took then; that look takes a
/// millisecond.
pub fn kernel_now(traffic: Traffic) -> StoreKernel {
    kernel_named()
        .unwrap_or_else(|| kernel_from(Kept::of_this_user().as_ref(), traffic, line_ns(None), measure_kernel))
}

fn kernel_named() -> Option<StoreKernel> {
    kernel_from_environment().unwrap_or_else(|error| {
        tracing::warn!("{KERNEL_VARIABLE}: {error}; it is ignored");
        None
    })
}

fn kernel_from(
    kept: Option<&Kept>,
    traffic: Traffic,
    line: Result<f64, NotTimed>,
    measure: impl FnOnce(Option<[usize; 2]>, Traffic) -> Result<MeasuredKernel, NotTimed>,
) -> StoreKernel {
    let known = kept.zip(line.ok()).and_then(|(kept, line_ns)| {
        let mut entries = kept.entries().into_iter().filter(|entry| same_placement(entry.line_ns, line_ns));
        entries.find_map(|entry| entry.kernel(traffic))
    });
    known.unwrap_or_else(|| kernel_timed(kept, traffic, measure(None, traffic)))
}

/// Keeps the kernel that was chosen, if one was timed; else it is the default.
fn kernel_timed(
    kept: Option<&Kept>,
    traffic: Traffic,
    measured: Result<MeasuredKernel, NotTimed>,
) -> StoreKernel {
    let MeasuredKernel { kernel, line_ns, .. } = match measured {
        Ok(measured) => measured,
        Err(why) => {
            tracing::debug!(%why, "no store kernel is timed");
            return Tuning::default().kernel(traffic);
        }
    };
    if let Some(kept) = kept {
        let same = kept.entries().into_iter().find(|entry| same_placement(entry.line_ns, line_ns));
        let mut entry = same.unwrap_or(Entry {
            line_ns,
            found: kept.now(),
            latency: None,
            stream: None,
            receive: None,
            timings: Vec::new(),
        });
        match traffic {
            Traffic::Stream => entry.stream = Some(kernel),
            _ => entry.latency = Some(kernel),
        }
        kept.keep(entry);
    }
    kernel
}

#[cfg(test)]
mod tests;
