//! Why a domain cannot be opened, and why something in it cannot be offered or reached.

use core::fmt;
use std::path::PathBuf;
use std::time::Duration;

use beeline_domain::{DomainError, FolderError, MisuseError, WindowError};
#[cfg(feature = "rpc")]
use beeline_rpc::RpcError;

use super::cause::Cause;

/// What a domain's programs offer each other, by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// A window for messages.
    Window(String),
    /// A server of calls.
    Server(String),
    /// A NIC with ports.
    Nic(String),
    /// A notifier to subscribe to.
    Notifier(String),
    /// An arena, and windows of it.
    Arena(String),
}

impl Target {
    /// Returns the name by which the target was asked for.
    pub fn name(&self) -> &str {
        match self {
            Target::Window(name)
            | Target::Server(name)
            | Target::Nic(name)
            | Target::Notifier(name)
            | Target::Arena(name) => name,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Window(name) => write!(out, "window `{name}`"),
            Target::Server(name) => write!(out, "server `{name}`"),
            Target::Nic(name) => write!(out, "NIC `{name}`"),
            Target::Notifier(name) => write!(out, "notifier `{name}`"),
            Target::Arena(name) => write!(out, "arena `{name}`"),
        }
    }
}

/// A process, as far as it is known here.
fn process(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "a process that is not visible here".to_owned(),
    }
}

/// A process behind a sentence; nothing for one that is not known.
fn in_parentheses(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// The layer below says 0 for a process that it does not know.
fn known(pid: u32) -> Option<u32> {
    (pid != 0).then_some(pid)
}

const NAMES: &str =
    "use 1 to 48 of the characters a-z, 0-9, `.`, `_` and `-`, and begin with a letter or a digit";
const MISUSE: &str = "open the domain again after a fork, and open nothing from the callbacks of a service";

/// Why a domain cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its name is not one.
    #[error("`{name}` is not the name of a domain")]
    Name {
        /// Name of the domain.
        name: String,
        /// What is wrong with it.
        source: Cause,
    },
    /// Its folder cannot be made, or is not safe to use.
    #[error("cannot use the folder of domain `{name}`")]
    Folder {
        /// Name of the domain.
        name: String,
        /// Which folder, and why.
        source: Cause,
    },
    /// It lies in the network namespace, which cannot be used here.
    #[error("cannot use the network namespace for domain `{name}`")]
    Namespace {
        /// Name of the domain.
        name: String,
        /// What is missing.
        source: Cause,
    },
    /// The process is out of threads or descriptors.
    #[error("cannot start the background thread of domain `{name}`")]
    Resources {
        /// Name of the domain.
        name: String,
        /// What the kernel said.
        source: Cause,
    },
}

impl OpenError {
    pub(crate) fn new(name: String, error: DomainError) -> Self {
        match error {
            DomainError::Name(error) => OpenError::Name { name, source: error.into() },
            DomainError::Folder(error) => OpenError::Folder { name, source: error.into() },
            DomainError::Namespace(error) => OpenError::Namespace { name, source: error.into() },
            DomainError::Thread { .. } => OpenError::Resources { name, source: error.into() },
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            OpenError::Name { .. } => NAMES,
            OpenError::Folder { source, .. } => match source.downcast_ref() {
                Some(FolderError::Symlink { .. } | FolderError::NotFolder { .. }) => {
                    "remove what stands in the folder's place, or open the domain in another folder"
                }
                Some(FolderError::Permissions { .. }) => {
                    "take the permissions of others from the folder: chmod 700"
                }
                Some(FolderError::Closed { .. }) => "give its owner all rights to the folder: chmod 700",
                Some(FolderError::ForeignAbsent { .. }) => {
                    "start what is to be reached as its owner; check the folder, the domain and the owner's uid"
                }
                Some(FolderError::ForeignClosed { .. }) => {
                    "let the owner offer something to this user: `allowed_uids`; check the folders above"
                }
                Some(FolderError::Unmapped { .. }) => {
                    "map the same users in both containers, or open the domain in another folder"
                }
                Some(FolderError::Owner { .. }) => {
                    "open the domain in another folder, or say whose it is with `open_foreign`"
                }
                _ => "see that the folder above it exists and lets you write, or open the domain in another",
            },
            OpenError::Namespace { .. } => "mount /proc and map the user, or open the domain in a folder",
            OpenError::Resources { .. } => "raise the limits that `ulimit -a` shows",
        }
    }
}

