//! What can go wrong with registries.

use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use super::words::Found;
use crate::error::MisuseError;
use crate::folder::FolderError;
use crate::name::NameError;

/// Why a registry cannot be opened, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name of the registry is not valid.
    #[error("not the name of a registry: {0}")]
    Name(NameError),
    /// The domain lies in a network namespace, where there are no files.
    #[error(
        "a registry is a file, and a domain in a network namespace has no folder; choose a folder (BEELINE_ROOT)"
    )]
    NoFolder,
    /// Several hosts may share the folder, whose processes do not see each other's locks in time.
    #[error("{} lies in a file system of a network (type {kind:#x}), whose locks are no evidence of life; choose another folder (BEELINE_ROOT)", path.display())]
    NetworkFileSystem {
        /// The folder of the domain.
        path: PathBuf,
        /// What `statfs` says.
        kind: u64,
    },
    /// Another user has the domain, and no registry of this name.
    #[error("there is no registry {}; its owner makes it", path.display())]
    Absent { path: PathBuf },
    /// Another user has the registry, and does not let this one read it.
    #[error("this user may not read the registry {}; its owner lets others read it (`Registry::let_others_read`)", path.display())]
    NotAllowed { path: PathBuf },
    /// Something else has the name of the file, or somebody else owns it.
    #[error("{} is no file of the domain's owner; remove it", path.display())]
    NotOwners { path: PathBuf },
    /// The file has another format.
    #[error("the registry {} has format {found:#x}; another version of this library made it", path.display())]
    Format {
        path: PathBuf,
        /// The first word of the file.
        found: u64,
    },
    /// Somebody has made the file shorter. What was in it is lost.
    #[error("the registry {} is too short, somebody has cut it; end who uses it, and remove it", path.display())]
    Short { path: PathBuf },
    /// Somebody has removed the file, or put another in its place: what is put in there is not found.
    #[error("{} was removed or replaced while it was in use; drop the registry and open it again", path.display())]
    Removed {
        /// The file of the registry, or that of its locks.
        path: PathBuf,
    },
    /// A process was stopped while it wrote, or many write at once.
    #[error("a process that writes the registry {} has not come to an end for {} ms; is it stopped?", path.display(), waited.as_millis())]
    Busy { path: PathBuf, waited: Duration },
    /// As many processes have joined as can.
    #[error("all holders of the registry {} are alive; no more can join", path.display())]
    NoHolderFree { path: PathBuf },
    /// The folder cannot be opened to other users.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The kernel refused something.
    #[error("cannot {what} {}: {errno}", path.display())]
    System {
        what: &'static str,
        /// The file of the registry, or that of its locks.
        path: PathBuf,
        errno: Errno,
    },
    /// A call that must not be made.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
}

// The text has the reason's in it, so the reason is no source.
impl From<NameError> for RegistryError {
    fn from(error: NameError) -> Self {
        RegistryError::Name(error)
    }
}

/// Why an entry is not put into a registry.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// Somebody has one beside which it may not be.
    #[error("id {} is taken by holder {:#018x}", found.entry.id, found.number)]
    Taken {
        /// The entry that is there.
        found: Found,
    },
    /// As many entries of living holders as there can be have the place of this id.
    #[error("the registry has no place left for this id; choose another one")]
    Full,
    /// The registry failed.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}
