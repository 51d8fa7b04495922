//! Carrying out what the member wants, without its lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use beeline_fabric::{MemberNumber, NodeId, PairId, Reached, Want};
use beeline_mmio::{SharedMemory, thread};

use super::Shared;
use crate::interrupts::gear::Gear;
use crate::interrupts::inbox::User;
use crate::pair::{Pair, ReachError, Reachable, reach};
use crate::words::{CLAIMS, Published, WordsError};
use crate::yard::Yard;

/// What the calling thread gives back itself: less than it takes to wake another one. What is larger takes as long as it has pages.
const GIVEN_BACK_HERE_BYTES: u64 = 64 << 10;

/// Memory of the bank, given back where it is dropped.
struct Unused {
    bank: Arc<SharedMemory>,
    offset: u64,
    bytes: u64,
}

impl Shared {
    pub(super) fn carry_out_all(&self, wants: Vec<Want>) {
        let mut wants = VecDeque::from(wants);
        while let Some(want) = wants.pop_front() {
            wants.extend(self.carry_out(want));
        }
    }

    /// Does what the member wants; gives what it wants after that.
    fn carry_out(&self, want: Want) -> Vec<Want> {
        match want {
            Want::Name(ask, op) => {
                let answer = self.names.carry_out(op, |holder| self.has_open(holder));
                return self.bring(|state, now| state.member.answered(ask, answer, now));
            }
            Want::Reach { pair, node, member } => return self.begin_to_reach(pair, node, member),
            Want::Ring(pair) => self.ring(pair),
            Want::Punch { offset, bytes } => {
                let unused = Unused { bank: Arc::clone(&self.bank), offset, bytes };
                if bytes > GIVEN_BACK_HERE_BYTES {
                    self.domain.disposer().dispose(unused);
                } else {
                    drop(unused);
                }
            }
            Want::Close(pair) => {
                let closed = self.lock().pairs.remove(&pair);
                self.domain.disposer().dispose(closed);
            }
        }
        Vec::new()
    }

    fn ring(&self, pair: PairId) {
        let state = self.lock();
        let Some(pair) = state.pairs.get(&pair) else { return };
        match pair.peer().cloned() {
            Some(peer) => {
                drop(state);
                peer.ring();
            }
            None => {
                drop(state);
                self.wake_all();
            }
        }
    }

    /// Reaches a member on a thread of its own: it may not answer, and whoever carries this out need not be who waits for it, and
    /// has a time that it waits at most.
    fn begin_to_reach(&self, pair: PairId, node: NodeId, member: MemberNumber) -> Vec<Want> {
        let is_itself = (node, member) == (self.own.node, self.own.member);
        let Some(shared) = self.itself.upgrade().filter(|_| !is_itself) else {
            return self.reach(pair, node, member);
        };
        let begun = thread::start("beeline-reach", move || {
            shared.carry_out_all(shared.reach(pair, node, member));
        });
        match begun {
            Ok(_detached) => Vec::new(),
            // The process is out of threads.
            Err(_) => self.reach(pair, node, member),
        }
    }

    fn reach(&self, pair: PairId, node: NodeId, member: MemberNumber) -> Vec<Want> {
        let is_itself = (node, member) == (self.own.node, self.own.member);
        let reachable = match self.names.domain_of(node) {
            _ if is_itself => self.reach_itself().map_err(Into::into),
            Some(domain) => {
                let is_wanted = || !self.has_left.load(Ordering::Relaxed);
                reach(&domain, (node, member), self.own, (self.rung(), &is_wanted))
            }
            None => Err(ReachError::Closed),
        };
        let reached = match reachable {
            Ok((made, reached)) => {
                self.lock().pairs.insert(pair, made);
                reached
            }
            Err(error) => {
                tracing::debug!(%error, node = node.0, "a member of the fabric is not reached");
                Reached::NotResponding
            }
        };
        self.bring(|state, now| state.member.reached(pair, reached, now))
    }

