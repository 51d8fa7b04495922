//! Connections whose windows are numbers, sleepers with real bells, and calls of the real kernel.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]
#![allow(dead_code, reason = "each test takes what it needs")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use beeline_domain::{Bell, Ringer};
use beeline_socket_engine::readiness::*;
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// A sleeper as the engine has them: one announcement at a time, rung once for each.
#[derive(Debug)]
pub struct Ringing {
    bell: Bell,
    ringer: Ringer,
    asleep: Mutex<(u32, u64)>,
    announcement: AtomicU64,
    pub rings: AtomicU64,
}

pub fn sleeper() -> Option<Arc<Ringing>> {
    Some(Arc::new(Ringing {
        bell: Bell::new().ok()?,
        ringer: Ringer::new().ok()?,
        asleep: Mutex::default(),
        announcement: AtomicU64::new(0),
        rings: AtomicU64::new(0),
    }))
}

#[derive(Clone, Debug)]
pub struct Own(pub Arc<Ringing>);

pub fn own_sleeper() -> Option<Own> {
    sleeper().map(Own)
}

impl Sleeper for Own {
    fn bell(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }

    fn announce(&self) {
        let mut asleep = self.0.asleep.lock().unwrap();
        asleep.0 += 1;
        asleep.1 += 1;
        self.0.announcement.store(asleep.1, Ordering::Relaxed);
        drop(asleep);
        fence(Ordering::SeqCst);
    }

    fn withdraw(&self) {
        let mut asleep = self.0.asleep.lock().unwrap();
        asleep.0 -= 1;
        if asleep.0 == 0 {
            self.0.announcement.store(0, Ordering::Relaxed);
        }
    }

    fn is_whole(&self) -> bool {
        self.0.bell.is_whole()
    }

    fn clear(&self) -> bool {
        self.0.bell.clear()
    }

    fn ring(&self) {
        self.0.rings.fetch_add(1, Ordering::Relaxed);
        let _ = self.0.ringer.ring(&self.0.bell.address());
    }
}

/// A connection. Its window has what arrived and was not taken.
#[derive(Debug, Default)]
pub struct Window {
    arrived: AtomicU64,
    taken: AtomicU64,
    pub may: AtomicBool,
    pub is_full: AtomicBool,
    sleepers: Mutex<Vec<(Own, u64)>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Connection(pub &'static Window);

impl Connection {
    pub fn new() -> Self {
        Connection(Box::leak(Box::default()))
    }

    /// One whose window may have something.
    pub fn up() -> Self {
        let new = Connection::new();
        new.0.may.store(true, Ordering::SeqCst);
        new
    }

    pub fn send(self) {
        self.0.arrived.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        for (sleeper, rung) in self.0.sleepers.lock().unwrap().iter_mut() {
            let announcement = sleeper.0.announcement.load(Ordering::Relaxed);
            if announcement != 0 && announcement != *rung {
                *rung = announcement;
                sleeper.ring();
            }
        }
    }

    /// Takes what one [`Self::send`] sent. False where nothing is left.
    pub fn take(self) -> bool {
        let arrived = self.0.arrived.load(Ordering::Acquire);
        let next = |taken| (taken < arrived).then_some(taken + 1);
        self.0.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next).is_ok()
    }

    pub fn first_sleeper(self) -> Own {
        self.0.sleepers.lock().unwrap()[0].0.clone()
    }

    pub fn sleepers(self) -> usize {
        self.0.sleepers.lock().unwrap().len()
    }
}

/// A glance that never knows, so that each look at a window is a whole one.
#[derive(Debug)]
pub struct Blind;

impl Glance for Blind {
    fn is_empty_still(&self) -> bool {
        false
    }
}

impl Watched for Connection {
    type Sleeper = Own;
    type Glance = Blind;

    fn id(self) -> u64 {
        std::ptr::from_ref(self.0).addr() as u64
    }

