//! Two honest members at work while a process of the same user writes anything into all that they share (`support/scribbler.rs`). Each of
//! their calls ends, in success or with an error that they are told; no thread of theirs panics, and what they do afterwards is right.
//!
//! The locks of registries are not here: `names.rs` and the tests of registries have them held. `BEELINE_SEED` says which garbage.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline_fabric::{
    AdapterNumber, Call, DmaEntry, DmaState, InterruptNumber, LocalSegment, NodeId, Part, Refusal, SegmentId,
    Value,
};
use beeline_fabric_process::{
    DmaDirection, DmaLocal, DmaTransfer, FabricMember, InterruptOptions, MessageQueue, NotTaken, QueueConfig,
    Received,
};
use beeline_window::Sent;
use support::Fabric;
use support::interrupts::sleeping;
use support::random::Random;
use support::scribbler::{self, Attack};
use support::segments::{connect, create_own};

#[test]
fn role() {
    scribbler::play();
    support::play();
}

fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

/// Messages that go through a queue in either direction: more than pass before somebody writes over it.
const MESSAGES: u32 = 10_000;

/// How often something that the honest members do comes to its end, and how often it is refused.
#[derive(Debug, Default)]
struct Tally {
    done: u32,
    refused: u32,
}

/// Two members that make, use and remove what is theirs, and use what the member of node 12 says that it has.
struct Honest {
    owner: FabricMember,
    user: FabricMember,
}

impl Honest {
    fn segment(&self, id: u32) -> Result<(), Refusal> {
        let (is_auto, is_private, is_empty, has_callback) = (false, false, false, true);
        let create = Call::CreateSegment {
            id: SegmentId(id),
            is_auto,
            bytes: 4096,
            is_private,
            is_empty,
            has_callback,
        };
        let Value::Local(local, _) = self.owner.call(create)? else { panic!("no segment was made") };
        let used = self.offer_and_use(local, id);
        self.owner.call(Call::RemoveSegment { local, is_forced: true })?;
        while self.owner.next_event().is_some() {}
        used
    }

    /// A segment that has its memory alone, which is asked for.
    fn lent_segment(&self, id: u32) -> Result<(), Refusal> {
        let local = create_own(&self.owner, id, 8192)?;
        let used = self.offer_and_use(local, id);
        self.owner.call(Call::RemoveSegment { local, is_forced: true })?;
        used
    }

    fn offer_and_use(&self, local: LocalSegment, id: u32) -> Result<(), Refusal> {
        self.owner.call(Call::Prepare(local, adapter()))?;
        self.owner.call(Call::SetAvailable(local, adapter()))?;
        self.use_segment(4, id)
    }

    fn use_segment(&self, node: u16, id: u32) -> Result<(), Refusal> {
        let remote = connect(&self.user, node, id)?;
        let sequence = self.user.sequence(remote)?;
        let started = sequence.start().1;
        let map = self.user.map_remote(remote, Part { offset: 0, bytes: 64 });
        if let Ok(map) = &map {
            map.copy_in(0, b"12345678").unwrap();
            map.copy_out(0, &mut [0; 8]).unwrap();
        }
        for (offset, bytes) in [(0, 1 << 45), (1 << 40, 8)] {
            let _outside = self.user.map_remote(remote, Part { offset, bytes });
        }
        started.map(|start| sequence.check(start));
        let _ = self.user.call(Call::WaitRemote { remote, timeout_nanos: Some(0) });
        drop(map);
        self.user.call(Call::Disconnect(remote)).map(drop)
    }

