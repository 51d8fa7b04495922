//! The receiving end of a window, and of those that come after it.

use std::time::{Duration, Instant};

use beeline_domain::{Armed, Event, MemoryCreditSink, MemorySleeper, ReceiverParts, Source, listen_all};
use beeline_mmio::LoadWindow;
use beeline_tuning::{ReceiveTuning, receive_for, receiver, retune};
use beeline_wait::Waiter;
use beeline_window::{WaitPolicy, WindowConfig};

use crate::RecvError;
use crate::origin::Origin;

/// Receives messages from one sender after the other. Made by [`crate::Domain::receiver`]; of a window of an arena, by
/// [`crate::ReceiverArena`].
///
/// When a sender ends, what it completed is received first; then one call fails with [`RecvError::SenderGone`] or
/// [`RecvError::Torn`], and the next waits for the next sender, which gets a fresh window. One of an arena has no next sender: there
/// all further calls fail with [`RecvError::SenderGone`].
#[derive(Debug)]
pub struct Receiver {
    pub(crate) origin: Origin,
    pub(crate) wait: WaitPolicy,
    /// How every window is looked at; otherwise each as its sender stores.
    pub(crate) tuning: Option<ReceiveTuning>,
    pub(crate) open: Option<Open>,
    /// The sender of `open` is over and the caller has been told.
    pub(crate) is_over: bool,
}

/// A window that has a sender, or had one.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) receiver: beeline_window::Receiver<LoadWindow, MemoryCreditSink>,
    pub(crate) sleeper: MemorySleeper,
}

impl Open {
    pub(crate) fn new(parts: ReceiverParts, tuning: Option<ReceiveTuning>) -> Self {
        let tuning = tuning.unwrap_or_else(|| receive_for(parts.kernel));
        let config = WindowConfig::blank(parts.blank, parts.epoch);
        Open { receiver: receiver(tuning, parts.load, parts.sink, config), sleeper: parts.sleeper }
    }
}

impl Receiver {
    pub(crate) fn new(origin: Origin, wait: WaitPolicy, tuning: Option<ReceiveTuning>) -> Self {
        Receiver { origin, wait, tuning, open: None, is_over: false }
    }

