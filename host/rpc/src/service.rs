//! What a server's thread calls for each request: a handler that reads the request where it lies and writes the answer
//! where the client reads it.
//!
//! From the RAMCloud/HiStar notes (R bullets): eliminate all copies on the server's side, process the request while it
//! is still in the ring. A [`Request`] is a handle on lines of the request window, freed when the handler returns; a
//! [`Reply`] stores straight into the client's reply window. A handler runs in the thread that polls, so it should be
//! short; what it waits for, every client of that thread waits for.

use beeline_domain::{MemoryCreditSink, MemoryCredits, PeerWindow};
use beeline_mmio::LoadWindow;
use beeline_spec::WORD_BYTES;
use beeline_spec::formats::RPC_MAX_PAYLOAD_BYTES;
use beeline_spec::rpc::{ResponseWord, Status};
use beeline_window::{Reservation, SendError, Sent, SharedMessage, WriteError, Writer};

use crate::cancels::Cancels;
use crate::deadline::Deadline;
use crate::method::Method;
use crate::outgoing::Outgoing;
use crate::payload::Body;

/// The window that answers to one client are stored into by one thread.
pub(crate) type ReplyWindow = Writer<PeerWindow, MemoryCredits>;
pub(crate) type RequestMessage<'a> = SharedMessage<'a, LoadWindow, MemoryCreditSink>;

/// Answers requests. A closure `FnMut(&mut Request, Reply) -> Replied` is one.
pub trait Service {
    /// Answers one request. Every way to use up `reply` gives the [`Replied`] that must be returned; a handler that
    /// panics has its client told so and the server goes on.
    fn call(&mut self, request: &mut Request<'_>, reply: Reply<'_>) -> Replied;
}

impl<F: FnMut(&mut Request<'_>, Reply<'_>) -> Replied> Service for F {
    #[inline]
    fn call(&mut self, request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
        self(request, reply)
    }
}

/// A client of a server; never the same for two connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub(crate) u64);

/// A request in a handler's hands.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) method: Method,
    pub(crate) client: ClientId,
    pub(crate) number: u32,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) cancels: Option<&'a Cancels>,
    pub(crate) body: Body<'a, RequestMessage<'a>>,
}

impl Request<'_> {
    /// Returns the method that the client calls.
    #[inline(always)]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the client that sent the request.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// When the client stops waiting, if it said so: hand it on to calls made on its behalf.
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Whether the client has abandoned the call meanwhile: one load. Over a wire never.
    pub fn is_cancelled(&self) -> bool {
        self.cancels.is_some_and(|cancels| cancels.has(self.number))
    }

    /// Bytes of the request.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether it has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Bytes `8 * index` to `8 * index + 7` as a little-endian word; bytes past the end are zero. Each call loads from
    /// memory that the client can write: read once, check, use.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        self.body.word(index)
    }

    /// Copies the request into `out`, as much as fits; the number of bytes copied.
    #[inline(always)]
    pub fn copy_out(&mut self, out: &mut [u8]) -> usize {
        self.body.copy_out(out)
    }

    /// As [`Request::copy_out`], from word `first` of the request on.
    #[inline(always)]
    pub fn copy_out_from(&mut self, first: usize, out: &mut [u8]) -> usize {
        self.body.copy_out_from(first, out)
    }

    /// Appends the request to `out`.
    pub fn copy_to(&mut self, out: &mut Vec<u8>) {
        self.body.copy_to(out);
    }
}

/// Proof that a request was answered.
#[derive(Debug)]
#[must_use]
pub struct Replied(());

/// The answers of one thread to one client that are not in its window yet.
#[derive(Debug)]
pub(crate) struct Answers {
    /// What could not be sent at once: it waits, and no further request of the client is taken meanwhile.
    pub(crate) parked: Outgoing,
    /// The error for which nothing can be sent any more.
    pub(crate) trouble: Option<SendError>,
}