    /// Copies by DMA, from memory of the user's into a segment that a registry and a board name.
    fn transfer(&self, id: u32) -> Result<(), Refusal> {
        let local = create_own(&self.user, id, 4096)?;
        let copied = connect(&self.user, 12, 7).and_then(|remote| {
            let queue = self.user.dma_queue(4)?;
            let entries = [DmaEntry { bytes: 1024, local_offset: 0, remote_offset: 512 }];
            let local = DmaLocal::Segment(local);
            let transfer = DmaTransfer { local, remote, direction: DmaDirection::Write, entries: &entries };
            let state = queue.copy(transfer);
            drop(queue);
            self.user.call(Call::Disconnect(remote))?;
            match state? {
                DmaState::Done => Ok(()),
                _ => Err(Refusal::NotConnected),
            }
        });
        self.user.call(Call::RemoveSegment { local, is_forced: true })?;
        copied
    }

    /// Triggers what is its own, and what the other side says it has.
    fn interrupts(&self, id: u32) -> Result<(), Refusal> {
        let number = InterruptNumber(id);
        let options = InterruptOptions { number: Some(number), wait: sleeping(), ..Default::default() };
        let own =
            self.owner.create_interrupt(InterruptOptions { is_shared: id.is_multiple_of(2), ..options })?;
        let data = self.owner.create_data_interrupt(options)?;
        let mut triggered = Ok(());
        for (node, number) in [(4, number), (12, InterruptNumber(7))] {
            let timeout = Some(Duration::ZERO);
            let trigger = self.user.connect_interrupt(NodeId(node), number, adapter(), timeout);
            let data_trigger = self.user.connect_data_interrupt(NodeId(node), number, adapter(), timeout);
            triggered = triggered.and(trigger.and_then(|trigger| trigger.trigger()));
            triggered = triggered.and(data_trigger.and_then(|trigger| trigger.trigger(b"a message")));
        }
        own.raise()?;
        own.wait(Some(Duration::from_secs(5)))?;
        match data.wait(&mut [0; 4], Some(Duration::from_millis(1))) {
            Ok(_) | Err(NotTaken::Overflow { .. } | NotTaken::Refused(Refusal::Timeout)) => triggered,
            Err(NotTaken::Refused(refusal)) => Err(refusal),
        }
    }

    fn group(&self, id: u32) -> Result<(), Refusal> {
        let id = SegmentId(id);
        let first = self.owner.join_group(id, 10_000)?;
        let second = self.user.join_group(id, 10_000);
        let offered = self.owner.call(Call::Prepare(first.local, adapter()));
        let offered = offered.and_then(|_| self.owner.call(Call::SetAvailable(first.local, adapter())));
        let used = offered.and_then(|_| self.use_segment(252, id.0));
        if let Ok(second) = second {
            self.user.call(Call::RemoveSegment { local: second.local, is_forced: true })?;
        }
        self.owner.call(Call::RemoveSegment { local: first.local, is_forced: true })?;
        used
    }

    /// Opens a message queue, whose headers and windows are written over, and says something through it both ways.
    fn queue(&self, id: u32) -> Result<(), Refusal> {
        let config = |node, local, remote| QueueConfig {
            node: NodeId(node),
            adapter: adapter(),
            local: SegmentId(local),
            remote: SegmentId(remote),
            max_messages: 64,
            max_message_bytes: 100,
        };
        let ends = [
            self.owner.message_queue(config(8, id, id + 1))?,
            self.user.message_queue(config(4, id + 1, id))?,
        ];
        let began = Instant::now();
        while ends.iter().filter(|end| end.open(Duration::from_micros(10)).is_ok()).count() < 2 {
            if began.elapsed() > Duration::from_millis(100) {
                return Err(Refusal::Timeout);
            }
        }
        for _ in 0..MESSAGES {
            for [from, to] in [[0, 1], [1, 0]] {
                pass(&ends[from], &ends[to])?;
            }
        }
        Ok(())
    }
}

/// A message from one end to the other, which may be no message, or another one, when it comes.
fn pass(from: &MessageQueue, to: &MessageQueue) -> Result<(), Refusal> {
    let sent = from.send_checked(&[0; 60])?;
    let received = to.receive(&mut [0; 60])?;
    if (sent, received) == (Sent::Full, Received::TooFew) {
        // A window that is full of nothing: nobody can do more.
        return Err(Refusal::Nospc);
    }
    let _hints = (from.free_bytes(), to.kept_bytes());
    Ok(())
}

