//! Rendezvous in a network namespace: abstract names of unix sockets, which the kernel keeps for each network namespace.
//!
//! For processes that share no folder: other mount namespaces, users who cannot enter each other's folders. The name of a
//! socket holds the uid of its owner, the domain and the offer. Such names have no permissions, so anybody may take a name
//! first. That denies it to its owner and nothing more: who listens under a name is asked of the kernel before anything is
//! sent, and who connects is compared with the offer's list, an offer's own user included.
//!
//! The kernel gives a name up when the last descriptor of its socket is closed. A child that the owner forked holds one
//! until it executes a program or ends; the owner's death is seen all the same, by its pidfd.

use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use crate::descriptor::Descriptor;
use crate::evidence::{Evidence, EvidenceError};
use crate::name::{MAX_NAMESPACE_NAME_BYTES, Name, NameError};
use crate::numbers::Purpose;
use crate::{socket, uid};

/// How the names of all our sockets begin.
const PREFIX: &str = "beeline/";
/// The network namespace of this thread.
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";
/// Unix sockets of this thread's network namespace.
const OWN_SOCKETS: &str = "/proc/thread-self/net/unix";
/// The flag of a socket that accepts connections, in that list.
const ACCEPTS: &str = "00010000";

/// Why a network namespace cannot be used for rendezvous.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The kernel does not say which network namespace this is.
    #[error(
        "cannot open {OWN_NAMESPACE}: {errno}; mount /proc, or choose a folder (BEELINE_ROOT or an option)"
    )]
    Unknown { errno: Errno },
    /// The owner has no uid of its own in this process's user namespace.
    #[error(
        "uid {uid} stands for every user that this user namespace does not map, so nobody is known by it in a network \
         namespace; map the user, or choose a folder (BEELINE_ROOT or an option)"
    )]
    Unmapped { uid: u32 },
}

/// The network namespace in which a domain was opened, and whose the domain is.
#[derive(Debug)]
pub(crate) struct Namespace {
    owner_uid: u32,
    domain: Name,
    /// Keeps the namespace, so that its number is given to no other.
    pinned: Descriptor,
    path: PathBuf,
}

/// Who holds a name that cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A process that lives.
    Process { pid: u32, uid: u32 },
    /// Children of a process that has died.
    Orphans { pid: u32 },
    /// Somebody listens, of whom the kernel says no more: too many wait to be heard, or the process cannot be seen from here.
    Somebody,
    /// Nobody listens now.
    Nobody,
}

/// Whether the name may belong to a domain here.
pub(crate) fn check_length(domain: &Name) -> Result<(), NameError> {
    let bytes = domain.as_str().len();
    if bytes > MAX_NAMESPACE_NAME_BYTES {
        return Err(NameError::TooLongForNamespace { bytes });
    }
    Ok(())
}

impl Namespace {
    /// The domain of `owner_uid` in the network namespace of this thread. Its name has been checked.
    pub(crate) fn open(domain: Name, owner_uid: u32) -> Result<Self, NamespaceError> {
        if !uid::names_one_user(owner_uid) {
            return Err(NamespaceError::Unmapped { uid: owner_uid });
        }
        let namespace = open_own().map_err(|errno| NamespaceError::Unknown { errno })?;
        let path = PathBuf::from(format!("@{PREFIX}{owner_uid}/{domain}"));
        Ok(Namespace { owner_uid, domain, pinned: Descriptor::new(namespace, Purpose::Namespace), path })
    }

    pub(crate) fn owner_uid(&self) -> u32 {
        self.owner_uid
    }

    /// The domain as it is printed: what its sockets' names begin with, behind the `@` that tools show for abstract names.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives its descriptor a number of at least `lowest`.
    pub(crate) fn move_above(&self, lowest: RawFd) -> Result<(), Errno> {
        self.pinned.move_above(lowest, None)
    }

    /// Whether the descriptor that was opened is still there.
    pub(crate) fn is_ours(&self) -> bool {
        self.pinned.is_ours()
    }

    /// Whether this thread is in the namespace, and not in one that it entered since: there the names are others'.
    pub(crate) fn is_here(&self) -> bool {
        let identity = |fd: &dyn AsFd| rustix::fs::fstat(fd.as_fd()).map(|stat| (stat.st_dev, stat.st_ino));
        let here = open_own().and_then(|here| identity(&here));
        matches!((here, identity(&self.pinned.hold())), (Ok(here), Ok(pinned)) if here == pinned)
    }

