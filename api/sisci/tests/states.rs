//! Each state and each call: what comes of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "calls functions of C")]

mod support;

use rustix::io::Errno;
use support::{Fabric, Program};

#[test]
fn role() {
    support::play();
}

#[test]
fn segment_that_one_program_makes_another_stores_into() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0", "map s m 0 4096"]);
    user.run(&["connect sd r 4 7 0 0", "map_remote r m 0 4096", "store m 100 hello"]);
    assert_eq!(
        ["remote_size r", "remote_id r", "remote_node r"].map(|call| user.call(call)),
        ["4096", "7", "4"]
    );
    assert_eq!(owner.call("load m 100 5"), "hello");
    owner.expect("wait s 1000", "OK CONNECT 8 0");
    owner.expect("remove s", "BUSY");
    owner.run(&["unmap m"]);
    owner.expect("remove s", "BUSY");
    user.expect("disconnect r", "BUSY");
    user.run(&["unmap m", "disconnect r"]);
    owner.expect("wait s 1000", "OK DISCONNECT 8 0");
    owner.run(&["remove s", "close sd", "terminate"]);
    user.run(&["close sd", "terminate"]);
}

/// Calls on a segment that is not prepared, prepared, and available.
const LOCAL: &[(&str, [&str; 3])] = &[
    ("prepare s 0", ["OK"; 3]),
    ("prepare s 0 DMA_SOURCE_ONLY", ["OK"; 3]),
    ("prepare s 1", ["NO_SUCH_ADAPTERNO"; 3]),
    ("prepare s 16", ["ILLEGAL_ADAPTERNO"; 3]),
    ("prepare s 0 0x1", ["ILLEGAL_FLAG"; 3]),
    ("prepare s 0 BROADCAST", ["ILLEGAL_OPERATION"; 3]),
    ("available s 0", ["SEGMENT_NOT_PREPARED", "OK", "OK"]),
    ("available s 1", ["NO_SUCH_ADAPTERNO"; 3]),
    ("available s 16", ["ILLEGAL_ADAPTERNO"; 3]),
    ("available s 0 0x1", ["ILLEGAL_FLAG"; 3]),
    ("unavailable s 0", ["SEGMENT_NOT_PREPARED", "ILLEGAL_OPERATION", "OK"]),
    ("unavailable s 0 FORCE_DISCONNECT", ["SEGMENT_NOT_PREPARED", "OK", "OK"]),
    ("unavailable s 0 NOTIFY", ["SEGMENT_NOT_PREPARED", "ILLEGAL_OPERATION", "OK"]),
    ("unavailable s 0 0x80", ["ILLEGAL_FLAG"; 3]),
    ("unavailable s 16", ["ILLEGAL_ADAPTERNO"; 3]),
    ("map s m 0 4096", ["OK"; 3]),
    ("map s m 4095 1", ["OK"; 3]),
    ("map s m 0 4097", ["OUT_OF_RANGE"; 3]),
    ("map s m 4096 1", ["OUT_OF_RANGE"; 3]),
    ("map s m 0 0", ["SIZE_ALIGNMENT"; 3]),
    ("map s - 0 4096", ["ILLEGAL_PARAMETER"; 3]),
    ("map s m 0 4096 0x1000", ["ILLEGAL_FLAG"; 3]),
    ("map s m 0 4096 NO_MEMORY_LOOPBACK", ["FLAG_NOT_IMPLEMENTED"; 3]),
    ("map s m 0 4096 IO_MAP_IOSPACE", ["FLAG_NOT_IMPLEMENTED"; 3]),
    ("map s m 0 4096 IO_MAP_IOSPACE|WRITE_BACK_CACHE_MAP", ["ILLEGAL_FLAG"; 3]),
    ("map s m 0 4096 SHARED_MAP", ["OK"; 3]),
    ("map s m 0 4096 LOCK_OPERATION", ["OK"; 3]),
    ("map s m 0 4096 READ_PREFETCH_AGGR_HOLD_MAP", ["OK"; 3]),
    ("map s m 0 4096 READ_PREFETCH_NO_HOLD_MAP", ["OK"; 3]),
    ("wait s 0", ["TIMEOUT"; 3]),
    ("wait s 1", ["TIMEOUT"; 3]),
    ("wait s 0 0x1", ["ILLEGAL_FLAG"; 3]),
    ("create sd t 7 64", ["SEGMENTID_USED"; 3]),
    ("create sd t 8 0", ["SIZE_ALIGNMENT"; 3]),
    ("create sd t 8 64 PRIVATE|AUTO_ID", ["ILLEGAL_FLAG"; 3]),
    ("create sd t 8 64 0x1000000", ["ILLEGAL_FLAG"; 3]),
    ("create sd t 8 64 USE_CALLBACK", ["ILLEGAL_PARAMETER"; 3]),
    ("create sd t 8 64 BROADCAST|AUTO_ID", ["ILLEGAL_FLAG"; 3]),
    ("create sd - 8 64", ["ILLEGAL_PARAMETER"; 3]),
    ("query 8 s 0x301", ["NOT_SUPPORTED"; 3]),
    ("query 8 s 0x401", ["ILLEGAL_QUERY"; 3]),
    ("remove s 0x1", ["ILLEGAL_FLAG"; 3]),
    ("remove s", ["OK"; 3]),
    ("remove s FORCE_REMOVE", ["OK"; 3]),
    ("close sd", ["BUSY"; 3]),
    ("close sd 0x1", ["ILLEGAL_FLAG"; 3]),
    ("id s", ["7"; 3]),
    ("size s", ["4096"; 3]),
];