    /// The next message; waits for a sender and for the message.
    ///
    /// # Errors
    /// The sender has ended, or is faulty; or this process was forked and there is no sender, nor will be.
    pub fn recv(&mut self) -> Result<Message<'_>, RecvError> {
        // Without a deadline only a listener of another process gives up.
        self.recv_until(None)?.ok_or(RecvError::Forked)
    }

    /// As [`Receiver::recv`], for at most `timeout`: `None` when nothing came.
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Message<'_>>, RecvError> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// The next message if it is there. Never waits; enters the kernel only while there is no sender.
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<Message<'_>>, RecvError> {
        let Some((open, is_over)) = self.look_for_sender()? else { return Ok(None) };
        match open.receiver.poll() {
            Ok(message) => Ok(message.map(|inner| Message { inner })),
            Err(error) => {
                *is_over = true;
                Err(RecvError::new(error, open.sleeper.peer().departure()))
            }
        }
    }

    /// Gives `each` the messages that have arrived, `max` at most, and frees each when `each` returns: less work a message
    /// than handles have. Returns how many there were; never waits.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), beeline::Error> {
    /// # let mut receiver = beeline::Domain::open("demo")?.receiver("numbers")?;
    /// let mut sum = 0u64;
    /// let count = receiver.drain(64, |message| sum = message.fold_words(sum, u64::wrapping_add))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Receiver::recv`]; the messages in front of the error were given.
    #[inline]
    pub fn drain(&mut self, max: usize, mut each: impl FnMut(MessageRef<'_>)) -> Result<usize, RecvError> {
        let Some((open, is_over)) = self.look_for_sender()? else { return Ok(0) };
        open.receiver.drain(max, |inner| each(MessageRef { inner })).map_err(|error| {
            *is_over = true;
            RecvError::new(error, open.sleeper.peer().departure())
        })
    }

    /// Looks at windows another way from now on: at the one that is open, and at those of later senders, as
    /// [`crate::ReceiverOptions::tuning`] says it when it is made. For a tuning that was found since ([`crate::TuningWatch`]); its
    /// `receive` was timed with a sender that stores with its `stream` kernel. Changes no message, whenever it is called.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn main() -> Result<(), beeline::Error> {
    /// let mut watch = beeline::TuningWatch::find();
    /// let mut receiver = beeline::Domain::open("demo")?.receiver("numbers")?;
    /// loop {
    ///     if let Some(message) = receiver.recv_timeout(Duration::from_secs(60))? {
    ///         println!("{} bytes", message.len());
    ///         continue;
    ///     }
    ///     // There is time now.
    ///     if let Some(tuning) = watch.look() {
    ///         receiver.set_tuning(tuning.receive);
    ///     }
    /// }
    /// # }
    /// ```
    pub fn set_tuning(&mut self, tuning: ReceiveTuning) {
        self.tuning = Some(tuning);
        if let Some(open) = &mut self.open {
            retune(&mut open.receiver, tuning);
        }
    }

    /// Whether a sender is connected, or has left messages.
    pub fn has_sender(&self) -> bool {
        self.open.is_some() && !self.is_over
    }

    /// The window in use and whether it is over, after a look for a sender and for its end that does not wait.
    #[inline]
    fn look_for_sender(&mut self) -> Result<Option<(&mut Open, &mut bool)>, RecvError> {
        if self.open.is_none() || self.is_over {
            self.accept(Some(Duration::ZERO))?;
        }
        let Receiver { open: Some(open), is_over, .. } = self else { return Ok(None) };
        // One relaxed load: an idle receiver must learn of the sender's end without sleeping.
        if beeline_contract_memory::Sleeper::is_peer_gone(&open.sleeper) {
            open.receiver.sender_gone();
        }
        Ok(Some((open, is_over)))
    }

    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<Option<Message<'_>>, RecvError> {
        if self.open.is_none() || self.is_over {
            self.accept(deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())))?;
        }
        let Receiver { open: Some(open), is_over, wait, .. } = self else { return Ok(None) };
        match open.receiver.recv_wait(&mut Waiter::new(wait, &mut open.sleeper, deadline)) {
            Ok(message) => Ok(message.map(|inner| Message { inner })),
            Err(error) => {
                *is_over = true;
                Err(RecvError::new(error, open.sleeper.peer().departure()))
            }
        }
    }

    /// Lets go of a window that is over and waits for the next sender, for ever without a time. The error: none will come.
    fn accept(&mut self, time: Option<Duration>) -> Result<(), RecvError> {
        self.open = None;
        self.is_over = false;
        if !self.origin.has_next() {
            return Err(RecvError::SenderGone);
        }
        let parts = self.origin.accept(time.unwrap_or(Duration::MAX));
        self.open = parts.map(|parts| Open::new(parts, self.tuning));
        Ok(())
    }
}

/// Ready while a message, the end of a sender or the next sender may be there for [`Receiver::try_recv`].
impl Source for Receiver {
    fn listen(&mut self, event: &Event) -> Armed {
        self.origin.signal(Some(event));
        let open = match self.look_for_sender() {
            Ok(Some((open, _))) => open,
            Ok(None) => return Armed::Wait,
            Err(_) => return Armed::Ready,
        };
        // A receiver that freed messages and did not look for the next one has told nobody of their lines; a sender may wait for
        // them.
        open.receiver.push_credits();
        open.sleeper.announce(event);
        listen_all([&open.sleeper]);
        let is_gone = beeline_contract_memory::Sleeper::is_peer_gone(&open.sleeper);
        if is_gone || open.receiver.has_begun() { Armed::Ready } else { Armed::Wait }
    }

    fn unlisten(&mut self) {
        self.origin.signal(None);
        if let Some(open) = &mut self.open {
            open.sleeper.unlisten();
        }
    }
}

