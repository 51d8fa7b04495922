//! Sending: into the window of whoever has the address, or by the kernel.

use std::collections::HashSet;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;

use beeline_socket_rules::Why;

use super::flow::Flow;
use super::outgoing::{Outgoing, Put, Route};
use super::socket::{Counted, DatagramSocket, Writer};
use crate::numbers::{Claim, Pass};

/// What becomes of a send.
pub(crate) enum Step {
    Sent(usize),
    /// It is the kernel's; the flow is one that it counts for.
    Kernel(Pass, Option<Arc<Flow>>),
    /// The number is another thing now.
    Again,
}

impl DatagramSocket {
    pub(crate) fn send(&'static self, claim: Claim, to: Option<SocketAddr>, pieces: &[IoSlice<'_>]) -> Step {
        let total = pieces.iter().map(|piece| piece.len()).sum();
        loop {
            let mut writer = self.lock_writer();
            if !claim.holds() {
                return Step::Again;
            }
            let (place, flow) = match to.or(writer.peer) {
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
        let sent_to: HashSet<SocketAddr> = writer.outgoing.iter().map(Outgoing::remote).collect();
        for flow in self.flows().iter().filter(|flow| !sent_to.contains(&flow.remote)) {
            if let Some(live) = flow.live() {
                // Nothing was stored there. Whoever does sees the receiver's word first: it has this lock behind us.
                live.slot().begin_rest(live.slot().rest_asked_for());
            }
        }
    }

    /// A call that the engine does not make gives the socket a datagram: all that comes behind it waits until that is on its way.
    pub(crate) fn sends_by_kernel(&self) {
        self.lock_writer().outgoing.iter_mut().for_each(Outgoing::is_passed_by);
    }
}

/// Counted before the lock is let go of: whoever leaves the kernel's path looks whether a call is in it.
fn by_kernel(claim: Claim, flow: Option<Arc<Flow>>) -> Step {
    claim.write().map_or(Step::Again, |pass| Step::Kernel(pass, flow))
}

/// One goes by the kernel to an address without a window. Groups, everybody and other addresses of this host may be another name of a socket that has one: what goes by
/// that must not come before what went by the kernel earlier, so such a socket has no window any more. Another host's address is no name of a socket of this one.
fn passes_by(writer: &mut Writer, to: SocketAddr) {
    let has_port = |outgoing: &Outgoing| outgoing.remote().port() == to.port();
    if !writer.outgoing.iter().any(has_port) {
        return;
    }
    let Writer { outgoing, elsewhere, .. } = writer;
    let is_here = !elsewhere.has(to.ip());
    outgoing.retain_mut(|outgoing| {
        let may_be_the_same = has_port(outgoing) && (is_here || elsewhere.has(outgoing.remote().ip()));
        if may_be_the_same {
            outgoing.is_passed_by();
            outgoing.flow.forbid(Why::OtherWriter);
        }
        !may_be_the_same
    });
}

/// The pieces of a datagram in one; the memory is taken once.
fn gathered<'a>(whole: &'a mut Vec<u8>, pieces: &[IoSlice<'_>], total: usize) -> &'a [u8] {
    whole.clear();
    whole.reserve(total);
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole
}
