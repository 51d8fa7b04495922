//! One client of a server behind an up-link: its requests put together and served, its answers gathered.

use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

use beeline_spec::WORD_BYTES;

use crate::deadline::Deadline;
use crate::dispatch::{Head, RequestError, serve};
use crate::intake::{Intake, Taken};
use crate::method::Method;
use crate::payload::{Body, Payload};
use crate::service::{ClientId, Reply, ReplyPath, Request, Service};

/// A server's state of one client.
#[derive(Debug)]
pub(crate) struct Caller {
    id: ClientId,
    intake: Intake,
    pub(crate) reply: ReplyPath,
}

impl Caller {
    pub(crate) fn new(id: ClientId) -> Self {
        Caller { id, intake: Intake::default(), reply: ReplyPath::new() }
    }

    /// Takes a message of this client, who is not trusted, and serves the request if it is whole: then an answer waits.
    /// No answer may be waiting from before.
    pub(crate) fn take(&mut self, message: &[u8], service: &mut impl Service) -> Result<(), RequestError> {
        let mut rest = message;
        match self.intake.take(rest.word(0), &mut rest)? {
            Taken::Whole(head) => self.serve(head, &message[head.words * WORD_BYTES..], service),
            Taken::Part => {}
            Taken::Last(first) => {
                // The handler borrows the bytes while the answer is gathered beside them.
                let intake = core::mem::take(&mut self.intake);
                self.serve(first, intake.bytes(), service);
                self.intake = intake;
            }
        }
        Ok(())
    }

    fn serve(&mut self, head: Head, bytes: &[u8], service: &mut impl Service) {
        let mut request = Request {
            method: Method(head.word.method()),
            client: self.id,
            number: head.word.call(),
            deadline: head.deadline.map(|left_ns| Deadline::after(Duration::from_nanos(left_ns))),
            cancels: None,
            body: Body::of_bytes(bytes),
        };
        let reply = Reply::new(head.word.call(), &mut self.reply);
        // What a handler that panics leaves was said and answered in `serve`.
        let _ended = catch_unwind(AssertUnwindSafe(|| serve(service, &mut request, reply)));
    }
}
