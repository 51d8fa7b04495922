//! This target reads `beeline.toml` and the variable of the node. Whoever writes them gets what a fabric allows, or an error.
#![no_main]

use beeline_fabric_process::fuzzing::configuration;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, Option<&str>)| {
    configuration(input.0, input.1);
});
