//! Windows in arenas, of which a hostile peer scribbles over one: over windows that are lent, open and free, and over the words
//! that their senders sleep on. Another peer opens, uses and closes windows of its own meanwhile.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use beeline::{FencePolicy, StoreKernel};
use beeline_domain::{
    ArenaListener, ArenaOptions, ConnectError, Domain, MemoryCreditSink, MemoryCredits, Peer, PeerWindow,
    ReceiverParts, SenderArena, SenderParts, WindowError, join_windows, offer_windows,
};
use beeline_mmio::LoadWindow;
use beeline_window::{ReceiveError, Receiver, Sent, WindowConfig, Writer};

use crate::e2e_support::{WATCHDOG, domain_at, domain_config, say};
use crate::victims::honest;
use crate::{Campaign, attacked, end};

const LINES: u32 = 64;
/// Windows that a sender has open.
const OPEN: usize = 4;
/// Steps of a sender after which its oldest window is closed.
const STEPS: u64 = 24;
/// The number of the last window of a sender.
const LAST: u64 = u64::MAX;
/// Honest senders that come to an owner, one after the other.
const HONEST: u64 = 2;

/// The domain of a role.
pub fn domain() -> Domain {
    Domain::open(&domain_config()).unwrap()
}

/// An arena that a scribbler can map whole.
pub fn offer(domain: &Domain, name: &str) -> ArenaListener {
    let options = ArenaOptions { lines: LINES, windows: 64, bytes: 1 << 20, ..ArenaOptions::default() };
    offer_windows(domain, name, options).unwrap()
}

struct OpenSender {
    writer: Writer<PeerWindow, MemoryCredits>,
    number: u64,
    sent: u64,
}

impl OpenSender {
    fn new(parts: SenderParts, number: u64) -> Self {
        let fence_policy =
            if parts.needs_fence_per_message { FencePolicy::PerMessage } else { FencePolicy::None };
        let config = WindowConfig { blank: parts.blank, epoch: parts.epoch, fence_policy };
        OpenSender { writer: Writer::new(parts.store, parts.credits, config), number, sent: 0 }
    }
}

/// Message `index` of window `number`.
fn message(number: u64, index: u64) -> Vec<u8> {
    [&number.to_le_bytes()[..], &honest(index)].concat()
}

/// What an honest receiver makes room for.
fn wait_for<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        assert!(begun.elapsed() < WATCHDOG, "the honest receiver frees nothing");
        std::thread::yield_now();
    }
}

/// The windows that a sender has in an arena: it opens them, sends in turn, and closes the oldest.
pub struct Senders {
    arena: SenderArena,
    open: VecDeque<OpenSender>,
    opened: u64,
    steps: u64,
    sent: u64,
}

impl Senders {
    pub fn join(domain: &Domain, name: &str) -> Option<Self> {
        let arena = join_windows(domain, name, LINES).ok()?;
        Some(Senders { arena, open: VecDeque::new(), opened: 0, steps: 0, sent: 0 })
    }

