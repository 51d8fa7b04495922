//! Sending: into the window of whoever has the address, or by the kernel.

use std::collections::HashSet;
use std::io::IoSlice;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::flow::Flow;
use super::group::Group;
use super::outgoing::{Outgoing, Put, Route};
use super::passing::{Step, by_kernel, gathered, passes_by};
use super::socket::{Counted, DatagramSocket, Writer};
use super::to_groups::ToGroup;
use crate::numbers::Claim;
use crate::sockets::Sockets;

impl DatagramSocket {
    pub(crate) fn send(
        &'static self,
        sockets: &Sockets,
        socket: BorrowedFd<'_>,
        claim: Claim,
        to: Option<SocketAddr>,
        pieces: &[IoSlice<'_>],
    ) -> Step {
        let total = pieces.iter().map(|piece| piece.len()).sum();
        loop {
            let mut writer = self.lock_writer();
            if !claim.holds() {
                return Step::Again;
            }
            let given_to = to;
            let to = to.or(writer.peer);
            if let Some(group) = to.and_then(group_of).filter(|_| sockets.groups_are_of_host()) {
                match self.send_to_group(sockets, socket, claim, &mut writer, (group, given_to), pieces) {
                    ToGroup::Done(step) => return step,
                    // Without the lock.
                    ToGroup::Pause(pause) => {
                        drop(writer);
                        std::thread::sleep(pause);
                        continue;
                    }
                }
            }
            let (place, flow) = match to {
                Some(to) => self.place_of(&mut writer, to),
                None => (None, None),
            };
            let Some(at) = place else {
                to.into_iter().for_each(|to| passes_by(&mut writer, to));
                return by_kernel(claim, flow);
            };
            let Writer { outgoing, whole, .. } = &mut *writer;
            match outgoing[at].route(|| claim.number.has_no_writes()) {
                Route::Window => {
                    let payload = match pieces {
                        [piece] => piece,
                        pieces => gathered(whole, pieces, total),
                    };
                    self.count(Counted::Sent);
                    let put = outgoing[at].send(payload);
                    if put == Put::Kernel {
                        outgoing[at].sends_by_kernel(total);
                        return by_kernel(claim, None);
                    }
                    self.count(if put == Put::Stored { Counted::SentByWindow } else { Counted::Dropped });
                    return Step::Sent(total);
                }
                Route::Kernel => {
                    self.count(Counted::Sent);
                    outgoing[at].sends_by_kernel(total);
                    return by_kernel(claim, None);
                }
                // Without the lock, and not as long as a thread may be off its core at any time.
                Route::Pause(pause) => {
                    drop(writer);
                    std::thread::sleep(pause);
                }
                Route::Over => {
                    writer.outgoing.swap_remove(at).flow.leave();
                }
            }
        }
    }

    /// Where what goes to an address is sent, or the flow that is none yet.
    #[inline]
    fn place_of(&'static self, writer: &mut Writer, to: SocketAddr) -> (Option<usize>, Option<Arc<Flow>>) {
        let last = writer.last;
        if writer.outgoing.get(last).is_some_and(|outgoing| outgoing.remote() == to) {
            return (Some(last), None);
        }
        if let Some(at) = writer.outgoing.iter().position(|outgoing| outgoing.remote() == to) {
            writer.last = at;
            return (Some(at), None);
        }
        let Some(flow) = self.flow(to) else { return (None, None) };
        let live = if self.is_forbidden() { None } else { flow.live() };
        let Some(live) = live else { return (None, Some(flow)) };
        writer.outgoing.push(Outgoing::new(&flow, live));
        writer.last = writer.outgoing.len() - 1;
        (Some(writer.last), None)
    }

    /// Answers receivers that ask for a rest, which the program does by its sends alone.
    pub(crate) fn answer_rests(&self) {
        if !self.is_own() || self.is_forbidden() {
            return;
        }
        let mut writer = self.lock_writer();
        writer.outgoing.iter_mut().for_each(Outgoing::answer_rest);
        writer.groups.iter_mut().for_each(Group::answer_rests);
        let sent_to: HashSet<SocketAddr> = writer.outgoing.iter().map(Outgoing::remote).collect();
        for flow in self.flows().iter().filter(|flow| !sent_to.contains(&flow.remote)) {
            if let Some(live) = flow.live() {
                // Whoever stores something has this lock behind us.
                live.answer_rest();
            }
        }
    }

    /// A call that the engine does not make gives the socket a datagram: all that comes behind it waits until that is on its way.
    pub(crate) fn sends_by_kernel(&self) {
        let mut writer = self.lock_writer();
        writer.outgoing.iter_mut().for_each(Outgoing::is_passed_by);
        writer.groups.iter_mut().for_each(Group::is_passed_by);
    }
}

/// The group that an address is, of IPv4.
fn group_of(to: SocketAddr) -> Option<SocketAddrV4> {
    match to {
        SocketAddr::V4(to) if to.ip().is_multicast() && to.port() != 0 => Some(to),
        _ => None,
    }
}
