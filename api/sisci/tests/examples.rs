//! The examples as users build and run them: by their Makefile against the installed tree, as processes of their own, some of which are
//! killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use c::ground::Ground;
use c::installed::{files, installed, sanitizer_flags};
use c::{CPP17, HERE, succeed};

/// Where the programs are, built by their Makefile.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = installed().prefix().join("share/sisci/examples");
        let flags = format!("CFLAGS=-O1 -Werror -pedantic {}", sanitizer_flags());
        // They find the prefix that they lie in.
        succeed(Command::new("make").arg("-C").arg(&folder).arg(flags).env_remove("SISCI"));
        folder
    })
}

#[test]
fn each_example_is_a_program_of_cpp_too() {
    let examples: Vec<String> =
        files(&Path::new(HERE).join("examples")).into_iter().filter(|name| name.ends_with(".c")).collect();
    assert!(examples.len() >= 10, "{examples:?}");
    for name in examples {
        installed().compile(&CPP17, &format!("examples/{name}"), &format!("{name}.cpp"));
    }
}

/// How long a program may run before it is taken for hung; far more than any needs.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A program, which is ended with its test, and if it hangs.
struct Running {
    child: Arc<Mutex<Child>>,
    output: BufReader<ChildStdout>,
}

fn start(root: &Path, node: &str, program: &str, arguments: &str) -> Running {
    start_on((Ground::Kernel, root), node, program, arguments)
}

fn start_on((ground, place): (Ground, &Path), node: &str, program: &str, arguments: &str) -> Running {
    let mut command = ground.command(built().join(program), place, node);
    command.args(arguments.split_whitespace());
    // Where cargo has put a library, which may be older than the one that was installed.
    command.env_remove("LD_LIBRARY_PATH");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let child = Arc::new(Mutex::new(child));
    let watched = Arc::downgrade(&child);
    std::thread::spawn(move || {
        // The checks of a compiler take ten times as long.
        std::thread::sleep(if sanitizer_flags().is_empty() { WATCHDOG } else { 10 * WATCHDOG });
        // What reads its output then sees the end of it, and fails.
        watched.upgrade().map(|child| child.lock().unwrap().kill())
    });
    Running { child, output }
}