    /// This member as one that uses its own segments.
    fn reach_itself(&self) -> Result<Reachable, WordsError> {
        let (claims, view, _) = Published::new("beeline-claims", CLAIMS)?;
        let (yard, _) = Yard::create()?;
        let gear = Gear::new(self.own.member, self.bells.clone(), yard.clone());
        let user = Arc::new(User { uses: view.clone(), yard });
        let board = self.board_view.clone();
        let [consumer, provider] = Pair::with_itself(user, Arc::clone(&self.bank), gear, board.clone());
        self.lock().admit(self.own.node, None, view, consumer);
        Ok((provider, Reached::Provider { board, claims }))
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        let (Ok(offset), Ok(bytes)) = (usize::try_from(self.offset), usize::try_from(self.bytes)) else {
            return;
        };
        if let Err(error) = self.bank.give_back(offset, bytes) {
            tracing::warn!(%error, self.bytes, "memory of a segment that was removed is not given back");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use beeline_domain::{Answer, Domain, DomainConfig, Peer, Refusal, Service};
    use beeline_fabric::{Call, LocalSegment, Part, SegmentId, Value};
    use beeline_fabric_transfer::Of;
    use rustix::fs::fstat;

    use super::*;
    use crate::map::{Map, MapOptions};
    use crate::member::FabricMember;
    use crate::names::offer_name;
    use crate::sole_node::{NODE, adapter, make_available, member, segment};

    /// Keeps the disposer's thread until the test lets go of the other end.
    struct Holding(Receiver<()>);

    impl Drop for Holding {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    /// A segment of which a byte of each page was stored.
    fn stored(member: &FabricMember, id: u32, bytes: u64) -> LocalSegment {
        let local = segment(member, SegmentId(id), bytes);
        let part = Part { offset: 0, bytes };
        let map = Map::new(&member.shared, Of::Local(local), part, MapOptions::default()).unwrap();
        (0..bytes as usize).step_by(4096).for_each(|offset| map.copy_in(offset, &[1]).unwrap());
        local
    }

    #[test]
    fn member_that_polls_is_not_rung_by_who_disconnects() {
        let dir = tempfile::tempdir().unwrap();
        let [owner, user] = [(); 2].map(|()| member(dir.path()));
        let (node, id, adapter) = (NODE, SegmentId(1), adapter());
        let local = stored(&owner, id.0, 4096);
        make_available(&owner, local);
        owner.tell_segment(local);
        let (timeout_nanos, is_asynchronous, has_callback) = (None, false, false);
        let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
        for polls in [false, true, false] {
            owner.set_polling(polls);
            let Ok(Value::Remote(remote, _)) = user.call(connect) else { panic!("no connection") };
            let disconnect = Call::Disconnect(remote);
            let (ended, wants) = user.shared.alter(|state, now| state.member.call(disconnect, now));
            ended.unwrap();
            assert_eq!(wants.iter().any(|want| matches!(want, Want::Ring(_))), !polls);
            user.shared.carry_out_all(wants);
        }
    }

    /// Says nothing until the test has ended.
    struct Silent(Receiver<()>, Sender<()>);

    impl Service for Silent {
        fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            self.1.send(()).unwrap();
            let _ = self.0.recv();
            Err(Refusal::new("the test has ended"))
        }

        fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            Err(Refusal::new("there is nothing"))
        }

        fn departed(&mut self, _: &Peer) {}
    }

    #[test]
    fn who_leaves_waits_for_no_member_that_does_not_answer() {
        let dir = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "fabric".to_owned() };
        let (lets_go, held) = channel();
        let (says, hears) = channel();
        let stopped = MemberNumber::new(NODE, 7 << 16);
        let domain = Domain::open(&config).unwrap();
        let offer = domain.offer(&offer_name(NODE, stopped), Box::new(Silent(held, says))).unwrap();
        let member = member(dir.path());
        let shared = Arc::clone(&member.shared);
        shared.reach_itself().unwrap();
        // Of who uses this member: nobody waits for what is reached.
        let pair = *shared.lock().pairs.keys().next().unwrap();
        let reaching = std::thread::spawn(move || shared.reach(pair, NODE, stopped).len());
        hears.recv().unwrap();
        drop(member);
        assert_eq!(reaching.join().unwrap(), 0);
        drop(lets_go);
        drop(offer);
    }

    #[test]
    fn small_segment_is_given_back_by_who_removes_it_and_a_large_one_by_the_disposer() {
        let dir = tempfile::tempdir().unwrap();
        let member = member(dir.path());
        let bank_bytes = || fstat(member.shared.bank.fd()).unwrap().st_blocks as u64 * 512;
        let large = 2 * GIVEN_BACK_HERE_BYTES;
        let small = stored(&member, 1, GIVEN_BACK_HERE_BYTES);
        let other = stored(&member, 2, large);
        let (lets_go, held) = channel();
        let disposer = member.shared.domain.disposer();
        disposer.dispose(Holding(held));
        assert_eq!(bank_bytes(), GIVEN_BACK_HERE_BYTES + large);
        member.call(Call::RemoveSegment { local: small, is_forced: false }).unwrap();
        assert_eq!(bank_bytes(), large);
        member.call(Call::RemoveSegment { local: other, is_forced: false }).unwrap();
        assert_eq!(bank_bytes(), large);
        drop(lets_go);
        let (said, hears) = channel::<()>();
        disposer.dispose(said);
        // Its turn comes after that of the segment.
        assert!(hears.recv().is_err());
        assert_eq!(bank_bytes(), 0);
    }
}
