//! The client: calls begun, calls ended, over whatever transport.
//!
//! [`Client::start`] sends a request and gives its [`CallId`]; [`Client::poll`] gives ends of calls, in the order in
//! which they come about. Every call that was begun ends exactly once: with an answer, or with a [`CallError`]. Neither
//! waits, locks, allocates or enters the kernel for a call without parts; [`Client::call`] and [`Client::wait`] wait.
//!
//! From the RAMCloud/HiStar notes (R bullets): polling, no kernel, a protocol of its own. What a transport is, and how
//! the server answers, is elsewhere (`shm/`, `wire/`, `service.rs`).

use std::time::Duration;

use beeline_spec::WORD_BYTES;
use beeline_spec::formats::RPC_MAX_PAYLOAD_BYTES;
use beeline_spec::rpc::{Part, RequestWord, ResponseWord, Status};
use beeline_wait::Idle;
use beeline_window::{Sent, WaitPolicy};

use crate::assembly::Assembly;
use crate::calls::{Answered, CallId, Calls};
use crate::deadline::{Deadline, now_ns};
use crate::error::{CallError, CallFailure, Loss, StartError};
use crate::method::Method;
use crate::outgoing::{Outgoing, send_message};
use crate::payload::{Body, Payload};
use crate::transport::Transport;

/// Polls between two times that the client looks after its transport and its deadlines: those cost more than a poll.
const POLLS_PER_TENDING: u32 = 64;
/// How long a client waits by descriptor for what nobody signals.
const DUE_SOON: Duration = Duration::from_millis(1);

/// Whether a call was begun. Both are success; `Full` means: poll, and try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Started {
    /// The request is sent, or being sent; poll for its end.
    Call(CallId),
    /// The server does not take requests as fast as they come, or as many calls are outstanding as may be: nothing was
    /// sent.
    Full,
}

/// The end of a call.
#[derive(Debug)]
#[must_use = "an answer that is dropped is gone"]
pub struct Completion<'a, M> {
    pub id: CallId,
    /// Its answer, read where it lies, or why there is none.
    pub result: Result<Body<'a, M>, CallError>,
}

/// What a message has shown while it was in hand, for the next time that the client tends its affairs.
#[derive(Debug, Default)]
struct Found {
    loss: Option<Loss>,
    /// Slot of an abandoned call that was answered.
    late: Option<usize>,
}

impl Found {
    #[cold]
    fn broke(&mut self, what: String) {
        self.loss = Some(Loss::Broke { what });
    }
}

/// A client of one server.
#[derive(Debug)]
pub struct Client<T> {
    transport: T,
    calls: Calls,
    /// A request of several messages, of which some wait for room.
    outgoing: Outgoing,
    /// Answers of several messages; one place for each stream of them.
    assemblies: Vec<Assembly>,
    /// Reason for which there is no server, if there is none.
    loss: Option<Loss>,
    /// What was found while a message was in hand, and has to be dealt with before the next one.
    found: Found,
    /// Polls until the client attends to what is not an answer; 1 when there is something.
    polls_left: u32,
    policy: WaitPolicy,
}

impl<T: Transport> Client<T> {
    /// A client over a transport of the caller's own; [`crate::shm`] and [`crate::wire`] have theirs.
    ///
    /// # Panics
    /// If `max_outstanding` is not a power of two up to [`crate::MAX_OUTSTANDING`].
    pub fn over(transport: T, max_outstanding: u32, policy: WaitPolicy) -> Self {
        Client {
            transport,
            calls: Calls::new(max_outstanding),
            outgoing: Outgoing::default(),
            assemblies: Vec::new(),
            loss: None,
            found: Found::default(),
            polls_left: POLLS_PER_TENDING,
            policy,
        }
    }

