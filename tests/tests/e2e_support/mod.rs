//! Processes of an end-to-end test: the NIC, senders and receivers, each a process of its own.
//!
//! A test program starts itself again with a role in its environment; the role runs as the ignored test `role` of the
//! same file. A role talks in lines on its standard output that begin with `@`, and ends when its standard input does,
//! so that no process outlives a test, however it ends. Time limits are watchdogs: they only end what hangs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "each test program uses its own part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use beeline_contract_memory::WaitPolicy;
use beeline_domain::{Domain, DomainConfig};
use beeline_link_shm::ShmLink;
use beeline_nic_process::{NicProcess, NicProcessConfig};

pub mod frames;
pub mod held;
pub mod items;
pub mod station;
pub mod users;

/// Ends a test that hangs; nothing is ever waited for this long.
pub const WATCHDOG: Duration = Duration::from_secs(60);
/// Between two turns of a loop that does not sleep until it is woken.
pub const PAUSE: Duration = Duration::from_micros(50);

const ROLE: &str = "BEELINE_E2E_ROLE";
const ROOT: &str = "BEELINE_E2E_ROOT";

/// The role this process was started in; `None` in the test program itself.
pub fn own_role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// An argument of this process's role.
pub fn argument(name: &str) -> Option<String> {
    std::env::var(format!("BEELINE_E2E_{name}")).ok()
}

/// A number that the environment gives.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seed that `BEELINE_SEED` gives, or one of the clock.
pub fn seed() -> u64 {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    number("BEELINE_SEED").unwrap_or(clock)
}

/// The domain of the test, in its role's folder.
pub fn domain_config() -> DomainConfig {
    let root = std::env::var_os(ROOT).map(PathBuf::from).expect("a role is given a folder");
    DomainConfig { root: Some(root), name: "e2e".into() }
}

/// The domain of the test, as seen by the test program.
pub fn domain_at(root: &Path) -> Domain {
    Domain::open(&DomainConfig { root: Some(root.to_owned()), name: "e2e".into() }).unwrap()
}

/// A line for the test program.
pub fn say(line: &str) {
    println!("@{line}");
}

/// Set when the standard input of this role ends.
pub fn stop_flag() -> &'static AtomicBool {
    static STOP: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut rest);
        STOP.store(true, Ordering::Relaxed);
    });
    &STOP
}

/// The role of the NIC: ready when it says so, ends with its standard input.
pub fn run_nic() {
    let idle = match argument("IDLE").as_deref() {
        Some("sleep") => WaitPolicy::new().spins(0).yields(0).sleep(Some(Duration::from_secs(1))),
        Some("spin") => WaitPolicy::SPIN,
        _ => WaitPolicy::new().spins(100).yields(100).sleep(Some(Duration::from_millis(50))),
    };
    let config = NicProcessConfig { domain: domain_config(), idle, ..NicProcessConfig::default() };
    let stop = stop_flag();
    let mut process = NicProcess::new(config).unwrap();
    say("ready");
    let last = process.run(stop).unwrap();
    say(&format!("torn {}", last.rounds.torn_messages));
}

/// A process in a role.
pub struct Role {
    name: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Role {
    /// Starts this program again in a role.
    pub fn start(name: &'static str, root: &Path, arguments: &[(&str, &str)]) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), name, root, arguments)
    }

    /// As [`Role::start`], by a command that starts this program in another way, as by another user.
    pub fn start_by(
        mut command: Command,
        name: &'static str,
        root: &Path,
        arguments: &[(&str, &str)],
    ) -> Self {
        command.args(["--exact", "role", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, name).env(ROOT, root);
        for (argument, value) in arguments {
            command.env(format!("BEELINE_E2E_{argument}"), value);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Libtest writes the test's name before the first line.
                if let Some(at) = line.find('@')
                    && sender.send(line[at + 1..].to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Role { name, stdin: child.stdin.take(), child, lines }
    }

    /// A NIC that is ready.
    pub fn nic(root: &Path) -> Self {
        Self::nic_with(root, &[])
    }

    /// A NIC with arguments that is ready.
    pub fn nic_with(root: &Path, arguments: &[(&str, &str)]) -> Self {
        let mut nic = Role::start("nic", root, arguments);
        nic.expect("ready");
        nic
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(WATCHDOG) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("{} says nothing: something hangs", self.name),
            Err(RecvTimeoutError::Disconnected) => {
                panic!("{} ended ({:?})", self.name, self.child.wait().map(|status| status.to_string()))
            }
        }
    }

    /// Lines until one begins with `start`; that one, without its beginning.
    pub fn expect(&mut self, start: &str) -> String {
        let begun = Instant::now();
        loop {
            let line = self.line();
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_owned();
            }
            assert!(begun.elapsed() < WATCHDOG, "{} never says {start}", self.name);
        }
    }

    /// The next line that it has said already.
    pub fn try_line(&mut self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// What it has said already that begins with `start`; `None` when it has said nothing of the kind yet.
    pub fn try_expect(&mut self, start: &str) -> Option<String> {
        std::iter::from_fn(|| self.try_line())
            .find_map(|line| line.strip_prefix(start).map(|rest| rest.trim().to_owned()))
    }

    /// Stops it, or lets it go on.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Writes a line to its standard input.
    pub fn order(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().expect("it is not told to end"), "{line}").unwrap();
    }

    /// Ends its standard input, and so tells it to end.
    pub fn hang_up(&mut self) {
        drop(self.stdin.take());
    }

    /// `kill -9`, and waits until the process is no more.
    pub fn kill(mut self) {
        self.kill_in_place();
    }

    /// As [`Role::kill`]; what it said can still be asked for.
    pub fn kill_in_place(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it in good order: it must succeed.
    pub fn end(mut self) {
        self.hang_up();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < WATCHDOG, "{} does not end", self.name);
            std::thread::yield_now();
        };
        assert!(status.success(), "{} failed: {status}", self.name);
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // It may have ended already; both are then harmless errors.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A link to the NIC of a domain, as soon as there is one; `None` when the role is to stop.
pub fn connect(
    config: &DomainConfig,
    options: &beeline_link_shm::ShmOptions,
    stop: &AtomicBool,
) -> Option<ShmLink> {
    let domain = Domain::open(config).unwrap();
    let begun = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        if let Ok(link) = ShmLink::connect(&domain, options) {
            return Some(link);
        }
        assert!(begun.elapsed() < WATCHDOG, "no NIC comes");
        std::thread::yield_now();
    }
    None
}
