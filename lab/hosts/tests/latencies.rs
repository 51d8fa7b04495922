//! What a store takes between two hosts, beside sums by hand.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

use beeline_hosts::{interrupt_latency_ns, message_latency_ns, multicast_ns, ping_pong_ns, store_latency_ns};
use beeline_platforms::Platform;

const PLATFORM: &str = "vpx3-1259-gen2x4-linux";

fn boards() -> Platform {
    Platform::named(PLATFORM).unwrap()
}

#[test]
fn store_is_found_at_the_sum_of_what_is_in_its_way() {
    let platform = boards();
    let found = store_latency_ns(&platform, 1).unwrap();
    let (core, root) = (&platform.core, &platform.root_complex);
    let ends = [
        core.message_ns.value,
        core.store_ns.value,
        root.write_latency_ns.value,
        root.write_visible_ns.value,
    ];
    let received = [core.line_wake_ns.value, core.poll_ns.value];
    let links =
        platform.hops.iter().map(|hop| hop.link.flight_ns.value).chain([platform.link.flight_ns.value]);
    let hops = platform.hops.iter().map(|hop| hop.latency_ns.value);
    let times = ends.into_iter().chain(received).chain(links).chain(hops);
    // A word with its header is 32 bytes, half a nanosecond each on four lanes of generation 2, on each link.
    let wires = 16.0 * (platform.hops.len() + 1) as f64;
    let sum = times.map(|time| time.nanoseconds()).sum::<f64>() + wires;
    // The poll that finds it begins up to a poll later, and an ordered set may be in the way.
    assert!((sum..sum + core.poll_ns.value.nanoseconds() + 10.0).contains(&found), "{found}, {sum}");
    let there_and_back = ping_pong_ns(&platform, 1).unwrap();
    assert!((there_and_back - 2.0 * found).abs() < 20.0, "{there_and_back}, {found}");
}

#[test]
fn faster_parts_are_faster() {
    let slow = store_latency_ns(&boards(), 1).unwrap();
    let near = |key: &str, value: &str| store_latency_ns(&boards().with(key, value).unwrap(), 1).unwrap();
    let wake = near("core.line_wake_ns", "30");
    assert!((slow - wake - 100.0).abs() < 4.0, "{slow}, {wake}");
    assert!(near("link.lanes", "8") < slow);
}

#[test]
fn each_host_of_a_group_makes_its_answers_later() {
    let times: Vec<f64> = [2, 3, 8].iter().map(|hosts| multicast_ns(&boards(), *hosts, 1).unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    // The answers come by one link and are looked at one after the other: at least the load of a line each, of which half counts.
    let wake = boards().core.line_wake_ns.value.nanoseconds();
    assert!(times[2] - times[1] > 5.0 * wake / 2.0, "{times:?}");
    assert!(multicast_ns(&boards(), 9, 1).is_err(), "the switch has eight ports");
    assert!(
        multicast_ns(&Platform::named("dolphin-ntb").unwrap(), 3, 1).is_err(),
        "it has no central switch"
    );
}

/// A trigger is a store of a word that is polled. A message of one line has more bytes on the links than that, and each further line adds its
/// own time.
#[test]
fn message_takes_longer_than_a_plain_interrupt_by_its_lines() {
    let (store, plain) =
        (store_latency_ns(&boards(), 1).unwrap(), interrupt_latency_ns(&boards(), 1).unwrap());
    let messages = [8, 56, 1024, 2048].map(|bytes| message_latency_ns(&boards(), bytes, 1).unwrap());
    assert!(plain > store - 60.0 && plain < store + 400.0, "{plain}, {store}");
    assert!((messages[0] - messages[1]).abs() < 1.0, "both are one line: {messages:?}");
    assert!(messages[0] > plain && messages[0] < plain + 600.0, "{plain}, {messages:?}");
    // On four lanes of generation 2 a line and its header take 44 ns.
    let lines = (messages[3] - messages[2]) / 16.0;
    assert!(lines > 44.0 && lines < 44.0 + 2.0 * boards().core.line_wake_ns.value.nanoseconds(), "{lines}");
}
