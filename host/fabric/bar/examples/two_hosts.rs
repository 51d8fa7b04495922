//! Two processes that have a file or a BAR in common, and need no kernel in common: one has a segment and the other one stores into it, and each
//! wakes the other by an interrupt.
//!
//! ```text
//! two_hosts /sys/bus/pci/devices/0000:00:01.0/resource2_wc owner     on one host
//! two_hosts /sys/bus/pci/devices/0000:00:01.0/resource2_wc user      on the other one
//! ```

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use beeline_fabric::{AdapterNumber, Call, InterruptNumber, NodeId, Part, SegmentId, Value};
use beeline_fabric_bar::{BarConfig, BarInterrupt, BarInterruptOptions, BarMap, BarMember, BarMemory};
use beeline_mmio::OnLoss;

const OWNER: NodeId = NodeId(4);
const USER: NodeId = NodeId(8);
const SEGMENT: SegmentId = SegmentId(7);
const NUMBER: InterruptNumber = InterruptNumber(3);
const WHOLE: Part = Part { offset: 0, bytes: 4096 };
const QUESTION: &[u8; 21] = b"stored by the user   ";
const ANSWER: &[u8; 21] = b"answered by the owner";
/// Where the owner answers.
const ANSWER_AT: usize = 2048;
/// How long the other one may take to come, and to answer.
const PATIENCE_NANOS: u64 = 40_000_000_000;
const PATIENCE: Option<Duration> = Some(Duration::from_nanos(PATIENCE_NANOS));

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [path, "owner"] => own(&join(path, OWNER)?),
        [path, "user"] => use_it(&join(path, USER)?),
        _ => Err("two_hosts FILE owner|user, where FILE is a file on tmpfs or a BAR".into()),
    }
}

fn join(path: &str, node: NodeId) -> Result<BarMember, Box<dyn Error>> {
    let (memory, nodes, on_loss) = (BarMemory::of_path(Path::new(path)), vec![OWNER, USER], OnLoss::Fatal);
    Ok(BarMember::open(BarConfig {
        memory,
        members: 4,
        slot: None,
        node,
        adapter: adapter()?,
        nodes,
        on_loss,
    })?)
}

fn adapter() -> Result<AdapterNumber, Box<dyn Error>> {
    Ok(AdapterNumber::new(0)?)
}

fn interrupt(member: &BarMember) -> Result<BarInterrupt, Box<dyn Error>> {
    Ok(member.create_interrupt(BarInterruptOptions { number: Some(NUMBER), ..Default::default() })?)
}

/// Makes the segment, waits until the user has stored into it, and answers.
fn own(member: &BarMember) -> Result<(), Box<dyn Error>> {
    let stored = interrupt(member)?;
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let create =
        Call::CreateSegment { id: SEGMENT, is_auto, bytes: WHOLE.bytes, is_private, is_empty, has_callback };
    let Value::Local(segment, _) = member.call(create)? else { return Err("no segment was made".into()) };
    member.call(Call::Prepare(segment, adapter()?))?;
    let map = member.map_local(segment, WHOLE)?;
    member.call(Call::SetAvailable(segment, adapter()?))?;
    println!("node {} has a segment", OWNER.0);
    stored.wait(PATIENCE)?;
    expect(&map, 0, QUESTION)?;
    map.copy_in(ANSWER_AT, ANSWER)?;
    // It orders the stores before it.
    member.connect_interrupt(USER, NUMBER, adapter()?, PATIENCE)?.trigger()?;
    Ok(())
}

/// Stores into the segment, wakes its owner and reads the answer.
fn use_it(member: &BarMember) -> Result<(), Box<dyn Error>> {
    let answered = interrupt(member)?;
    let (timeout_nanos, is_asynchronous, has_callback) = (Some(PATIENCE_NANOS), false, false);
    let (node, id, adapter) = (OWNER, SEGMENT, adapter()?);
    let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
    let Value::Remote(segment, _) = member.call(connect)? else { return Err("no segment was found".into()) };
    let map = member.map_remote(segment, WHOLE)?;
    map.copy_in(0, QUESTION)?;
    member.connect_interrupt(OWNER, NUMBER, adapter, PATIENCE)?.trigger()?;
    answered.wait(PATIENCE)?;
    expect(&map, ANSWER_AT, ANSWER)
}

fn expect(map: &BarMap, at: usize, wanted: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut bytes = vec![0; wanted.len()];
    map.copy_out(at, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    println!("{text}");
    if bytes == wanted { Ok(()) } else { Err(format!("the segment says something else: {text:?}").into()) }
}
