//! Interrupts with and without data, in each state, and each call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "calls functions of C")]

mod support;

use support::Fabric;

#[test]
fn role() {
    support::play();
}

/// Calls on interrupts. Node 4 has the interrupt 5 as `i` and the data interrupt 6 as `d`; the program is connected to them by `j` and `e`.
const CALLS: &[(&str, &str)] = &[
    ("int sd x 5 FIXED_INTNO", "INTNO_USED"),
    ("int sd x 7 FIXED_INTNO", "OK 7"),
    ("int sd x 7 FIXED_INTNO|COUNTING_INT", "OK 7"),
    ("int sd x 5 FIXED_INTNO|SHARED_INT", "INTNO_USED"),
    ("int sd x 7 FIXED_INTNO|SHARED_INT", "OK 7"),
    ("named_int sd x name 0", "OK"),
    ("named_int sd x name SHARED_INT|COUNTING_INT", "OK"),
    ("named_int sd x taken 0", "INTNO_USED"),
    ("named_int sd x taken SHARED_INT", "INTNO_USED"),
    ("named_int sd x name FIXED_INTNO", "ILLEGAL_FLAG"),
    ("named_int sd x name USE_CALLBACK", "ILLEGAL_PARAMETER"),
    ("named_int sd - name 0", "ILLEGAL_PARAMETER"),
    ("named_int sd x - 0", "ILLEGAL_PARAMETER"),
    ("int sd x 7 CONDITIONAL_INTERRUPT", "FLAG_NOT_IMPLEMENTED"),
    ("int sd x 7 0x100", "ILLEGAL_FLAG"),
    ("int sd x 7 USE_CALLBACK", "ILLEGAL_PARAMETER"),
    ("int sd - 7 0", "ILLEGAL_PARAMETER"),
    ("int_null sd", "ILLEGAL_PARAMETER"),
    ("data sd x 6 FIXED_INTNO", "INTNO_USED"),
    ("data sd x 7 FIXED_INTNO", "OK 7"),
    ("data sd x 7 FIXED_INTNO|BROADCAST", "OK 7"),
    ("data sd x 7 0x100", "ILLEGAL_FLAG"),
    ("data sd x 7 USE_CALLBACK", "ILLEGAL_PARAMETER"),
    ("wait_int i 0", "TIMEOUT"),
    ("wait_int i 10", "TIMEOUT"),
    ("wait_int i 0 0x1", "ILLEGAL_FLAG"),
    ("wait_int d 0", "ILLEGAL_PARAMETER"),
    ("wait_data d 10 0", "TIMEOUT"),
    ("wait_data d 10 10", "TIMEOUT"),
    ("wait_data d 10 0 0x1", "ILLEGAL_FLAG"),
    ("wait_data i 10 0", "ILLEGAL_PARAMETER"),
    ("connect_int sd x 4 0 5 0", "OK"),
    ("connect_int sd x 4 0 6 0", "NO_SUCH_INTNO"),
    ("connect_int sd x 4 0 9 0", "NO_SUCH_INTNO"),
    ("connect_int sd x 4 0 9 20", "TIMEOUT"),
    ("connect_int sd x 12 0 5 0", "NODE_NOT_RESPONDING"),
    ("connect_int sd x 252 0 5 0", "NO_SUCH_NODEID"),
    ("connect_int sd x 0 0 5 0", "ILLEGAL_NODEID"),
    ("connect_int sd x 4 1 5 0", "NO_SUCH_ADAPTERNO"),
    ("connect_int sd x 4 16 5 0", "ILLEGAL_ADAPTERNO"),
    ("connect_int sd x 4 0 5 0 0x1", "ILLEGAL_FLAG"),
    ("connect_int sd - 4 0 5 0", "ILLEGAL_PARAMETER"),
    ("connect_data sd x 4 0 6 0", "OK"),
    ("connect_data sd x 4 0 5 0", "NO_SUCH_INTNO"),
    ("connect_data sd x 4 0 6 0 BROADCAST", "ILLEGAL_OPERATION"),
    ("trigger j 0x1", "ILLEGAL_FLAG"),
    ("trigger e", "ILLEGAL_PARAMETER"),
    ("trigger_data j x", "ILLEGAL_PARAMETER"),
    ("trigger_data e x 0x1", "ILLEGAL_FLAG"),
    ("trigger_bytes e 2049", "ILLEGAL_PARAMETER"),
    ("trigger_null e 1", "ILLEGAL_PARAMETER"),
    ("unint i 0x1", "ILLEGAL_FLAG"),
    ("undata d 0x1", "ILLEGAL_FLAG"),
    ("disconnect_int j 0x1", "ILLEGAL_FLAG"),
    ("disconnect_data e 0x1", "ILLEGAL_FLAG"),
    ("close sd", "BUSY"),
];

#[test]
fn each_call_answers_with_its_code() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    program.expect("int sd i 5 FIXED_INTNO", "OK 5");
    program.expect("data sd d 6 FIXED_INTNO", "OK 6");
    program.run(&["named_int sd n taken 0"]);
    program.run(&["connect_int sd j 4 0 5 0", "connect_data sd e 4 0 6 0"]);
    for (call, code) in CALLS {
        program.expect(call, code);
        for removal in ["unint x", "undata x", "disconnect_int x", "disconnect_data x"] {
            program.call(removal);
        }
    }
    // The number in the variable counts only with its flag.
    let free = program.call("int sd x 5 0");
    assert!(free.starts_with("OK ") && free != "OK 5", "{free}");
    program.run(&["unint x", "disconnect_int j", "disconnect_data e", "unint i", "undata d", "unint n"]);
    for removed in
        ["disconnect_int j", "disconnect_data e", "unint i", "undata d", "trigger j", "wait_int i 0"]
    {
        program.expect(removed, "ILLEGAL_PARAMETER");
    }
    program.run(&["close sd"]);
}

