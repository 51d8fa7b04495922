//! The answers to a client's first requests, which the thread that connects reads itself.
//!
//! Until it has them nobody else watches the connection: a hop to the domain's thread and back would cost two wake-ups, which
//! is most of what it takes to connect. What an owner says is heard here as that thread would hear it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::channel::Channel;
use crate::evidence::Evidence;
use crate::links::HANG_UP_GRACE;
use crate::mailbox::{Mail, Mailbox};
use crate::protocol::Departure;
use crate::service::Refusal;
use crate::socket::{self, PacketBuffer, Received};
use crate::wire::{Header, Kind, MAX_MESSAGE_BYTES, WireError};
use crate::{Disposer, Peer, Reply};

/// How long an answer is looked for before this thread sleeps for it. An owner that is awake answers within this time, and to be
/// woken up by it would take about as long again. Whoever else is to run on this core runs in between.
const LOOK_LIMIT: Duration = Duration::from_micros(100);

/// A connection whose owner has not answered yet. Unless it is kept it is closed when this is dropped.
pub(crate) struct Opening {
    pub(crate) channel: Arc<Channel>,
    pub(crate) evidence: Arc<Evidence>,
    /// Takes what the owner says unasked.
    pub(crate) mailbox: Arc<Mailbox>,
    disposer: Disposer,
    buffer: Box<PacketBuffer>,
    is_kept: bool,
}

impl Opening {
    pub(crate) fn new(channel: Channel, evidence: Evidence, disposer: Disposer) -> Self {
        Opening {
            channel: Arc::new(channel),
            evidence: Arc::new(evidence),
            mailbox: Arc::default(),
            disposer,
            buffer: Box::new([0; MAX_MESSAGE_BYTES + 1]),
            is_kept: false,
        }
    }

    /// It stands; somebody else closes it.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Waits for the answer to the request of this serial; `None` when the deadline passed.
    pub(crate) fn wait(&mut self, serial: u32, deadline: Instant) -> Option<Mail> {
        let looks_until = deadline.min(Instant::now() + LOOK_LIMIT);
        while Instant::now() < looks_until {
            if let Some(mail) = self.read(serial, false) {
                return Some(mail);
            }
            std::thread::yield_now();
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mail = match self.poll(left) {
                Ok(Some(has_died)) => self.read(serial, has_died),
                Ok(None) => None,
                Err(errno) => Some(self.lost(errno)),
            };
            // An owner that says something else all the time is not waited for any longer.
            if mail.is_some() || left.is_zero() {
                return mail;
            }
        }
    }

    /// Waits until the socket or the process has something to say: whether the process has ended. `None` when the time is over, or
    /// a signal came.
    fn poll(&self, limit: Duration) -> Result<Option<bool>, Errno> {
        let (socket, process) = (self.channel.live()?, self.evidence.pidfd().check()?);
        let mut fds = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&process, PollFlags::IN)];
        let limit = Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        match poll(&mut fds, Some(&limit)) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => Ok(Some(!fds[1].revents().is_empty())),
            Err(errno) => Err(errno),
        }
    }

    /// Reads one packet. What an owner told before it died still counts: its death was asked for before.
    fn read(&mut self, serial: u32, has_died: bool) -> Option<Mail> {
        let socket = match self.channel.live() {
            Ok(socket) => socket,
            Err(errno) => return Some(self.lost(errno)),
        };
        let received = socket::receive(socket.as_fd(), &mut self.buffer);
        let (unwanted, mail) = match received {
            Received::Packet(header, payload, fds) => {
                hear(&self.channel, &self.evidence, &self.mailbox, serial, header, payload, fds)
            }
            Received::Malformed(error, fds) => (fds, Some(Mail::Broken(error))),
            Received::Nothing => (Vec::new(), has_died.then_some(Mail::Gone(Departure::Died))),
            Received::End(fds) => (fds, Some(Mail::Gone(self.hung_up()))),
        };
        if !unwanted.is_empty() {
            self.disposer.dispose(unwanted);
        }
        if let Some(Mail::Broken(error)) = &mail {
            let pid = self.evidence.pid();
            tracing::warn!(pid, %error, "the owner of an offer broke the protocol; it is disconnected");
        }
        mail
    }

    /// How an owner went that hung up without a goodbye.
    fn hung_up(&self) -> Departure {
        let deadline = Instant::now() + HANG_UP_GRACE;
        while !self.evidence.has_died() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.evidence.still_runs() {
                return Departure::Closed;
            }
            // A signal or a hang-up that is told again ends a wait early.
            let _ = self.wait_for_death(left);
        }
        Departure::Died
    }

    fn wait_for_death(&self, limit: Duration) -> Result<usize, Errno> {
        let process = self.evidence.pidfd().check()?;
        let limit = Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit))
    }

    fn lost(&self, errno: Errno) -> Mail {
        let pid = self.evidence.pid();
        tracing::error!(pid, %errno, "a descriptor of a connection was closed or replaced in this process");
        Mail::Gone(Departure::Closed)
    }
}