#[test]
fn local_segment_in_each_state_answers_each_call_with_its_code() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    let states = ["create sd s 7 4096", "prepare s 0", "available s 0"];
    for (call, codes) in LOCAL {
        for (state, code) in codes.iter().enumerate() {
            program.run(&states[..=state]);
            assert_eq!(program.call(call), *code, "`{call}` after {}", states[state]);
            program.call("unmap m");
            program.call("remove s FORCE_REMOVE");
        }
    }
    program.run(&["close sd"]);
}

#[test]
fn private_segment_is_mapped_and_never_available() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    program.run(&["create sd s 7 100 PRIVATE", "create sd t 7 100 PRIVATE", "prepare s 0", "map s m 0 100"]);
    program.expect("available s 0", "ILLEGAL_OPERATION");
    program.expect("connect sd r 4 7 0 0", "NO_SUCH_SEGMENT");
    program.run(&["store m 95 hello"]);
    program.expect("load m 95 5", "hello");
}

#[test]
fn errno_says_why_the_configuration_is_not_taken() {
    let fabric = Fabric::new();
    fabric.configure("nodes = 4\n");
    let mut program = fabric.program("4");
    program.expect("errno_of_initialize", &format!("SYSTEM {}", Errno::INVAL.raw_os_error()));
    fabric.remove_configuration();
    program.expect("errno_of_initialize", &format!("SYSTEM {}", Errno::NOENT.raw_os_error()));
}

#[test]
fn folder_that_cannot_be_used_is_found_by_initialize() {
    let fabric = Fabric::new();
    let mut program = fabric.program("4");
    fabric.set_mode(0o777);
    program.expect("errno_of_initialize", &format!("SYSTEM {}", Errno::INVAL.raw_os_error()));
    fabric.set_mode(0o700);
    program.run(&["initialize", "open sd"]);
}