impl Answers {
    pub(crate) fn new() -> Self {
        Answers { parked: Outgoing::default(), trouble: None }
    }

    /// Keeps an answer until there is room for it.
    #[cold]
    #[inline(never)]
    fn park(&mut self, word: u64, bytes: &[u8]) {
        if bytes.len() <= RPC_MAX_PAYLOAD_BYTES {
            self.parked.begin(word, None).extend_from_slice(bytes);
        } else if let Ok(long) = ResponseWord::decode(word) {
            self.parked.begin(response_word(long.call(), Status::TooLong, 0), None);
        }
    }

    /// Keeps another answer than the one that was being gathered.
    #[cold]
    fn park_anew(&mut self, word: u64) {
        self.parked.forget();
        self.parked.begin(word, None);
    }
}

/// The answer to one request, not given yet. Dropping it tells the client that the handler gave up.
///
/// Two words, so that it reaches the handler in registers: one that is put together in memory, a word at a time, and then
/// moved waits there for the store buffer, which was a tenth of a call.
#[derive(Debug)]
pub struct Reply<'a> {
    number: u32,
    /// `None` once the request is answered.
    path: Option<&'a mut ReplyPath>,
}

/// Where the answers of one thread to one client are stored.
#[derive(Debug)]
pub(crate) struct ReplyPath {
    /// `None` on a wire, where answers are gathered first, and until the client has opened one.
    pub(crate) window: Option<ReplyWindow>,
    pub(crate) max_message_bytes: usize,
    pub(crate) answers: Answers,
}

impl ReplyPath {
    /// Without a window.
    pub(crate) fn new() -> Self {
        ReplyPath { window: None, max_message_bytes: 0, answers: Answers::new() }
    }
}

impl<'a> Reply<'a> {
    #[inline(always)]
    pub(crate) fn new(number: u32, path: &'a mut ReplyPath) -> Self {
        Reply { number, path: Some(path) }
    }

    /// Answers with these bytes, 1 MiB at most. They are stored into the client's window at once, or copied when there
    /// is no room.
    #[inline(always)]
    pub fn send(mut self, answer: &[u8]) -> Replied {
        self.answer(Status::Done, 0, answer);
        Replied(())
    }

    /// Opens an answer of at most `max_bytes` to be written piece by piece, straight into the client's window.
    pub fn begin(mut self, max_bytes: usize) -> ReplyWriter<'a> {
        let path = self.path.take().expect("a reply that exists is not answered");
        ReplyWriter::open(self.number, path, max_bytes)
    }

    /// Answers that the request failed, with a code and a detail that mean something to the client.
    pub fn fail(mut self, code: u16, detail: &[u8]) -> Replied {
        self.answer(Status::Failed, code, detail);
        Replied(())
    }

    /// Answers that there is no such method.
    pub fn unknown_method(mut self) -> Replied {
        self.answer(Status::UnknownMethod, 0, &[]);
        Replied(())
    }

    /// Answers that the server takes no more work now; say so only before anything was done.
    pub fn overloaded(mut self) -> Replied {
        self.answer(Status::Overloaded, 0, &[]);
        Replied(())
    }

    /// Answers what is not the handler's to say.
    pub(crate) fn refuse(mut self, status: Status) {
        self.answer(status, 0, &[]);
    }

    #[inline(always)]
    fn answer(&mut self, status: Status, code: u16, bytes: &[u8]) {
        let Some(ReplyPath { window, max_message_bytes, answers }) = self.path.take() else { return };
        let word = response_word(self.number, status, code);
        if let Some(window) = window
            && WORD_BYTES + bytes.len() <= *max_message_bytes
        {
            match window.try_send_prefixed(word, bytes) {
                Ok(Sent::Sent) => return,
                Ok(Sent::Full) => {}
                Err(error) => return answers.trouble = Some(error),
            }
        }
        answers.park(word, bytes);
    }
}

