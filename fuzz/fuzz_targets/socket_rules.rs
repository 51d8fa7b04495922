//! This target reads rules: `beeline.toml`, and the variables of a process. Whoever writes them gets rules that stay the same when they are passed on, or an
//! error that says what is wrong.
#![no_main]

use std::path::Path;

use beeline_socket_rules::{KEYS, Rules, RulesError};
use libfuzzer_sys::fuzz_target;

fn check(read: Result<Rules, RulesError>) {
    match read {
        Ok(rules) => {
            assert!(rules.window_bytes.is_power_of_two());
            let passed = [("BEELINE_SOCKETS_RULES".into(), rules.resolved().into())];
            assert_eq!(Rules::of(passed, Path::new("/none")).expect("rules that were read"), rules);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fuzz_target!(|input: (&str, u8, &str)| {
    let (text, key, value) = input;
    check(Rules::of_text(Path::new("beeline.toml"), text));
    let key = KEYS[usize::from(key) % KEYS.len()].name;
    check(Rules::of_text(Path::new("beeline.toml"), &format!("[sockets]\n{key} = {value}\n")));
    let variable = format!("BEELINE_SOCKETS_{}", key.to_ascii_uppercase());
    check(Rules::of([(variable.into(), value.into())], Path::new("/none")));
    check(Rules::of([("BEELINE_SOCKETS_RULES".into(), text.into())], Path::new("/none")));
});
