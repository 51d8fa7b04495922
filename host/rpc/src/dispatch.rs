//! From a message of a request to the handler: what every server does, whatever the request came by.

use beeline_spec::WORD_BYTES;
use beeline_spec::rpc::{Part, RequestWord, RpcWordError, Status};

use crate::deadline::Deadline;
use crate::method::Method;
use crate::payload::Payload;
use crate::service::{Reply, Request, Service};

/// Why a client's messages are not requests. Its connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error(transparent)]
    Word(#[from] RpcWordError),
    #[error("a request that ends inside its header, after {bytes} bytes")]
    Short { bytes: usize },
    #[error(transparent)]
    Parts(#[from] crate::assembly::AssemblyError),
    #[error("a whole request of call {found:#x} between the parts of call {expected:#x}")]
    Between { found: u32, expected: u32 },
}

/// The header of a message of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) word: RequestWord,
    /// As it came: what it counts from is the transport's.
    pub(crate) deadline: Option<u64>,
    /// Words before the payload, or before the announced length.
    pub(crate) words: usize,
}

impl Head {
    /// Reads the header of a message from a client that is not trusted, of which the first word was loaded: each word
    /// once.
    pub(crate) fn read(word: u64, message: &mut impl Payload) -> Result<Self, RequestError> {
        let word = RequestWord::decode(word)?;
        let has_deadline = word.has_deadline() && matches!(word.part(), Part::Whole | Part::First);
        let words = if has_deadline { 2 } else { 1 };
        if message.len() < words * WORD_BYTES {
            return Err(RequestError::Short { bytes: message.len() });
        }
        let deadline = if has_deadline { Some(message.word(1)) } else { None };
        Ok(Head { word, deadline, words })
    }
}

/// Calls the handler, unless the call was taken back or its time is over.
///
/// A handler that panics unwinds out of here: its client was told then, by the reply that was dropped on the way, and who polls
/// goes on ([`std::panic::catch_unwind`]). The service may be in the middle of something; that is its author's to think of, as
/// it is with a mutex that is poisoned.
#[inline(always)]
pub(crate) fn serve(service: &mut impl Service, request: &mut Request<'_>, reply: Reply<'_>) {
    if request.is_cancelled() {
        return reply.refuse(Status::Cancelled);
    }
    if request.deadline.is_some_and(Deadline::has_passed) {
        return reply.refuse(Status::DeadlinePassed);
    }
    let note = PanicNote { method: request.method };
    let _replied = service.call(request, reply);
    core::mem::forget(note);
}

/// Says of a handler that it panicked when it is dropped.
struct PanicNote {
    method: Method,
}

impl Drop for PanicNote {
    #[cold]
    fn drop(&mut self) {
        tracing::error!(method = self.method.0, "a handler panicked; its client is told, the server goes on");
    }
}
