//! One end of something by which a process tells another one that there is something to do: our notifications, a pair of
//! eventfds, a pair of Unix sockets that keep packets apart.
//!
//! All three are made over a connection in a domain: the side that answers offers, the side that asks connects. An eventfd
//! carries a count and no bytes, so what its taker is given is what the taker knows already.

use std::hint::spin_loop;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use beeline_bench_echo::Failure;
use beeline_domain::{
    Answer, Connection, Domain, Notifications, Notified, Offer, Peer, Refusal, Reply, Service,
};
use beeline_session::IdleWatch;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

use super::role::{BYTES, Carrier, Waiting};

/// What the side that answers offers in its domain, and the side that asks.
const ANSWERS: &str = "answers";
const ASKS: &str = "asks";
const NOT_OF_A_DOMAIN: &str = "interrupts are met in a fabric";
/// How long nothing may come before a side gives up.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// One end: sends without waiting, and takes what has come.
pub(super) trait End {
    /// Whether it was sent; there is no room otherwise.
    fn try_send(&mut self, bytes: &[u8]) -> Result<bool, Failure>;

    /// How many have come; the last one's bytes, if the carrier has bytes.
    fn try_take(&mut self, bytes: &mut [u8]) -> Result<u64, Failure>;

    /// Waits until something has come, as it was made to; `None` of what is asked again, and has a descriptor to sleep on.
    fn wait(&mut self, _: &mut [u8]) -> Option<Result<u64, Failure>> {
        None
    }

