//! Members in processes of their own that have the path of a file in common: this very test program, started again in namespaces of its own
//! where the kernel allows that, which makes the calls that a test tells it in lines.
//!
//! A test file has one test named `role`, which does nothing unless it was started by [`Memory::member`]. A line is answered by one line.
//! Processes end when their input ends, and a watchdog ends the test if an answer does not come.
#![allow(dead_code, reason = "each test file uses its own part")]

#[path = "../../../transfer/tests/support/disorder.rs"]
pub mod disorder;
#[path = "../../../transfer/tests/support/messages.rs"]
pub mod messages;
#[path = "../../../transfer/tests/support/queues.rs"]
pub mod queues;
#[path = "../../../transfer/tests/support/random.rs"]
pub mod random;
pub mod script;
#[path = "../../../transfer/tests/support/words.rs"]
mod words;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use beeline_fabric::{AdapterNumber, NodeId};
use beeline_fabric_bar::{
    BarConfig, BarDataInterrupt, BarDataTrigger, BarMap, BarMember, BarMemory, BarSequence,
};
use beeline_mmio::{FaultGuard, OnLoss};
use rustix::process::{Pid, Signal};

/// How long a test may take before it is taken for hung.
const WATCHDOG: Duration = Duration::from_secs(120);
const NODE: &str = "BEELINE_TEST_NODE";
const PATH: &str = "BEELINE_TEST_PATH";
const SLOT: &str = "BEELINE_TEST_SLOT";
/// Members of the memories of tests.
pub const MEMBERS: usize = 4;
pub const BYTES: u64 = 8 << 20;

/// What separates a process from all others of this machine.
const UNSHARE: [&str; 9] =
    ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--ipc", "--net", "--uts"];

/// What tests call it all that are run over each kind of member.
pub type Fabric = Memory;
pub type Member = BarMember;
pub type Map = BarMap;
pub type Sequence = BarSequence;
pub type DataInterrupt = BarDataInterrupt;
pub type DataTrigger = BarDataTrigger;
pub use beeline_fabric_bar::NotTaken;
pub use script::interrupt_options;

/// A file that members share, with a watchdog that ends the test when it hangs.
pub struct Memory {
    _dir: tempfile::TempDir,
    path: PathBuf,
    _watchdog: Sender<()>,
}

impl Memory {
    pub fn new() -> Self {
        Memory::of(BYTES)
    }

    /// One whose members each have room for segments of so many bytes.
    pub fn with_room(bytes: u64) -> Self {
        Memory::of(BYTES + MEMBERS as u64 * bytes)
    }

