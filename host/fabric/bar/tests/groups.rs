//! Groups and shared segments: memory of a file that several processes hold, which have nothing else in common.
//!
//! `BEELINE_GROUP_STEPS` asks for another number of steps of the random test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "../../transfer/tests/cases/groups.rs"]
mod cases;
mod support;

use std::time::Duration;

use cases::{Game, hold, holder, make_available};
use rustix::process::Signal;
use support::random::number;
use support::{Memory, Process};

#[test]
fn role() {
    support::play();
}

/// Most of a member's area: there is no room for another one of this size.
const LARGE: &str = "1200000";

/// A process that is connected to the group as `w`, with a map of it.
fn writer(memory: &Memory, node: u16) -> Process {
    let mut process = memory.member(node);
    process.expect("connect w 252 7 0", "ok 100000");
    process.expect("map-remote w 0 8", "ok 8");
    process
}

#[test]
fn group_has_no_more_bytes_than_its_maker_has_left() {
    Memory::new().member(4).expect("join i 9 99000000", "Nospc");
}

#[test]
fn every_holder_hears_of_a_writer_and_one_that_comes_later_within_some_seconds() {
    let memory = Memory::new();
    let mut holders = [holder(&memory, 4, "first 100000"), holder(&memory, 8, "ok 100000")];
    let mut writer = writer(&memory, 12);
    writer.until("holders w", "2");
    for holder in &mut holders {
        holder.expect("wait-local g forever", "Connect(NodeId(12))");
    }
    let mut late = holder(&memory, 8, "ok 100000");
    late.expect("wait-local g forever", "Connect(NodeId(12))");
    writer.expect("holders w", "3");
    // Who leaves is held by the writer, as whoever is connected to does, and leaves by force.
    late.expect("unmap g", "ok");
    late.expect("remove g", "Busy");
    late.expect("remove-force g", "ok");
    writer.until("check-once w", "Ok");
    writer.expect("unmap w", "ok");
    writer.expect("disconnect w", "ok");
    for holder in &mut holders {
        holder.expect("wait-local g forever", "Disconnect(NodeId(12))");
        holder.expect("unmap g", "ok");
        holder.expect("remove g", "ok");
    }
}

#[test]
fn group_goes_on_without_the_member_that_made_it_and_ends_with_its_last_holder() {
    let memory = Memory::new();
    let (first, mut second) = (holder(&memory, 4, "first 100000"), holder(&memory, 8, "ok 100000"));
    let mut writer = writer(&memory, 12);
    writer.until("holders w", "2");
    writer.expect("start w", "Ok");
    first.kill();
    writer.until("holders w", "1");
    writer.expect("check w", "Ok");
    writer.expect("store w 0 second", "ok");
    second.expect("load g 0 6", "second");
    // The memory is in the slot of a member that is gone.
    let (refused, said) = memory.start(4, "0");
    assert!(said.starts_with("not joined: slot 0"), "{said}");
    refused.finish();
    let mut third = holder(&memory, 4, "ok 100000");
    third.expect("load g 0 6", "second");
    writer.until("holders w", "2");
    third.expect("unmap g", "ok");
    third.expect("remove-force g", "ok");
    writer.begin("wait-remote w forever");
    second.kill();
    assert_eq!(writer.hear(), "Lost");
    writer.expect("check w", "NotRetriable");
    writer.expect("load w 0 6", "second");
    // The name is free for another group, of which the connection is not.
    third.until("probe 8", "NodeNotResponding");
    hold(&mut third, "first 100000");
    third.expect("load g 0 6", "......");
    writer.expect("check w", "NotRetriable");
    writer.expect("unmap w", "ok");
    writer.expect("map-remote w 0 8", "NotConnected");
    // Nobody has memory of slot 0 any more.
    writer.expect("disconnect w", "ok");
    let mut next = memory.member_in(4, 0);
    next.expect("join g 9 1000", "first 1000");
    next.expect("map-local g 0 8", "ok 8");
    next.expect("load g 0 8", "........");
}

#[test]
fn group_goes_on_when_the_member_that_made_it_leaves() {
    let memory = Memory::new();
    let (first, mut second) = (holder(&memory, 4, "first 100000"), holder(&memory, 8, "ok 100000"));
    second.expect("store g 0 stays", "ok");
    first.finish();
    second.until("probe 4", "NodeNotResponding");
    let mut third = memory.member(4);
    hold(&mut third, "ok 100000");
    third.expect("load g 0 5", "stays");
    third.finish();
    second.expect("unmap g", "ok");
    second.expect("remove g", "ok");
    memory.member_in(4, 0).finish();
    second.finish();
}

