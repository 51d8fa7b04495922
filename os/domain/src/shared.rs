//! What the handles of an open domain have in common.

use std::sync::Arc;

use beeline_mmio::{ThisProcess, membarrier};

use crate::error::{DomainError, MisuseError};
use crate::evidence::own_started_ticks;
use crate::folder::own_uid;
use crate::place::Place;
use crate::reactor::Reactor;
use crate::wire::{Header, Identity, Kind};

/// The place, the thread and the identity of a domain.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) place: Arc<Place>,
    pub(crate) reactor: Reactor,
    pub(crate) identity: Identity,
    pub(crate) opened_by: ThisProcess,
}

impl Shared {
    /// Starts the thread of this process for a domain whose place is open, and registers the process for membarriers.
    pub(crate) fn start(place: Arc<Place>) -> Result<Self, DomainError> {
        if let Err(error) = membarrier::register() {
            tracing::info!(%error, "peers and this process fence per message");
        }
        let identity = Identity {
            uid: own_uid(),
            membarrier: membarrier::is_registered(),
            started_ticks: own_started_ticks(),
            has_permissions: place.keeps_others_out(),
        };
        let reactor =
            Reactor::start(identity).map_err(|(what, error)| DomainError::Thread { what, error })?;
        Ok(Shared { place, reactor, identity, opened_by: ThisProcess::get() })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    pub(crate) fn header(&self, kind: Kind, serial: u32) -> Header {
        self.identity.header(kind, serial)
    }

    /// Whether this is the process that opened the domain.
    pub(crate) fn is_own(&self) -> bool {
        self.opened_by.is_this()
    }

    /// Whether this process and thread may wait for the background thread, its descriptors are there, and it is
    /// where the domain lies.
    pub(crate) fn check_thread(&self) -> Result<(), MisuseError> {
        if !self.is_own() {
            return Err(MisuseError::Forked { opened_by: self.opened_by.pid(), pid: std::process::id() });
        }
        if self.reactor.is_this_thread() {
            return Err(MisuseError::OnDomainThread);
        }
        if self.reactor.is_lost() {
            return Err(MisuseError::DescriptorLost);
        }
        self.place.check()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.is_own() {
            self.reactor.forget_thread();
        }
    }
}
