//! The test's side: the shared folder, the users, and the processes in containers.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use beeline_domain::support;
use rustix::process::{Pid, Signal};

use crate::enter::{CANNOT, NAMESPACES, PLAIN, PROGRAM, Plan};
use crate::roles::WATCHDOG;

/// Users without any privilege or file, where the test is root and so can be any of them.
const USERS: [u32; 2] = [20_001, 20_002];

/// A folder with everything of the test, and who shares what is in it.
pub struct Host {
    folder: tempfile::TempDir,
    /// Uids that this process can become; none where it is somebody's ordinary process.
    users: Option<[u32; 2]>,
}

/// Which user a process belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The owner of the shared folder.
    Owner,
    /// Another one, who owns nothing.
    Other,
}

/// Where a process runs: its user, that user's uid there, and where the shared folder is.
#[derive(Clone, Copy)]
pub struct Place {
    pub user: User,
    pub inside_uid: u32,
    pub seen_at: &'static str,
}

/// The containers of most tests: one user, under a uid of its own in each, and the folder under another path in each.
pub const HERE: Place = Place { user: User::Owner, inside_uid: 0, seen_at: "/here/domains" };
pub const THERE: Place = Place { user: User::Owner, inside_uid: 1000, seen_at: "/srv/there" };

impl Host {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A copy of each program: others may be kept out of the folder of the build, and get through this one.
        let open =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        open(folder.path(), 0o711);
        for (from, name) in
            [(std::env::current_exe().unwrap(), "test"), (env!("CARGO_BIN_EXE_beeline").into(), "beeline")]
        {
            let to = folder.path().join(name);
            // By a process of its own: what another test starts meanwhile would inherit a descriptor of this one that is open
            // for writing, and a program that somebody has open for writing cannot be executed (ETXTBSY).
            assert!(Command::new("cp").arg(from).arg(&to).status().unwrap().success());
            open(&to, 0o755);
        }
        std::fs::create_dir(folder.path().join("root")).unwrap();
        let mut host = Host { folder, users: None };
        let becomes = |uid| Command::new(host.path("test")).arg("--list").uid(uid).gid(uid).output();
        let is_root = rustix::process::geteuid().is_root();
        if is_root && USERS.into_iter().all(|uid| becomes(uid).is_ok_and(|output| output.status.success())) {
            host.users = Some(USERS);
        }
        host.new_share();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that containers share, as it is seen outside of them.
    pub fn share(&self) -> PathBuf {
        self.path("share")
    }

    /// Makes the shared folder anew: empty, and the owner's alone.
    pub fn new_share(&self) {
        let _ = std::fs::remove_dir_all(self.share());
        std::fs::create_dir(self.share()).unwrap();
        std::fs::set_permissions(self.share(), PermissionsExt::from_mode(0o700)).unwrap();
        self.give_share(User::Owner);
    }

    /// Gives the shared folder to a user.
    pub fn give_share(&self, user: User) {
        let uid = self.uid(user);
        chown(self.share(), Some(uid), uid.into()).unwrap();
    }

    /// Whether this process can start processes of another user than the owner.
    pub fn has_other_user(&self) -> bool {
        self.users.is_some()
    }

    /// The uid of a user outside of containers.
    pub fn uid(&self, user: User) -> u32 {
        match (self.users, user) {
            (Some([owner, _]), User::Owner) => owner,
            (Some([_, other]), User::Other) => other,
            (None, User::Owner) => rustix::process::geteuid().as_raw(),
            (None, User::Other) => panic!("only root can be another user"),
        }
    }

    fn as_user(&self, user: User, program: &str) -> Command {
        let mut command = Command::new(self.path(program));
        if self.users.is_some() {
            let uid = self.uid(user);
            // Without groups too: the standard library drops those of root with its uid.
            command.uid(uid).gid(uid);
        }
        command.current_dir("/");
        command
    }

    fn start(&self, place: Place, role: &[&str]) -> Process {
        let plan = Plan {
            inside_uid: place.inside_uid,
            share: self.share(),
            seen_at: place.seen_at.into(),
            root: self.path("root"),
            program: self.path("beeline"),
        };
        Process::start(self.as_user(place.user, "test").args(plan.to_args()).args(role), role)
    }

    /// Starts a role, or the command line's program and its arguments, in a container.
    pub fn container(&self, place: Place, role: &[&str]) -> Process {
        let mut process = self.start(place, role);
        process.enter();
        process
    }

    /// The program in a container, until it ends.
    pub fn beeline(&self, place: Place, args: &str) -> (ExitStatus, String, String) {
        let role: Vec<&str> = [PROGRAM].into_iter().chain(args.split_whitespace()).collect();
        self.container(place, &role).finish()
    }

