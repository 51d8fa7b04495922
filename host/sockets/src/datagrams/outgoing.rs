//! What is sent to one address by a window, and when that begins and ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use beeline_mmio::{StoreWindow, fence, membarrier};
use beeline_socket_rules::{Carrier, Row};
use beeline_spec::header::lines_of;
use beeline_window::{Sent, Writer};

use super::flow::{Flow, Live};
use crate::held;
use crate::memory::OtherSleeper;
use crate::sleepers::ring_other;
use crate::words::Credits;

/// Of the word before a datagram: the sender came from the kernel's path just before. To a member of a group the number of that beginning is in the bits above, from 1 on.
pub(crate) const BEGINS: u64 = 1;
pub(crate) const BEGIN_SHIFT: u32 = 1;
pub(crate) const PREFIX_BYTES: usize = 8;

/// What the kernel may put off is behind the sender's stores if it has sent nothing by the kernel for so long.
pub(super) const QUIET: Duration = Duration::from_millis(1);
/// A sender that never pauses and hears nothing makes a pause itself, after so many datagrams by the kernel.
pub(super) const BUSY_DATAGRAMS: u32 = 256;
/// How long a sender looks for room. A receiver that runs makes some within it.
const ROOM_WITHIN: Duration = Duration::from_micros(50);
/// How long a receiver has for the first datagram by the window, before one goes by a call that the engine does not make.
const TAKEN_WITHIN: Duration = Duration::from_millis(10);
/// Behind a window that stayed full, so many datagrams go by the kernel, and up to so many times two more each time.
const REST_BEHIND_FULL: u32 = 64;
const MOST_FULL: u32 = 10;
/// The longest datagrams of IPv4 and IPv6.
const LONGEST_V4: usize = 65_507;
const LONGEST_V6: usize = 65_527;

pub(crate) struct Outgoing {
    pub(crate) flow: Arc<Flow>,
    live: Arc<Live>,
    window: Option<Writer<StoreWindow, Credits>>,
    is_up: bool,
    /// Whether the next datagram is the first by the window.
    begins: bool,
    /// The line of that datagram.
    began_at: u64,
    /// Lines that the receiver had freed when it was last waited for in vain.
    stuck_at: Option<u64>,
    sent_by_kernel_at: Instant,
    /// What had come from there when the last one went by the kernel.
    heard_before: u64,
    busy: u32,
    rest: u32,
    /// The rest that the receiver was told of last.
    rested: u64,
    fulls: u32,
    /// Of a member of a group.
    of_group: Option<OfGroup>,
    needs_fence: bool,
    sleepers: [Option<(u16, OtherSleeper)>; 4],
    row: Option<Arc<Row>>,
}

/// What goes to a member of a group leaves the window at any time, whether or not the receiver has come to its first datagram there: somebody who has no window may join. So that window
/// begins only when the receiver has said that it has taken all that the kernel had for it.
#[derive(Debug, Default)]
struct OfGroup {
    begins: u64,
    questions: u64,
    /// Whether something went by the kernel since the last question.
    is_behind: bool,
}

/// What became of a datagram for which [`Route::Window`] was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Stored,
    /// The kernel would have dropped it, too.
    Dropped,
    /// It is the kernel's, and those behind it.
    Kernel,
}

/// Whether a datagram may go by the window.
pub(crate) enum Prospect {
    Up,
    Kernel,
    /// Not as long as the sender makes no pause, to a member of a group.
    Busy,
    /// Behind a pause in which nothing is sent.
    Pause(Duration),
}

/// Which path a datagram takes.
pub(crate) enum Route {
    Window,
    Kernel,
    /// By the window, after a pause in which nothing is sent.
    Pause(Duration),
    /// The other side takes nothing any more.
    Over,
}

impl Outgoing {
    pub(crate) fn new(flow: &Arc<Flow>, live: Arc<Live>) -> Self {
        Outgoing {
            flow: Arc::clone(flow),
            live,
            window: None,
            is_up: false,
            begins: false,
            began_at: 0,
            stuck_at: None,
            sent_by_kernel_at: Instant::now(),
            heard_before: flow.heard(),
            busy: 0,
            rest: 0,
            rested: 0,
            fulls: 0,
            of_group: None,
            needs_fence: !membarrier::is_registered(),
            sleepers: [const { None }; 4],
            row: flow.row(),
        }
    }

