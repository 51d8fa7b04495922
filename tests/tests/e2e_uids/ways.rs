//! The ways by which a process of another user gets in, and the connection that it shares with the owner for that.

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
pub enum Way {
    /// The offer lists its user.
    Listed,
    /// The kernel says that its user has the other end of a connection of TCP.
    SharedTcp,
    /// A token that was exchanged in a connection of TCP.
    TokenOverTcp,
    /// A token that was exchanged in a pair of sockets that both inherited.
    TokenOverPair,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Listed, Way::SharedTcp, Way::TokenOverTcp, Way::TokenOverPair];

    pub fn of_role() -> Self {
        let name = argument("WAY").unwrap();
        Self::ALL.into_iter().find(|way| way.name() == name).unwrap()
    }

    pub fn name(self) -> String {
        format!("{self:?}")
    }

    pub fn has_token(self) -> bool {
        matches!(self, Way::TokenOverTcp | Way::TokenOverPair)
    }

    /// Where the owner and the others of this role's test meet: users on a list in a folder, those who share a connection
    /// nowhere but in their network namespace.
    pub fn place(self) -> (PathBuf, String) {
        let folder = domain_config();
        match self {
            Way::Listed => (folder.root.unwrap(), folder.name),
            _ => (NETWORK_NAMESPACE.into(), argument("NAME").unwrap()),
        }
    }

    /// The connections that the owner is given, one after the other, and the port at which others connect.
    pub fn connections(self) -> (u16, Box<dyn Iterator<Item = OwnedFd> + Send>) {
        match self {
            Way::Listed => (0, Box::new(std::iter::empty())),
            Way::TokenOverPair => (0, Box::new(inherited())),
            Way::SharedTcp | Way::TokenOverTcp => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
                let port = listener.local_addr().unwrap().port();
                let accepted = std::iter::repeat_with(move || listener.accept().unwrap().0.into());
                (port, Box::new(accepted))
            }
        }
    }

    /// The connection of somebody who comes; an error where the owner has died.
    pub fn connect(self) -> std::io::Result<Option<OwnedFd>> {
        Ok(match self {
            Way::Listed => None,
            Way::TokenOverPair => Some(inherited().next().unwrap()),
            Way::SharedTcp | Way::TokenOverTcp => {
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
