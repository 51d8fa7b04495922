//! Programs in C and C++ that send and receive messages in windows, with each other and with Rust; what they do wrong; and
//! what one sees of the other's end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use beeline::{Domain, ReceiverOptions, RecvError};

mod support;

use support::{C11, CPP17, Installed, Running, run, succeed};

fn installed() -> &'static Installed {
    support::installed("beeline")
}

/// With the part of POSIX and Linux that the test programs use.
fn compile(compiler: &[&str], source: &str, name: &str) -> PathBuf {
    let gnu: Vec<&str> = compiler.iter().copied().chain(["-D_DEFAULT_SOURCE"]).collect();
    installed().compile(&gnu, source, name, &installed().shared())
}

fn root(place: &tempfile::TempDir) -> &str {
    place.path().to_str().unwrap()
}

#[test]
fn examples_work_with_each_other_in_every_language_and_linkage() {
    let installed = installed();
    let (shared, archive) = (installed.shared(), installed.archive());
    for (name, compiler, link) in
        [("c", &C11[..], &shared), ("c-archive", &C11[..], &archive), ("cpp", &CPP17[..], &shared)]
    {
        let receive = installed.compile(compiler, "examples/receiver.c", &format!("receiver-{name}"), link);
        let send = installed.compile(compiler, "examples/sender.c", &format!("sender-{name}"), link);
        let place = tempfile::tempdir().unwrap();
        // The sender waits for its receiver.
        let mut sender = Running::start(&send, &["numbers", root(&place), "200000"]);
        let mut receiver = Running::start(&receive, &["numbers", root(&place)]);
        assert_eq!(receiver.line(), "numbers is offered");
        assert_eq!(sender.line(), "200000 messages sent");
        assert_eq!(receiver.line(), "200000 messages, sum 20000100000");
        assert!(receiver.child.wait().unwrap().success() && sender.child.wait().unwrap().success());
    }
}

#[test]
fn every_way_to_receive_gives_every_message_of_every_way_to_send() {
    const COUNT: &str = "60000";
    let programs = [("c", &C11[..]), ("cpp", &CPP17[..])]
        .map(|(name, compiler)| compile(compiler, "tests/stream.c", &format!("stream-{name}")));
    let mut ends = Vec::new();
    for (index, how) in ["poll", "drain", "into", "small", "mixed"].into_iter().enumerate() {
        let place = tempfile::tempdir().unwrap();
        let (one, other) = (&programs[index % 2], &programs[(index + 1) % 2]);
        let mut receiver = Running::start(one, &["receive", root(&place), COUNT, how]);
        assert_eq!(receiver.line(), "offered", "{how}");
        succeed(Command::new(other).args(["send", root(&place), COUNT]));
        ends.push((how, receiver.line()));
        assert!(receiver.child.wait().unwrap().success(), "{how}");
    }
    let first = &ends[0].1;
    assert!(first.starts_with("60000 messages, "), "{first}");
    assert!(ends.iter().all(|(_, end)| end == first), "{ends:?}");
}

#[test]
fn what_a_program_does_wrong_is_a_code_and_a_text() {
    for (name, compiler) in [("c", &C11[..]), ("cpp", &CPP17[..])] {
        let program = compile(compiler, "tests/window_misuse.c", &format!("window-misuse-{name}"));
        finds_no_failure(&program);
    }
}

#[test]
fn what_a_receiver_holds_is_the_next_by_whatever_way() {
    for (name, compiler) in [("c", &C11[..]), ("cpp", &CPP17[..])] {
        let program = compile(compiler, "tests/window_reading.c", &format!("window-reading-{name}"));
        finds_no_failure(&program);
    }
}