    fn of(bytes: u64) -> Self {
        let (alive, ended) = channel::<()>();
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        std::thread::spawn(move || {
            if ended.recv_timeout(WATCHDOG) == Err(RecvTimeoutError::Timeout) {
                eprintln!("watchdog: test `{test}` hangs");
                std::process::abort();
            }
        });
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        File::create(&path).unwrap().set_len(bytes).unwrap();
        Memory { _dir: dir, path, _watchdog: alive }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes the file, and perhaps puts another one in its place.
    pub fn replace_file(&self, is_replaced: bool) {
        let bytes = self.path.metadata().unwrap().len();
        std::fs::remove_file(&self.path).unwrap();
        if is_replaced {
            File::create_new(&self.path).unwrap().set_len(bytes).unwrap();
        }
    }

    pub fn config(&self, node: u16) -> BarConfig {
        config(&self.path, node, None)
    }

    /// This process as a member of a node.
    pub fn member_here(&self, node: u16) -> BarMember {
        BarMember::open(self.config(node)).unwrap()
    }

    /// A process that has joined as a member of a node, in namespaces of its own.
    pub fn member(&self, node: u16) -> Process {
        self.member_of(node, "")
    }

    /// As [`Memory::member`], in a slot that is said.
    pub fn member_in(&self, node: u16, slot: usize) -> Process {
        self.member_of(node, &slot.to_string())
    }

    fn member_of(&self, node: u16, slot: &str) -> Process {
        let mut process = Process::start(&self.path, node, slot);
        let joined = process.hear();
        assert!(joined.starts_with("joined"), "{joined}");
        process
    }

    /// Processes that are to be members of a node and begin at the same time, with what each says of that.
    pub fn start_together(&self, count: usize, node: u16) -> Vec<(Process, String)> {
        let begun: Vec<_> = (0..count).map(|_| Process::start(&self.path, node, "")).collect();
        begun
            .into_iter()
            .map(|mut process| {
                let said = process.hear();
                (process, said)
            })
            .collect()
    }

    /// A process that is to be a member, with what it says of that.
    pub fn start(&self, node: u16, slot: &str) -> (Process, String) {
        let mut process = Process::start(&self.path, node, slot);
        let said = process.hear();
        (process, said)
    }
}

pub fn config(path: &Path, node: u16, slot: Option<usize>) -> BarConfig {
    BarConfig {
        memory: BarMemory::of_path(path),
        members: MEMBERS,
        slot,
        node: NodeId(node),
        adapter: AdapterNumber::new(0).unwrap(),
        nodes: [4, 8, 12].map(NodeId).to_vec(),
        on_loss: OnLoss::Guarded(FaultGuard::install().unwrap()),
    }
}

/// Whether this machine lets a process leave its namespaces.
fn can_unshare() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let tried = Command::new(UNSHARE[0]).args(&UNSHARE[1..]).arg("true").output();
        let can = tried.is_ok_and(|output| output.status.success());
        if !can {
            eprintln!("processes share their namespaces: this machine does not let them leave those");
        }
        can
    })
}

/// A member in a process of its own.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(path: &Path, node: u16, slot: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = if can_unshare() {
            let mut command = Command::new(UNSHARE[0]);
            command.args(&UNSHARE[1..]).arg(program);
            command
        } else {
            Command::new(program)
        };
        let mut child = command
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(NODE, node.to_string())
            .env(PATH, path)
            .env(SLOT, slot)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Process { child, input, output }
    }

    pub fn begin(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process has ended");
            if let Some(said) = line.trim_end_matches('\n').strip_prefix("said: ") {
                return said.to_owned();
            }
            // The test harness of the process begins the first line with its own words.
            if let Some((_, said)) = line.trim_end_matches('\n').split_once("said: ") {
                return said.to_owned();
            }
        }
    }

    pub fn call(&mut self, line: &str) -> String {
        self.begin(line);
        self.hear()
    }

    #[track_caller]
    pub fn expect(&mut self, line: &str, answer: &str) {
        assert_eq!(self.call(line), answer, "{line}");
    }

    /// Asks until it gets the answer.
    #[track_caller]
    pub fn until(&mut self, line: &str, answer: &str) {
        while self.call(line) != answer {
            std::thread::yield_now();
        }
    }

    fn pid(&self) -> Pid {
        let pid = Pid::from_child(&self.child);
        // `unshare` waits for the process, which is its only child.
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", pid.as_raw_nonzero()));
        let child = children.ok().and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw);
        child.unwrap_or(pid)
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Ends it at this moment.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// Lets it leave in order.
    pub fn finish(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _gone = rustix::process::kill_process(self.pid(), Signal::KILL);
            let _waited = self.child.wait();
        }
    }
}

/// Waits for something that no descriptor tells; the test's watchdog bounds it.
pub fn wait_until(mut happened: impl FnMut() -> bool) {
    while !happened() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Plays a member, if this process was started for that.
pub fn play() {
    let (Ok(path), Ok(node)) = (std::env::var(PATH), std::env::var(NODE)) else { return };
    // A process that hangs does not outlive its test for long.
    std::thread::spawn(|| {
        let (_never, ends) = channel::<()>();
        let _time_is_over = ends.recv_timeout(2 * WATCHDOG);
        std::process::abort();
    });
    let slot = std::env::var(SLOT).ok().and_then(|slot| slot.parse().ok());
    script::run(config(Path::new(&path), node.parse().unwrap(), slot));
}

pub fn say(line: &str) {
    println!("said: {line}");
}
