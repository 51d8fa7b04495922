//! One client in the hands of one thread of the server.

use std::sync::Arc;

use beeline_contract_memory::{Sleeper, StorePort};
use beeline_domain::{Event, MemoryCreditSink, MemorySleeper, SenderParts};
use beeline_mmio::LoadWindow;
use beeline_spec::WORD_BYTES;
use beeline_spec::formats::RPC_MAX_PAYLOAD_BYTES;
use beeline_spec::formats::rpc_request::{METHOD_LSB, PART_LSB};
use beeline_spec::header::lines_of;
use beeline_spec::rpc::{Part, part_of};
use beeline_window::{FencePolicy, SharedReceiver, WindowConfig, Writer};

use super::registry::ClientEntry;
use crate::deadline::Deadline;
use crate::dispatch::{Head, RequestError, serve};
use crate::intake::{Intake, Taken};
use crate::method::Method;
use crate::payload::Body;
use crate::service::{Reply, ReplyPath, ReplyWindow, Request, Service};

/// Longest message in a window of `lines` lines: a quarter of it, so that one side stores parts while the other takes
/// earlier ones.
pub(crate) fn max_message_bytes(lines: u32) -> usize {
    ((lines / 4).max(1) as usize * 64 - 8).min(RPC_MAX_PAYLOAD_BYTES)
}

/// The sender's end of a window, fenced only where the other process cannot take part in membarriers.
pub(crate) fn writer(parts: SenderParts) -> (ReplyWindow, MemorySleeper) {
    let fences = if parts.needs_fence_per_message { FencePolicy::PerMessage } else { FencePolicy::None };
    let config = WindowConfig::blank(parts.blank, parts.epoch).with_fences(fences);
    (Writer::new(parts.store, parts.credits, config), parts.sleeper)
}

/// Result of one step of serving a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A request was answered, or a part of one was taken in.
    Worked,
    /// An answer that waited for room has left.
    Sent,
    /// There is nothing to do.
    Idle,
    /// The client is of no use any more, for the reason that [`Session::why`] gives. That is not carried along: what each step
    /// comes to then stays in a register.
    Broken,
}

/// One client, for one thread.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) entry: Arc<ClientEntry>,
    worker: usize,
    requests: SharedReceiver<LoadWindow, MemoryCreditSink>,
    reply: ReplyPath,
    /// Sleeps for room in the reply window.
    room: Option<MemorySleeper>,
    /// Whether the client was asked for that window.
    has_asked: bool,
    /// Why the client is of no use any more, if it is not.
    broken: Option<String>,
    /// A request of several messages: this thread keeps the request window while it takes them in.
    intake: Intake,
    sleeper: MemorySleeper,
    is_listening: bool,
}

impl Session {
    pub(crate) fn new(entry: Arc<ClientEntry>, worker: usize) -> Self {
        let sleeper = entry.window.sleeper(&entry.page, &entry.peer);
        Session {
            requests: entry.requests.receiver(entry.window.load(entry.kernel)),
            reply: ReplyPath::new(),
            room: None,
            has_asked: false,
            broken: None,
            intake: Intake::default(),
            sleeper,
            is_listening: false,
            worker,
            entry,
        }
    }

    /// Fetches the reply window, if the client has opened it.
    pub(crate) fn fetch_reply(&mut self) {
        if let Some(parts) = self.entry.take_reply(self.worker) {
            self.reply.max_message_bytes = max_message_bytes(parts.store.lines());
            let (window, room) = writer(parts);
            (self.reply.window, self.room) = (Some(window), Some(room));
        }
    }

    /// Whether there is work, for a thread about to sleep. Without a reply window there is none: the bell rings when it
    /// comes. With an answer waiting there is some when there is room, for which [`Session::sleepers`] has a word.
    pub(crate) fn has_work(&mut self) -> bool {
        let ReplyPath { window, max_message_bytes, answers } = &mut self.reply;
        let Some(window) = window else {
            self.ask_for_reply();
            return false;
        };
        if answers.parked.is_active() {
            let needed = lines_of(answers.parked.next_bytes(*max_message_bytes) as u32);
            return window.refresh().map_or(true, |free| free >= needed);
        }
        self.requests.has_work()
    }

    /// Whether an answer waits for room.
    pub(crate) fn has_unsent(&self) -> bool {
        self.reply.answers.parked.is_active()
    }

    /// Returns the sleepers that a thread waits on when this client has nothing for it.
    pub(crate) fn sleepers(&self) -> impl Iterator<Item = &MemorySleeper> {
        let room = self.room.as_ref().filter(|_| self.has_unsent());
        std::iter::once(&self.sleeper).chain(room)
    }

    /// The thread is awake again.
    pub(crate) fn awake(&mut self) {
        self.entry.awake(&mut self.sleeper);
        if let Some(room) = &mut self.room {
            room.cancel();
        }
    }

    /// Has `event` signalled for what [`Session::has_work`] looks at; [`beeline_domain::listen_all`] follows.
    pub(crate) fn listen(&mut self, event: &Event) {
        if !self.is_listening {
            self.is_listening = true;
            self.entry.listen();
        }
        self.sleeper.announce(event);
        if self.has_unsent()
            && let Some(room) = &mut self.room
        {
            room.announce(event);
        }
    }