fn finds_no_failure(program: &Path) {
    let place = tempfile::tempdir().unwrap();
    let output = run(program, &[root(&place)]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {}\n{out}{err}", program.display(), output.status);
}

/// As in `programs.rs`: memory that is freed twice, used afterwards or never freed is found, the library's too.
#[test]
fn what_a_program_does_wrong_costs_no_memory() {
    let installed = installed();
    let sanitize = ["cc", "-std=c11", "-g", "-D_DEFAULT_SOURCE", "-fsanitize=address,undefined"];
    if !support::has_sanitizers(&sanitize) {
        eprintln!("the C compiler has no sanitizers here; not looked for");
        return;
    }
    let archive = installed.archive();
    for source in ["window_misuse", "window_reading"] {
        let (path, name) = (format!("tests/{source}.c"), format!("{source}-sanitized"));
        finds_no_failure(&installed.compile(&sanitize, &path, &name, &archive));
    }
    let stream = installed.compile(&sanitize, "tests/stream.c", "stream-sanitized", &archive);
    let place = tempfile::tempdir().unwrap();
    let mut receiver = Running::start(&stream, &["receive", root(&place), "5000", "mixed"]);
    assert_eq!(receiver.line(), "offered");
    succeed(Command::new(&stream).args(["send", root(&place), "5000"]));
    assert!(receiver.line().starts_with("5000 messages"));
    assert!(receiver.child.wait().unwrap().success());
}

#[test]
fn receiver_is_told_of_a_killed_sender_however_it_waits_and_gets_the_next() {
    let programs = [("c", &C11[..]), ("cpp", &CPP17[..])]
        .map(|(name, compiler)| compile(compiler, "tests/window_peer.c", &format!("window-peer-{name}")));
    for (how, program) in ["wait", "epoll", "spin"].into_iter().zip(programs.iter().cycle()) {
        let place = tempfile::tempdir().unwrap();
        let mut receiver = Running::start(program, &["receive", root(&place), how, "3"]);
        assert_eq!(receiver.line(), "offered");
        for _ in 0..2 {
            let mut sender = Running::start(program, &["send", root(&place)]);
            assert_eq!(
                (receiver.line(), sender.line()),
                ("receiving".to_owned(), "sending".to_owned()),
                "{how}"
            );
            sender.kill();
            // It may have been in the middle of a store.
            let end = receiver.line();
            assert!(["lost", "torn"].contains(&&*end), "{how}: {end}");
        }
        let mut sender = Running::start(program, &["begin", root(&place)]);
        assert_eq!((receiver.line(), sender.line()), ("receiving".to_owned(), "open".to_owned()), "{how}");
        sender.kill();
        assert_eq!(receiver.line(), "torn", "{how}");
        assert!(receiver.child.wait().unwrap().success());
    }
}

#[test]
fn receiver_is_told_that_a_sender_closed_in_the_middle_of_a_message() {
    let program = compile(&C11, "tests/window_peer.c", "window-peer-of-one-that-closes");
    let place = tempfile::tempdir().unwrap();
    let mut receiver = Running::start(&program, &["receive", root(&place), "wait", "1"]);
    assert_eq!(receiver.line(), "offered");
    // In C a sender that is closed gives up what it had open; a Rust program can forget it.
    let domain = Domain::open_in(place.path(), "default").unwrap();
    let mut sender = domain.sender("peer").unwrap();
    sender.send(b"message").unwrap();
    assert_eq!(receiver.line(), "receiving");
    let mut message = sender.reserve(1000).unwrap();
    message.write_all(&[0; 512]).unwrap();
    std::mem::forget(message);
    drop(sender);
    assert_eq!(receiver.line(), "torn by closing");
    assert!(receiver.child.wait().unwrap().success());
}

#[test]
fn sender_is_told_of_a_killed_receiver_by_every_call_that_needs_room() {
    for (name, compiler) in [("c", &C11[..]), ("cpp", &CPP17[..])] {
        let program = compile(compiler, "tests/window_peer.c", &format!("window-peer-of-{name}"));
        let place = tempfile::tempdir().unwrap();
        let mut sender = Running::start(&program, &["send", root(&place)]);
        let mut receiver = Running::start(&program, &["receive", root(&place), "wait", "1"]);
        assert_eq!(receiver.line(), "offered");
        assert_eq!(sender.line(), "sending");
        receiver.kill();
        assert_eq!(sender.line(), "lost");
        assert!(sender.child.wait().unwrap().success());
    }
}

#[test]
fn sender_of_another_user_waits_for_a_receiver_that_allows_it_and_no_other_is_let_in() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if succeed(Command::new("id").arg("-u")).trim() != "0" {
        eprintln!("only root can run a sender as another user; not tested");
        return;
    }
    let (allowed, other) = (65_533, 65_532);
    let installed = installed();
    let program = installed.compile(&C11, "tests/stream.c", "stream-of-another", &installed.archive());
    // As in `programs.rs`: both must be there for users who may not enter a temporary folder.
    std::fs::set_permissions(installed.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let send = |uid| {
        let mut send = Command::new(&program);
        send.args(["send", root(&place), "3000", "0"]).uid(uid).gid(uid).env_remove("HOME");
        send
    };
    let mut early = Running::spawn(&mut send(allowed));
    let mut receiver =
        Running::start(&program, &["receive", root(&place), "3000", "into", &allowed.to_string()]);
    assert_eq!(receiver.line(), "offered");
    let refused = send(other).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("beeline_window_sender_connect: "), "{said}");
    assert!(early.child.wait().unwrap().success());
    assert!(receiver.line().starts_with("3000 messages"));
    assert!(receiver.child.wait().unwrap().success());
}

/// What `tests/stream.c` sends as its message `number`.
fn message(number: u64) -> Vec<u8> {
    let length = match number {
        _ if number.is_multiple_of(97) => number * 31 % 1501,
        _ if number / 512 % 2 == 1 => number % 57,
        _ => number * 7 % 301,
    };
    (0..length).map(|at| (number * 131 + at * 29 + (at >> 8)) as u8).collect()
}

#[test]
fn c_and_rust_send_to_each_other() {
    const COUNT: u64 = 20_000;
    let count = COUNT.to_string();
    let program = compile(&C11, "tests/stream.c", "stream-of-rust");
    let place = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(place.path(), "default").unwrap();
    let mut receiver = domain.receiver_with("stream", ReceiverOptions::new().lines(128)).unwrap();
    let mut sender = Running::start(&program, &["send", root(&place), &count]);
    for number in 0..COUNT {
        assert_eq!(receiver.recv().unwrap().to_vec(), message(number), "message {number}");
    }
    assert!(matches!(receiver.recv(), Err(RecvError::SenderGone)));
    assert!(sender.child.wait().unwrap().success());
    drop(receiver);
    let mut receiver = Running::start(&program, &["receive", root(&place), &count, "into"]);
    assert_eq!(receiver.line(), "offered");
    let mut sender = domain.sender("stream").unwrap();
    (0..COUNT).for_each(|number| sender.send(&message(number)).unwrap());
    assert_eq!(sender.flush(Duration::from_secs(60)).unwrap(), beeline::Flushed::All);
    drop(sender);
    assert!(receiver.line().starts_with("20000 messages"));
    assert!(receiver.child.wait().unwrap().success());
}
