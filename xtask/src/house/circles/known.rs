//! Circles that are allowed: (files of a circle, why it is not cut).

/// Each row goes as soon as its circle is cut; a row without a circle is a finding.
pub const KNOWN: &[(&[&str], &str)] = &[
    (
        &[
            "api/rust/src/error/mod.rs",
            "api/rust/src/error/open.rs",
            "api/rust/src/error/port.rs",
            "api/rust/src/error/window.rs",
        ],
        TO_CUT,
    ),
    (&["app/beeline/src/sim/mod.rs", "app/beeline/src/sim/page.rs"], TO_CUT),
    (
        &[
            "app/beeline/src/wire_ping/client.rs",
            "app/beeline/src/wire_ping/mod.rs",
            "app/beeline/src/wire_ping/server.rs",
        ],
        TO_CUT,
    ),
    (&["xtask/src/generate/drift.rs", "xtask/src/generate/mod.rs", "xtask/src/generate/proof.rs"], TO_CUT),
    (
        &[
            "xtask/src/lanes/cargo.rs",
            "xtask/src/lanes/check.rs",
            "xtask/src/lanes/checked.rs",
            "xtask/src/lanes/mod.rs",
            "xtask/src/lanes/report.rs",
            "xtask/src/lanes/rivals.rs",
            "xtask/src/lanes/schedule.rs",
            "xtask/src/rtl/benches.rs",
            "xtask/src/rtl/compiled.rs",
            "xtask/src/rtl/formal.rs",
            "xtask/src/rtl/mutants/checks.rs",
            "xtask/src/rtl/mutants/mod.rs",
            "xtask/src/rtl/mutants/random.rs",
            "xtask/src/rtl/speed.rs",
            "xtask/src/rtl/synth/area.rs",
            "xtask/src/rtl/synth/depth.rs",
            "xtask/src/rtl/synth/gates.rs",
            "xtask/src/rtl/synth/mod.rs",
            "xtask/src/rtl/synth/route.rs",
        ],
        TO_CUT,
    ),
];

/// The reason of circles that are older than this check: nothing but work is in the way of cutting them.
const TO_CUT: &str = "older than the check";
