//! What the handles of an open domain have in common.

use std::sync::Arc;

use crate::error::MisuseError;
use crate::folder::Folder;
use crate::reactor::Reactor;
use crate::wire::{Header, Identity, Kind};

/// The folder, the thread and the identity of a domain.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) folder: Arc<Folder>,
    pub(crate) reactor: Reactor,
    pub(crate) identity: Identity,
    pub(crate) opened_by: u32,
}

impl Shared {
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(crate) fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    pub(crate) fn header(&self, kind: Kind, serial: u32) -> Header {
        self.identity.header(kind, serial)
    }

    /// Whether this is the process that opened the domain. One system call.
    pub(crate) fn is_own(&self) -> bool {
        std::process::id() == self.opened_by
    }

    /// Whether this process and thread may wait for the background thread.
    pub(crate) fn check_thread(&self) -> Result<(), MisuseError> {
        if !self.is_own() {
            return Err(MisuseError::Forked { opened_by: self.opened_by, pid: std::process::id() });
        }
        if self.reactor.is_this_thread() {
            return Err(MisuseError::OnDomainThread);
        }
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.is_own() {
            self.reactor.forget_thread();
        }
    }
}
