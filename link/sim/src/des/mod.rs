//! A deterministic discrete-event core.
//!
//! A model is a state and one type of event, an enum; [`run`] takes the next event from the [`Calendar`] and hands it to
//! the model, which schedules more. There are no threads, tasks or boxed closures: an event costs a few comparisons and no
//! allocation, once the calendar is as large as it gets. Randomness comes from [`stream`], one for each part of a model,
//! so that a part that draws more does not change what others draw.
//!
//! From: models. To: models. Not here: what an event means, and real time.

mod calendar;
mod random;
mod time;

pub use calendar::Calendar;
pub use random::{Stream, stream};
pub use time::Picoseconds;

/// Something that changes when an event happens.
pub trait Model {
    /// What can happen. Keep it small (two words or so): it is moved about in the calendar, and what is larger belongs
    /// into the model, with the event as its index.
    type Event;

    /// `event` happens at `calendar.now()`.
    fn happen(&mut self, event: Self::Event, calendar: &mut Calendar<Self::Event>);
}

/// Lets everything happen that happens before or at `until`, in order; returns how many events that were.
///
/// Time stands at the last event then, not at `until`: [`Calendar::pass_to`] moves it on.
pub fn run<M: Model>(model: &mut M, calendar: &mut Calendar<M::Event>, until: Picoseconds) -> u64 {
    let before = calendar.happened();
    while let Some(event) = calendar.next_until(until) {
        model.happen(event, calendar);
    }
    calendar.happened() - before
}
