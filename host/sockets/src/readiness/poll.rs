//! `poll` and `ppoll`: windows of the listed connections, the kernel, both for a while, and then the kernel's own sleep with the
//! thread's bell at the end of the list.

use std::cell::Cell;
use std::hint;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::time::Duration;

use beeline_socket_rules::Spin;
use rustix::io::Errno;
use smallvec::SmallVec;

use super::budget::Budget;
use super::call::{ASK_EVERY, Call, LOOKS_GIVEN, LOOKS_PER_TIME, SPIN_ASK_EVERY, UNRUNG_SLEEP};
use super::entry::PollEntry;
use super::kernel::PollKernel;
use super::watched::{Connections, Found, Sleeper, Watched};
use crate::courtesy::Courtesy;

/// `POLLIN` and `POLLRDNORM`.
const READABLE: i16 = 0x41;
/// `POLLPRI`, `POLLRDBAND` (which no socket of TCP has, and every select asks for) and `POLLRDHUP`: what nobody misses for the time in which
/// the kernel is not asked.
const LATE: i16 = 0x2082;
/// `POLLOUT`, `POLLWRNORM` and `POLLWRBAND`, as the kernel tells all of them of a socket.
const WRITABLE: i16 = 0x304;
/// `POLLIN`.
const IN: i16 = 1;
/// Lists up to this length need no memory of the heap.
const FEW: usize = 16;

struct Memory {
    budget: Budget,
    asked_at: Cell<Duration>,
}

thread_local! {
    static MEMORY: Memory = const { Memory { budget: Budget::new(), asked_at: Cell::new(Duration::ZERO) } };
}

/// The connections of a list that may have news, each with its place.
pub(super) struct Listed<'a, C: Connections> {
    connections: &'a C,
    watched: SmallVec<[(usize, C::Watched); FEW]>,
    /// Places of connections that are asked for room, and send by windows.
    writable: SmallVec<[usize; FEW]>,
    /// Others stay with the kernel for the time of the call.
    _passes: SmallVec<[C::Pass; FEW]>,
    /// Whether the kernel has to be asked in each look: for something that it alone knows, and that no network could have kept.
    is_kernel_asked: bool,
}

/// Polls as `ppoll` does; `None` is no limit. `sleeper` gives the calling thread's.
///
/// # Errors
/// What the kernel says.
pub fn poll<C: Connections>(
    connections: &C,
    entries: &mut [PollEntry],
    kernel: &mut impl PollKernel,
    limit: Option<Duration>,
    spin: Spin,
    sleeper: impl Fn() -> Option<<C::Watched as Watched>::Sleeper>,
) -> Result<usize, Errno> {
    if !connections.are_any() {
        return kernel.sleep(entries, limit);
    }
    let listed = Listed::new(connections, entries);
    if listed.watched.is_empty() && listed.writable.is_empty() {
        return kernel.sleep(entries, limit);
    }
    let call = Call::new(kernel, limit);
    listed.poll(entries, kernel, call, spin, sleeper)
}

/// A thread that announces that it sleeps, and the connections whose senders ring it.
struct Asleep<'a, W: Watched> {
    sleeper: &'a W::Sleeper,
    added: SmallVec<[W; FEW]>,
}

impl<W: Watched> Drop for Asleep<'_, W> {
    /// Of a thread that is cancelled, too.
    fn drop(&mut self) {
        self.sleeper.withdraw();
        self.added.iter().for_each(|connection| connection.remove_sleeper(self.sleeper));
    }
}

