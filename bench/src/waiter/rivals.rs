//! What programs wait for many of today: eventfds and pairs of Unix sockets, each in an epoll set.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

use super::way::{Rig, Sends, Set, Waits, failed};
use crate::{BenchError, LINE_PAYLOAD_BYTES};

/// Packets that are taken of one socket at a time.
const BURST: usize = 16;

struct EventSenders(Vec<OwnedFd>);
struct EventTakers(Vec<OwnedFd>, Set);
struct PacketSenders(Vec<OwnedFd>);
struct PacketTakers(Vec<OwnedFd>, Set);

/// So many eventfds. They carry a count and no message.
pub(super) fn eventfds(count: usize) -> Result<Rig, BenchError> {
    let event =
        |_| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| failed(&error));
    let events = (0..count).map(event).collect::<Result<Vec<_>, _>>()?;
    let set = Set::new()?;
    for (number, event) in events.iter().enumerate() {
        set.add(event.as_fd(), number)?;
    }
    let senders = events.iter().map(OwnedFd::try_clone).collect::<Result<_, _>>()?;
    Ok(Rig { sends: Box::new(EventSenders(senders)), waits: Box::new(EventTakers(events, set)) })
}

/// So many pairs of sockets that keep packets apart.
pub(super) fn sockets(count: usize) -> Result<Rig, BenchError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let pair = |_| {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(|error| failed(&error))
    };
    let pairs = (0..count).map(pair).collect::<Result<Vec<_>, _>>()?;
    let (senders, takers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let set = Set::new()?;
    for (number, socket) in takers.iter().enumerate() {
        set.add(socket.as_fd(), number)?;
    }
    Ok(Rig { sends: Box::new(PacketSenders(senders)), waits: Box::new(PacketTakers(takers, set)) })
}

impl Sends for EventSenders {
    fn try_send(&mut self, number: usize, _: u64) -> Result<bool, BenchError> {
        match rustix::io::write(&self.0[number], &1u64.to_ne_bytes()) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl Waits for EventTakers {
    fn take(&mut self) -> Result<u64, BenchError> {
        let mut taken = 0;
        for number in self.1.wait()? {
            let mut count = [0; 8];
            rustix::io::read(&self.0[number], &mut count).map_err(|error| failed(&error))?;
            taken += u64::from_ne_bytes(count);
        }
        Ok(taken)
    }
}

impl Sends for PacketSenders {
    fn try_send(&mut self, number: usize, stamp: u64) -> Result<bool, BenchError> {
        let mut packet = [0; LINE_PAYLOAD_BYTES];
        packet[..8].copy_from_slice(&stamp.to_le_bytes());
        match send(&self.0[number], &packet, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl Waits for PacketTakers {
    fn take(&mut self) -> Result<u64, BenchError> {
        let mut taken = 0;
        for number in self.1.wait()? {
            let mut packet = [MaybeUninit::uninit(); LINE_PAYLOAD_BYTES];
            for _ in 0..BURST {
                match recv(&self.0[number], &mut packet, RecvFlags::empty()) {
                    Ok(_) => taken += 1,
                    Err(Errno::AGAIN) => break,
                    Err(error) => return Err(failed(&error)),
                }
            }
        }
        Ok(taken)
    }
}
