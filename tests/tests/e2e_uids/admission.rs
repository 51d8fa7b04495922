//! What admits a process of another user, and the connection that it shares with the owner for that.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

use beeline::NETWORK_NAMESPACE;
use rustix::io::FdFlags;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::e2e_support::{WATCHDOG, argument, domain_config};

/// Later than whoever waits at the other end is taken for hung: the end of a connection has to end every exchange in it.
pub const NEVER: Duration = WATCHDOG.saturating_mul(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The offer lists its user.
    Listed,
    /// The kernel says that its user has the other end of a connection of TCP.
    SharedTcp,
    /// A token that was exchanged in a connection of TCP.
    TokenOverTcp,
    /// A token that was exchanged in a pair of sockets that both inherited.
    TokenOverPair,
}

impl Admission {
    pub const ALL: [Admission; 4] =
        [Admission::Listed, Admission::SharedTcp, Admission::TokenOverTcp, Admission::TokenOverPair];

    pub fn of_role() -> Self {
        let name = argument("ADMISSION").unwrap();
        Self::ALL.into_iter().find(|admission| admission.name() == name).unwrap()
    }

    pub fn name(self) -> String {
        format!("{self:?}")
    }

    pub fn has_token(self) -> bool {
        matches!(self, Admission::TokenOverTcp | Admission::TokenOverPair)
    }

    /// The root and the name of the domain of this role's test: a folder for users on a list, the network namespace for those who
    /// share a connection.
    pub fn domain(self) -> (PathBuf, String) {
        let folder = domain_config();
        match self {
            Admission::Listed => (folder.root.unwrap(), folder.name),
            _ => (NETWORK_NAMESPACE.into(), argument("NAME").unwrap()),
        }
    }

    /// The connections that the owner is given, one after the other, and the port at which others connect.
    pub fn connections(self) -> (u16, Box<dyn Iterator<Item = OwnedFd> + Send>) {
        match self {
            Admission::Listed => (0, Box::new(std::iter::empty())),
            Admission::TokenOverPair => (0, Box::new(inherited())),
            Admission::SharedTcp | Admission::TokenOverTcp => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
                let port = listener.local_addr().unwrap().port();
                let accepted = std::iter::repeat_with(move || listener.accept().unwrap().0.into());
                (port, Box::new(accepted))
            }
        }
    }

    /// The connection of a client; an error where the owner has died.
    pub fn connect(self) -> std::io::Result<Option<OwnedFd>> {
        Ok(match self {
            Admission::Listed => None,
            Admission::TokenOverPair => Some(inherited().next().unwrap()),
            Admission::SharedTcp | Admission::TokenOverTcp => {
                let port = argument("PORT").unwrap().parse().unwrap();
                Some(TcpStream::connect((Ipv4Addr::LOCALHOST, port))?.into())
            }
        })
    }
}

/// Copies of the sockets that this process was started with.
fn inherited() -> impl Iterator<Item = OwnedFd> + Send {
    let numbers: Vec<RawFd> =
        argument("INHERITED").unwrap().split(' ').map(|number| number.parse().unwrap()).collect();
    let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    numbers.into_iter().map(move |number| pidfd_getfd(&this, number, PidfdGetfdFlags::empty()).unwrap())
}

/// Lets processes that are started from now on inherit a descriptor; its number in them.
pub fn bequeath(fd: &OwnedFd) -> String {
    rustix::io::fcntl_setfd(fd, FdFlags::empty()).unwrap();
    fd.as_raw_fd().to_string()
}