/// A received message, where the sender stored it. Dropping it frees its place.
#[derive(Debug)]
#[must_use = "a message that is dropped is gone"]
pub struct Message<'r> {
    inner: beeline_window::Message<'r, LoadWindow, MemoryCreditSink>,
}

impl Message<'_> {
    /// Bytes of the message.
    #[inline]
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// Whether it has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Bytes `8 * index` to `8 * index + 7` as a little-endian word; bytes past the end are zero. No copy.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.inner.word(index)
    }

    /// Gives `each` all words, as [`Message::word`] gives them.
    #[inline]
    pub fn for_each_word(&self, each: impl FnMut(u64)) {
        self.inner.for_each_word(each);
    }

    /// Folds all words, as [`Message::word`] gives them: `start`, then what `fold` makes of that and the first word, and so on.
    /// The fastest way to read all of a message: what is folded stays in registers.
    #[inline]
    pub fn fold_words<T>(&self, start: T, fold: impl FnMut(T, u64) -> T) -> T {
        self.inner.fold_words(start, fold)
    }

    /// Copies the message to the front of `bytes`, as much as fits; the number of bytes copied.
    #[inline]
    pub fn copy_out(&mut self, bytes: &mut [u8]) -> usize {
        self.inner.copy_out(bytes)
    }

    /// Copies the message from word `first_word` on to the front of `bytes`, as much as fits; the number of bytes copied.
    #[inline]
    pub fn copy_out_from(&mut self, first_word: usize, bytes: &mut [u8]) -> usize {
        self.inner.copy_out_from(first_word, bytes)
    }

    /// Copies the message from byte `first_byte` on to the front of `bytes`, as much as fits; the number of bytes copied. Where that
    /// is a word, [`Message::copy_out_from`] is cheaper.
    pub fn copy_out_at(&mut self, first_byte: usize, bytes: &mut [u8]) -> usize {
        self.inner.copy_out_at(first_byte, bytes)
    }

    /// The message as a vector; allocates.
    pub fn to_vec(mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.inner.copy_to(&mut bytes);
        bytes
    }
}

/// A message that [`Receiver::drain`] gives, where the sender stored it.
#[derive(Debug)]
pub struct MessageRef<'r> {
    pub(crate) inner: beeline_window::MessageRef<'r, LoadWindow, MemoryCreditSink>,
}

impl MessageRef<'_> {
    /// Bytes of the message.
    #[inline]
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// Whether it has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Bytes `8 * index` to `8 * index + 7` as a little-endian word, as [`Message::word`] gives them.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.inner.word(index)
    }

    /// Gives `each` all words, as [`Message::word`] gives them.
    #[inline]
    pub fn for_each_word(&self, each: impl FnMut(u64)) {
        self.inner.for_each_word(each);
    }

    /// Folds all words, as [`Message::word`] gives them: `start`, then what `fold` makes of that and the first word, and so on.
    /// The fastest way to read all of a message: what is folded stays in registers.
    #[inline]
    pub fn fold_words<T>(&self, start: T, fold: impl FnMut(T, u64) -> T) -> T {
        self.inner.fold_words(start, fold)
    }

    /// Copies the message to the front of `bytes`, as much as fits; the number of bytes copied.
    #[inline]
    pub fn copy_out(&mut self, bytes: &mut [u8]) -> usize {
        self.inner.copy_out(bytes)
    }

    /// Copies the message from word `first_word` on to the front of `bytes`, as much as fits; the number of bytes copied.
    #[inline]
    pub fn copy_out_from(&mut self, first_word: usize, bytes: &mut [u8]) -> usize {
        self.inner.copy_out_from(first_word, bytes)
    }

    /// Copies the message from byte `first_byte` on to the front of `bytes`, as much as fits; the number of bytes copied.
    pub fn copy_out_at(&mut self, first_byte: usize, bytes: &mut [u8]) -> usize {
        self.inner.copy_out_at(first_byte, bytes)
    }

    /// Appends the message to `bytes`; allocates when there is no room.
    pub fn copy_to(&mut self, bytes: &mut Vec<u8>) {
        self.inner.copy_to(bytes);
    }
}
