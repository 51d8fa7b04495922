//! DMA between segments of two processes: what is copied, what a job keeps in use, and what becomes of it when the other side goes.
//!
//! Run over each kind of member (`host/fabric/process/tests/dma.rs`, `host/fabric/bar/tests/dma.rs`), whose `support` says what members are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use beeline_fabric::{
    AdapterNumber, Call, DmaEntry, DmaState, LocalSegment, MAX_DMA_ENTRIES, NodeId, Part, Refusal,
    RemoteSegment, SegmentId, Value,
};
use beeline_fabric_transfer::{DmaDirection, DmaLocal, DmaQueue, DmaTransfer};

use super::support::{self, Fabric, Map, Member, Process};

pub const LARGE: u64 = 32 << 20;

/// A job that does not end by itself while a test runs.
pub fn endless() -> Vec<DmaEntry> {
    vec![entry(0, 0, LARGE); MAX_DMA_ENTRIES]
}

/// A process of node 4 with segment 7, and this one of node 8 with segment 9, connected to it.
pub struct Two {
    pub member: Member,
    pub local: LocalSegment,
    pub remote: RemoteSegment,
    pub owner: Process,
}

impl Two {
    pub fn new(fabric: &Fabric, bytes: u64) -> Self {
        let mut owner = fabric.member(4);
        owner.expect(&format!("create s 7 {bytes}"), "ok 7");
        owner.expect("prepare s", "ok");
        owner.expect("available s", "ok");
        let member = fabric.member_here(8);
        let local = available(&member, 9, bytes);
        let remote = connect(&member, 4, 7).unwrap();
        Two { member, local, remote, owner }
    }

    pub fn transfer<'a>(&self, direction: DmaDirection, entries: &'a [DmaEntry]) -> DmaTransfer<'a> {
        DmaTransfer { local: DmaLocal::Segment(self.local), remote: self.remote, direction, entries }
    }

    pub fn queue(&self) -> DmaQueue {
        self.member.dma_queue(16).unwrap()
    }

    fn map(&self, bytes: u64) -> Map {
        self.member.map_local(self.local, Part { offset: 0, bytes }).unwrap()
    }

    pub fn remove(&self) -> Result<(), Refusal> {
        self.member.call(Call::RemoveSegment { local: self.local, is_forced: false }).map(drop)
    }

    fn disconnect(&self) -> Result<(), Refusal> {
        self.member.call(Call::Disconnect(self.remote)).map(drop)
    }
}

fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

/// Makes a segment that others may connect to.
fn available(member: &Member, id: u32, bytes: u64) -> LocalSegment {
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let id = SegmentId(id);
    let create = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
    let Value::Local(local, _) = member.call(create).unwrap() else { panic!("no segment was made") };
    member.call(Call::Prepare(local, adapter())).unwrap();
    member.call(Call::SetAvailable(local, adapter())).unwrap();
    local
}

/// Connects to a segment of a node, at once or not at all.
fn connect(member: &Member, node: u16, id: u32) -> Result<RemoteSegment, Refusal> {
    let (is_asynchronous, has_callback) = (false, false);
    let (node, id, timeout_nanos) = (NodeId(node), SegmentId(id), Some(0));
    let connect =
        Call::Connect { node, id, adapter: adapter(), timeout_nanos, is_asynchronous, has_callback };
    match member.call(connect)? {
        Value::Remote(remote, _) => Ok(remote),
        other => panic!("{other:?} is no connection"),
    }
}

pub fn entry(local_offset: u64, remote_offset: u64, bytes: u64) -> DmaEntry {
    DmaEntry { local_offset, remote_offset, bytes }
}

#[test]
fn job_copies_its_entries_and_nothing_else_in_either_direction() {
    let fabric = Fabric::with_room(3 * LARGE);
    let mut two = Two::new(&fabric, 300_000);
    two.owner.expect("map-local s 0 300000", "ok 300000");
    let (map, queue) = (two.map(300_000), two.queue());
    let numbers: Vec<u8> = (0..300_000u32).map(|at| b'a' + (at % 23) as u8).collect();
    map.copy_in(0, &numbers).unwrap();
    let entries =
        [entry(0, 100_000, 5), entry(10, 100_007, 1), entry(50, 200_000, 0), entry(1000, 299_990, 10)];
    assert_eq!(queue.copy(two.transfer(DmaDirection::Write, &entries)), Ok(DmaState::Done));
    two.owner.expect("load s 99998 12", "..abcde..k..");
    let last: String = numbers[1000..1010].iter().map(|byte| char::from(*byte)).collect();
    two.owner.expect("load s 299988 12", &format!("..{last}"));
    two.owner.expect("load s 200000 4", "....");

    two.owner.expect("store s 150000 hello", "ok");
    queue.start(two.transfer(DmaDirection::Read, &[entry(0, 149_999, 150_001)])).unwrap();
    assert_eq!(queue.wait(None), Ok(DmaState::Done));
    let mut found = [0; 7];
    map.copy_out(0, &mut found).unwrap();
    assert_eq!(&found, b"\0hello\0");
    map.copy_out(150_000, &mut found).unwrap();
    assert_eq!((found[0], &found[1..]), (*last.as_bytes().last().unwrap(), &numbers[150_001..150_007]));
}

