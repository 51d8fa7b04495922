//! The receiver's side.

use beeline_contract_adapter::{PublishPort, ViewPort};

use crate::broken::Broken;
use crate::entry::{Entry, Kind};
use crate::path::{KernelPath, Path, Peeked, WindowLost, WindowPath};
use crate::words::{CURSOR, GONE, LOST_AT, MOST_ON_THE_WAY, READY, STANDING, STOPPED, STOPPING};

/// What a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Neither path has a byte, and the stream goes on.
    Nothing,
    /// The stream has ended, and all of it was taken.
    End,
}

/// Why a stream cannot go on: it is to be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<E> {
    /// The socket failed. What the window has may still be read, by [`Receiver::read_window`].
    Socket(E),
    /// The window is lost, and the other side has ended, with what it could send again. One that goes down before it ends says thereby which
    /// byte was the last.
    Lost,
    /// The other side broke the rules.
    Broken(Broken),
}

impl<E> From<Broken> for Refused<E> {
    fn from(broken: Broken) -> Self {
        Refused::Broken(broken)
    }
}

/// Turns of one read. A sender that keeps to the rules has three entries on the way; one that does not must not keep a program here.
const MAX_TURNS: u32 = 16;

/// Bytes that are none of the stream's are taken out of the socket in such pieces.
const AWAY_BYTES: usize = 16 << 10;
/// Pieces that one read takes out. It takes all of them: who is told of edges is not told again of what a read has left. No sender that keeps to the rules
/// has given the socket as many, and one that does not must not keep a program here.
const MAX_AWAY: u32 = (64 << 20) / AWAY_BYTES as u32;

/// Where the receiver stands in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Kernel,
    Window,
    /// Behind the last byte that was read of a window that is lost, until the sender begins anew. `is_whole`: the ledger says that no byte
    /// of the stream was behind it in the window.
    Lost {
        is_whole: bool,
    },
}

/// What happens to bytes that are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Taken,
    Left,
}

/// What one direction's receiver knows: by which path the next byte comes.
#[derive(Debug)]
pub struct Receiver<P, V> {
    own: P,
    theirs: V,
    at: At,
    /// Entries passed.
    passed: u64,
    /// Bytes of the stream that were taken, and those that were taken out of the socket.
    taken: u64,
    received: u64,
    /// Bytes that the socket has next and that were taken already: a sender that begins anew does not know how far the receiver is.
    again: u64,
    /// What it says of itself besides what it has passed.
    says: u64,
}

impl<P: PublishPort, V: ViewPort> Receiver<P, V> {
    /// A stream of which the socket has carried all bytes so far; the kernel says that `received` of them were taken from it. From here on
    /// nothing else reads the socket. `own` has [`crate::RECEIVER_WORDS`] words, `theirs` the sender's; all of them are 0 at first.
    pub fn new(mut own: P, theirs: V, received: u64) -> Self {
        own.publish(CURSOR, received);
        own.publish(STANDING, READY);
        Receiver { own, theirs, at: At::Kernel, passed: 0, taken: received, received, again: 0, says: READY }
    }

    /// By which path the next byte comes, as far as is known. Where it is [`Path::Window`] the socket is looked at only for its end.
    pub fn path(&self) -> Path {
        if self.at == At::Window { Path::Window } else { Path::Kernel }
    }

    /// Whether bytes of the window are lost, and the sender has not begun anew.
    pub fn is_lost(&self) -> bool {
        matches!(self.at, At::Lost { .. })
    }

    /// Bytes of the stream that were taken.
    pub fn taken_bytes(&self) -> u64 {
        self.taken
    }

    /// Moves bytes of the stream that have come to `out`, which is not empty. It does not wait; on the window's path with bytes in it it
    /// calls nothing and loads no word of the ledger.
    ///
    /// # Errors
    /// [`Refused`]: the stream is to be reset.
    pub fn receive<K: KernelPath, W: WindowPath>(
        &mut self,
        out: &mut [u8],
        kernel: &mut K,
        window: &mut W,
    ) -> Result<Received, Refused<K::Error>> {
        self.find(out, kernel, window, Then::Taken)
    }

    /// Copies bytes of the stream that have come to `out`, which is not empty, and leaves them to be received (`MSG_PEEK`): those of one
    /// path, so it may be fewer than have come. It passes entries, as [`Receiver::receive`] does.
    ///
    /// # Errors
    /// As [`Receiver::receive`].
    pub fn peek<K: KernelPath, W: WindowPath>(
        &mut self,
        out: &mut [u8],
        kernel: &mut K,
        window: &mut W,
    ) -> Result<Received, Refused<K::Error>> {
        self.find(out, kernel, window, Then::Left)
    }

