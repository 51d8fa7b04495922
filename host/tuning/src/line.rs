//! What the round trip of a bare line says of the two cores: a pure function of times.

/// Two looks at one placement differ by less than this. A hypervisor that moves a core changes the line by more.
const SAME_WITHIN: f64 = 1.5;
/// No interconnect of one machine takes so long; two threads that take turns on one core do.
const SHARED_FROM_NS: f64 = 1_500.0;

/// Whether two round trips of a bare line are of one placement: neither is half as long again as the other.
pub fn same_placement(a_ns: f64, b_ns: f64) -> bool {
    a_ns.max(b_ns) < a_ns.min(b_ns) * SAME_WITHIN
}

/// Whether a round trip of a bare line is so long that both threads take turns on one core.
pub fn takes_turns(line_ns: f64) -> bool {
    line_ns >= SHARED_FROM_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_of_one_placement_within_half() {
        assert!(same_placement(100.0, 149.0) && same_placement(149.0, 100.0));
        assert!(!same_placement(100.0, 150.0) && !same_placement(150.0, 100.0));
        assert!(!same_placement(100.0, f64::INFINITY));
    }

    #[test]
    fn line_of_one_and_a_half_microseconds_is_of_threads_that_take_turns() {
        assert!(!takes_turns(1_499.0) && takes_turns(1_500.0));
    }
}
