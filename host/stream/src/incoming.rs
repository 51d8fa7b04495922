//! The receiver's half of a direction.

use beeline_contract_adapter::{PublishPort, ViewPort};
use beeline_ledger::{KernelPath, Path, Received, Receiver, Refused, WindowLost, WindowPath};

use crate::failure::Failure;

/// Receives one direction of a connection, by the paths that the ledger says.
#[derive(Debug)]
pub struct Incoming<P, V, W, E> {
    ledger: Receiver<P, V>,
    window: Slot<W>,
    /// What the socket failed with, while the window had bytes: the kernel says it once, and the program gets it behind them.
    failed: Option<E>,
}

/// The window, if there is one that is not lost.
#[derive(Debug)]
struct Slot<W>(Option<W>);

impl<W: WindowPath> WindowPath for Slot<W> {
    #[inline]
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        self.0.as_mut().ok_or(WindowLost)?.read(offset, out).inspect_err(|_| self.0 = None)
    }

    fn peek(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        self.0.as_mut().ok_or(WindowLost)?.peek(offset, out).inspect_err(|_| self.0 = None)
    }
}

impl<P: PublishPort, V: ViewPort, W: WindowPath, E> Incoming<P, V, W, E> {
    /// A stream whose sender has no window of ours yet.
    pub fn new(ledger: Receiver<P, V>) -> Self {
        Incoming { ledger, window: Slot(None), failed: None }
    }

    /// By which path the next byte comes, as far as is known.
    pub fn path(&self) -> Path {
        self.ledger.path()
    }

    /// Whether bytes of the window are lost, and the sender has not begun anew.
    pub fn is_lost(&self) -> bool {
        self.ledger.is_lost()
    }

    /// Bytes of the stream that were taken.
    pub fn taken_bytes(&self) -> u64 {
        self.ledger.taken_bytes()
    }

    /// Gives it the window that the sender goes up to next: before the sender has the other end. Bytes of the one before it that
    /// were not read are lost with it, so it is done behind one that is lost, or that nothing is in.
    pub fn set_window(&mut self, window: W) {
        self.window = Slot(Some(window));
    }

    /// Whether it has a window: one that is lost is dropped, and another may be offered.
    pub fn has_window(&self) -> bool {
        self.window.0.is_some()
    }

    /// Treats the window as lost once its sender sends anew what was not taken: for who wants all of it in the socket. It is called again until
    /// that is so; as long as the sender says nothing, the window's bytes can be read.
    ///
    /// # Errors
    /// [`Failure::Reset`]: the other side broke the rules.
    pub fn skip_to_anew(&mut self) -> Result<(), Failure<E>> {
        if self.has_window() && self.ledger.comes_anew()? && self.has_window_bytes()? {
            self.window = Slot(None);
        }
        Ok(self.ledger.skip_to_anew()?)
    }

    /// Moves bytes of the stream that have come to `out`, which is not empty. It does not wait, and calls nothing while the window has bytes.
    ///
    /// # Errors
    /// [`Failure::Socket`] is the program's answer, behind every byte that came before; behind [`Failure::Reset`] the connection is to be
    /// reset.
    #[inline]
    pub fn receive<K: KernelPath<Error = E>>(
        &mut self,
        out: &mut [u8],
        socket: &mut K,
    ) -> Result<Received, Failure<E>> {
        if self.failed.is_none() {
            let found = self.ledger.receive(out, socket, &mut self.window);
            if let Some(found) = self.but_failures(found) {
                return found;
            }
        }
        let bytes = self.ledger.read_window(out, &mut self.window);
        self.or_failure(bytes)
    }

    /// Moves bytes that the window has, and no others: for who looks again and again. It calls nothing and loads no word of the ledger.
    #[inline]
    pub fn read_window(&mut self, out: &mut [u8]) -> Option<usize> {
        self.ledger.read_window(out, &mut self.window)
    }

    /// Whether the next byte is in the window, or the window is lost. It asks no socket.
    ///
    /// # Errors
    /// [`Failure::Reset`]: the other side broke the rules.
    pub fn has_window_bytes(&mut self) -> Result<bool, Failure<E>> {
        self.ledger.pass_to_window()?;
        let is_there = self.ledger.peek_window(&mut [0], &mut self.window).is_some();
        if !is_there {
            // Bytes that are missing in front of its end: nothing else tells of them where the socket has none.
            self.ledger.pass_window(&mut self.window)?;
        }
        Ok(is_there || self.ledger.path() == Path::Window && !self.has_window())
    }

    /// Copies bytes that have come to `out`, which is not empty, and leaves them to be received (`MSG_PEEK`): those of one path, so it may be
    /// fewer than have come.
    ///
    /// # Errors
    /// As [`Incoming::receive`]. A failure of the socket is said once, by whichever of the two, as the kernel does it.
    pub fn peek<K: KernelPath<Error = E>>(
        &mut self,
        out: &mut [u8],
        socket: &mut K,
    ) -> Result<Received, Failure<E>> {
        if self.failed.is_none() {
            let found = self.ledger.peek(out, socket, &mut self.window);
            if let Some(found) = self.but_failures(found) {
                return found;
            }
        }
        let bytes = self.ledger.peek_window(out, &mut self.window);
        self.or_failure(bytes)
    }

    /// What was found, unless it is a failure of the socket, which is kept: bytes that were stored before it may have come since the window
    /// was looked at.
    #[inline]
    fn but_failures(&mut self, found: Result<Received, Refused<E>>) -> Option<Result<Received, Failure<E>>> {
        match found.map_err(Failure::of) {
            Err(Failure::Socket(error)) => {
                self.failed = Some(error);
                None
            }
            found => Some(found),
        }
    }

    /// Bytes that the window has, or else the failure that was kept.
    fn or_failure(&mut self, bytes: Option<usize>) -> Result<Received, Failure<E>> {
        match bytes {
            Some(bytes) => Ok(Received::Bytes(bytes)),
            None => self.failed.take().map_or(Ok(Received::Nothing), |error| Err(Failure::Socket(error))),
        }
    }

    /// Asks the sender to go on through the socket and never to leave it again. True once others may read the socket; until then
    /// [`Incoming::receive`] goes on, and this is asked again.
    ///
    /// # Errors
    /// [`Failure::Reset`]: the other side broke the rules.
    pub fn stop(&mut self) -> Result<bool, Failure<E>> {
        Ok(self.ledger.stop()?)
    }

    /// Whether the ledger has an entry that was not come to: for who is about to sleep. One load.
    ///
    /// # Errors
    /// [`Failure::Reset`]: the other side broke the rules.
    pub fn has_entry(&self) -> Result<bool, Failure<E>> {
        Ok(self.ledger.has_entry()?)
    }

    /// Says that nothing is read any more.
    pub fn end(&mut self) {
        self.ledger.end();
    }
}