#[test]
fn errno_says_why_the_one_memory_is_not_joined_or_is_zero() {
    let fabric = Fabric::new();
    fabric.configure("[fabric]\nmemory = \"/dev/shm/beeline-that-is-not-there\"\n");
    let no_file = format!("SYSTEM {}", Errno::NOENT.raw_os_error());
    let mut program = fabric.program("4");
    program.expect("errno_of_open", &no_file);
    program.expect(
        "why",
        "SCIOpen: this process does not join the fabric: cannot open /dev/shm/beeline-that-is-not-there: No such file or directory (os error 2); \
         with `bytes` in the table [fabric] of beeline.toml it is made",
    );
    fabric.configure("[fabric]\nmemory = \"/proc/self/exe\"\n[[nodes]]\nid = 4\nadapters = [0, 1]\n");
    fabric.program("4").expect("errno_of_open", "SYSTEM 0");
}

/// A list of the nodes has a place for each adapter; of the adapters only one number is given, for which a program has room.
#[test]
fn nodes_are_found_by_name_with_the_first_adapter() {
    let fabric = Fabric::new();
    fabric.configure(
        "[[nodes]]\nid = 4\nname = \"alpha\"\nadapters = [2, 3]\n\n[[nodes]]\nid = 8\nname = \"beta\"\n",
    );
    let mut program = fabric.program("4");
    program.run(&["initialize"]);
    program.expect("named alpha", "[4, 4, 0] [2, 9, 9]");
    program.expect("named beta", "[8, 0, 0] [0, 9, 9]");
    program.expect("named gamma", "NO_SUCH_NODEID");
    // The name of this host is that of the own node.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    program.expect(&format!("named {}", host.trim()), "[4, 4, 0] [2, 9, 9]");
}

#[test]
fn automatic_numbers_begin_where_the_program_says() {
    let fabric = Fabric::new();
    let (mut one, mut other) = (fabric.opened("4"), fabric.opened("4"));
    one.run(&["create sd s 1024 64 AUTO_ID", "create sd t 1024 64 AUTO_ID"]);
    other.run(&["create sd s 1024 64 AUTO_ID"]);
    assert_eq!([one.call("id s"), one.call("id t"), other.call("id s")], ["1024", "1025", "1026"]);
}

/// Ways to connect, and what comes of them. Node 4 has the segment 7, which is available on adapter 0, and 8, which is prepared.
const CONNECT: &[(&str, &str)] = &[
    ("connect sd r 4 7 0 0", "OK"),
    ("connect sd r 4 7 0 1000", "OK"),
    ("connect sd r 4 7 0 0xffffffff", "OK"),
    ("connect sd r 4 8 0 0", "CONNECTION_REFUSED"),
    ("connect sd r 4 8 0 20", "TIMEOUT"),
    ("connect sd r 4 9 0 0", "NO_SUCH_SEGMENT"),
    ("connect sd r 4 9 0 20", "TIMEOUT"),
    ("connect sd r 12 7 0 0", "NODE_NOT_RESPONDING"),
    ("connect sd r 12 7 0 20", "TIMEOUT"),
    ("connect sd r 252 7 0 0", "NO_SUCH_NODEID"),
    ("connect sd r 0 7 0 0", "ILLEGAL_NODEID"),
    ("connect sd r 65536 7 0 0", "ILLEGAL_NODEID"),
    ("connect sd r 4 7 1 0", "NO_SUCH_ADAPTERNO"),
    ("connect sd r 4 7 16 0", "ILLEGAL_ADAPTERNO"),
    ("connect sd r 4 7 0 0 0x4", "ILLEGAL_FLAG"),
    ("connect sd r 4 7 0 0 ASYNCHRONOUS_CONNECT", "OK"),
    ("connect sd r 4 7 0 0 USE_CALLBACK", "ILLEGAL_PARAMETER"),
    ("connect sd r 4 7 0 0 BROADCAST", "ILLEGAL_OPERATION"),
    ("connect sd - 4 7 0 0", "ILLEGAL_PARAMETER"),
    ("probe sd 0 4", "1 OK"),
    ("probe sd 0 8", "1 OK"),
    ("probe sd 0 12", "0 NODE_NOT_RESPONDING"),
    ("probe sd 0 252", "0 NO_SUCH_NODEID"),
    ("probe sd 0 0", "0 ILLEGAL_NODEID"),
    ("probe sd 1 4", "0 NO_SUCH_ADAPTERNO"),
    ("probe sd 16 4", "0 ILLEGAL_ADAPTERNO"),
    ("probe sd 0 4 0x1", "0 ILLEGAL_FLAG"),
];

