//! Segments that several processes hold: groups of the fabric, and segments that a process shares with others of its node.
//!
//! `BEELINE_GROUP_STEPS` asks for another number of steps of the random test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "../../transfer/tests/cases/groups.rs"]
mod cases;
mod support;

use std::time::Duration;

use cases::{Game, holder, make_available};
use support::random::number;
use support::{Fabric, Process};

#[test]
fn role() {
    support::play();
}

/// A process that is connected to the group as `w`, with a sequence that has begun.
fn writer(fabric: &Fabric, node: u16) -> Process {
    let mut process = fabric.member(node);
    process.expect("connect w 252 7 0", "ok 100000");
    process.expect("start w", "Ok");
    process
}

#[test]
fn every_holder_hears_of_a_writer_and_one_that_comes_later_within_some_seconds() {
    let fabric = Fabric::new();
    let mut holders = [holder(&fabric, 4, "first 100000"), holder(&fabric, 8, "ok 100000")];
    let mut writer = writer(&fabric, 12);
    writer.until("holders w", "2");
    for holder in &mut holders {
        holder.expect("wait-local g forever", "Connect(NodeId(12))");
    }
    let mut late = holder(&fabric, 8, "ok 100000");
    late.begin("wait-local g forever");
    writer.expect("wait-remote w 3000000", "Timeout");
    assert_eq!(late.hear(), "Connect(NodeId(12))");
    writer.expect("holders w", "3");
    // Who leaves is held by the writer, as whoever is connected to does, and leaves by force.
    late.expect("unmap g", "ok");
    late.expect("remove g", "Busy");
    late.expect("remove-force g", "ok");
    writer.expect("check-once w", "Ok");
    writer.expect("disconnect w", "ok");
    for holder in &mut holders {
        holder.expect("wait-local g forever", "Disconnect(NodeId(12))");
        holder.expect("unmap g", "ok");
        holder.expect("remove g", "ok");
    }
}

#[test]
fn connection_goes_on_as_long_as_one_holder_is_there_and_is_lost_with_the_last() {
    let fabric = Fabric::new();
    let (first, second) = (holder(&fabric, 4, "first 100000"), holder(&fabric, 8, "ok 100000"));
    let mut writer = writer(&fabric, 12);
    writer.until("holders w", "2");
    let mut third = holder(&fabric, 8, "ok 100000");
    first.kill();
    writer.expect("check-once w", "Ok");
    second.kill();
    // None that it knows is there any more; the third one came after it had connected.
    writer.until("check-once w", "Ok");
    writer.expect("map-remote w 0 8", "ok 8");
    writer.expect("store w 0 third", "ok");
    third.expect("load g 0 6", "third.");
    writer.begin("wait-remote w forever");
    let fourth = holder(&fabric, 4, "ok 100000");
    third.kill();
    fourth.kill();
    assert_eq!(writer.hear(), "Lost");
    writer.expect("check-once w", "NotRetriable");
    writer.expect("load w 0 6", "third.");
    // The name is free for another group, of which the connection is not.
    let mut new = holder(&fabric, 4, "first 100000");
    new.expect("load g 0 6", "......");
    writer.expect("check-once w", "NotRetriable");
    writer.expect("unmap w", "ok");
    writer.expect("map-remote w 0 8", "NotConnected");
}

#[test]
fn links_of_holders_do_not_count_and_the_own_one_does() {
    let fabric = Fabric::new();
    let mut first = holder(&fabric, 4, "first 100000");
    let mut writer = writer(&fabric, 12);
    first.expect("link down", "ok");
    writer.expect("check-once w", "Ok");
    writer.expect("connect v 252 7 0", "NoRemoteLinkAccess");
    let _second = holder(&fabric, 8, "ok 100000");
    writer.expect("connect v 252 7 0", "ok 100000");
    writer.expect("link down", "ok");
    writer.expect("check-once w", "Pending");
    writer.expect("link up", "ok");
    writer.expect("check-once w", "Retriable");
}

#[test]
fn holder_that_is_stopped_delays_who_joins_and_splits_nothing() {
    let fabric = Fabric::new();
    let mut first = holder(&fabric, 4, "first 100000");
    first.expect("store g 0 one", "ok");
    first.stop();
    let mut second = fabric.member(8);
    second.expect("join g 7 100000", "NodeNotResponding");
    second.begin("join g 7 100000");
    first.signal(rustix::process::Signal::CONT);
    assert_eq!(second.hear(), "ok 100000");
    make_available(&mut second, "g");
    first.stop();
    // Another one that answers is enough.
    let mut third = holder(&fabric, 8, "ok 100000");
    third.expect("load g 0 4", "one.");
    first.kill();
}