#[test]
fn interrupt_that_another_program_triggers_ends_a_wait() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.expect("int sd i 5 FIXED_INTNO", "OK 5");
    user.run(&["connect_int sd j 4 0 5 1000"]);
    owner.run(&["thread t wait_int i 0xffffffff"]);
    user.run(&["trigger j"]);
    owner.expect("join t", "OK");
    owner.expect("wait_int i 0", "TIMEOUT");
    // Removed: the trigger says so.
    owner.run(&["unint i"]);
    user.expect("trigger j", "NOT_CONNECTED");
    user.run(&["disconnect_int j", "close sd"]);
}

#[test]
fn shared_interrupt_and_one_of_a_name_reach_who_has_them() {
    let fabric = Fabric::new();
    let (mut one, mut other, mut user) = (fabric.opened("4"), fabric.opened("4"), fabric.opened("8"));
    one.expect("int sd i 5 FIXED_INTNO|SHARED_INT", "OK 5");
    user.run(&["connect_int sd j 4 0 5 1000"]);
    other.expect("int sd i 5 FIXED_INTNO|SHARED_INT|USE_CALLBACK go_on", "OK 5");
    user.run(&["trigger j"]);
    one.run(&["wait_int i 20000"]);
    other.expect("told 20000", "TRIGGERED OK");
    // FNV-1a of `foobar` is 0xbf9cf968.
    one.run(&["named_int sd n foobar 0"]);
    other.expect("int sd x 0xbf9cf968 FIXED_INTNO", "INTNO_USED");
    user.run(&["connect_int sd k 4 0 0xbf9cf968 0", "trigger k"]);
    one.run(&["wait_int n 20000"]);
}

#[test]
fn interrupt_that_counts_is_taken_as_often_as_it_was_triggered() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.expect("int sd i 5 FIXED_INTNO|COUNTING_INT", "OK 5");
    user.run(&["connect_int sd j 4 0 5 1000", "trigger j", "trigger j", "trigger j"]);
    owner.run(&["wait_int i 1000", "wait_int i 1000", "wait_int i 1000"]);
    owner.expect("wait_int i 0", "TIMEOUT");
}

#[test]
fn data_come_in_their_order_and_whole() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.expect("data sd d 6 FIXED_INTNO", "OK 6");
    user.run(&[
        "connect_data sd e 4 0 6 1000",
        "trigger_data e hello",
        "trigger_data e there",
        "trigger_null e 0",
    ]);
    owner.expect("wait_data d 2048 1000", "OK hello");
    // Too little room: it stays.
    owner.expect("wait_data d 4 1000", "OVERFLOW 5");
    owner.expect("wait_data d 5 1000", "OK there");
    owner.expect("wait_data d 0 1000", "OK");
    // Nobody takes them: at some time there is no room.
    user.until("trigger_bytes e 2048", "NOSPC");
    owner.expect("wait_data d 2047 1000", "OVERFLOW 2048");
    owner.kill();
    user.until("trigger_data e x", "NOT_CONNECTED");
}

#[test]
fn callbacks_are_told_of_interrupts() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.expect("int sd i 5 FIXED_INTNO|USE_CALLBACK go_on", "OK 5");
    owner.expect("data sd d 6 FIXED_INTNO|USE_CALLBACK go_on", "OK 6");
    owner.expect("wait_int i 0", "ILLEGAL_OPERATION");
    owner.expect("wait_data d 1 0", "ILLEGAL_OPERATION");
    user.run(&["connect_int sd j 4 0 5 1000", "connect_data sd e 4 0 6 1000", "trigger j"]);
    owner.expect("told 20000", "TRIGGERED OK");
    user.run(&["trigger_data e hello", "trigger_data e there"]);
    owner.expect("told 20000", "DATA hello OK");
    owner.expect("told 20000", "DATA there OK");
    owner.run(&["unint i", "undata d"]);
    user.expect("trigger j", "NOT_CONNECTED");
    // One that removes itself.
    owner.expect("int sd i 5 FIXED_INTNO|USE_CALLBACK remove", "OK 5");
    user.run(&["disconnect_int j", "connect_int sd j 4 0 5 1000", "trigger j"]);
    owner.expect("told 20000", "TRIGGERED OK OK");
    owner.expect("unint i", "ILLEGAL_PARAMETER");
    owner.until("close sd", "OK");
}

#[test]
fn wait_ends_when_its_interrupt_is_removed() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    // A thread that comes too late finds the handle removed: it is done again until one was in time.
    for (create, wait, remove) in [
        ("int sd i 5 FIXED_INTNO", "thread t wait_int i 0xffffffff", "unint i"),
        ("data sd i 5 FIXED_INTNO", "thread t wait_data i 10 0xffffffff", "undata i"),
    ] {
        loop {
            program.expect(create, "OK 5");
            program.run(&[wait, remove]);
            match program.call("join t").as_str() {
                "CANCELLED" => break,
                late => assert_eq!(late, "ILLEGAL_PARAMETER"),
            }
        }
    }
}

#[test]
fn child_of_fork_triggers_nothing_of_its_parents() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    program.expect("int sd i 5 FIXED_INTNO", "OK 5");
    program.run(&["connect_int sd j 4 0 5 0"]);
    for call in ["trigger j", "wait_int i 0", "unint i", "disconnect_int j"] {
        program.expect(&format!("child {call}"), "NOT_INITIALIZED");
    }
    program.run(&["trigger j", "wait_int i 1000"]);
}
