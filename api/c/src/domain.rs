//! Domains: the groups of processes that find each other.

use core::ffi::c_int;
use std::path::PathBuf;

use beeline_domain::{Domain, DomainConfig, DomainError};
use beeline_ffi::{Failure, Handle, HandleVariable, Kind, Out, Outcome, Shared, Text, edge};

use crate::status::{OK, REFUSED};

/// An open domain. Any thread may use it.
pub struct beeline_rpc_domain {
    pub(crate) domain: Domain,
}

impl Kind for beeline_rpc_domain {
    const NAME: &'static str = "domain";
    const TAG: u8 = 0x21;
}

pub(crate) static DOMAINS: Shared<beeline_rpc_domain> = Shared::new();

fn open(
    name: Text<'_>,
    root: Text<'_>,
    place: Out<'_, Handle<beeline_rpc_domain>>,
    open: impl FnOnce(&DomainConfig) -> Result<Domain, DomainError>,
) -> Outcome<c_int> {
    place.put(Handle::NULL, "domain")?;
    let name = name.read("name")?.to_owned();
    let root = if root.is_null() { None } else { Some(PathBuf::from(root.read("root")?)) };
    let domain =
        open(&DomainConfig { root, name }).map_err(|error| Failure::new(REFUSED, error.to_string()))?;
    place.put(DOMAINS.insert(beeline_rpc_domain { domain })?, "domain")?;
    Ok(OK)
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_domain_open(
    name: Text<'_>,
    root: Text<'_>,
    domain: Out<'_, Handle<beeline_rpc_domain>>,
) -> c_int {
    edge("beeline_rpc_domain_open", || open(name, root, domain, Domain::open))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_domain_open_foreign(
    name: Text<'_>,
    root: Text<'_>,
    owner_uid: u32,
    domain: Out<'_, Handle<beeline_rpc_domain>>,
) -> c_int {
    edge("beeline_rpc_domain_open_foreign", || {
        domain.put(Handle::NULL, "domain")?;
        if root.is_null() {
            return Err(Failure::invalid(
                "root is NULL: the default is this user's own; give the owner's folder",
            ));
        }
        open(name, root, domain, |config| Domain::open_foreign(config, owner_uid))
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_domain_close(domain: HandleVariable<'_, beeline_rpc_domain>) -> c_int {
    edge("beeline_rpc_domain_close", || DOMAINS.close(&domain).map(|_| OK))
}