    pub(crate) fn to_member(flow: &Arc<Flow>, live: Arc<Live>) -> Self {
        // What was sent to it before went by the kernel.
        let of_group = OfGroup { is_behind: true, ..OfGroup::default() };
        Outgoing { of_group: Some(of_group), ..Outgoing::new(flow, live) }
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.flow.remote
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether the other side takes nothing any more. One load each: the receiver says that it has ended, and the domain that its process is gone.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.live.slot().has_ended_datagrams() || self.live.has_departed()
    }

    /// Where the next datagram goes. `is_alone`: no other call is giving the socket one.
    #[inline]
    pub(crate) fn route(&mut self, is_alone: impl FnOnce() -> bool) -> Route {
        if self.is_over() {
            return Route::Over;
        }
        // Somebody has said that windows are to be left alone (`beeline fabric down`).
        if held::are_down() {
            return Route::Kernel;
        }
        let rest = self.live.slot().rest_asked_for();
        if rest != 0 && (rest == self.rested || self.begins_rest(rest)) {
            return Route::Kernel;
        }
        match self.prospect(is_alone) {
            Prospect::Up => {
                self.go_up();
                Route::Window
            }
            Prospect::Kernel | Prospect::Busy => Route::Kernel,
            Prospect::Pause(pause) => Route::Pause(pause),
        }
    }

    /// Tells the receiver that nothing comes by the window any more, if what goes by the kernel from now on cannot be taken before what is in the window.
    #[cold]
    fn begins_rest(&mut self, rest: u64) -> bool {
        if self.is_up && self.of_group.is_none() && self.waits_for_first() {
            return false;
        }
        self.go_down();
        self.rested = rest;
        self.live.slot().begin_rest(rest);
        true
    }

    /// As [`Outgoing::route`] does before a datagram, for a program that sends none.
    pub(crate) fn answer_rest(&mut self) {
        let rest = self.live.slot().rest_asked_for();
        if rest != 0 && rest != self.rested {
            self.begins_rest(rest);
        }
    }

    pub(crate) fn asks_for_rest(&self) -> bool {
        self.live.slot().rest_asked_for() != 0
    }

    /// Whether the window may be used, if no rest is asked for. Nothing is changed that the receiver sees.
    #[inline]
    pub(crate) fn prospect(&mut self, is_alone: impl FnOnce() -> bool) -> Prospect {
        if self.is_up { Prospect::Up } else { self.may_go_up(is_alone) }
    }

    #[cold]
    fn may_go_up(&mut self, is_alone: impl FnOnce() -> bool) -> Prospect {
        if self.rest > 0 {
            self.rest -= 1;
            return Prospect::Kernel;
        }
        if self.window.is_none() {
            self.window = self.live.slot().offered_window();
        }
        let Some(window) = &mut self.window else { return Prospect::Kernel };
        if !is_alone() {
            return Prospect::Kernel;
        }
        match &self.of_group {
            Some(of_group) if of_group.is_behind => return Prospect::Kernel,
            // One that sends without pauses asks again before it can have an answer.
            Some(of_group) if !self.live.slot().is_taken(of_group.questions) => return Prospect::Busy,
            Some(_) => {}
            // All of it, so that the receiver comes to the first datagram while there is room.
            None if window.refresh().ok() != Some(window.lines()) => return Prospect::Kernel,
            None => {}
        }
        let since = self.sent_by_kernel_at.elapsed();
        if since < QUIET && self.flow.heard() == self.heard_before {
            if self.of_group.is_some() {
                return Prospect::Busy;
            }
            self.busy += 1;
            if self.busy < BUSY_DATAGRAMS {
                return Prospect::Kernel;
            }
            return Prospect::Pause(QUIET - since);
        }
        Prospect::Up
    }

