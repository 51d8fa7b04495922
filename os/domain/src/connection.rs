//! The client's end of a connection to an offer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::channel::{Channel, End};
use crate::error::{ConnectError, MisuseError};
use crate::evidence::{Credentials, Evidence, EvidenceError, credentials};
use crate::links::{Link, Role};
use crate::mailbox::{Mail, Mailbox};
use crate::name::Name;
use crate::notify::{self, Notified, NotifyError};
use crate::opening::Opening;
use crate::protocol::Departure;
use crate::shared::Shared;
use crate::token::{Comer, Token};
use crate::wire::{Header, Kind, MAX_FDS, MAX_NOTIFICATION_BYTES, MAX_PAYLOAD_BYTES};
use crate::{Peer, Reply};

/// How long a call waits for its answer if nothing else is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a full backlog is tried again: a unix socket cannot be polled for room in it.
const BACKLOG_RETRY: Duration = Duration::from_millis(1);
/// How often who connects asks whether the answer is still wanted.
const WANTED_AGAIN: Duration = Duration::from_millis(20);

/// Whether whoever connects still wants to.
pub(crate) type IsWanted<'a> = &'a dyn Fn() -> bool;

/// A connection to the owner of an offer. Dropping it closes it in order.
#[derive(Debug)]
pub struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) channel: Arc<Channel>,
    pub(crate) mailbox: Arc<Mailbox>,
    peer: Peer,
    path: PathBuf,
    /// Serial of the last request; locked for a whole call, so that one is outstanding at a time.
    serial: Mutex<u32>,
}

/// The owner of an offer as errors name it: its socket and, once known, its process.
struct OwnerName {
    path: PathBuf,
    pid: u32,
}

impl OwnerName {
    fn failed(&self, what: &'static str, errno: Errno) -> ConnectError {
        ConnectError::System { what, path: self.path.clone(), errno }
    }

    fn unwatched(&self, error: EvidenceError) -> ConnectError {
        let path = self.path.clone();
        match error {
            EvidenceError::Gone { pid } => ConnectError::OwnerDied { path, pid: Some(pid) },
            EvidenceError::Invisible => ConnectError::Invisible { path },
            EvidenceError::System(errno) => self.failed("watch the owner of", errno),
        }
    }

    fn send(
        &self,
        channel: &Channel,
        header: Header,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), ConnectError> {
        match channel.send(header, payload, fds) {
            // A broken pipe: the owner has gone, and what it left says how.
            Ok(()) | Err(Errno::PIPE) => Ok(()),
            Err(errno) => Err(self.failed("send to", errno)),
        }
    }

    fn open(self, mail: Option<Mail>, waited: Duration) -> Result<(Reply, Peer), ConnectError> {
        let OwnerName { path, pid } = self;
        match mail {
            Some(Mail::Answer(Ok(reply), peer)) => Ok((reply, peer)),
            Some(Mail::Answer(Err(reason), _)) => Err(ConnectError::Refused { path, pid, reason }),
            Some(Mail::Gone(Departure::Died)) => Err(ConnectError::OwnerDied { path, pid: Some(pid) }),
            Some(Mail::Gone(Departure::Closed)) => Err(ConnectError::Closed { path, pid }),
            Some(Mail::Broken(error)) => Err(ConnectError::Protocol { path, pid, error }),
            None => Err(ConnectError::TimedOut { path, pid: Some(pid), waited }),
        }
    }
}

fn check_size(request: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), ConnectError> {
    if request.len() > MAX_PAYLOAD_BYTES || fds.len() > MAX_FDS {
        return Err(ConnectError::TooLarge { bytes: request.len(), fds: fds.len() });
    }
    Ok(())
}

/// A connection that stands, before anything is said over it.
pub(crate) struct Reached<'a> {
    shared: &'a Arc<Shared>,
    owner: OwnerName,
    token: Option<&'a Token>,
    channel: Channel,
    credentials: Credentials,
    timeout: Duration,
    deadline: Instant,
    is_wanted: IsWanted<'a>,
}

