//! Members of two users that are killed, and those that stay: what each does, and what one that stays has left in the end.
//!
//! A member to be killed says the name of each step before it makes it. A member that stays does the opposite of what those do, over and
//! over, until it is told to rest.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_contract_memory::WaitPolicy;
use beeline_domain::Domain;
use beeline_fabric::{
    Access, AdapterNumber, Call, DmaEntry, InterruptNumber, LocalSegment, NodeId, Part, Refusal,
    RemoteSegment, SegmentId,
};
use beeline_fabric_process::{
    DataInterrupt, DmaDirection, DmaLocal, DmaTransfer, FabricConfig, FabricMember, Interrupt,
    InterruptOptions, NodeOfUser, NotTaken, OtherUsers, Survey,
};

use super::joining::{GROUP, GROUP_BYTES};
use super::segments::{available, connect, connect_within};
use super::{NODE, ROOT, config_in, say};

/// Which part the process plays: [`STAYS`] or [`CRASHES`].
pub const PART: &str = "BEELINE_TEST_CRASH_PART";
pub const STAYS: &str = "stays";
pub const CRASHES: &str = "crashes";
/// The other user, as `node uid root`.
pub const OTHER: &str = "BEELINE_TEST_CRASH_OTHER";
/// The first number of the segments and interrupts of a member that is killed, which no other one that lives has.
pub const FIRST: &str = "BEELINE_TEST_CRASH_FIRST";
/// Such numbers, of each node.
pub const FIRSTS: [u32; 2] = [100, 110];

/// The segment of a member that stays, for members of its user, and the one for the other user.
const OWN: u32 = 7;
const EXPORTED: u32 = 8;
const PLAIN: InterruptNumber = InterruptNumber(5);
const DATA: InterruptNumber = InterruptNumber(6);
const BYTES: u64 = 256 << 10;
/// How often what takes a moment is done, so that some are killed in it.
const MANY: u32 = 16;
/// How long one who stays may take to answer, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a process knows of the fabric.
struct Place {
    config: FabricConfig,
    other_node: u16,
    other_uid: u32,
    other_root: PathBuf,
}

impl Place {
    fn of_environment() -> Self {
        let root = std::env::var_os(ROOT).unwrap();
        let other = std::env::var(OTHER).unwrap();
        let [node, uid, other_root] = other.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
        let config = config_in(Path::new(&root), std::env::var(NODE).unwrap().parse().unwrap());
        let (other_node, other_uid) = (node.parse().unwrap(), uid.parse().unwrap());
        Place { config, other_node, other_uid, other_root: other_root.into() }
    }

    fn join(&self) -> FabricMember {
        let domain = config_in(&self.other_root, self.other_node).domain;
        let node = NodeOfUser { node: NodeId(self.other_node), uid: self.other_uid, domain };
        let users = OtherUsers { admitted: vec![self.other_uid], nodes: vec![node] };
        FabricMember::open_with(self.config.clone(), users).unwrap()
    }

    fn node(&self) -> u16 {
        self.config.node.0
    }

    /// A segment that the other user may connect to.
    fn exported(&self, member: &FabricMember, id: u32) -> LocalSegment {
        let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
        let id = SegmentId(id);
        let create = Call::CreateSegment { id, is_auto, bytes: BYTES, is_private, is_empty, has_callback };
        let beeline_fabric::Value::Local(local, _) = member.call(create).unwrap() else {
            panic!("no segment was made")
        };
        member.export(local, Access { users: vec![self.other_uid], ..Access::default() }).unwrap();
        member.call(Call::Prepare(local, adapter())).unwrap();
        member.call(Call::SetAvailable(local, adapter())).unwrap();
        local
    }
}

fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

/// Plays a part in the process that was started for it; returns at once in the test itself.
pub fn play() {
    match std::env::var(PART).as_deref() {
        Ok(STAYS) => stay(&Place::of_environment()),
        Ok(CRASHES) => crash(&Place::of_environment()),
        _ => {}
    }
}

/// Makes rounds until it is killed.
fn crash(place: &Place) {
    let first: u32 = std::env::var(FIRST).unwrap().parse().unwrap();
    // It does not outlive the test.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(1);
    });
    loop {
        crash_in_a_round(place, first);
    }
}