    fn find<K: KernelPath, W: WindowPath>(
        &mut self,
        out: &mut [u8],
        kernel: &mut K,
        window: &mut W,
        then: Then,
    ) -> Result<Received, Refused<K::Error>> {
        if self.at == At::Window
            && let Some(bytes) = self.read(out, window, then)
        {
            return Ok(Received::Bytes(bytes));
        }
        // Each turn passes an entry, or takes bytes that are none of the stream's, or ends.
        let (mut turns, mut away) = (0, 0);
        while turns < MAX_TURNS && away < MAX_AWAY {
            let received = self.received;
            let turn = match self.at {
                At::Kernel => self.receive_from_socket(out, kernel, then)?,
                At::Window => self.receive_behind_window(out, kernel, window, then)?,
                At::Lost { is_whole } => self.find_resumption(kernel, is_whole)?,
            };
            if let Some(received) = turn {
                return Ok(received);
            }
            if self.received == received {
                turns += 1;
            } else {
                away += 1;
            }
        }
        Ok(Received::Nothing)
    }

    /// Moves bytes that the window has, and no others: for who looks again and again, and behind a socket that failed. It calls nothing.
    pub fn read_window(&mut self, out: &mut [u8], window: &mut impl WindowPath) -> Option<usize> {
        if self.at == At::Window { self.read(out, window, Then::Taken) } else { None }
    }

    /// As [`Receiver::read_window`], and leaves the bytes to be received.
    pub fn peek_window(&mut self, out: &mut [u8], window: &mut impl WindowPath) -> Option<usize> {
        if self.at == At::Window { self.read(out, window, Then::Left) } else { None }
    }

