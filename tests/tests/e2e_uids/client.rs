//! A client of another user: one that is admitted as the test says, or one that nothing admits.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline::{
    ConnectError, Domain, Error, OtherEnd, Sender, SenderArena, SenderOptions, Sent, StoreKernel,
    Subscription, SubscriptionEnded, Token,
};

use crate::admission::{Admission, NEVER};
use crate::e2e_support::held::Held;
use crate::e2e_support::items::{item, notification};
use crate::e2e_support::users::OWNER;
use crate::e2e_support::{PAUSE, WATCHDOG, say, stop_flag};

/// Steps after which a word is said, so that whoever listens knows that things flow.
const WORD: u64 = 20;
/// Lines of a window in the arena, and items after which another one is opened.
const SESSION_LINES: u32 = 32;
const SESSION_ITEMS: u64 = 10;
/// Windows that the arena has: a client that goes on has got some of them back.
pub const SESSIONS: u64 = 4;

/// A process that lives for some milliseconds has no time to choose a kernel.
fn options() -> SenderOptions {
    SenderOptions::new().kernel(StoreKernel::Cached)
}

/// How a client that was admitted talks with the owner.
struct Connected {
    sender: Sender,
    subscription: Subscription,
    arena: SenderArena,
}

/// What a client that was admitted has of the owner.
struct Client {
    sender: Sender,
    subscription: Subscription,
    arena: SenderArena,
    /// A window in the arena, and the items that were sent there.
    session: Option<(Sender, u64)>,
    session_items: u64,
    /// Lets it in for as long as it is open.
    _connection: Option<OwnedFd>,
    sent: u64,
    taken: u64,
}