#[test]
fn connecting_says_why_it_does_not_succeed() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0", "create sd t 8 4096", "prepare t 0"]);
    for (call, code) in CONNECT {
        user.expect(call, code);
        user.call("disconnect r");
    }
    // Also of a segment of the program itself.
    owner.run(&["connect sd r 4 7 0 0", "map_remote r m 0 4096", "unmap m", "disconnect r", "remove s"]);
}

/// Calls on a connection that is operational, and on one that is lost. `m` is a map of it and `q` a sequence that was started.
const REMOTE: &[(&str, [&str; 2])] = &[
    ("map_remote r n 0 4096", ["OK", "NOT_CONNECTED"]),
    ("map_remote r n 4095 1", ["OK", "NOT_CONNECTED"]),
    ("map_remote r n 0 4097", ["OUT_OF_RANGE", "NOT_CONNECTED"]),
    ("map_remote r n 0 0", ["SIZE_ALIGNMENT"; 2]),
    ("map_remote r - 0 4096", ["ILLEGAL_PARAMETER"; 2]),
    ("map_remote r n 0 4096 0x4000", ["ILLEGAL_FLAG"; 2]),
    ("map_remote r n 0 4096 IO_MAP_IOSPACE", ["FLAG_NOT_IMPLEMENTED", "NOT_CONNECTED"]),
    ("map_remote r n 0 4096 DMOVE_MAP", ["FLAG_NOT_IMPLEMENTED"; 2]),
    ("map_remote r n 0 4096 SHARED_MAP|LOCK_OPERATION", ["OK", "NOT_CONNECTED"]),
    ("map_remote r n 0 4096 WRITE_BACK_CACHE_MAP", ["OK", "NOT_CONNECTED"]),
    ("remote_size r", ["4096"; 2]),
    ("remote_id r", ["7"; 2]),
    ("remote_node r", ["4"; 2]),
    ("sequence m n", ["OK"; 2]),
    ("sequence m n FAST_BARRIER", ["OK"; 2]),
    ("sequence m n 0x1", ["ILLEGAL_FLAG"; 2]),
    ("sequence m -", ["ILLEGAL_PARAMETER"; 2]),
    ("check q", ["OK", "NOT_RETRIABLE"]),
    ("check q NO_FLUSH|NO_STORE_BARRIER", ["OK", "NOT_RETRIABLE"]),
    ("check q 0x1", ["ILLEGAL_FLAG"; 2]),
    ("start q", ["OK", "NOT_RETRIABLE"]),
    ("start q 0x1", ["ILLEGAL_FLAG"; 2]),
    ("copy q m 0 hello", ["OK", "TRANSFER_FAILED"]),
    ("copy none m 0 hello", ["OK", "TRANSFER_FAILED"]),
    ("copy q m 0 hello ERROR_CHECK", ["OK", "TRANSFER_FAILED"]),
    ("copy none m 0 hello ERROR_CHECK", ["ILLEGAL_PARAMETER"; 2]),
    ("copy q m 4091 hello NO_FLUSH", ["OK", "TRANSFER_FAILED"]),
    ("copy q m 4092 hello", ["OUT_OF_RANGE"; 2]),
    ("copy q m 0xffffffff hello", ["OUT_OF_RANGE"; 2]),
    ("copy q m 0 hello 0x100", ["ILLEGAL_FLAG"; 2]),
    ("copy_null q m 0 0", ["OK", "TRANSFER_FAILED"]),
    ("copy_null q m 0 1", ["ILLEGAL_PARAMETER"; 2]),
    ("copy_1 m 0 hello", ["OK", "TRANSFER_FAILED"]),
    ("copy_1 m 4092 hello ERROR_CHECK", ["OUT_OF_RANGE"; 2]),
    ("copy_dual q m 0 q m 100 hello ERROR_CHECK", ["OK", "TRANSFER_FAILED"]),
    ("copy_dual q m 0 none m 100 hello ERROR_CHECK", ["ILLEGAL_PARAMETER"; 2]),
    ("copy_dual q m 0 q m 4092 hello", ["OUT_OF_RANGE", "TRANSFER_FAILED"]),
    ("copy_dual q m 0 q m 0 hello BLOCK_READ", ["ILLEGAL_FLAG"; 2]),
    ("block m 0 m 64 64", ["OK", "TRANSFER_FAILED"]),
    ("block m 4095 m 0 2", ["OUT_OF_RANGE"; 2]),
    ("block m 0 m 4095 2", ["OUT_OF_RANGE"; 2]),
    ("write at 0 hello", ["OK", "TRANSFER_FAILED"]),
    ("write at 4091 hello NO_FLUSH", ["OK", "TRANSFER_FAILED"]),
    ("write at 4092 hello", ["OUT_OF_RANGE"; 2]),
    ("write at 0 hello 0x1", ["ILLEGAL_FLAG"; 2]),
    ("write none 0 hello", ["ILLEGAL_ADDRESS"; 2]),
    ("sync m at 0 4096 CACHE_FLUSH", ["OK"; 2]),
    ("sync none at 0 4096 CACHE_FLUSH", ["OK"; 2]),
    ("sync m at 1 4096 CACHE_FLUSH", ["OUT_OF_RANGE"; 2]),
    ("sync m at 0 4096", ["ILLEGAL_FLAG"; 2]),
    ("sync m at 0 4096 0x1", ["ILLEGAL_FLAG"; 2]),
    ("query 9 r 0x401", ["NOT_SUPPORTED"; 2]),
    ("query 9 r 0x301", ["ILLEGAL_QUERY"; 2]),
    ("query 10 m 0x501", ["NOT_SUPPORTED"; 2]),
    ("unmap m", ["BUSY"; 2]),
    ("unmap m 0x1", ["ILLEGAL_FLAG"; 2]),
    ("unsequence q 0x1", ["ILLEGAL_FLAG"; 2]),
    ("unsequence q", ["OK"; 2]),
    ("disconnect r", ["BUSY"; 2]),
    ("disconnect r 0x1", ["ILLEGAL_FLAG"; 2]),
    ("wait_remote r 0", ["TIMEOUT", "OK LOST OK"]),
    ("wait_remote r 0 0x1", ["ILLEGAL_FLAG"; 2]),
];

