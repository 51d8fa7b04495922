//! The wait of a set: windows, the kernel, both for a while, and then the kernel's own sleep with the bell in it.

use std::hint;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use beeline_socket_rules::Spin;
use rustix::event::epoll::Event;
use rustix::io::Errno;

use super::call::{ASK_EVERY, Call, LOOKS_GIVEN, LOOKS_PER_TIME, SPIN_ASK_EVERY, UNRUNG_SLEEP};
use super::kernel::EpollKernel;
use super::members::join;
use super::set::Set;
use super::watched::Watched;
use crate::courtesy::Courtesy;
use crate::poll::poll_for;

/// What a sleep ended in: the call's result, or another look.
type Slept = ControlFlow<usize>;

/// What the kernel told of the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Ring,
    /// It is readable for as long as a child has its file, and nobody can make it unreadable.
    Stuck,
}

/// Looks at the kernel for one call that has room for a single event. Behind the bell comes what else there is: the kernel goes round what it has to tell.
const LOOKS_BEHIND_BELL: u32 = 2;

impl<W: Watched> Set<W> {
    /// Waits for events as `epoll_pwait2` does; `None` is no limit. `out` is never looked at before it is written.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(
        &self,
        kernel: &mut impl EpollKernel,
        out: &mut [Event],
        limit: Option<Duration>,
        spin: Spin,
    ) -> Result<usize, Errno> {
        if self.is_inherited() {
            return self.wait_inherited(kernel, out, limit);
        }
        let waited = self.wait_here(kernel, out, limit, spin);
        if let Some(sleeper) = self.sleeper() {
            self.asleep.pass_on(sleeper, || self.has_reportable());
        }
        waited
    }

    fn wait_here(
        &self,
        kernel: &mut impl EpollKernel,
        out: &mut [Event],
        limit: Option<Duration>,
        spin: Spin,
    ) -> Result<usize, Errno> {
        let call = Call::new(kernel, limit);
        let (mut has_waited, mut courtesy) = (false, Courtesy::new(LOOKS_GIVEN));
        let ready = loop {
            self.serve(kernel.epoll());
            if self.has_active() {
                let ready = self.take(kernel, out)?;
                if ready > 0 || call.is_over(kernel.now()) {
                    break ready;
                }
                has_waited = true;
                if let ControlFlow::Break(ready) = self.spin(kernel, out, &call, spin, &mut courtesy)? {
                    break ready;
                }
            }
            if let ControlFlow::Break(ready) = self.sleep(kernel, out, &call)? {
                break ready;
            }
        };
        if has_waited {
            let waited = kernel.now().saturating_sub(call.start);
            self.budget.waited(spin, waited.saturating_sub(courtesy.given()));
        }
        Ok(ready)
    }

    fn has_active(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 0
    }

    fn has_reportable(&self) -> bool {
        self.lock().has_reportable()
    }

    /// What is there now. The kernel is asked when windows have nothing, or when it was not for a while; it has half of the room then.
    fn take(&self, kernel: &mut impl EpollKernel, out: &mut [Event]) -> Result<usize, Errno> {
        let now = kernel.now();
        let asked_at = Duration::from_nanos(self.asked_at.load(Ordering::Relaxed));
        let is_due = now.saturating_sub(asked_at) >= ASK_EVERY;
        let room = match out.len() {
            most if !is_due => most,
            most if most > 1 => most - most / 2,
            most => most * usize::from(self.is_windows_turn.fetch_xor(true, Ordering::Relaxed)),
        };
        let (news, visited) = self.lock().take(&mut out[..room], 0, usize::MAX);
        if news > 0 && (!is_due || news == out.len()) {
            return Ok(news);
        }
        let (told, is_rung) = match self.ask(kernel, &mut out[news..], now) {
            Err(errno) if news == 0 => return Err(errno),
            asked => asked.unwrap_or((0, false)),
        };
        let mut filled = news;
        for at in news..news + told {
            let event = out[at];
            if !join(&mut out[..news], event) {
                out[filled] = event;
                filled += 1;
            }
        }
        let mut members = self.lock();
        // A ring that was cleared may have been for any of them.
        let rest = if is_rung { usize::MAX } else { members.looked_at_count().saturating_sub(visited) };
        Ok(members.take(out, filled, rest).0)
    }

    /// Asks the kernel without waiting. Returns how many events are the program's, and whether the bell was rung.
    fn ask(
        &self,
        kernel: &mut impl EpollKernel,
        out: &mut [Event],
        now: Duration,
    ) -> Result<(usize, bool), Errno> {
        self.asked_at.store(now.as_nanos() as u64, Ordering::Relaxed);
        let (mut programs, mut is_rung) = (0, false);
        for _ in 0..LOOKS_BEHIND_BELL {
            let told = kernel.look(out)?;
            let heard;
            (programs, heard) = self.leave_bell_out(out, told);
            is_rung |= heard != Heard::Nothing;
            // Where the bell had the only place, something else may have been behind it.
            if heard == Heard::Nothing || out.len() > 1 {
                break;
            }
        }
        Ok((programs, is_rung))
    }

    /// Takes the bell's event out, and makes the bell unreadable before anybody looks for what it was rung for.
    fn leave_bell_out(&self, out: &mut [Event], told: usize) -> (usize, Heard) {
        let Some(at) = out[..told].iter().position(|event| self.is_bell(*event)) else {
            return (told, Heard::Nothing);
        };
        out.copy_within(at + 1..told, at);
        let heard = if self.has_active() && self.asleep.keeps_bell_readable() {
            std::thread::yield_now();
            Heard::Ring
        } else if self.clear_bell() {
            Heard::Ring
        } else {
            Heard::Stuck
        };
        (told - 1, heard)
    }

    /// Looks for a while.
    fn spin(
        &self,
        kernel: &mut impl EpollKernel,
        out: &mut [Event],
        call: &Call,
        spin: Spin,
        courtesy: &mut Courtesy,
    ) -> Result<ControlFlow<usize>, Errno> {
        let budget = self.budget.now(spin);
        let start = kernel.now();
        let (mut now, mut asked_at) = (start, start);
        courtesy.begin_to_spin();
        while budget.is_none_or(|budget| now.saturating_sub(start) < courtesy.extended(budget)) {
            for _ in 0..LOOKS_PER_TIME {
                let (ready, _) = self.lock().take(out, 0, usize::MAX);
                if ready > 0 {
                    return Ok(ControlFlow::Break(ready));
                }
                hint::spin_loop();
            }
            now = kernel.now();
            if call.is_over(now) {
                return self.take(kernel, out).map(ControlFlow::Break);
            }
            if now.saturating_sub(asked_at) >= SPIN_ASK_EVERY {
                asked_at = now;
                let is_interrupted = kernel.is_interrupted();
                let (told, _) = self.ask(kernel, out, now)?;
                let ready = self.lock().take(out, told, usize::MAX).0;
                if ready > 0 {
                    return Ok(ControlFlow::Break(ready));
                }
                self.prune();
                // The sleep ends by the signal at once.
                if is_interrupted || !self.has_active() {
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

    /// Says whether a window has nobody to ring.
    fn prune(&self) -> bool {
        let mut members = self.lock();
        let is_unrung = members.prune(self.sleeper());
        self.count(&members);
        is_unrung
    }

    fn sleep(&self, kernel: &mut impl EpollKernel, out: &mut [Event], call: &Call) -> Result<Slept, Errno> {
        if !self.has_active() {
            let asleep = self.asleep.enter_silently();
            // Under the lock: a first member that comes behind this sees who sleeps, and rings.
            self.prune();
            let is_without = !self.has_active();
            let slept = is_without.then(|| kernel.sleep(out, call.left(kernel.now(), None)));
            drop(asleep);
            let Some(slept) = slept else { return Ok(ControlFlow::Continue(())) };
            return self.slept(out, slept?, call, kernel.now(), None);
        }
        let sleeper = self.whole_sleeper();
        let is_unrung = self.prune();
        let announced = sleeper.map(|sleeper| self.asleep.enter(sleeper));
        let bound = (is_unrung || sleeper.is_none()).then_some(UNRUNG_SLEEP);
        // The last look: at windows, and at whether the bell is still one.
        let slept = if self.has_reportable() || self.sleeper().is_some() != sleeper.is_some() {
            None
        } else {
            Some(kernel.sleep(out, call.left(kernel.now(), bound)))
        };
        drop(announced);
        let Some(slept) = slept else { return Ok(ControlFlow::Continue(())) };
        self.slept(out, slept?, call, kernel.now(), bound)
    }

    /// What the kernel's sleep has given, and what windows have beside it.
    fn slept(
        &self,
        out: &mut [Event],
        slept: usize,
        call: &Call,
        now: Duration,
        bound: Option<Duration>,
    ) -> Result<Slept, Errno> {
        let (told, heard) = self.leave_bell_out(out, slept);
        let ready = if self.has_active() { self.lock().take(out, told, usize::MAX).0 } else { told };
        // The kernel says that the time is over: its clock is right.
        let is_over = slept == 0 && bound.is_none();
        if ready > 0 || is_over || heard != Heard::Ring && call.is_over(now) {
            return Ok(ControlFlow::Break(ready));
        }
        if heard == Heard::Stuck {
            // The kernel's sleep ends at once each time.
            poll_for(&mut [], call.left(now, Some(UNRUNG_SLEEP)))?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// In a child: the kernel's answers without the bell of the parent, which only the parent can clear.
    #[cold]
    fn wait_inherited(
        &self,
        kernel: &mut impl EpollKernel,
        out: &mut [Event],
        limit: Option<Duration>,
    ) -> Result<usize, Errno> {
        let call = Call::new(kernel, limit);
        loop {
            let told = kernel.sleep(out, call.left(kernel.now(), None))?;
            let Some(at) = out[..told].iter().position(|event| self.is_bell(*event)) else { return Ok(told) };
            out.copy_within(at + 1..told, at);
            if told > 1 || call.is_over(kernel.now()) {
                return Ok(told - 1);
            }
            std::thread::sleep(UNRUNG_SLEEP);
        }
    }
}
