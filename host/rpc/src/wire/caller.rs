//! One client of a server behind an up-link: its requests put together and served, its answers gathered.

use core::time::Duration;

use beeline_spec::WORD_BYTES;
use beeline_spec::formats::RPC_MAX_PAYLOAD_BYTES;
use beeline_spec::rpc::Part;

use crate::assembly::Assembly;
use crate::deadline::Deadline;
use crate::dispatch::{Head, RequestError, serve};
use crate::method::Method;
use crate::payload::{Body, Payload};
use crate::service::{Answers, ClientId, Reply, Request, Service, Way};

/// What a server remembers of one client.
#[derive(Debug)]
pub(crate) struct Caller {
    id: ClientId,
    assembly: Assembly,
    /// Header of the first part, while others are missing.
    first: Option<Head>,
    pub(crate) answers: Answers,
}

impl Caller {
    pub(crate) fn new(id: ClientId) -> Self {
        Caller { id, assembly: Assembly::default(), first: None, answers: Answers::new() }
    }

    /// Takes a message of this client, who is not trusted, and serves the request if it is whole: then an answer waits.
    /// None may be waiting from before.
    pub(crate) fn take(&mut self, message: &[u8], service: &mut impl Service) -> Result<(), RequestError> {
        let mut rest = message;
        let head = Head::read(rest.word(0), &mut rest)?;
        let (call, part) = (head.word.call(), head.word.part());
        if part == Part::Whole {
            if self.assembly.is_open() {
                return Err(RequestError::Between { found: call, expected: self.assembly.call() });
            }
            self.serve(head, &message[head.words * WORD_BYTES..], service);
            return Ok(());
        }
        if part == Part::First {
            self.first = Some(head);
        }
        let is_whole = self.assembly.take(call, part, head.words, &mut rest, RPC_MAX_PAYLOAD_BYTES)?;
        if is_whole && let Some(first) = self.first.take() {
            let assembly = core::mem::take(&mut self.assembly);
            self.serve(first, assembly.bytes(), service);
            self.assembly = assembly;
        }
        Ok(())
    }

    fn serve(&mut self, head: Head, bytes: &[u8], service: &mut impl Service) {
        let way = Way { window: None, max_message_bytes: 0, answers: &mut self.answers };
        let mut request = Request {
            method: Method(head.word.method()),
            client: self.id,
            number: head.word.call(),
            deadline: head.deadline.map(|left_ns| Deadline::after(Duration::from_nanos(left_ns))),
            cancels: None,
            body: Body::of_bytes(bytes),
        };
        serve(service, &mut request, Reply::new(head.word.call(), way));
    }
}
