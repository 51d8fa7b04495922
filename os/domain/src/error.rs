//! What can go wrong with domains, offers and connections, one enum for each kind of call.

use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use crate::folder::FolderError;
use crate::name::NameError;
use crate::namespace::NamespaceError;
use crate::wire::{MAX_FDS, MAX_PAYLOAD_BYTES, WireError};

/// A call that this thread or process must not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MisuseError {
    /// An offer, a connection or what was made over it belongs to the parent. A domain does not: a child may use it.
    #[error(
        "it was opened by process {opened_by}; process {pid} was forked from it and must offer or connect itself"
    )]
    Forked {
        /// The process that opened it.
        opened_by: u32,
        /// This process.
        pid: u32,
    },
    /// The call waits for the thread that makes it.
    #[error(
        "a service must not offer, connect or call from its callbacks: they run on the thread that would answer"
    )]
    OnDomainThread,
    /// The domain belongs to another user.
    #[error("the domain belongs to uid {owner}; only its owner may offer a name in it, or look at its locks")]
    NotOwner { owner: u32 },
    /// The peer is the owner that this process connected to.
    #[error("the peer is the owner of an offer; only its clients are notified")]
    NotClient,
    /// Other code of this process closed a descriptor of the library, or another file has its number.
    #[error(
        "other code of this process closed or replaced a descriptor of the library (closefrom, close_range, dup2); leave those \
         that `descriptors` lists alone, or have them placed above others"
    )]
    DescriptorLost,
    /// The domain lies in a network namespace, and this thread has entered another since.
    #[error(
        "the domain lies in the network namespace in which it was opened, and this thread is in another one; open the domain \
         again"
    )]
    OtherNamespace,
}

/// Why a domain cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    /// The name of the domain is not valid.
    #[error("not the name of a domain: {0}")]
    Name(NameError),
    /// The folder of the domain cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The network namespace of the domain cannot be used.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The background thread cannot be had.
    #[error(
        "cannot {what} for the domain's background thread: {error}; raise the limits shown by `ulimit -a`"
    )]
    Thread { what: &'static str, error: std::io::Error },
}

impl DomainError {
    /// Whether waiting may cure it: another user has not made the domain's folder yet, or has not opened it to this one.
    pub fn owner_may_come(&self) -> bool {
        matches!(
            self,
            DomainError::Folder(FolderError::ForeignAbsent { .. } | FolderError::ForeignClosed { .. })
        )
    }
}

/// Why a name cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// The name is not a name.
    #[error("not the name of an offer: {0}")]
    Name(NameError),
    /// Another live process offers the name.
    #[error("{} is offered by {}, which is alive; stop it or choose another name", path.display(), process_name(*pid))]
    Taken {
        /// The offer's socket.
        path: PathBuf,
        /// Its owner; 0 for one outside this pid namespace.
        pid: u32,
    },
    /// A process of another user has the name in the network namespace, where anybody may take it first.
    #[error(
        "a process of uid {uid} has taken the name {}, which it can in a network namespace; nobody trusts it there: end it, \
         choose another domain, or a folder (BEELINE_ROOT)",
        path.display()
    )]
    Squatted {
        /// The offer's socket.
        path: PathBuf,
        uid: u32,
    },
    /// The name in the network namespace is held by a process that does not answer for it.
    #[error(
        "the name {}{} is held by a process that did not offer it, as a child does whose parent forked it while it offered; end \
         that process (`ss -xlp` shows it), or choose another name",
        path.display(),
        in_parentheses(*pid)
    )]
    Orphaned {
        /// The offer's socket.
        path: PathBuf,
        /// The process that offered it, and has died; `None` where the kernel does not say.
        pid: Option<u32>,
    },
    /// Somebody listens under the name in the network namespace, and the kernel does not say who: an owner that has not heard those
    /// who connected before, as one that is stopped, or a process that cannot be seen from here.
    #[error(
        "the name {} is taken by a process that does not answer; if it is stopped (`ss -xlp` shows it), have it go on or end it, or \
         choose another name",
        path.display()
    )]
    Unanswered {
        /// The offer's socket.
        path: PathBuf,
    },
    /// The folder cannot be opened to other users.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The kernel refused something.
    #[error("cannot {what} {}: {errno}", path.display())]
    System {
        what: &'static str,
        /// The offer's socket.
        path: PathBuf,
        errno: Errno,
    },
    /// This process was forked from the one that opened the domain, and cannot open it for itself.
    #[error("a forked process uses its parent's domain anew: {0}")]
    Reopen(Box<DomainError>),
    /// A call that must not be made.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
}

