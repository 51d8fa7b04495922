//! The requests of one client, message by message: each is a whole one, or a part of one that comes in several.
//!
//! Every server takes them in like this, whatever they come by; what is whole is served in `dispatch.rs`. Parts follow
//! each other with nothing between them, so one place to put them together is enough for each client.

use beeline_spec::formats::RPC_MAX_PAYLOAD_BYTES;
use beeline_spec::rpc::Part;

use crate::assembly::Assembly;
use crate::dispatch::{Head, RequestError};
use crate::payload::Payload;

/// Result of taking a message in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taken {
    /// A request: its payload is what follows the header's words.
    Whole(Head),
    /// A part; others are missing.
    Part,
    /// The last part of the request whose first one had this header: its payload is in [`Intake::bytes`].
    Last(Head),
}

/// The parts of one client's messages, until they are whole.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    assembly: Assembly,
    /// Header of the first part, while others are missing.
    first: Option<Head>,
}

impl Intake {
    /// Whether parts are missing.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.assembly.is_open()
    }

    /// The bytes put together, after [`Taken::Last`].
    pub(crate) fn bytes(&self) -> &[u8] {
        self.assembly.bytes()
    }

    /// Takes a message of a client that is not trusted, whose first word was loaded.
    pub(crate) fn take(&mut self, word: u64, message: &mut impl Payload) -> Result<Taken, RequestError> {
        let head = Head::read(word, message)?;
        let (call, part) = (head.word.call(), head.word.part());
        if part == Part::Whole {
            if self.is_open() {
                return Err(RequestError::Between { found: call, expected: self.assembly.call() });
            }
            return Ok(Taken::Whole(head));
        }
        if !self.assembly.take(call, part, head.words, message, RPC_MAX_PAYLOAD_BYTES)? {
            if part == Part::First {
                self.first = Some(head);
            }
            return Ok(Taken::Part);
        }
        // A last part is taken only while the assembly is open, which a first part has made it.
        Ok(Taken::Last(self.first.take().expect("the first part was taken before the last")))
    }
}
