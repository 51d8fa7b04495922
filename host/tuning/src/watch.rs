//! Whether a tuning still holds, for a program that runs for long: its cores may have been moved since.

use std::time::Duration;

use crate::find::{Basis, Found};
use crate::kept::Kept;
use crate::line::same_placement;
use crate::measure::{Measured, NotTimed, line_ns, measure};
use crate::tuning::Tuning;

/// A tuning, and how its two cores lay to each other when it was found.
///
/// Nothing happens behind the program's back: it asks at a moment that suits it ([`TuningWatch::look`]), between two bursts of
/// messages or while it has nothing to do. It learns that a look is worth its time from round trips that it sees anyhow
/// ([`TuningWatch::round_trip_changed`]), or looks now and then.
#[derive(Clone, Debug)]
pub struct TuningWatch {
    cores: Option<[usize; 2]>,
    tuning: Tuning,
    /// Round trip of a bare line at the last look that found one.
    line_ns: Option<f64>,
    /// Round trip that the program saw first since the last look.
    round_trip: Option<Duration>,
}

impl TuningWatch {
    /// Finds the tuning for the core of this thread and another one, as [`Tuning::find`] does.
    pub fn find() -> Self {
        Self::new(None)
    }

    /// Finds the tuning for two cores by their numbers: that of the sender and that of the receiver, where both are pinned.
    pub fn between(cores: [usize; 2]) -> Self {
        Self::new(Some(cores))
    }

    fn new(cores: Option<[usize; 2]>) -> Self {
        let found = Found::now(cores);
        TuningWatch { cores, tuning: found.tuning.overridden(), line_ns: found.line_ns, round_trip: None }
    }

    /// Returns what was found last. What the environment names is in it, as in [`Tuning::find`].
    pub fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// Whether a round trip is so much longer or shorter, by half, than the first one since the last look that the cores have
    /// probably moved. Compares two times and no more. Give it the middle of many round trips of one kind.
    pub fn round_trip_changed(&mut self, round_trip: Duration) -> bool {
        let ns = |time: Duration| time.as_nanos() as f64;
        let first = *self.round_trip.get_or_insert(round_trip);
        !same_placement(ns(first), ns(round_trip))
    }

    /// Looks how long a line takes between the cores, for a millisecond, more where somebody works on the second one. Where that
    /// has changed by half, finds the tuning that was kept for such a line, or times one as [`Tuning::find`] does, in some tenth
    /// of a second. Returns it if it is another one than before.
    ///
    /// Windows that are opened in this process from then on go by it; those that are open go on as they are until they are given
    /// it. Returns `None`, too, where nothing can be timed.
    pub fn look(&mut self) -> Option<Tuning> {
        let cores = self.cores;
        self.look_with(Kept::of_this_user, line_ns(cores), || measure(cores))
    }