/// One that the owner has been told something over.
struct Asking<'a> {
    shared: &'a Arc<Shared>,
    owner: OwnerName,
    opening: Opening,
    timeout: Duration,
    deadline: Instant,
    is_wanted: IsWanted<'a>,
}

impl<'a> Reached<'a> {
    /// Connects to the process that offers a name; with a token, to the one that it was exchanged with.
    pub(crate) fn reach(
        shared: &'a Arc<Shared>,
        name: &str,
        (timeout, is_wanted): (Duration, IsWanted<'a>),
        token: Option<&'a Token>,
    ) -> Result<Self, ConnectError> {
        let name = Name::new(name)?;
        shared.check_thread()?;
        let deadline = deadline_after(timeout);
        let mut owner = OwnerName { path: shared.place().socket_path(&name), pid: 0 };
        let channel =
            Channel::new(reach(shared, &name, &owner, (timeout, deadline, is_wanted))?, End::Client);
        let credentials = credentials(channel.fd().as_fd()).map_err(|error| owner.unwatched(error))?;
        owner.pid = credentials.pid;
        let expected = shared.place().owner_uid();
        if !shared.place().is_owner(credentials.uid) {
            return Err(ConnectError::Impostor { path: owner.path, found: credentials.uid, expected });
        }
        Ok(Reached { shared, owner, token, channel, credentials, timeout, deadline, is_wanted })
    }

    /// Looks from now on whether the owner lives.
    fn watch(self) -> Result<Asking<'a>, ConnectError> {
        let Reached { shared, owner, channel, credentials, timeout, deadline, is_wanted, .. } = self;
        let disposer = shared.reactor().disposer();
        match Evidence::of_named(channel.fd().as_fd(), credentials) {
            Ok(evidence) => {
                let opening = Opening::new(channel, evidence, disposer.clone());
                Ok(Asking { shared, owner, opening, timeout, deadline, is_wanted })
            }
            Err(error) => {
                channel.close();
                // With what the owner has sent and nobody has read.
                disposer.dispose(channel);
                Err(owner.unwatched(error))
            }
        }
    }

    /// Makes the first request and waits for its answer. From then on the domain's thread reads the socket; closing it makes that
    /// thread forget it.
    pub(crate) fn ask(
        self,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Connection, Reply), ConnectError> {
        self.ask_and(request, fds, || Ok(())).map(|(connection, reply, ())| (connection, reply))
    }

    /// As [`Reached::ask`], and does something else while the owner answers.
    pub(crate) fn ask_and<T, E: From<ConnectError>>(
        self,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        meanwhile: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Connection, Reply, T), E> {
        let (mut asking, serial) = if let Some(token) = self.token {
            let asking = self.prove(token)?;
            let hello = asking.shared.header(Kind::Hello, 2);
            asking.owner.send(&asking.opening.channel, hello, request, fds)?;
            (asking, 2)
        } else {
            // At once: the owner's thread has been woken up, and would fall asleep again. Whether it lives is asked for after that.
            let hello = self.shared.header(Kind::Hello, 1);
            self.owner.send(&self.channel, hello, request, fds)?;
            (self.watch()?, 1)
        };
        let done = meanwhile()?;
        let (reply, peer) = asking.answer(serial)?;
        let connection = asking.stand(peer, serial)?;
        Ok((connection, reply, done))
    }

    /// Shows the owner, if it is the process of the token, that this is the other one, and has it do the same.
    fn prove(self, token: &Token) -> Result<Asking<'a>, ConnectError> {
        let mut asking = self.watch()?;
        let unproved =
            |owner: &OwnerName| ConnectError::Unproved { path: owner.path.clone(), pid: owner.pid };
        if !token.identity.is(Comer::of(&asking.opening.evidence)) {
            return Err(unproved(&asking.owner));
        }
        let proof = asking.shared.header(Kind::Prove, 1);
        asking.owner.send(&asking.opening.channel, proof, token.theirs.bytes(), &[])?;
        let (answer, _) = asking.answer(1)?;
        if !token.own.is(&answer.payload) {
            return Err(unproved(&asking.owner));
        }
        Ok(asking)
    }
}

