//! What a socket sends to one group, where the user has declared that groups are of programs of this domain alone (`multicast = "host"`): by a window to each member, or by
//! the kernel to all of them.
//!
//! Who is a member the kernel says: whoever has the group's port at every address or at the group's. What it said holds as long as the port's mark is the same ([`beeline_domain::PortMarks`]), which is
//! looked at before each datagram. Where one of these sockets is another than a member with which this socket's process has agreed on a window, the kernel has the datagram. So no datagram goes
//! both ways, and each way reaches all. Each member's window is left and taken up as that of any other socket (`outgoing.rs`); all of them at the same time. Record 0085.

use std::net::{IpAddr, SocketAddrV4};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use beeline_domain::{ConnectionEnds, GroupMember, PortMarks, RegistryError};
use beeline_socket_rules::Why;
use beeline_tcp::{Bound, bound_to_port};

use super::flow::{Asking, Flow, Worth};
use super::outgoing::{BUSY_DATAGRAMS, Outgoing, Prospect, Put, QUIET};
use crate::held;
use crate::marks::is_lost;

/// Members of a group that have a window each; where there are more, the kernel has them all.
const MOST_MEMBERS: usize = 16;
/// A socket of somebody who leaves no marks is found as late as this.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same while a member has no window yet.
const LOOK_SOON: Duration = Duration::from_millis(20);
/// Each pause in vain of a sender that makes none itself has the next one come behind twice as many datagrams, so often.
const MOST_DOUBLINGS: u32 = 10;

/// Windows of senders are not offered by what they send.
static NO_OFFERS: AtomicBool = AtomicBool::new(false);

/// As whom the members of a group know a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) namespace: u64,
    pub(crate) address: SocketAddrV4,
    /// By which what it sends to the group leaves, and comes to those who have joined there.
    pub(crate) device: u32,
    pub(crate) cookie: u64,
    pub(crate) number: i32,
}

pub(crate) struct Group {
    to: SocketAddrV4,
    worth: Worth,
    /// Since it was worth it.
    source: Option<Source>,
    is_forbidden: bool,
    members: Vec<Member>,
    /// Of sockets that are members no more, as long as somebody has their cookies or places: one that comes back has the same.
    former: Vec<Former>,
    /// Datagrams by the kernel that a sender with pauses would have stored, since it has last made one, and how many of these were in vain.
    busy: u32,
    vain: u32,
    /// Whether each socket that has what is sent to the group is one of them.
    are_all: bool,
    mark: Option<NonZeroU64>,
    looked_at: Option<Instant>,
}

struct Member {
    cookie: u64,
    flow: Arc<Flow>,
    outgoing: Option<Outgoing>,
}

struct Former {
    cookie: u64,
    flow: Arc<Flow>,
}

impl Member {
    /// What is in its window comes before what the kernel has next, also where it has not come to the first datagram there.
    fn leave_window(&mut self) {
        if let Some(mut outgoing) = self.outgoing.take() {
            outgoing.go_down();
        }
    }

    fn leave(&mut self) {
        self.leave_window();
        self.flow.leave();
    }

    /// What has to be remembered of one that has ended.
    fn into_former(self) -> Option<Former> {
        let Member { cookie, flow, .. } = self;
        flow.is_in_use().then_some(Former { cookie, flow })
    }
}

/// Where the next datagram goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GroupRoute {
    Windows,
    Kernel,
    /// By windows, behind a pause in which nothing is sent.
    Pause(Duration),
    /// By the kernel, and the marks have to be opened again.
    Lost,
}

/// Begins to look for the process of a member.
pub(crate) type Meet<'a> = &'a dyn Fn(Asking, u64, ConnectionEnds);

impl Group {
    pub(crate) fn new(to: SocketAddrV4) -> Self {
        Group {
            to,
            worth: Worth::new(),
            source: None,
            is_forbidden: false,
            members: Vec::new(),
            former: Vec::new(),
            busy: 0,
            vain: 0,
            are_all: false,
            mark: None,
            looked_at: None,
        }
    }

    pub(crate) fn to(&self) -> SocketAddrV4 {
        self.to
    }

    /// Counts a datagram that the kernel carries. Whether the group has become worth windows with it.
    pub(crate) fn count(&mut self) -> bool {
        !self.is_forbidden && self.source.is_none() && self.worth.count()
    }

    pub(crate) fn begin(&mut self, source: Source) {
        self.source = Some(source);
    }