impl Drop for Reply<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.path.is_some() {
            self.answer(Status::Crashed, 0, &[]);
        }
    }
}

#[inline(always)]
fn response_word(call: u32, status: Status, code: u16) -> u64 {
    ResponseWord::new(call, status, code).encode()
}

/// An answer that is being written. [`ReplyWriter::commit`] gives it; dropping it tells the client that the handler gave
/// up.
#[derive(Debug)]
pub struct ReplyWriter<'a> {
    number: u32,
    buffer: AnswerBuffer<'a>,
}

#[derive(Debug)]
enum AnswerBuffer<'a> {
    /// Lines of the client's reply window.
    Window {
        open: Reservation<'a, PeerWindow, MemoryCredits>,
        answers: &'a mut Answers,
    },
    /// Memory of this process: there is no room in the window, or it is no window.
    Gathered {
        answers: &'a mut Answers,
        max_bytes: usize,
    },
    Closed,
}

impl<'a> ReplyWriter<'a> {
    fn open(number: u32, path: &'a mut ReplyPath, max_bytes: usize) -> Self {
        let ReplyPath { window, max_message_bytes, answers } = path;
        let message_bytes = WORD_BYTES.saturating_add(max_bytes);
        if let Some(window) = window
            && message_bytes <= *max_message_bytes
        {
            match window.reserve(message_bytes) {
                Ok(Some(mut open)) => {
                    open.put_u64(response_word(number, Status::Done, 0)).expect("a word was reserved for it");
                    return ReplyWriter { number, buffer: AnswerBuffer::Window { open, answers } };
                }
                Ok(None) => {}
                Err(error) => answers.trouble = Some(error),
            }
        }
        answers.parked.begin(response_word(number, Status::Done, 0), None);
        ReplyWriter { number, buffer: AnswerBuffer::Gathered { answers, max_bytes } }
    }

    /// Appends bytes to the answer.
    ///
    /// # Errors
    /// [`WriteError`] when there is less room; none of the bytes was taken.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        match &mut self.buffer {
            AnswerBuffer::Window { open, .. } => open.write(bytes),
            AnswerBuffer::Gathered { answers, max_bytes } => {
                let gathered = answers.parked.bytes();
                if gathered.len() + bytes.len() > *max_bytes {
                    let (bytes, written_bytes) = (bytes.len(), gathered.len());
                    return Err(WriteError::new(bytes, written_bytes, *max_bytes));
                }
                gathered.extend_from_slice(bytes);
                Ok(())
            }
            AnswerBuffer::Closed => Ok(()),
        }
    }

    /// Appends a word, little-endian.
    ///
    /// # Errors
    /// Those of [`ReplyWriter::write`].
    pub fn put_u64(&mut self, word: u64) -> Result<(), WriteError> {
        self.write(&word.to_le_bytes())
    }

    /// Answers with what was written.
    pub fn commit(mut self) -> Replied {
        match core::mem::replace(&mut self.buffer, AnswerBuffer::Closed) {
            AnswerBuffer::Window { open, .. } => open.commit(),
            AnswerBuffer::Gathered { answers, .. } => {
                if answers.parked.bytes().len() > RPC_MAX_PAYLOAD_BYTES {
                    answers.park_anew(response_word(self.number, Status::TooLong, 0));
                }
            }
            AnswerBuffer::Closed => {}
        }
        Replied(())
    }
}

impl Drop for ReplyWriter<'_> {
    fn drop(&mut self) {
        match core::mem::replace(&mut self.buffer, AnswerBuffer::Closed) {
            AnswerBuffer::Window { open, answers } => {
                // The lines become a void message.
                drop(open);
                answers.park(response_word(self.number, Status::Crashed, 0), &[]);
            }
            AnswerBuffer::Gathered { answers, .. } => {
                answers.park_anew(response_word(self.number, Status::Crashed, 0));
            }
            AnswerBuffer::Closed => {}
        }
    }
}
