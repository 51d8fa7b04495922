//! Segments that several processes hold: groups of the fabric, and segments that a process shares with others of its node.
//!
//! `BEELINE_GROUP_STEPS` asks for another number of steps of the random test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::time::Duration;

use support::random::{Random, number};
use support::{Fabric, Process};

#[test]
fn role() {
    support::play();
}

/// A process that holds group 7 of 100,000 bytes as `g`, has made it available and mapped it.
fn holder(fabric: &Fabric, node: u16, joined: &str) -> Process {
    let mut process = fabric.member(node);
    process.expect("join g 7 100000", joined);
    make_available(&mut process, "g");
    process
}

fn make_available(process: &mut Process, name: &str) {
    process.expect(&format!("prepare {name}"), "ok");
    process.expect(&format!("available {name}"), "ok");
    process.expect(&format!("map-local {name} 0 8"), "ok 8");
}

/// A process that is connected to the group as `w`, with a sequence that has begun.
fn writer(fabric: &Fabric, node: u16) -> Process {
    let mut process = fabric.member(node);
    process.expect("connect w 252 7 0", "ok 100000");
    process.expect("start w", "Ok");
    process
}

#[test]
fn one_store_is_seen_by_all_who_hold_a_group_of_whatever_node() {
    let fabric = Fabric::new();
    let mut first = holder(&fabric, 4, "first 100000");
    first.expect("store g 0 first", "ok");
    let mut second = holder(&fabric, 8, "ok 100000");
    // Whoever comes later has what was stored before.
    second.expect("load g 0 6", "first.");
    let mut third = holder(&fabric, 4, "ok 100000");
    let mut writer = writer(&fabric, 12);
    writer.until("holders w", "3");
    writer.expect("map-remote w 0 8", "ok 8");
    writer.expect("store w 0 written", "ok");
    writer.expect("check-once w", "Ok");
    for process in [&mut first, &mut second, &mut third] {
        process.expect("load g 0 8", "written.");
    }
    // A process may hold it twice, and connect to what it holds itself.
    third.expect("join h 7 100000", "ok 100000");
    third.expect("map-local h 0 8", "ok 8");
    third.expect("load h 0 8", "written.");
    third.expect("connect r 252 7 0", "ok 100000");
    third.expect("map-remote r 0 8", "ok 8");
    third.expect("load r 0 8", "written.");

    let mut other = fabric.member(8);
    other.expect("join g 7 100001", "GroupOfAnotherSize");
    other.expect("join g 7 0", "SizeAlignment");
    other.expect("join g 8 100001", "first 100001");
    other.expect("connect s 252 9 0", "NoSuchSegment");
    other.expect("connect s 252 8 0", "ConnectionRefused");
}

