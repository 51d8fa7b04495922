//! Where a domain lies.

use std::path::PathBuf;

/// Name and place of a domain: processes that give the same two meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainConfig {
    /// Folder that holds the domains of one user; `None`: `$XDG_RUNTIME_DIR/beeline`, or `/tmp/beeline-<uid>` where
    /// that variable is not an absolute path.
    pub root: Option<PathBuf>,
    /// Name of the domain, `[a-z0-9][a-z0-9._-]{0,47}`.
    pub name: String,
}

impl Default for DomainConfig {
    /// The domain `default` in the default folder.
    fn default() -> Self {
        DomainConfig::named("default")
    }
}

impl DomainConfig {
    /// The domain of this name in the default folder.
    pub fn named(name: impl Into<String>) -> Self {
        DomainConfig { root: None, name: name.into() }
    }

    /// The folder that holds the domains: the one given, or the default of this process's user and environment.
    pub fn root_folder(&self) -> PathBuf {
        match &self.root {
            Some(root) => root.clone(),
            None => default_root(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)),
        }
    }
}

fn default_root(runtime: Option<PathBuf>) -> PathBuf {
    match runtime {
        // The XDG specification has relative values ignored.
        Some(runtime) if runtime.is_absolute() => runtime.join("beeline"),
        _ => PathBuf::from(format!("/tmp/beeline-{}", rustix::process::geteuid().as_raw())),
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn the_default_root_follows_the_environment() {
        assert_eq!(default_root(Some("/run/user/7".into())), PathBuf::from("/run/user/7/beeline"));
        let fallback = default_root(None);
        assert!(fallback.to_str().unwrap().starts_with("/tmp/beeline-"));
        assert_eq!(default_root(Some("run".into())), fallback);
        assert_eq!(default_root(Some("".into())), fallback);
    }

    #[test]
    fn a_given_root_is_taken_as_it_is() {
        let config = DomainConfig { root: Some("/x/y".into()), ..DomainConfig::default() };
        assert_eq!((config.root_folder(), config.name.as_str()), (PathBuf::from("/x/y"), "default"));
    }
}
