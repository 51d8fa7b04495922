//! Sending to groups, where they are of programs of this domain alone.

use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use beeline_socket_rules::Why;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sockopt};

use super::group::{Group, GroupRoute, Source};
use super::outgoing::Put;
use super::passing::{Step, by_kernel, gathered, passes_by};
use super::socket::{Counted, DatagramSocket, Writer};
use crate::numbers::Claim;
use crate::sockets::Sockets;

/// Groups to which a socket sends by windows; what it sends to others is the kernel's.
const MOST_GROUPS: usize = 64;

pub(super) enum ToGroup {
    Done(Step),
    /// Again, behind a pause without the lock.
    Pause(Duration),
}

impl DatagramSocket {
    /// Sends a datagram to a group, by windows or by the kernel.
    pub(super) fn send_to_group(
        &'static self,
        sockets: &Sockets,
        socket: BorrowedFd<'_>,
        claim: Claim,
        writer: &mut Writer,
        (to, given_to): (SocketAddrV4, Option<SocketAddr>),
        pieces: &[IoSlice<'_>],
    ) -> ToGroup {
        let total = pieces.iter().map(|piece| piece.len()).sum();
        let Some(at) = self.group_at(writer, to) else {
            passes_by(writer, to.into());
            return ToGroup::Done(by_kernel(claim, None));
        };
        let meet = |flow, cookie, ends| sockets.meet_other_end(flow, cookie, ends);
        let route = match sockets.process().marks() {
            Some(marks) => {
                let route = writer.groups[at].route(marks, &meet, || claim.number.has_no_writes());
                if route == GroupRoute::Lost {
                    sockets.process().reopen_marks(marks);
                }
                route
            }
            None => GroupRoute::Kernel,
        };
        if !matches!(route, GroupRoute::Pause(_)) {
            self.count(Counted::Sent);
        }
        match route {
            GroupRoute::Windows => {
                let Writer { groups, whole, .. } = &mut *writer;
                let payload = match pieces {
                    [piece] => piece,
                    pieces => gathered(whole, pieces, total),
                };
                let put = groups[at].send(payload);
                if put != Put::Kernel {
                    self.count(if put == Put::Stored { Counted::SentByWindow } else { Counted::Dropped });
                    return ToGroup::Done(Step::Sent(total));
                }
            }
            GroupRoute::Kernel | GroupRoute::Lost => {}
            GroupRoute::Pause(pause) => return ToGroup::Pause(pause),
        }
        passes_by(writer, to.into());
        let group = &mut writer.groups[at];
        group.sends_by_kernel(total);
        if group.has_begun() {
            return ToGroup::Done(give_kernel(group, claim, socket, given_to, pieces));
        }
        if group.count() {
            match source_of(self, socket, *to.ip()) {
                Some(source) => group.begin(source),
                None => group.forbid(Why::Option),
            }
        }
        ToGroup::Done(by_kernel(claim, None))
    }

    fn group_at(&self, writer: &mut Writer, to: SocketAddrV4) -> Option<usize> {
        if self.is_forbidden() {
            return None;
        }
        if let Some(at) = writer.groups.iter().position(|group| group.to() == to) {
            return Some(at);
        }
        if writer.groups.len() == MOST_GROUPS {
            return None;
        }
        writer.groups.push(Group::new(to));
        Some(writer.groups.len() - 1)
    }

    /// The program has changed how the socket sends to groups: who has what it sends from now on is looked at anew.
    pub(crate) fn forget_groups(&self) {
        self.lock_writer().groups.retain_mut(|group| {
            group.begins_anew();
            group.has_former()
        });
    }
}

/// Gives the kernel a datagram, and asks members to say when they have taken it. Where the socket has no room the program's call waits, and members are asked behind another one.
fn give_kernel(
    group: &mut Group,
    claim: Claim,
    socket: BorrowedFd<'_>,
    to: Option<SocketAddr>,
    pieces: &[IoSlice<'_>],
) -> Step {
    let is_alone = claim.number.has_no_writes();
    let Some(pass) = claim.write() else { return Step::Again };
    let (flags, mut control) = (SendFlags::DONTWAIT | SendFlags::NOSIGNAL, SendAncillaryBuffer::default());
    let sent = match to {
        Some(to) => rustix::net::sendmsg_addr(socket, &to, pieces, &mut control, flags),
        None => rustix::net::sendmsg(socket, pieces, &mut control, flags),
    };
    match sent {
        Ok(sent) => {
            pass.moved(sent);
            if is_alone {
                group.has_sent_by_kernel();
            }
            Step::Sent(sent)
        }
        Err(Errno::AGAIN | Errno::INTR) => Step::Kernel(pass, None),
        Err(errno) => Step::Failed(errno),
    }
}

/// As whom members of a group know the socket, and where they have joined; `None` where the kernel gives nothing of what it sends to sockets of this host, or does not say.
fn source_of(own: &DatagramSocket, socket: BorrowedFd<'_>, group: Ipv4Addr) -> Option<Source> {
    if !sockopt::ip_multicast_loop(socket).ok()? {
        return None;
    }
    let SocketAddr::V4(local) = SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()? else {
        return None;
    };
    // Hooks see to it that an interface is named by its address.
    let named = sockopt::ip_multicast_if(socket).ok()?;
    let (device, source) = match (named.is_unspecified(), local.ip().is_unspecified()) {
        (false, _) => (beeline_tcp::device_of(named).ok()??, named),
        (true, false) => (beeline_tcp::device_of(*local.ip()).ok()??, *local.ip()),
        (true, true) => beeline_tcp::route_towards_group(group).ok()?,
    };
    let source = if local.ip().is_unspecified() { source } else { *local.ip() };
    let is_one = local.port() != 0 && !local.ip().is_multicast();
    is_one.then_some(Source {
        namespace: beeline_tcp::netns_cookie(socket).ok()?,
        address: SocketAddrV4::new(source, local.port()),
        device,
        cookie: own.cookie(),
        number: socket.as_raw_fd(),
    })
}
