//! `SOCK_SEQPACKET` sockets of the rendezvous, and packets with descriptors over them.
//!
//! Every socket is close-on-exec and non-blocking: whoever does not read or write in time loses its connection, never
//! ours its time.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::descriptor::Held;
use crate::folder::Folder;
use crate::name::Name;
use crate::wire::{HEADER_BYTES, Header, MAX_FDS, MAX_MESSAGE_BYTES, WireError};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

fn new_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// The address of an offer's socket in a folder, while that is held.
pub(crate) fn address(folder: &Folder, name: &Name) -> Result<(SocketAddrUnix, Held), Errno> {
    let (path, folder) = folder.through_descriptor(&name.socket_file());
    Ok((SocketAddrUnix::new(path)?, folder))
}

/// Makes the socket of an offer in a folder. `for_others` lets users other than the folder's owner connect; without it the
/// socket's own mode forbids them to.
pub(crate) fn listen_in(folder: &Folder, name: &Name, for_others: bool) -> Result<OwnedFd, Errno> {
    let socket = new_socket()?;
    let (address, folder) = address(folder, name)?;
    rustix::net::bind(&socket, &address)?;
    let mode = Mode::from_raw_mode(if for_others { 0o666 } else { 0o600 });
    // Until `listen` below nobody can connect, so no mode but this one is ever in force.
    rustix::fs::chmodat(&folder, &*name.socket_file(), mode, AtFlags::empty())?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Makes the socket of an offer under a name that has no permissions.
pub(crate) fn listen(address: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let socket = new_socket()?;
    rustix::net::bind(&socket, address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// One attempt to connect; `AGAIN` when the owner's backlog is full.
pub(crate) fn connect(address: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let socket = new_socket()?;
    rustix::net::connect(&socket, address)?;
    Ok(socket)
}

/// The next waiting connection, if any.
pub(crate) fn accept(listener: impl AsFd) -> Result<Option<OwnedFd>, Errno> {
    match rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(socket) => Ok(Some(socket)),
        // The comer has gone again, or a signal came: the next event tells.
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends one packet; `AGAIN` when the receiver has not read what it was sent before.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    header: Header,
    payload: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let head = header.encode(payload.len(), fds.len());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::TOOBIG);
    }
    let parts = [IoSlice::new(&head), IoSlice::new(payload)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match rustix::net::sendmsg(socket, &parts, &mut control, flags) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Result of one receive call.
#[derive(Debug)]
pub(crate) enum Received<'a> {
    /// A packet whose header is in order.
    Packet(Header, &'a [u8], Vec<OwnedFd>),
    /// Something that is not a packet of ours, and the descriptors it carried.
    Malformed(WireError, Vec<OwnedFd>),
    /// No packet is there now.
    Nothing,
    /// The other end is closed, or sent an empty packet; with the descriptors that came with it.
    End(Vec<OwnedFd>),
}

/// Most descriptors that the kernel passes with a packet (`SCM_MAX_FD`). There is room for all, though more than
/// [`MAX_FDS`] are refused: the kernel closes those that it finds no room for, and on the thread that reads.
const MOST_FDS: usize = 253;

/// Room for one packet, and for one byte more, so that a longer one is noticed.
pub(crate) type PacketBuffer = [u8; MAX_MESSAGE_BYTES + 1];

/// Takes one packet, if there is one.
pub(crate) fn receive<'a>(socket: BorrowedFd<'_>, buffer: &'a mut PacketBuffer) -> Received<'a> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut fds = Vec::new();
    let take = || {
        let parts = &mut [IoSliceMut::new(&mut buffer[..])];
        let message = rustix::net::recvmsg(socket, parts, &mut control, flags)?;
        for item in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = item {
                fds.extend(rights);
            }
        }
        Ok(message)
    };
    let message = match settled(take, |message| message.bytes == 0) {
        Ok(message) => message,
        Err(Errno::AGAIN) => return Received::Nothing,
        Err(_) => return Received::End(fds),
    };
    if message.bytes == 0 {
        // The end, or an empty packet, which nobody of ours sends: the same to us.
        return Received::End(fds);
    }
    if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) || message.bytes > MAX_MESSAGE_BYTES
    {
        return Received::Malformed(WireError::Truncated, fds);
    }
    match Header::decode(&buffer[..message.bytes], fds.len()) {
        Ok((header, payload)) => Received::Packet(header, payload, fds),
        Err(error) => Received::Malformed(error, fds),
    }
}

/// What the kernel says in the end, where it may say something else first.
fn settled<T>(mut take: impl FnMut() -> Result<T, Errno>, is_end: impl Fn(&T) -> bool) -> Result<T, Errno> {
    let mut has_ended = false;
    loop {
        match take() {
            // A reset is reported once, before the packets still queued; a signal may come at any time.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            // The kernel looks for a packet first and whether there is an end later, so the last packet and the end may both come in
            // between. Nothing comes after an end: told a second time, it is one.
            Ok(taken) if is_end(&taken) && !has_ended => has_ended = true,
            said => return said,
        }
    }
}

