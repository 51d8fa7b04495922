//! What members store through maps, beside stores of a machine without a fabric.

use beeline_experiments::Data;
use beeline_experiments::measure::{Bench, Fences};
use beeline_hosts::{store_rate_gbps, store_time_ns};
use beeline_platforms::Platform;

#[test]
fn stores_through_a_map_take_what_stores_of_the_machine_take() {
    for (name, fences, bytes) in [
        ("vpx3-1259-gen2x4-linux", Fences::None, 8),
        ("vpx3-1259-gen2x4-linux", Fences::None, 1000),
        ("vpx3-1259-gen2x4-linux", Fences::PerMessage, 65536),
        ("vpx3-1259-gen3x8", Fences::PerMessage, 64),
        ("vpx3-1259-gen3x8", Fences::PerMessage, 1024),
        ("vpx3-1259-gen3x8", Fences::PerLine, 256),
    ] {
        // So that it shows: these boards are said to call for nothing.
        let platform = Platform::named(name).unwrap().with("core.copy_call_ns", "25").unwrap();
        let bench = Bench { platform: &platform, seed: 1, data: Data::default() };
        let alone = bench.store_time_ns(bytes as u64, fences).unwrap();
        let mapped = store_time_ns(&platform, bytes, fences, 1).unwrap();
        assert!((mapped / alone - 1.0).abs() < 0.001, "{name} {fences:?} {bytes}: {mapped}, {alone} ns");
        // What leaves the core comes to the other side, in the long run.
        let alone = bench.store_rate_gbps(bytes as u64, fences, 1).unwrap();
        let mapped = store_rate_gbps(&platform, bytes, fences, 1).unwrap();
        assert!((mapped / alone - 1.0).abs() < 0.01, "{name} {fences:?} {bytes}: {mapped}, {alone} Gbit/s");
    }
}