impl Asking<'_> {
    fn answer(&mut self, serial: u32) -> Result<(Reply, Peer), ConnectError> {
        let mail = loop {
            let until = self.deadline.min(Instant::now() + WANTED_AGAIN);
            let mail = self.opening.wait(serial, until);
            if mail.is_some() || until == self.deadline || !(self.is_wanted)() {
                break mail;
            }
        };
        let owner = OwnerName { path: self.owner.path.clone(), pid: self.owner.pid };
        owner.open(mail, self.timeout)
    }

    /// Leaves the socket to the domain's thread.
    fn stand(mut self, peer: Peer, serial: u32) -> Result<Connection, ConnectError> {
        let Opening { channel, evidence, mailbox, .. } = &self.opening;
        let (channel, mailbox) = (Arc::clone(channel), Arc::clone(mailbox));
        let role = Role::Client(Arc::clone(&mailbox));
        let mut link = Link::new(Arc::clone(&channel), Arc::clone(evidence), role);
        link.peer = Some(peer.clone());
        self.shared
            .reactor()
            .join(link)
            .map_err(|errno| self.owner.failed("watch the connection to", errno))?;
        self.opening.keep();
        let (path, serial) = (self.owner.path, Mutex::new(serial));
        Ok(Connection { shared: Arc::clone(self.shared), channel, mailbox, peer, path, serial })
    }
}