impl<'a, C: Connections> Listed<'a, C> {
    pub(super) fn new(connections: &'a C, entries: &[PollEntry]) -> Self {
        let (mut watched, mut writable, mut passes) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
        let mut is_kernel_asked = false;
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.number >= 0) {
            let is_writable = entry.asked & WRITABLE != 0 && connections.is_writable(entry.number);
            if is_writable {
                writable.push(at);
            }
            match connections.find(entry.number) {
                Found::Watched(connection) => {
                    watched.push((at, connection));
                    let known = READABLE | LATE | if is_writable { WRITABLE } else { 0 };
                    is_kernel_asked |= entry.asked & !known != 0;
                }
                Found::Kernel(pass) => passes.push(pass),
                Found::Listener => {}
                // A pipe, or nothing, has no way on which its news could be late.
                Found::Unknown => is_kernel_asked = true,
            }
        }
        Listed { connections, watched, writable, _passes: passes, is_kernel_asked }
    }

    /// Whether a connection is asked for what a window can tell.
    pub(super) fn has_asked(&self, entries: &[PollEntry]) -> bool {
        !self.writable.is_empty() || self.watched.iter().any(|(at, _)| entries[*at].asked & READABLE != 0)
    }

    /// Polls, in a call that has just begun.
    pub(super) fn poll(
        &self,
        entries: &mut [PollEntry],
        kernel: &mut impl PollKernel,
        call: Call,
        spin: Spin,
        sleeper: impl Fn() -> Option<<C::Watched as Watched>::Sleeper>,
    ) -> Result<usize, Errno> {
        // A clock costs as much as a look.
        let mut now = call.start;
        let (mut has_waited, mut courtesy) = (false, Courtesy::new(LOOKS_GIVEN));
        let ready = loop {
            let ready = self.look(entries, kernel, now)?;
            if ready > 0 || call.is_over(kernel.now()) {
                break ready;
            }
            has_waited = true;
            if let ControlFlow::Break(ready) = self.spin(entries, kernel, &call, spin, &mut courtesy)? {
                break ready;
            }
            if let ControlFlow::Break(ready) = self.sleep(entries, kernel, &call, sleeper())? {
                break ready;
            }
            now = kernel.now();
        };
        if has_waited {
            let waited = kernel.now().saturating_sub(call.start).saturating_sub(courtesy.given());
            MEMORY.with(|memory| memory.budget.waited(spin, waited));
        }
        Ok(ready)
    }

    /// Tells of windows beside what is told already. Returns how many more entries are told of.
    fn tell(&self, entries: &mut [PollEntry]) -> usize {
        let mut more = 0;
        for (at, connection) in &self.watched {
            let entry = &mut entries[*at];
            let told = entry.asked & READABLE;
            if told != 0 && connection.has_news() {
                more += usize::from(entry.told == 0);
                entry.told |= told;
            }
        }
        for at in &self.writable {
            let entry = &mut entries[*at];
            if self.connections.is_writable(entry.number) {
                more += usize::from(entry.told == 0);
                entry.told |= entry.asked & WRITABLE;
            }
        }
        more
    }

    fn has_news(&self, entries: &[PollEntry]) -> bool {
        self.watched
            .iter()
            .any(|(at, connection)| entries[*at].asked & READABLE != 0 && connection.has_news())
    }

    /// What is there now. The kernel is left out for a while where a window has something, or room.
    fn look(
        &self,
        entries: &mut [PollEntry],
        kernel: &mut impl PollKernel,
        now: Duration,
    ) -> Result<usize, Errno> {
        let is_due = MEMORY.with(|memory| now.saturating_sub(memory.asked_at.get()) >= ASK_EVERY);
        if !self.is_kernel_asked && !is_due {
            entries.iter_mut().for_each(|entry| entry.told = 0);
            let ready = self.tell(entries);
            if ready > 0 {
                return Ok(ready);
            }
        }
        self.ask(entries, kernel, now)
    }

    fn ask(
        &self,
        entries: &mut [PollEntry],
        kernel: &mut impl PollKernel,
        now: Duration,
    ) -> Result<usize, Errno> {
        MEMORY.with(|memory| memory.asked_at.set(now));
        let told = kernel.look(entries)?;
        Ok(told + self.tell(entries))
    }

    fn spin(
        &self,
        entries: &mut [PollEntry],
        kernel: &mut impl PollKernel,
        call: &Call,
        spin: Spin,
        courtesy: &mut Courtesy,
    ) -> Result<ControlFlow<usize>, Errno> {
        let budget = MEMORY.with(|memory| memory.budget.now(spin));
        let start = kernel.now();
        let (mut now, mut asked_at) = (start, start);
        courtesy.begin_to_spin();
        while budget.is_none_or(|budget| now.saturating_sub(start) < courtesy.extended(budget)) {
            for _ in 0..LOOKS_PER_TIME {
                if self.has_news(entries) {
                    return self.look(entries, kernel, kernel.now()).map(ControlFlow::Break);
                }
                hint::spin_loop();
            }
            now = kernel.now();
            if now.saturating_sub(asked_at) >= SPIN_ASK_EVERY || call.is_over(now) {
                asked_at = now;
                let ready = self.ask(entries, kernel, now)?;
                if ready > 0 || call.is_over(now) {
                    return Ok(ControlFlow::Break(ready));
                }
                // The sleep ends by the signal at once.
                if kernel.is_interrupted() {
                    break;
                }
            }
            // A user who has it spin for ever has a core for it.
            if budget.is_some() {
                courtesy.give_way();
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn sleep(
        &self,
        entries: &mut [PollEntry],
        kernel: &mut impl PollKernel,
        call: &Call,
        sleeper: Option<<C::Watched as Watched>::Sleeper>,
    ) -> Result<ControlFlow<usize>, Errno> {
        let Some(sleeper) = sleeper else {
            return self.sleep_unrung(entries, kernel, call);
        };
        let mut asleep = Asleep::<C::Watched> { sleeper: &sleeper, added: SmallVec::new() };
        for (at, connection) in &self.watched {
            if connection.add_sleeper(&sleeper) {
                asleep.added.push(*connection);
            } else {
                self.connections.forbid(entries[*at].number);
            }
        }
        sleeper.announce();
        // The last look.
        if self.has_news(entries) {
            Ok(ControlFlow::Continue(()))
        } else if asleep.added.len() < self.watched.len() {
            self.sleep_unrung(entries, kernel, call)
        } else {
            self.sleep_with(entries, kernel, call, &sleeper)
        }
    }

    fn sleep_with(
        &self,
        entries: &mut [PollEntry],
        kernel: &mut impl PollKernel,
        call: &Call,
        sleeper: &impl Sleeper,
    ) -> Result<ControlFlow<usize>, Errno> {
        let mut all = SmallVec::<[PollEntry; FEW + 1]>::from_slice(entries);
        all.push(PollEntry { number: sleeper.bell().as_raw_fd(), asked: IN, told: 0 });
        let told = match kernel.sleep(&mut all, call.left(kernel.now(), None)) {
            // One more than a list may have.
            Err(Errno::INVAL) => return self.sleep_unrung(entries, kernel, call),
            told => told?,
        };
        let is_rung = all.pop().is_some_and(|bell| bell.told != 0);
        if is_rung {
            // Where it is not this thread's bell any more, the next sleep finds that, and is by another.
            sleeper.clear_at_next_sleep();
        }
        entries.copy_from_slice(&all);
        let ready = told - usize::from(is_rung) + self.tell(entries);
        // Nothing at all: the kernel says that the time is over.
        Ok(if ready > 0 || told == 0 { ControlFlow::Break(ready) } else { ControlFlow::Continue(()) })
    }

    /// Sleeps for short, since some window has nobody to ring.
    fn sleep_unrung(
        &self,
        entries: &mut [PollEntry],
        kernel: &mut impl PollKernel,
        call: &Call,
    ) -> Result<ControlFlow<usize>, Errno> {
        let told = kernel.sleep(entries, call.left(kernel.now(), Some(UNRUNG_SLEEP)))?;
        let ready = told + self.tell(entries);
        let is_over = ready > 0 || call.is_over(kernel.now());
        Ok(if is_over { ControlFlow::Break(ready) } else { ControlFlow::Continue(()) })
    }
}
