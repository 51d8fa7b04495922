//! What becomes of a send, and what a datagram that goes by the kernel means for windows to the same port.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;

use beeline_socket_rules::Why;
use rustix::io::Errno;

use super::flow::Flow;
use super::group::Group;
use super::outgoing::Outgoing;
use super::socket::Writer;
use crate::numbers::{Claim, Pass};

/// What becomes of a send.
pub(crate) enum Step {
    Sent(usize),
    /// The kernel has refused it.
    Failed(Errno),
    /// It is the kernel's; the flow is one that it counts for.
    Kernel(Pass, Option<Arc<Flow>>),
    /// The number is another thing now.
    Again,
}

/// Counted before the lock is let go of: whoever leaves the kernel's path looks whether a call is in it.
pub(super) fn by_kernel(claim: Claim, flow: Option<Arc<Flow>>) -> Step {
    claim.write().map_or(Step::Again, |pass| Step::Kernel(pass, flow))
}

/// One goes by the kernel to an address without a window. Groups, everybody and other addresses of this host may be another name of a socket that has one: what goes by
/// that must not come before what went by the kernel earlier, so such a socket has no window any more, nor have members of another group of its port. Another host's address is no name of a socket of this one.
pub(super) fn passes_by(writer: &mut Writer, to: SocketAddr) {
    let is_other = |group: &&mut Group| group.to().port() == to.port() && SocketAddr::V4(group.to()) != to;
    let has_port = |outgoing: &Outgoing| outgoing.remote().port() == to.port();
    if !writer.outgoing.iter().any(has_port) && !writer.groups.iter_mut().any(|group| is_other(&group)) {
        return;
    }
    let Writer { outgoing, groups, elsewhere, .. } = writer;
    let is_here = !elsewhere.has(to.ip());
    outgoing.retain_mut(|outgoing| {
        let may_be_the_same = has_port(outgoing) && (is_here || elsewhere.has(outgoing.remote().ip()));
        if may_be_the_same {
            outgoing.is_passed_by();
            outgoing.flow.forbid(Why::OtherWriter);
        }
        !may_be_the_same
    });
    if is_here {
        groups.iter_mut().filter(is_other).for_each(|group| group.forbid(Why::OtherWriter));
    }
}

/// The pieces of a datagram in one; the memory is taken once.
pub(super) fn gathered<'a>(whole: &'a mut Vec<u8>, pieces: &[IoSlice<'_>], total: usize) -> &'a [u8] {
    whole.clear();
    whole.reserve(total);
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole
}