fn crash_in_a_round(place: &Place, first: u32) {
    say("join");
    let member = place.join();
    say("create");
    let (own, exported) = (available(&member, first, BYTES), place.exported(&member, first + 1));
    let plain = InterruptOptions { number: Some(InterruptNumber(first)), ..InterruptOptions::default() };
    let data = InterruptOptions { number: Some(InterruptNumber(first + 1)), ..plain };
    let interrupts = (member.create_interrupt(plain).unwrap(), member.create_data_interrupt(data).unwrap());
    let whole = Part { offset: 0, bytes: BYTES };
    let map = member.map_local(exported, whole).unwrap();
    map.copy_in(0, &[7; 8192]).unwrap();
    say("connect");
    let near = connect_within(&member, place.node(), OWN, PATIENCE.as_nanos() as u64).unwrap();
    let far = connect_within(&member, place.other_node, EXPORTED, PATIENCE.as_nanos() as u64).unwrap();
    say("store");
    for _ in 0..MANY {
        [near, far].iter().for_each(|remote| store(&member, *remote));
    }
    say("trigger");
    let node = NodeId(place.node());
    let trigger = member.connect_interrupt(node, PLAIN, adapter(), Some(PATIENCE)).unwrap();
    let data_trigger = member.connect_data_interrupt(node, DATA, adapter(), Some(PATIENCE)).unwrap();
    for _ in 0..MANY {
        trigger.trigger().unwrap();
        let sent = data_trigger.trigger(&[7; 1000]);
        assert!(matches!(sent, Ok(()) | Err(Refusal::Nospc)), "{sent:?}");
    }
    say("dma");
    let queue = member.dma_queue(4).unwrap();
    let entries = [DmaEntry { local_offset: 0, remote_offset: 0, bytes: BYTES }];
    for (remote, direction) in [(near, DmaDirection::Write), (far, DmaDirection::Read)] {
        let transfer = DmaTransfer { local: DmaLocal::Segment(own), remote, direction, entries: &entries };
        queue.start(transfer).unwrap().wait(None).unwrap();
    }
    say("group");
    let group = member.join_group(GROUP, GROUP_BYTES).unwrap().local;
    member.call(Call::Prepare(group, adapter())).unwrap();
    member.call(Call::SetAvailable(group, adapter())).unwrap();
    say("disconnect");
    for remote in [near, far] {
        member.call(Call::Disconnect(remote)).unwrap();
    }
    drop((map, trigger, data_trigger, interrupts, queue));
    say("leave");
    drop(member);
}

/// Maps a segment, stores into it, and checks that.
fn store(member: &FabricMember, remote: RemoteSegment) {
    let sequence = member.sequence(remote).unwrap();
    let (_, start) = sequence.start();
    // Its member may have died.
    let Ok(map) = member.map_remote(remote, Part { offset: 4096, bytes: 4096 }) else { return };
    map.copy_in(0, &[1; 4096]).unwrap();
    if let Some(start) = start {
        let _ = sequence.check(start);
    }
}

/// A member that stays.
struct Staying<'a> {
    place: &'a Place,
    member: FabricMember,
    plain: Interrupt,
    data: DataInterrupt,
}

/// Answers lines: `work`, `rest` and `count`.
fn stay(place: &Place) {
    let member = place.join();
    available(&member, OWN, BYTES);
    place.exported(&member, EXPORTED);
    let spins = WaitPolicy::SPIN;
    let plain = InterruptOptions { number: Some(PLAIN), wait: spins, ..InterruptOptions::default() };
    let data = InterruptOptions { number: Some(DATA), ..plain };
    let (plain, data) =
        (member.create_interrupt(plain).unwrap(), member.create_data_interrupt(data).unwrap());
    let staying = Staying { place, member, plain, data };
    let rests = Arc::new(AtomicBool::new(false));
    say("joined");
    let mut lines = std::io::stdin().lines();
    while let Some(line) = lines.next() {
        match line.unwrap().as_str() {
            "work" => std::thread::scope(|scope| {
                rests.store(false, Ordering::Relaxed);
                scope.spawn(|| staying.work(&rests));
                say("works");
                // The next line has it rest.
                assert!(lines.next().is_none_or(|line| line.unwrap() == "rest"));
                rests.store(true, Ordering::Relaxed);
            }),
            "count" => say(&staying.count()),
            other => panic!("`{other}` is no line"),
        }
    }
}

