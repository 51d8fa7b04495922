//! Programs that use UDP, run as they are and with the library preloaded: what they print is the same, also where windows carry it.

#[allow(dead_code, reason = "other tests use the rest")]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod ground;

use std::process::Command;

use ground::{Ground, Run};

/// Runs the program with addresses of one family both ways.
fn same(family: &str) {
    let ground = Ground::new();
    let program = ground.compile("datagrams.c", &[]);
    let native = Run::of(Command::new(&program).arg(family));
    assert!(native.ended_well() && native.out.lines().count() > 90, "{native:?}");
    let ours = Run::of(ground.preloaded(&program).env("BEELINE_SOCKETS_UDP", "true").arg(family));
    assert_eq!(ours.err, "", "windows carry what is sent");
    assert_eq!((ours.code, ours.signal), (native.code, native.signal), "{ours:?}");
    for (line, (ours, native)) in ours.out.lines().zip(native.out.lines()).enumerate() {
        assert_eq!(ours, native, "line {line}");
    }
    assert_eq!(ours, native);
}

#[test]
fn datagrams_of_ipv4_are_what_they_are_natively() {
    same("4");
}

#[test]
fn datagrams_of_ipv6_are_what_they_are_natively() {
    same("6");
}

#[test]
fn datagrams_are_left_alone_unless_the_rules_have_them() {
    let ground = Ground::new();
    let program = ground.compile("datagrams.c", &[]);
    let left_alone = Run::of(ground.preloaded(&program).args(["4", "2000", "left alone"]));
    assert!(left_alone.code == Some(0) && left_alone.err.contains("not carried"), "{left_alone:?}");
}

/// Receivers ask their senders for rests then, over and over.
#[test]
fn datagrams_are_what_they_are_natively_where_no_receiver_spins() {
    let ground = Ground::new();
    let program = ground.compile("datagrams.c", &[]);
    let native = Run::of(Command::new(&program).args(["4", "3000"]));
    let mut command = ground.preloaded(&program);
    command.env("BEELINE_SOCKETS_UDP", "true").env("BEELINE_SOCKETS_SPIN", "0");
    let ours = Run::of(command.args(["4", "3000"]));
    assert_eq!((ours.code, ours.out), (native.code, native.out));
}
