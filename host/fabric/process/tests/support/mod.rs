//! Members in processes of their own: this very test program, started again, which makes the calls that a test tells it in lines.
//!
//! A test file has one test named `role`, which does nothing unless it was started by [`Process::start`]. A line is answered by one
//! line: what came of the call. Processes end when their input ends, so none outlives its test; a watchdog ends the program if an answer
//! does not come.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod crashing;
#[path = "../../../transfer/tests/support/disorder.rs"]
pub mod disorder;
pub mod held;
pub mod interrupts;
pub mod joining;
#[path = "../../../transfer/tests/support/messages.rs"]
pub mod messages;
#[path = "../../../transfer/tests/support/queues.rs"]
pub mod queues;
#[path = "../../../transfer/tests/support/random.rs"]
pub mod random;
pub mod scribbler;
pub mod script;
pub mod segments;
pub mod stream;
pub mod threads;
#[path = "../../../transfer/tests/support/words.rs"]
mod words;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig};
use beeline_fabric::{AdapterNumber, NodeId};
use beeline_fabric_process::{FabricConfig, FabricMember};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, setrlimit};

/// How long a test may take before it is taken for hung; far more than any needs.
const WATCHDOG: Duration = Duration::from_secs(120);
const NODE: &str = "BEELINE_TEST_NODE";
const ROOT: &str = "BEELINE_TEST_ROOT";
/// The limit on the size of files that a member is started with.
const FILE_LIMIT: &str = "BEELINE_TEST_FILE_LIMIT";
/// Another program that plays members, with what runs it.
const PEER: &str = "BEELINE_TEST_PEER";

/// What tests call it that are run over each kind of member.
pub type Member = FabricMember;
pub type Map = beeline_fabric_process::Map;
pub type Sequence = beeline_fabric_process::Sequence;
pub use beeline_fabric_process::{DataInterrupt, DataTrigger, NotTaken};
pub use interrupts::options as interrupt_options;

/// The folder of a fabric, with a watchdog that ends the test when it hangs.
pub struct Fabric {
    dir: tempfile::TempDir,
    _watchdog: Sender<()>,
}

impl Fabric {
    pub fn new() -> Self {
        Fabric::lasting(WATCHDOG)
    }

    /// For a test that may take so long.
    pub fn lasting(longest: Duration) -> Self {
        let (alive, ended) = channel::<()>();
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        std::thread::spawn(move || {
            if ended.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
                eprintln!("watchdog: test `{test}` hangs");
                std::process::abort();
            }
        });
        Fabric { dir: tempfile::tempdir().unwrap(), _watchdog: alive }
    }

    /// One whose members have room for segments of so many bytes, as all have.
    pub fn with_room(_bytes: u64) -> Self {
        Fabric::new()
    }

    /// This process as a member of a node.
    pub fn member_here(&self, node: u16) -> FabricMember {
        FabricMember::open(self.config(node)).unwrap()
    }

    /// A process that has joined as a member of a node.
    pub fn member(&self, node: u16) -> Process {
        self.member_with(node, &[])
    }

    /// As [`Fabric::member`], whose files may have so many bytes.
    pub fn limited_member(&self, node: u16, limit_bytes: u64) -> Process {
        self.member_with(node, &[(FILE_LIMIT, limit_bytes.to_string())])
    }

    /// As [`Fabric::member`], of the other program if there is one.
    pub fn peer(&self, node: u16) -> Process {
        let Ok(peer) = std::env::var(PEER) else { return self.member(node) };
        let mut words = peer.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        let mut process = Process::start_as(command, self.dir.path(), node, &[]);
        assert_eq!(process.hear(), "joined");
        process
    }

    fn member_with(&self, node: u16, environment: &[(&str, String)]) -> Process {
        let mut process = Process::start(self.dir.path(), node, environment);
        assert_eq!(process.hear(), "joined");
        process
    }

    pub fn domain(&self) -> Domain {
        Domain::open(&self.config(4).domain).unwrap()
    }

    pub fn config(&self, node: u16) -> FabricConfig {
        config_in(self.dir.path(), node)
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }
}