    /// Goes on to the window if every byte of the socket that comes before it was taken: for who looks whether the window has bytes and
    /// asks no socket. One load, and none on the window's path.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn pass_to_window(&mut self) -> Result<(), Broken> {
        if self.at == At::Kernel
            && self.again == 0
            && let Some(Entry { kind: Kind::Up, offset, .. }) = self.next()?
            && offset == self.taken
        {
            self.pass(At::Window);
        }
        Ok(())
    }

    /// Goes on behind the window if the sender says that it ended, or finds that bytes are missing in it: for who looks whether there is
    /// something and asks no socket. One load where it has not ended.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn pass_window(&mut self, window: &mut impl WindowPath) -> Result<(), Broken> {
        if self.at == At::Window
            && let Some(entry) = self.next()?
            && self.read(&mut [0], window, Then::Left).is_none()
            && self.at == At::Window
        {
            self.leave_window(entry)?;
        }
        Ok(())
    }

    /// Leaves bytes of the socket that come anew where they are: for who wants to have all that it has not taken in one piece. Those before
    /// them are taken away from there on, and come with them; where they come before the window that is sent anew, they stay, and all is in order.
    /// It costs a load for each entry that is on the way, and asks no socket.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn skip_to_anew(&mut self) -> Result<(), Broken> {
        if self.at != At::Kernel || self.again > 0 {
            return Ok(());
        }
        match self.next()? {
            Some(Entry { kind: Kind::Resume, .. }) => {
                // Answered before it is asked.
                self.at = At::Lost { is_whole: false };
            }
            Some(Entry { kind: Kind::Up, offset, .. }) => {
                let before = offset.checked_sub(self.taken);
                if let Some((index, anew)) = self.resumption()?
                    && anew.offset == offset
                    && before == anew.given.checked_sub(self.received)
                {
                    self.passed = index;
                    self.say(self.says);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the ledger has an entry that was not come to by which the sender begins anew. A few loads.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn comes_anew(&self) -> Result<bool, Broken> {
        Ok(self.resumption()?.is_some())
    }

    /// The next entry of that kind: behind it there is none, and it is among those that are on the way.
    fn resumption(&self) -> Result<Option<(u64, Entry)>, Broken> {
        for index in (self.passed + 1..).take(MOST_ON_THE_WAY) {
            match Entry::load(&self.theirs, index)? {
                Some(entry) if entry.kind == Kind::Resume => return Ok(Some((index, entry))),
                Some(_) => {}
                None => break,
            }
        }
        Ok(None)
    }

    /// Whether the ledger has an entry that was not come to. One load.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn has_entry(&self) -> Result<bool, Broken> {
        Ok(self.next()?.is_some())
    }

    /// Asks the sender to go on through the socket and never to leave it again. Whether it will send nothing by the window from here on is
    /// known when this is true, and then others may read the socket; until then [`Receiver::receive`] goes on, and this is asked again.
    ///
    /// # Errors
    /// [`Broken`]: the other side broke the rules.
    pub fn stop(&mut self) -> Result<bool, Broken> {
        if self.says == STOPPED {
            return Ok(true);
        }
        if self.says == READY {
            self.say(0);
        }
        if self.at != At::Kernel || self.again > 0 || self.next()?.is_some() {
            return Ok(false);
        }
        self.say(STOPPING);
        // Of this and a sender that goes up, or that begins anew, at least one sees the other one. One that sees this waits for what was found.
        let is_last = self.own.barrier().is_ok() && self.next()?.is_none();
        self.say(if is_last { STOPPED } else { 0 });
        Ok(is_last)
    }

    /// Says that nothing is read any more.
    pub fn end(&mut self) {
        self.say(GONE);
    }

    /// By the socket: peek, then load the ledger, then take. Whatever entry is published before a byte is given to the socket is found by a
    /// load behind the peek that shows the byte; in any other order bytes change places (record 0068).
    fn receive_from_socket<K: KernelPath>(
        &mut self,
        out: &mut [u8],
        kernel: &mut K,
        then: Then,
    ) -> Result<Option<Received>, Refused<K::Error>> {
        if self.again > 0 {
            return self.take_again(kernel);
        }
        let peeked = kernel.peek(out).map_err(Refused::Socket)?;
        let next = self.next()?;
        let before = match next {
            None => u64::MAX,
            Some(Entry { kind: Kind::Up, offset, .. }) => {
                let (index, taken) = (self.passed + 1, self.taken);
                offset.checked_sub(taken).ok_or(Broken::Offset { index, offset, taken })?
            }
            Some(Entry { kind: Kind::Resume, given, .. }) => self.bytes_before(given)?,
            Some(Entry { kind: Kind::Down, .. }) => return Err(self.out_of_order().into()),
        };
        match next {
            Some(Entry { kind: Kind::Resume, offset, .. }) if before == 0 => {
                self.begin_anew(offset)?;
                return Ok(None);
            }
            _ if before == 0 => {
                self.pass(At::Window);
                return Ok(None);
            }
            _ => {}
        }
        match peeked {
            Peeked::Bytes(bytes) => {
                let bytes = bytes.min(usize::try_from(before).unwrap_or(usize::MAX));
                if then == Then::Taken {
                    kernel.take(bytes).map_err(Refused::Socket)?;
                    self.received += bytes as u64;
                    self.move_on(bytes);
                }
                Ok(Some(Received::Bytes(bytes)))
            }
            Peeked::Nothing => Ok(Some(Received::Nothing)),
            // It ended before the byte at which it said that it would go on.
            Peeked::End if before != u64::MAX => Err(self.unknown_bytes().into()),
            Peeked::End => Ok(Some(Received::End)),
        }
    }

    /// By the window, which had nothing: it has ended here, or is behind, or the sender is gone.
    fn receive_behind_window<K: KernelPath, W: WindowPath>(
        &mut self,
        out: &mut [u8],
        kernel: &mut K,
        window: &mut W,
        then: Then,
    ) -> Result<Option<Received>, Refused<K::Error>> {
        let mut peeked = Peeked::Nothing;
        let mut next = self.next()?;
        if next.is_none() {
            // Its end is the kernel's word alone; and it has nothing else to say while no entry is there, which is looked for behind it.
            peeked = kernel.peek(out).map_err(Refused::Socket)?;
            next = self.next()?;
        }
        // Bytes of the window are there before an entry behind them is, and before the end: what was not there may have come since.
        if let Some(bytes) = self.read(out, window, then) {
            return Ok(Some(Received::Bytes(bytes)));
        }
        match (next, peeked) {
            _ if self.at != At::Window => Ok(None),
            (Some(entry), _) => {
                self.leave_window(entry)?;
                Ok(None)
            }
            (None, Peeked::Nothing) => Ok(Some(Received::Nothing)),
            (None, Peeked::End) => Ok(Some(Received::End)),
            (None, Peeked::Bytes(_)) => Err(self.unknown_bytes().into()),
        }
    }

    /// Behind a window in which nothing more is: by an entry that was published before it was looked at.
    fn leave_window(&mut self, entry: Entry) -> Result<(), Broken> {
        let (index, taken) = (self.passed + 1, self.taken);
        match entry {
            Entry { kind: Kind::Down, offset, .. } => match offset.checked_sub(taken) {
                None => return Err(Broken::Offset { index, offset, taken }),
                Some(0) => self.pass(At::Kernel),
                // The window ends where it ends, and bytes are missing in it.
                Some(_) => self.lose(),
            },
            // Nothing was given to the socket while the stream was in the window.
            Entry { kind: Kind::Resume, offset, given } if given == self.received => {
                self.begin_anew(offset)?
            }
            Entry { .. } => return Err(self.out_of_order()),
        }
        Ok(())
    }

    /// Goes on in the socket, whose next bytes are the stream's from `offset` on, whatever the window has.
    fn begin_anew(&mut self, offset: u64) -> Result<(), Broken> {
        let (index, taken) = (self.passed + 1, self.taken);
        self.again = taken.checked_sub(offset).ok_or(Broken::Offset { index, offset, taken })?;
        // Taken back before the entry is passed: a question is answered once.
        self.own.publish(LOST_AT, 0);
        self.pass(At::Kernel);
        Ok(())
    }

    /// Takes away bytes that were taken already.
    fn take_again<K: KernelPath>(&mut self, kernel: &mut K) -> Result<Option<Received>, Refused<K::Error>> {
        match kernel.peek(&mut [0; AWAY_BYTES]).map_err(Refused::Socket)? {
            Peeked::Bytes(bytes) => {
                let bytes = bytes.min(usize::try_from(self.again).unwrap_or(usize::MAX));
                self.take_away(bytes, kernel)?;
                self.again -= bytes as u64;
                Ok(None)
            }
            Peeked::Nothing => Ok(Some(Received::Nothing)),
            Peeked::End => Err(self.unknown_bytes().into()),
        }
    }

    /// Takes bytes out of the socket that are nobody's.
    fn take_away<K: KernelPath>(&mut self, bytes: usize, kernel: &mut K) -> Result<(), Refused<K::Error>> {
        kernel.take(bytes).map_err(Refused::Socket)?;
        self.received += bytes as u64;
        Ok(())
    }

    /// Bytes of the socket that come before one that was given behind so many.
    fn bytes_before(&self, given: u64) -> Result<u64, Broken> {
        given.checked_sub(self.received).ok_or(self.out_of_order())
    }

    /// Behind a window that is lost: bytes in the socket are taken away until those come that the sender sends again.
    fn find_resumption<K: KernelPath>(
        &mut self,
        kernel: &mut K,
        is_whole: bool,
    ) -> Result<Option<Received>, Refused<K::Error>> {
        // Peeked at before the look at the ledger: if it has no answer, all of them were given before it.
        let peeked = kernel.peek(&mut [0; AWAY_BYTES]).map_err(Refused::Socket)?;
        let most = match self.next()? {
            // Published before the sender knew.
            Some(Entry { kind: Kind::Down, offset, .. }) => {
                self.pass(At::Lost { is_whole: offset == self.taken });
                return Ok(None);
            }
            Some(Entry { kind: Kind::Resume, offset, given }) => {
                let most = self.bytes_before(given)?;
                if most == 0 {
                    self.begin_anew(offset)?;
                    return Ok(None);
                }
                most
            }
            Some(Entry { kind: Kind::Up, .. }) => return Err(self.out_of_order().into()),
            None => u64::MAX,
        };
        match peeked {
            Peeked::Bytes(bytes) => {
                self.take_away(bytes.min(usize::try_from(most).unwrap_or(usize::MAX)), kernel)?;
                Ok(None)
            }
            Peeked::Nothing => Ok(Some(Received::Nothing)),
            // It has been asked for nothing but an answer.
            Peeked::End if is_whole => Ok(Some(Received::End)),
            Peeked::End => Err(Refused::Lost),
        }
    }

    /// Bytes that the window has; of one that is lost the last ones are behind.
    fn read(&mut self, out: &mut [u8], window: &mut impl WindowPath, then: Then) -> Option<usize> {
        let found = match then {
            Then::Taken => window.read(self.taken, out),
            Then::Left => window.peek(self.taken, out),
        };
        match found {
            Ok(0) => None,
            Ok(bytes) => {
                if then == Then::Taken {
                    self.move_on(bytes);
                }
                Some(bytes)
            }
            Err(WindowLost) => {
                self.lose();
                None
            }
        }
    }

    fn move_on(&mut self, bytes: usize) {
        self.taken += bytes as u64;
        self.own.publish(CURSOR, self.taken);
    }

    fn lose(&mut self) {
        self.at = At::Lost { is_whole: false };
        self.own.publish(LOST_AT, self.taken + 1);
    }

    fn next(&self) -> Result<Option<Entry>, Broken> {
        Entry::load(&self.theirs, self.passed + 1)
    }

    fn pass(&mut self, to: At) {
        self.at = to;
        self.passed += 1;
        self.say(self.says);
    }

    fn say(&mut self, says: u64) {
        self.says = says;
        self.own.publish(STANDING, says | self.passed);
    }

    fn out_of_order(&self) -> Broken {
        Broken::Order { index: self.passed + 1 }
    }

    fn unknown_bytes(&self) -> Broken {
        Broken::Socket { taken: self.taken }
    }
}
