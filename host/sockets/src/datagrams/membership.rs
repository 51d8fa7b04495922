//! Groups of which a socket is a member, and what it has with those who send to them.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use beeline_domain::{ConnectionEnds, GroupMember};

use super::flow::Flow;
use super::memberships::{Joined, Memberships};
use super::socket::{DatagramSocket, MOST_FLOWS};
use crate::lock::locked;

/// Groups that a socket has joined and whose senders it has windows of.
const MOST_GROUPS: usize = 16;

impl DatagramSocket {
    /// Whether what goes to and from single addresses is the kernel's: the socket shares its port, or is a member of groups.
    pub(crate) fn is_for_groups(&self) -> bool {
        self.is_for_groups.load(Ordering::Acquire)
    }

    /// Makes it one that has windows of groups alone; false where it has others already.
    pub(crate) fn begin_for_groups(&self) -> bool {
        if self.is_forbidden()
            || !self.lock_reader().incoming.is_empty()
            || !self.lock_writer().outgoing.is_empty()
        {
            return false;
        }
        self.is_for_groups.store(true, Ordering::Release);
        let flows = std::mem::take(&mut *locked(&self.flows));
        flows.values().for_each(|flow| flow.leave());
        true
    }

    /// The program has joined a group.
    pub(crate) fn join(&self, joined: Joined) {
        let mut memberships = locked(&self.memberships);
        if memberships.joined.len() < MOST_GROUPS && !memberships.joined.contains(&joined) {
            memberships.joined.push(joined);
        }
    }

    /// The program has left a group, by whichever device: its senders are told, and what is in their windows is received still.
    pub(crate) fn leave_group(&self, group: Ipv4Addr) {
        let left: Vec<Arc<Flow>> = {
            let mut memberships = locked(&self.memberships);
            memberships.joined.retain(|joined| joined.group != group);
            let heard = memberships.heard.iter();
            heard.filter(|((_, joined), _)| joined.group == group).map(|(_, flow)| Arc::clone(flow)).collect()
        };
        let mut reader = self.lock_reader();
        for flow in left {
            match reader.incoming.iter_mut().find(|incoming| Arc::ptr_eq(&incoming.flow, &flow)) {
                Some(incoming) => incoming.end(),
                None => flow.leave(),
            }
        }
        drop(reader);
        // Those that somebody has stay, so that a socket that comes back does not meet the same sender by the same cookie before they are done with.
        locked(&self.memberships).heard.retain(|_, flow| !flow.is_spent());
    }

    /// What the socket has with a sender of which the kernel has given it a datagram: of each group of which it is a member, since nobody says to which that was sent.
    pub(crate) fn group_flows(&'static self, from: SocketAddrV4) -> Vec<(Joined, Arc<Flow>)> {
        let mut memberships = locked(&self.memberships);
        let Memberships { joined, heard } = &mut *memberships;
        let mut found = Vec::new();
        for joined in joined.iter() {
            let key = (SocketAddr::V4(from), *joined);
            if heard.len() >= MOST_FLOWS && !heard.contains_key(&key) {
                // Those of senders that have gone, or were not worth it yet.
                heard.retain(|_, flow| !flow.may_be_forgotten());
            }
            let old = heard.get(&key).filter(|flow| !flow.is_spent());
            let flow = match old {
                Some(flow) => Arc::clone(flow),
                None if heard.len() >= MOST_FLOWS || self.is_forbidden() => continue,
                None => {
                    let number = self.number.load(Ordering::Relaxed);
                    let flow = Arc::new(Flow::new(from.into(), number, &self.has_agreed));
                    heard.insert(key, Arc::clone(&flow));
                    flow
                }
            };
            found.push((*joined, flow));
        }
        found
    }

    /// The ends of what a sender has with this socket as a member of a group; `None` where the socket has no port.
    pub(crate) fn ends_as_member(
        &self,
        socket: BorrowedFd<'_>,
        from: SocketAddrV4,
        joined: Joined,
    ) -> Option<ConnectionEnds> {
        let local = SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()?;
        let group = SocketAddrV4::new(joined.group, local.port());
        let member = GroupMember { group, device: joined.device, cookie: self.cookie() };
        let namespace = beeline_tcp::netns_cookie(socket).ok()?;
        (local.port() != 0).then(|| ConnectionEnds::of_group(namespace, from, member).mirrored())
    }
}

#[cfg(test)]
mod tests {
    use super::super::socket::Known;
    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 9, 9);
    const JOINED: Joined = Joined { group: GROUP, device: 1 };

    fn member() -> &'static DatagramSocket {
        let own = Box::leak(Box::new(DatagramSocket::new(0)));
        own.begin(&Known { number: 3, cookie: 5, peer: None, is_nonblocking: false, is_v6: false });
        own.join(JOINED);
        own
    }

    fn flow_with(own: &'static DatagramSocket, from: SocketAddrV4) -> Option<Arc<Flow>> {
        own.group_flows(from).pop().map(|(_, flow)| flow)
    }

    #[test]
    fn member_that_comes_back_has_no_second_flow_with_a_sender_before_the_first_is_nobody_s() {
        let (own, from) = (member(), SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5000));
        let flow = flow_with(own, from).unwrap();
        let asking = flow.begin().unwrap();
        own.leave_group(GROUP);
        assert!(flow_with(own, from).is_none(), "it is no member");
        own.join(JOINED);
        let again = flow_with(own, from).unwrap();
        assert!(Arc::ptr_eq(&flow, &again) && again.begin().is_none());
        drop(asking);
        let next = flow_with(own, from).unwrap();
        assert!(!Arc::ptr_eq(&flow, &next) && next.begin().is_some());
    }

    #[test]
    fn senders_that_were_never_worth_it_make_room_for_others() {
        let own = member();
        let at = |count: usize| SocketAddrV4::new((0x0a00_0000 + count as u32).into(), 5000);
        let worth = flow_with(own, at(0)).unwrap();
        let _asking = worth.begin().unwrap();
        for count in 1..=MOST_FLOWS {
            assert!(flow_with(own, at(count)).is_some(), "{count}");
        }
        assert!(locked(&own.memberships).heard.len() < MOST_FLOWS);
        assert!(Arc::ptr_eq(&worth, &flow_with(own, at(0)).unwrap()), "one that is looked for stays");
    }
}
