//! Windows that a process opens in its arena of a receiver.

use beeline_domain::{SenderParts, WindowError, join_windows, join_windows_proving};
use beeline_mmio::{MemoryOptions, StoreKernel};

use crate::{ConnectError, Domain, Sender, SenderOptions, Target, Token};

/// This process's arena of a receiver, in which it opens windows. Made by [`Domain::sender_arena`].
///
/// Clones are the same one, for any number of threads. It stands as long as there is a clone or a [`Sender`] of it; a sender that is
/// dropped gives its window back, and what it sent stays for the receiver.
///
/// ```no_run
/// # fn main() -> Result<(), beeline::Error> {
/// let sessions = beeline::Domain::open("demo")?.sender_arena("sessions", 64)?;
/// let mut senders = Vec::new();
/// for number in 0..10_000u64 {
///     let mut sender = sessions.open()?;
///     sender.send(&number.to_le_bytes())?;
///     senders.push(sender);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SenderArena {
    inner: beeline_domain::SenderArena,
    kernel: StoreKernel,
    options: SenderOptions,
    name: String,
}

impl SenderArena {
    /// Opens a window of the usual number of lines, which is this sender's alone. One of up to 256 lines costs a few stores, as
    /// a rule, and a wake-up if the receiver sleeps for it; its first message may be sent before the receiver has heard of it. Else
    /// the receiver is asked, for at most 10 s.
    ///
    /// # Errors
    /// [`ConnectError::Refused`]: so many windows or bytes are open as the receiver lends to one process; the receiver has gone; this
    /// process was forked from the one that has the arena.
    pub fn open(&self) -> Result<Sender, ConnectError> {
        self.opened(self.inner.open(self.kernel))
    }

    /// Opens a window of another number of lines: a power of two, no more than the receiver offers, which is asked for it.
    ///
    /// # Errors
    /// As [`SenderArena::open`]; the number of lines cannot be.
    pub fn open_sized(&self, lines: u32) -> Result<Sender, ConnectError> {
        self.opened(self.inner.open_sized(lines, self.kernel))
    }

    /// Whether the receiver's program has ended, or has dropped the arena and everything that was accepted from it. Costs one load.
    pub fn is_receiver_gone(&self) -> bool {
        !self.inner.peer().is_alive()
    }

    fn opened(&self, opened: Result<SenderParts, WindowError>) -> Result<Sender, ConnectError> {
        let parts = opened.map_err(|error| ConnectError::window(Target::Arena(self.name.clone()), error))?;
        Ok(Sender::new(parts, self.options))
    }
}

impl Domain {
    /// Joins the receiver that offers windows under `name`, to open windows of `lines` lines each: a power of two, no more than it
    /// offers.
    ///
    /// # Errors
    /// Nobody offers it; the receiver has as many arenas as it offers; the number of lines cannot be.
    pub fn sender_arena(&self, name: &str, lines: u32) -> Result<SenderArena, ConnectError> {
        self.sender_arena_with(name, lines, SenderOptions::new())
    }

    /// As [`Domain::sender_arena`], with options for the arena and all its senders.
    ///
    /// # Errors
    /// As [`Domain::sender_arena`]; an option is out of bounds, as huge pages and locked memory are.
    pub fn sender_arena_with(
        &self,
        name: &str,
        lines: u32,
        options: SenderOptions,
    ) -> Result<SenderArena, ConnectError> {
        self.sender_arena_by(name, options, || join_windows(&self.inner, name, lines))
    }

    /// Joins a receiver that is the process with which `token` was exchanged; no other one is asked. The domain is that of
    /// [`Token::uid`] ([`Domain::open_foreign`]). The token is good once, and all windows are opened in what it joined.
    ///
    /// # Errors
    /// As [`Domain::sender_arena_with`]; the receiver is another process, or the token was used before.
    pub fn sender_arena_proving(
        &self,
        name: &str,
        lines: u32,
        token: Token,
        options: SenderOptions,
    ) -> Result<SenderArena, ConnectError> {
        self.sender_arena_by(name, options, || join_windows_proving(&self.inner, &token.0, name, lines))
    }

    /// Joins by `join`, again and again while nobody offers the name and there is time.
    fn sender_arena_by(
        &self,
        name: &str,
        options: SenderOptions,
        mut join: impl FnMut() -> Result<beeline_domain::SenderArena, WindowError>,
    ) -> Result<SenderArena, ConnectError> {
        let target = || Target::Arena(name.to_owned());
        if options.memory != MemoryOptions::default() {
            let source = "the windows of an arena have no huge pages and are not locked".into();
            return Err(ConnectError::Options { target: target(), source });
        }
        let kernel = options
            .store_kernel()
            .map_err(|error| ConnectError::Options { target: target(), source: error.into() })?;
        let inner = self
            .inner
            .retry_until_offered(options.timeout, |_| join())
            .map_err(|error| ConnectError::window(target(), error).after(options.timeout))?;
        Ok(SenderArena { inner, kernel, options, name: name.to_owned() })
    }
}