    pub(crate) fn address(&self, name: &Name) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new_abstract_name(format!("{}{name}", self.begin()).as_bytes())
    }

    /// What the names of this domain's sockets begin with.
    fn begin(&self) -> String {
        format!("{PREFIX}{}/{}/", self.owner_uid, self.domain)
    }

    /// Asks the kernel who has a name.
    pub(crate) fn holder(&self, name: &Name) -> Result<Holder, Errno> {
        let socket = match socket::connect(&self.address(name)?) {
            Ok(socket) => socket,
            Err(Errno::AGAIN) => return Ok(Holder::Somebody),
            Err(Errno::CONNREFUSED | Errno::NOENT) => return Ok(Holder::Nobody),
            Err(errno) => return Err(errno),
        };
        match Evidence::of_peer(socket.as_fd()) {
            Ok(evidence) if evidence.has_died() => Ok(Holder::Orphans { pid: evidence.pid() }),
            Ok(evidence) => Ok(Holder::Process { pid: evidence.pid(), uid: evidence.uid() }),
            Err(EvidenceError::Gone { pid }) => Ok(Holder::Orphans { pid }),
            Err(EvidenceError::Invisible) => Ok(Holder::Somebody),
            Err(EvidenceError::System(errno)) => Err(errno),
        }
    }

    /// The names that have a socket on which somebody listens; whoever it is.
    pub(crate) fn names(&self) -> Result<Vec<String>, Errno> {
        // Names of others are any bytes.
        let sockets =
            std::fs::read(OWN_SOCKETS).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        Ok(listening(&String::from_utf8_lossy(&sockets), &format!("@{}", self.begin())))
    }
}

fn open_own() -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, OWN_NAMESPACE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Names behind `begin` in a list of `/proc/net/unix`, of sockets that accept connections.
fn listening(sockets: &str, begin: &str) -> Vec<String> {
    let name = |line: &str| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let ([_, _, _, flags, _, _, _], path) = columns.split_first_chunk()?;
        let [path] = path else { return None };
        let name = path.strip_prefix(begin)?;
        (*flags == ACCEPTS && Name::new(name).is_ok()).then(|| name.to_owned())
    };
    sockets.lines().filter_map(name).collect()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::folder::own_uid;
    use crate::name::MAX_NAME_BYTES;

    fn namespace(domain: &str) -> Namespace {
        Namespace::open(Name::new(domain).unwrap(), own_uid()).unwrap()
    }

    #[test]
    fn longest_names_of_any_user_fit() {
        let longest = Name::new(&"d".repeat(MAX_NAMESPACE_NAME_BYTES)).unwrap();
        check_length(&longest).unwrap();
        let namespace = Namespace::open(longest, u32::MAX - 1).unwrap();
        namespace.address(&Name::new(&"n".repeat(MAX_NAME_BYTES)).unwrap()).unwrap();
        let longer = Name::new(&"d".repeat(MAX_NAMESPACE_NAME_BYTES + 1)).unwrap();
        assert_eq!(check_length(&longer), Err(NameError::TooLongForNamespace { bytes: 40 }));
    }

    #[test]
    fn only_names_of_the_domain_on_which_somebody_listens_are_listed() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0: 00000002 00000000 00010000 0005 01 77 @beeline/0/d/good\n\
            0: 00000003 00000000 00000000 0005 03 78 @beeline/0/d/connected\n\
            0: 00000002 00000000 00010000 0005 01 79 @beeline/0/other/name\n\
            0: 00000002 00000000 00010000 0005 01 80 @beeline/0/d/../../x\n\
            0: 00000002 00000000 00010000 0005 01 81 @beeline/0/d/two words\n\
            0: 00000002 00000000 00010000 0005 01 82\n\
            garbage\n";
        assert_eq!(listening(list, "@beeline/0/d/"), ["good"]);
    }

    #[test]
    fn holder_of_a_name_is_told_by_the_kernel() {
        let namespace = namespace(&format!("held-{}", std::process::id()));
        let name = Name::new("n").unwrap();
        assert_eq!(namespace.holder(&name), Ok(Holder::Nobody));
        let address = namespace.address(&name).unwrap();
        let _listener = socket::listen(&address).unwrap();
        let holder = Holder::Process { pid: std::process::id(), uid: own_uid() };
        assert_eq!(namespace.holder(&name), Ok(holder));
        assert_eq!(namespace.names().unwrap(), ["n"]);
        assert_eq!(socket::listen(&address).err(), Some(Errno::ADDRINUSE));
    }
}
