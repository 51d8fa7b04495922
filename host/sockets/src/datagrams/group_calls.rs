//! What hooks say of groups: who gets a port, joins, leaves, or sends another way.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use beeline_domain::ConnectionEnds;
use beeline_socket_rules::{Multicast, Retain, Why};

use super::flow::Asking;
use super::memberships::Joined;
use super::socket::DatagramSocket;
use crate::lock::is_any_held_here;
use crate::numbers::{self, What};
use crate::sockets::Sockets;

/// A group that a program joins or leaves, and the interface that it names: by its number, else by its address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    pub group: Ipv4Addr,
    pub device: u32,
    pub address: Ipv4Addr,
}

impl Sockets {
    /// Whether groups of UDP are of programs of this domain alone, by the rules.
    #[inline]
    pub fn groups_are_of_host(&self) -> bool {
        let rules = self.process().rules();
        rules.udp && rules.multicast == Multicast::Host
    }

    /// The program has given a socket a port, and its call has not returned yet: whoever sends to a group of this port looks who has it from now on.
    pub fn bound(&self, socket: BorrowedFd<'_>) {
        if !self.groups_are_of_host() || !beeline_tcp::is_udp(socket) {
            return;
        }
        let local = rustix::net::getsockname(socket).ok().and_then(|local| SocketAddr::try_from(local).ok());
        let Some(local) = local else { return };
        if let Err(error) = self.process().mark(local.port()) {
            tracing::warn!(%error, port = local.port(), "senders to groups may not know of a socket for a moment");
        }
    }

    /// The program sets an option that members of groups have. Whether the socket may have windows of groups; those of single addresses it has no more.
    pub fn may_have_groups(&self, socket: BorrowedFd<'_>) -> bool {
        if !self.groups_are_of_host() || is_any_held_here() {
            return false;
        }
        loop {
            let Some(number) = numbers::number(socket.as_raw_fd()) else { return false };
            match number.claim() {
                (What::DatagramCandidate, claim) => self.nominate_datagrams(socket, claim),
                (What::Datagrams(_), _) => {
                    return self
                        .datagram_socket(socket.as_raw_fd())
                        .is_some_and(DatagramSocket::begin_for_groups);
                }
                _ => return false,
            }
        }
    }

    /// The program has joined a group.
    pub fn joined(&self, socket: BorrowedFd<'_>, membership: Membership) {
        let Some(own) = self.member(socket) else { return };
        let Membership { group, device, address } = membership;
        let found = match (device, address.is_unspecified()) {
            (0, true) => beeline_tcp::route_towards_group(group).ok().map(|(device, _)| device),
            (0, false) => beeline_tcp::device_of(address).ok().flatten(),
            (device, _) => Some(device),
        };
        if let Some(device) = found {
            own.join(Joined { group, device });
        }
    }

    /// The program has left a group.
    pub fn left(&self, socket: BorrowedFd<'_>, group: Ipv4Addr) {
        if let Some(own) = self.member(socket) {
            own.leave_group(group);
        }
    }

    /// The program has changed by which interface the socket sends to groups, or whether this host has it.
    pub fn sends_to_groups_otherwise(&self, socket: BorrowedFd<'_>) {
        if self.groups_are_of_host()
            && let Some(own) = self.member(socket)
        {
            own.forget_groups();
        }
    }

    fn member(&self, socket: BorrowedFd<'_>) -> Option<&'static DatagramSocket> {
        if is_any_held_here() { None } else { self.datagram_socket(socket.as_raw_fd()) }
    }

    /// The kernel has given a member of groups a datagram.
    pub(super) fn note_heard_by_member(
        &self,
        own: &'static DatagramSocket,
        socket: BorrowedFd<'_>,
        from: SocketAddr,
    ) {
        let SocketAddr::V4(from) = from else { return };
        for (joined, flow) in own.group_flows(from) {
            flow.hear();
            if let Some(flow) = flow.count() {
                match own.ends_as_member(socket, from, joined) {
                    Some(ends) => self.meet_other_end(flow, own.cookie(), ends),
                    None => flow.forbid(Why::PeerUnknown),
                }
            }
        }
    }

    /// Looks for the process at the other end of a flow, as long as the rules have both.
    pub(super) fn meet_other_end(&self, flow: Asking, socket_cookie: u64, ends: ConnectionEnds) {
        let Some(background) = self.background() else { return flow.forbid(Why::Domain) };
        if let Err(why) = self.process().decide(&ends) {
            return flow.forbid(why);
        }
        if self.process().rules().retain == Retain::Copy {
            return flow.forbid(Why::Retain);
        }
        let cookie = ends.datagrams_cookie(socket_cookie);
        flow.look_for(cookie);
        background.meet_flow(self.process().place(), flow, cookie, ends);
    }
}