/// Why a window, or calls, cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// The name is not one.
    #[error("cannot offer {target}: that is not a name")]
    Name {
        /// What was to be offered.
        target: Target,
        /// What is wrong with the name.
        source: Cause,
    },
    /// A process that is alive offers the name already.
    #[error("cannot offer {target}: {} offers it already", process(*.pid))]
    Taken {
        /// What was to be offered.
        target: Target,
        /// The process; `None` for one outside this pid namespace, or one that is stopped and hears nobody.
        pid: Option<u32>,
    },
    /// A process that does not answer for it holds the name, as anybody can in a network namespace.
    #[error("cannot offer {target}: a process that may not offer it holds the name")]
    Held {
        /// What was to be offered.
        target: Target,
        /// Which user it is, or whose child.
        source: Cause,
    },
    /// An option is out of bounds.
    #[error("cannot offer {target} with these options")]
    Options {
        /// What was to be offered.
        target: Target,
        /// Which option, and its bounds.
        source: Cause,
    },
    /// The domain belongs to another user.
    #[error("cannot offer {target}: the domain belongs to uid {owner_uid}, and only its owner offers in it")]
    NotOwner {
        /// What was to be offered.
        target: Target,
        /// Who owns the domain.
        owner_uid: u32,
    },
    /// The call came from a forked child, or from a callback of a service.
    #[error("cannot offer {target} from here")]
    Misuse {
        /// What was to be offered.
        target: Target,
        /// The rule that the call breaks.
        source: Cause,
    },
    /// The kernel refused something.
    #[error("cannot offer {target}")]
    System {
        /// What was to be offered.
        target: Target,
        /// The operation that failed, and its reason.
        source: Cause,
    },
}

impl OfferError {
    pub(crate) fn new(target: Target, error: beeline_domain::OfferError) -> Self {
        use beeline_domain::OfferError as Below;
        match error {
            Below::Name(error) => OfferError::Name { target, source: error.into() },
            Below::Taken { pid, .. } => OfferError::Taken { target, pid: known(pid) },
            Below::Unanswered { .. } => OfferError::Taken { target, pid: None },
            Below::Misuse(MisuseError::NotOwner { owner }) => {
                OfferError::NotOwner { target, owner_uid: owner }
            }
            Below::Misuse(error) => OfferError::Misuse { target, source: error.into() },
            Below::Squatted { .. } | Below::Orphaned { .. } => {
                OfferError::Held { target, source: error.into() }
            }
            Below::Folder(error) => OfferError::System { target, source: error.into() },
            Below::System { .. } | Below::Reopen(_) => OfferError::System { target, source: error.into() },
        }
    }

    pub(crate) fn window(target: Target, error: WindowError) -> Self {
        match error {
            WindowError::Offer(error) => OfferError::new(target, error),
            WindowError::Lines { .. } | WindowError::Arena { .. } => {
                OfferError::Options { target, source: error.into() }
            }
            other => OfferError::System { target, source: other.into() },
        }
    }

    #[cfg(feature = "rpc")]
    pub(crate) fn server(target: Target, error: RpcError) -> Self {
        match error {
            RpcError::Offer(error) => OfferError::new(target, error),
            RpcError::Option { .. } => OfferError::Options { target, source: error.into() },
            RpcError::Window(error) => OfferError::window(target, error),
            other => OfferError::System { target, source: other.into() },
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            OfferError::Name { .. } => NAMES,
            OfferError::Taken { .. } => "stop that process, or offer under another name",
            OfferError::Held { .. } => {
                "end that process, or open the domain under another name or in a folder"
            }
            OfferError::Options { .. } => "give the option a value in its bounds",
            OfferError::NotOwner { .. } => "offer in a domain of your own",
            OfferError::Misuse { .. } => MISUSE,
            OfferError::System { .. } => {
                "see what the kernel refused; `ulimit -a` shows the limits of this process"
            }
        }
    }
}

/// Why a receiver, a server or a NIC cannot be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name is not one.
    #[error("cannot reach {target}: that is not a name")]
    Name {
        /// What was to be reached.
        target: Target,
        /// What is wrong with the name.
        source: Cause,
    },
    /// Nobody offers the name.
    #[error("nobody offers {target}: there is no {}", path.display())]
    Absent {
        /// What was to be reached.
        target: Target,
        /// Where its socket would be.
        path: PathBuf,
    },
    /// The process that offered the name has died.
    #[error("{target} is dead: {} offered it and has ended", process(*.pid))]
    OwnerDied {
        /// What was to be reached.
        target: Target,
        /// The process; `None` where it is not known any more.
        pid: Option<u32>,
    },
    /// The process that offers the name refuses: a window that has a sender, a user who is not allowed.
    #[error("{target} refuses: {reason}{}", in_parentheses(*.pid))]
    Refused {
        /// What was to be reached.
        target: Target,
        /// The process; `None` for one outside this pid namespace.
        pid: Option<u32>,
        /// Its reason, in its words.
        reason: String,
    },
    /// The process that offers the name is alive and does not answer.
    #[error("{target} does not answer: {} is alive but was silent for {} ms", process(*.pid), waited.as_millis())]
    NoAnswer {
        /// What was to be reached.
        target: Target,
        /// The process; `None` where not even the connection could be made.
        pid: Option<u32>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Nobody offered the name in the time given.
    #[error("waited {} ms for {target}, which nobody offers", waited.as_millis())]
    TimedOut {
        /// What was waited for.
        target: Target,
        /// The time that was given.
        waited: Duration,
    },
    /// An option is out of bounds.
    #[error("cannot reach {target} with these options")]
    Options {
        /// What was to be reached.
        target: Target,
        /// Which option, and its bounds.
        source: Cause,
    },
    /// The call came from a forked child, or from a callback of a service.
    #[error("cannot reach {target} from here")]
    Misuse {
        /// What was to be reached.
        target: Target,
        /// The rule that the call breaks.
        source: Cause,
    },
    /// What was found under the name is not what it should be, or the kernel refused something.
    #[error("cannot reach {target}")]
    System {
        /// What was to be reached.
        target: Target,
        /// The operation that failed, and its reason.
        source: Cause,
    },
}