    /// The program outside of all containers, as the owner of the shared folder.
    pub fn beeline_outside(&self, args: &str) -> Output {
        let mut command = self.as_user(User::Owner, "beeline");
        command.args(args.split_whitespace()).env("BEELINE_ROOT", self.share()).output().unwrap()
    }

    /// A role of a user in no container at all.
    pub fn plain(&self, user: User, role: &[&str]) -> Process {
        Process::start(self.as_user(user, "test").arg(PLAIN).arg(self.share()).args(role), role)
    }

    /// Why this machine allows no container, or no domain between two; `None` where it does.
    pub fn refusal(&self) -> Option<String> {
        // Older kernels cannot watch a process that has no number here, and the library says so to whoever connects.
        let peers = "pidfd of a socket's peer";
        if let Some(lack) =
            support::findings().iter().find(|finding| finding.what == peers && !finding.is_there)
        {
            return Some(lack.to_string());
        }
        let mut process = self.start(HERE, &["opens", "own"]);
        let refusal = loop {
            let line = process.line();
            if let Some(step) = line.strip_prefix(CANNOT) {
                break Some(step.to_owned());
            }
            if line == "opened" {
                break None;
            }
        };
        self.new_share();
        refusal
    }
}

/// A process that plays a role; it does not outlive the test.
pub struct Process {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    /// The role itself, whose parent `child` is where it is in a container.
    pid: Option<Pid>,
}

impl Process {
    fn start(command: &mut Command, role: &[&str]) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (lines, errors) =
            (lines_of(child.stdout.take().unwrap()), lines_of(child.stderr.take().unwrap()));
        let pid = Pid::from_raw(child.id().cast_signed());
        Process { name: role.join(" "), stdin: child.stdin.take(), child, lines, errors, pid }
    }

    /// Hears how the container introduces itself, and holds it to being one.
    fn enter(&mut self) {
        self.pid = Pid::from_raw(self.expect("pid ").parse().unwrap());
        let outside: BTreeSet<PathBuf> = NAMESPACES
            .iter()
            .map(|name| std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap())
            .collect();
        for _ in NAMESPACES {
            let namespace = PathBuf::from(self.expect("namespace "));
            assert!(
                !outside.contains(&namespace),
                "{} is in {}, as the test is",
                self.name,
                namespace.display()
            );
        }
        assert_eq!(self.expect("process "), "1, others' files: 0", "{}", self.name);
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(WATCHDOG) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("{} says nothing: something hangs", self.name),
            Err(RecvTimeoutError::Disconnected) => {
                let (name, status) = (&self.name, self.child.wait().unwrap());
                panic!("{name} ended ({status}): {}", rest_of(&self.errors))
            }
        }
    }

    /// The next line, without the beginning that it must have.
    pub fn expect(&mut self, start: &str) -> String {
        let line = self.line();
        let rest = line.strip_prefix(start);
        rest.unwrap_or_else(|| panic!("{} says {line:?}, and not {start:?}", self.name)).to_owned()
    }

    /// Waits for a line on its standard error that begins so.
    pub fn wait_for_error(&mut self, start: &str) {
        let line = self.errors.recv_timeout(WATCHDOG);
        assert!(line.as_ref().is_ok_and(|line| line.starts_with(start)), "{} says {line:?}", self.name);
    }

    pub fn tell(&mut self, what: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    /// Waits until its first thread sleeps in the kernel.
    pub fn wait_until_asleep(&self) {
        let (path, begun) = (format!("/proc/{}/stat", self.pid.unwrap().as_raw_nonzero()), Instant::now());
        // The name stands in brackets and may have any byte in it.
        while !std::fs::read_to_string(&path)
            .unwrap()
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('S')
        {
            assert!(begun.elapsed() < WATCHDOG, "{} never sleeps", self.name);
            std::thread::yield_now();
        }
    }

    /// `kill -9`, wherever it is.
    pub fn kill(mut self) {
        rustix::process::kill_process(self.pid.unwrap(), Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end, and waits for it: how it ended, and what it wrote to both of its outputs.
    pub fn finish(mut self) -> (ExitStatus, String, String) {
        self.stdin = None;
        let (out, err) = (rest_of(&self.lines), rest_of(&self.errors));
        (self.child.wait().unwrap(), out, err)
    }

    /// Lets it end; it must succeed.
    pub fn end(self) {
        let name = self.name.clone();
        let (status, _, err) = self.finish();
        assert!(status.success(), "{name} failed ({status}): {err}");
    }
}

/// The lines of an output as they come, without the mark of those that are for the test.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line.strip_prefix('@').unwrap_or(&line).to_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

/// The lines until an output ends.
fn rest_of(lines: &Receiver<String>) -> String {
    let lines: Vec<String> = std::iter::from_fn(|| lines.recv_timeout(WATCHDOG).ok()).collect();
    lines.join("\n")
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; both are then harmless errors. What is in its container ends with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