#[test]
fn holder_that_is_stopped_hides_the_memory_of_the_others_from_no_connection() {
    let fabric = Fabric::new();
    let holders = [holder(&fabric, 4, "first 100000"), holder(&fabric, 8, "ok 100000")];
    let mut writer = fabric.member(12);
    for connection in ["v", "w"] {
        writer.expect(&format!("connect {connection} 252 7 0"), "ok 100000");
        writer.until(&format!("holders {connection}"), "2");
    }
    // Whichever of the two is asked first.
    for (holder, connection) in holders.iter().zip(["v", "w"]) {
        holder.stop();
        writer.expect(&format!("map-remote {connection} 0 8"), "ok 8");
        holder.signal(rustix::process::Signal::CONT);
    }
}

#[test]
fn holder_that_is_stopped_keeps_nobody_from_joining_by_another_one() {
    let fabric = Fabric::new();
    let holders = [holder(&fabric, 4, "first 100000"), holder(&fabric, 8, "ok 100000")];
    // The one that is stopped is asked first, because it was reached before, or not at all.
    let mut joining = fabric.member(12);
    joining.expect("connect w 252 7 0", "ok 100000");
    joining.until("holders w", "2");
    for holder in &holders {
        holder.stop();
        joining.expect("join g 7 100000", "ok 100000");
        joining.expect("remove g", "ok");
        holder.signal(rustix::process::Signal::CONT);
    }
}

#[test]
fn map_of_a_group_without_holders_is_no_map_of_another_segment() {
    let fabric = Fabric::new();
    let holder = holder(&fabric, 4, "first 100000");
    let mut writer = writer(&fabric, 12);
    // In the same entry of its board, in the same incarnation.
    writer.expect("join g 8 100000", "first 100000");
    make_available(&mut writer, "g");
    holder.kill();
    writer.expect("map-remote w 0 8", "NotConnected");
}

/// Has some begin to join, and kills holders and joiners meanwhile.
fn step(game: &mut Game) {
    let all = 0..game.players.len();
    let joining: Vec<usize> = all.filter(|it| !game.players[*it].1 && game.random.below(2) == 0).collect();
    for which in &joining {
        game.players[*which].0.begin("join g 7 4096");
    }
    let leaving = game.pick(true).filter(|_| game.random.below(2) == 0);
    if let Some(which) = leaving {
        game.players[which].0.begin("unmap g");
        game.players[which].0.begin("remove g");
    }
    let mut killed = Vec::new();
    for _ in 0..game.random.below(3) {
        std::thread::sleep(Duration::from_micros(game.random.below(3000)));
        let which = game.random.below(game.players.len() as u64) as usize;
        if !killed.contains(&which) {
            game.kill(which);
            killed.push(which);
        }
    }
    if let Some(which) = leaving.filter(|it| !killed.contains(it)) {
        game.hear_left(which);
    }
    for which in joining.into_iter().filter(|it| !killed.contains(it)) {
        game.hear_joined(which);
    }
    game.check(None);
}

#[test]
fn whoever_joins_leaves_or_dies_at_whatever_moment_all_who_hold_a_group_have_one_memory() {
    let steps = number("BEELINE_GROUP_STEPS").unwrap_or(40);
    let mut game = Game::new(6);
    (0..steps).for_each(|_| step(&mut game));
    assert!(game.marks > steps / 2, "{} of {steps} steps had holders", game.marks);
}

#[test]
fn shared_segment_whose_only_holder_is_stopped_is_there_and_its_holder_does_not_respond() {
    let fabric = Fabric::new();
    let mut holder = fabric.member(4);
    for id in [7, 9] {
        holder.expect(&format!("create s{id} {id} 4096"), &format!("ok {id}"));
        holder.expect(&format!("share s{id}"), "ok");
    }
    let mut other = fabric.member(4);
    other.expect("attach s 7", "ok 4096");
    holder.stop();
    other.expect("attach t 9", "NodeNotResponding");
    holder.kill();
    other.until("attach t 9", "NoSuchSegment");
}
