//! Every shared vector of an observed window, on the RTL, of the interfaces that it has. The model runs the same files.
#![cfg(feature = "rtl")]

use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_spec::Interface;
use beeline_vectors::{Case, WindowKind};

/// The one interface that the RTL has not: no interconnect keeps its lines coherent.
const NOT_IN_RTL: Interface = Interface::Coherent;

/// Cycles after which an engine that nobody has wanted stands still in the simulation.
const ASLEEP: u32 = 6000;

fn nic(case: &Case) -> RtlNic {
    let device = &case.device;
    let config = RtlConfig {
        window_lines: device.window_lines,
        span_lines: device.span_lines,
        contexts: device.contexts,
        pool_lines: device.pool_lines,
        max_frame_bytes: device.max_frame_bytes,
        // A frame without room is dropped: one that is held would still be there when the case goes on.
        rx_lossless: false,
        ..RtlConfig::default()
    };
    RtlNic::new(&config).unwrap_or_else(|error| panic!("case {}: {error}", case.name))
}

#[test]
fn the_rtl_agrees_with_every_vector() {
    agrees(|_| ());
}

/// Whatever a queue of theirs needs wakes engines that have stood still since the reset.
#[test]
fn engines_that_stood_still_agree_too() {
    agrees(|nic| {
        for _ in 0..ASLEEP {
            nic.cycle();
        }
    });
}

fn agrees(before: impl Fn(&mut RtlNic)) {
    let cases = beeline_vectors::load().expect("the cases of the project can be read");
    let only = std::env::var("BEELINE_CASE").ok();
    let cases: Vec<&Case> = cases
        .iter()
        .filter(|case| {
            matches!(case.device.window, WindowKind::Observed) && case.device.interface != NOT_IN_RTL
        })
        .filter(|case| only.as_ref().is_none_or(|name| *name == case.name))
        .collect();
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let mut nic = nic(case);
            before(&mut nic);
            beeline_vectors::run(case, nic).err()
        })
        .map(|mismatch| mismatch.to_string())
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