/// Returns words for a process that the kernel named. It says 0 for one outside this pid namespace, as every process of
/// another container is: that one has no number here.
pub fn process_name(pid: u32) -> String {
    if pid == 0 { "a process outside this pid namespace".to_owned() } else { format!("process {pid}") }
}

/// A process in the middle of a sentence; nothing where nobody knows any more which one it was.
fn in_parentheses(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" ({})", process_name(pid))).unwrap_or_default()
}

/// Why an offer cannot be reached, or did not answer as asked.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name is not a name.
    #[error("not the name of an offer: {0}")]
    Name(NameError),
    /// No process offers the name.
    #[error("nobody offers {}; start its owner, or check the name, the domain and the folder (BEELINE_ROOT)", path.display())]
    Absent {
        /// Path of the socket.
        path: PathBuf,
    },
    #[error("the owner of {}{} has died; start it again", path.display(), in_parentheses(*pid))]
    OwnerDied {
        /// The offer's socket.
        path: PathBuf,
        /// The owner that was; `None` where nobody knows any more.
        pid: Option<u32>,
    },
    /// The owner closed the connection.
    #[error("the owner of {} ({}) closed the connection", path.display(), process_name(*pid))]
    Closed {
        /// The offer's socket.
        path: PathBuf,
        /// The owner.
        pid: u32,
    },
    /// The owner refused the request.
    #[error("the owner of {} ({}) refuses: {reason}", path.display(), process_name(*pid))]
    Refused {
        /// The offer's socket.
        path: PathBuf,
        /// The owner.
        pid: u32,
        /// Reason that the owner gave.
        reason: String,
    },
    /// The owner lives but does not answer.
    #[error("the owner of {}{} is alive but did not answer for {} ms; is it stopped?", path.display(), in_parentheses(*pid), waited.as_millis())]
    TimedOut {
        /// The offer's socket.
        path: PathBuf,
        /// The owner; `None` where even the connection could not be made.
        pid: Option<u32>,
        waited: Duration,
    },
    /// The socket is not the owner's.
    #[error("{} is served by uid {found}, the domain belongs to uid {expected}; do not use it", path.display())]
    Impostor {
        /// The offer's socket.
        path: PathBuf,
        /// Uid of the process that serves the name.
        found: u32,
        /// Uid that was expected.
        expected: u32,
    },
    /// The process that serves the name is not the one with which a token was exchanged, or does not know it.
    #[error(
        "{} is served by {}, which is not the process at the other end of the connection in which the token was exchanged",
        path.display(),
        process_name(*pid)
    )]
    Unproved {
        /// The offer's socket.
        path: PathBuf,
        /// The process that serves it.
        pid: u32,
    },
    /// The owner offers it to other users than this one, or to none.
    #[error(
        "uid {uid} may not connect to {}: it is offered to its owner's processes alone; the owner lets this user in by \
         `--allow-uid {uid}` (`allowed_uids` in a program)",
        path.display()
    )]
    NotAllowed {
        /// The offer's socket.
        path: PathBuf,
        /// This process's user.
        uid: u32,
    },
    /// The process at the other end cannot be watched.
    #[error("the owner of {} is in another pid namespace, which this kernel cannot watch; Linux 6.5 can", path.display())]
    Invisible {
        /// The offer's socket.
        path: PathBuf,
    },
    /// The owner sent something that is not an answer.
    #[error("the owner of {} ({}) broke the protocol: {error}", path.display(), process_name(*pid))]
    Protocol {
        /// The offer's socket.
        path: PathBuf,
        /// The owner.
        pid: u32,
        error: WireError,
    },
    #[error(
        "a request of {bytes} bytes and {fds} descriptors; at most {MAX_PAYLOAD_BYTES} bytes and {MAX_FDS} descriptors travel"
    )]
    TooLarge {
        /// Bytes of the request.
        bytes: usize,
        /// Descriptors of the request.
        fds: usize,
    },
    /// The kernel refused something.
    #[error("cannot {what} {}: {errno}", path.display())]
    System {
        what: &'static str,
        /// The offer's socket.
        path: PathBuf,
        errno: Errno,
    },
    /// This process was forked from the one that opened the domain, and cannot open it for itself.
    #[error("a forked process uses its parent's domain anew: {0}")]
    Reopen(Box<DomainError>),
    /// A call that must not be made.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
}

/// The text of each of them has the reason's in it, so none names a reason's error a second time as its source.
macro_rules! named {
    ($($error:ident)*) => {$(
        impl From<NameError> for $error {
            fn from(error: NameError) -> Self {
                $error::Name(error)
            }
        }
    )*};
}

named!(DomainError OfferError ConnectError);
