//! Domains: the groups of processes that find each other.

use core::ffi::{c_char, c_int};
use std::path::PathBuf;

use beeline_domain::{Domain, DomainConfig};

use crate::edge::{Failure, edge, put, text_of};
use crate::status::{OK, REFUSED};

/// An open domain. Any thread may use it.
pub struct beeline_rpc_domain {
    pub(crate) domain: Domain,
}

/// # Safety
/// `name` and `root` are NULL or texts; `domain` is NULL or memory of a pointer.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_domain_open(
    name: *const c_char,
    root: *const c_char,
    domain: *mut *mut beeline_rpc_domain,
) -> c_int {
    edge("beeline_rpc_domain_open", || {
        // SAFETY: the caller's.
        unsafe { put(domain, core::ptr::null_mut(), "domain") }?;
        // SAFETY: the caller's.
        let name = unsafe { text_of(name, "name") }?.to_owned();
        let root = if root.is_null() {
            None
        } else {
            // SAFETY: the caller's.
            Some(PathBuf::from(unsafe { text_of(root, "root") }?))
        };
        let opened = Domain::open(&DomainConfig { root, name });
        let opened = opened.map_err(|error| Failure::new(REFUSED, error.to_string()))?;
        let handle = Box::into_raw(Box::new(beeline_rpc_domain { domain: opened }));
        // SAFETY: the caller's.
        unsafe { put(domain, handle, "domain") }?;
        Ok(OK)
    })
}

/// # Safety
/// `domain` is NULL or memory of a pointer that is NULL or an open domain which nobody uses meanwhile or afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_domain_close(domain: *mut *mut beeline_rpc_domain) -> c_int {
    edge("beeline_rpc_domain_close", || {
        // SAFETY: the caller's.
        if let Some(handle) = unsafe { domain.as_mut() }
            && !handle.is_null()
        {
            let handle = core::mem::replace(handle, core::ptr::null_mut());
            // SAFETY: not NULL, so from `Box::into_raw` in `beeline_rpc_domain_open`, and not closed before: closing
            // makes the caller's pointer NULL.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(OK)
    })
}
