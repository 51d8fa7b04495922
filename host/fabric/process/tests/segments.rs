//! Segments between processes, from their making to their end.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Fabric, Process};

#[test]
fn role() {
    support::play();
}

/// A process of node 4 with an available segment `s` of number 7.
fn provider(fabric: &Fabric) -> Process {
    let mut provider = fabric.member(4);
    provider.expect("create s 7 100000", "ok 7");
    provider.expect("prepare s", "ok");
    provider.expect("available s", "ok");
    provider
}

/// A process of node 8 that is connected to it.
fn consumer(fabric: &Fabric) -> Process {
    let mut consumer = fabric.member(8);
    consumer.expect("connect s 4 7 0", "ok 100000");
    consumer
}

#[test]
fn what_one_process_stores_into_a_segment_the_other_one_loads() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (provider(&fabric), consumer(&fabric));
    owner.expect("map-local s 0 100000", "ok 100000");
    user.expect("map-remote s 70000 30000", "ok 30000");
    user.expect("store s 29995 hello", "ok");
    owner.expect("load s 99994 6", ".hello");
    owner.expect("store s 70000 there", "ok");
    user.expect("load s 0 6", "there.");
    user.expect("map-remote s 70000 30001", "OutOfRange");

    owner.expect("remove s", "Busy");
    user.expect("disconnect s", "Busy");
    user.expect("unmap s", "ok");
    user.expect("disconnect s", "ok");
    owner.expect("remove s", "Busy");
    owner.expect("unmap s", "ok");
    owner.expect("remove s", "ok");
    user.expect("connect s 4 7 0", "NoSuchSegment");
    // Memory of the next segment of the number is not that of the first.
    owner.expect("create s 7 10", "ok 7");
    owner.expect("map-local s 0 10", "ok 10");
    owner.expect("load s 0 10", "..........");
    user.expect("connect s 4 7 0", "ConnectionRefused");
    owner.finish();
    user.finish();
}

#[test]
fn connect_that_waits_is_over_when_the_segment_is_available() {
    let fabric = Fabric::new();
    let mut user = fabric.member(8);
    user.expect("connect s 4 7 0", "NodeNotResponding");
    user.expect("connect s 4 7 2000", "TimeoutNoAnswer");
    user.begin("connect s 4 7 forever");
    let _owner = provider(&fabric);
    assert_eq!(user.hear(), "ok 100000");
}

#[test]
fn id_is_one_segments_of_a_node_and_free_when_that_is_gone() {
    let fabric = Fabric::new();
    let (mut first, mut second) = (fabric.member(4), fabric.member(4));
    first.expect("create s 7 64", "ok 7");
    second.expect("create s 7 64", "SegmentidUsed");
    second.expect("create-auto s 7 64", "ok 8");
    fabric.member(8).expect("create s 7 64", "ok 7");
    first.kill();
    second.expect("create t 7 64", "ok 7");
}

#[test]
fn provider_hears_of_connections_and_of_the_death_of_a_consumer() {
    let fabric = Fabric::new();
    let mut owner = provider(&fabric);
    owner.expect("wait-local s 1000", "Timeout");
    owner.begin("wait-local s forever");
    let mut user = consumer(&fabric);
    assert_eq!(owner.hear(), "Connect(NodeId(8))");
    owner.begin("wait-local s forever");
    user.expect("disconnect s", "ok");
    assert_eq!(owner.hear(), "Disconnect(NodeId(8))");
    user.expect("connect s 4 7 0", "ok 100000");
    owner.expect("wait-local s forever", "Connect(NodeId(8))");
    owner.begin("wait-local s forever");
    user.kill();
    assert_eq!(owner.hear(), "Lost(NodeId(8))");
    owner.expect("remove s", "ok");
}

#[test]
fn segment_of_a_consumer_that_was_killed_is_removed_without_force() {
    let fabric = Fabric::new();
    let (mut owner, user) = (provider(&fabric), consumer(&fabric));
    owner.expect("remove s", "Busy");
    user.kill();
    owner.until("remove s", "ok");
}

#[test]
fn consumer_of_a_provider_that_was_killed_is_told_and_its_maps_stay() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (provider(&fabric), consumer(&fabric));
    owner.expect("map-local s 0 5", "ok 5");
    owner.expect("store s 0 still", "ok");
    user.expect("map-remote s 0 100000", "ok 100000");
    user.expect("start s", "Ok");
    user.expect("check s", "Ok");
    user.begin("wait-remote s forever");
    owner.kill();
    assert_eq!(user.hear(), "Lost");
    user.expect("check s", "NotRetriable");
    // One that is made now begins with that.
    user.expect("sequence s", "ok");
    user.expect("start s", "NotRetriable");
    user.expect("load s 0 6", "still.");
    user.expect("unmap s", "ok");
    user.expect("map-remote s 0 100000", "NotConnected");
    user.expect("disconnect s", "ok");
    user.expect("connect s 4 7 0", "NodeNotResponding");
    // Another process of the node takes over.
    let _owner = provider(&fabric);
    user.expect("connect s 4 7 0", "ok 100000");
}