impl Connection {
    pub(crate) fn open(
        shared: &Arc<Shared>,
        name: &str,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        wait: (Duration, IsWanted<'_>),
        token: Option<&Token>,
    ) -> Result<(Self, Reply), ConnectError> {
        check_size(request, fds)?;
        Reached::reach(shared, name, wait, token)?.ask(request, fds)
    }

    /// Asks the owner for something more; waits at most [`DEFAULT_TIMEOUT`].
    ///
    /// # Errors
    /// As [`Connection::call_within`].
    pub fn call(&self, request: &[u8], fds: &[BorrowedFd<'_>]) -> Result<Reply, ConnectError> {
        self.call_within(request, fds, DEFAULT_TIMEOUT)
    }

    /// Asks the owner for something more; waits at most `timeout`. Calls of several threads follow each other.
    ///
    /// # Errors
    /// The owner refused, died, closed the connection, did not answer in time, or broke the protocol; or this thread
    /// or process must not call.
    pub fn call_within(
        &self,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<Reply, ConnectError> {
        check_size(request, fds)?;
        self.shared.check_thread()?;
        let owner = OwnerName { path: self.path.clone(), pid: self.peer.pid() };
        let mut serial = self.serial.lock().unwrap_or_else(PoisonError::into_inner);
        *serial = serial.wrapping_add(1);
        self.mailbox.expect(*serial);
        let deadline = deadline_after(timeout);
        let sent = self.send_until(self.shared.header(Kind::Call, *serial), request, fds, deadline);
        if let Err(errno) = sent
            && errno != Errno::PIPE
        {
            return Err(match errno {
                Errno::BADF => MisuseError::DescriptorLost.into(),
                // It did not even read what it was told before.
                Errno::AGAIN => {
                    ConnectError::TimedOut { path: owner.path, pid: Some(owner.pid), waited: timeout }
                }
                errno => owner.failed("send to", errno),
            });
        }
        owner.open(self.mailbox.wait(deadline), timeout).map(|(reply, _)| reply)
    }

    /// Sends a packet, and waits for room while the owner has not read what it was sent before, at most until `deadline`.
    fn send_until(
        &self,
        header: Header,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
        deadline: Instant,
    ) -> Result<(), Errno> {
        loop {
            let sent = self.channel.send(header, payload, fds);
            let left = deadline.saturating_duration_since(Instant::now());
            if sent != Err(Errno::AGAIN) || left.is_zero() {
                return sent;
            }
            let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
            // A signal ends the wait early, which costs one attempt.
            let _ = poll(&mut [PollFd::new(&self.channel.live()?, PollFlags::OUT)], Some(&left));
        }
    }

    /// Tells the owner something that it does not answer, in order with what is told and asked before and after it. Never waits:
    /// where the owner has not read what it was sent, nothing is.
    ///
    /// # Errors
    /// The owner has gone; the message is larger than [`crate::MAX_NOTIFICATION_BYTES`]; the kernel refused something; this process
    /// was forked from the one that connected.
    pub fn tell(&self, message: &[u8]) -> Result<Notified, NotifyError> {
        if message.len() > MAX_NOTIFICATION_BYTES {
            return Err(NotifyError::TooLarge { bytes: message.len(), fds: 0 });
        }
        if !self.channel.is_own() {
            return Err(notify::forked(&self.channel).into());
        }
        match self.channel.send(self.shared.header(Kind::Tell, 0), message, &[]) {
            Ok(()) => Ok(Notified::Accepted),
            Err(Errno::AGAIN) => Ok(Notified::WouldBlock),
            Err(Errno::BADF) => Err(MisuseError::DescriptorLost.into()),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Err(NotifyError::Gone),
            Err(errno) => Err(NotifyError::System { errno }),
        }
    }

    /// The owner.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.channel.close();
    }
}

/// A timeout beyond the clock's range is cut to a year.
fn deadline_after(timeout: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + Duration::from_secs(365 * 24 * 3600))
}

/// Connects to the socket, waiting while the owner's backlog is full.
fn reach(
    shared: &Shared,
    name: &Name,
    owner: &OwnerName,
    (timeout, deadline, is_wanted): (Duration, Instant, IsWanted<'_>),
) -> Result<OwnedFd, ConnectError> {
    loop {
        match shared.place().connect(name) {
            Ok(socket) => return Ok(socket),
            Err(Errno::NOENT) => return Err(ConnectError::Absent { path: owner.path.clone() }),
            // A socket that nobody listens on: its owner was killed and left no child that holds it.
            Err(Errno::CONNREFUSED) => {
                return Err(ConnectError::OwnerDied { path: owner.path.clone(), pid: None });
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if Instant::now() < deadline && is_wanted() => {
                std::thread::sleep(BACKLOG_RETRY)
            }
            Err(Errno::AGAIN) => {
                return Err(ConnectError::TimedOut { path: owner.path.clone(), pid: None, waited: timeout });
            }
            // The socket's mode: an offer without a list of users lets in none but the folder's owner.
            Err(Errno::ACCESS) if shared.place().owner_uid() != shared.identity.uid => {
                let (path, uid) = (owner.path.clone(), shared.identity.uid);
                return Err(ConnectError::NotAllowed { path, uid });
            }
            Err(errno) => return Err(owner.failed("connect to", errno)),
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::{Answer, Domain, DomainConfig, Refusal, Service};

    /// Tells how its clients go.
    struct Watching(Sender<Option<Departure>>);

    impl Service for Watching {
        fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            Ok(Reply::default().into())
        }

        fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            Ok(Reply::default().into())
        }

        fn departed(&mut self, peer: &Peer) {
            let _ = self.0.send(peer.departure());
        }
    }

    #[test]
    fn client_that_fails_while_the_owner_answers_closes_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(folder.path().to_owned()), name: "test".into() };
        let domain = Domain::open(&config).unwrap();
        let (departures, departed) = channel();
        let _offer = domain.offer("name", Box::new(Watching(departures))).unwrap();
        let reached = domain.reach("name", None).unwrap();
        let failed =
            reached.ask_and(b"", &[], || Err::<(), _>(ConnectError::from(MisuseError::DescriptorLost)));
        assert!(matches!(failed, Err(ConnectError::Misuse(MisuseError::DescriptorLost))), "{failed:?}");
        assert_eq!(departed.recv_timeout(DEFAULT_TIMEOUT), Ok(Some(Departure::Closed)));
    }
}
