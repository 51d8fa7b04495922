//! Storms of short connections: each is answered, wherever it ends on its way off the kernel, and nothing is left behind, also where the client is killed
//! in the middle.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod ground;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use ground::{Ground, Run};

/// Descriptors of the library in a process, and those that every program has.
const OWN_DESCRIPTORS: u64 = 34;
/// What the heap of a process may grow by from one round to the next.
const GROWN_KIB: u64 = 1024;
/// Nothing takes so long that does not hang.
const HANGS: Duration = Duration::from_secs(30);

/// The server, which says what it has whenever it is asked.
struct Server {
    process: Child,
    asks: ChildStdin,
    says: BufReader<ChildStdout>,
    port: String,
}

impl Server {
    fn start(ground: &Ground, program: &PathBuf) -> Self {
        let mut command = ground.at_once(program);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asks, says) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut server = Server { process, asks, says: BufReader::new(says), port: String::new() };
        server.port = server.line().trim_start_matches("port ").trim().to_owned();
        server
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line
    }

    fn left(&mut self) -> Left {
        self.asks.write_all(b"\n").unwrap();
        Left::of(&self.line())
    }

    /// What it has when nothing of what was closed goes on in the background.
    fn rests(&mut self) -> Left {
        let mut last = self.left();
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let now = self.left();
            if now == last {
                return now;
            }
            last = now;
        }
    }

    /// What it has no more than before, as soon as it has seen that the other process has ended.
    fn settles(&mut self, before: &Left) {
        let started = Instant::now();
        loop {
            let now = self.left();
            if now.is_no_more_than(before) {
                return;
            }
            assert!(started.elapsed() < HANGS, "{before:?} {now:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(mut self) {
        drop(self.asks);
        assert!(self.process.wait().unwrap().success());
    }
}

/// What a process has while no connection is open.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    descriptors: u64,
    threads: u64,
    private_kib: u64,
    mappings: u64,
}

impl Left {
    fn of(line: &str) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |name| -> u64 {
            words[words.iter().position(|word| *word == name).unwrap() + 1].parse().unwrap()
        };
        Left {
            descriptors: value("descriptors"),
            threads: value("threads"),
            private_kib: value("private"),
            mappings: value("mappings"),
        }
    }

    /// What a second storm left is no more than what the first did.
    fn is_no_more_than(&self, before: &Left) -> bool {
        self.descriptors <= before.descriptors.max(OWN_DESCRIPTORS)
            && self.threads <= before.threads
            && self.private_kib <= before.private_kib + GROWN_KIB
            && self.mappings <= before.mappings
    }
}

fn client(ground: &Ground, program: &PathBuf, port: &str, threads: u32, each: u32) -> Run {
    let mut command = ground.at_once(program);
    Run::of(command.args([port, &threads.to_string(), &each.to_string()]))
}

#[test]
fn each_connection_of_a_storm_is_answered_and_leaves_nothing_behind() {
    const THREADS: u32 = 6;
    const EACH: u32 = 300;
    let ground = Ground::new();
    let program = ground.compile("storm.c", &["-pthread"]);
    let mut server = Server::start(&ground, &program);
    let first = client(&ground, &program, &server.port, THREADS, EACH);
    let before = server.rests();
    let second = client(&ground, &program, &server.port, THREADS, EACH);
    server.settles(&before);
    for run in [&first, &second] {
        let said = format!("answered {} lost 0 carried ", 2 * THREADS * EACH);
        let carried = run.out.lines().find_map(|line| line.strip_prefix(&said));
        let carried = carried.unwrap_or_else(|| panic!("{run:?}"));
        assert!(run.ended_well() && carried.parse::<u32>().unwrap() > 0, "{run:?}");
        let left: Vec<Left> =
            run.out.lines().filter(|line| line.starts_with("client left")).map(Left::of).collect();
        assert!(left.len() == 2 && left[1].is_no_more_than(&left[0]), "{run:?}");
    }
    server.end();
}

#[test]
fn client_that_is_killed_in_a_storm_leaves_nothing_at_the_server_which_answers_the_next() {
    let ground = Ground::new();
    let program = ground.compile("storm.c", &["-pthread"]);
    let mut server = Server::start(&ground, &program);
    let all = client(&ground, &program, &server.port, 4, 50);
    assert!(all.out.contains("answered 400 lost 0"), "{all:?}");
    let before = server.rests();
    for round in 0..10 {
        let mut killed = ground.at_once(&program);
        let mut killed = killed.args([&server.port, "6", "1000000"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(60 + 17 * round));
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    let all = client(&ground, &program, &server.port, 4, 50);
    assert!(all.out.contains("answered 400 lost 0"), "{all:?}");
    server.settles(&before);
    server.end();
}

/// The same over and over: `BEELINE_STORM_SECONDS` of it, an hour where that is not said.
/// `cargo test -p beeline-sockets --test storm -- --ignored --nocapture` says every half minute what the server has.
#[test]
#[ignore = "takes an hour"]
fn hour_of_storms_leaves_nothing_behind() {
    const FIRST_ROUNDS: u32 = 20;
    const HOUR: u64 = 3600;
    let seconds = std::env::var("BEELINE_STORM_SECONDS").map_or(HOUR, |seconds| seconds.parse().unwrap());
    let ground = Ground::new();
    let program = ground.compile("storm.c", &["-pthread"]);
    let mut server = Server::start(&ground, &program);
    let port = server.port.clone();
    let round = || {
        let run = client(&ground, &program, &port, 4, 50);
        assert!(run.out.contains("answered 400 lost 0"), "{run:?}");
        400
    };
    (0..FIRST_ROUNDS).for_each(|_| _ = round());
    let (before, started) = (server.rests(), Instant::now());
    let (mut connections, mut said) = (0_u64, started);
    while started.elapsed() < Duration::from_secs(seconds) {
        connections += round();
        if said.elapsed() > Duration::from_secs(30) {
            said = Instant::now();
            println!("{} s, {connections} connections: {:?}", started.elapsed().as_secs(), server.left());
        }
    }
    println!("{connections} connections: {before:?} before");
    server.settles(&before);
    server.end();
}