#[test]
fn memory_of_a_group_is_free_again_when_its_last_holder_leaves_it() {
    let memory = Memory::new();
    let (mut maker, mut other) = (memory.member(4), memory.member(8));
    for _ in 0..3 {
        maker.expect(&format!("join g 7 {LARGE}"), &format!("first {LARGE}"));
        maker.expect("map-local g 0 8", "ok 8");
        maker.expect("load g 0 6", "......");
        maker.expect("store g 0 stored", "ok");
        other.expect(&format!("join g 7 {LARGE}"), &format!("ok {LARGE}"));
        maker.expect("unmap g", "ok");
        maker.expect("remove g", "ok");
        // The other one still has it.
        maker.expect(&format!("create t 8 {LARGE}"), "Nospc");
        other.expect("map-local g 0 8", "ok 8");
        other.expect("load g 0 6", "stored");
        other.expect("remove g", "Busy");
        other.expect("unmap g", "ok");
        other.expect("remove g", "ok");
        maker.until(&format!("create t 8 {LARGE}"), "ok 8");
        maker.expect("remove t", "ok");
    }
    maker.finish();
    other.finish();
}

#[test]
fn memory_of_a_group_that_a_killed_holder_had_is_nobody_elses() {
    let memory = Memory::new();
    let (mut maker, mut other) = (memory.member(4), memory.member(8));
    maker.expect(&format!("join g 7 {LARGE}"), &format!("first {LARGE}"));
    other.expect(&format!("join g 7 {LARGE}"), &format!("ok {LARGE}"));
    other.kill();
    maker.until("probe 8", "NodeNotResponding");
    maker.expect("remove g", "ok");
    maker.expect(&format!("create t 8 {LARGE}"), "Nospc");
    // Another member in the place of the killed one has cleared what that one used.
    memory.member_in(8, 1).finish();
    maker.expect(&format!("create t 8 {LARGE}"), "Nospc");
    maker.finish();
}

#[test]
fn group_that_was_made_anew_is_not_joined_by_a_killed_holder_whom_this_member_has_not_missed_yet() {
    let memory = Memory::new();
    let (mut killed, mut stopped) = (memory.member(4), memory.member(8));
    killed.expect("join g 7 64", "first 64");
    stopped.until("probe 4", "ok");
    // While it stands still it misses nobody and hears of nobody.
    stopped.signal(Signal::STOP);
    killed.kill();
    let mut newcomer = memory.member(12);
    newcomer.expect("join g 7 64", "first 64");
    stopped.signal(Signal::CONT);
    stopped.expect("join g 7 64", "ok 64");
    newcomer.expect("map-local g 0 8", "ok 8");
    newcomer.expect("store g 0 one", "ok");
    stopped.expect("map-local g 0 8", "ok 8");
    stopped.expect("load g 0 3", "one");
    [stopped, newcomer].into_iter().for_each(Process::finish);
}

/// Waits until a member has looked at all others since this began: another one has come and gone.
fn until_looked(memory: &Memory, member: &mut Process) {
    let passer = memory.member(12);
    member.until("probe 12", "ok");
    passer.finish();
    member.until("probe 12", "NodeNotResponding");
}

/// Makes segment 7 of [`LARGE`] bytes as `s` and shares it.
fn share(maker: &mut Process) {
    maker.expect(&format!("create s 7 {LARGE}"), "ok 7");
    maker.expect("share s", "ok");
}

#[test]
fn memory_of_a_shared_segment_is_free_again_when_nobody_holds_or_maps_it() {
    let memory = Memory::new();
    let (mut maker, mut other, mut writer) = (memory.member(4), memory.member(4), memory.member(8));
    for _ in 0..2 {
        share(&mut maker);
        make_available(&mut maker, "s");
        maker.expect("load s 0 6", "......");
        other.expect("attach a 7", &format!("ok {LARGE}"));
        writer.expect("connect w 4 7 0", &format!("ok {LARGE}"));
        // By the entry of its maker, which says where in its area the segment is.
        writer.expect("map-remote w 0 8", "ok 8");
        maker.expect("unmap s", "ok");
        maker.expect("remove-force s", "ok");
        other.expect("map-local a 0 8", "ok 8");
        writer.expect("store w 0 stored", "ok");
        other.expect("load a 0 6", "stored");
        other.expect("unmap a", "ok");
        other.expect("remove-force a", "ok");
        until_looked(&memory, &mut maker);
        maker.expect(&format!("create t 8 {LARGE}"), "Nospc");
        writer.expect("unmap w", "ok");
        maker.until(&format!("create t 8 {LARGE}"), "ok 8");
        maker.expect("remove t", "ok");
        writer.expect("disconnect w", "ok");
    }
    [maker, other, writer].into_iter().for_each(Process::finish);
}

