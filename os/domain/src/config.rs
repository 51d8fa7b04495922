//! Where a domain lies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::folder::FolderError;

/// The environment variable that names the folder of the domains where [`DomainConfig::root`] names none.
pub const ROOT_VARIABLE: &str = "BEELINE_ROOT";

/// Name and folder of a domain: processes that give the same two meet.
///
/// The folder is the first of these that is given: [`DomainConfig::root`], the environment variable `BEELINE_ROOT`,
/// `/tmp/beeline-<effective uid>`. Nothing else decides, so a service and a login shell of one user meet without being
/// told; where they do not share `/tmp` (`PrivateTmp=`, a container), give both the same `BEELINE_ROOT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainConfig {
    /// Folder that holds the domains of one user, whose owner that user is and that nobody else may write to; `None`:
    /// what `BEELINE_ROOT` names, or `/tmp/beeline-<effective uid>`.
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

    /// The folder that holds the domains: [`DomainConfig::root`], else what `BEELINE_ROOT` names, else
    /// `/tmp/beeline-<effective uid>`.
    pub fn root_folder(&self) -> PathBuf {
        root_folder(self.root.as_deref(), std::env::var_os(ROOT_VARIABLE))
    }

    /// [`DomainConfig::root_folder`], unless the environment gives one that depends on the working folder.
    pub(crate) fn checked_root_folder(&self) -> Result<PathBuf, FolderError> {
        let path = self.root_folder();
        if self.root.is_none() && path.is_relative() { Err(FolderError::Relative { path }) } else { Ok(path) }
    }
}

fn root_folder(given: Option<&Path>, variable: Option<OsString>) -> PathBuf {
    match (given, variable) {
        (Some(root), _) => root.to_owned(),
        (None, Some(variable)) if !variable.is_empty() => variable.into(),
        _ => PathBuf::from(format!("/tmp/beeline-{}", rustix::process::geteuid().as_raw())),
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn root_is_the_given_one_then_the_variable_then_the_default() {
        let given = Some(Path::new("/x/y"));
        assert_eq!(root_folder(given, Some("/v".into())), PathBuf::from("/x/y"));
        assert_eq!(root_folder(None, Some("/v".into())), PathBuf::from("/v"));
        let default = PathBuf::from(format!("/tmp/beeline-{}", rustix::process::geteuid().as_raw()));
        assert_eq!(root_folder(None, Some("".into())), default);
        assert_eq!(root_folder(None, None), default);
    }

    #[test]
    fn given_root_is_taken_as_it_is() {
        let config = DomainConfig { root: Some("x/y".into()), ..DomainConfig::default() };
        assert_eq!((config.root_folder(), config.name.as_str()), (PathBuf::from("x/y"), "default"));
        assert!(config.checked_root_folder().is_ok());
    }
}