    /// The kernel's for ever.
    pub(crate) fn forbid(&mut self, why: Why) {
        self.is_passed_by();
        self.is_forbidden = true;
        for mut member in self.members.drain(..) {
            member.leave_window();
            member.flow.forbid(why);
            self.former.extend(member.into_former());
        }
    }

    /// The program has changed how it sends to the group: whether windows are worth it, and to whom, is found out anew.
    pub(crate) fn begins_anew(&mut self) {
        let (members, mut former) = (std::mem::take(&mut self.members), std::mem::take(&mut self.former));
        former.retain(|former| former.flow.is_in_use());
        for mut member in members {
            member.leave();
            former.extend(member.into_former());
        }
        *self = Group::new(self.to);
        self.former = former;
    }

    /// Whether it has to be kept for those that were members.
    pub(crate) fn has_former(&self) -> bool {
        !self.former.is_empty()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.outgoing_here().next().is_some() && self.outgoing_here().all(Outgoing::is_up)
    }

    fn outgoing_here(&self) -> impl Iterator<Item = &Outgoing> {
        self.members.iter().filter_map(|member| member.outgoing.as_ref())
    }

    fn outgoing(&mut self) -> impl Iterator<Item = &mut Outgoing> {
        self.members.iter_mut().filter_map(|member| member.outgoing.as_mut())
    }

    /// Where the next datagram goes. `is_alone`: no other call is giving the socket one.
    pub(crate) fn route(
        &mut self,
        marks: &PortMarks,
        meet: Meet<'_>,
        is_alone: impl Fn() -> bool,
    ) -> GroupRoute {
        if self.is_forbidden || self.source.is_none() || held::are_down() {
            return GroupRoute::Kernel;
        }
        self.let_go();
        if let Err(error) = self.look_if_due(marks, meet)
            && is_lost(&error)
        {
            return GroupRoute::Lost;
        }
        if !self.are_all || !self.are_ready() {
            return GroupRoute::Kernel;
        }
        self.route_to_members(is_alone)
    }

    /// The same, where all members have windows.
    fn route_to_members(&mut self, is_alone: impl Fn() -> bool) -> GroupRoute {
        if self.outgoing().any(|outgoing| outgoing.asks_for_rest()) {
            self.outgoing().for_each(Outgoing::answer_rest);
            return GroupRoute::Kernel;
        }
        let mut is_busy = false;
        for outgoing in self.outgoing() {
            match outgoing.prospect(&is_alone) {
                Prospect::Up => {}
                Prospect::Kernel => return GroupRoute::Kernel,
                Prospect::Busy | Prospect::Pause(_) => is_busy = true,
            }
        }
        if is_busy {
            return self.pauses_now_and_then();
        }
        (self.busy, self.vain) = (0, 0);
        self.outgoing().for_each(Outgoing::go_up);
        GroupRoute::Windows
    }

    /// Whether the sender makes a pause, in which members may take all that the kernel has for them, and say so.
    #[cold]
    fn pauses_now_and_then(&mut self) -> GroupRoute {
        self.busy += 1;
        if self.busy < BUSY_DATAGRAMS << self.vain {
            return GroupRoute::Kernel;
        }
        (self.busy, self.vain) = (0, (self.vain + 1).min(MOST_DOUBLINGS));
        GroupRoute::Pause(QUIET)
    }

    /// Lets go of members that take nothing any more: who they are is looked at anew.
    fn let_go(&mut self) {
        for member in &mut self.members {
            if member.outgoing.as_mut().is_some_and(|outgoing| outgoing.is_over()) {
                member.leave();
                self.looked_at = None;
            }
        }
    }

    /// Looks who has the port, if somebody has changed it, or the last look is long ago.
    fn look_if_due(&mut self, marks: &PortMarks, meet: Meet<'_>) -> Result<(), RegistryError> {
        let every = if self.is_up() { LOOK_EVERY } else { LOOK_SOON };
        let is_recent = self.looked_at.is_some_and(|at| at.elapsed() < every);
        // Before each datagram that may go by windows: a socket whose `bind` has returned by now has it.
        if is_recent && (!self.are_all || marks.read(self.to.port()).ok().flatten() == self.mark) {
            return Ok(());
        }
        self.looked_at = Some(Instant::now());
        self.are_all = false;
        let Some(source) = self.source else { return Ok(()) };
        let port = self.to.port();
        let (mark, all) = marks.watch(port, || bound_to_port(source.namespace, port))?;
        if let Ok(Some(all)) = all {
            self.mark = Some(mark);
            self.take_members(&all, source, meet);
        }
        Ok(())
    }

