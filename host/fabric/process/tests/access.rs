//! Segments to which only some nodes may connect.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use beeline_fabric::{Access, AdapterNumber, Call, NodeId, Part, Refusal, SegmentId, Value};
use beeline_fabric_process::FabricMember;
use support::Fabric;
use support::segments::connect;

#[test]
fn node_that_is_not_on_the_list_is_refused_and_one_that_is_shares_the_memory() {
    let fabric = Fabric::new();
    let [owner, listed, other] = [4, 8, 12].map(|node| FabricMember::open(fabric.config(node)).unwrap());
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let (id, bytes, adapter) = (SegmentId(7), 4096, AdapterNumber::new(0).unwrap());
    let create = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
    let Value::Local(local, _) = owner.call(create).unwrap() else { panic!("no segment was made") };
    owner.export(local, Access { nodes: Some(vec![NodeId(8)]), ..Access::default() }).unwrap();
    owner.call(Call::Prepare(local, adapter)).unwrap();
    owner.call(Call::SetAvailable(local, adapter)).unwrap();
    let whole = Part { offset: 0, bytes: 4096 };
    let remote = connect(&listed, 4, 7).unwrap();
    let (theirs, own) = (listed.map_remote(remote, whole).unwrap(), owner.map_local(local, whole).unwrap());
    theirs.copy_in(4090, b"stored").unwrap();
    let mut came = [0; 6];
    own.copy_out(4090, &mut came).unwrap();
    assert_eq!(&came, b"stored");
    assert_eq!(connect(&other, 4, 7), Err(Refusal::ConnectionRefused));
    drop((theirs, own));
    let remove = || owner.call(Call::RemoveSegment { local, is_forced: false });
    assert_eq!(remove(), Err(Refusal::Busy));
    listed.call(Call::Disconnect(remote)).unwrap();
    assert_eq!(remove(), Ok(Value::Nothing));
}