#[test]
fn entries_outside_a_segment_and_segments_that_are_not_there_are_refused_and_nothing_is_started() {
    let fabric = Fabric::with_room(3 * LARGE);
    let mut two = Two::new(&fabric, 100_000);
    let queue = two.queue();
    for (wrong, refusal) in [
        (entry(0, 0, 100_001), Refusal::OutOfRange),
        (entry(99_999, 0, 2), Refusal::OutOfRange),
        (entry(0, 99_999, 2), Refusal::OutOfRange),
        (entry(u64::MAX, 0, 2), Refusal::OutOfRange),
        (entry(0, u64::MAX - 1, 1), Refusal::OutOfRange),
    ] {
        let entries = [entry(0, 0, 8), wrong];
        assert_eq!(
            queue.start(two.transfer(DmaDirection::Write, &entries)).map(drop),
            Err(refusal),
            "{wrong:?}"
        );
    }
    assert_eq!(queue.start(two.transfer(DmaDirection::Write, &[])).map(drop), Err(Refusal::IllegalParameter));
    assert_eq!((queue.state(), queue.wait(None)), (DmaState::Idle, Err(Refusal::IllegalOperation)));
    assert_eq!(queue.abort(), Err(Refusal::IllegalOperation));
    two.owner.expect("remove-force s", "ok");
    let one = [entry(0, 0, 8)];
    assert_eq!(queue.start(two.transfer(DmaDirection::Write, &one)).map(drop), Err(Refusal::NotConnected));
    two.disconnect().unwrap();
    assert_eq!(
        queue.start(two.transfer(DmaDirection::Write, &one)).map(drop),
        Err(Refusal::IllegalParameter)
    );
    assert_eq!(queue.state(), DmaState::Idle);
}

#[test]
fn small_job_has_ended_when_it_is_started_or_posted() {
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, LARGE);
    let (queue, map) = (two.queue(), two.map(LARGE));
    let parts = [entry(0, 8192, 8000), entry(8192, 0, 8192)];
    for turn in 0..100u8 {
        map.copy_in(0, &[turn; 64]).unwrap();
        queue.start(two.transfer(DmaDirection::Write, &parts)).unwrap();
        assert_eq!(queue.state(), DmaState::Done, "turn {turn}");
        map.copy_in(0, &[!turn; 64]).unwrap();
        queue.start(two.transfer(DmaDirection::Read, &[entry(0, 8192, 64)])).unwrap();
        let mut found = [0; 64];
        map.copy_out(0, &mut found).unwrap();
        assert_eq!(found, [turn; 64]);
        queue.reset().unwrap();
        queue.gather((two.local, two.remote), DmaDirection::Write, entry(0, 0, 64 << 10)).unwrap();
        queue.post().unwrap();
        assert_eq!(queue.state(), DmaState::Done, "turn {turn}");
        queue.reset().unwrap();
    }
}

#[test]
fn segments_are_in_use_as_long_as_a_job_is_under_way_and_no_longer() {
    let fabric = Fabric::with_room(3 * LARGE);
    let mut two = Two::new(&fabric, LARGE);
    let (queue, all) = (two.queue(), endless());
    queue.start(two.transfer(DmaDirection::Write, &all)).unwrap();
    assert_eq!(queue.start(two.transfer(DmaDirection::Write, &all)).map(drop), Err(Refusal::Busy));
    assert_eq!(queue.wait(Some(Duration::ZERO)), Ok(DmaState::Posted));
    assert_eq!((two.remove(), two.disconnect()), (Err(Refusal::Busy), Err(Refusal::Busy)));
    assert_eq!(queue.abort(), Ok(DmaState::Aborted));
    assert_eq!((queue.state(), queue.failure()), (DmaState::Aborted, None));
    // And may be used again.
    assert_eq!(queue.copy(two.transfer(DmaDirection::Read, &[entry(0, 0, 8)])), Ok(DmaState::Done));
    assert_eq!((two.disconnect(), two.remove()), (Ok(()), Ok(())));
    two.owner.expect("remove s", "ok");
}