fn connected(user: &mut Program) {
    user.run(&["connect sd r 4 7 0 0", "map_remote r m 0 4096", "address m at", "sequence m q"]);
    user.expect("start q", "OK");
}

fn disconnected(user: &mut Program) {
    for call in ["unmap n", "unsequence n", "unsequence q", "unmap m", "disconnect r"] {
        user.call(call);
    }
}

#[test]
fn connection_in_each_state_answers_each_call_with_its_code() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    for (call, [operational, lost]) in REMOTE {
        owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0"]);
        connected(&mut user);
        user.expect(call, operational);
        disconnected(&mut user);
        connected(&mut user);
        owner.run(&["remove s FORCE_REMOVE"]);
        assert_eq!(user.call(call), *lost, "`{call}` when it is lost");
        disconnected(&mut user);
    }
    user.run(&["close sd"]);
    owner.run(&["close sd"]);
}

#[test]
fn sequence_that_is_not_started_is_not_checked() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    program.run(&["create sd s 7 4096", "map s m 0 4096", "sequence m q"]);
    program.expect("check q", "ILLEGAL_OPERATION");
    program.expect("start q", "OK");
    program.expect("check q", "OK");
}

#[test]
fn death_of_the_owner_is_told_and_found_by_sequences() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0"]);
    connected(&mut user);
    owner.kill();
    user.expect("wait_remote r 10000", "OK LOST OK");
    user.expect("check q", "NOT_RETRIABLE");
    // The memory is there as long as it is mapped.
    user.run(&["store m 0 hello"]);
    user.expect("load m 0 5", "hello");
}

