//! The client's half: calls that wait, and GETs and SETs many at a time.

use beeline_domain::Domain;
use beeline_rpc::shm::{Client, ClientOptions, ShmTransport};
use beeline_rpc::{Body, CallError, CallFailure, CallId, Deadline, Started, Transport};

use crate::counters::KvStats;
use crate::error::KvError;
use crate::key::Key;
use crate::options::MAX_VALUE_BYTES;
use crate::protocol::{DELETE, FULL, GET, NOT_FOUND, SET, STATS, VALUE_TOO_LONG, words};

/// A client of one store. The server may be restarted: it is found again, empty.
#[derive(Debug)]
pub struct KvClient {
    calls: Client,
    /// Key and value of a SET, one behind the other.
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// The end of a call that was begun with [`KvClient::start_get`] or [`KvClient::start_set`].
#[derive(Debug)]
pub struct Ended<'a> {
    pub id: CallId,
    /// Of a GET, the value where it lies, `None` if the key has none. Of a SET, no bytes.
    pub result: Result<Option<Body<'a, <ShmTransport as Transport>::Message<'a>>>, CallError>,
}

impl KvClient {
    /// Connects to the store that is served under `name`.
    ///
    /// # Errors
    /// Nobody serves that name, or its owner refuses; what is served is no store.
    pub fn connect(domain: &Domain, name: &str, options: ClientOptions) -> Result<Self, KvError> {
        let deadline = Deadline::after(options.timeout);
        Self::over(Client::connect(domain, name, options)?, deadline)
    }

    /// Connects as [`KvClient::connect`] does, and waits for a store that is not served yet. All of it takes at most
    /// [`ClientOptions::timeout`].
    ///
    /// # Errors
    /// As [`KvClient::connect`]; nobody served that name in time.
    pub fn connect_awaiting(domain: &Domain, name: &str, options: ClientOptions) -> Result<Self, KvError> {
        let deadline = Deadline::after(options.timeout);
        Self::over(Client::connect_awaiting(domain, name, options)?, deadline)
    }

    /// A client of what answers `calls`, if that is a store.
    fn over(calls: Client, deadline: Deadline) -> Result<Self, KvError> {
        let mut client = KvClient { calls, request: Vec::new(), answer: Vec::new() };
        client.stats(Some(deadline))?;
        Ok(client)
    }

    /// Puts the value of a key into `value`, replacing what was there; `false` if the key has none. Waits; no other call
    /// may be outstanding.
    ///
    /// # Errors
    /// [`KvError::Call`].
    pub fn get(
        &mut self,
        key: Key,
        value: &mut Vec<u8>,
        deadline: Option<Deadline>,
    ) -> Result<bool, KvError> {
        found(self.calls.call(GET, key.as_bytes(), value, deadline))
    }

    /// Stores a value under a key, replacing the one it has. Waits; no other call may be outstanding.
    ///
    /// # Errors
    /// [`KvError::Full`], [`KvError::ValueTooLong`]: nothing has changed. [`KvError::Call`].
    pub fn set(&mut self, key: Key, value: &[u8], deadline: Option<Deadline>) -> Result<(), KvError> {
        self.put_together(key, value)?;
        self.calls.call(SET, &self.request, &mut self.answer, deadline).map_err(refused)
    }

    /// Removes a key; `false` if it has no value. Waits; no other call may be outstanding.
    ///
    /// # Errors
    /// [`KvError::Call`].
    pub fn delete(&mut self, key: Key, deadline: Option<Deadline>) -> Result<bool, KvError> {
        found(self.calls.call(DELETE, key.as_bytes(), &mut self.answer, deadline))
    }

    /// What the store has done and holds. Waits; no other call may be outstanding.
    ///
    /// # Errors
    /// [`KvError::NotAStore`], [`KvError::Call`].
    pub fn stats(&mut self, deadline: Option<Deadline>) -> Result<KvStats, KvError> {
        let not_a_store = |what: String| KvError::NotAStore { what };
        match self.calls.call(STATS, &[], &mut self.answer, deadline) {
            Ok(()) => KvStats::decode(&self.answer)
                .ok_or_else(|| not_a_store(format!("it answers with {} other bytes", self.answer.len()))),
            Err(CallFailure::Call(error @ (CallError::UnknownMethod | CallError::Failed { .. }))) => {
                Err(not_a_store(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a GET, if there is room; [`KvClient::poll`] gives its end. Never waits.
    ///
    /// # Errors
    /// There is no server now; nothing was sent.
    #[inline(always)]
    pub fn start_get(&mut self, key: Key) -> Result<Started, KvError> {
        Ok(self.calls.start(GET, key.as_bytes(), None)?)
    }

    /// Begins a SET, if there is room; [`KvClient::poll`] gives its end. Never waits.
    ///
    /// # Errors
    /// There is no server now, or the value is longer than any may be; nothing was sent.
    pub fn start_set(&mut self, key: Key, value: &[u8]) -> Result<Started, KvError> {
        self.put_together(key, value)?;
        Ok(self.calls.start(SET, &self.request, None)?)
    }

    /// The end of a call, if one has ended; in the order in which they end. Never waits.
    #[inline(always)]
    pub fn poll(&mut self) -> Option<Ended<'_>> {
        let ended = self.calls.poll()?;
        match ended.result {
            Ok(body) => Some(Ended { id: ended.id, result: Ok(Some(body)) }),
            Err(error) => Some(Ended { id: ended.id, result: value_missing(error) }),
        }
    }

    /// The calls beneath: to wait between polls, to cancel, to see why there is no server.
    pub fn calls(&mut self) -> &mut Client {
        &mut self.calls
    }

    fn put_together(&mut self, key: Key, value: &[u8]) -> Result<(), KvError> {
        if value.len() > MAX_VALUE_BYTES {
            let (bytes, max_bytes) = (value.len() as u64, MAX_VALUE_BYTES as u64);
            return Err(KvError::ValueTooLong { bytes, max_bytes });
        }
        self.request.clear();
        self.request.extend_from_slice(key.as_bytes());
        self.request.extend_from_slice(value);
        Ok(())
    }
}

/// What a GET comes to that failed. A function of its own: looked at where the answer is, the parts of an error have the answer moved
/// through memory in pieces of other sizes, which waits for the store buffer each time.
#[cold]
#[inline(never)]
fn value_missing<T>(error: CallError) -> Result<Option<T>, CallError> {
    match error {
        CallError::Failed { code: NOT_FOUND, .. } => Ok(None),
        error => Err(error),
    }
}

/// Whether what was asked for was there.
fn found(result: Result<(), CallFailure>) -> Result<bool, KvError> {
    match result {
        Ok(()) => Ok(true),
        Err(CallFailure::Call(CallError::Failed { code: NOT_FOUND, .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Why a SET was refused, from what the store says.
fn refused(error: CallFailure) -> KvError {
    let CallFailure::Call(CallError::Failed { code, detail }) = &error else { return error.into() };
    match (*code, words::<3>(detail), words::<2>(detail)) {
        (FULL, Some([used_bytes, max_bytes, needed_bytes]), _) => {
            KvError::Full { used_bytes, max_bytes, needed_bytes }
        }
        (VALUE_TOO_LONG, _, Some([bytes, max_bytes])) => KvError::ValueTooLong { bytes, max_bytes },
        _ => error.into(),
    }
}