impl Running {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads lines until one begins with `beginning`; what it has behind that.
    fn behind(&mut self, beginning: &str) -> u64 {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "no line `{beginning}…`");
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim().parse().unwrap();
            }
        }
    }

    /// What the program says until it ends, which it must without a failure.
    fn finish(mut self) -> String {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        assert!(self.child.lock().unwrap().wait().unwrap().success(), "{said}");
        said
    }

    /// Waits until the program ends, which it must with a failure that it says.
    fn fail(mut self) {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        assert_eq!(self.child.lock().unwrap().wait().unwrap().code(), Some(1), "{said}");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.lock().unwrap().id().to_string();
        succeed(Command::new("kill").args([name, &pid]));
    }

    fn kill(self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[test]
fn number_goes_there_and_back() {
    number_goes(Ground::Kernel);
}

#[test]
fn number_goes_there_and_back_over_a_file() {
    number_goes(Ground::File);
}

fn number_goes(ground: Ground) {
    let place = ground.place();
    let server = start_on((ground, place.path()), "4", "pingpong", "-server -rn 8");
    let client = start_on((ground, place.path()), "8", "pingpong", "-client -rn 4 -loops 300");
    let said = client.finish();
    assert!(said.starts_with("300 rounds, ") && said.ends_with("each\ndone\n"), "{said}");
    assert_eq!(server.finish(), "done\n");
}

#[test]
fn node_that_there_cannot_be_is_not_waited_for() {
    let place = tempfile::tempdir().unwrap();
    for (program, arguments) in [
        ("pingpong", "-client -rn 252"),
        ("copy", "-client -rn 252"),
        ("rpc", "-client -rn 252"),
        ("recovery", "-producer -rn 252"),
        ("queue", "-client -rn 252"),
    ] {
        start(place.path(), "8", program, arguments).fail();
    }
}

#[test]
fn program_that_is_given_no_side_says_how_it_is_used() {
    let place = tempfile::tempdir().unwrap();
    for program in ["pingpong", "copy", "rpc", "recovery", "queue", "registered"] {
        let running = start(place.path(), "4", program, "");
        assert_eq!(running.child.lock().unwrap().wait().unwrap().code(), Some(2), "{program}");
    }
}

#[test]
fn copies_are_timed_at_each_size() {
    let place = tempfile::tempdir().unwrap();
    let said = start(place.path(), "4", "speed", "-n 1000").finish();
    let sizes: Vec<&str> = said.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(
        sizes,
        ["4", "16", "64", "256", "1024", "4096", "16384", "65536", "262144", "1048576"],
        "{said}"
    );
}

#[test]
fn block_is_copied_and_read_back() {
    block_is_copied(Ground::Kernel);
}

#[test]
fn block_is_copied_and_read_back_over_a_file() {
    block_is_copied(Ground::File);
}

fn block_is_copied(ground: Ground) {
    let place = ground.place();
    // The last piece is a short one.
    let sizes = "-size 100001 -piece 4096";
    let mut server = start_on((ground, place.path()), "4", "copy", &format!("-server {sizes}"));
    assert_eq!(server.line(), "available");
    let client = start_on((ground, place.path()), "8", "copy", "-client -rn 4 -piece 4096");
    assert_eq!(client.finish(), "100001 bytes there and back: equal\nthe server has it\n");
    assert_eq!(server.finish(), "the block is right\n");
}

#[test]
fn block_is_transferred_by_dma_and_read_back() {
    block_is_transferred(Ground::Kernel);
}

#[test]
fn block_is_transferred_by_dma_and_read_back_over_a_file() {
    block_is_transferred(Ground::File);
}

fn block_is_transferred(ground: Ground) {
    let place = ground.place();
    let sizes = "-size 1000001 -piece 9999";
    let mut server = start_on((ground, place.path()), "4", "copy", &format!("-server {sizes}"));
    assert_eq!(server.line(), "available");
    let client = start_on((ground, place.path()), "8", "copy", &format!("-client -rn 4 -dma {sizes}"));
    assert_eq!(client.finish(), "1000001 bytes there and back: equal\nthe server has it\n");
    assert_eq!(server.finish(), "the block is right\n");
}

#[test]
fn peer_stores_into_a_buffer_of_the_program() {
    let place = tempfile::tempdir().unwrap();
    let mut owner = start(place.path(), "4", "registered", "-owner -size 81920");
    assert_eq!(owner.line(), "registered");
    assert_eq!(start(place.path(), "8", "registered", "-peer -rn 4").finish(), "stored\n");
    assert_eq!(owner.finish(), "81920 of 81920 bytes are right\n");
    // Half a page more could not be given to others, and the owner says so.
    start(place.path(), "4", "registered", "-owner -size 10000").fail();
}

#[test]
fn questions_are_answered_by_data_interrupts() {
    questions_are_answered(Ground::Kernel);
}

#[test]
fn questions_are_answered_by_data_interrupts_over_a_file() {
    questions_are_answered(Ground::File);
}

fn questions_are_answered(ground: Ground) {
    let place = ground.place();
    let mut server = start_on((ground, place.path()), "4", "rpc", "-server -calls 300");
    assert_eq!(server.line(), "interrupt 77");
    // The second client is another one to be answered.
    for _ in 0..2 {
        let client = start_on((ground, place.path()), "8", "rpc", "-client -rn 4 -calls 150");
        assert_eq!(client.finish(), "150 answers, sum 1136275\n");
    }
    assert_eq!(server.finish(), "300 calls answered\n");
}

#[test]
fn lines_go_through_a_message_queue() {
    let place = tempfile::tempdir().unwrap();
    let server = start(place.path(), "4", "queue", "-server -rn 8");
    // The server waits for longer than one of its attempts.
    std::thread::sleep(Duration::from_millis(1200));
    let mut client = start(place.path(), "8", "queue", "-client -rn 4");
    let longest = "x".repeat(1000);
    let mut input = client.child.lock().unwrap().stdin.take().unwrap();
    for (line, bytes) in [("hello", 5), ("", 0), (longest.as_str(), 1000)] {
        writeln!(input, "{line}").unwrap();
        assert_eq!(client.line(), bytes.to_string());
    }
    drop(input);
    assert_eq!(client.finish(), "");
    assert_eq!(server.finish(), format!("hello\n\n{longest}\n"));
}

#[test]
fn killed_consumers_lose_no_item() {
    let place = tempfile::tempdir().unwrap();
    let items = "-items 20000";
    let mut producer = start(place.path(), "8", "recovery", &format!("-producer -rn 4 {items}"));
    let mut before = 0;
    for killed in 0..3 {
        let mut consumer =
            start(place.path(), "4", "recovery", &format!("-consumer -rn 8 {items} -slow 200"));
        let from = consumer.behind("connected, from");
        assert!(from >= before, "{from} after {before}");
        before = consumer.behind("have");
        assert!(before >= 5000 * (killed + 1), "{before}");
        consumer.kill();
    }
    let mut last = start(place.path(), "4", "recovery", &format!("-consumer -rn 8 {items}"));
    let from = last.behind("connected, from");
    assert!(from >= before, "{from} after {before}");
    assert_eq!(last.behind("consumed"), 20000);
    assert_eq!(last.finish(), "");
    assert_eq!(producer.behind("connected, from"), 0);
    for _ in 0..3 {
        // What the peer's end looks like: the segment is lost, which is the fifth reason.
        assert_eq!(producer.behind("lost, reason"), 5);
        producer.behind("connected again, from");
    }
    assert_eq!(producer.finish(), "produced 20000\n");
}

#[test]
fn killed_producers_repeat_no_item_that_was_consumed() {
    let place = tempfile::tempdir().unwrap();
    let items = "-items 20000";
    let mut consumer = start(place.path(), "4", "recovery", &format!("-consumer -rn 8 {items} -slow 200"));
    for _ in 0..2 {
        let mut producer = start(place.path(), "8", "recovery", &format!("-producer -rn 4 {items}"));
        producer.behind("connected, from");
        consumer.behind("have");
        producer.kill();
        assert_eq!(consumer.behind("lost, reason"), 5);
    }
    let mut last = start(place.path(), "8", "recovery", &format!("-producer -rn 4 {items}"));
    let has = consumer.behind("connected again, have");
    assert!(has >= 10000, "{has}");
    assert_eq!(last.behind("connected, from"), has);
    assert_eq!(last.finish(), "produced 20000\n");
    assert_eq!(consumer.behind("consumed"), 20000);
}

#[test]
fn receivers_of_a_group_have_what_is_written_whoever_is_slow_or_killed() {
    let place = tempfile::tempdir().unwrap();
    let items = "-items 20000";
    let mut fast = start(place.path(), "4", "broadcast", &format!("-receiver {items}"));
    assert_eq!(fast.behind("joined at"), 0);
    let mut slow = start(place.path(), "8", "broadcast", &format!("-receiver {items} -slow"));
    let mut killed = start(place.path(), "4", "broadcast", &format!("-receiver {items}"));
    assert_eq!((slow.behind("joined at"), killed.behind("joined at")), (0, 0));
    // A group is gone when nobody holds it. The others may have ended before the late receiver joins; this one waits for more than comes.
    let mut keeper = start(place.path(), "4", "broadcast", "-receiver -items 1000000000 -slow");
    assert_eq!(keeper.behind("joined at"), 0);
    let mut writer = start(place.path(), "12", "broadcast", &format!("-writer {items}"));
    assert_eq!(writer.behind("connected, from"), 0);
    killed.behind("have");
    killed.kill();
    // Whoever comes now begins with what is there.
    let mut late = start(place.path(), "8", "broadcast", &format!("-receiver {items}"));
    assert!(late.behind("joined at") >= 5000);
    let seen = [&mut fast, &mut slow].map(|receiver| receiver.behind("states seen"));
    assert!(seen.iter().all(|seen| (1..=20000).contains(seen)), "{seen:?}");
    for receiver in [fast, slow, late] {
        let said = receiver.finish();
        assert!(said.ends_with("received 20000\n"), "{said}");
    }
    assert_eq!(writer.finish(), "written 20000\n");
}

/// What is said last by each replica that has the whole log: how many records, and the digest of all.
fn summary(said: &str) -> &str {
    said.lines().last().unwrap()
}

#[test]
fn record_that_its_leader_left_half_written_is_written_again_by_the_next_leader() {
    let place = tempfile::tempdir().unwrap();
    let mut leader = start(place.path(), "4", "log", "-replica 0 -records 900 -members 3 -halt 501");
    let mut others = [1, 2].map(|number| {
        let node = (4 + 4 * number).to_string();
        start(place.path(), &node, "log", &format!("-replica {number} -records 900"))
    });
    let acknowledged = leader.behind("acknowledged");
    assert!((100..501).contains(&acknowledged), "{acknowledged}");
    assert_eq!(leader.behind("halted in"), 501);
    for other in &mut others {
        // Both have the records in front of it, so either may lead.
        while other.behind("have") < 500 {}
    }
    leader.kill();
    let [first, second] = others.map(Running::finish);
    // Nobody has taken the half of a record for one, and nothing in front of it is lost.
    let led = if first.contains("leads from") { &first } else { &second };
    assert!(led.contains("leads from 500\ntorn record 501\n"), "{first}{second}");
    assert!(summary(&first).starts_with("900 records, digest "), "{first}");
    assert_eq!(summary(&first), summary(&second));
}

#[test]
fn nothing_is_acknowledged_that_a_stopped_member_does_not_have() {
    let place = tempfile::tempdir().unwrap();
    let replica = |number: u64, how: &str| {
        let node = (4 + 4 * number).to_string();
        start(place.path(), &node, "log", &format!("-replica {number} -records 100000 {how}"))
    };
    // It appends nothing before the other one is a member.
    let (mut leader, stopped) = (replica(0, "-members 2 -slow"), replica(1, "-members 1"));
    leader.behind("acknowledged");
    stopped.signal("-STOP");
    // The leader goes on as far as it may: it looks at who is a member a hundred times less often than it appends.
    let mut joined = replica(2, "-members 1");
    let mut said = String::new();
    while !said.contains("members 3") {
        assert_ne!(leader.output.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let last = |mut running: Running, mut said: String, what: &str| {
        running.child.lock().unwrap().kill().unwrap();
        running.output.read_to_string(&mut said).unwrap();
        said.lines().filter_map(|line| line.strip_prefix(what)?.parse::<u64>().ok()).next_back()
    };
    // Whoever is stopped is alive, so nobody else has begun to lead.
    let acknowledged = last(leader, said, "acknowledged ").unwrap_or(0);
    let had = last(stopped, String::new(), "have ").unwrap_or(0);
    assert!(acknowledged < had + 100, "{acknowledged} were acknowledged, and a member had {had}");
    let from = joined.behind("leads from");
    assert!(from >= acknowledged, "{from} after {acknowledged}");
}

#[test]
fn killed_leaders_lose_no_acknowledged_record() {
    let place = tempfile::tempdir().unwrap();
    let seed =
        std::env::var("SEED").map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut random = seed | 1;
    let mut below = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let replica = |number: u64| {
        // Who leads rests in the middle of each record, so it is killed there; the last one lets the test end.
        let how = if number < 8 { "-slow" } else { "" };
        let node = (4 + 4 * (number % 3)).to_string();
        start(place.path(), &node, "log", &format!("-replica {number} -records 20000 -members 1 {how}"))
    };
    let mut replicas = vec![replica(0), replica(1)];
    let mut acknowledged = 0;
    assert_eq!(replicas[0].behind("leads from"), 0);
    for number in 2..=8 {
        // Whoever joins has all that was written before, and is a member as soon as the leader says so.
        replicas.push(replica(number));
        while replicas[0].behind("members") < 3 {}
        for _ in 0..=below(3) {
            acknowledged = replicas[0].behind("acknowledged");
        }
        // The leader, or sometimes one of the others.
        let killed = usize::try_from(below(4)).unwrap() % 3;
        replicas.remove(killed).kill();
        if killed == 0 {
            let from = replicas[0].behind("leads from");
            assert!(from >= acknowledged, "{from} after {acknowledged} were acknowledged");
        }
    }
    // Those that are left are slow ones too, but for the last.
    while replicas.len() > 1 {
        replicas.remove(0).kill();
        let from = replicas[0].behind("leads from");
        assert!(from >= acknowledged, "{from} after {acknowledged} were acknowledged");
    }
    let said = replicas.remove(0).finish();
    assert!(summary(&said).starts_with("20000 records, digest "), "{said}");
}
