//! The sender's half of a direction.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use beeline_contract_adapter::{PublishPort, ViewPort};
use beeline_ledger::{Anew, Path, Sender, Stays};

use crate::failure::{Failure, Reset};
use crate::kept::Kept;
use crate::socket::{Socket, WindowSink};

/// How long others run until a receiver has said what it has found.
const DECIDED_WITHIN: Duration = Duration::from_millis(100);

/// What became of bytes that were to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// So many of them, from the first on, are on their way.
    Bytes(usize),
    /// The window has no room. Who does not want to look again says [`Outgoing::go_down`], and sends by the socket.
    WindowFull,
    /// The socket has no room: what a program that does not wait is told (`EAGAIN`).
    SocketFull,
}

/// Why a stream that was to go on in its window did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmoved<E> {
    /// No window was given, or it is lost.
    NoWindow,
    /// Bytes that are to be sent anew are not given to the socket yet.
    Owes,
    /// The receiver has not taken exactly what was sent.
    NotTaken,
    /// The ledger says why.
    Ledger(Stays),
    /// The socket did not say what it was given.
    Socket(E),
}

/// Sends one direction of a connection, by the path that the ledger says.
#[derive(Debug)]
pub struct Outgoing<P, V, W> {
    ledger: Sender<P, V>,
    window: Option<W>,
    /// What was sent since the stream left the socket, until nothing of it can be asked for any more.
    kept: Option<Kept>,
    /// How many bytes are kept at most; 0 for none.
    most_kept_bytes: usize,
    /// Whether the stream was begun anew since it left the socket: nothing of that window can be asked for any more.
    is_anew: bool,
}

impl<P: PublishPort, V: ViewPort, W: WindowSink> Outgoing<P, V, W> {
    /// A stream that stays on its socket until it has a window, and keeps nothing: a window that is lost resets the connection.
    pub fn new(ledger: Sender<P, V>) -> Self {
        Outgoing { ledger, window: None, kept: None, most_kept_bytes: 0, is_anew: false }
    }

    /// Keeps a copy of what it sends until the receiver's program has it, so that a lost window loses no byte. A receiver that keeps to the
    /// rules is never further behind than the window and both buffers of the socket are long. Behind one that is by more than `most_bytes`
    /// the copy is dropped, and the connection reset if it asks for those bytes.
    #[must_use]
    pub fn keeping(mut self, most_bytes: usize) -> Self {
        self.most_kept_bytes = most_bytes;
        self
    }

    /// By which path the next byte goes.
    pub fn path(&self) -> Path {
        self.ledger.path()
    }

    /// Bytes of the stream that were sent.
    pub fn sent_bytes(&self) -> u64 {
        self.kept.as_ref().map_or(self.ledger.sent_bytes(), Kept::end)
    }

    /// Bytes of the stream that the socket was given.
    pub fn given_bytes(&self) -> u64 {
        self.ledger.given_bytes()
    }

    /// Whether the receiver says that it has taken exactly what was sent. Of a socket that has no counts and is drained this says that both have counted the same
    /// bytes: what a count of the kernel's says of TCP.
    pub fn has_receiver_all(&self) -> bool {
        self.owed_bytes() == 0 && self.ledger.has_receiver_all()
    }

    /// Bytes of the stream that the receiver's program has not got, as far as it has said. Who sees that they stay as many while the other
    /// end reads may go down: a receiver that misses bytes of the window finds that out then.
    pub fn untaken_bytes(&self) -> u64 {
        self.ledger.untaken_bytes() + self.owed_bytes()
    }

    /// Bytes that were sent once, are to be sent anew, and are not given to the socket yet. Nothing else is sent before them, so somebody has
    /// to call [`Outgoing::tend`] when the socket has room, if the program does not send.
    pub fn owed_bytes(&self) -> u64 {
        self.sent_bytes() - self.ledger.sent_bytes()
    }