#[test]
fn queue_that_is_dropped_or_whose_member_leaves_copies_nothing_more() {
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, LARGE);
    let queue = two.queue();
    queue.start(two.transfer(DmaDirection::Write, &endless())).unwrap();
    drop(queue);
    // A piece may be under way.
    support::wait_until(|| two.disconnect() == Ok(()));
    let queue = two.queue();
    let again = Two { remote: connect(&two.member, 4, 7).unwrap(), ..two };
    let all = [entry(0, 0, LARGE); 50];
    queue.start(again.transfer(DmaDirection::Write, &all)).unwrap();
    let Two { member, owner, local, remote } = again;
    drop(member);
    // Whoever waits does it; otherwise nobody would.
    assert!(matches!(queue.wait(None), Ok(DmaState::Done | DmaState::Error)));
    let local = DmaLocal::Segment(local);
    let transfer = DmaTransfer { local, remote, direction: DmaDirection::Write, entries: &all };
    queue.start(transfer).unwrap_err();
    owner.finish();
}

#[test]
fn who_waits_for_a_job_learns_its_end_and_not_that_of_a_later_one() {
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, LARGE);
    let queue = two.queue();
    let first = queue.start(two.transfer(DmaDirection::Write, &endless())).unwrap();
    assert_eq!((first.wait(Some(Duration::ZERO)), first.failure()), (Ok(DmaState::Posted), None));
    queue.abort().unwrap();
    let second = queue.start(two.transfer(DmaDirection::Write, &endless())).unwrap();
    assert_eq!(first.wait(None), Ok(DmaState::Aborted));
    assert_eq!(second.wait(Some(Duration::from_millis(1))), Ok(DmaState::Posted));
    two.owner.kill();
    assert_eq!(second.wait(None), Ok(DmaState::Error));
    assert_eq!((first.failure(), second.failure()), (None, Some(Refusal::TransferFailed)));
}

/// Whoever finds that the last pieces are others' sleeps, and is woken by who copies them.
#[test]
fn all_who_wait_for_a_job_learn_its_end() {
    const WAITERS: usize = 3;
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, LARGE);
    let queue = two.queue();
    for _ in 0..20 {
        let job = queue.begin(two.transfer(DmaDirection::Write, &[entry(0, 0, LARGE)])).unwrap();
        let (said, hears) = channel();
        for _ in 0..WAITERS {
            let (job, said) = (job.clone(), said.clone());
            std::thread::spawn(move || said.send(job.wait(None)));
        }
        for _ in 0..WAITERS {
            assert_eq!(hears.recv_timeout(Duration::from_secs(60)), Ok(Ok(DmaState::Done)));
        }
    }
}

/// A job on another queue waits for a piece of the first one's and not for all of it.
#[test]
fn queues_take_turns() {
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, LARGE);
    let (first, second) = (two.queue(), two.queue());
    first.start(two.transfer(DmaDirection::Write, &endless())).unwrap();
    second.start(two.transfer(DmaDirection::Write, &[entry(0, 0, 200_000)])).unwrap();
    support::wait_until(|| second.state() == DmaState::Done);
    assert_eq!(first.state(), DmaState::Posted);
    assert_eq!(first.abort(), Ok(DmaState::Aborted));
}

#[test]
fn job_goes_on_while_nobody_calls_and_fails_when_the_other_side_dies() {
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, LARGE);
    let queue = two.queue();
    queue.start(two.transfer(DmaDirection::Write, &[entry(0, 0, 1 << 20)])).unwrap();
    support::wait_until(|| queue.state() == DmaState::Done);
    queue.start(two.transfer(DmaDirection::Write, &endless())).unwrap();
    two.owner.kill();
    assert_eq!(queue.wait(Some(Duration::from_secs(60))), Ok(DmaState::Error));
    assert_eq!(queue.failure(), Some(Refusal::TransferFailed));
}

#[test]
fn threads_that_use_queues_of_their_own_at_once_get_their_own_bytes() {
    const THREADS: u64 = 4;
    const PART: u64 = 300_000;
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, THREADS * PART);
    let map = two.map(THREADS * PART);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (two, map) = (&two, &map);
            scope.spawn(move || {
                let (queue, start) = (two.queue(), thread * PART);
                for turn in 0..40u8 {
                    let bytes = vec![turn + 1; PART as usize / 2];
                    map.copy_in(start as usize, &bytes).unwrap();
                    let half = PART / 2;
                    let there = [entry(start, start, half)];
                    let back = [entry(start + half, start, half)];
                    if turn % 2 == 0 {
                        queue.start(two.transfer(DmaDirection::Write, &there)).unwrap();
                        assert_eq!(queue.wait(None), Ok(DmaState::Done));
                    } else {
                        let ended = queue.copy(two.transfer(DmaDirection::Write, &there));
                        assert_eq!(ended, Ok(DmaState::Done));
                    }
                    queue.start(two.transfer(DmaDirection::Read, &back)).unwrap();
                    while queue.state() == DmaState::Posted {
                        std::thread::yield_now();
                    }
                    let mut found = vec![0; half as usize];
                    map.copy_out((start + half) as usize, &mut found).unwrap();
                    assert!(found == bytes, "thread {thread}, turn {turn}");
                }
            });
        }
    });
}

