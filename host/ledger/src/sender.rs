//! The sender's side.

use beeline_contract_adapter::{PublishPort, ViewPort};

use crate::broken::Broken;
use crate::entry::{Entry, Kind};
use crate::path::Path;
use crate::words::{CURSOR, GONE, LOST_AT, PASSED, READY, STANDING, STOPPED, STOPPING};

/// Why a stream stays on the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// The receiver does not read by the ledger, or not yet.
    NotReady,
    /// The receiver has not come to the last change of path, or waits to be sent bytes anew.
    Behind,
    /// The receiver does not read any more.
    Gone,
    /// The socket was given other bytes than those that were told of: somebody else writes to it, or a call of this process has not returned.
    OtherBytes {
        /// What the socket was given.
        given: u64,
        /// Bytes that [`Sender::count`] was told of.
        told: u64,
    },
    /// The other side broke the rules.
    Broken(Broken),
}

/// What became of a stream that is begun anew without a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anew {
    /// The next byte that is sent is the one that was said.
    Begun,
    /// The receiver has come to the socket, and looks for no entry any more: what it gets next is behind all that was sent.
    Needless,
    /// It was about to look for the last time, and has not said what it found: [`Sender::look_again`]. If it never does, nobody knows which byte
    /// comes next, and the connection is to be reset.
    Unknown,
}

/// How often it is looked for what a receiver has found, which is two stores of its. It may have lost its core between them: then who asks lets others run.
const LOOKS: u32 = 1 << 10;

/// What one direction's sender knows: by which path it sends, and how far it is.
#[derive(Debug)]
pub struct Sender<P, V> {
    own: P,
    theirs: V,
    path: Path,
    /// Entries published.
    published: u64,
    /// Bytes of the stream that were sent, and those that the socket was given.
    sent: u64,
    given: u64,
    /// Entries that the receiver was last seen to have passed.
    passed: u64,
    /// The entry that answers the last question where to resume; 0 for none.
    answer: u64,
    /// The byte from which on it was resumed.
    resumed: u64,
    /// Begun anew where the receiver may have stopped: bytes that were sent before, and whether it sees that it was begun.
    undecided: Option<(u64, bool)>,
}

impl<P: PublishPort, V: ViewPort> Sender<P, V> {
    /// A stream of which the socket has carried all bytes so far, `given` of them. `own` has [`crate::SENDER_WORDS`] words, `theirs` the
    /// receiver's; all of them are 0 at first.
    pub fn new(own: P, theirs: V, given: u64) -> Self {
        Sender {
            own,
            theirs,
            path: Path::Kernel,
            published: 0,
            sent: given,
            given,
            passed: 0,
            answer: 0,
            resumed: 0,
            undecided: None,
        }
    }