    /// Bytes of which it has a copy, which is memory besides the window.
    pub fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, Kept::len)
    }

    /// Whether it has a window; one that is lost is dropped, and the receiver may be asked for another.
    pub fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// Gives it a window to go up to: a new one, of which the receiver has the other end already.
    ///
    /// # Errors
    /// The window comes back while the one before is in use, or the receiver's question about it is not answered.
    pub fn set_window(&mut self, window: W) -> Result<(), W> {
        // An answer drops the window that was lost, and must not drop this one.
        if self.path() == Path::Window || self.ledger.resume_from() != Ok(None) {
            return Err(window);
        }
        self.window = Some(window);
        Ok(())
    }

    /// Goes on in the window. A receiver that waits has to be woken when the first bytes are in it. It costs a barrier and a question to the
    /// kernel. No call that gives bytes to the socket is under way.
    ///
    /// # Errors
    /// [`Unmoved`]: the next byte goes as before.
    pub fn go_up<S: Socket>(&mut self, socket: &mut S) -> Result<(), Unmoved<S::Error>> {
        self.go_up_if(socket, |_| true)
    }

    /// As [`Outgoing::go_up`], for a socket that has no counts, and says what it was given only where nothing of that is on its way: if the receiver has taken exactly what was
    /// sent. It is asked behind the socket: what another writer has sent and the receiver has taken until then is in its count.
    ///
    /// # Errors
    /// As [`Outgoing::go_up`], and [`Unmoved::NotTaken`].
    pub fn go_up_where_all_is_taken<S: Socket>(&mut self, socket: &mut S) -> Result<(), Unmoved<S::Error>> {
        self.go_up_if(socket, Self::has_receiver_all)
    }

    fn go_up_if<S: Socket>(
        &mut self,
        socket: &mut S,
        may: impl Fn(&Self) -> bool,
    ) -> Result<(), Unmoved<S::Error>> {
        if self.path() == Path::Window {
            return Ok(());
        }
        if self.window.is_none() {
            return Err(Unmoved::NoWindow);
        }
        if self.owed_bytes() > 0 {
            return Err(Unmoved::Owes);
        }
        let given = socket.given_bytes().map_err(Unmoved::Socket)?;
        if !may(self) {
            return Err(Unmoved::NotTaken);
        }
        if self.ledger.is_settled() == Ok(true) {
            self.kept = None;
        }
        self.ledger.go_up(given).map_err(Unmoved::Ledger)?;
        self.kept = (self.most_kept_bytes > 0).then(|| Kept::from(self.ledger.sent_bytes()));
        self.is_anew = false;
        Ok(())
    }

    /// Goes on through the socket, whatever the receiver does. What is in the window is received first.
    pub fn go_down(&mut self) {
        if self.path() == Path::Window {
            // Whoever finds the entry finds the window's bytes, of non-temporal stores too.
            self.window.iter_mut().for_each(W::settle);
            self.ledger.go_down();
        }
    }

    /// Whether the receiver has come to the socket and has passed every change of path, without which going up is refused. A load or two.
    ///
    /// # Errors
    /// [`Failure::Reset`]: the other side broke the rules.
    pub fn is_settled<E>(&mut self) -> Result<bool, Failure<E>> {
        Ok(self.ledger.is_settled()?)
    }

    /// Whether the receiver asks for the socket. One load; who sends nothing for a while asks now and then.
    ///
    /// # Errors
    /// [`Failure::Reset`]: the other side broke the rules.
    pub fn is_asked_down<E>(&mut self) -> Result<bool, Failure<E>> {
        Ok(self.ledger.is_asked_down()?)
    }

    /// Sends as many of `bytes` as there is room for, on the path that the stream has. `bytes` is not empty. In the window it calls nothing.
    ///
    /// # Errors
    /// [`Failure::Socket`] is the program's answer; behind [`Failure::Reset`] the connection is to be reset.
    #[inline]
    pub fn send<S: Socket>(&mut self, bytes: &[u8], socket: &mut S) -> Result<Sent, Failure<S::Error>> {
        self.tend(socket)?;
        if self.path() == Path::Window
            && let Some(window) = &mut self.window
        {
            match window.write(self.ledger.sent_bytes(), bytes) {
                Ok(0) => return Ok(Sent::WindowFull),
                Ok(sent) => return Ok(self.count(&bytes[..sent])),
                // Its receiver is not to be believed. What it has of the window is its own affair.
                Err(_) => {
                    self.go_down();
                    self.window = None;
                }
            }
        }
        if self.owed_bytes() > 0 {
            return Ok(Sent::SocketFull);
        }
        match socket.send(bytes).map_err(Failure::Socket)? {
            0 => Ok(Sent::SocketFull),
            sent => Ok(self.count(&bytes[..sent])),
        }
    }

    /// Puts as many of `bytes` into the window as there is room for, if the stream goes by it and the receiver asks for nothing. It calls nothing. Where it
    /// puts none, [`Outgoing::send`] says why.
    #[inline]
    pub fn send_by_window(&mut self, bytes: &[u8]) -> usize {
        let is_plain = self.path() == Path::Window
            && self.ledger.is_asked_down() == Ok(false)
            && self.ledger.resume_from() == Ok(None);
        let Some(window) = self.window.as_mut().filter(|_| is_plain) else { return 0 };
        let sent = window.write(self.ledger.sent_bytes(), bytes).unwrap_or(0);
        if sent > 0 {
            let _counted = self.count(&bytes[..sent]);
        }
        sent
    }

    /// Does what the receiver asks for, and gives the socket what it is owed. For who sends nothing for a while; [`Outgoing::send`] does it
    /// first.
    ///
    /// # Errors
    /// As [`Outgoing::send`].
    #[inline]
    pub fn tend<S: Socket>(&mut self, socket: &mut S) -> Result<(), Failure<S::Error>> {
        if let Some(from) = self.ledger.resume_from()? {
            self.resume(from)?;
        } else if self.path() == Path::Window {
            if self.ledger.is_asked_down()? {
                self.go_down();
            }
            return Ok(());
        }
        if self.kept.is_some() {
            self.pay(socket)?;
        }
        Ok(())
    }

    /// Whether the receiver has lost the window and asks for bytes that were sent, or had asked: they are sent anew.
    ///
    /// # Errors
    /// [`Failure::Reset`]: the other side broke the rules.
    pub fn is_asked_anew<E>(&mut self) -> Result<bool, Failure<E>> {
        Ok(self.is_anew || self.ledger.resume_from()?.is_some())
    }

    /// Leaves the window for ever. Where bytes are kept, those that the receiver's program may not have are given to the socket once more,
    /// behind all that it has, so that nobody has to be here who could be asked for them. Whether the socket has taken all of them: it may be
    /// shut down or closed then, and used without this. Until then this is called again, or [`Outgoing::take_owed`].
    ///
    /// # Errors
    /// As [`Outgoing::send`].
    pub fn leave<S: Socket>(&mut self, socket: &mut S) -> Result<bool, Failure<S::Error>> {
        if self.ledger.has_receiver_ended() {
            self.go_down();
            return Ok(true);
        }
        if let Some(from) = self.ledger.resume_from()? {
            self.resume(from)?;
        } else if self.kept.is_none() {
            // Nothing was in a window since the receiver stood at the socket; or the copy grew too long, and what is in the window is received there.
            self.go_down();
            return Ok(true);
        } else if !self.is_anew && !self.ledger.is_settled()? {
            self.begin_anew()?;
        }
        self.pay(socket)?;
        Ok(self.owed_bytes() == 0)
    }

    /// Bytes that [`Outgoing::leave`] would give to the socket now.
    pub fn bytes_to_leave(&mut self) -> u64 {
        let cursor = self.cursor();
        match &self.kept {
            Some(_) if self.is_anew => self.owed_bytes(),
            Some(kept) if self.ledger.is_settled() != Ok(true) => kept.end() - cursor.max(kept.begin()),
            _ => 0,
        }
    }

    /// Forgets bytes that the receiver's program has: for who sends nothing for a while. It loads the cursor.
    pub fn release(&mut self) {
        let cursor = self.cursor();
        self.kept.iter_mut().for_each(|kept| kept.give_back(cursor));
    }

    /// What the socket has not taken of what it is owed. Whoever has it gives it to the socket before anything else; the stream is not used
    /// behind that.
    pub fn take_owed(&mut self) -> VecDeque<u8> {
        let mut kept = self.kept.take();
        kept.iter_mut().for_each(|kept| kept.release(self.ledger.sent_bytes()));
        kept.map_or_else(VecDeque::new, Kept::into_bytes)
    }

    /// The first byte of the stream that the receiver's program has not said it has.
    fn cursor(&self) -> u64 {
        self.ledger.sent_bytes() - self.ledger.untaken_bytes()
    }

    fn count(&mut self, sent: &[u8]) -> Sent {
        self.ledger.count(sent.len() as u64);
        if let Some(kept) = &mut self.kept {
            kept.add(sent, || self.ledger.sent_bytes() - self.ledger.untaken_bytes());
            if kept.len() > self.most_kept_bytes {
                self.kept = None;
            }
        }
        Sent::Bytes(sent.len())
    }

    #[cold]
    fn resume(&mut self, from: u64) -> Result<(), Reset> {
        // What is in the window stays there: the next stretch needs another one.
        self.window = None;
        let kept = self.kept.as_mut().filter(|kept| kept.has(from)).ok_or(Reset::NotKept { from })?;
        kept.release(from);
        self.ledger.resume(from);
        self.is_anew = true;
        Ok(())
    }

    /// Begins at the first byte that the receiver's program has not said it has, or at the first behind the socket's if it is not there yet.
    #[cold]
    fn begin_anew(&mut self) -> Result<(), Reset> {
        self.window = None;
        let cursor = self.cursor();
        let kept = self.kept.as_mut().ok_or(Reset::NotKept { from: cursor })?;
        let from = cursor.max(kept.begin());
        kept.release(from);
        self.is_anew = true;
        let (mut anew, started) = (self.ledger.begin_anew(from)?, Instant::now());
        // Two stores of a receiver that may have lost its core between them.
        while anew == Anew::Unknown && started.elapsed() < DECIDED_WITHIN {
            std::thread::yield_now();
            anew = self.ledger.look_again()?;
        }
        match anew {
            Anew::Begun => Ok(()),
            Anew::Needless => {
                self.kept = None;
                Ok(())
            }
            Anew::Unknown => Err(Reset::Unseen),
        }
    }

    /// Gives the socket what it is owed, and forgets what cannot be asked for any more.
    fn pay<S: Socket>(&mut self, socket: &mut S) -> Result<(), Failure<S::Error>> {
        while let Some(kept) = &self.kept {
            let owed = kept.at(self.ledger.sent_bytes());
            if owed.is_empty() {
                if self.ledger.is_settled()? {
                    self.kept = None;
                }
                break;
            }
            match socket.send(owed).map_err(Failure::Socket)? {
                0 => break,
                sent => self.ledger.count(sent as u64),
            }
        }
        Ok(())
    }
}
