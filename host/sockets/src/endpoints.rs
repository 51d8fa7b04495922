//! All endpoints of a process; each is made once.

use std::sync::OnceLock;

use crate::endpoint::Endpoint;

/// Connections that may be carried at the same time.
const MOST: usize = 1 << 16;
/// So many are made at a time: a program with few connections has memory for few.
const TOGETHER: usize = 64;
/// Endpoints of connections that have ended, of which the thread in the background has not heard yet, at most: new ones are made meanwhile.
const MOST_UNHEARD: usize = 128;

static ENDPOINTS: [OnceLock<Box<[Endpoint]>>; MOST / TOGETHER] = [const { OnceLock::new() }; MOST / TOGETHER];

/// Endpoints that no connection has.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    free: Vec<u32>,
    /// Those behind it were never used; `None` before the first: a child has its parent's.
    next: Option<u32>,
    unheard: usize,
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

    /// The endpoint with this index has no connection any more, and nobody else knows of the one that it had.
    pub(crate) fn give(&mut self, index: u32) {
        self.free.push(index);
    }

    /// A connection has ended. Its endpoint is another one's only when the thread in the background has heard of that ([`Self::heard`]): it may be about to
    /// write into it what was agreed on.
    pub(crate) fn ended(&mut self) {
        self.unheard += 1;
    }

    /// That thread has heard of the end of the connection that had the endpoint with this index, or there is no such thread any more.
    pub(crate) fn heard(&mut self, index: u32) {
        self.unheard -= 1;
        self.give(index);
    }

    /// Whether connections are to stay with the kernel for now, so that a thread that others keep from its core costs no more memory.
    pub(crate) fn are_many_unheard(&self) -> bool {
        self.unheard >= MOST_UNHEARD
    }
}