#[test]
fn whatever_is_written_over_all_that_is_shared_every_call_ends_and_the_fabric_goes_on_afterwards() {
    static HAS_PANICKED: AtomicBool = AtomicBool::new(false);
    let said = std::panic::take_hook();
    // Also one of a thread that nobody joins.
    std::panic::set_hook(Box::new(move |panic| {
        HAS_PANICKED.store(true, Ordering::Relaxed);
        said(panic);
    }));
    let (fabric, mut random) = (Fabric::new(), Random::new());
    let [owner, user] = [4, 8].map(|node| FabricMember::open(fabric.config(node)).unwrap());
    let honest = Honest { owner, user };
    type Attempt = fn(&Honest, u32) -> Result<(), Refusal>;
    let attempts: [(&str, Attempt); 7] = [
        ("segments", Honest::segment),
        ("segments with a memory of their own", Honest::lent_segment),
        ("segments of the other side", |honest, _| honest.use_segment(12, 7)),
        ("DMA", Honest::transfer),
        ("interrupts", Honest::interrupts),
        ("groups", Honest::group),
        ("queues", Honest::queue),
    ];
    let mut tallies: [Tally; 7] = Default::default();
    // So that there is a registry of groups.
    honest.group(1).unwrap();
    let attack = Attack::start(&fabric, [&honest.owner, &honest.user], random.any());
    let (began, mut id) = (Instant::now(), 100);
    let is_effective = |tallies: &[Tally]| {
        let refused = tallies.iter().filter(|tally| tally.refused > 0).count();
        tallies.iter().all(|tally| tally.done > 0) && tallies[6].refused > 0 && refused >= 5
    };
    let least = Duration::from_millis(support::random::number("BEELINE_ATTACK_MS").unwrap_or(2000));
    while began.elapsed() < least || !is_effective(&tallies) && began.elapsed() < Duration::from_secs(60) {
        for ((name, attempt), tally) in attempts.iter().zip(&mut tallies) {
            let started = Instant::now();
            match attempt(&honest, id) {
                Ok(()) => tally.done += 1,
                Err(_) => tally.refused += 1,
            }
            // Where holders of a group lie, it is tried for ten seconds.
            assert!(started.elapsed() < Duration::from_secs(30), "{name} of {id}");
            id += 2;
        }
    }
    drop(attack);
    println!("{tallies:?}");
    assert!(is_effective(&tallies), "{tallies:?}");
    // Entries of anything may have been left under some numbers.
    let local = (id..).find_map(|id| Some((id, honest.owner_makes(id)?))).unwrap();
    let remote = connect(&honest.user, 4, local.0).unwrap();
    let map = honest.user.map_remote(remote, Part { offset: 0, bytes: 8 }).unwrap();
    map.copy_in(0, b"as ever.").unwrap();
    let mut seen = [0; 8];
    honest.owner.map_local(local.1, Part { offset: 0, bytes: 8 }).unwrap().copy_out(0, &mut seen).unwrap();
    assert_eq!(&seen, b"as ever.");
    drop(map);
    drop(honest);
    assert!(!HAS_PANICKED.load(Ordering::Relaxed));
}

impl Honest {
    fn owner_makes(&self, id: u32) -> Option<LocalSegment> {
        let call = Call::CreateSegment {
            id: SegmentId(id),
            is_auto: false,
            bytes: 4096,
            is_private: false,
            is_empty: false,
            has_callback: false,
        };
        let Ok(Value::Local(local, _)) = self.owner.call(call) else { return None };
        self.owner.call(Call::Prepare(local, adapter())).unwrap();
        self.owner.call(Call::SetAvailable(local, adapter())).unwrap();
        Some(local)
    }
}
