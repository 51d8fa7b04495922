//! A model of a fabric's segments and connections, written from what is documented and not from the code: record 0039, the manual of
//! SISCI's functions, and the states that vendors publish.
//!
//! [`Scope`] says how much there is of everything, and is the model that a checker (`stateright`) goes through: in each state the
//! properties of `model.rs` hold. [`Graph`] has all states and steps, and [`Graph::tour`] makes the calls of all of them on a [`Subject`]
//! that is to behave alike: members in one thread (`host/fabric/tests/states.rs`).
//! `docs/decisions/0051-a-model-of-segment-states.md` says what is left out.
#![forbid(unsafe_code)]

mod model;
mod rules;
mod scope;
mod state;
mod step;
mod told;
mod tour;

pub use scope::{Fault, Scope};
pub use state::{
    Connection, Interrupt, Listener, Made, Member, Segment, Standing, Started, State, Told, ToldOfLink,
    Trigger,
};
pub use step::{ANY, Answer, Call, Event, Of, Refused, Sequence, Step};
pub use tour::{Coverage, Graph, Subject};
