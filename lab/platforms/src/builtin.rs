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
const PLATFORMS: &[(&str, &str)] = embedded!("": "bdw-nfp6000-local", "bdw-nfp6000-local-iommu", "bdw-nfp6000-remote", "ccnic-icelake", "champ-xd1-gen3x4", "connect-ib-xeon", "dolphin-ntb", "enso-stratix10", "enzian-eci", "enzian-pcie", "epyc-7543-cx6dx", "gen5-forecast", "gen6-forecast", "host-82599", "hsw-1226v3-nfp6000", "hsw-2620v3-nfp6000", "hsw-2620v3-nfp6000-iommu", "hsw-2637v3-nfp6000", "i5-2400s-82575eb", "i5-2400s-virtex5", "i82573e", "ib-nfp6000-local", "ib-nfp6000-remote", "icelake-connectx", "niq-netfpga", "niq-x520", "snb-nfp6000", "snb-nfp6000-iommu", "thunderx2-cx5", "vpx3-1259-gen2x4-linux", "vpx3-1259-gen2x4-vxworks", "vpx3-1259-gen2x8", "vpx3-1259-gen3x4", "vpx3-1259-gen3x8", "vpx3-133-gen2x4", "xeon-v100");

/// Parts that platforms share.
const PARTS: &[(&str, &str)] = embedded!("parts/": "amd-server", "cavium-server", "connectx", "energy", "enzian", "flight-gen1", "flight-gen2", "flight-gen3", "flight-gen4", "i5-2400s", "icelake-server", "intel-client", "intel-core", "intel-nic-10g", "intel-nic-1g", "intel-server", "iommu", "linux", "memory", "nfp6000", "niq-host", "no-dma", "pcie-bench-host", "virtex5", "vpx3-1259", "vxworks", "whole-lines");

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

/// Every file, by the path that it has in its folder.
pub(crate) fn files() -> impl Iterator<Item = (String, &'static str)> {
    let platforms = PLATFORMS.iter().map(|(name, text)| (format!("{name}.toml"), *text));
    platforms.chain(PARTS.iter().map(|(name, text)| (format!("parts/{name}.toml"), *text)))
}