/// Hears a packet: descriptors that nobody takes, and what comes of it, if it is the last one to be waited for.
fn hear(
    channel: &Arc<Channel>,
    evidence: &Arc<Evidence>,
    mailbox: &Mailbox,
    awaited: u32,
    header: Header,
    payload: &[u8],
    mut fds: Vec<OwnedFd>,
) -> (Vec<OwnedFd>, Option<Mail>) {
    let broken = |fds, error: WireError| (fds, Some(Mail::Broken(error)));
    match header.kind {
        Kind::Reply | Kind::Refusal if evidence.confirm(header.started_ticks).is_err() => {
            (fds, Some(Mail::Gone(Departure::Died)))
        }
        Kind::Reply | Kind::Refusal => {
            mailbox.notices.count_answer();
            if header.serial != awaited {
                return (fds, None);
            }
            let peer = Peer::new(Arc::clone(evidence), Arc::clone(channel), header.membarrier);
            match header.kind {
                Kind::Reply => {
                    let reply = Reply { payload: payload.to_vec(), fds };
                    (Vec::new(), Some(Mail::Answer(Ok(reply), peer)))
                }
                _ => (fds, Some(Mail::Answer(Err(Refusal::from_wire(payload)), peer))),
            }
        }
        Kind::Notify => match mailbox.notices.receive(header.serial, payload, &mut fds) {
            Ok(()) => (fds, None),
            Err(error) => broken(fds, error),
        },
        Kind::Bye => {
            mailbox.notices.goodbye(header.serial);
            (fds, Some(Mail::Gone(Departure::Closed)))
        }
        _ => broken(fds, header.out_of_place()),
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.is_kept {
            self.channel.close();
            // With what the owner has sent and nobody has read.
            self.disposer.dispose(Arc::clone(&self.channel));
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::channel::End;

    const LONG: Duration = Duration::from_secs(60);

    /// A connection of this process with itself, and its owner's end.
    fn opening() -> (Opening, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let evidence = Evidence::of_peer(ours.as_fd()).unwrap();
        (Opening::new(Channel::new(ours, End::Client), evidence, Disposer::default()), theirs)
    }

    fn say(owner: &OwnedFd, kind: Kind, serial: u32) {
        let started_ticks = crate::evidence::own_started_ticks();
        let header = Header { kind, membarrier: true, serial, started_ticks };
        socket::send(owner.as_fd(), header, b"said", &[]).unwrap();
    }

    #[test]
    fn answer_comes_after_what_was_told_before_it() {
        let (mut opening, owner) = opening();
        (1..=3).for_each(|serial| say(&owner, Kind::Notify, serial));
        say(&owner, Kind::Reply, 6);
        say(&owner, Kind::Reply, 7);
        let mail = opening.wait(7, Instant::now() + LONG);
        assert!(matches!(mail, Some(Mail::Answer(Ok(reply), _)) if reply.payload == b"said"));
        let notices = &opening.mailbox.notices;
        assert_eq!((0..4).filter(|_| notices.take().is_ok_and(|taken| taken.is_some())).count(), 3);
    }

    #[test]
    fn answer_that_comes_late_is_slept_for() {
        let (mut opening, owner) = opening();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                say(&owner, Kind::Refusal, 1);
            });
            let mail = opening.wait(1, Instant::now() + LONG);
            assert!(matches!(mail, Some(Mail::Answer(Err(reason), _)) if reason == "said"));
        });
    }

    #[test]
    fn owner_that_does_not_answer_ends_the_wait_in_its_own_way() {
        let ends = |kind: Option<(Kind, u32)>| {
            let (mut opening, owner) = opening();
            if let Some((kind, serial)) = kind {
                say(&owner, kind, serial);
            }
            drop(owner);
            opening.wait(1, Instant::now() + LONG)
        };
        // It runs, since it is this process.
        assert!(matches!(ends(None), Some(Mail::Gone(Departure::Closed))));
        assert!(matches!(ends(Some((Kind::Bye, 0))), Some(Mail::Gone(Departure::Closed))));
        for packet in [(Kind::Call, 1), (Kind::Wake, 0), (Kind::Notify, 2)] {
            assert!(matches!(ends(Some(packet)), Some(Mail::Broken(_))), "{packet:?}");
        }
    }

    #[test]
    fn owner_that_says_something_else_all_the_time_is_not_waited_for_any_longer() {
        let (mut opening, owner) = opening();
        assert!(opening.wait(1, Instant::now()).is_none());
        std::thread::scope(|scope| {
            let (is_over, heard) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                let header = Header { kind: Kind::Reply, membarrier: true, serial: 9, started_ticks: 0 };
                while heard.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    // A full socket is being read.
                    let _ = socket::send(owner.as_fd(), header, b"another", &[]);
                }
            });
            assert!(opening.wait(1, Instant::now() + Duration::from_millis(50)).is_none());
            drop(is_over);
        });
    }

    #[test]
    fn connection_that_does_not_come_about_says_goodbye() {
        let (opening, owner) = opening();
        drop(opening);
        let mut buffer: Box<PacketBuffer> = Box::new([0; MAX_MESSAGE_BYTES + 1]);
        let goodbye = socket::receive(owner.as_fd(), &mut buffer);
        assert!(matches!(goodbye, Received::Packet(Header { kind: Kind::Bye, .. }, ..)));
        assert!(matches!(socket::receive(owner.as_fd(), &mut buffer), Received::End(_)));
    }
}
