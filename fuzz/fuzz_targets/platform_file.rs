//! This target reads platform files. An attacker controls every byte of the file, and a key and a value of `--set`. What
//! can be read keeps its bounds in every row. Setting a row to the value that it has changes nothing else. An error names
//! the file.
#![no_main]

use beeline_platforms::{Platform, Scalar};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let platform = match Platform::from_text("attacker.toml", text) {
        Ok(platform) => platform,
        Err(error) => {
            assert!(error.to_string().contains("attacker.toml"), "an error says where: {error}");
            return;
        }
    };
    check(&platform);
    // The attacker's own words as what follows --set: a comment of the file is both.
    for line in text.lines().filter_map(|line| line.strip_prefix('#')) {
        let (key, value) = line.split_once('=').unwrap_or((line, line));
        if let Ok(changed) = platform.with(key.trim(), value) {
            check(&changed);
        }
    }
});

fn check(platform: &Platform) {
    for row in platform.rows().into_iter().filter(|row| row.source.is_some()) {
        let value = row
            .value
            .parse()
            .map_or_else(|_| Scalar::Word(row.value.trim_matches('"').to_owned()), Scalar::Number);
        assert!(row.parameter.bounds.allow(&value), "{} = {}", row.key, row.value);
        let same = platform.with(&row.key, &row.value).expect("it has this value already");
        let values =
            |platform: &Platform| platform.rows().into_iter().map(|row| row.value).collect::<Vec<_>>();
        assert_eq!(values(&same), values(platform), "{}", row.key);
    }
    assert!(platform.knobs().len() <= platform.rows().len());
    assert!(platform.describe(80).starts_with(&platform.name));
}
