//! All endpoints of a process; each is made once.

use std::sync::OnceLock;

use crate::endpoint::Endpoint;

/// Connections that may be carried at the same time.
const MOST: usize = 1 << 16;
/// So many are made at a time: a program with few connections has memory for few.
const TOGETHER: usize = 64;

static ENDPOINTS: [OnceLock<Box<[Endpoint]>>; MOST / TOGETHER] = [const { OnceLock::new() }; MOST / TOGETHER];

/// Endpoints that no connection has.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    free: Vec<u32>,
    /// Those behind it were never used; `None` before the first: a child has its parent's.
    next: Option<u32>,
}

/// The endpoint with this index; below [`MOST`], as all that were ever given are.
pub(crate) fn endpoint(index: u32) -> &'static Endpoint {
    let (part, at) = (index as usize / TOGETHER, index as usize % TOGETHER);
    let first = (part * TOGETHER) as u32;
    &ENDPOINTS[part].get_or_init(|| (first..first + TOGETHER as u32).map(Endpoint::new).collect())[at]
}

/// Those that were ever given, and a few more.
pub(crate) fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS.iter().map_while(OnceLock::get).flatten()
}

impl Endpoints {
    pub(crate) fn take(&mut self) -> Option<&'static Endpoint> {
        if let Some(index) = self.free.pop() {
            return Some(endpoint(index));
        }
        let next = self.next.unwrap_or_else(|| endpoints().count() as u32);
        self.next = Some(next + 1);
        ((next as usize) < MOST).then(|| endpoint(next))
    }

    pub(crate) fn give(&mut self, endpoint: &Endpoint) {
        self.free.push(endpoint.index);
    }
}
