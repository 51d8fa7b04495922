//! Every shared vector, on the model. The RTL runs the same files.

use beeline_nic_model::{Nic, NicConfig};
use beeline_vectors::{Case, WindowKind};

fn nic(case: &Case) -> Nic {
    let device = &case.device;
    let config = NicConfig {
        queues: 1,
        window_lines: device.window_lines,
        span_lines: device.span_lines,
        contexts: device.contexts,
        pool_lines: device.pool_lines,
        blank: matches!(device.window, WindowKind::Blank(_)),
        max_frame_bytes: device.max_frame_bytes,
        ..NicConfig::default()
    };
    Nic::new(config).unwrap_or_else(|error| panic!("case {}: {error}", case.name))
}

#[test]
fn the_model_agrees_with_every_vector() {
    let cases = beeline_vectors::load().expect("the cases of the project can be read");
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| beeline_vectors::run(case, nic(case)).err())
        .map(|mismatch| mismatch.to_string())
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