    fn glance(self) -> Option<Blind> {
        Some(Blind)
    }

    fn has_news(self) -> bool {
        self.0.arrived.load(Ordering::Acquire) > self.0.taken.load(Ordering::Relaxed)
    }

    fn taken_bytes(self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    fn arrivals(self) -> u64 {
        self.0.arrived.load(Ordering::Acquire)
    }

    fn may_have_news(self) -> bool {
        self.0.may.load(Ordering::Relaxed)
    }

    fn add_sleeper(self, sleeper: &Own) -> bool {
        if self.0.is_full.load(Ordering::Relaxed) {
            return false;
        }
        self.0.sleepers.lock().unwrap().push((sleeper.clone(), 0));
        true
    }

    fn remove_sleeper(self, sleeper: &Own) {
        let mut sleepers = self.0.sleepers.lock().unwrap();
        if let Some(at) = sleepers.iter().position(|(other, _)| Arc::ptr_eq(&other.0, &sleeper.0)) {
            sleepers.swap_remove(at);
        }
    }
}

/// A clock that goes on by a step each time that it is looked at, or the machine's.
#[derive(Debug)]
pub enum Time {
    Real(Instant),
    Steps(Arc<AtomicU64>, u64),
}

impl Time {
    pub fn steps_of_microseconds(step: u64) -> Self {
        Time::Steps(Arc::new(AtomicU64::new(1_000_000)), step)
    }
}

/// Calls of the real kernel, which are counted.
#[derive(Debug)]
pub struct Real<'a> {
    epoll: Option<BorrowedFd<'a>>,
    pub time: Time,
    /// The mask that the thread had before signals were held back.
    held: Option<SigSet>,
    pub asked_for_signals: u32,
    pub looks: u32,
    pub sleeps: Vec<Option<Duration>>,
    /// Whether the kernel had as much to tell as there was room for, its bell among it.
    pub was_full: bool,
    /// A number to look at while it sleeps, and what it was.
    pub watch: Option<Arc<AtomicU32>>,
    pub seen: Vec<u32>,
}

impl<'a> Real<'a> {
    pub fn new(epoll: &'a OwnedFd) -> Self {
        let mut new = Real::of_polls();
        new.epoll = Some(epoll.as_fd());
        new
    }

    pub fn of_polls() -> Self {
        Real {
            epoll: None,
            time: Time::Real(Instant::now()),
            held: None,
            asked_for_signals: 0,
            looks: 0,
            sleeps: Vec::new(),
            was_full: false,
            watch: None,
            seen: vec![],
        }
    }
}

fn timespec(limit: Duration) -> Timespec {
    Timespec::try_from(limit).unwrap()
}

impl Clock for Real<'_> {
    fn now(&self) -> Duration {
        match &self.time {
            Time::Real(start) => Duration::from_secs(1) + start.elapsed(),
            Time::Steps(now, step) => Duration::from_micros(now.fetch_add(*step, Ordering::Relaxed)),
        }
    }

    fn is_interrupted(&mut self) -> bool {
        self.asked_for_signals += 1;
        if self.held.is_none() {
            self.held = Some(SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).unwrap());
        }
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let waiting = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap();
        u64::from_str_radix(waiting.trim(), 16).unwrap() != 0
    }
}

impl Real<'_> {
    /// Lets signals through, as the kernel does it in the call. One that waits ends it.
    fn let_through(&mut self) -> Result<(), Errno> {
        if let Some(mask) = self.held.take() {
            let before = HANDLED.load(Ordering::SeqCst);
            mask.thread_set_mask().unwrap();
            if HANDLED.load(Ordering::SeqCst) != before {
                return Err(Errno::INTR);
            }
        }
        Ok(())
    }
}

impl Drop for Real<'_> {
    fn drop(&mut self) {
        let _ = self.let_through();
    }
}

