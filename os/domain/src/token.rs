//! A token that two processes exchange in a connection that they share, for connections whose owner allows bytes of ours in them.
//!
//! Each side sends one preamble and reads one: a secret of its own, and who it is by the kernel's numbers. At the rendezvous the
//! client shows the owner's secret, and the owner answers with the client's; so each knows that the other had an end of the
//! connection. Before a secret is shown, the kernel's word on who listens or connects is compared with what the preamble
//! said: whoever stands between two processes at the rendezvous is neither of them. A secret is good once.

use std::fmt;
use std::hint::black_box;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType, sockopt};

use crate::evidence::{self, Evidence};
use crate::folder::own_uid;
use crate::uid;

const MAGIC: [u8; 8] = *b"BEELINE\x01";
pub(crate) const SECRET_BYTES: usize = 32;
/// Bytes that each side sends, and reads: magic number, secret, number of the process, uid, and zeros.
const PREAMBLE_BYTES: usize = 56;
/// Between two looks for the rest of the magic number: a poll would return at once for the part that is there.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// A secret of one side. Never printed, and compared in a time that does not depend on where two differ.
#[derive(Clone, Copy)]
pub(crate) struct Secret([u8; SECRET_BYTES]);

impl Secret {
    pub(crate) fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        let Some(shown) = shown.first_chunk::<SECRET_BYTES>().filter(|_| shown.len() == SECRET_BYTES) else {
            return false;
        };
        let differing = self.0.iter().zip(shown).fold(0, |differing, (a, b)| black_box(differing | (a ^ b)));
        differing == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

/// What the kernel says of the process at the other end of a rendezvous: asked once, with however many tokens it is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comer {
    /// `None` where the kernel does not number processes.
    process: Option<u64>,
    /// `None` where the uid stands for many.
    uid: Option<u32>,
}

impl Comer {
    pub(crate) fn of(evidence: &Evidence) -> Self {
        let uid = Some(evidence.uid()).filter(|uid| uid::names_one_user(*uid));
        Comer { process: evidence.inode(), uid }
    }
}

/// Who a side says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The inode of its pidfd, which no other process ever has; 0 before Linux 6.9.
    process: u64,
    uid: u32,
}

impl Identity {
    fn own() -> Self {
        Identity { process: evidence::own_inode().unwrap_or(0), uid: own_uid() }
    }

    /// Whether the kernel says so of the process at the other end of a rendezvous. Where it does not number processes, the
    /// user decides.
    pub(crate) fn is(self, comer: Comer) -> bool {
        match comer.process {
            Some(process) if self.process != 0 => process == self.process,
            _ => comer.uid == Some(self.uid),
        }
    }
}

/// What this process and the one at the other end of a connection told each other in it. It is good once: for whoever connects
/// ([`crate::Domain::connect_proving`]), or for whoever lets the other in ([`crate::Admissions::admit_holder`]).
#[derive(Debug)]
pub struct Token {
    /// What the other side must show.
    pub(crate) own: Secret,
    /// What this side shows.
    pub(crate) theirs: Secret,
    pub(crate) identity: Identity,
}

/// Why two sides of a connection have no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    #[error("the descriptor is no stream of a socket")]
    NotStream,
    /// What came begins otherwise than a preamble, and all of it is still there to be read.
    #[error("the other side sends something else than a token; nothing of it was read")]
    NotOurs,
    /// The preamble that came is this side's own, or has values that none has.
    #[error("the other side sent a token that is not its own")]
    Malformed,
    #[error("the other side closed the connection before it had sent its token")]
    Closed,
    #[error("the other side did not send its token in {} ms", waited.as_millis())]
    TimedOut { waited: Duration },
    /// The kernel refused something.
    #[error("cannot {what}: {errno}")]
    System { what: &'static str, errno: Errno },
}