#[test]
fn group_and_segment_of_a_node_have_nothing_to_do_with_each_other_under_the_same_number() {
    let fabric = Fabric::new();
    let mut owner = holder(&fabric, 4, "first 100000");
    owner.expect("create s 7 64", "ok 7");
    let mut user = fabric.member(8);
    user.expect("connect s 4 7 0", "ConnectionRefused");
    user.expect("connect g 252 7 0", "ok 100000");
    owner.expect("remove s", "ok");
    user.expect("connect s 4 7 0", "NoSuchSegment");
    user.expect("connect h 252 7 0", "ok 100000");
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

#[test]
fn shared_segment_outlives_the_process_that_made_it() {
    let fabric = Fabric::new();
    let mut creator = fabric.member(4);
    creator.expect("create s 7 100000", "ok 7");
    creator.expect("create-private p 64", "ok 7");
    creator.expect("share p", "IllegalOperation");
    make_available(&mut creator, "s");
    creator.expect("store s 0 before", "ok");
    let mut second = fabric.member(4);
    second.expect("attach a 7", "ConnectionRefused");
    second.expect("attach a 8", "NoSuchSegment");
    // Connected before it was shared.
    let mut writer = fabric.member(12);
    writer.expect("connect w 4 7 0", "ok 100000");
    writer.expect("map-remote w 0 8", "ok 8");
    creator.expect("share s", "ok");
    creator.expect("share s", "ok");
    fabric.member(8).expect("attach a 7", "NoSuchSegment");
    second.expect("attach a 7", "ok 100000");
    make_available(&mut second, "a");
    second.expect("load a 0 7", "before.");
    writer.expect("start w", "Ok");
    second.expect("create t 7 64", "SegmentidUsed");

    creator.expect("unmap s", "ok");
    creator.expect("remove s", "Busy");
    creator.expect("remove-force s", "ok");
    writer.until("check-once w", "Ok");
    writer.expect("store w 0 after!", "ok");
    second.expect("load a 0 7", "after!.");
    creator.expect("create s 7 64", "SegmentidUsed");
    // The memory is that of a process that has gone since.
    creator.kill();
    writer.expect("connect v 4 7 0", "ok 100000");
    writer.expect("map-remote v 0 8", "ok 8");
    writer.expect("load v 0 7", "after!.");
    let mut third = fabric.member(4);
    third.expect("attach a 7", "ok 100000");
    make_available(&mut third, "a");
    second.kill();
    writer.until("check-once w", "Ok");
    third.expect("load a 0 7", "after!.");
    third.kill();
    writer.until("check-once w", "NotRetriable");
}

/// Members of a random game of joining, leaving and dying.
struct Game {
    fabric: Fabric,
    random: Random,
    /// Whether each holds the group.
    players: Vec<(Process, bool)>,
    marks: u64,
}

impl Game {
    fn player(fabric: &Fabric) -> (Process, bool) {
        (fabric.member(4), false)
    }

    fn pick(&mut self, holds: bool) -> Option<usize> {
        let fit: Vec<_> = (0..self.players.len()).filter(|it| self.players[*it].1 == holds).collect();
        (!fit.is_empty()).then(|| fit[self.random.below(fit.len() as u64) as usize])
    }

    fn kill(&mut self, which: usize) {
        std::mem::replace(&mut self.players[which], Game::player(&self.fabric)).0.kill();
    }

    /// Has some begin to join, and kills holders and joiners meanwhile.
    fn step(&mut self) {
        let joining: Vec<usize> =
            (0..self.players.len()).filter(|it| !self.players[*it].1 && self.random.below(2) == 0).collect();
        for which in &joining {
            self.players[*which].0.begin("join g 7 4096");
        }
        let leaving = self.pick(true).filter(|_| self.random.below(2) == 0);
        if let Some(which) = leaving {
            self.players[which].0.begin("unmap g");
            self.players[which].0.begin("remove g");
        }
        let mut killed = Vec::new();
        for _ in 0..self.random.below(3) {
            std::thread::sleep(Duration::from_micros(self.random.below(3000)));
            let which = self.random.below(self.players.len() as u64) as usize;
            if !killed.contains(&which) {
                self.kill(which);
                killed.push(which);
            }
        }
        if let Some(which) = leaving.filter(|it| !killed.contains(it)) {
            assert_eq!(
                (self.players[which].0.hear(), self.players[which].0.hear()),
                ("ok".into(), "ok".into())
            );
            self.players[which].1 = false;
        }
        for which in joining.into_iter().filter(|it| !killed.contains(it)) {
            let said = self.players[which].0.hear();
            assert!(["first 4096", "ok 4096"].contains(&said.as_str()), "{said}");
            self.players[which].0.expect("map-local g 0 4096", "ok 4096");
            self.players[which].1 = true;
        }
        self.check();
    }

    /// All who hold the group see what one of them stores.
    fn check(&mut self) {
        let Some(which) = self.pick(true) else { return };
        self.marks += 1;
        let mark = format!("{:08}", self.marks);
        self.players[which].0.expect(&format!("store g 0 {mark}"), "ok");
        for (process, _) in self.players.iter_mut().filter(|(_, holds)| *holds) {
            process.expect("load g 0 8", &mark);
        }
    }
}

#[test]
fn whoever_joins_leaves_or_dies_at_whatever_moment_all_who_hold_a_group_have_one_memory() {
    let steps = number("BEELINE_GROUP_STEPS").unwrap_or(40);
    let (fabric, random) = (Fabric::new(), Random::new());
    let players = (0..6).map(|_| Game::player(&fabric)).collect();
    let mut game = Game { fabric, random, players, marks: 0 };
    (0..steps).for_each(|_| game.step());
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
