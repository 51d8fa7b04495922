//! What crates.io would be given: the facade with each of its features alone, and an archive of every package that can be
//! published, which a long run builds too.

use toml::{Table, Value};

use crate::effort::Effort;
use crate::failure::Outcome;
use crate::run::Program;
use crate::source::{self, SourceFile};

/// The crate that programs use.
const FACADE: &str = "beeline-ipc";
const FACADE_MANIFEST: &str = "api/rust/Cargo.toml";

/// Checks the facade with no feature and with each one alone, and packs what can be published; a long run builds the archives.
pub fn check(effort: Effort) -> Outcome {
    let manifests = source::files(&["toml"])?;
    let facade = || Program::cargo().args(["check", "--package", FACADE, "--no-default-features"]);
    facade().run()?;
    for feature in features(&manifests) {
        facade().args(["--features", &feature]).run()?;
    }
    // What is not committed is packed too: a check before a commit must see it.
    let cargo = Program::cargo().args(["package", "--allow-dirty"]);
    let cargo = match effort {
        Effort::Short => cargo.args(["--no-verify"]),
        Effort::Long => cargo,
    };
    published(&manifests).iter().fold(cargo, |cargo, name| cargo.args(["--package", name])).run()
}

/// Features of the facade but the default ones.
fn features(manifests: &[SourceFile]) -> Vec<String> {
    let facade = manifests.iter().find(|file| file.path == FACADE_MANIFEST);
    let table = facade.and_then(|file| file.text.parse::<Table>().ok()).unwrap_or_default();
    let features = table.get("features").and_then(Value::as_table).into_iter().flat_map(Table::keys);
    features.filter(|name| *name != "default").cloned().collect()
}

/// Packages whose manifest does not say that they stay here.
fn published(manifests: &[SourceFile]) -> Vec<String> {
    let tables = manifests.iter().filter_map(|file| file.text.parse::<Table>().ok());
    let packages = tables.filter_map(|table| table.get("package").and_then(Value::as_table).cloned());
    let published = packages.filter(|package| !package.contains_key("publish"));
    published.filter_map(|package| package.get("name")?.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_the_facade_are_found_without_the_default() {
        let facade =
            "[package]\nname = \"beeline-ipc\"\n[features]\ndefault = [\"rpc\"]\nrpc = []\nnic = []\n";
        let other = "[package]\nname = \"other\"\n[features]\nx = []\n";
        let files = [SourceFile::new("other/Cargo.toml", other), SourceFile::new(FACADE_MANIFEST, facade)];
        let mut found = features(&files);
        found.sort();
        assert_eq!(found, ["nic", "rpc"]);
    }

    #[test]
    fn packages_that_stay_here_are_not_published() {
        let manifest = |name: &str, rest: &str| {
            SourceFile::new(format!("{name}/Cargo.toml"), format!("[package]\nname = \"{name}\"\n{rest}"))
        };
        let files = [
            SourceFile::new("Cargo.toml", "[workspace]\n[workspace.package]\npublish = false\n"),
            manifest("a", ""),
            manifest("b", "publish.workspace = true\n"),
            manifest("c", "publish = false\n"),
        ];
        assert_eq!(published(&files), ["a"]);
    }
}