impl Token {
    /// Exchanges a token in a connection; the process at the other end calls this too. Sends 56 bytes and reads 56, never
    /// more, also from a socket that does not block; if what comes is no preamble, reads nothing. Waits for at most `timeout`.
    ///
    /// Whoever can read the connection while this runs can use the token instead of the other side: on a network, anybody on the way.
    ///
    /// # Errors
    /// There is none: [`ExchangeError`] says why. Part of a preamble may have been sent by then.
    pub fn exchange(connection: impl AsFd, timeout: Duration) -> Result<Token, ExchangeError> {
        let (wait, own) = Wait::begin(connection.as_fd(), timeout)?;
        wait.send(&encode(&own, Identity::own()))?;
        wait.token(own)
    }

    /// As [`Token::exchange`], but sends this side's part only when the other's is there and `keep` has what came of both: once the
    /// other side has the token, so has `keep`.
    pub(crate) fn answer<T, E: From<ExchangeError>>(
        connection: BorrowedFd<'_>,
        timeout: Duration,
        keep: impl FnOnce(Token) -> Result<T, E>,
    ) -> Result<T, E> {
        let (wait, own) = Wait::begin(connection, timeout)?;
        let kept = keep(wait.token(own)?)?;
        wait.send(&encode(&own, Identity::own()))?;
        Ok(kept)
    }

    /// The user as whom the other side runs, by the uid that it has there: whose domain to open. It is a word of the other side, and
    /// is compared with the kernel's at the rendezvous.
    pub fn uid(&self) -> u32 {
        self.identity.uid
    }
}

fn encode(secret: &Secret, identity: Identity) -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..40].copy_from_slice(secret.bytes());
    bytes[40..48].copy_from_slice(&identity.process.to_le_bytes());
    bytes[48..52].copy_from_slice(&identity.uid.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; PREAMBLE_BYTES]) -> Option<(Secret, Identity)> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (secret, rest) = rest.split_first_chunk::<SECRET_BYTES>()?;
    let (process, rest) = rest.split_first_chunk::<8>()?;
    let (uid, zeros) = rest.split_first_chunk::<4>()?;
    let identity = Identity { process: u64::from_le_bytes(*process), uid: u32::from_le_bytes(*uid) };
    (*magic == MAGIC && *zeros == [0; 4]).then_some((Secret(*secret), identity))
}

/// Reads a preamble, for [`crate::fuzzing`].
#[cfg(fuzzing)]
pub(crate) fn is_preamble(bytes: &[u8]) -> bool {
    bytes.try_into().is_ok_and(|bytes| decode(bytes).is_some())
}

/// One exchange, whatever the socket's own flags say about waiting.
struct Wait<'a> {
    stream: BorrowedFd<'a>,
    timeout: Duration,
    /// `None` where the clock does not go so far.
    deadline: Option<Instant>,
}

impl<'a> Wait<'a> {
    /// Draws this side's secret.
    fn begin(stream: BorrowedFd<'a>, timeout: Duration) -> Result<(Self, Secret), ExchangeError> {
        if sockopt::socket_type(stream) != Ok(SocketType::STREAM) {
            return Err(ExchangeError::NotStream);
        }
        let mut own = Secret([0; SECRET_BYTES]);
        getrandom::fill(&mut own.0)
            .map_err(|_| ExchangeError::System { what: "get a random number", errno: Errno::NOSYS })?;
        Ok((Wait { stream, timeout, deadline: Instant::now().checked_add(timeout) }, own))
    }

    /// What the other side sends, with this side's secret.
    fn token(&self, own: Secret) -> Result<Token, ExchangeError> {
        self.for_magic()?;
        let (theirs, identity) = decode(&self.read()?).ok_or(ExchangeError::Malformed)?;
        // An echo is no other side.
        if own.is(theirs.bytes()) {
            return Err(ExchangeError::Malformed);
        }
        Ok(Token { own, theirs, identity })
    }