    /// What is readable while something is there.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Sends, and gives the core away while there is no room.
pub(super) fn send_one(end: &mut dyn End, bytes: &[u8]) -> Result<(), Failure> {
    let mut idle = IdleWatch::new();
    while !end.try_send(bytes)? {
        std::thread::yield_now();
        idle.idle(still_waits)?;
    }
    Ok(())
}

/// Waits until something has come, and says how much.
pub(super) fn take(end: &mut dyn End, waiting: Waiting, bytes: &mut [u8]) -> Result<u64, Failure> {
    if let Some(taken) = end.wait(bytes) {
        return taken;
    }
    let mut idle = IdleWatch::new();
    loop {
        let taken = end.try_take(bytes)?;
        if taken > 0 {
            return Ok(taken);
        }
        match waiting {
            Waiting::Polled => {
                spin_loop();
                idle.idle(still_waits)?;
            }
            Waiting::Asleep | Waiting::Callback => {
                wait_readable(end.descriptor().ok_or("it has no descriptor to sleep on")?)?;
            }
        }
    }
}

fn wait_readable(descriptor: BorrowedFd<'_>) -> Result<(), Failure> {
    let limit = Timespec { tv_sec: TIMEOUT.as_secs() as i64, tv_nsec: 0 };
    match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)) {
        Ok(0) => still_waits(TIMEOUT),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn still_waits(waited: Duration) -> Result<(), Failure> {
    if waited < TIMEOUT { Ok(()) } else { Err(format!("nothing came for {} s", TIMEOUT.as_secs()).into()) }
}

/// What a service hands over for each that connects.
enum Met {
    Peer(Peer),
    /// What to take from and what to send into.
    Pair([OwnedFd; 2]),
}

/// Gives whoever connects one end of the carrier, and hands over the other one.
struct Meeting {
    carrier: Carrier,
    met: Sender<Met>,
}

impl Service for Meeting {
    fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let failed = |error: io::Error| Refusal::new(error.to_string());
        let (met, fds) = match self.carrier {
            Carrier::Notification => (Met::Peer(peer.clone()), Vec::new()),
            Carrier::EventFd => {
                let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
                let events =
                    event().and_then(|there| Ok([there, event()?])).map_err(|error| failed(error.into()))?;
                let [there, back] = events.each_ref().map(|event| event.try_clone());
                let given = vec![back.map_err(failed)?, there.map_err(failed)?];
                (Met::Pair(events), given)
            }
            Carrier::Interrupt | Carrier::DataInterrupt => return Err(Refusal::new(NOT_OF_A_DOMAIN)),
            Carrier::SeqPacket => {
                let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                let (own, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                    .map_err(|error| failed(error.into()))?;
                let both = [own.try_clone().map_err(failed)?, own];
                (Met::Pair(both), vec![other.try_clone().map_err(failed)?, other])
            }
        };
        self.met.send(met).map_err(|_| Refusal::new("nobody waits for it any more"))?;
        Ok(Reply { payload: Vec::new(), fds }.into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Err(Refusal::new("there is nothing to ask for"))
    }

    fn departed(&mut self, _: &Peer) {}
}

/// A side before both are there: offers, and has connected if it is the one that asks.
pub(super) struct Meet {
    carrier: Carrier,
    domain: Domain,
    met: Receiver<Met>,
    offer: Offer,
    /// The connection to the other side, and what came with it.
    joined: Option<(Connection, Reply)>,
}

impl Meet {
    /// The side that answers: the other one can connect.
    pub(super) fn answering(domain: Domain, carrier: Carrier) -> Result<Self, Failure> {
        Self::offering(domain, carrier, ANSWERS, None)
    }

    /// The side that asks, connected.
    pub(super) fn asking(domain: Domain, carrier: Carrier) -> Result<Self, Failure> {
        let joined = domain.connect(ANSWERS, b"", &[])?;
        Self::offering(domain, carrier, ASKS, Some(joined))
    }

    fn offering(
        domain: Domain,
        carrier: Carrier,
        name: &str,
        joined: Option<(Connection, Reply)>,
    ) -> Result<Self, Failure> {
        let (sender, met) = std::sync::mpsc::channel();
        let offer = domain.offer(name, Box::new(Meeting { carrier, met: sender }))?;
        Ok(Meet { carrier, domain, met, offer, joined })
    }

    /// This side's end, once the other side is there too: that which answers comes first.
    pub(super) fn end(self) -> Result<Box<dyn End>, Failure> {
        let is_asking = self.joined.is_some();
        match self.carrier {
            Carrier::Notification => Ok(Box::new(self.notices()?)),
            Carrier::EventFd => {
                let ([from, into], held) = self.pair(is_asking)?;
                Ok(Box::new(Events { from, into, _held: held }))
            }
            Carrier::SeqPacket => {
                let ([socket, _], held) = self.pair(is_asking)?;
                Ok(Box::new(Packets { socket, _held: held }))
            }
            Carrier::Interrupt | Carrier::DataInterrupt => Err(NOT_OF_A_DOMAIN.into()),
        }
    }

    /// As [`Meet::end`], with a callback that sends each back and counts it: the thread of callbacks has the end.
    pub(super) fn callback(
        self,
        echoed: Sender<Result<(), String>>,
    ) -> Result<beeline_domain::CallbackThread, Failure> {
        let Notices { peer, notifications, _held: held } = self.notices()?;
        Ok(notifications.deliver_to(move |given| {
            let _held = &held;
            let outcome = match given {
                Ok(told) => match peer.notify(&told.payload, &[]) {
                    Ok(Notified::Accepted) => Ok(()),
                    other => Err(format!("cannot send back: {other:?}")),
                },
                Err(ended) => Err(ended.to_string()),
            };
            // Nobody counts any more when the side has ended.
            let _ = echoed.send(outcome);
        })?)
    }

    fn notices(self) -> Result<Notices, Failure> {
        // Each side is told by the other side's offer, so each is connected to it.
        let (connection, _) = match self.joined {
            Some(joined) => joined,
            None => self.domain.connect(ASKS, b"", &[])?,
        };
        let Met::Peer(peer) = self.met.recv_timeout(TIMEOUT)? else {
            return Err("a peer without a connection".into());
        };
        let notifications = connection.notifications()?;
        Ok(Notices { peer, notifications, _held: Held { _connection: Some(connection), _offer: self.offer } })
    }

    fn pair(self, is_asking: bool) -> Result<([OwnedFd; 2], Held), Failure> {
        let (connection, fds) = match self.joined {
            Some((connection, reply)) => (Some(connection), reply.fds),
            None => match self.met.recv_timeout(TIMEOUT)? {
                Met::Pair(fds) => (None, fds.into()),
                Met::Peer(_) => return Err("a peer in place of descriptors".into()),
            },
        };
        let fds = <[OwnedFd; 2]>::try_from(fds)
            .map_err(|fds| format!("{} descriptors (asking: {is_asking})", fds.len()))?;
        Ok((fds, Held { _connection: connection, _offer: self.offer }))
    }
}

/// What an end lives by.
struct Held {
    _connection: Option<Connection>,
    _offer: Offer,
}

struct Notices {
    peer: Peer,
    notifications: Notifications,
    _held: Held,
}

impl End for Notices {
    fn try_send(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        Ok(self.peer.notify(bytes, &[])? == Notified::Accepted)
    }

    fn try_take(&mut self, bytes: &mut [u8]) -> Result<u64, Failure> {
        let Some(told) = self.notifications.try_next()? else { return Ok(0) };
        if told.payload.len() != bytes.len() {
            return Err(format!("a notification of {} bytes", told.payload.len()).into());
        }
        bytes.copy_from_slice(&told.payload);
        Ok(1)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.notifications.as_fd())
    }
}

struct Events {
    from: OwnedFd,
    into: OwnedFd,
    _held: Held,
}

impl End for Events {
    fn try_send(&mut self, _: &[u8]) -> Result<bool, Failure> {
        match rustix::io::write(&self.into, &1u64.to_ne_bytes()) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn try_take(&mut self, _: &mut [u8]) -> Result<u64, Failure> {
        let mut count = [0; 8];
        match rustix::io::read(&self.from, &mut count) {
            Ok(_) => Ok(u64::from_ne_bytes(count)),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.from.as_fd())
    }
}

struct Packets {
    socket: OwnedFd,
    _held: Held,
}

impl End for Packets {
    fn try_send(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        match send(&self.socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn try_take(&mut self, bytes: &mut [u8]) -> Result<u64, Failure> {
        let expected = bytes.len();
        let mut packet = [MaybeUninit::uninit(); BYTES + 1];
        match recv(&self.socket, &mut packet, RecvFlags::DONTWAIT) {
            Ok(((found, _), _)) if found.len() == expected => {
                bytes.copy_from_slice(found);
                Ok(1)
            }
            Ok((_, length)) => Err(format!("a packet of {length} bytes").into()),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}
