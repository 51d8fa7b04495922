//! Where a domain lies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::folder::{FolderError, own_uid};

/// The environment variable that names the folder of the domains where [`DomainConfig::root`] names none.
pub const ROOT_VARIABLE: &str = "BEELINE_ROOT";

/// In the place of a folder: domains lie in the network namespace of the process that opens them, and in no file system.
pub const NETWORK_NAMESPACE: &str = "@net";

/// Where the processes of a domain meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainPlace {
    /// In a folder that holds the domains of one user, for all processes that see it.
    Folder(PathBuf),
    /// In the network namespace, under names that the kernel keeps there (abstract unix sockets): for processes that share no
    /// folder. Such names have no permissions: anybody may take one first, who is recognised by uid, and refused.
    NetworkNamespace,
}

/// Name and folder of a domain: processes that give the same two meet.
///
/// The folder is the first of these that is given: [`DomainConfig::root`], the environment variable `BEELINE_ROOT`,
/// `/tmp/beeline-<effective uid>`. Nothing else decides, so a service and a login shell of one user meet without being
/// told; where they do not share `/tmp` (`PrivateTmp=`, containers), mount one folder in both and give each as `BEELINE_ROOT`
/// where it sees it. The paths may differ; the user must be the same one, whatever uid each user namespace shows for it.
/// `%u` in the folder stands for the uid of its owner, so that one setting is good for several users: `/run/beeline/%u`.
/// Where they share no folder but the network namespace, [`NETWORK_NAMESPACE`] stands in the place of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainConfig {
    /// Folder that holds the domains of one user, whose owner that user is and that nobody else may write to; `None`:
    /// what `BEELINE_ROOT` names, an absolute path or [`NETWORK_NAMESPACE`], or `/tmp/beeline-<effective uid>`.
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

    /// The domain of this name in the network namespace of whoever opens it.
    pub fn in_network_namespace(name: impl Into<String>) -> Self {
        DomainConfig { root: Some(NETWORK_NAMESPACE.into()), name: name.into() }
    }

    /// Where processes of this user meet in the domain, as [`DomainConfig::root`] or `BEELINE_ROOT` say.
    pub fn place(&self) -> DomainPlace {
        match self.root_folder() {
            root if root == Path::new(NETWORK_NAMESPACE) => DomainPlace::NetworkNamespace,
            root => DomainPlace::Folder(root),
        }
    }

    /// The folder that holds the domains: [`DomainConfig::root`], else what `BEELINE_ROOT` names, else
    /// `/tmp/beeline-<effective uid>`.
    pub fn root_folder(&self) -> PathBuf {
        self.root_folder_of(own_uid())
    }

    /// The folder that holds the domains of the user `owner_uid`: [`DomainConfig::root`], else what `BEELINE_ROOT` names,
    /// else `/tmp/beeline-<owner_uid>`.
    pub fn root_folder_of(&self, owner_uid: u32) -> PathBuf {
        root_folder(self.root.as_deref(), std::env::var_os(ROOT_VARIABLE), owner_uid)
    }

    /// [`DomainConfig::root_folder_of`], unless the environment gives one that depends on the working folder.
    pub(crate) fn checked_root_folder(&self, owner_uid: u32) -> Result<PathBuf, FolderError> {
        let path = self.root_folder_of(owner_uid);
        if self.root.is_none() { checked_variable(path) } else { Ok(path) }
    }
}

fn checked_variable(path: PathBuf) -> Result<PathBuf, FolderError> {
    let is_clear = path.is_absolute() || path == Path::new(NETWORK_NAMESPACE);
    if is_clear { Ok(path) } else { Err(FolderError::Relative { path }) }
}

fn root_folder(given: Option<&Path>, variable: Option<OsString>, owner_uid: u32) -> PathBuf {
    match (given, variable) {
        (Some(root), _) => of_user(root, owner_uid),
        (None, Some(variable)) if !variable.is_empty() => of_user(Path::new(&variable), owner_uid),
        _ => PathBuf::from(format!("/tmp/beeline-{owner_uid}")),
    }
}

/// A path with each `%u` in it replaced by the uid.
fn of_user(path: &Path, owner_uid: u32) -> PathBuf {
    match path.to_str() {
        Some(named) => named.replace("%u", &owner_uid.to_string()).into(),
        None => path.to_owned(),
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn root_is_the_given_one_then_the_variable_then_the_default() {
        let given = Some(Path::new("/x/y"));
        assert_eq!(root_folder(given, Some("/v".into()), 7), PathBuf::from("/x/y"));
        assert_eq!(root_folder(None, Some("/v".into()), 7), PathBuf::from("/v"));
        assert_eq!(root_folder(None, Some("".into()), 7), PathBuf::from("/tmp/beeline-7"));
        assert_eq!(root_folder(None, None, 8), PathBuf::from("/tmp/beeline-8"));
    }

    #[test]
    fn root_can_be_each_users_own() {
        assert_eq!(root_folder(None, Some("/run/b/%u".into()), 7), PathBuf::from("/run/b/7"));
        assert_eq!(root_folder(Some(Path::new("/x%u/%u")), None, 70), PathBuf::from("/x70/70"));
    }

    #[test]
    fn given_root_is_taken_as_it_is() {
        let config = DomainConfig { root: Some("x/y".into()), ..DomainConfig::default() };
        assert_eq!((config.root_folder(), config.name.as_str()), (PathBuf::from("x/y"), "default"));
        assert!(config.checked_root_folder(7).is_ok());
        assert_eq!(config.place(), DomainPlace::Folder("x/y".into()));
    }

    #[test]
    fn variable_names_an_absolute_path_or_the_network_namespace() {
        for clear in ["/x", NETWORK_NAMESPACE] {
            assert!(checked_variable(clear.into()).is_ok(), "{clear}");
        }
        for relative in ["x", "./@net", "@net/x", "@network"] {
            assert!(
                matches!(checked_variable(relative.into()), Err(FolderError::Relative { .. })),
                "{relative}"
            );
        }
    }

    #[test]
    fn network_namespace_stands_in_the_place_of_a_folder() {
        assert_eq!(DomainConfig::in_network_namespace("d").place(), DomainPlace::NetworkNamespace);
        let like_it = DomainConfig { root: Some("./@net".into()), ..DomainConfig::default() };
        assert!(
            matches!(like_it.place(), DomainPlace::Folder(_)),
            "a folder of that name is named by a path"
        );
    }
}
