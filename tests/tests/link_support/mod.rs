//! Processes that share a mapped file and nothing else: each in a pid, user and network namespace of its own.
//!
//! A test program starts itself again with a role in its environment; the role runs as the ignored test `role` of the same
//! file. A role talks in lines that begin with `@` and obeys lines on its standard input. Where the kernel refuses
//! namespaces, roles run without, and a line of the output says so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "each test program uses its own part")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use beeline_mmio::{MappedSegment, OnLoss, Region, SegmentOptions};
use rustix::process::{Pid, Signal, kill_process};

/// Ends a test that hangs; nothing is ever waited for this long.
pub const WATCHDOG: Duration = Duration::from_secs(60);

/// Bytes of the shared file.
pub const FILE_BYTES: u64 = 256 << 10;

/// What a role has of its own.
pub const NAMESPACES: [&str; 3] = ["pid", "user", "net"];

/// An argument of this process's role.
pub fn argument(name: &str) -> String {
    std::env::var(format!("BEELINE_E2E_{name}")).expect("a role is given its arguments")
}

/// A line for the test program.
pub fn say(line: &str) {
    println!("@{line}");
}

/// The shared file, as a role maps it.
pub fn map() -> Region {
    let file = File::options().read(true).write(true).open(argument("FILE")).unwrap();
    let options = SegmentOptions { on_loss: OnLoss::Fatal, ..SegmentOptions::default() };
    MappedSegment::file(file.as_fd(), &options).unwrap().region().unwrap()
}

/// A role's first line.
pub fn introduce() {
    // The process id as the test program knows it: that of the /proc of before.
    let pid = std::fs::read_link("/proc/self").unwrap();
    let of = |kind: &&str| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
    let namespaces: Vec<_> = NAMESPACES.iter().map(|kind| of(kind).display().to_string()).collect();
    say(&format!("pid {} {}", pid.display(), namespaces.join(" ")));
}

/// Ends a role that takes no orders when the test program does.
pub fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
}

/// A xorshift generator.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

pub fn seed() -> u64 {
    std::env::var("BEELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x9e37_79b9)
}

/// Whether a process may have namespaces of its own here, without privileges.
pub fn has_namespaces() -> bool {
    let status = Command::new("unshare").args(APART).arg("true").stderr(Stdio::null()).status();
    let can = status.is_ok_and(|status| status.success());
    if !can {
        println!("this kernel, or the lack of `unshare`, gives no namespaces: the sides run without");
    }
    can
}

const APART: [&str; 5] = ["--user", "--map-root-user", "--pid", "--net", "--fork"];

/// A process in a role, in namespaces of its own.
pub struct Role {
    child: Child,
    stdin: ChildStdin,
    pid: Pid,
    pub namespaces: Vec<String>,
    lines: Receiver<String>,
}

impl Role {
    pub fn start(kind: &str, side: &str, folder: &Path, more: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = if has_namespaces() {
            let mut command = Command::new("unshare");
            command.args(APART).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.args(["--exact", "role", "--ignored", "--nocapture", "--test-threads=1"]);
        let file = folder.join("shared");
        command.env("BEELINE_E2E_KIND", kind).env("BEELINE_E2E_SIDE", side).env("BEELINE_E2E_FILE", file);
        command.envs(more.iter().map(|(name, value)| (format!("BEELINE_E2E_{name}"), value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Libtest writes the test's name before the first line.
                let Some(at) = line.find('@') else { continue };
                if sender.send(line[at + 1..].to_owned()).is_err() {
                    return;
                }
            }
        });
        let first = lines.recv_timeout(WATCHDOG).expect("a role says who it is");
        let mut words = first.split(' ').skip(1);
        let pid = Pid::from_raw(words.next().unwrap().parse().unwrap()).unwrap();
        let namespaces = words.map(str::to_owned).collect();
        Role { stdin: child.stdin.take().unwrap(), child, pid, namespaces, lines }
    }

    pub fn line(&self) -> String {
        self.lines.recv_timeout(WATCHDOG).expect("a side says something in time")
    }

    /// The session, once it is up.
    pub fn up(&self) -> String {
        let line = self.line();
        line.strip_prefix("up ").unwrap_or_else(|| panic!("not up: {line}")).to_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Has it do what the line says.
    pub fn order(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    File::create(folder.path().join("shared")).unwrap().set_len(FILE_BYTES).unwrap();
    folder
}
