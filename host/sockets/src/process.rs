//! What calls on every connection of a process have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use beeline_domain::{ConnectionEnds, DomainConfig, PortMarks, RegistryError};
use beeline_socket_rules::{Retain, Rules, Run, Settings, Why};
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::background::Place;
use crate::carried::Carried;
use crate::marks::Marks;
use crate::memory::WINDOW_PLACE_BYTES;
use crate::poll::timespec;
use crate::readiness::Sets;
use crate::sleepers::OwnBell;

/// Rules, the memory that is left, and who is told of what.
pub(crate) struct Process {
    settings: Settings,
    place: Place,
    memory_left: AtomicUsize,
    restarts: AtomicBool,
    sets: Arc<Sets<Carried>>,
    marks: Marks,
    sleep: Sleep,
}

/// A sleep on descriptors, as `poll` of [`rustix::event`] makes it.
pub type Sleep = fn(&mut [PollFd<'_>], Option<&Timespec>) -> Result<usize, Errno>;

impl Process {
    pub(crate) fn new(settings: Settings, domain: DomainConfig) -> Self {
        let memory_left = AtomicUsize::new(memory_bytes(&settings));
        let sets = Arc::new(Sets::new(|| OwnBell::new().ok()));
        let wants_copies = settings.rules().retain == Retain::Copy;
        let (other_users, has_hosts) = (settings.rules().other_users, !settings.rules().hosts.is_empty());
        let (run, sets_of_place) = (Run::of_environment(), Arc::clone(&sets));
        let place = Place { domain, wants_copies, other_users, has_hosts, run, sets: sets_of_place };
        let restarts = AtomicBool::new(true);
        Process { settings, place, memory_left, restarts, sets, marks: Marks::new(), sleep: poll }
    }

    pub(crate) fn rules(&self) -> &Rules {
        self.settings.rules()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Ends as the rules know them: of a connection between two hosts that they name, wherever its other end is.
    pub(crate) fn placed(&self, ends: ConnectionEnds) -> ConnectionEnds {
        match !ends.is_unix() && self.settings.are_between_hosts(ends.local(), ends.remote()) {
            true => ends.between_hosts(),
            false => ends,
        }
    }

    /// Whether the rules let a connection leave the kernel.
    pub(crate) fn decide(&self, ends: &ConnectionEnds) -> Result<(), Why> {
        match ends.is_unix() {
            true => self.settings.decide_unix(),
            false => self.settings.decide(ends.local(), ends.remote()),
        }
    }

    /// Bytes of a window by which this process receives.
    pub(crate) fn window_bytes(&self) -> usize {
        (self.rules().window_bytes as usize).min(WINDOW_PLACE_BYTES)
    }

    pub(crate) fn take_memory(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.memory_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    pub(crate) fn give_memory(&self, bytes: usize) {
        self.memory_left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// In a child of fork, which has no windows.
    pub(crate) fn begin_anew(&self) {
        self.sets.forked();
        self.memory_left.store(memory_bytes(&self.settings), Ordering::Relaxed);
    }

    /// The marks of ports of the domain; none where they cannot be opened.
    pub(crate) fn marks(&self) -> Option<&PortMarks> {
        self.marks.get(&self.place.domain)
    }

    /// The same, behind the loss of their descriptor.
    pub(crate) fn reopen_marks(&self, lost: &PortMarks) {
        let _ = self.marks.reopen(lost, &self.place.domain);
    }

    /// Gives a port another mark, in a handler as well.
    pub(crate) fn mark(&self, port: u16) -> Result<(), RegistryError> {
        self.marks.mark(port, &self.place.domain)
    }

    /// The program's epoll sets.
    pub(crate) fn sets(&self) -> &Sets<Carried> {
        &self.sets
    }

    pub(crate) fn set_sleep(&mut self, sleep: Sleep) {
        self.sleep = sleep;
    }

    /// Sleeps until one of them is ready, or the time is over, which is no error: the caller looks at the clock. A thread may be cancelled here.
    pub(crate) fn sleep(&self, watched: &mut [PollFd<'_>], left: Option<Duration>) -> Result<(), Errno> {
        (self.sleep)(watched, timespec(left).as_ref()).map(drop)
    }

    pub(crate) fn set_restarts_calls(&self, restarts: bool) {
        self.restarts.store(restarts, Ordering::Relaxed);
    }

    pub(crate) fn restarts_calls(&self) -> bool {
        self.restarts.load(Ordering::Relaxed)
    }
}

fn memory_bytes(settings: &Settings) -> usize {
    usize::try_from(settings.rules().memory_bytes).unwrap_or(usize::MAX)
}

/// For the blank of a window.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // Without random numbers a blank is one that a program might send; the escapes of a window stand that.
    let _ = getrandom::fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}