/// Whether the handler of the signal for users has run: then it is 1.
pub static HANDLED: LazyLock<Arc<AtomicUsize>> = LazyLock::new(|| {
    let handled = Arc::new(AtomicUsize::new(0));
    signal_hook::flag::register_usize(signal_hook::consts::SIGUSR1, Arc::clone(&handled), 1).unwrap();
    handled
});

impl EpollKernel for Real<'_> {
    fn epoll(&self) -> BorrowedFd<'_> {
        self.epoll.unwrap()
    }

    fn look(&mut self, out: &mut [Event]) -> Result<usize, Errno> {
        self.looks += 1;
        let most = out.len();
        let told = epoll::wait(self.epoll.unwrap(), out, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        self.was_full |= told == most;
        Ok(told)
    }

    fn sleep(&mut self, out: &mut [Event], limit: Option<Duration>) -> Result<usize, Errno> {
        self.sleeps.push(limit);
        self.let_through()?;
        let most = out.len();
        let told = epoll::wait(self.epoll.unwrap(), out, limit.map(timespec).as_ref())?;
        self.was_full |= told == most;
        Ok(told)
    }
}

fn poll_real(entries: &mut [PollEntry], limit: Option<Duration>) -> Result<usize, Errno> {
    // rustix borrows descriptors, which a list of numbers has not: duplicates of them are polled. A number that is closed is told as such.
    let open = |entry: &PollEntry| {
        std::fs::metadata(format!("/proc/self/fd/{}", entry.number)).ok()?;
        duplicate(entry.number)
    };
    let held: Vec<Option<OwnedFd>> = entries.iter().map(open).collect();
    let asked = |entry: &PollEntry| PollFlags::from_bits_retain(entry.asked as u16);
    let mut list: Vec<PollFd<'_>> = std::iter::zip(&*entries, &held)
        .filter_map(|(entry, held)| Some(PollFd::new(held.as_ref()?, asked(entry))))
        .collect();
    rustix::event::poll(&mut list, limit.map(timespec).as_ref())?;
    let mut told = list.iter().map(|polled| polled.revents().bits() as i16);
    let mut count = 0;
    for (entry, held) in entries.iter_mut().zip(&held) {
        entry.told = match held {
            Some(_) => told.next().unwrap(),
            None if entry.number < 0 => 0,
            None => 0x20,
        };
        count += usize::from(entry.told != 0);
    }
    Ok(count)
}

/// Of a number that is open.
fn duplicate(number: i32) -> Option<OwnedFd> {
    let pid = rustix::process::getpid();
    let this = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
    rustix::process::pidfd_getfd(this, number, rustix::process::PidfdGetfdFlags::empty()).ok()
}

impl PollKernel for Real<'_> {
    fn look(&mut self, entries: &mut [PollEntry]) -> Result<usize, Errno> {
        self.looks += 1;
        poll_real(entries, Some(Duration::ZERO))
    }

    fn sleep(&mut self, entries: &mut [PollEntry], limit: Option<Duration>) -> Result<usize, Errno> {
        self.sleeps.push(limit);
        self.let_through()?;
        self.seen.extend(self.watch.as_ref().map(|watch| watch.load(Ordering::SeqCst)));
        poll_real(entries, limit)
    }
}

pub const fn event(data: u64, flags: EventFlags) -> Event {
    Event { data: EventData::new_u64(data), flags }
}

pub fn sets() -> &'static Sets<Connection> {
    Box::leak(Box::new(Sets::new(own_sleeper)))
}

pub fn room(events: usize) -> Vec<Event> {
    vec![event(0, EventFlags::empty()); events]
}

/// Numbers and bits of what was told.
pub fn told(events: &[Event]) -> Vec<(u64, EventFlags)> {
    events.iter().map(|event| (event.data.u64(), event.flags)).collect()
}

/// What threads have done, to wait for without a clock.
#[derive(Debug, Default)]
pub struct Count(AtomicU32);

impl Count {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}