    fn look_with(
        &mut self,
        kept: impl FnOnce() -> Option<Kept>,
        line: Result<f64, NotTimed>,
        measure: impl FnOnce() -> Result<Measured, NotTimed>,
    ) -> Option<Tuning> {
        // Whatever comes of the look: a round trip that changed without the line is not asked about for ever.
        self.round_trip = None;
        let now_ns = line.ok()?;
        if self.line_ns.is_some_and(|then_ns| same_placement(then_ns, now_ns)) {
            return None;
        }
        let found = Found::from(kept().as_ref(), || Ok(now_ns), measure);
        if let Basis::Untimed(_) = found.basis {
            return None;
        }
        let found = found.take_up();
        self.line_ns = found.line_ns;
        let tuning = found.tuning.overridden();
        (core::mem::replace(&mut self.tuning, tuning) != tuning).then_some(tuning)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;
    use crate::kept::tests::kept;
    use crate::tuning::ReceiveTuning;

    fn measured(line_ns: f64, credit_parts: u32) -> Result<Measured, NotTimed> {
        let receive = ReceiveTuning { credit_parts, ..Tuning::default().receive };
        Ok(Measured { tuning: Tuning { receive, ..Tuning::default() }, line_ns, timings: Vec::new() })
    }

    fn never() -> Result<Measured, NotTimed> {
        panic!("nothing is timed")
    }

    fn no_file() -> Option<Kept> {
        panic!("no file is read")
    }

    /// A watch of its own cores, which are not there. With the lock no other test takes a tuning up.
    fn watch(line_ns: Option<f64>) -> (MutexGuard<'static, ()>, TuningWatch) {
        static TAKES_UP: Mutex<()> = Mutex::new(());
        let cores = Some([1 << 20, 1 << 21]);
        let watch = TuningWatch { cores, tuning: Tuning::default(), line_ns, round_trip: None };
        (TAKES_UP.lock().unwrap_or_else(PoisonError::into_inner), watch)
    }

    #[test]
    fn tuning_is_chosen_again_when_the_line_changes_by_half_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        let file = || Some(kept.clone());
        let (_lock, mut watch) = watch(Some(100.0));
        for line_ns in [149.0, 100.0, 67.0] {
            assert_eq!(watch.look_with(no_file, Ok(line_ns), never), None, "{line_ns}");
        }
        let far = watch.look_with(file, Ok(400.0), || measured(410.0, 16)).expect("it was timed anew");
        assert_eq!((far.receive.credit_parts, far), (16, watch.tuning()));
        assert_eq!(watch.look_with(no_file, Ok(500.0), never), None, "compared with the last one found");
        let near = watch.look_with(file, Ok(100.0), || measured(100.0, 4)).expect("another one");
        assert_eq!(near.receive.credit_parts, 4);
        assert_eq!(watch.look_with(file, Ok(400.0), never), Some(far), "it was kept");
        assert_eq!(crate::in_use::in_use(), Some(far), "windows that are opened go by it");
    }

    #[test]
    fn what_cannot_be_timed_leaves_the_tuning_as_it_is_and_is_tried_again() {
        let (_lock, mut watch) = watch(Some(100.0));
        assert_eq!(watch.look_with(no_file, Err(NotTimed::Taken), never), None);
        assert_eq!(watch.look_with(|| None, Ok(400.0), || Err(NotTimed::Taken)), None);
        assert_eq!(watch.tuning(), Tuning::default());
        assert!(watch.look_with(|| None, Ok(400.0), || measured(400.0, 16)).is_some(), "the line changed");
    }

    #[test]
    fn first_line_that_is_found_is_new() {
        let (_lock, mut watch) = watch(None);
        assert!(watch.look_with(|| None, Ok(100.0), || measured(100.0, 2)).is_some());
        assert_eq!(watch.look_with(no_file, Ok(100.0), never), None);
    }

    #[test]
    fn tuning_that_is_found_to_be_the_same_is_no_news() {
        let (_lock, mut watch) = watch(Some(100.0));
        let same = || measured(400.0, Tuning::default().receive.credit_parts);
        assert_eq!(watch.look_with(|| None, Ok(400.0), same), None);
        assert_eq!(watch.look_with(no_file, Ok(400.0), never), None, "and is not looked for again");
    }

    #[test]
    fn round_trip_that_changes_by_half_is_told_until_the_next_look() {
        let (_lock, mut watch) = watch(Some(100.0));
        let mut changed = |ns| watch.round_trip_changed(Duration::from_nanos(ns));
        assert_eq!(
            [250, 374, 167, 375, 166, 250].map(&mut changed),
            [false, false, false, true, true, false]
        );
        assert_eq!(watch.look_with(no_file, Ok(100.0), never), None);
        assert!(
            !watch.round_trip_changed(Duration::from_nanos(375)),
            "the line did not change: this is the new one"
        );
    }

    #[test]
    fn look_between_cores_that_are_not_there_changes_nothing() {
        let (_lock, mut watch) = watch(None);
        assert_eq!((watch.look(), watch.line_ns, watch.tuning()), (None, None, Tuning::default()));
    }
}