#[test]
fn memory_that_was_mapped_before_it_was_shared_is_nobody_elses() {
    let memory = Memory::new();
    let (mut maker, mut writer) = (memory.member(4), memory.member(8));
    maker.expect(&format!("create s 7 {LARGE}"), "ok 7");
    make_available(&mut maker, "s");
    writer.expect("connect w 4 7 0", &format!("ok {LARGE}"));
    writer.expect("map-remote w 0 8", "ok 8");
    maker.expect("share s", "ok");
    maker.expect("unmap s", "ok");
    maker.expect("remove-force s", "ok");
    until_looked(&memory, &mut maker);
    maker.expect(&format!("create t 8 {LARGE}"), "Nospc");
    writer.expect("store w 0 late", "ok");
    [maker, writer].into_iter().for_each(Process::finish);
}

#[test]
fn shared_segment_goes_on_when_its_maker_is_killed_and_the_makers_slot_is_taken_when_nobody_holds_it() {
    let memory = Memory::new();
    let (mut maker, mut other) = (memory.member_in(4, 0), memory.member(4));
    share(&mut maker);
    maker.expect("map-local s 0 8", "ok 8");
    maker.expect("store s 0 before", "ok");
    other.expect("attach a 7", &format!("ok {LARGE}"));
    maker.kill();
    let (refused, said) = memory.start(4, "0");
    assert!(said.starts_with("not joined: slot 0"), "{said}");
    refused.finish();
    let mut third = memory.member(4);
    third.expect("attach a 7", &format!("ok {LARGE}"));
    other.expect("remove a", "ok");
    third.expect("map-local a 0 8", "ok 8");
    third.expect("load a 0 6", "before");
    third.expect("create t 7 64", "SegmentidUsed");
    third.expect("unmap a", "ok");
    third.expect("remove a", "ok");
    third.expect("attach a 7", "NoSuchSegment");
    let mut next = memory.member_in(4, 0);
    share(&mut next);
    next.expect("map-local s 0 8", "ok 8");
    next.expect("load s 0 6", "......");
    [other, third, next].into_iter().for_each(Process::finish);
}

#[test]
fn segment_that_another_node_shares_under_the_same_number_is_another_one() {
    let memory = Memory::new();
    let (mut stopped, mut other) = (memory.member(4), memory.member(8));
    for process in [&mut stopped, &mut other] {
        process.expect("create s 7 64", "ok 7");
        process.expect("share s", "ok");
    }
    stopped.signal(Signal::STOP);
    other.until("probe 4", "NodeNotResponding");
    stopped.signal(Signal::CONT);
    stopped.until("probe 8", "ok");
    until_looked(&memory, &mut stopped);
    stopped.expect("attach a 7", "ok 64");
    [stopped, other].into_iter().for_each(Process::finish);
}

#[test]
fn maker_of_a_shared_segment_that_others_made_anew_while_it_stood_still_is_a_member_no_more() {
    let memory = Memory::new();
    let (mut stopped, mut other) = (memory.member(4), memory.member(4));
    share(&mut stopped);
    stopped.signal(Signal::STOP);
    other.until(&format!("create s 7 {LARGE}"), "ok 7");
    other.expect("share s", "ok");
    stopped.signal(Signal::CONT);
    stopped.until("probe 4", "System");
    other.expect("attach a 7", &format!("ok {LARGE}"));
    [stopped, other].into_iter().for_each(Process::finish);
}

#[test]
fn holder_that_is_stopped_delays_nobody_and_goes_on_with_the_others() {
    let memory = Memory::new();
    let mut first = holder(&memory, 4, "first 100000");
    first.expect("store g 0 one", "ok");
    first.signal(Signal::STOP);
    let mut second = memory.member(8);
    // Of a member that did not live when it came it knows nothing: it makes the group, or finds it.
    second.until("probe 4", "NodeNotResponding");
    first.signal(Signal::CONT);
    second.until("probe 4", "ok");
    hold(&mut second, "ok 100000");
    first.signal(Signal::STOP);
    second.until("probe 4", "NodeNotResponding");
    let mut third = holder(&memory, 8, "ok 100000");
    third.expect("load g 0 4", "one.");
    first.signal(Signal::CONT);
    first.until("probe 8", "ok");
    first.expect("store g 0 two", "ok");
    second.expect("load g 0 4", "two.");
    let mut writer = writer(&memory, 12);
    writer.until("holders w", "3");
    [first, second, third, writer].into_iter().for_each(Process::finish);
}

