//! The command line's program in containers, as a user types it.

use crate::enter::PROGRAM;
use crate::host::{HERE, Host, THERE};

pub fn programs_serve_other_containers_and_the_machine(host: &Host) {
    let mut store = host.container(HERE, &[PROGRAM, "kv", "serve"]);
    store.wait_for_error("store kv in domain default");
    let beeline = |args: &str| {
        let (status, out, err) = host.beeline(THERE, args);
        assert!(status.success(), "beeline {args}: {err}");
        out
    };
    beeline("kv set greeting hello-from-there");
    assert_eq!(beeline("kv get greeting"), "hello-from-there");
    // A process of the same user that is in no container reaches the same store.
    let outside = host.beeline_outside("kv get greeting");
    assert!(outside.status.success() && outside.stdout == b"hello-from-there", "{outside:?}");
    let (status, _, err) = host.beeline(THERE, "kv serve");
    assert!(!status.success() && err.contains("is offered by a process outside this pid namespace"), "{err}");
    store.kill();
    let (status, _, err) = host.beeline(THERE, "kv get greeting --timeout-ms 1");
    assert!(!status.success() && err.contains("nobody offers"), "{err}");
}

pub fn nic_answers_pings_of_another_container(host: &Host) {
    let mut nic = host.container(HERE, &[PROGRAM, "nic", "--until-stdin-closes"]);
    nic.expect("ready");
    let (status, out, err) = host.beeline(THERE, "ping --nic nic --size 10,1400 --count 200 --json");
    assert!(status.success() && !out.is_empty(), "{err}");
    let (status, out, err) = host.beeline(THERE, "stat --once --json");
    assert!(status.success() && out.contains("\"ports_opened\":2"), "{out}{err}");
    nic.end();
}
