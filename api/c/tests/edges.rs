//! Byte streams, sets and notifications for C and C++: examples with each other and with Rust, misuse, endurance.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use beeline::{Domain, Notified, NotifierEvent, NotifierOptions};

mod support;

use support::{C11, CPP17, Installed, Running, run, succeed};

/// More than anything here takes on the busiest machine.
const WATCHDOG: Duration = Duration::from_secs(60);
/// A user who owns nothing. Not 65534: in a container that leaves users out, that number is nobody in particular.
const OTHER_UID: u32 = 65_533;
/// C and C++, in which each program is compiled.
const LANGUAGES: [(&str, &[&str]); 2] = [("c", &C11), ("cpp", &CPP17)];

fn installed() -> &'static Installed {
    support::installed("beeline")
}

/// With the part of POSIX that the programs use.
fn compile(compiler: &[&str], source: &str, name: &str) -> PathBuf {
    let posix: Vec<&str> = compiler.iter().copied().chain(["-D_DEFAULT_SOURCE"]).collect();
    installed().compile(&posix, source, name, &installed().shared())
}

fn root(place: &tempfile::TempDir) -> &str {
    place.path().to_str().unwrap()
}

/// Bytes in which no two pieces are the same.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 29 + (at >> 8) * 7) as u8).collect()
}

#[test]
fn bytes_are_copied_from_one_program_to_another_in_every_language() {
    let sent = bytes(3_000_000);
    for (name, compiler) in LANGUAGES {
        let program = compile(compiler, "examples/copy.c", &format!("copy-{name}"));
        let place = tempfile::tempdir().unwrap();
        let start = |what| {
            let mut command = Command::new(&program);
            command.args([what, "stream", root(&place)]).stdin(Stdio::piped()).stdout(Stdio::piped());
            command.stderr(Stdio::piped()).spawn().unwrap()
        };
        // The writer waits for its reader.
        let (mut from, mut to) = (start("from"), start("to"));
        let mut input = from.stdin.take().unwrap();
        let sending = {
            let sent = sent.clone();
            std::thread::spawn(move || input.write_all(&sent).unwrap())
        };
        let mut found = Vec::new();
        to.stdout.take().unwrap().read_to_end(&mut found).unwrap();
        sending.join().unwrap();
        assert!(found == sent, "{name}: {} bytes", found.len());
        let from = from.wait_with_output().unwrap();
        assert!(from.status.success() && to.wait().unwrap().success());
        drop(from);
    }
}