#[test]
fn holder_that_was_stopped_while_others_made_its_group_anew_is_a_member_no_more() {
    let memory = Memory::new();
    let (mut stopped, mut other) = (holder(&memory, 4, "first 100000"), memory.member(8));
    other.expect("probe 4", "ok");
    stopped.signal(Signal::STOP);
    other.until("probe 4", "NodeNotResponding");
    hold(&mut other, "first 100000");
    let mut third = holder(&memory, 12, "ok 100000");
    stopped.signal(Signal::CONT);
    stopped.until("probe 8", "System");
    stopped.expect("join h 7 100000", "System");
    other.expect("store g 0 new", "ok");
    third.expect("load g 0 3", "new");
    [stopped, other, third].into_iter().for_each(Process::finish);
}

#[test]
fn links_of_holders_do_not_count_and_the_own_one_does() {
    let memory = Memory::new();
    let mut first = holder(&memory, 4, "first 100000");
    let mut writer = writer(&memory, 12);
    first.expect("link down", "ok");
    writer.expect("check-once w", "Ok");
    writer.expect("connect v 252 7 0", "NoRemoteLinkAccess");
    let _second = holder(&memory, 8, "ok 100000");
    writer.expect("connect v 252 7 0", "ok 100000");
    writer.expect("link down", "ok");
    writer.expect("check-once w", "Pending");
    writer.expect("link up", "ok");
    writer.expect("check-once w", "Ok");
}

#[test]
fn member_holds_so_many_groups_and_no_more() {
    let memory = Memory::with_room(8 << 20);
    let mut member = memory.member(4);
    for id in 0..64 {
        member.expect(&format!("join g{id} {id} 64"), "first 64");
    }
    member.expect("join g64 64 64", "MaxEntries");
    member.expect("create s 64 64", "ok 64");
    member.expect("share s", "MaxEntries");
    member.expect("remove s", "ok");
    let mut other = memory.member(8);
    other.expect("join g 64 64", "first 64");
    member.expect("join g64 64 64", "MaxEntries");
    member.expect("remove g5", "ok");
    member.expect("join g64 64 64", "ok 64");
    other.expect("join h 5 64", "first 64");
    member.finish();
    other.finish();
}

/// Has some begin to join and another one leave, and kills one meanwhile. Nobody comes in its place as long as somebody holds memory of its slot,
/// so those who hold the group leave it first.
fn step(game: &mut Game) {
    let joining: Vec<usize> = (0..game.players.len()).filter(|it| !game.players[*it].1).collect();
    let leaving = game.pick(true).filter(|_| game.random.below(2) == 0);
    for which in &joining {
        game.players[*which].0.begin("join g 7 4096");
    }
    if let Some(which) = leaving {
        game.players[which].0.begin("unmap g");
        game.players[which].0.begin("remove g");
    }
    let killed = (game.random.below(3) == 0).then(|| {
        std::thread::sleep(Duration::from_micros(game.random.below(3000)));
        let which = game.random.below(game.players.len() as u64) as usize;
        game.players[which].0.signal(Signal::KILL);
        which
    });
    if let Some(which) = leaving.filter(|it| killed != Some(*it)) {
        game.hear_left(which);
    }
    for which in joining.into_iter().filter(|it| killed != Some(*it)) {
        game.hear_joined(which);
    }
    if let Some(which) = killed {
        game.players[which].1 = false;
    }
    game.check(killed);
    if let Some(which) = killed {
        replace(game, which);
    }
}

fn replace(game: &mut Game, which: usize) {
    for (player, holds) in game.players.iter_mut().filter(|(_, holds)| *holds) {
        player.expect("unmap g", "ok");
        player.expect("remove g", "ok");
        *holds = false;
    }
    game.kill(which);
}

#[test]
fn whoever_joins_leaves_or_dies_at_whatever_moment_all_who_hold_a_group_have_one_memory() {
    let steps = number("BEELINE_GROUP_STEPS").unwrap_or(30);
    let mut game = Game::new(3);
    (0..steps).for_each(|_| step(&mut game));
    assert!(game.marks > steps / 2, "{} of {steps} steps had holders", game.marks);
}
