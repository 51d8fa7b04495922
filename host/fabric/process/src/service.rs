//! How others reach this member: its answer to who wants to use its segments.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use beeline_domain::{Answer, Disposer, Peer, Refusal, Reply, Service};

use crate::interrupts::inbox::User;
use crate::packets::{Fetch, Hello, Welcome};
use crate::pair::{Pair, memories};
use crate::questions::Question;
use crate::shared::Shared;
use crate::words::{CLAIMS, View};
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
            return Ok(self.asked(request, fds));
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
    // Before the member is taken in, so that nothing fails afterwards.
    let board = shared.board.fd().try_clone_to_owned().map_err(|error| failed(&error))?;
    let bank = shared.bank.fd().try_clone_to_owned().map_err(|error| failed(&error))?;
    let bells = shared.bells_memory.fd().try_clone_to_owned().map_err(|error| failed(&error))?;
    let pair = Pair::of_consumer(peer, User { uses: claims.clone(), yard }, shared.rung());
    shared.admit(hello.who.node, claims, pair);
    if !peer.is_alive() {
        // Nobody else may tell of one that has gone before it was taken in.
        shared.domain.disposer().dispose(Look(Weak::clone(&shared.itself)));
    }
    let welcome = Welcome { bank_bytes: shared.bank.bytes() as u64 };
    Ok(Reply { payload: welcome.to_bytes(), fds: vec![board, bank, bells] })
}