#[test]
fn child_of_fork_has_no_jobs_and_takes_none_of_its_parents() {
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, LARGE);
    let queue = two.queue();
    let all = endless();
    queue.start(two.transfer(DmaDirection::Write, &all)).unwrap();
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            let refused = Some(Refusal::System);
            let is_right = queue.start(two.transfer(DmaDirection::Write, &all)).err() == refused
                && queue.wait(None).err() == refused
                && queue.abort().err() == refused
                && queue.state() == DmaState::Idle;
            drop(queue);
            std::process::exit(if is_right { 0 } else { 1 })
        }
        fork::Fork::Parent(child) => assert_eq!(fork::waitpid(child).unwrap(), 0),
    }
    assert_eq!(queue.abort(), Ok(DmaState::Aborted));
}

#[test]
fn gathered_entries_are_one_job_between_the_same_segments() {
    let fabric = Fabric::with_room(3 * LARGE);
    let mut two = Two::new(&fabric, 100_000);
    two.owner.expect("map-local s 0 100000", "ok 100000");
    let (map, queue) = (two.map(100_000), two.member.dma_queue(2).unwrap());
    map.copy_in(0, b"gathered").unwrap();
    let (segments, write) = ((two.local, two.remote), DmaDirection::Write);
    assert_eq!(queue.post().map(drop), Err(Refusal::IllegalOperation));
    assert_eq!(queue.gather(segments, write, entry(0, 99_999, 2)), Err(Refusal::OutOfRange));
    queue.gather(segments, write, entry(0, 10, 4)).unwrap();
    assert_eq!(queue.gather(segments, DmaDirection::Read, entry(0, 10, 4)), Err(Refusal::IllegalOperation));
    queue.gather(segments, write, entry(4, 20, 4)).unwrap();
    assert_eq!(queue.gather(segments, write, entry(0, 0, 1)), Err(Refusal::MaxEntries));
    assert_eq!((queue.state(), queue.wait(None)), (DmaState::Gather, Err(Refusal::IllegalOperation)));
    // Gathering uses no segment.
    drop(map);
    assert_eq!(two.disconnect(), Ok(()));
    assert_eq!(queue.post().map(drop), Err(Refusal::IllegalParameter));
    queue.reset().unwrap();

    two.remote = connect(&two.member, 4, 7).unwrap();
    let segments = (two.local, two.remote);
    queue.gather(segments, write, entry(0, 10, 4)).unwrap();
    queue.gather(segments, write, entry(4, 20, 4)).unwrap();
    queue.post().unwrap();
    assert_eq!(queue.wait(None), Ok(DmaState::Done));
    two.owner.expect("load s 8 18", "..gath......ered..");
    assert_eq!(queue.gather(segments, write, entry(0, 10, 4)), Err(Refusal::IllegalOperation));
    queue.reset().unwrap();
    assert_eq!(queue.state(), DmaState::Idle);
    queue.gather(segments, write, entry(0, 10, 4)).unwrap();
    assert_eq!((queue.abort(), queue.state()), (Ok(DmaState::Idle), DmaState::Idle));
}

/// Whatever threads gather, post and forget meanwhile: bytes of a job are between the segments that they were gathered for.
#[test]
fn threads_that_gather_for_other_segments_meanwhile_mix_nothing() {
    let fabric = Fabric::with_room(3 * LARGE);
    let two = Two::new(&fabric, 100_000);
    let other = available(&two.member, 10, 100_000);
    let other_map = two.member.map_local(other, Part { offset: 0, bytes: 100_000 }).unwrap();
    let map = two.map(100_000);
    map.copy_in(0, &[b'a'; 1000]).unwrap();
    other_map.copy_in(0, &[b'b'; 1000]).unwrap();
    let target = two.member.map_remote(two.remote, Part { offset: 0, bytes: 100_000 }).unwrap();
    let queue = two.queue();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (local, place) in [(two.local, 0), (other, 2000)] {
            let (queue, is_over, remote) = (&queue, &is_over, two.remote);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = queue.gather((local, remote), DmaDirection::Write, entry(0, place, 1000));
                    let _ = queue.post();
                    let _ = queue.reset();
                }
            });
        }
        for _ in 0..2000 {
            std::thread::yield_now();
            let mut found = vec![0; 3000];
            target.copy_out(0, &mut found).unwrap();
            let is_right = |bytes: &[u8], own: u8| bytes.iter().all(|byte| *byte == 0 || *byte == own);
            assert!(is_right(&found[..1000], b'a') && is_right(&found[2000..], b'b'));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