    /// Begins a call, if there is room. A request that does not fit a message is copied and sent as there is room, by
    /// this and later polls; until it has left, no other call is begun.
    ///
    /// # Errors
    /// [`StartError`]: nothing was sent.
    #[inline(always)]
    pub fn start(
        &mut self,
        method: Method,
        request: &[u8],
        deadline: Option<Deadline>,
    ) -> Result<Started, StartError> {
        if self.loss.is_some() || self.outgoing.is_active() {
            return self.not_now();
        }
        let header_bytes = if deadline.is_some() { 2 * WORD_BYTES } else { WORD_BYTES };
        if header_bytes + request.len() > self.transport.max_message_bytes() {
            return self.start_long(method, request, deadline);
        }
        let Some(id) = self.calls.begin(deadline) else { return Ok(Started::Full) };
        let word = request_word(id, method, deadline);
        let sent = match deadline {
            None => self.transport.try_send_prefixed(word, request),
            Some(deadline) => {
                let left = self.transport.encode_deadline(deadline);
                send_message([word, left], request, |head, rest| self.transport.try_send(head, rest))
            }
        };
        match sent {
            Ok(Sent::Sent) => Ok(Started::Call(id)),
            Ok(Sent::Full) => {
                self.calls.undo(id);
                Ok(Started::Full)
            }
            Err(loss) => {
                self.calls.undo(id);
                self.found.loss = Some(loss.clone());
                self.polls_left = 1;
                Err(StartError::NotConnected { loss })
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn not_now(&self) -> Result<Started, StartError> {
        match &self.loss {
            Some(loss) => Err(StartError::NotConnected { loss: loss.clone() }),
            None => Ok(Started::Full),
        }
    }

    #[cold]
    #[inline(never)]
    fn start_long(
        &mut self,
        method: Method,
        request: &[u8],
        deadline: Option<Deadline>,
    ) -> Result<Started, StartError> {
        let (bytes, max_bytes) = (request.len(), RPC_MAX_PAYLOAD_BYTES);
        if bytes > max_bytes {
            return Err(StartError::TooLong { bytes, max_bytes });
        }
        let Some(id) = self.calls.begin(deadline) else { return Ok(Started::Full) };
        let word = request_word(id, method, deadline);
        let left = deadline.map(|deadline| self.transport.encode_deadline(deadline));
        self.outgoing.begin(word, left).extend_from_slice(request);
        self.push_outgoing();
        Ok(Started::Call(id))
    }

    /// Sends what there is room for of a request of several messages.
    #[cold]
    #[inline(never)]
    fn push_outgoing(&mut self) {
        let max_bytes = self.transport.max_message_bytes();
        if let Err(loss) = self.outgoing.progress(max_bytes, |head, rest| self.transport.try_send(head, rest))
        {
            self.found.loss = Some(loss);
        }
        self.polls_left = 1;
    }

    /// The end of a call, if one has ended. `None` also when a look was taken up by something else: an empty stream of
    /// several, a late answer, a part.
    ///
    /// Inlined, so that an answer stays in registers on its way to the caller: one that is put together in memory and
    /// moved costs more than receiving it.
    #[inline(always)]
    pub fn poll(&mut self) -> Option<Completion<'_, T::Message<'_>>> {
        self.polls_left = self.polls_left.wrapping_sub(1);
        if self.polls_left == 0 {
            if let Some((id, error)) = self.attend() {
                return Some(Completion { id, result: Err(error) });
            }
            if self.loss.is_some() {
                return None;
            }
        }
        let message = self.transport.poll()?;
        let word = message.word(0);
        if word >> 32 == 0
            && message.len() >= WORD_BYTES
            && let Some(id) = self.calls.answer_waiting(word as u32)
        {
            return Some(Completion { id, result: Ok(Body::of_message(message, 1)) });
        }
        let Client { calls, assemblies, found, polls_left, .. } = self;
        *polls_left = 1;
        unusual_answer(calls, assemblies, found, word, message)
    }

    /// What is done once in a while or when something has happened: gives ends that did not come as answers.
    #[cold]
    #[inline(never)]
    fn attend(&mut self) -> Option<(CallId, CallError)> {
        self.tend();
        self.push_outgoing_if_any();
        let ended = self.calls.next_ended();
        let is_busy = self.calls.has_ended() || self.outgoing.is_active() || self.loss.is_some();
        self.polls_left = if is_busy || self.found.loss.is_some() { 1 } else { POLLS_PER_TENDING };
        ended
    }

    /// Looks after deadlines and the transport; finds out about a loss, and looks for a server after one.
    #[cold]
    #[inline(never)]
    fn tend(&mut self) {
        if self.calls.has_deadlines() {
            let transport = &mut self.transport;
            self.calls.expire(now_ns(), |id| transport.cancel(id.number, id.slot()));
        }
        if self.loss.is_some() {
            if self.transport.reconnect() {
                self.loss = None;
            }
            return;
        }
        let Found { loss, late } = core::mem::take(&mut self.found);
        if let Some(slot) = late {
            self.transport.uncancel(slot);
        }
        let found = loss.or_else(|| self.transport.tend().err());
        if let Some(loss) = found {
            let unsent = self.outgoing.is_active().then(|| RequestWord::decode(self.outgoing.word()));
            self.calls.lose(&loss, unsent.and_then(Result::ok).map(RequestWord::call));
            self.outgoing.forget();
            self.assemblies.clear();
            self.loss = Some(loss);
            // Begins the search, so that what the lost server had is let go of.
            self.transport.reconnect();
        }
    }

    /// Abandons a call: it ends with [`CallError::Cancelled`], and a server that has not begun it does not. `false`
    /// when it has ended already. Its slot is used again only when the server has answered it.
    pub fn cancel(&mut self, id: CallId) -> bool {
        let was_waiting = self.calls.abandon(id, CallError::Cancelled);
        self.polls_left = 1;
        if was_waiting && self.loss.is_none() {
            self.transport.cancel(id.number, id.slot());
        }
        was_waiting
    }

    /// Why there is no server now, if there is none.
    pub fn loss(&self) -> Option<&Loss> {
        self.loss.as_ref()
    }

    /// Calls whose end has not been polled.
    pub fn outstanding(&self) -> usize {
        self.calls.outstanding()
    }

    /// Most calls that can be outstanding.
    pub fn max_outstanding(&self) -> usize {
        self.calls.slots() as usize
    }

    /// The way to the server, for what only that transport has.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the transport to the server.
    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Waits as the client's policy says until a poll may find something, or a server was lost or found, at most until
    /// `deadline`; whether one of them has come. It does not wait for room: a caller that found none waits for its
    /// calls, or pauses. Nor does it wait where nothing can come: a client that connected with a token has no server after its own.
    pub fn wait(&mut self, deadline: Option<Deadline>) -> bool {
        let (mut idle, was_lost) = (Idle::new(self.policy), self.loss.is_some());
        loop {
            if self.has_news() || self.loss.is_some() != was_lost {
                return true;
            }
            if was_lost && !self.transport.looks_again() {
                return false;
            }
            let sleep = idle.pass();
            if idle.is_check_due() {
                self.tend();
                if deadline.is_some_and(Deadline::has_passed) {
                    return self.has_news();
                }
            }
            if let Some(limit) = sleep {
                self.sleep(limit, deadline);
            }
        }
    }

    #[inline]
    fn has_news(&mut self) -> bool {
        self.calls.has_ended()
            || self.found.loss.is_some()
            || self.loss.is_none() && self.transport.has_news()
    }

    fn sleep(&mut self, limit: Duration, deadline: Option<Deadline>) {
        if self.loss.is_some() || self.outgoing.is_active() {
            // Nobody wakes us for a server that comes back, nor for room.
            std::thread::sleep(limit.min(Duration::from_millis(1)));
            return self.push_outgoing_if_any();
        }
        let earliest = self.calls.earliest().into_iter().chain(deadline).min();
        let limit = earliest.map_or(limit, |deadline| limit.min(deadline.remaining()));
        self.transport.prepare_sleep();
        if self.has_news() {
            self.transport.cancel_sleep();
        } else {
            self.transport.park(limit.max(Duration::from_nanos(1)));
        }
    }

    /// Announces a wait by descriptor, with `listen` for the transport, and looks once more; `Ok` when there is something
    /// to poll for, otherwise how long to wait at most: what is due then, nobody signals. `listen` says whether the
    /// transport is due soon.
    pub(crate) fn listen_with(
        &mut self,
        listen: impl FnOnce(&mut T) -> bool,
    ) -> Result<(), Option<Duration>> {
        let was_lost = self.loss.is_some();
        self.tend();
        self.push_outgoing_if_any();
        let is_due = listen(&mut self.transport);
        if self.has_news() || self.loss.is_some() != was_lost {
            // The next poll attends to all of it.
            self.polls_left = 1;
            return Ok(());
        }
        let left = self.calls.earliest().map(|deadline| deadline.remaining());
        // Nobody signals a server that comes back, nor room.
        let is_looking = self.loss.is_some() && self.transport.looks_again();
        let soon = is_due || is_looking || self.outgoing.is_active();
        Err(soon.then_some(DUE_SOON).into_iter().chain(left).min())
    }

    fn push_outgoing_if_any(&mut self) {
        if self.outgoing.is_active() && self.loss.is_none() {
            self.push_outgoing();
        }
    }

    /// Makes one call and waits for its end; the answer is put into `answer`, replacing what was there. No other call
    /// may be outstanding. While there is no server, it does not wait for one: it looks for it, and a later call finds it.
    ///
    /// # Errors
    /// [`CallFailure`].
    pub fn call(
        &mut self,
        method: Method,
        request: &[u8],
        answer: &mut Vec<u8>,
        deadline: Option<Deadline>,
    ) -> Result<(), CallFailure> {
        let outstanding = self.outstanding();
        if outstanding > 0 {
            return Err(CallFailure::Outstanding { outstanding });
        }
        let id = match self.start(method, request, deadline) {
            Ok(Started::Call(id)) => id,
            Ok(Started::Full) => self.start_when_there_is_room(method, request, deadline)?,
            Err(error) => self.start_if_found_again(error, method, request, deadline)?,
        };
        loop {
            if let Some(completion) = self.poll()
                && completion.id == id
            {
                let mut body = completion.result?;
                answer.clear();
                body.copy_to(answer);
                return Ok(());
            }
            self.wait(None);
        }
    }

    /// Looks for a server that was lost, as a poll does: whoever only makes calls would never find it again.
    #[cold]
    fn start_if_found_again(
        &mut self,
        error: StartError,
        method: Method,
        request: &[u8],
        deadline: Option<Deadline>,
    ) -> Result<CallId, CallFailure> {
        self.tend();
        if self.loss.is_some() || !matches!(error, StartError::NotConnected { .. }) {
            return Err(error.into());
        }
        self.start_when_there_is_room(method, request, deadline)
    }

    /// Polls, for late answers free slots and a connection opens, until there is room.
    #[cold]
    fn start_when_there_is_room(
        &mut self,
        method: Method,
        request: &[u8],
        deadline: Option<Deadline>,
    ) -> Result<CallId, CallFailure> {
        let asked = std::time::Instant::now();
        let mut idle = Idle::new(self.policy);
        loop {
            let ended = self.poll().is_some();
            debug_assert!(!ended, "no other call is outstanding");
            if let Started::Call(id) = self.start(method, request, deadline)? {
                return Ok(id);
            }
            if deadline.is_some_and(Deadline::has_passed) {
                return Err(CallFailure::NoRoom { waited: asked.elapsed() });
            }
            if let Some(limit) = idle.pass() {
                // Nobody wakes us for room.
                std::thread::sleep(limit.min(Duration::from_micros(100)));
            }
        }
    }
}

fn request_word(id: CallId, method: Method, deadline: Option<Deadline>) -> u64 {
    RequestWord::new(id.number, method.0, deadline.is_some()).encode()
}

/// An answer that is more than a payload in one message: an error, a part, a late one, or none. Not a method: the
/// message is the transport's.
#[cold]
#[inline(never)]
fn unusual_answer<'a, M: Payload>(
    calls: &mut Calls,
    assemblies: &'a mut Vec<Assembly>,
    found: &mut Found,
    word: u64,
    message: M,
) -> Option<Completion<'a, M>> {
    if message.len() < WORD_BYTES {
        found.broke(format!("a response of {} bytes", message.len()));
        return None;
    }
    let Ok(head) = ResponseWord::decode(word) else {
        found.broke(format!("{word:#018x} is not the first word of a response"));
        return None;
    };
    if head.part() != Part::Whole {
        return finish_part(calls, assemblies, found, head, message);
    }
    match calls.answer(head.call()) {
        Answered::Call(id) => Some(Completion { id, result: outcome(head, Body::of_message(message, 1)) }),
        Answered::Late(id) => {
            found.late = Some(id.slot());
            None
        }
        Answered::Unknown => {
            found.broke(format!("it answered call {:#x}, which nobody made", head.call()));
            None
        }
    }
}

/// A part of an answer; the end of its call when it was the last one.
fn finish_part<'a, M: Payload>(
    calls: &mut Calls,
    assemblies: &'a mut Vec<Assembly>,
    found: &mut Found,
    head: ResponseWord,
    mut message: M,
) -> Option<Completion<'a, M>> {
    let mine = assemblies.iter().position(|assembly| assembly.is_open() && assembly.call() == head.call());
    let free = || assemblies.iter().position(|assembly| !assembly.is_open());
    let index = match mine.or_else(free) {
        Some(index) => index,
        // As many as the server has threads, which each finish one answer before the next.
        None if assemblies.len() < beeline_spec::formats::RPC_MAX_WORKERS => {
            assemblies.push(Assembly::default());
            assemblies.len() - 1
        }
        None => {
            found.broke("more answers come in parts than a server has threads".to_owned());
            return None;
        }
    };
    if !calls.is_open(head.call()) {
        found.broke(format!("it answered call {:#x}, which nobody made", head.call()));
        return None;
    }
    match assemblies[index].take(head.call(), head.part(), 1, &mut message, RPC_MAX_PAYLOAD_BYTES) {
        Ok(false) => None,
        Err(error) => {
            found.broke(error.to_string());
            None
        }
        Ok(true) => match calls.answer(head.call()) {
            Answered::Call(id) => {
                Some(Completion { id, result: outcome(head, Body::of_bytes(assemblies[index].bytes())) })
            }
            Answered::Late(id) => {
                found.late = Some(id.slot());
                None
            }
            Answered::Unknown => None,
        },
    }
}

/// Translates a server's status for the caller.
#[inline(always)]
fn outcome<M: Payload>(head: ResponseWord, body: Body<'_, M>) -> Result<Body<'_, M>, CallError> {
    match head.status() {
        Status::Done => Ok(body),
        _ => Err(refusal(head, body)),
    }
}

#[cold]
#[inline(never)]
fn refusal<M: Payload>(head: ResponseWord, mut body: Body<'_, M>) -> CallError {
    match head.status() {
        Status::Done | Status::Failed => {
            CallError::Failed { code: head.code(), detail: body.to_vec().into_boxed_slice() }
        }
        Status::UnknownMethod => CallError::UnknownMethod,
        Status::DeadlinePassed => CallError::DeadlinePassed,
        Status::Cancelled => CallError::Cancelled,
        Status::Overloaded => CallError::Overloaded,
        Status::TooLong => CallError::TooLong,
        Status::Crashed => CallError::Crashed,
    }
}