    fn left(&self) -> Result<Duration, ExchangeError> {
        let left = self
            .deadline
            .map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(Instant::now()));
        if left.is_zero() { Err(ExchangeError::TimedOut { waited: self.timeout }) } else { Ok(left) }
    }

    fn until(&self, ready: PollFlags) -> Result<(), ExchangeError> {
        let left = Timespec::try_from(self.left()?.min(Duration::from_secs(3600))).expect("an hour fits");
        // An error is a signal; what it was is found by the next attempt.
        let _ = rustix::event::poll(&mut [PollFd::from_borrowed_fd(self.stream, ready)], Some(&left));
        Ok(())
    }

    fn send(&self, mut bytes: &[u8]) -> Result<(), ExchangeError> {
        while !bytes.is_empty() {
            match rustix::net::send(self.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => _ = self.left()?,
                Err(Errno::AGAIN) => self.until(PollFlags::OUT)?,
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(ExchangeError::Closed),
                Err(errno) => return Err(ExchangeError::System { what: "send a token", errno }),
            }
        }
        Ok(())
    }

    /// The bytes that are there now, of those that are wanted.
    fn receive(&self, place: &mut [u8], flags: RecvFlags) -> Result<usize, ExchangeError> {
        loop {
            match rustix::net::recv(self.stream, &mut *place, flags | RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => return Err(ExchangeError::Closed),
                Ok((_, bytes)) => return Ok(bytes.min(place.len())),
                Err(Errno::INTR) => _ = self.left()?,
                Err(Errno::AGAIN) => self.until(PollFlags::IN)?,
                Err(errno) => return Err(ExchangeError::System { what: "receive a token", errno }),
            }
        }
    }

    /// Waits until a preamble begins. Reads nothing.
    fn for_magic(&self) -> Result<(), ExchangeError> {
        let mut magic = [0; MAGIC.len()];
        loop {
            let bytes = self.receive(&mut magic, RecvFlags::PEEK)?;
            if magic[..bytes] != MAGIC[..bytes] {
                return Err(ExchangeError::NotOurs);
            }
            if bytes == MAGIC.len() {
                return Ok(());
            }
            std::thread::sleep(self.left()?.min(LOOK_AGAIN));
        }
    }

    fn read(&self) -> Result<[u8; PREAMBLE_BYTES], ExchangeError> {
        let (mut bytes, mut read) = ([0; PREAMBLE_BYTES], 0);
        while read < PREAMBLE_BYTES {
            read += self.receive(&mut bytes[read..], RecvFlags::empty())?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    use super::*;

    const LONG: Duration = Duration::from_secs(100);
    const SHORT: Duration = Duration::from_millis(30);

    fn good() -> [u8; PREAMBLE_BYTES] {
        encode(&Secret([7; SECRET_BYTES]), Identity { process: 5, uid: 6 })
    }

    #[test]
    fn answer_is_sent_only_when_the_token_is_kept_and_never_when_it_is_not() {
        for is_kept in [false, true] {
            let (a, mut b) = UnixStream::pair().unwrap();
            b.write_all(&good()).unwrap();
            b.set_nonblocking(true).unwrap();
            let mut bytes = [0; PREAMBLE_BYTES];
            let answered = Token::answer(a.as_fd(), LONG, |token| {
                assert!(token.theirs.is(&[7; SECRET_BYTES]));
                assert_eq!((&b).read(&mut bytes).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
                if is_kept { Ok(()) } else { Err(ExchangeError::Malformed) }
            });
            assert_eq!((answered.is_ok(), (&b).read(&mut bytes).is_ok()), (is_kept, is_kept));
        }
    }

    #[test]
    fn both_sides_get_what_the_other_drew_and_the_bytes_behind_it_stay() {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let (at_a, at_b) = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let token = Token::exchange(&b, LONG).unwrap();
                b.write_all(b"application").unwrap();
                token
            });
            (Token::exchange(&a, LONG).unwrap(), other.join().unwrap())
        });
        assert!(at_a.own.is(at_b.theirs.bytes()) && at_b.own.is(at_a.theirs.bytes()));
        assert!(!at_a.own.is(at_b.own.bytes()) && !at_a.own.is(&at_a.own.bytes()[..31]));
        assert_eq!((at_a.identity, at_a.uid()), (Identity::own(), own_uid()));
        b.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        a.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"application");
        assert!(
            !format!("{at_a:?}").contains("theirs: Secret([") && format!("{at_a:?}").contains("Secret(..)")
        );
    }

    #[test]
    fn preamble_in_single_bytes_to_a_socket_that_does_not_block_is_read_whole() {
        let (a, mut b) = UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| good().iter().for_each(|byte| b.write_all(&[*byte]).unwrap()));
            let token = Token::exchange(&a, LONG).unwrap();
            assert!(Secret([7; SECRET_BYTES]).is(token.theirs.bytes()));
        });
    }

    #[test]
    fn bytes_that_came_with_a_preamble_are_left_to_the_program() {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        b.write_all(&[&good()[..], b"application"].concat()).unwrap();
        Token::exchange(&a, LONG).unwrap();
        b.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        a.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"application");
    }

    #[test]
    fn what_is_no_preamble_is_left_to_the_program() {
        for sent in [&b"GET / HTTP/1.1"[..], b"BEELINF", b"x"] {
            let (mut a, mut b) = UnixStream::pair().unwrap();
            b.write_all(sent).unwrap();
            assert_eq!(Token::exchange(&a, LONG).err(), Some(ExchangeError::NotOurs));
            // So that the read below ends where something is missing.
            b.shutdown(Shutdown::Write).unwrap();
            let mut read = Vec::new();
            a.read_to_end(&mut read).unwrap();
            assert_eq!(read, sent);
        }
    }

    #[test]
    fn silence_a_part_and_an_end_are_errors_in_bounded_time() {
        for bytes in [0, 4, 8, 55] {
            let (a, mut b) = UnixStream::pair().unwrap();
            b.write_all(&good()[..bytes]).unwrap();
            let late = Token::exchange(&a, SHORT).err();
            assert_eq!(late, Some(ExchangeError::TimedOut { waited: SHORT }), "{bytes} bytes");
            let (a, mut b) = UnixStream::pair().unwrap();
            b.write_all(&good()[..bytes]).unwrap();
            drop(b);
            assert_eq!(Token::exchange(&a, LONG).err(), Some(ExchangeError::Closed), "{bytes} bytes");
        }
        assert_eq!(
            Token::exchange(std::fs::File::open("/dev/null").unwrap(), LONG).err(),
            Some(ExchangeError::NotStream)
        );
    }

    #[test]
    fn number_of_the_process_decides_and_without_one_a_uid_that_names_one_user() {
        let (number, uid) = (Some(5), Some(6));
        let named = Identity { process: 5, uid: 6 };
        let unnamed = Identity { process: 0, uid: 6 };
        assert!(named.is(Comer { process: number, uid: None }));
        assert!(!named.is(Comer { process: Some(4), uid }), "another process of the user");
        assert!(named.is(Comer { process: None, uid }) && unnamed.is(Comer { process: number, uid }));
        for identity in [named, unnamed] {
            assert!(!identity.is(Comer { process: None, uid: Some(7) }));
            assert!(!identity.is(Comer { process: None, uid: None }), "a uid that stands for many");
        }
        assert!(!unnamed.is(Comer { process: Some(0), uid: None }), "no process has the number 0");
    }

    #[test]
    fn echo_and_values_that_no_preamble_has_are_refused() {
        let (a, mut b) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut own = [0; PREAMBLE_BYTES];
                b.read_exact(&mut own).unwrap();
                b.write_all(&own).unwrap();
            });
            assert_eq!(Token::exchange(&a, LONG).err(), Some(ExchangeError::Malformed));
        });
        let mut spoiled = good();
        spoiled[55] = 1;
        let (a, mut b) = UnixStream::pair().unwrap();
        b.write_all(&spoiled).unwrap();
        assert_eq!(Token::exchange(&a, LONG).err(), Some(ExchangeError::Malformed));
    }
}
