//! Segments of locked memory and of huge pages, as the configuration asks for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "calls functions of C")]

mod support;

use support::{Fabric, Program, play};

#[test]
fn role() {
    play();
}

/// KiB that a program has locked.
fn locked_kib(program: &Program) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Whether a program has reserved huge pages mapped.
fn has_huge_pages(program: &Program) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", program.id())).unwrap();
    let pages = maps.lines().filter_map(|line| line.strip_prefix("KernelPageSize:"));
    pages.map(str::trim).any(|size| size != "4 kB")
}

/// Another process stores into a segment, and the owner finds it.
fn use_by_another(fabric: &Fabric, owner: &mut Program) {
    let mut user = fabric.opened("8");
    owner.run(&["prepare s 0", "available s 0", "map s o 8000 16"]);
    user.run(&["connect sd r 4 7 0 1000", "map_remote r m 8000 16", "store m 3 stored"]);
    owner.expect("load o 3 6", "stored");
    user.run(&["unmap m", "disconnect r"]);
    owner.run(&["unmap o"]);
}

#[test]
fn segment_is_locked_when_it_is_made_and_no_more_when_it_is_removed() {
    let fabric = Fabric::new();
    fabric.configure("[memory]\nlocked = true\n");
    let mut owner = fabric.opened("4");
    let before = locked_kib(&owner);
    for kind in ["0", "PRIVATE"] {
        owner.run(&[&format!("create sd s 7 40960 {kind}")]);
        assert_eq!(locked_kib(&owner), before + 40, "{kind}");
        owner.expect("size s", "40960");
        if kind == "0" {
            use_by_another(&fabric, &mut owner);
        }
        owner.run(&["remove s"]);
        // The memory is dropped by another thread. The fabric's watchdog ends a test that waits for ever.
        while locked_kib(&owner) != before {
            std::thread::yield_now();
        }
    }
}

#[test]
fn limit_on_locked_memory_is_an_error_that_names_it() {
    let fabric = Fabric::new();
    fabric.configure("[memory]\nlocked = true\n");
    let mut owner = fabric.opened("4");
    owner.run(&["limit_locked 65536"]);
    owner.expect("create sd s 7 131072", "SYSTEM");
    let why = owner.call("why");
    assert!(why.contains("65536") && why.contains("ulimit -l"), "{why}");
    // It has no name that is in the way of another one.
    owner.run(&["create sd s 7 32768", "remove s"]);
}

#[test]
fn segment_is_of_huge_pages_or_says_how_many_are_missing() {
    let fabric = Fabric::new();
    fabric.configure("[memory]\nhuge_pages = true\n");
    let mut owner = fabric.opened("4");
    match owner.call("create sd s 7 40960").as_str() {
        "OK" => {
            // What was asked for, not the page.
            owner.expect("size s", "40960");
            owner.run(&["map s o 0 40960"]);
            assert!(has_huge_pages(&owner), "it is made of ordinary pages");
            owner.run(&["unmap o"]);
            use_by_another(&fabric, &mut owner);
        }
        refused => {
            assert_eq!(refused, "NOSPC");
            let why = owner.call("why");
            assert!(why.contains("huge page"), "{why}");
            println!("this machine has no huge pages: {why}");
        }
    }
}
