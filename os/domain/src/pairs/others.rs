//! Processes of other users that share a connection with this one: where they are found, and what lets them in.
//!
//! Each user has a table of connections of its own, which others may read. Whose to read, the kernel says: the uid of the socket at the other end. The same uid is
//! what lets a process in ([`Admissions`]), and nothing that it says counts but of connections whose other end is its user's (record 0082).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_tcp::OtherSocket;

use super::links::MAX_USERS;
use crate::connection_table::{ConnectionEnds, OtherProcess, OthersConnectionTable};
use crate::shared_connection::OtherEnd;
use crate::{Admissions, Admitted, Domain, DomainConfig, uid};

/// How long a user is left alone that has no domain, or keeps it to itself.
const LEFT_ALONE: Duration = Duration::from_millis(100);

/// The domains of other users that were needed so far.
#[derive(Debug)]
pub(super) struct Others {
    /// Its root names those of all users (`%u`), or is none.
    config: DomainConfig,
    pub(super) admissions: Admissions,
    by_uid: Mutex<BTreeMap<u32, Known>>,
}

#[derive(Clone, Debug)]
enum Known {
    Open(Arc<User>),
    Closed { until: Instant },
}

/// A domain of another user that is open, and the table by which its processes are found.
#[derive(Debug)]
pub(super) struct User {
    pub(super) domain: Domain,
    table: OthersConnectionTable,
}

impl Others {
    pub(super) fn new(config: DomainConfig) -> Self {
        Others { config, admissions: Admissions::default(), by_uid: Mutex::default() }
    }

    /// Lets processes of the user in who has this socket at the other end, until what is returned is dropped. `None` where the kernel names nobody.
    pub(super) fn admit(&self, at_other_end: OtherSocket) -> Option<Admitted> {
        // Before it is accepted it is the superuser's by name, and nobody's.
        let is_somebodys = at_other_end.inode != 0 && uid::names_one_user(at_other_end.uid);
        let other_end = OtherEnd::of_socket(at_other_end.uid, at_other_end.inode);
        is_somebodys.then(|| self.admissions.admit(other_end).ok()).flatten()
    }

    /// The process of this user that says it has the other end. Opens the user's domain where that is not open yet.
    pub(super) fn find(&self, uid: u32, ends: &ConnectionEnds) -> Option<NonZeroU64> {
        let user = self.user_or_open(uid)?;
        match user.table.find(ends) {
            Ok(OtherProcess::Found(candidate)) => Some(candidate.number),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%error, uid, "the table of another user cannot be read");
                self.lock().insert(uid, Known::Closed { until: Instant::now() + LEFT_ALONE });
                None
            }
        }
    }

    /// Whether a process of another user has joined its user's table under this number; never opens that.
    pub(super) fn is_member(&self, uid: u32, place: u16, number: NonZeroU64) -> bool {
        self.user(uid).is_some_and(|user| user.table.is_member(place, number))
    }

    /// The domain of a user, if it is open.
    pub(super) fn user(&self, uid: u32) -> Option<Arc<User>> {
        match self.lock().get(&uid)? {
            Known::Open(user) => Some(Arc::clone(user)),
            Known::Closed { .. } => None,
        }
    }

    fn user_or_open(&self, uid: u32) -> Option<Arc<User>> {
        match self.lock().get(&uid).cloned() {
            Some(Known::Open(user)) => return Some(user),
            Some(Known::Closed { until }) if until > Instant::now() => return None,
            _ => {}
        }
        // Without the lock, which the domain's thread takes.
        let opened = Domain::open_foreign(&self.config, uid).map_err(|error| error.to_string());
        let opened = opened.and_then(|domain| {
            let table = domain.others_connection_table().map_err(|error| error.to_string())?;
            Ok(Arc::new(User { domain, table }))
        });
        let known = match opened {
            Ok(user) => Known::Open(user),
            Err(error) => {
                tracing::debug!(error, uid, "the domain of another user cannot be used");
                Known::Closed { until: Instant::now() + LEFT_ALONE }
            }
        };
        let unneeded = self.insert(uid, known);
        drop(unneeded);
        self.user(uid)
    }

    /// Keeps what is known of a user; returns whom there is no room for then: one that is closed, or is opened again when it is needed.
    /// Connections to its processes stay.
    fn insert(&self, uid: u32, known: Known) -> Option<Known> {
        let mut users = self.lock();
        users.insert(uid, known);
        if users.len() <= MAX_USERS {
            return None;
        }
        let others = || users.iter().filter(|(other, _)| **other != uid);
        let closed = others().find(|(_, known)| matches!(known, Known::Closed { .. }));
        let unneeded = closed.or_else(|| others().next()).map(|(other, _)| *other);
        unneeded.and_then(|other| users.remove(&other))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Known>> {
        // Changed by single inserts.
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn of_many_users_those_are_forgotten_that_are_closed_and_never_the_last() {
        let others = Others::new(DomainConfig::default());
        let closed = || Known::Closed { until: Instant::now() };
        for uid in 0..10 * MAX_USERS as u32 {
            let forgotten = others.insert(uid, closed());
            assert_eq!(forgotten.is_some(), uid >= MAX_USERS as u32);
            assert!(others.lock().contains_key(&uid) && others.lock().len() <= MAX_USERS);
        }
    }
}
