//! Several users, the folder in which they meet, and processes of each.

use std::collections::VecDeque;
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use beeline_tests::Random;

use super::held::Held;
use super::{PAUSE, Role, WATCHDOG};

/// Who owns the domain, who may come in, and who may not.
pub const OWNER: u32 = 54_321;
pub const ALLOWED: u32 = 54_322;
pub const OTHER: u32 = 54_323;
/// Beyond what allocators and thread stacks may move.
const MOST_MORE_KIB: u64 = 32 << 10;

/// A folder of the owner in one that every user may pass through, with a copy of this program beside it.
pub struct Users(tempfile::TempDir);

impl Users {
    /// `None`, and a word about it, where this process cannot become other users.
    pub fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        if folder.path().metadata().unwrap().uid() != 0 {
            eprintln!("skipped: only root can start processes of several users");
            return None;
        }
        if Command::new("true").uid(OWNER).gid(OWNER).status().is_err() {
            eprintln!("skipped: this user namespace has no uid {OWNER}");
            return None;
        }
        let users = Users(folder);
        let mode = std::fs::Permissions::from_mode;
        std::fs::set_permissions(users.0.path(), mode(0o711)).unwrap();
        std::fs::create_dir(users.root()).unwrap();
        std::os::unix::fs::chown(users.root(), Some(OWNER), Some(OWNER)).unwrap();
        std::fs::set_permissions(users.root(), mode(0o700)).unwrap();
        // By another process: a program that somebody has open for writing, as a child of this one may, cannot be started.
        let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(users.program()).status();
        assert!(copied.unwrap().success());
        std::fs::set_permissions(users.program(), mode(0o755)).unwrap();
        Some(users)
    }

    pub fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("program")
    }

    /// A process of a user in a role, whose domain is in the folder.
    pub fn start(&self, uid: u32, name: &'static str, arguments: &[(&str, &str)]) -> Process {
        let mut command = Command::new(self.program());
        command.uid(uid).gid(uid).current_dir("/");
        Process { role: Role::start_by(command, name, &self.root(), arguments), heard: VecDeque::new() }
    }

    /// Names in the folder of the domain, if there is one.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let folder = self.root().join("e2e");
        if folder.is_dir() {
            names(&folder, &mut found);
        }
        found.sort();
        found
    }
}

fn names(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        found.push(entry.path().display().to_string());
        if entry.file_type().unwrap().is_dir() {
            names(&entry.path(), found);
        }
    }
}

/// Whether a process holds as much as before, but for what a run moves by chance, and for threads that begin with their first work.
pub fn is_within(now: Held, before: Held) -> bool {
    now.fds <= before.fds
        && now.threads <= before.threads + 2
        && now.mappings <= before.mappings + 8
        && now.resident_kib <= before.resident_kib + MOST_MORE_KIB
}

/// Waits until a random moment within so many microseconds.
pub fn wait(random: &mut Random, most_us: usize) {
    let moment = Instant::now() + Duration::from_micros(random.below(most_us) as u64);
    while Instant::now() < moment {
        std::thread::sleep(PAUSE);
    }
}

pub struct Process {
    role: Role,
    /// Lines that were said and not yet asked for.
    heard: VecDeque<String>,
}

impl Deref for Process {
    type Target = Role;

    fn deref(&self) -> &Role {
        &self.role
    }
}

impl Process {
    /// The next line that begins with `start`; what was said before it stays for who asks for it.
    pub fn expect(&mut self, start: &str) -> String {
        if let Some(at) = self.heard.iter().position(|line| line.starts_with(start)) {
            return self.heard.remove(at).unwrap();
        }
        loop {
            let line = self.role.line();
            if line.starts_with(start) {
                return line;
            }
            self.heard.push_back(line);
        }
    }

    /// Takes in what it has said.
    fn hear(&mut self) {
        self.heard.extend(std::iter::from_fn(|| self.role.try_line()));
    }

    /// Forgets what it has said that begins with `start`.
    pub fn forget(&mut self, start: &str) {
        self.hear();
        self.heard.retain(|line| !line.starts_with(start));
    }

    /// # Panics
    /// It has said something that begins with `start`.
    pub fn has_not_said(&mut self, start: &str) {
        self.hear();
        assert_eq!(self.heard.iter().find(|line| line.starts_with(start)), None);
    }

    /// How an owner saw a client go, as soon as it has seen the end of all its connections, of which there were `least` at least.
    pub fn departures_of(&mut self, pid: u32, least: usize) -> Vec<String> {
        let begun = Instant::now();
        loop {
            self.hear();
            let of_pid = |line: &&String| line.split_once(' ').is_some_and(|(_, of)| of.parse() == Ok(pid));
            let said: Vec<&str> =
                self.heard.iter().filter(of_pid).filter_map(|line| Some(line.split_once(' ')?.0)).collect();
            let came = said.iter().filter(|word| **word == "came").count();
            if came >= least && said.len() == 2 * came {
                let went =
                    said.iter().filter(|word| **word != "came").map(|word| (*word).to_owned()).collect();
                self.heard.retain(|line| !of_pid(&line));
                return went;
            }
            assert!(begun.elapsed() < WATCHDOG, "the owner has seen {said:?} of process {pid}");
            std::thread::sleep(PAUSE);
        }
    }

    pub fn held(&self) -> Held {
        Held::by(self.role.pid())
    }

    pub fn kill(&mut self) -> u32 {
        let pid = self.role.pid();
        self.role.kill_in_place();
        pid
    }

    pub fn end(self) {
        self.role.end();
    }
}
