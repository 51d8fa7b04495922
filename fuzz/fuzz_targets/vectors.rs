//! This target reads vector files. An attacker controls the text of the file. The file is refused with an error, or it is a
//! case that can be played: the behavioural NIC then agrees with it or not, and nothing panics or hangs.
#![no_main]

use std::sync::LazyLock;

use beeline_nic_model::{Nic, NicConfig};
use beeline_vectors::{Case, WindowKind, load_folder, run};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// A folder in memory where there is one: on a disk a run takes milliseconds.
const MEMORY: &str = "/dev/shm";
/// The folder that all runs share.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    TempDir::new_in(MEMORY).or_else(|_| TempDir::new()).expect("a temporary folder is there")
});
/// Sizes above these are sound but take more memory and time than a run should.
const MOST_LINES: u32 = 1 << 12;
const MOST_CONTEXTS: u32 = 16;

/// The NIC a case asks for, if there is one and it is not huge.
fn nic(case: &Case) -> Option<Nic> {
    let device = &case.device;
    let is_huge =
        device.window_lines > MOST_LINES || device.pool_lines > MOST_LINES || device.contexts > MOST_CONTEXTS;
    let config = NicConfig {
        queues: 1,
        window_lines: device.window_lines,
        span_lines: device.span_lines,
        contexts: device.contexts,
        pool_lines: device.pool_lines,
        blank: device.window != WindowKind::Observed,
        max_frame_bytes: device.max_frame_bytes,
        ..NicConfig::default()
    };
    if is_huge { None } else { Nic::new(config).ok() }
}

fuzz_target!(|bytes: &[u8]| {
    // A case has the name of its file, so every seed is called `case`.
    std::fs::write(FOLDER.path().join("case.json"), bytes).expect("there is room");
    let Ok(cases) = load_folder(FOLDER.path()) else { return };
    for case in cases {
        let _ = case.counters();
        if let Some(nic) = nic(&case) {
            let _ = run(&case, nic);
        }
    }
});
