//! This target reads what was timed before: the file of the cache folder and the variable `BEELINE_TUNING`. An attacker controls
//! every byte of both. What is believed can be used on this machine, keeps its bounds, and prints no control characters.
#![no_main]

use beeline_tuning::{Overrides, ReceiveTuning, fuzzing};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    for entry in fuzzing::file(text).into_iter().flatten() {
        assert!(entry.line_ns > 0.0 && entry.line_ns.is_finite());
        for timing in &entry.timings {
            assert!(timing.ns > 0.0 && timing.ns.is_finite());
            assert!([&timing.of, &timing.candidate].into_iter().all(|word| !word.contains(char::is_control)));
        }
        let Some(tuning) = entry.tuning else { continue };
        for kernel in [tuning.latency, tuning.stream] {
            assert!(kernel.is_available() && kernel.is_for_memory(), "{kernel}");
        }
        check(tuning.receive);
    }
    let Some(overrides) = std::str::from_utf8(text).ok().and_then(|text| text.parse::<Overrides>().ok())
    else {
        return;
    };
    check(overrides.over(ReceiveTuning::for_sender(None)));
});

/// What is shown can be said again, and is in bounds.
fn check(receive: ReceiveTuning) {
    assert!((2..=1024).contains(&receive.credit_parts) && receive.prefetch.lines() <= 1024, "{receive}");
    let again: Overrides = receive.to_string().parse().expect("what is shown can be said");
    assert_eq!(again.over(ReceiveTuning::for_sender(None)), receive);
}