impl ConnectError {
    pub(crate) fn new(target: Target, error: beeline_domain::ConnectError) -> Self {
        use beeline_domain::ConnectError as Below;
        match error {
            Below::Name(error) => ConnectError::Name { target, source: error.into() },
            Below::Absent { path } => ConnectError::Absent { target, path },
            Below::OwnerDied { pid, .. } => ConnectError::OwnerDied { target, pid: pid.and_then(known) },
            Below::Refused { pid, reason, .. } => ConnectError::Refused { target, pid: known(pid), reason },
            Below::TimedOut { pid, waited, .. } => {
                ConnectError::NoAnswer { target, pid: pid.and_then(known), waited }
            }
            Below::Misuse(error) => ConnectError::Misuse { target, source: error.into() },
            other => ConnectError::System { target, source: other.into() },
        }
    }

    /// The error of an attempt that was repeated for `waited`.
    pub(crate) fn after(self, waited: Duration) -> Self {
        match self {
            ConnectError::Absent { target, .. } | ConnectError::OwnerDied { target, .. }
                if !waited.is_zero() =>
            {
                ConnectError::TimedOut { target, waited }
            }
            other => other,
        }
    }

    pub(crate) fn window(target: Target, error: WindowError) -> Self {
        match error {
            WindowError::Connect(error) => ConnectError::new(target, error),
            WindowError::Lines { .. } | WindowError::Arena { .. } => {
                ConnectError::Options { target, source: error.into() }
            }
            other => ConnectError::System { target, source: other.into() },
        }
    }

    #[cfg(feature = "rpc")]
    pub(crate) fn client(target: Target, error: RpcError) -> Self {
        match error {
            RpcError::Connect(error) => ConnectError::new(target, error),
            RpcError::Window(error) => ConnectError::window(target, error),
            RpcError::Option { .. } => ConnectError::Options { target, source: error.into() },
            other => ConnectError::System { target, source: other.into() },
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            ConnectError::Name { .. } => NAMES,
            ConnectError::Absent { target, .. }
            | ConnectError::OwnerDied { target, .. }
            | ConnectError::TimedOut { target, .. } => match target {
                Target::Window(_) | Target::Arena(_) => {
                    "start the receiver; check the name, the domain and that both programs use one folder (BEELINE_ROOT)"
                }
                Target::Server(_) => {
                    "start the server; check the name, the domain and that both programs use one folder (BEELINE_ROOT)"
                }
                Target::Notifier(_) => {
                    "start the notifier; check the name, the domain and that both programs use one folder (BEELINE_ROOT)"
                }
                Target::Nic(_) => "start a NIC in this domain and its folder (BEELINE_ROOT): `beeline nic`",
            },
            ConnectError::Refused { target: Target::Window(_), .. } => {
                "end the window's other sender; a receiver that is to take another user lists its uid, and maps it, or \
                 admits it by a connection, before it comes"
            }
            ConnectError::Refused { target: Target::Arena(_), .. } => {
                "drop windows that are not needed, or have the receiver offer more, larger ones or to more (`ArenaOptions`); a \
                 receiver that is to take another user lists its uid, or admits it by a connection, before it comes"
            }
            ConnectError::Refused { .. } => "do what the reason asks for",
            ConnectError::NoAnswer { .. } => "see whether that process is stopped, or starved of CPU",
            ConnectError::Options { .. } => "give the option a value in its bounds",
            ConnectError::Misuse { .. } => MISUSE,
            ConnectError::System { source, .. }
                if matches!(source.downcast_ref(), Some(beeline_domain::ConnectError::NotAllowed { .. })) =>
            {
                "let the owner offer it to this user: `allowed_uids`"
            }
            ConnectError::System { source, .. }
                if matches!(source.downcast_ref(), Some(beeline_domain::ConnectError::Unproved { .. })) =>
            {
                "exchange a token with the process that offers the name, and open the domain of that token's uid"
            }
            ConnectError::System { .. } => {
                "see that both programs are of one release and that this user may use the domain"
            }
        }
    }
}