/// A member of a node, of the fabric in a folder.
pub fn config_in(root: &Path, node: u16) -> FabricConfig {
    FabricConfig {
        domain: DomainConfig { root: Some(root.to_owned()), name: "fabric".to_owned() },
        node: NodeId(node),
        adapters: vec![AdapterNumber::new(0).unwrap(), AdapterNumber::new(1).unwrap()],
        nodes: [4, 8, 12].map(NodeId).to_vec(),
    }
}

/// A member in a process of its own.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(root: &Path, node: u16, environment: &[(&str, String)]) -> Self {
        Process::start_as(Command::new(std::env::current_exe().unwrap()), root, node, environment)
    }

    pub fn start_as(mut command: Command, root: &Path, node: u16, environment: &[(&str, String)]) -> Self {
        let mut child = command
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(NODE, node.to_string())
            .env(ROOT, root)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Process { child, input, output }
    }

    /// Has it make a call, and says what came of it.
    pub fn call(&mut self, line: &str) -> String {
        self.begin(line);
        self.hear()
    }

    /// Has it make a call that must give this.
    #[track_caller]
    pub fn expect(&mut self, line: &str, outcome: &str) {
        assert_eq!(self.call(line), outcome, "`{line}` of process {}", self.child.id());
    }

    /// Has it make a call over and over until it gives this.
    #[track_caller]
    pub fn until(&mut self, line: &str, outcome: &str) {
        let started = Instant::now();
        loop {
            let now = self.call(line);
            if now == outcome {
                return;
            }
            assert!(started.elapsed() < WATCHDOG / 4, "`{line}` still gives {now}, and not {outcome}");
        }
    }

    /// Has it begin a call.
    pub fn begin(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Whether a call that was begun has come to its end.
    pub fn has_said(&self) -> bool {
        let pipe = rustix::event::PollFd::new(self.output.get_ref(), rustix::event::PollFlags::IN);
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        !self.output.buffer().is_empty() || rustix::event::poll(&mut [pipe], Some(&now)).unwrap() == 1
    }

    /// What came of a call.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process ended without a word");
            // The test runner of the process prints lines of its own.
            if let Some((_, said)) = line.trim_end().split_once('@') {
                return said.to_owned();
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Stops all of its threads. A thread that runs on another processor may answer something after the signal was sent.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let is_stopped = |thread: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T"))
        };
        let threads = format!("/proc/{}/task", self.child.id());
        wait_until(|| std::fs::read_dir(&threads).unwrap().all(|thread| is_stopped(thread.unwrap())));
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Kills it, and gives what it has said that nobody has heard.
    pub fn last_words(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        let lines = self.output.by_ref().lines().map(|line| line.unwrap());
        let words = lines.filter_map(|line| Some(line.split_once('@')?.1.to_owned())).collect();
        assert!(!self.child.wait().unwrap().success(), "it has ended by itself");
        words
    }

    /// Lets it leave the fabric and end.
    pub fn finish(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that no descriptor tells; the test's watchdog bounds it.
pub fn wait_until(mut happened: impl FnMut() -> bool) {
    while !happened() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Plays the member of a test that has started this process; returns at once in the test itself.
pub fn play() {
    let Ok(node) = std::env::var(NODE) else { return };
    let root = std::env::var_os(ROOT).unwrap();
    if let Ok(limit) = std::env::var(FILE_LIMIT) {
        limit_files(limit.parse().unwrap());
    }
    script::run(config_in(Path::new(&root), node.parse().unwrap()));
}

/// Limits the size of files that this process makes from here on.
pub fn limit_files(bytes: u64) {
    let limit = Rlimit { current: Some(bytes), ..getrlimit(Resource::Fsize) };
    setrlimit(Resource::Fsize, limit).unwrap();
}

/// Says something to the test.
pub fn say(what: &str) {
    println!("@{what}");
    std::io::stdout().flush().unwrap();
}
