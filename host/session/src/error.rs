//! Why a job through a NIC cannot be done: what went wrong, because of what, and what a person can do.
//!
//! What: the words of the error. Because: its source. What to do: [`NicError::remedy`].

use std::error::Error;
use std::io;
use std::path::PathBuf;

use beeline_domain::{DomainConfig, DomainError, MayArrive};
use beeline_driver::{PortError, RxError, TxError};
use beeline_link_shm::ConnectError;
use beeline_nic_process::NicProcessError;

/// A NIC that cannot be had, or a way through it that must not be believed.
#[derive(Debug, thiserror::Error)]
pub enum NicError {
    /// The NIC's domain cannot be opened.
    #[error("cannot open domain {}", domain.name)]
    Domain {
        /// Name of the NIC.
        nic: String,
        domain: DomainConfig,
        /// The domain's owner, if that is another user.
        owner_uid: Option<u32>,
        source: Box<DomainError>,
    },
    /// No such NIC, or it is not one of ours.
    #[error("cannot reach a NIC called {nic} in domain {}", domain.name)]
    Reach {
        /// Name of the NIC.
        nic: String,
        /// Domain that was looked in.
        domain: DomainConfig,
        /// The domain's owner, if that is another user.
        owner_uid: Option<u32>,
        source: Box<ConnectError>,
    },
    /// Bring-up, or opening or closing a queue, failed.
    #[error("the port cannot be used")]
    Port(#[from] PortError),
    /// No blank can be drawn for a window.
    #[error("the kernel gives no random numbers")]
    Random(#[from] getrandom::Error),
    /// A transmit queue refused a frame, or its device broke the protocol.
    #[error("cannot send")]
    Send(#[from] TxError),
    /// A device broke the protocol of its receive ring.
    #[error("cannot receive")]
    Receive(#[from] RxError),
    /// The NIC process is gone.
    #[error("the NIC process ended while waiting for {what}")]
    Gone {
        /// What was waited for.
        what: String,
    },
    /// Nothing happened for longer than a run may wait.
    #[error("waited {seconds} s for {what}")]
    TimedOut {
        seconds: u64,
        /// What was waited for.
        what: String,
    },
    /// A frame came back other than it was sent.
    #[error("frame {number} of {bytes} bytes: {difference}")]
    Altered {
        /// Number of the frame, from 0.
        number: u64,
        /// Bytes it was to come back with.
        bytes: usize,
        /// The first thing that is wrong with it.
        difference: String,
    },
    /// The device put other frames on the wire than were handed over.
    #[error("the NIC put {counted} frames on the wire where {sent} were handed over")]
    Miscounted {
        /// Frames handed over.
        sent: u64,
        /// Frames by which the device's own counter grew.
        counted: u64,
    },
    /// This program's own file, which a NIC process is started from, cannot be found.
    #[error("cannot find this program's own file")]
    Program(#[source] io::Error),
    /// A NIC process cannot be started.
    #[error("cannot start a NIC process from {program}")]
    Start { program: PathBuf, source: io::Error },
    /// A NIC process ended otherwise than it was told to.
    #[error("the NIC process {how}{}{words}", if words.is_empty() { "" } else { ":\n" })]
    Ended {
        how: String,
        /// Last line that the process wrote to its standard error.
        words: String,
    },
    /// A NIC process cannot be waited for.
    #[error("cannot wait for the NIC process")]
    Wait(#[source] io::Error),
    /// This process cannot be a NIC.
    #[error("cannot be NIC {nic} in domain {domain}")]
    Serve { nic: String, domain: String, source: Box<NicProcessError> },
    /// This process cannot go on being a NIC.
    #[error("the NIC stopped")]
    Stopped(#[source] Box<NicProcessError>),
    /// A NIC's process cannot talk to whoever started it.
    #[error("cannot {what}")]
    Talk { what: &'static str, source: io::Error },
    /// An up-link of a NIC is off.
    #[error("up-link {uplink} failed: {reason}")]
    Uplink {
        uplink: String,
        /// Why it is off.
        reason: String,
    },
}

impl NicError {
    /// What a person can do about it, if anything.
    pub fn remedy(&self) -> Option<String> {
        match self {
            NicError::Domain { nic, domain, owner_uid, source } => {
                source.absence().map(|_| how_to_start(&format!("nic --name {nic}"), domain, *owner_uid))
            }
            NicError::Reach { nic, domain, owner_uid, source } => {
                // A NIC that is there and refuses says itself what to do.
                source.absence().map(|_| how_to_start(&format!("nic --name {nic}"), domain, *owner_uid))
            }
            NicError::TimedOut { .. } => Some(
                "beeline stat shows whether the NIC still counts; beeline doctor what may be wrong"
                    .to_owned(),
            ),
            NicError::Program(_) => Some("run it by its full path".to_owned()),
            _ => None,
        }
    }
}

/// What a person types to offer what a command looked for: `command` is that of the program `beeline`, `owner_uid` the user
/// who has to type it, if that is another one than this process's.
pub fn how_to_start(command: &str, domain: &DomainConfig, owner_uid: Option<u32>) -> String {
    let root = domain.root.as_ref().map(|root| format!(" --root {}", root.display())).unwrap_or_default();
    let typed = format!("beeline {command} --domain {}{root}", domain.name);
    match owner_uid {
        None => typed,
        Some(owner_uid) => {
            let own_uid = rustix::process::geteuid().as_raw();
            format!("have uid {owner_uid} run: {typed} --allow-uid {own_uid}")
        }
    }
}

/// An error with its causes, those left out that it names itself.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_domain::FolderError;

    #[test]
    fn what_because_and_remedy_are_apart() {
        let error = NicError::Start { program: "/x".into(), source: io::Error::other("no more processes") };
        assert_eq!(error.to_string(), "cannot start a NIC process from /x");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("no more processes"));
        assert_eq!(error.remedy(), None);
        let waited = NicError::TimedOut { seconds: 10, what: "a frame".to_owned() };
        assert!(waited.remedy().is_some_and(|remedy| remedy.contains("beeline doctor")));
    }

    #[test]
    fn remedy_of_an_absent_nic_is_the_command_of_whoever_has_to_start_it() {
        let reach = |owner_uid, below| NicError::Reach {
            nic: "lab".to_owned(),
            domain: DomainConfig { root: Some("/r".into()), ..DomainConfig::named("d") },
            owner_uid,
            source: Box::new(ConnectError::Rendezvous { service: "lab".to_owned(), source: below }),
        };
        let absent = || beeline_domain::ConnectError::Absent { path: "/r/d/lab.sock".into() };
        let typed = "beeline nic --name lab --domain d --root /r";
        assert_eq!(reach(None, absent()).remedy().as_deref(), Some(typed));
        let own_uid = rustix::process::geteuid().as_raw();
        let other = format!("have uid 7 run: {typed} --allow-uid {own_uid}");
        assert_eq!(reach(Some(7), absent()).remedy(), Some(other));
        let source = FolderError::ForeignAbsent { path: "/r/d".into(), owner_uid: 7 };
        let domain = DomainConfig { root: Some("/r".into()), ..DomainConfig::named("d") };
        let no_folder = NicError::Domain {
            nic: "lab".to_owned(),
            domain,
            owner_uid: Some(7),
            source: Box::new(source.into()),
        };
        assert_eq!(no_folder.remedy(), reach(Some(7), absent()).remedy());
        let refused = beeline_domain::ConnectError::NotAllowed { path: "/r/d/lab.sock".into(), uid: 8 };
        assert_eq!(reach(Some(7), refused).remedy(), None);
    }

    #[test]
    fn causes_are_told_once() {
        let error = NicError::Start { program: "/x".into(), source: io::Error::other("no more processes") };
        assert_eq!(with_causes(&error), "cannot start a NIC process from /x: no more processes");
        let waited = NicError::TimedOut { seconds: 10, what: "a frame".to_owned() };
        assert_eq!(with_causes(&waited), "waited 10 s for a frame");
    }

    #[test]
    fn last_words_stand_on_lines_of_their_own() {
        let ended = |words: &str| NicError::Ended { how: "failed".to_owned(), words: words.to_owned() };
        assert_eq!(ended("").to_string(), "the NIC process failed");
        assert_eq!(ended("why").to_string(), "the NIC process failed:\nwhy");
    }
}