    fn take_members(&mut self, all: &[Bound], source: Source, meet: Meet<'_>) {
        let group = IpAddr::V4(*self.to.ip());
        let hears = |bound: &&Bound| bound.address.is_unspecified() || bound.address == group;
        let hearing: Vec<&Bound> = all.iter().filter(hears).collect();
        self.former.retain(|former| former.flow.is_in_use());
        let is_gone = |member: &mut Member| hearing.iter().all(|bound| bound.cookie != member.cookie);
        for mut member in self.members.extract_if(.., is_gone) {
            member.leave();
            self.former.extend(member.into_former());
        }
        let is_member = |bound: &&Bound| bound.is_open && bound.cookie != source.cookie;
        if hearing.is_empty() || hearing.len() > MOST_MEMBERS || !hearing.iter().all(is_member) {
            return;
        }
        self.are_all = true;
        for bound in hearing {
            self.are_all &= self.take_member(bound.cookie, source, meet);
        }
    }

    /// Whether the socket is one of the members from now on: one that comes back is only when what it had before is nobody's any more.
    fn take_member(&mut self, cookie: u64, source: Source, meet: Meet<'_>) -> bool {
        if self.former.iter().any(|former| former.cookie == cookie) {
            return false;
        }
        let place = self.members.iter().position(|member| member.cookie == cookie);
        // The place in memory of one that has ended has to be free before another one of the same two sockets begins.
        if place.is_some_and(|at| !self.members[at].flow.is_spent()) {
            return true;
        }
        let flow = Arc::new(Flow::new(self.to.into(), source.number, &NO_OFFERS));
        let member = GroupMember { group: self.to, device: source.device, cookie };
        let ends = ConnectionEnds::of_group(source.namespace, source.address, member);
        if let Some(flow) = flow.begin() {
            meet(flow, source.cookie, ends);
        }
        let member = Member { cookie, flow, outgoing: None };
        match place {
            Some(at) => self.members[at] = member,
            None => self.members.push(member),
        }
        true
    }

    /// Whether each member has agreed on a window.
    fn are_ready(&mut self) -> bool {
        for member in &mut self.members {
            if member.outgoing.is_none() {
                let Some(live) = member.flow.live() else { return false };
                member.outgoing = Some(Outgoing::to_member(&member.flow, live));
            }
        }
        true
    }

    /// Stores a datagram in the window of each member, if each makes room; in none else.
    pub(crate) fn send(&mut self, payload: &[u8]) -> Put {
        if !self.outgoing().all(|outgoing| outgoing.could_have(payload)) {
            return Put::Kernel;
        }
        let mut have_room = true;
        for outgoing in self.outgoing() {
            have_room &= outgoing.waits_for_room(payload);
        }
        if !have_room {
            self.outgoing().for_each(Outgoing::rests_behind_full);
            return Put::Kernel;
        }
        // Nobody else stores there, so the room is there still.
        self.outgoing().for_each(|outgoing| _ = outgoing.store(payload));
        Put::Stored
    }

    /// One goes by the kernel.
    pub(crate) fn sends_by_kernel(&mut self, bytes: usize) {
        self.outgoing().for_each(|outgoing| outgoing.sends_by_kernel(bytes));
    }

    /// The kernel has given all that this socket was given to whoever has it. Members are asked to say when they have taken it.
    pub(crate) fn has_sent_by_kernel(&mut self) {
        self.outgoing().for_each(Outgoing::ask_whether_taken);
    }

    /// A call that the engine does not make, or one to another address, is about to send one by the kernel.
    pub(crate) fn is_passed_by(&mut self) {
        self.outgoing().for_each(Outgoing::is_passed);
    }

    /// Whether the engine gives the kernel what goes by the kernel, so that it knows when that is done.
    pub(crate) fn has_begun(&self) -> bool {
        self.source.is_some() && !self.is_forbidden
    }

    /// Answers members that ask for a rest, for a program that sends nothing.
    pub(crate) fn answer_rests(&mut self) {
        self.outgoing().for_each(Outgoing::answer_rest);
        for member in self.members.iter().filter(|member| member.outgoing.is_none()) {
            if let Some(live) = member.flow.live() {
                live.answer_rest();
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::leave);
    }
}

#[cfg(test)]
mod tests;