    /// Uses the window from now on; nothing where it is used already.
    #[inline]
    pub(crate) fn go_up(&mut self) {
        if !self.is_up {
            (self.is_up, self.begins, self.busy) = (true, true, 0);
            self.of_group.iter_mut().for_each(|of_group| of_group.begins += 1);
            self.row.iter().for_each(|row| row.sends_by(Carrier::Window));
        }
    }

    /// Whether the kernel would send so much, and the window has room for it when it is empty.
    pub(crate) fn could_have(&self, payload: &[u8]) -> bool {
        let most = self.window.as_ref().map_or(0, |window| window.max_payload_bytes());
        payload.len() <= LONGEST_V4 && payload.len() + PREFIX_BYTES <= most
    }

    /// Looks for room for a while, unless that was in vain before and the receiver has taken nothing since.
    pub(crate) fn waits_for_room(&mut self, payload: &[u8]) -> bool {
        let Some(window) = &mut self.window else { return false };
        let lines = lines_of((payload.len() + PREFIX_BYTES) as u32);
        if window.free_lines() >= lines {
            return true;
        }
        let (start, mut full_since) = (window.position().0, None);
        loop {
            // One whose credits cannot be has none.
            match window.refresh() {
                Ok(free) if free >= lines => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
            let freed = start + u64::from(window.free_lines()) - u64::from(window.lines());
            let since = *full_since.get_or_insert_with(Instant::now);
            if self.stuck_at == Some(freed) || since.elapsed() >= ROOM_WITHIN {
                self.stuck_at = Some(freed);
                // It may sleep behind what it has not taken.
                self.wake();
                return false;
            }
            std::hint::spin_loop();
        }
    }

    /// Sends by the kernel for a while, if the window was full when it was looked for room last.
    pub(crate) fn rests_behind_full(&mut self) {
        if self.stuck_at.is_some() {
            self.rest = REST_BEHIND_FULL << self.fulls;
            self.fulls = (self.fulls + 1).min(MOST_FULL);
        }
    }

    /// Stores a datagram for which there is room.
    #[inline]
    pub(crate) fn store(&mut self, payload: &[u8]) -> Put {
        let Some(window) = &mut self.window else { return Put::Dropped };
        let begin = self.of_group.as_ref().map_or(0, |of_group| of_group.begins);
        let (prefix, start) =
            (if self.begins { BEGINS | begin << BEGIN_SHIFT } else { 0 }, window.position().0);
        if !matches!(window.try_send_prefixed(prefix, payload), Ok(Sent::Sent)) {
            self.row.iter().for_each(|row| row.dropped());
            return Put::Dropped;
        }
        self.is_stored(start, payload.len());
        Put::Stored
    }

    /// Stores a datagram, if it is not too long for anybody, and the receiver makes room.
    #[inline]
    pub(crate) fn send(&mut self, payload: &[u8]) -> Put {
        let longest = match self.flow.remote {
            SocketAddr::V6(remote) if remote.ip().to_ipv4_mapped().is_none() => LONGEST_V6,
            _ => LONGEST_V4,
        };
        if payload.len() > longest {
            // The kernel sends it no further.
            return Put::Kernel;
        }
        let Some(window) = &mut self.window else { return Put::Kernel };
        let (prefix, start) = (if self.begins { BEGINS } else { 0 }, window.position().0);
        let mut full_since = None;
        loop {
            match window.try_send_prefixed(prefix, payload) {
                Ok(Sent::Sent) => break,
                Ok(Sent::Full) => {}
                // Longer than the window, or credits that cannot be.
                Err(error) => {
                    tracing::debug!(%error, "a datagram goes by the kernel");
                    self.go_down();
                    return Put::Kernel;
                }
            }
            let freed = start + u64::from(window.free_lines()) - u64::from(window.lines());
            let since = *full_since.get_or_insert_with(Instant::now);
            if self.stuck_at == Some(freed) || since.elapsed() >= ROOM_WITHIN {
                self.stuck_at = Some(freed);
                return self.overflow(freed);
            }
            std::hint::spin_loop();
        }
        self.is_stored(start, payload.len());
        Put::Stored
    }

    #[inline]
    fn is_stored(&mut self, start: u64, bytes: usize) {
        if self.begins {
            (self.begins, self.began_at) = (false, start);
            self.fulls = self.fulls.saturating_sub(1);
        }
        self.stuck_at = None;
        self.row.iter().for_each(|row| row.sent(Carrier::Window, bytes));
        self.wake();
    }

    /// The window stays full. Behind the first datagram by it the receiver empties the kernel's queue before: what is sent there now would come too early until
    /// the receiver has taken that one.
    #[cold]
    fn overflow(&mut self, freed: u64) -> Put {
        self.wake();
        if freed <= self.began_at {
            self.row.iter().for_each(|row| row.dropped());
            return Put::Dropped;
        }
        self.rest = REST_BEHIND_FULL << self.fulls;
        self.fulls = (self.fulls + 1).min(MOST_FULL);
        self.go_down();
        Put::Kernel
    }

    /// Sends by the kernel from now on, until it is tried again.
    pub(crate) fn go_down(&mut self) {
        if std::mem::take(&mut self.is_up) {
            if let Some(of_group) = &self.of_group {
                self.live.slot().end_begin(of_group.begins);
            }
            self.row.iter().for_each(|row| row.sends_by(Carrier::Socket));
        }
    }

    /// A call that the engine does not make is about to send one by the kernel. The receiver gets some time to take the first one by the window before.
    #[cold]
    pub(crate) fn is_passed_by(&mut self) {
        let since = Instant::now();
        while self.is_up && self.waits_for_first() && since.elapsed() < TAKEN_WITHIN {
            // Its receiver may need this core.
            std::thread::yield_now();
        }
        self.is_passed();
    }

    /// One went by the kernel that it does not know of.
    pub(crate) fn is_passed(&mut self) {
        self.go_down();
        self.of_group.iter_mut().for_each(|of_group| of_group.is_behind = true);
        (self.sent_by_kernel_at, self.heard_before) = (Instant::now(), self.flow.heard());
    }

    /// Whether the first datagram by the window is not known to be taken.
    fn waits_for_first(&mut self) -> bool {
        let Some(window) = &mut self.window else { return false };
        let Ok(free) = window.refresh() else { return true };
        window.position().0 + u64::from(free) <= self.began_at + u64::from(window.lines())
    }

    /// One goes by the kernel.
    pub(crate) fn sends_by_kernel(&mut self, bytes: usize) {
        self.is_passed();
        self.row.iter().for_each(|row| row.sent(Carrier::Socket, bytes));
    }

    /// All that went by the kernel is on its way: asks the receiver to say when it has taken that.
    pub(crate) fn ask_whether_taken(&mut self) {
        if let Some(of_group) = &mut self.of_group {
            of_group.is_behind = false;
            of_group.questions += 1;
            self.live.slot().ask_whether_taken(of_group.questions);
        }
    }

    /// Rings whoever sleeps at the other end.
    #[inline]
    fn wake(&mut self) {
        if self.needs_fence {
            fence::order_all();
        }
        let wants = self.live.slot().wants_rung();
        if wants != 0 {
            // A set of the other side tells each arrival as an edge.
            self.live.slot().count_sent();
            if self.needs_fence {
                // A set that has announced itself looks at the count alone.
                fence::order_all();
            }
            self.wake_each(wants);
        }
    }

    fn wake_each(&mut self, wants: u64) {
        let memory = self.live.slot().memory();
        for (place, last) in self.sleepers.iter_mut().enumerate() {
            let id = (wants >> (16 * place)) as u16;
            if id == 0 {
                continue;
            }
            if last.as_ref().is_none_or(|(last, _)| *last != id) {
                *last = Some((id, memory.other_sleeper(id)));
            }
            let Some((_, sleeper)) = last else { continue };
            if let Some(to_ring) = sleeper.to_ring(memory)
                && ring_other(memory, sleeper)
            {
                sleeper.rang(memory, &to_ring);
                self.row.iter().for_each(|row| row.rang());
            }
        }
    }
}
