//! How others reach this member: its answer to who wants to use its segments.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use beeline_domain::{Answer, Disposer, Peer, Refusal, Reply, Service};
use beeline_mmio::{MemoryOptions, SharedMemory};

use crate::bell::Bells;
use crate::interrupts::inbox::User;
use crate::packets::{Fetch, Hello, Welcome};
use crate::pair::{Pair, memories, other_user};
use crate::questions::Question;
use crate::shared::Shared;
use crate::words::{CLAIMS, View, WordsError};
use crate::yard::Yard;

/// Takes in members that use this one's segments.
///
/// The domain's thread does nothing of it: it would wait for whoever has the member's lock. A worker maps the claims and takes the
/// lock. The answer goes out after that, so whoever has it is a consumer that every removal from then on looks at.
pub(crate) struct Welcoming {
    member: Weak<Shared>,
    disposer: Disposer,
}

impl Service for Welcoming {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        if Question::is_one(request) {
            return Ok(match other_user(peer) {
                None => self.asked(request, fds),
                // Some are answered by doing something.
                Some(_) => Answer::refusal(Refusal::new("questions are answered to this user alone"), fds),
            });
        }
        let hello = match Hello::of(request) {
            Ok(hello) => hello,
            Err(error) => return Ok(Answer::refusal(Refusal::new(error.to_string()), fds)),
        };
        let (member, peer) = (Weak::clone(&self.member), peer.clone());
        Ok(Answer::later(move |_| {
            let shared = member.upgrade().ok_or_else(|| Refusal::new("the member leaves the fabric"))?;
            welcome(&shared, &peer, hello, fds)
        }))
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let Fetch(lent) = match Fetch::of(request) {
            Ok(fetch) if fds.is_empty() => fetch,
            Ok(_) => return Ok(Answer::refusal(Refusal::new("no descriptors are wanted"), fds)),
            Err(error) => return Ok(Answer::refusal(Refusal::new(error.to_string()), fds)),
        };
        let (member, peer) = (Weak::clone(&self.member), peer.id());
        Ok(Answer::later(move |_| {
            let shared = member.upgrade().ok_or_else(|| Refusal::new("the member leaves the fabric"))?;
            shared.lend(peer, lent)
        }))
    }

    /// Has somebody look at once: who waits for an interrupt makes no call that would see that the peer is not there.
    fn departed(&mut self, _: &Peer) {
        self.disposer.dispose(Look(Weak::clone(&self.member)));
    }
}

impl Welcoming {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Welcoming { member: Arc::downgrade(shared), disposer: shared.domain.disposer() }
    }

    /// The answer to who is no member. A worker gives it, which takes the lock.
    fn asked(&self, request: &[u8], fds: Vec<OwnedFd>) -> Answer {
        let question = match Question::of(request) {
            Ok(question) if fds.is_empty() => question,
            Ok(_) => return Answer::refusal(Refusal::new("no descriptors are wanted"), fds),
            Err(error) => {
                return Answer::refusal(Refusal::new(format!("the question is none: {error}")), fds);
            }
        };
        let member = Weak::clone(&self.member);
        Answer::later(move |_| {
            let shared = member.upgrade().ok_or_else(|| Refusal::new("the member leaves the fabric"))?;
            let answer = shared.answer(question).map_err(|refusal| Refusal::new(refusal.to_string()))?;
            Ok(Reply::new(answer))
        })
    }
}

/// A look at who is gone, on the thread where it is dropped.
struct Look(Weak<Shared>);

impl Drop for Look {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.look();
        }
    }
}

fn welcome(shared: &Shared, peer: &Peer, hello: Hello, fds: Vec<OwnedFd>) -> Result<Reply, Refusal> {
    let failed = |error: &dyn std::fmt::Display| Refusal::new(error.to_string());
    let [claims, yard] =
        memories(fds, "claims and a yard", &shared.domain.disposer()).map_err(|error| failed(&error))?;
    let claims = View::of(claims, CLAIMS).map_err(|error| failed(&error))?;
    let yard = Yard::of(yard, hello.yard_bytes).map_err(|error| failed(&error))?;
    let other_user = other_user(peer);
    // Before the member is taken in, so that nothing fails afterwards.
    let board = shared.board.fd().try_clone_to_owned().map_err(|error| failed(&error))?;
    let [bank, bells] = match other_user {
        None => [shared.bank.fd(), shared.bells_memory.fd()].map(|fd| fd.try_clone_to_owned()),
        Some(_) => nobodys().map_err(|error| failed(&error))?.map(|memory| Ok(memory.into_fd())),
    };
    let (bank, bells) = (bank.map_err(|error| failed(&error))?, bells.map_err(|error| failed(&error))?);
    let pair = Pair::of_consumer(peer, User { uses: claims.clone(), yard }, shared.rung());
    shared.admit(hello.who.node, other_user, claims, pair);
    if !peer.is_alive() {
        // Nobody else may tell of one that has gone before it was taken in.
        shared.domain.disposer().dispose(Look(Weak::clone(&shared.itself)));
    }
    let bank_bytes = if other_user.is_none() { shared.bank.bytes() } else { 1 };
    let welcome = Welcome { bank_bytes: bank_bytes as u64 };
    Ok(Reply { payload: welcome.to_bytes(), fds: vec![board, bank, bells] })
}

/// What a member of another user gets in the place of the bank and the bells: memory that nobody else has.
fn nobodys() -> Result<[SharedMemory; 2], WordsError> {
    let bank = SharedMemory::create("beeline-no-bank", 1, MemoryOptions::default())?;
    Ok([bank, Bells::create()?.1])
}
