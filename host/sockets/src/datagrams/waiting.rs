//! Waiting of one receive: it looks for a while, and then sleeps on the socket and a bell.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, socket_timeout};

use super::rest::Waited;
use super::socket::{DatagramSocket, Reader};
use crate::carried::Carried;
use crate::courtesy::Courtesy;
use crate::lock::Held;
use crate::process::Process;
use crate::rung_sleep::sleep_rung;

/// Looks at windows between two looks at the clock.
const LOOKS: u32 = 64;
/// How long the kernel is left alone while windows have nothing.
const KERNEL_EVERY: Duration = Duration::from_micros(20);

/// What a call that found nothing does next.
pub(crate) enum Pause {
    Again,
    /// It has ended without a datagram.
    Over(Errno),
}

pub(crate) struct Waiting<'a> {
    process: &'a Process,
    socket: BorrowedFd<'a>,
    is_kept: bool,
    waits: bool,
    looks: u32,
    has_slept: bool,
    /// Whether the kernel is looked at beside windows. The first look is at everything that there is.
    is_kernel_due: bool,
    started: Option<Started>,
    courtesy: Courtesy,
}

struct Started {
    at: Instant,
    spins_since: Instant,
    kernel_looked_at: Instant,
    is_last_look: bool,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(process: &'a Process, socket: BorrowedFd<'a>, waits: bool) -> Self {
        let is_kernel_due = !waits;
        Waiting {
            process,
            socket,
            is_kept: false,
            waits,
            looks: 0,
            has_slept: false,
            is_kernel_due,
            started: None,
            courtesy: Courtesy::new(1),
        }
    }

    /// As it is, by a copy of the socket that was kept when its number was closed.
    pub(crate) fn at<'b>(self, kept: BorrowedFd<'b>) -> Waiting<'b>
    where
        'a: 'b,
    {
        Waiting { socket: kept, is_kept: true, ..self }
    }

    pub(crate) fn is_kernel_due(&self) -> bool {
        self.is_kernel_due
    }

    pub(crate) fn is_first_look(&self) -> bool {
        self.looks == 0
    }

    /// How long it spun for what it waited for, if it found nothing at first and did not sleep. What others had of the core is not spun.
    pub(crate) fn spun(&self) -> Option<Waited> {
        let given = self.courtesy.given();
        let spun = || {
            self.started.as_ref().map_or(Duration::ZERO, |started| started.at.elapsed().saturating_sub(given))
        };
        (self.looks > 0 && !self.has_slept).then(|| Waited::Spun(spun()))
    }

    /// Lets go of the lock, and waits a little.
    pub(crate) fn pause(&mut self, own: &'static DatagramSocket, mut reader: Held<'_, Reader>) -> Pause {
        if !self.waits {
            return Pause::Over(Errno::AGAIN);
        }
        std::hint::spin_loop();
        self.looks += 1;
        let mut is_courteous = false;
        if self.looks.is_multiple_of(LOOKS) || self.is_kernel_due {
            let now = Instant::now();
            let fresh = Started { at: now, spins_since: now, kernel_looked_at: now, is_last_look: false };
            let started = self.started.get_or_insert(fresh);
            let spin = self.process.rules().spin;
            let budget = reader.rest.spin(spin);
            let is_spent =
                budget.is_some_and(|spin| now - started.spins_since >= self.courtesy.extended(spin));
            if is_spent && started.is_last_look {
                let Reader { rest, incoming, .. } = &mut *reader;
                rest.note_wait(incoming, Waited::Slept, spin);
                drop(reader);
                return self.sleep(own);
            }
            // Before it sleeps it looks at everything once.
            self.is_kernel_due = is_spent || now - started.kernel_looked_at >= KERNEL_EVERY;
            started.is_last_look = is_spent;
            // A user who has it spin for ever has a core for it.
            is_courteous = budget.is_some() && !is_spent;
            if self.is_kernel_due {
                started.kernel_looked_at = now;
            }
        }
        drop(reader);
        if own.wanted.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        if is_courteous {
            self.courtesy.give_way();
        }
        Pause::Again
    }

    #[cold]
    fn sleep(&mut self, own: &'static DatagramSocket) -> Pause {
        let now = Instant::now();
        // Counted from when the call first has to wait.
        let began = self.started.as_ref().map_or(now, |started| started.at);
        let ends_at = match socket_timeout(self.socket, Timeout::Recv) {
            Ok(timeout) => timeout.and_then(|timeout| began.checked_add(timeout)),
            Err(errno) => return Pause::Over(errno),
        };
        self.has_slept = true;
        let left = ends_at.map(|ends_at| ends_at.saturating_duration_since(now));
        let carried = Carried::Datagrams(own);
        let (slept, _) = sleep_rung(self.process, self.socket, carried, left, || {
            // A number that was closed before this look is not slept on; who closes it later rings.
            own.is_kept() != self.is_kept || own.has_news()
        });
        let now = Instant::now();
        self.is_kernel_due = true;
        if let Some(started) = &mut self.started {
            (started.spins_since, started.kernel_looked_at, started.is_last_look) = (now, now, false);
            self.courtesy.begin_to_spin();
        }
        match slept {
            Err(Errno::INTR) if ends_at.is_none() && self.process.restarts_calls() => Pause::Again,
            Err(errno) => Pause::Over(errno),
            Ok(()) if ends_at.is_some_and(|ends_at| ends_at <= now) => Pause::Over(Errno::AGAIN),
            Ok(()) => Pause::Again,
        }
    }
}
