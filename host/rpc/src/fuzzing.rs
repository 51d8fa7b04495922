//! What an attacker says to the other side of a connection for calls, without a transport, for the fuzzer.

use beeline_domain::WindowTerms;

use crate::service::{ClientId, Service};
use crate::shm::hello::{Hello, OpenReply, Welcome, decode};
use crate::wire::caller::Caller;

/// How many calls a client may have outstanding by its first request; `None` when that is refused.
pub fn hello(bytes: &[u8]) -> Option<u32> {
    let hello: Hello = decode(bytes).ok()?;
    hello.check().ok().map(|()| hello.slots)
}

/// Lines and bytes of the request window in a server's answer, which a client then maps.
pub fn welcome(bytes: &[u8]) -> Option<(u32, usize)> {
    decode::<Welcome>(bytes).ok().and_then(|welcome| checked(&welcome.window))
}

/// Lines and bytes of the reply window that a client offers, which a server then maps.
pub fn open_reply(bytes: &[u8]) -> Option<(u32, usize)> {
    decode::<OpenReply>(bytes).ok().and_then(|open| checked(&open.window))
}

fn checked(terms: &WindowTerms) -> Option<(u32, usize)> {
    terms.check(false).ok().map(|()| (terms.lines, terms.bytes))
}

/// A client that says anything.
#[derive(Debug)]
pub struct Attacker(Caller);

impl Default for Attacker {
    fn default() -> Self {
        Attacker(Caller::new(ClientId(1)))
    }
}

impl Attacker {
    /// Takes a message; the messages that answer it, each at most `max_bytes` long. An error ends the connection.
    pub fn take(
        &mut self,
        message: &[u8],
        max_bytes: usize,
        service: &mut impl Service,
    ) -> Result<Vec<Vec<u8>>, String> {
        self.0.take(message, service).map_err(|error| error.to_string())?;
        let mut answers = Vec::new();
        let sent = self.0.reply.answers.parked.progress(max_bytes, |head, rest| {
            answers.push([head, rest].concat());
            Ok::<_, ()>(beeline_window::Sent::Sent)
        });
        assert_eq!(sent, Ok(true));
        Ok(answers)
    }
}
