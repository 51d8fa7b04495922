//! Helper processes for the tests: this very test program, started again in a role.
//!
//! A test file has one test named `role`, which does nothing unless it was started by [`Helper::start`]; it then plays
//! the role named in the environment. Helpers talk in lines on their standard streams and end when their input ends, so
//! none outlives its test. Every wait is for an event; a watchdog ends the whole program if one does not come.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod arena;
pub mod held;
pub mod pairs;
pub mod users;

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal};

/// How long a test may take before it is taken for hung; far more than any needs.
pub const WATCHDOG: Duration = Duration::from_secs(120);
const ROLE: &str = "BEELINE_TEST_ROLE";
const ROOT: &str = "BEELINE_TEST_ROOT";
const ARGUMENT: &str = "BEELINE_TEST_ARGUMENT";

/// Ends the program with a message unless it is dropped in time.
pub struct Watchdog(#[allow(dead_code)] Sender<()>);

pub fn watchdog() -> Watchdog {
    let (alive, ended): (Sender<()>, Receiver<()>) = channel();
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(WATCHDOG) == Err(RecvTimeoutError::Timeout) {
            eprintln!("watchdog: test `{test}` hangs");
            std::process::abort();
        }
    });
    Watchdog(alive)
}

/// A temporary folder of one test, with a watchdog that ends the test when it hangs.
pub struct TestFolder {
    dir: tempfile::TempDir,
    _watchdog: Watchdog,
}

impl TestFolder {
    pub fn new() -> Self {
        TestFolder { dir: tempfile::tempdir().unwrap(), _watchdog: watchdog() }
    }

    pub fn path(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub fn config(&self) -> DomainConfig {
        DomainConfig { root: Some(self.dir.path().to_owned()), name: "test".into() }
    }

    pub fn open(&self) -> Domain {
        Domain::open(&self.config()).unwrap()
    }

    pub fn helper(&self, role: &str, argument: &str) -> Helper {
        Helper::start(role, self.path(), argument)
    }
}

/// A process that plays a role.
pub struct Helper {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Helper {
    pub fn start(role: &str, root: &std::path::Path, argument: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::run(command.args(["--exact", "role", "--nocapture", "--test-threads=1"]), role, root, argument)
    }

    pub fn run(command: &mut Command, role: &str, root: &std::path::Path, argument: &str) -> Self {
        let mut child = command
            .env(ROLE, role)
            .env(ROOT, root)
            .env(ARGUMENT, argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Helper { child, input, output }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next thing the helper says.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the helper ended without a word");
            // The test runner of the helper prints lines of its own.
            if let Some((_, said)) = line.trim_end().split_once('@') {
                return said.to_owned();
            }
        }
    }

    pub fn expect(&mut self, what: &str) {
        assert_eq!(self.hear(), what);
    }

    pub fn tell(&mut self, what: &str) {
        writeln!(self.input.as_mut().unwrap(), "{what}").unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Stops the process and waits until it is stopped.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        self.wait_for_state('T');
    }

    pub fn wait_for_state(&self, state: char) {
        let path = format!("/proc/{}/stat", self.pid());
        wait_until(|| {
            let stat = std::fs::read_to_string(&path).unwrap();
            stat.rsplit_once(')').unwrap().1.trim_start().starts_with(state)
        });
    }

    /// Kills the process. Its children, if any, live on until [`Helper`] is dropped.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// Lets the helper end, and waits for it.
    pub fn finish(mut self) -> ExitStatus {
        self.input = None;
        self.child.wait().unwrap()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a helper is to play; `None` in the test itself.
pub struct Role {
    pub name: String,
    pub argument: String,
    pub config: DomainConfig,
}

impl Role {
    pub fn of_this_process() -> Option<Self> {
        let name = std::env::var(ROLE).ok()?;
        let root = std::env::var_os(ROOT).unwrap().into();
        let argument = std::env::var(ARGUMENT).unwrap();
        std::thread::spawn(end_with_the_test);
        Some(Role { name, argument, config: DomainConfig { root: Some(root), name: "test".into() } })
    }

    pub fn open(&self) -> Domain {
        Domain::open(&self.config).unwrap()
    }
}

/// Ends this helper if it does not end by itself after its test has: a helper that hangs must not outlive it.
fn end_with_the_test() {
    wait_for_hang_up();
    std::thread::sleep(Duration::from_secs(10));
    std::process::exit(2);
}

/// Returns when the test has ended or let go of this helper. Reads nothing that is meant for somebody else.
fn wait_for_hang_up() {
    // A hang-up is reported without being asked for.
    let _ = poll(&mut [PollFd::new(&std::io::stdin(), PollFlags::empty())], None);
}

/// Says something to the test.
pub fn say(what: &str) {
    println!("@{what}");
    std::io::stdout().flush().unwrap();
}

/// What the test says; `None` when it ends.
pub fn listen() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line).unwrap() {
        0 => None,
        _ => Some(line.trim_end().to_owned()),
    }
}

/// Waits until the test ends.
pub fn wait_for_end() {
    while listen().is_some() {}
}

/// Forks a child that holds every descriptor this process has, does nothing, and lives as long as the test.
pub fn fork_a_bystander() {
    if let fork::Fork::Child = fork::fork().unwrap() {
        wait_for_hang_up();
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    }
}

/// Waits for something that no descriptor tells; the test's watchdog bounds it.
pub fn wait_until(mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < WATCHDOG, "it never happened");
        std::thread::yield_now();
    }
}

/// Whether a descriptor is readable, or becomes so within a time.
pub fn is_readable(fd: impl AsFd, within: Duration) -> bool {
    let limit = within.try_into().unwrap();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

/// Descriptors this process has open.
pub fn open_fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