/// Ends both directions for every copy of the socket, those in forked children included.
pub(crate) fn shut_down(socket: impl AsFd) {
    // NOTCONN: the other end was faster.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
}

const _: () = assert!(MAX_MESSAGE_BYTES > HEADER_BYTES);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::wire::Kind;

    const CALL: Header = Header { kind: Kind::Call, membarrier: false, serial: 1, started_ticks: 2 };

    fn pair() -> (OwnedFd, OwnedFd) {
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .unwrap()
    }

    fn buffer() -> Box<PacketBuffer> {
        Box::new([0; MAX_MESSAGE_BYTES + 1])
    }

    fn open_fds() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    fn raw_send(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
        rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    #[test]
    fn a_packet_travels_with_its_descriptors() {
        let (a, b) = pair();
        let payload = vec![5; crate::wire::MAX_PAYLOAD_BYTES];
        send(a.as_fd(), CALL, &payload, &[a.as_fd(); MAX_FDS]).unwrap();
        let mut buffer = buffer();
        let Received::Packet(header, body, fds) = receive(b.as_fd(), &mut buffer) else { panic!() };
        assert_eq!((header, body, fds.len()), (CALL, &payload[..], MAX_FDS));
        for fd in fds {
            assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        }
        assert!(matches!(receive(b.as_fd(), &mut buffer), Received::Nothing));
        shut_down(&a);
        assert!(matches!(receive(b.as_fd(), &mut buffer), Received::End(_)));
    }

    #[test]
    fn too_long_or_too_many_descriptors_is_malformed() {
        let (a, b) = pair();
        let mut buffer = buffer();
        raw_send(&a, &vec![0; MAX_MESSAGE_BYTES + 1], &[]);
        assert!(matches!(receive(b.as_fd(), &mut buffer), Received::Malformed(WireError::Truncated, _)));
        for (claimed, sent) in [(MAX_FDS, MAX_FDS + 60), (MAX_FDS, MOST_FDS), (0, 1)] {
            raw_send(&a, &CALL.encode(0, claimed), &vec![a.as_fd(); sent]);
            let Received::Malformed(WireError::Descriptors { .. }, fds) = receive(b.as_fd(), &mut buffer)
            else {
                panic!("{sent} descriptors")
            };
            assert_eq!(fds.len(), sent, "the kernel closed none on this thread");
        }
    }

    #[test]
    fn a_reset_does_not_hide_what_was_sent_before_it() {
        let (a, b) = pair();
        let mut buffer = buffer();
        send(a.as_fd(), Header { kind: Kind::Bye, ..CALL }, &[], &[]).unwrap();
        send(b.as_fd(), CALL, b"unread", &[]).unwrap();
        drop(a);
        assert!(matches!(
            receive(b.as_fd(), &mut buffer),
            Received::Packet(Header { kind: Kind::Bye, .. }, ..)
        ));
        assert!(matches!(receive(b.as_fd(), &mut buffer), Received::End(_)));
    }

    #[test]
    fn an_end_is_believed_when_it_is_told_twice() {
        let told = |says: &[Result<usize, Errno>]| {
            let mut says = says.iter().copied();
            let said = settled(|| says.next().unwrap(), |bytes| *bytes == 0);
            (said, says.len())
        };
        // A packet that came between the two looks of the kernel, with the end.
        assert_eq!(told(&[Ok(0), Ok(7), Ok(0)]), (Ok(7), 1));
        assert_eq!(told(&[Ok(0), Ok(0), Ok(7)]), (Ok(0), 1));
        assert_eq!(told(&[Ok(0), Err(Errno::INTR), Err(Errno::CONNRESET), Ok(0)]), (Ok(0), 0));
        assert_eq!(told(&[Err(Errno::CONNRESET), Ok(7), Ok(0)]), (Ok(7), 1));
        assert_eq!(told(&[Err(Errno::AGAIN), Ok(7)]), (Err(Errno::AGAIN), 1));
    }

    #[test]
    fn a_receiver_that_does_not_read_costs_its_sender_no_time() {
        let (a, _b) = pair();
        let payload = [0; 60_000];
        let error = (0..100).find_map(|_| send(a.as_fd(), CALL, &payload, &[]).err());
        assert_eq!(error, Some(Errno::AGAIN));
    }

    #[test]
    fn descriptors_of_malformed_packets_are_closed() {
        // Counted over many packets, so that other tests of this process, which open a few, do not matter.
        let (a, b) = pair();
        let mut buffer = buffer();
        let before = open_fds();
        for _ in 0..200 {
            raw_send(&a, b"garbage", &[a.as_fd(); 20]);
            assert!(matches!(receive(b.as_fd(), &mut buffer), Received::Malformed(..)));
        }
        assert!(open_fds() < before + 500, "{before} before, {} after", open_fds());
    }
}
