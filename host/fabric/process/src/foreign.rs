//! The domain of another user, where some nodes are, as soon as that user has opened it.

use std::sync::{Mutex, PoisonError};

use beeline_domain::{Domain, DomainConfig, DomainError};

use crate::users::NodeOfUser;

/// A domain of another user, which may not be there yet, or not let anybody in: of two users, one joins first.
#[derive(Debug)]
pub(crate) struct Foreign {
    config: DomainConfig,
    uid: u32,
    opened: Mutex<Option<Domain>>,
}

impl Foreign {
    /// Opens the domain if its owner lets this user in already.
    ///
    /// # Errors
    /// It is no domain of that user's, which waiting does not change.
    pub(crate) fn new(of: &NodeOfUser) -> Result<Self, DomainError> {
        let foreign = Foreign { config: of.domain.clone(), uid: of.uid, opened: Mutex::default() };
        match foreign.domain() {
            Ok(_) => Ok(foreign),
            Err(error) if error.owner_may_come() => Ok(foreign),
            Err(error) => Err(error),
        }
    }

    /// The domain, which is opened if it is not open yet.
    ///
    /// # Errors
    /// As [`Domain::open_foreign`].
    pub(crate) fn domain(&self) -> Result<Domain, DomainError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(domain) = &*opened {
            return Ok(domain.clone());
        }
        let domain = Domain::open_foreign(&self.config, self.uid)?;
        Ok(opened.insert(domain).clone())
    }
}