#[test]
fn copies_of_every_way_arrive() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0", "map s m 0 4096"]);
    connected(&mut user);
    user.run(&["copy q m 1 one", "write at 11 two", "copy_1 m 21 three", "copy_dual q m 31 q m 41 four"]);
    user.run(&["block m 1 m 51 3"]);
    let loads = ["load m 1 3", "load m 11 3", "load m 21 5", "load m 31 4", "load m 41 4", "load m 51 3"];
    assert_eq!(loads.map(|load| owner.call(load)), ["one", "two", "three", "four", "four", "one"]);
    owner.run(&["store m 61 five"]);
    user.expect("read q m 61 4", "five");
    // Version 1 reads, too.
    user.expect("copy_1 m 61 xxxx BLOCK_READ", "OK");
    user.expect("barrier q", "done");
}

#[test]
fn map_for_reading_refuses_copies_into_it() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    program.run(&[
        "create sd s 7 8192",
        "prepare s 0",
        "available s 0",
        "map s m 0 8192",
        "store m 5000 hello",
    ]);
    program.run(&[
        "connect sd r 4 7 0 0",
        "map_remote r n 5000 100 READONLY_MAP",
        "map s l 0 10 READONLY_MAP",
    ]);
    program.expect("load n 0 5", "hello");
    program.expect("read none n 0 5", "hello");
    program.run(&["address n at"]);
    for refused in ["copy none n 0 x", "copy none l 0 x", "write at 0 x", "block m 0 n 0 1", "copy_1 n 0 x"] {
        program.expect(refused, "ILLEGAL_OPERATION");
    }
    program.run(&["block n 0 m 0 5"]);
    program.expect("load m 0 5", "hello");
}

#[test]
fn map_is_where_the_program_wants_it_or_nowhere() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    program.run(&["create sd s 7 65536", "map s m 0 65536", "address m at"]);
    program.expect("map s n 0 65536 FIXED_MAP_ADDR at", "ILLEGAL_ADDRESS");
    program.run(&[
        "unmap m",
        "map s n 0 65536 FIXED_MAP_ADDR at",
        "address n again",
        "same at again",
        "unmap n",
    ]);
    // A part keeps its distance from the page.
    program.expect("map s n 100 64 FIXED_MAP_ADDR at", "ILLEGAL_ADDRESS");
    program.run(&[
        "shift at 100 near",
        "map s n 100 64 FIXED_MAP_ADDR near",
        "address n again",
        "same near again",
    ]);
}

#[test]
fn wait_ends_when_what_it_waits_for_is_removed() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    // A thread that comes too late finds the handle removed: it is done again until one was in time.
    let is_cancelled = |ended: String| {
        assert!(["CANCELLED", "ILLEGAL_PARAMETER"].contains(&&*ended), "{ended}");
        ended == "CANCELLED"
    };
    owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0"]);
    while {
        user.run(&["connect sd r 4 7 0 0", "thread t wait_remote r 0xffffffff", "disconnect r"]);
        !is_cancelled(user.call("join t"))
    } {}
    owner.run(&["remove s"]);
    while {
        owner.run(&["create sd s 7 4096", "thread t wait s 0xffffffff", "remove s"]);
        !is_cancelled(owner.call("join t"))
    } {}
}
