//! Waiting of one call: it looks for a while, and then sleeps on the socket and a bell.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use beeline_socket_rules::Spin;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, socket_timeout};

use crate::carried::Carried;
use crate::courtesy::Courtesy;
use crate::endpoint::{Endpoint, Reader};
use crate::inside::Inside;
use crate::lock::Held;
use crate::rung_sleep::sleep_rung;

/// Looks at the window between two looks at the clock.
const LOOKS: u32 = 64;
/// How long the socket is left alone while the window has nothing: an end, and bytes behind a change of path, are seen so much later.
const SOCKET_EVERY: Duration = Duration::from_micros(20);
/// Halvings of the time of spinning, where it did not pay.
const MOST_SHIFT: u8 = 4;

/// What a call that found nothing does next.
pub(crate) enum Pause {
    /// Look again.
    Again,
    /// It has ended without a byte.
    Over(Errno),
}

pub(crate) struct Waiting<'a> {
    pub inside: Inside<'a>,
    waits: bool,
    looks: u32,
    has_slept: bool,
    started: Option<Started>,
    courtesy: Courtesy,
}

struct Started {
    at: Instant,
    spin: Option<Duration>,
    socket_looked_at: Instant,
    /// When the call ends, if its socket has a time-out.
    ends_at: Option<Instant>,
    is_socket_due: bool,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(inside: Inside<'a>, waits: bool) -> Self {
        Waiting { inside, waits, looks: 0, has_slept: false, started: None, courtesy: Courtesy::new(1) }
    }

    /// Whether the socket is to be looked at beside the window.
    pub(crate) fn is_socket_due(&self) -> bool {
        // A call that does not wait has one look at everything.
        !self.waits || self.started.as_ref().is_some_and(|started| started.is_socket_due)
    }

    /// Whether it found nothing at first, and what it waited for before it slept.
    pub(crate) fn has_paid(&self) -> bool {
        self.looks > 0 && !self.has_slept
    }

    /// Lets go of the lock, if somebody wants it, and waits a little.
    pub(crate) fn pause(&mut self, endpoint: &'static Endpoint, mut reader: Held<'_, Reader>) -> Pause {
        if !self.waits {
            return Pause::Over(Errno::AGAIN);
        }
        self.inside.enter(&mut reader.inside);
        std::hint::spin_loop();
        self.looks += 1;
        if !self.looks.is_multiple_of(LOOKS)
            && self.started.as_ref().is_none_or(|started| !started.is_socket_due)
        {
            return self.stay(endpoint, reader);
        }
        let now = Instant::now();
        let shift = reader.spin_shift;
        let started = self.started.get_or_insert_with(|| Started {
            at: now,
            spin: match self.inside.process().rules().spin {
                Spin::For(spin) => Some(spin / (1 << shift)),
                Spin::Forever => None,
            },
            socket_looked_at: now,
            ends_at: None,
            is_socket_due: false,
        });
        let is_spent = started.spin.is_some_and(|spin| now - started.at >= self.courtesy.extended(spin));
        if !is_spent || !started.is_socket_due {
            // Before it sleeps it looks at everything once.
            let is_due = is_spent || now - started.socket_looked_at >= SOCKET_EVERY;
            if is_due {
                started.socket_looked_at = now;
            }
            started.is_socket_due = is_due;
            // A user who has it spin for ever has a core for it.
            let is_courteous = started.spin.is_some() && !is_spent;
            let pause = self.stay(endpoint, reader);
            if is_courteous {
                self.courtesy.give_way();
            }
            return pause;
        }
        let (began, most) =
            (started.at + self.courtesy.given_in_this_spin(), self.inside.process().rules().spin);
        drop(reader);
        let pause = self.sleep(endpoint);
        // What comes while it would have spun, or goes to sleep and wakes, would have been seen by a longer spin: else who once spins too short does for ever.
        let is_short = matches!(most, Spin::For(most) if began.elapsed() <= 2 * most);
        let mut reader = endpoint.lock_reader();
        reader.spin_shift = if is_short { shift.saturating_sub(1) } else { (shift + 1).min(MOST_SHIFT) };
        drop(reader);
        pause
    }

    fn stay(&self, endpoint: &Endpoint, reader: Held<'_, Reader>) -> Pause {
        drop(reader);
        if endpoint.wanted.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        Pause::Again
    }

    #[cold]
    fn sleep(&mut self, endpoint: &'static Endpoint) -> Pause {
        let now = Instant::now();
        let ends_at = match self.ends_at(now) {
            Ok(ends_at) => ends_at,
            Err(errno) => return Pause::Over(errno),
        };
        self.has_slept = true;
        let slept = self.sleep_until(endpoint, ends_at, now);
        if let Some(started) = &mut self.started {
            self.courtesy.begin_to_spin();
            started.at = Instant::now();
            started.is_socket_due = true;
        }
        match slept {
            Err(Errno::INTR) if self.is_restarted(ends_at) => Pause::Again,
            Err(errno) => Pause::Over(errno),
            Ok(()) if ends_at.is_some_and(|ends_at| ends_at <= Instant::now()) => Pause::Over(Errno::AGAIN),
            Ok(()) => Pause::Again,
        }
    }

    /// When the call ends by its socket's time-out, which is counted from when it first has to wait.
    fn ends_at(&mut self, now: Instant) -> Result<Option<Instant>, Errno> {
        let Some(started) = &mut self.started else { return Ok(None) };
        if started.ends_at.is_none() {
            let timeout = socket_timeout(self.inside.socket(), Timeout::Recv)?;
            started.ends_at = timeout.and_then(|timeout| started.at.checked_add(timeout));
        }
        Ok(started.ends_at.inspect(|_| debug_assert!(now >= started.at)))
    }

    fn sleep_until(
        &self,
        endpoint: &'static Endpoint,
        ends_at: Option<Instant>,
        now: Instant,
    ) -> Result<(), Errno> {
        let left = ends_at.map(|ends_at| ends_at.saturating_duration_since(now));
        let (process, socket) = (self.inside.process(), self.inside.socket());
        // A number that was closed before this look is not slept on; who closes it later rings.
        let is_moved = || endpoint.is_kept.load(Ordering::Relaxed) != self.inside.is_kept();
        let is_worth_a_look = || is_moved() || endpoint.is_worth_a_look(endpoint.lock_reader());
        let (slept, by_bell) =
            sleep_rung(process, socket, Carried::Connection(endpoint), left, is_worth_a_look);
        if by_bell {
            endpoint.count_sleep();
        }
        slept
    }

    /// Whether a call of the kernel's would be made again behind a signal's handler.
    fn is_restarted(&self, ends_at: Option<Instant>) -> bool {
        ends_at.is_none() && self.inside.process().restarts_calls()
    }
}
