//! The files that an installed program carries in itself.

/// Embeds files of this crate by name.
macro_rules! embedded {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $folder, $name, ".toml")),
        )),+]
    };
}

/// Platforms, in alphabetical order; `tests/builtin.rs` compares with the folder.
const PLATFORMS: &[(&str, &str)] = embedded!("": "epyc-7543-cx6dx");

/// Parts that platforms share.
const PARTS: &[(&str, &str)] = embedded!("parts/": "amd-server");

/// The names of all platforms.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PLATFORMS.iter().map(|(name, _)| *name)
}

/// The text of a platform.
pub(crate) fn platform(name: &str) -> Option<&'static str> {
    find(PLATFORMS, name)
}

/// The names of all parts, as `includes` has them.
pub(crate) fn parts() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|(name, _)| *name)
}

/// The text of a part, by the path that `includes` has: `parts/nfp6000.toml`.
pub(crate) fn part(path: &str) -> Option<&'static str> {
    find(PARTS, path.strip_prefix("./").unwrap_or(path).strip_prefix("parts/")?.strip_suffix(".toml")?)
}

fn find(files: &'static [(&str, &str)], name: &str) -> Option<&'static str> {
    files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
