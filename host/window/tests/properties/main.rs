//! Properties of a window under every disorder: any plan of sends, reservations, batches and changes of the receiver's tuning, over
//! many laps, with stores that arrive in any order and in any pieces, comes out byte for byte, and no word is stored twice a lap or
//! over a line that is not free (`test_memory` checks that). Payload words are drawn from the blank and its
//! neighbours, so that escaping runs on most messages.

mod blank;
mod bytes;
mod death;
mod given;
mod hostile;
#[allow(dead_code, reason = "the unit tests use the rest of it")]
#[path = "../../src/lap/test_memory.rs"]
mod lap_memory;
mod laps;
mod observed;
mod plan;
#[allow(dead_code, reason = "the unit tests use the rest of it")]
#[path = "../../src/test_memory.rs"]
mod test_memory;

use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// The blank of every window here.
const BLANK: u64 = 0x8000_0000_0000_0001;

/// Runs `property` on `cases` inputs (few under Miri). A failing input is printed, its seed is kept by proptest.
fn check<S: proptest::strategy::Strategy>(
    cases: u32,
    strategy: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let cases = if cfg!(miri) { 2 } else { cases };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, property);
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