    /// By which path the next byte is to be sent.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Bytes of the stream that were sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent
    }

    /// Bytes of the stream that the socket was given.
    pub fn given_bytes(&self) -> u64 {
        self.given
    }

    /// Whether the receiver says that it has taken exactly what was sent, by either path: neither less nor more.
    pub fn has_receiver_all(&self) -> bool {
        self.theirs.load(CURSOR) == self.sent
    }

    /// Counts bytes that have just been sent by [`Sender::path`].
    pub fn count(&mut self, bytes: u64) {
        self.sent += bytes;
        if self.path == Path::Kernel {
            self.given += bytes;
        }
    }

    /// Goes on in the window, which is empty. `given` is how many bytes the kernel says that the socket was given. A receiver that waits
    /// has to be woken when the first bytes are in the window. It costs a barrier.
    ///
    /// # Errors
    /// [`Stays`]: the next byte goes through the socket, as before.
    pub fn go_up(&mut self, given: u64) -> Result<(), Stays> {
        if self.path == Path::Window {
            return Ok(());
        }
        self.stands_ready()?;
        // Bytes of an earlier stretch may still be in the window: a receiver that reads it would not find where the next stretch begins.
        if !self.has_passed_all() {
            return Err(Stays::Behind);
        }
        if given != self.given {
            return Err(Stays::OtherBytes { given, told: self.given });
        }
        self.publish(Kind::Up);
        self.path = Path::Window;
        // Of a receiver that stops and a sender that goes up at least one sees the other one. A receiver that has not seen this entry reads
        // the socket alone from then on: nothing may be in the window.
        let is_seen = self.own.barrier().map_err(|_unconfirmed| Stays::NotReady);
        is_seen.and_then(|()| self.stands_ready()).inspect_err(|_| self.go_down())
    }

    fn stands_ready(&mut self) -> Result<(), Stays> {
        let standing = self.standing().map_err(Stays::Broken)?;
        if standing & GONE != 0 {
            return Err(Stays::Gone);
        }
        if standing & READY == 0 {
            return Err(Stays::NotReady);
        }
        Ok(())
    }

    /// Whether the receiver asks for the socket: it has ended, or does not read by the ledger any more. One load.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn is_asked_down(&mut self) -> Result<bool, Broken> {
        Ok(self.standing()? & (READY | GONE) != READY)
    }

    /// Goes on through the socket. All stores to the window are ordered before this one: after non-temporal stores a fence is between them.
    /// A receiver that sleeps is woken by the bytes in the socket.
    pub fn go_down(&mut self) {
        if self.path == Path::Window {
            self.publish(Kind::Down);
            self.path = Path::Kernel;
        }
    }

    /// Whether the receiver has come to the socket and has passed all that was published: bytes that were sent by the window cannot be asked
    /// for any more.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn is_settled(&mut self) -> Result<bool, Broken> {
        self.standing()?;
        Ok(self.path == Path::Kernel && self.has_passed_all())
    }

    /// As last seen. A receiver that has lost a window passes what was published before it is answered, and has asked before it did.
    fn has_passed_all(&self) -> bool {
        self.passed == self.published && self.theirs.load(LOST_AT) == 0
    }

    /// From which byte the receiver asks to be sent the stream anew, since its window is lost. Whoever cannot do that resets the connection.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn resume_from(&mut self) -> Result<Option<u64>, Broken> {
        // First: a receiver that has passed the answer has taken its question back before.
        self.standing()?;
        if self.passed < self.answer {
            return Ok(None);
        }
        let Some(cursor) = self.theirs.load(LOST_AT).checked_sub(1) else { return Ok(None) };
        let (sent, before) = (self.sent, self.resumed);
        if cursor > sent || cursor < before {
            return Err(Broken::Cursor { cursor, sent, before });
        }
        Ok(Some(cursor))
    }

    /// Begins the stream anew at a byte, through the socket: the next byte that is sent is that one. It is the answer to one
    /// [`Sender::resume_from`]. No call that gives bytes to the socket is under way.
    pub fn resume(&mut self, from: u64) {
        self.path = Path::Kernel;
        self.sent = from;
        self.publish(Kind::Resume);
        self.answer = self.published;
        self.resumed = from;
    }

    /// As [`Sender::resume`], though nobody has asked: from a byte on that the receiver has come to, so that nothing of the window can be
    /// asked for any more. Something was sent by the window since the receiver had last passed all entries. It costs a barrier.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn begin_anew(&mut self, from: u64) -> Result<Anew, Broken> {
        let (was_in_window, sent) = (self.path == Path::Window, self.sent);
        self.resume(from);
        // Of a receiver that stops and this at least one sees the other one. One that has yet to come to the window, or to its end, does not
        // stop before that.
        let is_visible = self.own.barrier().is_ok();
        self.undecided = (!was_in_window).then_some((sent, is_visible));
        self.look_again()
    }

    /// What became of a stream whose receiver had not said what it found. Nothing is sent before it has.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn look_again(&mut self) -> Result<Anew, Broken> {
        let Some((sent, is_visible)) = self.undecided else { return Ok(Anew::Begun) };
        for _ in 0..LOOKS {
            let standing = self.standing()?;
            if standing & STOPPED != 0 {
                // It had every byte of the window, and reads those behind it in the socket.
                (self.sent, self.undecided) = (sent, None);
                return Ok(Anew::Needless);
            }
            if is_visible && standing & STOPPING == 0 {
                self.undecided = None;
                return Ok(Anew::Begun);
            }
            core::hint::spin_loop();
        }
        Ok(Anew::Unknown)
    }

    /// Whether the receiver reads no more. One load.
    pub fn has_receiver_ended(&self) -> bool {
        self.theirs.load(STANDING) & GONE != 0
    }

    /// Bytes of the stream that the receiver's program has not got: they are lost if it is gone. It may have some already of a call that
    /// has not returned, and is not counted.
    pub fn untaken_bytes(&self) -> u64 {
        self.sent.saturating_sub(self.theirs.load(CURSOR))
    }

    fn publish(&mut self, kind: Kind) {
        self.published += 1;
        Entry { kind, offset: self.sent, given: self.given }.publish(&mut self.own, self.published);
    }

    fn standing(&mut self) -> Result<u64, Broken> {
        let standing = self.theirs.load(STANDING);
        let (passed, published, before) = (standing & PASSED, self.published, self.passed);
        if passed > published || passed < before {
            return Err(Broken::Passed { passed, published, before });
        }
        self.passed = passed;
        Ok(standing)
    }
}
