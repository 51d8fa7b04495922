//! Where a domain lies: in a checked folder, or in a network namespace.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use crate::claim::{self, Claim, ClaimError};
use crate::config::{DomainConfig, NETWORK_NAMESPACE};
use crate::error::{DomainError, MisuseError, OfferError};
use crate::folder::{Folder, FolderError, own_uid};
use crate::moving::Movable;
use crate::name::{Name, SOCKET_SUFFIX};
use crate::namespace::{self, Holder, Namespace};
use crate::{socket, uid};

/// How often a name is tried on which nobody listens.
const MAX_TRIES: u32 = 20;
/// Between two such attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// A domain's folder, or its network namespace.
#[derive(Debug)]
pub(crate) enum Place {
    Folder(Arc<Folder>),
    Namespace(Namespace),
}

/// A name that is offered: its socket, and in a folder the lock that says whose it is.
pub(crate) struct Offered {
    pub(crate) listener: OwnedFd,
    pub(crate) claim: Option<Claim>,
}

impl Place {
    /// The place of this user's domain. In a folder, names whose owners have died are removed.
    pub(crate) fn open_own(config: &DomainConfig) -> Result<Self, DomainError> {
        let name = Name::new(&config.name)?;
        let root = config.checked_root_folder(own_uid())?;
        if is_namespace(&root) {
            return Self::in_namespace(name, own_uid());
        }
        let folder = Folder::open_own(&root, &name)?;
        claim::sweep(&folder);
        Ok(Place::Folder(Arc::new(folder)))
    }

    /// The place of a domain that belongs to `owner_uid`, to connect only.
    pub(crate) fn open_foreign(config: &DomainConfig, owner_uid: u32) -> Result<Self, DomainError> {
        let name = Name::new(&config.name)?;
        let root = config.checked_root_folder(owner_uid)?;
        if is_namespace(&root) {
            return Self::in_namespace(name, owner_uid);
        }
        Ok(Place::Folder(Arc::new(Folder::open_foreign(&root, &name, owner_uid)?)))
    }

    fn in_namespace(name: Name, owner_uid: u32) -> Result<Self, DomainError> {
        namespace::check_length(&name)?;
        Ok(Place::Namespace(Namespace::open(name, owner_uid)?))
    }

    /// Who owns the domain, and so every offer in it.
    pub(crate) fn owner_uid(&self) -> u32 {
        match self {
            Place::Folder(folder) => folder.owner_uid(),
            Place::Namespace(namespace) => namespace.owner_uid(),
        }
    }

    /// Whether a process that the kernel gives this uid belongs to the domain's owner. A folder was compared with its owner
    /// when it was opened, whatever number the owner has; a network namespace has nothing but the number.
    pub(crate) fn is_owner(&self, uid: u32) -> bool {
        let is_same = uid == self.owner_uid();
        match self {
            Place::Folder(_) => is_same,
            Place::Namespace(_) => is_same && uid::names_one_user(uid),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Place::Folder(folder) => folder.path(),
            Place::Namespace(namespace) => namespace.path(),
        }
    }

    /// The socket of an offer as errors name it.
    pub(crate) fn socket_path(&self, name: &Name) -> PathBuf {
        match self {
            Place::Folder(folder) => folder.path().join(name.socket_file()),
            Place::Namespace(namespace) => namespace.path().join(name.as_str()),
        }
    }

    /// Whether permissions of files keep everybody but the owner from the socket of an offer without a list.
    pub(crate) fn keeps_others_out(&self) -> bool {
        matches!(self, Place::Folder(_))
    }

    /// Whether its descriptors are there, and this thread is where it is.
    pub(crate) fn check(&self) -> Result<(), MisuseError> {
        match self {
            Place::Folder(folder) if folder.is_ours() => Ok(()),
            Place::Namespace(namespace) if !namespace.is_ours() => Err(MisuseError::DescriptorLost),
            Place::Namespace(namespace) if namespace.is_here() => Ok(()),
            Place::Namespace(_) => Err(MisuseError::OtherNamespace),
            Place::Folder(_) => Err(MisuseError::DescriptorLost),
        }
    }

    /// Shared, for who needs it longer than the domain. Names in a namespace have none.
    pub(crate) fn folder(&self) -> Option<&Arc<Folder>> {
        match self {
            Place::Folder(folder) => Some(folder),
            Place::Namespace(_) => None,
        }
    }

    /// The names that have a socket, in no order.
    pub(crate) fn names(&self) -> Result<Vec<String>, FolderError> {
        let files = match self {
            Place::Folder(folder) => folder.files()?,
            Place::Namespace(namespace) => {
                return namespace.names().map_err(|errno| FolderError::System {
                    action: "list",
                    path: namespace.path().to_owned(),
                    errno,
                    remedy: "mount /proc",
                });
            }
        };
        let names = files.iter().filter_map(|file| file.strip_suffix(SOCKET_SUFFIX));
        Ok(names.filter(|name| Name::new(name).is_ok()).map(str::to_owned).collect())
    }

