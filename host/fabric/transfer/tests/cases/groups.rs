//! Groups and shared segments of several processes: one memory, whoever stores into it.
//!
//! Run over each kind of member (`host/fabric/process/tests/groups.rs`, `host/fabric/bar/tests/groups.rs`), whose `support` says what members are.

use super::support::random::Random;
use super::support::{Fabric, Process};

/// Holds group 7 of 100,000 bytes as `g`, makes it available and maps it.
pub fn hold(process: &mut Process, joined: &str) {
    process.expect("join g 7 100000", joined);
    make_available(process, "g");
}

pub fn make_available(process: &mut Process, name: &str) {
    process.expect(&format!("prepare {name}"), "ok");
    process.expect(&format!("available {name}"), "ok");
    process.expect(&format!("map-local {name} 0 8"), "ok 8");
}

/// A process that holds the group.
pub fn holder(fabric: &Fabric, node: u16, joined: &str) -> Process {
    let mut process = fabric.member(node);
    hold(&mut process, joined);
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
    let mut writer = fabric.member(12);
    writer.expect("connect w 252 7 0", "ok 100000");
    writer.until("holders w", "3");
    writer.expect("map-remote w 0 8", "ok 8");
    writer.expect("start w", "Ok");
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

    second.expect("join h 7 100001", "GroupOfAnotherSize");
    second.expect("join h 7 0", "SizeAlignment");
    second.expect("join h 8 100001", "first 100001");
    second.expect("connect s 252 9 0", "NoSuchSegment");
    second.expect("connect s 252 8 0", "ConnectionRefused");
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
    writer.until("check w", "NotRetriable");
}

/// Members of node 4 in a random game of joining a group of 4096 bytes, leaving and dying.
pub struct Game {
    pub fabric: Fabric,
    pub random: Random,
    /// Whether each holds the group.
    pub players: Vec<(Process, bool)>,
    /// How often all who hold it were asked for what one of them has stored.
    pub marks: u64,
}

impl Game {
    pub fn new(players: usize) -> Self {
        let fabric = Fabric::new();
        let players = (0..players).map(|_| (fabric.member(4), false)).collect();
        Game { fabric, random: Random::new(), players, marks: 0 }
    }

    /// Kills a player, whose place another one takes.
    pub fn kill(&mut self, which: usize) {
        let next = (self.fabric.member(4), false);
        std::mem::replace(&mut self.players[which], next).0.kill();
    }

    /// One of those who hold the group, or do not.
    pub fn pick(&mut self, holds: bool) -> Option<usize> {
        let fit: Vec<_> = (0..self.players.len()).filter(|it| self.players[*it].1 == holds).collect();
        (!fit.is_empty()).then(|| fit[self.random.below(fit.len() as u64) as usize])
    }

    /// Hears that a player, which was told to, has left the group.
    pub fn hear_left(&mut self, which: usize) {
        let (player, holds) = &mut self.players[which];
        assert_eq!([player.hear(), player.hear()], ["ok", "ok"]);
        *holds = false;
    }

    /// Hears that a player, which was told to, has joined the group.
    pub fn hear_joined(&mut self, which: usize) {
        let (player, holds) = &mut self.players[which];
        let said = player.hear();
        assert!(["first 4096", "ok 4096"].contains(&said.as_str()), "{said}");
        player.expect("map-local g 0 4096", "ok 4096");
        *holds = true;
    }

    /// All who hold the group, and were not killed, see what one of them stores.
    pub fn check(&mut self, killed: Option<usize>) {
        let Some(which) = self.pick(true) else { return };
        self.marks += 1;
        let mark = format!("{:08}", self.marks);
        self.players[which].0.expect(&format!("store g 0 {mark}"), "ok");
        let those =
            self.players.iter_mut().enumerate().filter(|(at, (_, holds))| *holds && killed != Some(*at));
        for (_, (process, _)) in those {
            process.expect("load g 0 8", &mark);
        }
    }
}
