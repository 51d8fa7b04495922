//! Joining, over and over: a node, a group, a segment that is shared, one of several interrupts, and a message queue.

use std::time::{Duration, Instant};

use beeline_fabric::{AdapterNumber, Call, InterruptNumber, NodeId, Refusal, SegmentId};
use beeline_fabric_process::{FabricConfig, FabricMember, InterruptOptions, QueueConfig};

use super::{Fabric, Process};

/// The group that is joined, whose first bytes are zero when nobody held it.
pub const GROUP: SegmentId = SegmentId(7);
pub const GROUP_BYTES: u64 = 100_000;
/// The segment of node 4 that processes of it attach to.
pub const SHARED: SegmentId = SegmentId(9);
/// The interrupt of node 4 that each of its processes has, and others trigger.
const INTERRUPT: InterruptNumber = InterruptNumber(5);
/// Ends of the message queue between nodes 4 and 8.
pub const ENDS: [SegmentId; 2] = [SegmentId(20), SegmentId(21)];

/// The end of the queue that a member of node 4 or 8 has.
pub fn queue(node: NodeId) -> QueueConfig {
    let [local, remote] = if node == NodeId(4) { ENDS } else { [ENDS[1], ENDS[0]] };
    let node = if node == NodeId(4) { NodeId(8) } else { NodeId(4) };
    let adapter = AdapterNumber::new(0).unwrap();
    QueueConfig { node, adapter, local, remote, max_messages: 8, max_message_bytes: 100 }
}

/// One of several interrupts of node 4.
pub fn shared_interrupt() -> InterruptOptions {
    InterruptOptions { number: Some(INTERRUPT), is_shared: true, ..Default::default() }
}

/// Becomes a member so many times, joins all that one of its node can, and leaves.
pub fn join(config: &FabricConfig, rounds: u32) -> String {
    for round in 0..rounds {
        if let Err((call, refusal)) = join_once(FabricMember::open(config.clone()).unwrap()) {
            return format!("{call}: {refusal:?} in round {round}");
        }
    }
    "ok".to_owned()
}

/// Joins once. What was refused says which call it was.
fn join_once(member: FabricMember) -> Result<(), (&'static str, Refusal)> {
    let of = |call: &'static str| move |refusal| (call, refusal);
    let adapter = AdapterNumber::new(0).unwrap();
    let group = member.join_group(GROUP, GROUP_BYTES).map_err(of("join a group"))?.local;
    member.call(Call::Prepare(group, adapter)).map_err(of("prepare"))?;
    member.call(Call::SetAvailable(group, adapter)).map_err(of("set available"))?;
    let _interrupt = match member.node() {
        NodeId(4) => {
            member.attach(SHARED).map_err(of("attach"))?;
            Some(member.create_interrupt(shared_interrupt()).map_err(of("create an interrupt"))?)
        }
        _ => None,
    };
    let connected = member.connect_interrupt(NodeId(4), INTERRUPT, adapter, Some(Duration::ZERO));
    connected.map_err(of("connect an interrupt"))?.trigger().map_err(of("trigger"))?;
    if member.node() == NodeId(8) {
        // Whoever was killed before it may have left the other end one that it finds gone first.
        let queue = member.message_queue(queue(NodeId(8))).map_err(of("make a queue"))?;
        let _is_open = queue.open(Duration::from_millis(1));
    }
    Ok(())
}

/// Kills a process in a part of a join: of so many kills each is a little later than the one before.
pub fn kill_in_a_join(fabric: &Fabric, node: u16, kill: u32, kills: u32) {
    /// How long a process lives at most that has begun to join: longer than a join takes.
    const LIFE: Duration = Duration::from_millis(6);
    let mut process: Process = fabric.member(node);
    process.begin("joins 4000000000");
    let started = Instant::now();
    while started.elapsed() < LIFE * kill / kills {
        std::hint::spin_loop();
    }
    process.kill();
}