impl Staying<'_> {
    /// Connects to what the others have, stores into it, triggers them, and takes what they have sent.
    fn work(&self, rests: &AtomicBool) {
        let at_once = Some(Duration::ZERO);
        while !rests.load(Ordering::Relaxed) {
            for first in FIRSTS {
                for (node, id) in [(self.place.node(), first), (self.place.other_node, first + 1)] {
                    if let Some(remote) = there(connect(&self.member, node, id)) {
                        store(&self.member, remote);
                        self.member.call(Call::Disconnect(remote)).unwrap();
                    }
                }
                let (node, number) = (NodeId(self.place.node()), InterruptNumber(first));
                let trigger = self.member.connect_interrupt(node, number, adapter(), at_once);
                if let Some(trigger) = there(trigger) {
                    let _ = trigger.trigger();
                }
                let number = InterruptNumber(first + 1);
                let trigger = self.member.connect_data_interrupt(node, number, adapter(), at_once);
                if let Some(trigger) = there(trigger) {
                    let _ = trigger.trigger(&[7; 100]);
                }
            }
            self.take();
            std::thread::yield_now();
        }
    }

    fn take(&self) {
        let at_once = Some(Duration::ZERO);
        while self.plain.wait(at_once).is_ok() {}
        let mut message = [0; 1000];
        loop {
            match self.data.wait(&mut message, at_once) {
                Ok(bytes) => assert!(message[..bytes].iter().all(|byte| *byte == 7)),
                Err(NotTaken::Refused(Refusal::Timeout)) => return,
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// What this process holds and what its domain keeps, once it has looked who is gone; behind `|` what varies: threads, blocks of
    /// memories that others can map, and kilobytes of its own.
    fn count(&self) -> String {
        self.take();
        for first in FIRSTS {
            for node in [self.place.node(), self.place.other_node] {
                connect(&self.member, node, first).unwrap_err();
            }
        }
        let number = self.member.number().0.try_into().unwrap();
        let survey = Survey::open(&self.place.config.domain).unwrap();
        let report = survey.report(self.place.config.node, number, PATIENCE).unwrap().member;
        let said = (report.consumers, report.connections, report.segments);
        // Opening a domain sweeps it, as joining does.
        let domain = Domain::open(&self.place.config.domain).unwrap();
        let mut names = Vec::new();
        for name in domain.registries().unwrap() {
            let registry = domain.registry(&name).unwrap();
            registry.sweep().unwrap();
            names.push((registry.entries().unwrap().len(), registry.residents().unwrap().len()));
        }
        drop((survey, domain));
        let root = self.place.config.domain.root.as_ref().unwrap();
        let (files, [fds, memories, pages]) = (files_below(root), descriptors());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let maps = maps.lines().filter(|line| line.contains("/memfd:")).count();
        let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
        format!(
            "consumers, connections, segments {said:?}; entries and members of registries {names:?}; files {files}; \
             descriptors {fds}, of memories {memories}; maps {maps}|{threads} {pages} {}",
            anonymous_kb()
        )
    }
}

/// What is there; nothing if its member has died or does not have it.
fn there<T>(outcome: Result<T, Refusal>) -> Option<T> {
    match outcome {
        Ok(there) => Some(there),
        Err(Refusal::System | Refusal::Nospc | Refusal::IllegalParameter | Refusal::MaxEntries) => {
            panic!("{:?}", outcome.err())
        }
        Err(_) => None,
    }
}

fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { 1 + files_below(&path) } else { 1 }).sum()
}

/// Descriptors of this process, those that are of memories, and the blocks that these have.
fn descriptors() -> [u64; 3] {
    use std::os::unix::fs::MetadataExt;
    let mut counts = [0; 3];
    for fd in std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path()) {
        let Ok(target) = std::fs::read_link(&fd) else { continue };
        counts[0] += 1;
        if target.to_string_lossy().starts_with("/memfd:") {
            counts[1] += 1;
            counts[2] += std::fs::metadata(&fd).map_or(0, |file| file.blocks());
        }
    }
    counts
}

fn anonymous_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
