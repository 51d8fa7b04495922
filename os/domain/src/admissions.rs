//! Who is let in by an offer besides those on its list: whoever shares a connection with the process that offers.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beeline_mmio::ThisProcess;

use crate::error::MisuseError;
use crate::evidence::Evidence;
use crate::shared_connection::OtherEnd;
use crate::token::{Comer, ExchangeError, SECRET_BYTES, Token};
use crate::uid;

/// Proofs by which an offer lets processes in that are on no list. Clones are the same; a program adds and removes proofs while
/// the offer is there.
#[derive(Clone)]
pub struct Admissions(Arc<State>);

struct State {
    made_by: ThisProcess,
    proofs: Mutex<Proofs>,
}

#[derive(Default)]
struct Proofs {
    next: u64,
    by_number: BTreeMap<u64, Proof>,
}

/// What lets somebody in.
#[derive(Debug)]
enum Proof {
    /// Any process of the user who has the other end of a connection.
    User(OtherEnd),
    /// The process that has the other side of a token, once.
    Holder(Token),
}

/// A proof that an offer goes by until this is dropped. Connections that were made by then stay.
#[derive(Debug)]
#[must_use = "the proof is good until this is dropped"]
pub struct Admitted {
    admissions: Admissions,
    number: u64,
}

/// Why nobody is let in by a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmitError {
    /// There is no token.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// This process was forked from the one that made the admissions.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
}

impl Default for Admissions {
    /// Nobody.
    fn default() -> Self {
        Admissions(Arc::new(State { made_by: ThisProcess::get(), proofs: Mutex::default() }))
    }
}

impl Admissions {
    /// Has offers with these admissions let in processes of the user who has the other end of a connection.
    ///
    /// # Errors
    /// This process was forked from the one that made them.
    pub fn admit(&self, other_end: OtherEnd) -> Result<Admitted, MisuseError> {
        self.add(Proof::User(other_end))
    }

    /// Has offers with these admissions let in the process with which a token was exchanged, once: it must show its side of the
    /// token ([`crate::Domain::connect_proving`]).
    ///
    /// # Errors
    /// This process was forked from the one that made them.
    pub fn admit_holder(&self, token: Token) -> Result<Admitted, MisuseError> {
        self.add(Proof::Holder(token))
    }

    /// Exchanges a token in a connection, as [`Token::exchange`] does, and has offers with these admissions let in the process at
    /// its other end, once ([`Admissions::admit_holder`]). The other side, which calls [`Token::exchange`], has its token only when
    /// it is let in, and may connect at once. Waits for at most `timeout`.
    ///
    /// # Errors
    /// There is no token, or the other side cannot be let in; then nobody is.
    pub fn admit_other_side(&self, connection: impl AsFd, timeout: Duration) -> Result<Admitted, AdmitError> {
        // Before anything of the connection is read.
        self.check()?;
        Token::answer(connection.as_fd(), timeout, |token| Ok(self.admit_holder(token)?))
    }

    fn add(&self, proof: Proof) -> Result<Admitted, MisuseError> {
        self.check()?;
        let mut proofs = self.lock();
        let number = proofs.next;
        proofs.next += 1;
        proofs.by_number.insert(number, proof);
        drop(proofs);
        Ok(Admitted { admissions: self.clone(), number })
    }

    /// Whether a process may try to show a secret: the kernel says that it is one with which a token was exchanged.
    pub(crate) fn awaits(&self, comer: &Evidence) -> bool {
        // Outside the lock, and once: anybody may come, and the domain's thread asks.
        let comer = Comer::of(comer);
        let is_it = |proof: &Proof| matches!(proof, Proof::Holder(token) if token.identity.is(comer));
        self.check().is_ok() && self.lock().by_number.values().any(is_it)
    }

    /// Takes the token whose secret a process shows; gives what it is answered. The secret is good no more.
    pub(crate) fn prove(&self, comer: &Evidence, shown: &[u8]) -> Option<[u8; SECRET_BYTES]> {
        self.check().ok()?;
        let comer = Comer::of(comer);
        let mut proofs = self.lock();
        let is_it = |proof: &Proof| matches!(proof, Proof::Holder(token) if token.identity.is(comer) && token.own.is(shown));
        let number = proofs.by_number.iter().find(|(_, proof)| is_it(proof)).map(|(number, _)| *number)?;
        match proofs.by_number.remove(&number) {
            Some(Proof::Holder(token)) => Some(*token.theirs.bytes()),
            _ => None,
        }
    }

    /// Whether a process of this user is let in by a proof.
    pub(crate) fn has(&self, uid: u32) -> bool {
        self.check().is_ok()
            && self
                .lock()
                .by_number
                .values()
                .any(|proof| matches!(proof, Proof::User(other_end) if other_end.uid() == uid))
            && uid::names_one_user(uid)
    }

    fn check(&self) -> Result<(), MisuseError> {
        // Before the lock, which a thread may hold that a forked child does not have.
        if self.0.made_by.is_this() {
            return Ok(());
        }
        Err(MisuseError::Forked { opened_by: self.0.made_by.pid(), pid: std::process::id() })
    }

    fn lock(&self) -> MutexGuard<'_, Proofs> {
        // Changed by single inserts and removals.
        self.0.proofs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.admissions.check().is_ok() {
            self.admissions.lock().by_number.remove(&self.number);
        }
    }
}

/// The same admissions, not equal ones.
impl PartialEq for Admissions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Admissions {}

impl fmt::Debug for Admissions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Admissions").finish_non_exhaustive()
    }
}
