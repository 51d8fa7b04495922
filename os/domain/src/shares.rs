//! How much of what an offer has one process, or one user besides the owner, may take, so that others find some left.

use std::fmt;

use crate::Peer;
use crate::folder::own_uid;

/// A process, and the user it runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// 0 for all processes outside this pid namespace.
    pub pid: u32,
    pub uid: u32,
}

impl Process {
    /// Names who is at the other end of a connection, by the kernel's evidence.
    pub fn of(peer: &Peer) -> Self {
        Process { pid: peer.pid(), uid: peer.uid() }
    }

    /// Whether it runs as another user than this process.
    pub fn is_foreign(self) -> bool {
        self.uid != own_uid()
    }
}

/// The most that one process and one user may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// One process, of whatever user. Processes outside this pid namespace cannot be told apart and have no such limit.
    pub of_process: usize,
    /// All processes together of one user who is not the owner.
    pub of_other_user: usize,
}

/// Whose share is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    Process { pid: u32, most: usize },
    User { uid: u32, most: usize },
}

impl Shares {
    /// The shares where nothing else is said: a process may take all of `limit` but a sixteenth, another user half.
    pub const fn of(limit: usize) -> Self {
        let half = limit / 2;
        Shares { of_process: limit - limit / 16, of_other_user: if half == 0 { 1 } else { half } }
    }

    /// Whether `comer` may have one more, when each of `holders` has one.
    ///
    /// # Errors
    /// The share of the process or of its user is used up.
    pub fn check(&self, comer: Process, holders: impl Iterator<Item = Process>) -> Result<(), Exceeded> {
        let (mut of_process, mut of_user) = (0, 0);
        for holder in holders.filter(|holder| holder.uid == comer.uid) {
            of_user += 1;
            of_process += usize::from(holder.pid == comer.pid);
        }
        if comer.pid != 0 && of_process >= self.of_process {
            return Err(Exceeded::Process { pid: comer.pid, most: self.of_process });
        }
        if comer.is_foreign() && of_user >= self.of_other_user {
            return Err(Exceeded::User { uid: comer.uid, most: self.of_other_user });
        }
        Ok(())
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exceeded::Process { pid, most } => {
                write!(out, "process {pid} has {most} of them, the most that one process may have")
            }
            Exceeded::User { uid, most } => {
                write!(out, "uid {uid} has {most} of them, the most that a user besides the owner may have")
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_some_to_others_and_none_is_zero() {
        for (limit, of_process, of_other_user) in
            [(1, 1, 1), (2, 2, 1), (15, 15, 7), (16, 15, 8), (1024, 960, 512)]
        {
            assert_eq!(Shares::of(limit), Shares { of_process, of_other_user });
        }
    }

    #[test]
    fn a_share_that_is_used_up_is_one_processs_or_another_users() {
        let shares = Shares { of_process: 3, of_other_user: 4 };
        let (own, other) = (own_uid(), own_uid() + 1);
        let held = |pid, uid, count| std::iter::repeat_n(Process { pid, uid }, count);
        let own_process = Process { pid: 7, uid: own };
        assert_eq!(shares.check(own_process, held(7, own, 2).chain(held(8, own, 90))), Ok(()));
        let full = shares.check(own_process, held(7, own, 3));
        assert_eq!(full, Err(Exceeded::Process { pid: 7, most: 3 }));
        assert_eq!(shares.check(own_process, held(7, other, 3)), Ok(()), "a number of another user's");
        let foreign = Process { pid: 9, uid: other };
        assert_eq!(shares.check(foreign, held(7, other, 2).chain(held(8, other, 1))), Ok(()));
        let full = shares.check(foreign, held(7, other, 2).chain(held(8, other, 2)));
        assert_eq!(full, Err(Exceeded::User { uid: other, most: 4 }));
        assert_eq!(shares.check(Process { pid: 0, uid: own }, held(0, own, 90)), Ok(()));
    }
}
