//! The behavioural NIC agrees with every shared vector.

use beeline_nic_model::{Nic, NicConfig};
use beeline_vectors::{Case, load, run};

fn nic(case: &Case) -> Nic {
    let device = &case.device;
    let config = NicConfig {
        queues: 1,
        window_lines: device.window_lines,
        span_lines: device.span_lines,
        contexts: device.contexts,
        pool_lines: device.pool_lines,
        blank: device.window.blank() != 0,
        max_frame_bytes: device.max_frame_bytes,
        ..NicConfig::default()
    };
    Nic::new(config).unwrap_or_else(|error| panic!("case {}: {error}", case.name))
}

#[test]
fn the_model_agrees_with_every_vector() {
    let cases = load().unwrap_or_else(|error| panic!("{error}"));
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| run(case, nic(case)).err())
        .map(|mismatch| mismatch.to_string())
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    for interface in ["kpio", "wrap", "blank"] {
        assert!(cases.iter().any(|case| case.name.starts_with(interface)), "no case about {interface}");
    }
}
