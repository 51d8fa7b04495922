//! Processes that share a mapped file and nothing else: each in a pid, user and network namespace of its own.
//!
//! Roles are those of `e2e_support`, started by `unshare`, and obey lines on their standard input. Where the kernel refuses
//! namespaces, roles run without, and a line of the output says so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "each test program uses its own part")]

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};

use beeline_mmio::{MappedSegment, OnLoss, Region, SegmentOptions};
use rustix::process::{Pid, Signal, kill_process};

#[path = "../e2e_support/mod.rs"]
pub mod e2e_support;

use e2e_support::{argument, say};

/// Bytes of the shared file.
pub const FILE_BYTES: u64 = 256 << 10;

/// What a role has of its own.
pub const NAMESPACES: [&str; 3] = ["pid", "user", "net"];

/// The shared file, as a role maps it.
pub fn map() -> Region {
    let file = File::options().read(true).write(true).open(argument("FILE").unwrap()).unwrap();
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
    role: e2e_support::Role,
    /// Of the process itself, which `unshare` started.
    pid: Pid,
    pub namespaces: Vec<String>,
}

impl Role {
    pub fn start(name: &'static str, side: &str, folder: &Path, more: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().unwrap();
        let command = if has_namespaces() {
            let mut command = Command::new("unshare");
            command.args(APART).arg(program);
            command
        } else {
            Command::new(program)
        };
        let file = folder.join("shared");
        let own = [("SIDE", side), ("FILE", file.to_str().unwrap())];
        let mut role = e2e_support::Role::start_by(command, name, folder, &[&own, more].concat());
        let first = role.expect("pid ");
        let mut words = first.split(' ');
        let pid = Pid::from_raw(words.next().unwrap().parse().unwrap()).unwrap();
        Role { role, pid, namespaces: words.map(str::to_owned).collect() }
    }

    pub fn line(&mut self) -> String {
        self.role.line()
    }

    /// The session, once it is up.
    pub fn up(&mut self) -> String {
        let line = self.line();
        line.strip_prefix("up ").unwrap_or_else(|| panic!("not up: {line}")).to_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Has it do what the line says.
    pub fn order(&mut self, line: &str) {
        self.role.order(line);
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // `unshare` ends with the process that it started; its own death would leave that process.
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    File::create(folder.path().join("shared")).unwrap().set_len(FILE_BYTES).unwrap();
    folder
}
