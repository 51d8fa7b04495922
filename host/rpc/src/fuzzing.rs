//! A server's side of one client without a transport, for the fuzzer.

use crate::service::{ClientId, Service};
use crate::wire::caller::Caller;

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