    /// Takes a name and listens under it. `for_others` lets users other than the owner reach the socket, where permissions
    /// of files keep them from it.
    pub(crate) fn offer(&self, name: &Name, for_others: bool) -> Result<Offered, OfferError> {
        match self {
            Place::Folder(folder) => offer_in_folder(folder, name, for_others, self.socket_path(name)),
            Place::Namespace(namespace) => offer_in_namespace(namespace, name, self.socket_path(name)),
        }
    }

    /// Whether a process of the owner that lives offers a name.
    pub(crate) fn is_offered(&self, name: &Name) -> Result<bool, OfferError> {
        match self {
            Place::Folder(folder) => {
                claim::is_held(folder, name).map_err(|error| not_offered(error, self.socket_path(name)))
            }
            Place::Namespace(namespace) => match namespace.holder(name) {
                Ok(Holder::Process { uid, .. }) => Ok(uid == namespace.owner_uid()),
                Ok(Holder::Somebody) => Ok(true),
                Ok(Holder::Orphans { .. } | Holder::Nobody) => Ok(false),
                Err(errno) => Err(unknown_holder(errno, self.socket_path(name))),
            },
        }
    }

    /// One attempt to connect to the owner of a name.
    pub(crate) fn connect(&self, name: &Name) -> Result<OwnedFd, Errno> {
        match self {
            Place::Folder(folder) => {
                let (address, _folder) = socket::address(folder, name)?;
                socket::connect(&address)
            }
            // Nobody listens: whether a socket has the name makes no difference to who comes.
            Place::Namespace(namespace) => socket::connect(&namespace.address(name)?)
                .map_err(|errno| if errno == Errno::CONNREFUSED { Errno::NOENT } else { errno }),
        }
    }
}

impl Movable for Place {
    fn move_above(&self, lowest: RawFd) -> io::Result<()> {
        let moved = match self {
            Place::Folder(folder) => folder.move_above(lowest),
            Place::Namespace(namespace) => namespace.move_above(lowest),
        };
        Ok(moved?)
    }
}

fn is_namespace(root: &Path) -> bool {
    root == Path::new(NETWORK_NAMESPACE)
}

fn unknown_holder(errno: Errno, path: PathBuf) -> OfferError {
    OfferError::System { what: "ask who has", path, errno }
}

fn not_offered(error: ClaimError, path: PathBuf) -> OfferError {
    match error {
        ClaimError::Taken(pid) => OfferError::Taken { path, pid },
        ClaimError::System(what, errno) => OfferError::System { what, path, errno },
    }
}

fn offer_in_folder(
    folder: &Arc<Folder>,
    name: &Name,
    for_others: bool,
    path: PathBuf,
) -> Result<Offered, OfferError> {
    let claim = Claim::take(folder, name).map_err(|error| not_offered(error, path.clone()))?;
    if for_others {
        folder.make_searchable()?;
    }
    let listener = socket::listen_in(folder, name, for_others).map_err(|errno| OfferError::System {
        what: "make the socket",
        path,
        errno,
    })?;
    Ok(Offered { listener, claim: Some(claim) })
}

fn offer_in_namespace(namespace: &Namespace, name: &Name, path: PathBuf) -> Result<Offered, OfferError> {
    let system = |errno| OfferError::System { what: "make the socket", path: path.clone(), errno };
    let address = namespace.address(name).map_err(system)?;
    let mut is_listening = false;
    for _ in 0..MAX_TRIES {
        match socket::listen(&address) {
            Ok(listener) => return Ok(Offered { listener, claim: None }),
            Err(Errno::ADDRINUSE) => {}
            Err(errno) => return Err(system(errno)),
        }
        is_listening = match namespace.holder(name).map_err(|errno| unknown_holder(errno, path.clone()))? {
            Holder::Process { pid, uid } if uid == namespace.owner_uid() => {
                return Err(OfferError::Taken { path, pid });
            }
            Holder::Process { uid, .. } => return Err(OfferError::Squatted { path, uid }),
            Holder::Orphans { pid } => return Err(OfferError::Orphaned { path, pid: Some(pid) }),
            // Its owner is about to listen, or has just given it up.
            Holder::Nobody => false,
            // Who waits may be about to be heard.
            Holder::Somebody => true,
        };
        std::thread::sleep(PAUSE);
    }
    Err(match is_listening {
        true => OfferError::Unanswered { path },
        false => OfferError::Orphaned { path, pid: None },
    })
}
