//! Letting in who shares a connection with this process, though no list names its user.

use std::os::fd::AsFd;
use std::time::Duration;

use beeline_domain::{AdmitError, Admitted};

use crate::ProofError;

/// The user who has the other end of a connection of TCP in this network namespace, by the kernel's word. No byte is sent for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherEnd(beeline_domain::OtherEnd);

impl OtherEnd {
    /// Asks the kernel who has the other end of `connection`. Neither reads nor writes nor changes the connection, and does not keep
    /// the descriptor. Some system calls.
    ///
    /// The user is the one who made or accepted the other socket. A descriptor that was passed on to another user, and a process
    /// that changed its user since, are not seen.
    ///
    /// # Errors
    /// It is no connection of TCP, or the kernel does not say for certain.
    pub fn of_tcp(connection: impl AsFd) -> Result<Self, ProofError> {
        Ok(OtherEnd(beeline_domain::OtherEnd::of_tcp(connection)?))
    }

    /// The user, by the uid that this process's user namespace has for it: whose domain to open, and whom to compare with
    /// [`crate::Subscriber::uid`].
    pub fn uid(&self) -> u32 {
        self.0.uid()
    }

    /// The number of the other socket's inode, as its process sees it in `/proc/self/fd`.
    pub fn socket_inode(&self) -> u64 {
        self.0.socket_inode()
    }
}

/// What this process was told in a connection by the process at its other end, which has let it in
/// ([`Admissions::admit_other_side`]). Connects once.
///
/// ```no_run
/// # fn main() -> Result<(), beeline::Error> {
/// # use std::time::Duration;
/// # let connection = std::net::TcpStream::connect("10.0.0.1:7777").unwrap();
/// use beeline::{Domain, NETWORK_NAMESPACE, SenderOptions, Token};
/// let token = Token::exchange(&connection, Duration::from_secs(1))?;
/// let domain = Domain::open_foreign(NETWORK_NAMESPACE, "web", token.uid())?;
/// let sender = domain.sender_proving("requests", token, SenderOptions::new())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Token(pub(crate) beeline_domain::Token);

/// A token that was exchanged by the layer below, for programs that use both.
impl From<beeline_domain::Token> for Token {
    fn from(token: beeline_domain::Token) -> Self {
        Token(token)
    }
}

impl Token {
    /// Exchanges a token in a connection whose other end calls [`Admissions::admit_other_side`]: a stream of any kind, in which
    /// neither program sends anything else meanwhile. Sends 56 bytes and reads 56, never more, also from a socket that does not
    /// block; if what comes is no token, reads nothing. Waits for at most `timeout`.
    ///
    /// Whoever can read the connection while this runs can use the token instead: on a network, anybody on the way.
    ///
    /// # Errors
    /// There is none; a part may have been sent by then.
    pub fn exchange(connection: impl AsFd, timeout: Duration) -> Result<Self, ProofError> {
        Ok(Token(beeline_domain::Token::exchange(connection, timeout)?))
    }

    /// The user at the other end by its own word, which connecting compares with the kernel's: whose domain to open.
    pub fn uid(&self) -> u32 {
        self.0.uid()
    }
}

/// Whom offers let in besides the users on their lists: `admissions` of [`crate::ReceiverOptions`], [`crate::ArenaOptions`],
/// [`crate::NotifierOptions`] and `ServerOptions`. Clones are the same; nobody at first. A program adds proofs while the offers are there.
///
/// ```no_run
/// # fn main() -> Result<(), beeline::Error> {
/// # use std::time::Duration;
/// # let connection = std::net::TcpListener::bind("10.0.0.1:7777").unwrap().accept().unwrap().0;
/// use beeline::{Admissions, Domain, NETWORK_NAMESPACE, ReceiverOptions};
/// let admissions = Admissions::new();
/// let domain = Domain::open_in(NETWORK_NAMESPACE, "web")?;
/// let mut receiver = domain.receiver_with("requests", ReceiverOptions::new().admissions(&admissions))?;
/// let admitted = admissions.admit_other_side(&connection, Duration::from_secs(1))?;
/// let request = receiver.recv()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admissions(pub(crate) beeline_domain::Admissions);

/// Admissions that were made by the layer below, for programs that use both: they are the same ones.
impl From<beeline_domain::Admissions> for Admissions {
    fn from(admissions: beeline_domain::Admissions) -> Self {
        Admissions(admissions)
    }
}

impl Admissions {
    /// Nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in processes of the user who has the other end of a connection, until what is returned is dropped. They come when they
    /// want; one that comes before this call is refused.
    ///
    /// # Errors
    /// This process was forked from the one that made the admissions.
    pub fn admit(&self, other_end: OtherEnd) -> Result<Admitted, ProofError> {
        self.0.admit(other_end.0).map_err(|error| AdmitError::from(error).into())
    }

    /// Lets in the process at the other end of a connection, once, until what is returned is dropped: exchanges a token there with
    /// [`Token::exchange`], under the same terms. The other side has its token only when it is let in, and may connect at once.
    ///
    /// # Errors
    /// There is no token, and nobody is let in; or this process was forked from the one that made the admissions.
    pub fn admit_other_side(&self, connection: impl AsFd, timeout: Duration) -> Result<Admitted, ProofError> {
        Ok(self.0.admit_other_side(connection, timeout)?)
    }
}
