//! Domains: the groups of processes that find each other. `beeline.h` and `beeline_rpc.h` have the same ones, each by a name
//! of its own.

use core::ffi::c_int;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig, DomainError};
use beeline_ffi::{Failure, Handle, HandleVariable, Kind, Out, Outcome, Shared, Text, edge};

use crate::status::{OK, REFUSED};

/// A domain. Any thread may use it.
pub enum beeline_rpc_domain {
    /// This user's, which is open.
    Own(Domain),
    /// Another user's, which may be made later than the handle.
    Foreign(Foreign),
}

/// Another user's domain, opened when its owner has made it.
pub struct Foreign {
    config: DomainConfig,
    owner_uid: u32,
    opened: OnceLock<Domain>,
}

impl beeline_rpc_domain {
    /// The open domain; does not wait for another user to make it.
    pub(crate) fn opened(&self) -> Outcome<&Domain> {
        Ok(self.opened_within(Duration::ZERO)?.0)
    }

    /// As `opened`, for the facade of Rust.
    pub(crate) fn facade(&self) -> Outcome<beeline::Domain> {
        Ok(self.opened()?.clone().into())
    }

    /// As `opened_within`, for the facade of Rust.
    pub(crate) fn facade_within(&self, timeout: Duration) -> Outcome<(beeline::Domain, Duration)> {
        let (domain, left) = self.opened_within(timeout)?;
        Ok((domain.clone().into(), left))
    }

    /// The open domain, and what is left of `timeout`: for at most so long this waits until another user has made it and opened
    /// it to this one.
    pub(crate) fn opened_within(&self, timeout: Duration) -> Outcome<(&Domain, Duration)> {
        let started = Instant::now();
        let domain = self.await_opened(timeout)?;
        Ok((domain, timeout.saturating_sub(started.elapsed())))
    }

    fn await_opened(&self, timeout: Duration) -> Outcome<&Domain> {
        let foreign = match self {
            beeline_rpc_domain::Own(domain) => return Ok(domain),
            beeline_rpc_domain::Foreign(foreign) => foreign,
        };
        if let Some(domain) = foreign.opened.get() {
            return Ok(domain);
        }
        let domain =
            Domain::open_foreign_awaiting(&foreign.config, foreign.owner_uid, timeout).map_err(refused)?;
        // Of threads that waited at once, one keeps its domain.
        Ok(foreign.opened.get_or_init(|| domain))
    }
}

impl Kind for beeline_rpc_domain {
    const NAME: &'static str = "domain";
    const TAG: u8 = 0x21;
}

pub(crate) static DOMAINS: Shared<beeline_rpc_domain> = Shared::new();

fn refused(error: DomainError) -> Failure {
    Failure::new(REFUSED, error.to_string())
}

fn open(
    name: Text<'_>,
    root: Text<'_>,
    place: Out<'_, Handle<beeline_rpc_domain>>,
    open: impl FnOnce(DomainConfig) -> Outcome<beeline_rpc_domain>,
) -> Outcome<c_int> {
    place.put(Handle::NULL, "domain")?;
    let name = name.read("name")?.to_owned();
    let root = if root.is_null() { None } else { Some(PathBuf::from(root.read("root")?)) };
    place.put(DOMAINS.insert(open(DomainConfig { root, name })?)?, "domain")?;
    Ok(OK)
}

fn open_own(config: DomainConfig) -> Outcome<beeline_rpc_domain> {
    Ok(beeline_rpc_domain::Own(Domain::open(&config).map_err(refused)?))
}

fn open_foreign(config: DomainConfig, owner_uid: u32) -> Outcome<beeline_rpc_domain> {
    let opened = match Domain::open_foreign(&config, owner_uid) {
        Ok(domain) => OnceLock::from(domain),
        Err(error) if error.owner_may_come() => OnceLock::new(),
        Err(error) => return Err(refused(error)),
    };
    Ok(beeline_rpc_domain::Foreign(Foreign { config, owner_uid, opened }))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_domain_open(
    name: Text<'_>,
    root: Text<'_>,
    domain: Out<'_, Handle<beeline_rpc_domain>>,
) -> c_int {
    edge("beeline_rpc_domain_open", || open(name, root, domain, open_own))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_domain_open_foreign(
    name: Text<'_>,
    root: Text<'_>,
    owner_uid: u32,
    domain: Out<'_, Handle<beeline_rpc_domain>>,
) -> c_int {
    edge("beeline_rpc_domain_open_foreign", || {
        open(name, root, domain, |config| open_foreign(config, owner_uid))
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_domain_close(domain: HandleVariable<'_, beeline_rpc_domain>) -> c_int {
    edge("beeline_rpc_domain_close", || DOMAINS.close(&domain).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_domain_open(
    name: Text<'_>,
    root: Text<'_>,
    domain: Out<'_, Handle<beeline_rpc_domain>>,
) -> c_int {
    edge("beeline_domain_open", || open(name, root, domain, open_own))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_domain_open_foreign(
    name: Text<'_>,
    root: Text<'_>,
    owner_uid: u32,
    domain: Out<'_, Handle<beeline_rpc_domain>>,
) -> c_int {
    edge("beeline_domain_open_foreign", || open(name, root, domain, |config| open_foreign(config, owner_uid)))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_domain_close(domain: HandleVariable<'_, beeline_rpc_domain>) -> c_int {
    edge("beeline_domain_close", || DOMAINS.close(&domain).map(|_| OK))
}
