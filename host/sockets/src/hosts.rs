//! Connections between hosts, whose other end this process's kernel does not know: what went through them so far, by which two processes find out
//! whether they have the two ends of one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use beeline_domain::ProgressOf;
use beeline_tcp::Progress;

use crate::endpoint::Endpoint;
use crate::lock::locked;

/// Those whose other end is looked for, by their cookies.
#[derive(Debug, Default)]
pub(crate) struct BetweenHosts(Mutex<BTreeMap<u64, &'static Endpoint>>);

impl BetweenHosts {
    /// As pairs ask for it.
    pub(crate) fn asked(self: Arc<Self>) -> Box<ProgressOf> {
        Box::new(move |cookie| self.progress(cookie))
    }

    pub(crate) fn add(&self, cookie: u64, endpoint: &'static Endpoint) {
        locked(&self.0).insert(cookie, endpoint);
    }

    pub(crate) fn remove(&self, cookie: u64) {
        locked(&self.0).remove(&cookie);
    }

    /// What the kernel says now; nothing where the number is another socket's meanwhile.
    fn progress(&self, cookie: u64) -> Option<Progress> {
        let endpoint = *locked(&self.0).get(&cookie)?;
        let socket = endpoint.own_socket(cookie).ok()?;
        beeline_tcp::progress(&socket, endpoint.side()).ok()
    }
}