#[test]
fn segment_that_is_removed_by_force_is_lost_to_its_users_and_so_is_that_of_who_leaves() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (provider(&fabric), consumer(&fabric));
    user.expect("start s", "Ok");
    user.begin("wait-remote s forever");
    owner.expect("remove-force s", "ok");
    assert_eq!(user.hear(), "Lost");
    user.expect("check s", "NotRetriable");
    user.expect("disconnect s", "ok");

    owner.expect("create s 7 100000", "ok 7");
    owner.expect("prepare s", "ok");
    owner.expect("available s", "ok");
    user.expect("connect s 4 7 0", "ok 100000");
    user.expect("sequence s", "ok");
    user.expect("start s", "Ok");
    user.begin("wait-remote s forever");
    owner.finish();
    assert_eq!(user.hear(), "Lost");
    user.expect("check s", "NotRetriable");
    user.expect("connect t 4 7 0", "NodeNotResponding");
}

#[test]
fn link_that_goes_down_and_comes_up_is_told_to_both_ends() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (provider(&fabric), consumer(&fabric));
    // It came before there was anybody to be told.
    owner.expect("wait-local s 1000000", "Connect(NodeId(8))");
    user.expect("start s", "Ok");
    user.begin("wait-remote s forever");
    owner.expect("link down", "ok");
    assert_eq!(user.hear(), "NotOperational");
    user.expect("check s", "Pending");
    user.expect("connect t 4 7 0", "NoRemoteLinkAccess");
    user.begin("wait-remote s forever");
    owner.expect("wait-local s 0", "NotOperational(AdapterNumber(0))");
    owner.expect("wait-local s 0", "Timeout");
    owner.expect("link up", "ok");
    owner.expect("wait-local s 0", "Operational(AdapterNumber(0))");
    assert_eq!(user.hear(), "Operational");
    user.expect("check s", "Retriable");
    user.expect("start s", "Ok");
    user.expect("link down", "ok");
    user.expect("check s", "Pending");
    user.expect("connect t 4 7 0", "NoLinkAccess");
    user.expect("link up", "ok");
    user.expect("check s", "Retriable");
}

#[test]
fn process_connects_to_its_own_segment_and_to_one_of_its_node() {
    let fabric = Fabric::new();
    let mut owner = provider(&fabric);
    owner.expect("connect r 4 7 0", "ok 100000");
    owner.expect("map-local s 0 8", "ok 8");
    owner.expect("map-remote r 0 8", "ok 8");
    owner.expect("store r 0 own", "ok");
    owner.expect("load s 0 4", "own.");
    owner.expect("unmap s", "ok");
    owner.expect("remove s", "Busy");
    owner.expect("unmap r", "ok");
    let mut same_node = fabric.member(4);
    same_node.expect("connect s 4 7 0", "ok 100000");
    owner.expect("disconnect r", "ok");
    owner.expect("remove s", "Busy");
    same_node.expect("disconnect s", "ok");
    owner.expect("remove s", "ok");
}

#[test]
fn private_segment_is_memory_of_its_own_that_nobody_finds() {
    let fabric = Fabric::new();
    let mut owner = provider(&fabric);
    owner.expect("create-private p 100000", "ok 7");
    owner.expect("map-local p 99990 10", "ok 10");
    owner.expect("store p 0 mine", "ok");
    owner.expect("map-local s 99990 10", "ok 10");
    owner.expect("load s 0 5", ".....");
    owner.expect("unmap p", "ok");
    owner.expect("map-local p 99989 10", "ok 10");
    owner.expect("load p 0 6", ".mine.");
    owner.expect("prepare p", "ok");
    owner.expect("available p", "IllegalOperation");
    owner.expect("remove p", "Busy");
    owner.expect("unmap p", "ok");
    owner.expect("remove p", "ok");
    owner.expect("map-local p 0 10", "IllegalParameter");
    owner.expect("create-private q 0", "SizeAlignment");
}

#[test]
fn child_of_fork_changes_nothing_of_its_parents() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (provider(&fabric), consumer(&fabric));
    owner.expect("map-local s 0 8", "ok 8");
    user.expect("map-remote s 0 8", "ok 8");
    user.expect("start s", "Ok");
    owner.expect("fork s", "ended 0");
    user.expect("fork-checks s", "ended 0");
    user.expect("check s", "Ok");
    user.expect("store s 0 same", "ok");
    owner.expect("load s 0 5", "same.");
    owner.expect("unmap s", "ok");
    owner.expect("remove s", "Busy");
    user.expect("connect t 4 7 0", "ok 100000");
}

#[test]
fn stopped_provider_is_alive_and_its_segment_stays() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (provider(&fabric), consumer(&fabric));
    user.expect("map-remote s 0 8", "ok 8");
    user.expect("start s", "Ok");
    owner.signal(Signal::STOP);
    user.expect("store s 0 later", "ok");
    user.expect("check s", "Ok");
    // Whoever is connected needs nothing of the provider to connect again.
    user.expect("connect t 4 7 0", "ok 100000");
    user.expect("wait-remote s 1000", "Timeout");
    // Whoever is not waits no longer than it wants to, and keeps nobody else waiting.
    let mut newcomer = fabric.member(12);
    let started = Instant::now();
    newcomer.expect("connect s 4 7 1000", "TimeoutNoAnswer");
    assert!(started.elapsed() < Duration::from_secs(4), "it has waited for an answer");
    newcomer.expect("create s 7 64", "ok 7");
    newcomer.begin("connect s 4 7 forever");
    owner.signal(Signal::CONT);
    assert_eq!(newcomer.hear(), "ok 100000");
    owner.expect("map-local s 0 8", "ok 8");
    owner.expect("load s 0 6", "later.");
}