    pub(crate) fn unlisten(&mut self) {
        if self.is_listening {
            self.is_listening = false;
            self.entry.unlisten(&mut self.sleeper);
        }
        if let Some(room) = &mut self.room {
            room.unlisten();
        }
    }

    /// Takes one message of a request, if there is one, and serves what is whole.
    #[inline(always)]
    pub(crate) fn step(&mut self, service: &mut impl Service) -> Step {
        let Some(window) = &mut self.reply.window else { return self.step_without_reply() };
        if self.reply.answers.parked.is_active() {
            return self.send_parked();
        }
        let message = match self.requests.poll_where(is_first_part) {
            Ok(Some(message)) => message,
            Ok(None) => return Step::Idle,
            Err(error) => return broke(&mut self.broken, &error),
        };
        window.will_send(lines_of(message.len() as u32));
        let (word, is_short) = (message.word(0), message.len() < WORD_BYTES);
        let mut request = Request {
            method: Method((word >> METHOD_LSB) as u16),
            client: self.entry.id,
            number: word as u32,
            deadline: None,
            cancels: Some(&self.entry.cancels),
            body: Body::of_message(message, 1),
        };
        if word >> PART_LSB != 0 || is_short || self.intake.is_open() {
            // It has a deadline, is a part, or is malformed.
            match read_unusual(&mut self.intake, word, &mut request) {
                Ok(Taken::Whole(_)) => {}
                Ok(Taken::Part) => return Step::Worked,
                Ok(Taken::Last(first)) => {
                    drop(request);
                    return self.serve_parts(first, service);
                }
                Err(error) => return broke(&mut self.broken, &error),
            }
        }
        let number = request.number;
        serve(service, &mut request, Reply::new(number, &mut self.reply));
        drop(request);
        self.after_answer()
    }

    /// A client can be told of a request only by a reply window: without one nothing is taken.
    #[cold]
    fn step_without_reply(&mut self) -> Step {
        self.ask_for_reply();
        Step::Idle
    }

    #[cold]
    fn ask_for_reply(&mut self) {
        if !self.has_asked && self.requests.has_work() {
            self.has_asked = true;
            self.entry.want_reply(self.worker);
        }
    }

    #[cold]
    #[inline(never)]
    fn send_parked(&mut self) -> Step {
        let ReplyPath { window, max_message_bytes, answers } = &mut self.reply;
        let Some(window) = window else { return Step::Idle };
        let send = |head: &[u8], rest: &[u8]| window.try_send_parts(head, rest);
        match answers.parked.progress(*max_message_bytes, send) {
            Ok(true) => Step::Sent,
            Ok(false) => Step::Idle,
            Err(error) => broke(&mut self.broken, &error),
        }
    }

    /// Serves a request of several messages, of which this thread has taken the last.
    #[cold]
    #[inline(never)]
    fn serve_parts(&mut self, first: Head, service: &mut impl Service) -> Step {
        // Before the handler: other threads need not wait for it.
        self.requests.give_up();
        if self.requests.has_work() {
            // They may have gone to sleep meanwhile, and the client wakes nobody for what it has sent.
            self.sleeper.wake();
        }
        let mut request = Request {
            method: Method(first.word.method()),
            client: self.entry.id,
            number: first.word.call(),
            deadline: first.deadline.map(Deadline::of_ns),
            cancels: Some(&self.entry.cancels),
            body: Body::of_bytes(self.intake.bytes()),
        };
        serve(service, &mut request, Reply::new(first.word.call(), &mut self.reply));
        drop(request);
        self.after_answer()
    }

    /// What a step has come to that answered a request: answering may have found out that the client cannot be believed.
    #[inline(always)]
    pub(crate) fn after_answer(&mut self) -> Step {
        match &self.reply.answers.trouble {
            None => Step::Worked,
            Some(error) => broke(&mut self.broken, error),
        }
    }

    /// Why it is [`Step::Broken`].
    pub(crate) fn why(&self) -> &str {
        self.broken.as_deref().unwrap_or_default()
    }
}

/// Not a method: a message of the client may be in hand.
#[cold]
#[inline(never)]
fn broke(broken: &mut Option<String>, why: &dyn std::fmt::Display) -> Step {
    *broken = Some(why.to_string());
    Step::Broken
}

/// Whether a message begins a request of several, so that the thread that takes it needs the next ones too.
#[inline(always)]
fn is_first_part(word: u64) -> bool {
    part_of(word) == Part::First
}

/// Reads what more there is in the header of a request, and takes a part in.
#[cold]
#[inline(never)]
fn read_unusual(intake: &mut Intake, word: u64, request: &mut Request<'_>) -> Result<Taken, RequestError> {
    let message = request.body.message_mut().expect("a request that was just polled is a message");
    let taken = intake.take(word, message)?;
    if let Taken::Whole(head) = taken {
        request.deadline = head.deadline.map(Deadline::of_ns);
        request.body.skip_to(head.words);
    }
    Ok(taken)
}