    /// Opens another window; `None` while the receiver has not let go of enough of those that were closed.
    fn open(&self, number: u64) -> Result<Option<OpenSender>, WindowError> {
        match self.arena.open(StoreKernel::Cached) {
            Ok(parts) => Ok(Some(OpenSender::new(parts, number))),
            Err(WindowError::Connect(ConnectError::Refused { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether something was sent; an error when the receiver has gone or broken a rule. Never waits for room.
    pub fn try_step(&mut self) -> Result<bool, Box<dyn Error>> {
        while self.open.len() < OPEN {
            let Some(opened) = self.open(self.opened)? else { return Ok(false) };
            self.open.push_back(opened);
            self.opened += 1;
        }
        self.steps += 1;
        let sender = &mut self.open[self.steps as usize % OPEN];
        let is_sent = sender.writer.try_send(&message(sender.number, sender.sent))? == Sent::Sent;
        sender.sent += u64::from(is_sent);
        self.sent += u64::from(is_sent);
        if self.steps.is_multiple_of(STEPS) {
            self.open.pop_front();
        }
        Ok(is_sent)
    }

    /// Sends to a receiver that keeps the rules.
    fn step(&mut self) {
        wait_for(|| self.try_step().expect("the honest receiver keeps the rules").then_some(()));
    }

    /// Says in a last window that nothing follows: windows are accepted in the order in which they were opened. How many messages
    /// were sent.
    fn close(self) -> u64 {
        let mut last = wait_for(|| self.open(LAST).unwrap());
        assert_eq!(last.writer.try_send(&message(LAST, 0)).unwrap(), Sent::Sent);
        self.sent + 1
    }
}

struct OpenReceiver {
    receiver: Receiver<LoadWindow, MemoryCreditSink>,
    peer: Peer,
    number: Option<u64>,
    next: u64,
}

impl OpenReceiver {
    fn new(parts: ReceiverParts) -> Self {
        let config = WindowConfig::blank(parts.blank, parts.epoch);
        let receiver = Receiver::new(parts.load, parts.sink, config);
        OpenReceiver { receiver, peer: parts.peer, number: None, next: 0 }
    }

    /// Gives `each` what has come, and says how much that was.
    fn take(&mut self, mut each: impl FnMut(&mut Option<u64>, u64, &[u8])) -> Result<u64, ReceiveError> {
        let mut bytes = Vec::new();
        for taken in 0..16 {
            let Some(mut message) = self.receiver.poll()? else { return Ok(taken) };
            bytes.clear();
            message.copy_to(&mut bytes);
            each(&mut self.number, self.next, &bytes);
            self.next += 1;
        }
        Ok(16)
    }
}

/// The windows that senders have opened here.
#[derive(Default)]
pub struct Receivers {
    good: Vec<OpenReceiver>,
    evil: Vec<OpenReceiver>,
    received: u64,
    closed: u64,
    errors: u64,
}

impl Receivers {
    /// Whether so many honest senders have come and gone, and everything of them has been taken.
    fn is_over(&self, senders: u64) -> bool {
        self.closed == senders && self.good.is_empty()
    }

    /// Accepts what is opened, and takes what has come: of the process `honest` it has to be what that one sent.
    pub fn step(&mut self, listener: &ArenaListener, honest: u32) {
        while let Some(parts) = listener.try_accept() {
            let is_honest = parts.peer.pid() == honest;
            let windows = if is_honest { &mut self.good } else { &mut self.evil };
            windows.push(OpenReceiver::new(parts));
        }
        let Receivers { received, closed, errors, .. } = self;
        self.good.retain_mut(|window| {
            // Before the last look: what came before the end is there.
            let is_open = window.peer.is_alive();
            let taken = window.take(|number, next, bytes| {
                let first = u64::from_le_bytes(*bytes.first_chunk().unwrap());
                let number = *number.get_or_insert(first);
                assert_eq!(bytes, message(number, next), "message {next} of window {number}");
                *closed += u64::from(number == LAST);
            });
            let taken = taken.expect("the honest sender keeps the rules");
            *received += taken;
            is_open || taken > 0
        });
        self.evil.retain_mut(|window| {
            let is_open = window.peer.is_alive();
            let taken = window.take(|_, _, _| ());
            *errors += u64::from(taken.is_err());
            taken.is_ok_and(|taken| is_open || taken > 0)
        });
        std::thread::yield_now();
    }
}

/// Plays an owner of windows. The process that started it is honest, and every other client is not.
pub fn own(stop: &AtomicBool) {
    let (domain, honest) = (domain(), std::os::unix::process::parent_id());
    let listener = offer(&domain, "windows");
    say("ready");
    let mut receivers = Receivers::default();
    while !stop.load(Ordering::Relaxed) || !receivers.is_over(HONEST) {
        receivers.step(&listener, honest);
    }
    say(&format!("counted {} errors {}", receivers.received, receivers.errors));
}

/// Plays a sender in the arenas of an honest and of a hostile owner.
pub fn send(stop: &AtomicBool) {
    let domain = domain();
    let mut good = Senders::join(&domain, "good").unwrap();
    say("ready");
    let (mut evil, mut errors): (Option<Senders>, u64) = (None, 0);
    while !stop.load(Ordering::Relaxed) {
        if evil.is_none() {
            evil = Senders::join(&domain, "evil");
        }
        if evil.as_mut().is_some_and(|evil| evil.try_step().is_err()) {
            (evil, errors) = (None, errors + 1);
        }
        good.step();
    }
    say(&format!("counted {} errors {errors}", good.close()));
}

#[test]
fn sender_that_scribbles_over_its_arena_leaves_the_owner_and_another_arena_whole() {
    let campaign = Campaign::new();
    let mut victim = campaign.victim("arena owner");
    victim.expect("ready");
    let domain = domain_at(campaign.root());
    let mut good = Senders::join(&domain, "windows").unwrap();
    attacked(&victim, campaign.root(), &[("ATTACKER", "arena sender")], || good.step());
    let mut next = Senders::join(&domain, "windows").unwrap();
    next.step();
    end(victim, Some(good.close() + next.close()));
}

#[test]
fn owner_that_scribbles_over_its_arena_leaves_the_sender_and_another_owner_whole() {
    let campaign = Campaign::new();
    let domain = domain_at(campaign.root());
    let listener = offer(&domain, "good");
    let mut victim = campaign.victim("arena sender");
    victim.expect("ready");
    let (honest, mut receivers) = (victim.pid(), Receivers::default());
    attacked(&victim, campaign.root(), &[("ATTACKER", "arena owner")], || receivers.step(&listener, honest));
    // The victim finds the next owner by itself.
    let (next, mut nexts) = (offer(&domain, "evil"), Receivers::default());
    let begun = Instant::now();
    while nexts.received == 0 {
        assert!(begun.elapsed() < WATCHDOG, "the victim does not come back");
        receivers.step(&listener, honest);
        nexts.step(&next, honest);
    }
    victim.hang_up();
    while !receivers.is_over(1) {
        assert!(begun.elapsed() < WATCHDOG, "the victim does not end");
        receivers.step(&listener, honest);
        nexts.step(&next, honest);
    }
    end(victim, Some(receivers.received));
}