#[test]
fn bytes_go_between_c_and_rust() {
    let sent = bytes(500_000);
    let program = compile(&C11, "examples/copy.c", "copy-of-rust");
    let place = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(place.path(), "default").unwrap();
    let start = |what| {
        let mut command = Command::new(&program);
        command.args([what, "stream", root(&place)]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut reader = domain.receiver("stream").unwrap().into_bytes();
    let mut from = start("from");
    let mut input = from.stdin.take().unwrap();
    let to_send = sent.clone();
    let sending = std::thread::spawn(move || input.write_all(&to_send).unwrap());
    let mut found = Vec::new();
    reader.read_to_end(&mut found).unwrap();
    sending.join().unwrap();
    assert!(found == sent);
    assert!(from.wait().unwrap().success());
    drop(reader);
    let mut to = start("to");
    let mut writer = domain.sender_timeout("stream", WATCHDOG).unwrap().into_bytes();
    let mut output = to.stdout.take().unwrap();
    let finding = std::thread::spawn(move || {
        let mut found = Vec::new();
        output.read_to_end(&mut found).map(|_| found)
    });
    writer.write_all(&sent).unwrap();
    writer.shut_down().unwrap();
    assert!(finding.join().unwrap().unwrap() == sent);
    assert!(to.wait().unwrap().success());
}

#[test]
fn one_program_receives_from_many() {
    const SENDERS: u64 = 12;
    const COUNT: u64 = 5_000;
    for (name, compiler) in LANGUAGES {
        let receive = compile(compiler, "examples/fan_in.c", &format!("fan-in-{name}"));
        let send = compile(compiler, "examples/sender.c", &format!("fan-in-sender-{name}"));
        let place = tempfile::tempdir().unwrap();
        let mut receiver = Running::start(&receive, &["many", root(&place), &SENDERS.to_string()]);
        assert_eq!(receiver.line(), "12 names are offered");
        let senders: Vec<Running> = (0..SENDERS)
            .map(|number| {
                Running::start(&send, &[&format!("many-{number}"), root(&place), &COUNT.to_string()])
            })
            .collect();
        let (messages, sum) = (SENDERS * COUNT, SENDERS * (COUNT * (COUNT + 1) / 2));
        assert_eq!(receiver.line(), format!("{messages} messages of 12 senders, sum {sum}"), "{name}");
        assert!(receiver.child.wait().unwrap().success());
        for mut sender in senders {
            assert!(sender.child.wait().unwrap().success());
        }
    }
}

#[test]
fn one_program_receives_from_every_window_of_an_arena() {
    for (name, compiler) in LANGUAGES {
        let program = compile(compiler, "examples/arena.c", &format!("arena-{name}"));
        let place = tempfile::tempdir().unwrap();
        let [mut receiver, mut sender] =
            ["receive", "send"].map(|what| Running::start(&program, &[what, root(&place), "2000"]));
        // The sender first: it waits for nobody, and the receiver waits for all that it opens.
        assert!(sender.child.wait().unwrap().success());
        assert_eq!(receiver.line(), "2000 sessions, sum 1999000", "{name}");
        assert!(receiver.child.wait().unwrap().success());
    }
}

#[test]
fn every_subscriber_is_told_everything_however_it_waits() {
    for (name, compiler) in LANGUAGES {
        let notify = compile(compiler, "examples/notifier.c", &format!("notifier-{name}"));
        let subscribe = compile(compiler, "examples/subscriber.c", &format!("subscriber-{name}"));
        let place = tempfile::tempdir().unwrap();
        let mut subscribers = ["wait", "poll", "callback"]
            .map(|how| Running::start(&subscribe, &["numbers", root(&place), how]));
        let mut notifier = Running::start(&notify, &["numbers", root(&place), "3", "3000"]);
        assert_eq!(notifier.line(), "3000 notifications for each of 3 subscribers");
        assert!(notifier.child.wait().unwrap().success());
        for subscriber in &mut subscribers {
            // The last ones may wait at the notifier when it ends; then it says so.
            let line = subscriber.line();
            let (count, end) = line.split_once(" notifications, then: ").unwrap();
            let count: u64 = count.parse().unwrap();
            let was_cut = end.starts_with("the notifier has ended before all");
            assert!(
                count == 3000 && end.starts_with("the notifier has gone") || was_cut && count < 3000,
                "{line}"
            );
            assert!(subscriber.child.wait().unwrap().success());
        }
    }
}

#[test]
fn c_and_rust_notify_each_other_and_a_death_is_told() {
    let place = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(place.path(), "default").unwrap();
    let subscribe = compile(&C11, "examples/subscriber.c", "subscriber-of-rust");
    let notifier = domain
        .notifier_with("numbers", NotifierOptions::new(), |_, request, _| Ok(beeline::Answer::new(request)))
        .unwrap();
    let mut subscriber = Running::start(&subscribe, &["numbers", root(&place), "poll"]);
    let Some(NotifierEvent::Joined(told)) = notifier.event_timeout(WATCHDOG) else { panic!("nobody comes") };
    // More than may be untaken: once all were accepted the subscriber takes, and every answer that it waits for has come.
    for number in 1..=300u64 {
        while told.notify(&number.to_le_bytes(), &[]).unwrap() == Notified::WouldBlock {
            let event = notifier.event_timeout(WATCHDOG);
            assert!(matches!(event, Some(NotifierEvent::HasRoom(_))), "{event:?}");
        }
    }
    told.disconnect();
    let line = subscriber.line();
    assert!(line.starts_with("300 notifications, then: the notifier has gone"), "{line}");
    assert!(subscriber.child.wait().unwrap().success());
    drop(notifier);
    let notify = compile(&C11, "examples/notifier.c", "notifier-of-rust");
    let notifier = Running::start(&notify, &["numbers", root(&place), "2", "10"]);
    let subscription = domain.subscribe_timeout("numbers", WATCHDOG).unwrap();
    assert_eq!(subscription.call(b"there and back", &[]).unwrap().payload, b"there and back");
    // It waits for another subscriber, which never comes.
    notifier.kill();
    let ended = subscription.next().unwrap_err();
    assert!(matches!(ended, beeline::SubscriptionEnded::OwnerDied), "{ended}");
}

fn finds_no_failure(program: &Path, rounds: &str) {
    let place = tempfile::tempdir().unwrap();
    let output = run(program, &[root(&place), rounds]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {}\n{out}{err}", program.display(), output.status);
}

#[test]
fn windows_of_an_arena_are_opened_accepted_and_gathered() {
    for (name, compiler) in LANGUAGES {
        finds_no_failure(&compile(compiler, "tests/arenas.c", &format!("arenas-{name}")), "3");
    }
}

#[test]
fn tokens_connect_by_every_kind_of_offer_and_what_proves_nothing_is_a_code() {
    // In C more rounds than the program may have tokens and proofs open.
    for ((name, compiler), rounds) in LANGUAGES.into_iter().zip(["600", "2"]) {
        finds_no_failure(&compile(compiler, "tests/admission.c", &format!("admissions-{name}")), rounds);
    }
}

#[test]
fn process_of_another_user_is_let_in_by_its_connection_and_no_other_process_of_its_user() {
    let is_root = succeed(Command::new("id").arg("-u")).trim() == "0";
    // As in `windows.rs`: what other users run must be there for those who may not enter a temporary folder.
    std::fs::set_permissions(installed().folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let unproved = compile(&C11, "tests/admission.c", "unproved");
    for (name, compiler) in LANGUAGES {
        let program = compile(compiler, "examples/admission.c", &format!("admission-{name}"));
        // Every process of the network namespace sees it.
        let domain = format!("c-{name}-{}", std::process::id());
        let mut server = Running::start(&program, &["serve", &domain, "1000"]);
        let port = server.line();
        let port = port.strip_prefix("port ").unwrap();
        let own = succeed(Command::new("id").arg("-u"));
        let as_another = |program: &Path, args: &[&str]| {
            let mut other = Command::new(program);
            other.args(args).env_remove("HOME").env_remove("XDG_CACHE_HOME").current_dir("/");
            if is_root {
                other.uid(OTHER_UID).gid(OTHER_UID);
            }
            other
        };
        if is_root {
            succeed(&mut as_another(&unproved, &["unproved", &domain, own.trim()]));
        } else {
            eprintln!("only root can run a client as another user; it runs as this one");
        }
        succeed(&mut as_another(&program, &["call", &domain, "1000", port]));
        assert_eq!(server.line(), "1000 numbers, sum 500500", "{name}");
        assert!(server.child.wait().unwrap().success());
    }
}

#[test]
fn memory_is_mapped_and_copied_and_its_loss_is_told() {
    // In C more rounds than the program may have descriptors and segments open.
    for ((name, compiler), rounds) in LANGUAGES.into_iter().zip(["1000", "1"]) {
        let example = compile(compiler, "examples/segment.c", &format!("segment-{name}"));
        assert_eq!(succeed(&mut Command::new(example)), "1000 entries, sum 1498500\n");
        finds_no_failure(&compile(compiler, "tests/segments.c", &format!("segments-{name}")), rounds);
    }
}

#[test]
fn what_a_program_does_wrong_is_a_code_and_nothing_is_left_after_many_rounds() {
    for (name, compiler) in LANGUAGES {
        finds_no_failure(&compile(compiler, "tests/edges_misuse.c", &format!("edges-misuse-{name}")), "200");
    }
}

#[test]
fn subscription_is_closed_while_its_callback_waits_in_it() {
    for (name, compiler) in LANGUAGES {
        finds_no_failure(&compile(compiler, "tests/closing.c", &format!("closing-{name}")), "20");
    }
}

/// As in `windows.rs`: memory that is freed twice, used afterwards or never freed is found, the library's too.
#[test]
fn what_a_program_does_wrong_costs_no_memory() {
    let installed = installed();
    let sanitize = ["cc", "-std=c11", "-g", "-D_DEFAULT_SOURCE", "-fsanitize=address,undefined"];
    if !support::has_sanitizers(&sanitize) {
        eprintln!("the C compiler has no sanitizers here; not looked for");
        return;
    }
    let archive: Vec<String> = installed.archive().into_iter().chain(["-lpthread".to_owned()]).collect();
    for (name, rounds) in
        [("edges_misuse", "20"), ("arenas", "2"), ("segments", "2"), ("admission", "2"), ("closing", "3")]
    {
        let (source, program) = (format!("tests/{name}.c"), format!("{name}-sanitized"));
        finds_no_failure(&installed.compile(&sanitize, &source, &program, &archive), rounds);
    }
    let place = tempfile::tempdir().unwrap();
    let (notify, subscribe) = ["notifier", "subscriber"]
        .map(|it| {
            installed.compile(&sanitize, &format!("examples/{it}.c"), &format!("{it}-sanitized"), &archive)
        })
        .into();
    let mut subscriber = Running::start(&subscribe, &["numbers", root(&place), "callback"]);
    succeed(Command::new(notify).args(["numbers", root(&place), "1", "500"]));
    assert!(subscriber.child.wait().unwrap().success());
}