/// Tries again while the owner refuses: it may not know yet that the sender before is dead.
fn accepted<T>(mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(Error::Connect(ConnectError::Refused { .. })) if begun.elapsed() < WATCHDOG => {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

impl Client {
    /// An error where the owner was killed.
    fn let_in(admission: Admission) -> Result<Self, String> {
        let connection = admission.connect().map_err(|error| error.to_string())?;
        let come = || match (admission, &connection) {
            (Admission::SharedTcp, Some(connection)) => {
                // Until the other side has admitted this user, too.
                if rustix::io::read(connection, &mut [0]) != Ok(1) {
                    return Ok(None);
                }
                Self::listed(admission, OtherEnd::of_tcp(connection)?.uid()).map(Some)
            }
            (_, Some(connection)) => Self::by_tokens(admission, connection).map(Some),
            (_, None) => Self::listed(admission, OWNER).map(Some),
        };
        match come() {
            Ok(Some(Connected { sender, subscription, arena })) => Ok(Client {
                sender,
                subscription,
                arena,
                session: None,
                session_items: 0,
                _connection: connection,
                sent: 0,
                taken: 0,
            }),
            Ok(None) => Err("the owner closed the connection".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// By the user alone.
    fn listed(admission: Admission, owner: u32) -> Result<Connected, Error> {
        assert_eq!(owner, OWNER);
        let (root, name) = admission.domain();
        let domain = Domain::open_foreign(root, &name, owner)?;
        let sender = accepted(|| Ok(domain.sender_with("window", options())?))?;
        let arena = domain.sender_arena_with("sessions", SESSION_LINES, options())?;
        Ok(Connected { sender, subscription: domain.subscribe("told")?, arena })
    }

    fn by_tokens(admission: Admission, connection: &OwnedFd) -> Result<Connected, Error> {
        let (root, name) = admission.domain();
        let exchange = || {
            let token = Token::exchange(connection, NEVER)?;
            assert_eq!(token.uid(), OWNER);
            Ok::<_, Error>((Domain::open_foreign(&root, &name, token.uid())?, token))
        };
        let sender = accepted(|| {
            let (domain, token) = exchange()?;
            Ok(domain.sender_proving("window", token, options())?)
        })?;
        let (domain, token) = exchange()?;
        let arena = domain.sender_arena_proving("sessions", SESSION_LINES, token, options())?;
        let (domain, token) = exchange()?;
        let subscription = domain.subscribe_proving("told", token, b"", &[], Duration::ZERO)?;
        Ok(Connected { sender, subscription, arena })
    }

    /// Sends an item by a window of the arena, which is another one after some items; `false` when the owner has gone.
    fn step_session(&mut self) -> bool {
        let (sender, sent) = match self.session.take().filter(|(_, sent)| *sent < SESSION_ITEMS) {
            Some(session) => session,
            None => match self.arena.open() {
                Ok(sender) => (sender, 0),
                // All windows that ended may still be the owner's to give back.
                Err(ConnectError::Refused { .. }) => return !self.arena.is_receiver_gone(),
                Err(_) => return false,
            },
        };
        let (sender, sent) = self.session.insert((sender, sent));
        match sender.try_send(&item(u64::from(std::process::id()), *sent)) {
            Ok(Sent::Sent) => {
                *sent += 1;
                self.session_items += 1;
            }
            Ok(_) => {}
            Err(_) => return false,
        }
        true
    }

    /// Sends and takes a little; `false` when the owner has gone.
    fn step(&mut self) -> bool {
        loop {
            match self.subscription.try_next() {
                Ok(Some(told)) => {
                    assert_eq!(told.payload, notification(self.taken), "notification {}", self.taken);
                    self.taken += 1;
                }
                Ok(None) => break,
                Err(ended) => {
                    assert!(matches!(ended, SubscriptionEnded::OwnerDied), "{ended}");
                    return false;
                }
            }
        }
        match self.sender.try_send(&item(u64::from(std::process::id()), self.sent)) {
            Ok(Sent::Sent) => self.sent += 1,
            Ok(_) => {}
            Err(_) => return false,
        }
        self.step_session() && !self.sender.is_receiver_gone()
    }

    /// Goes on until the test hangs up or the owner is dead, of which both halves are told.
    fn flow(mut self, stop: &AtomicBool) {
        let mut steps = 0_u64;
        while self.step() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            steps += 1;
            let has_sessions = self.session_items > 2 * SESSIONS * SESSION_ITEMS;
            if steps.is_multiple_of(WORD) && self.taken > 0 && self.sent > 0 && has_sessions {
                say("flows");
            }
            std::thread::sleep(PAUSE);
        }
        let begun = Instant::now();
        while !self.sender.is_receiver_gone()
            || !self.arena.is_receiver_gone()
            || self.subscription.try_next().is_ok()
        {
            assert!(begun.elapsed() < WATCHDOG, "the death of the owner is not seen");
            std::thread::yield_now();
        }
    }
}

fn own_held() -> Held {
    Held::by(std::process::id())
}

/// Plays a client that is admitted as the test says. When the owner has died nothing of it is left here.
pub fn run() {
    let (stop, before) = (stop_flag(), own_held());
    match Client::let_in(Admission::of_role()) {
        Ok(client) => {
            say("connected");
            client.flow(stop);
        }
        Err(reason) => say(&format!("failed {reason}")),
    }
    if stop.load(Ordering::Relaxed) {
        return;
    }
    let begun = Instant::now();
    while !own_held().is_within(before) {
        assert!(begun.elapsed() < WATCHDOG, "{:?}, and {before:?} before", own_held());
        std::thread::sleep(PAUSE);
    }
    say("lost");
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
    }
}

/// Plays a client that nothing admits, and says how it is refused.
pub fn run_unproved() {
    let (root, name) = Admission::of_role().domain();
    let domain = Domain::open_foreign(root, &name, OWNER).unwrap();
    for refused in [
        domain.sender_with("window", options()).map(drop),
        domain.subscribe("told").map(drop),
        domain.sender_arena_with("sessions", SESSION_LINES, options()).map(drop),
    ] {
        say(&format!("refused {}", refused.unwrap_err()));
    }
}
