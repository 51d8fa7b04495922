//! Groups of UDP whose members are all programs of one domain: each member has each datagram once and in order, natively and by windows, whoever comes and goes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "other tests use the rest")]
mod ground;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use beeline_socket_engine::switch;
use beeline_socket_rules::Windows;
use ground::{Ground, Run};

/// A run of `groups.c` with the rule: members, senders, datagrams, members that come and go.
fn carried(ground: &Ground, program: &Path, spin: &str, words: [&str; 4]) -> Run {
    let mut command = ground.preloaded(program);
    command.env("BEELINE_SOCKETS_UDP", "true").env("BEELINE_SOCKETS_MULTICAST", "host");
    Run::of(command.env("BEELINE_SOCKETS_SPIN", spin).args(words))
}

fn compiled() -> (Ground, PathBuf) {
    let ground = Ground::new();
    let program = ground.compile("groups.c", &[]);
    (ground, program)
}

/// What all see whose members miss nothing.
fn assert_whole(run: &Run, members: u32, senders: u32, datagrams: u32) {
    let lines = (0..members).flat_map(|member| {
        (0..senders).map(move |sender| format!("member {member} has {datagrams} of sender {sender}\n"))
    });
    let whole: String = lines.chain(["wrong: 0\n".to_owned()]).collect();
    assert_eq!((&*run.out, run.code), (&*whole, Some(0)), "{run:?}");
}

#[test]
fn three_members_have_each_datagram_once_and_in_order_by_windows() {
    let (ground, program) = compiled();
    assert_whole(&Run::of(Command::new(&program).args(["3", "1", "20000", "0"])), 3, 1, 20_000);
    let ours = carried(&ground, &program, "forever", ["3", "1", "20000", "0"]);
    assert_whole(&ours, 3, 1, 20_000);
    assert_eq!(ours.err, "carried: 1\n", "windows carry what is sent");
}

#[test]
fn members_that_come_leave_and_are_killed_change_nothing_for_others_and_miss_nothing_themselves() {
    let (ground, program) = compiled();
    for spin in ["forever", "50us", "0"] {
        let ours = carried(&ground, &program, spin, ["2", "2", "12000", "24"]);
        assert_whole(&ours, 2, 2, 12_000);
    }
}

#[test]
fn order_to_leave_windows_and_to_come_back_is_seen_by_no_member() {
    let (ground, program) = compiled();
    let is_over = AtomicBool::new(false);
    // The domain is beside the program.
    let folder = program.with_file_name("default");
    let (ours, orders) = thread::scope(|scope| {
        let orders = scope.spawn(|| {
            let (mut obeyed, mut to) = (0, Windows::Down);
            while !is_over.load(Ordering::Relaxed) {
                // Before the first process has made it there is no folder, and nobody to obey.
                let switched = switch(&folder, &[], to, Duration::from_millis(500)).unwrap_or_default();
                obeyed += switched.done.len();
                to = if to == Windows::Down { Windows::Up } else { Windows::Down };
                thread::sleep(Duration::from_millis(30));
            }
            obeyed
        });
        let ours = carried(&ground, &program, "forever", ["2", "1", "20000", "0"]);
        is_over.store(true, Ordering::Relaxed);
        (ours, orders.join().unwrap())
    });
    assert_whole(&ours, 2, 1, 20_000);
    assert!(orders > 4, "processes have obeyed {orders} times");
}

#[test]
fn groups_are_the_kernels_unless_the_rules_say_whose_they_are() {
    let (ground, program) = compiled();
    let mut command = ground.preloaded(&program);
    command.env("BEELINE_SOCKETS_UDP", "true").env("BEELINE_SOCKETS_SPIN", "forever");
    let ours = Run::of(command.args(["2", "1", "5000", "2"]));
    assert_whole(&ours, 2, 1, 5000);
    assert_eq!(ours.err, "carried: 0\n");
}
