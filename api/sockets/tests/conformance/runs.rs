//! The programs, and what a run of one printed.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a case may take; far more than any needs.
const BOUND: Duration = Duration::from_secs(60);
/// A user who is nobody's owner.
const NOBODY: u32 = 65534;

/// Where the two sides of a case are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    TwoProcesses,
    OneProcess,
}

/// A case, as the program lists it.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    modes: u32,
    /// As the matrix says it.
    pub protocol: String,
    pub what: String,
}

impl Case {
    pub fn modes(&self) -> impl Iterator<Item = Mode> {
        let all = [(1, Mode::TwoProcesses), (2, Mode::OneProcess)];
        let modes = self.modes;
        all.into_iter().filter(move |(bit, _)| modes & bit != 0).map(|(_, mode)| mode)
    }
}

/// The library as it was built beside the test.
pub fn library() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().join("libbeeline_sockets.so")
}

pub fn preloaded(command: &mut Command) {
    command.env("LD_PRELOAD", library());
}

/// With groups of UDP declared to be of these programs alone.
pub fn preloaded_with_groups(command: &mut Command) {
    preloaded(command);
    command.env("BEELINE_SOCKETS_MULTICAST", "host");
}

/// The conformance program and its plugin, compiled.
pub struct Programs(tempfile::TempDir);

impl Programs {
    pub fn build(flags: &[&str]) -> Self {
        let programs = Programs(tempfile::tempdir().unwrap());
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
        let mut files: Vec<PathBuf> =
            fs::read_dir(&sources).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
        files.sort();
        let warnings = ["-Wall", "-Wextra", "-Wno-unused-result", "-Wno-nonnull", "-Wno-stringop-overflow"];
        let compiler = || {
            let mut command = Command::new("cc");
            command.args(["-std=gnu11", "-pthread"]).args(warnings);
            command
        };
        succeed(compiler().args(flags).arg("-o").arg(programs.path()).args(files).arg("-ldl"));
        let plugin = programs.path().with_extension("plugin.so");
        succeed(compiler().args(["-shared", "-fPIC", "-o"]).arg(plugin).arg(sources.join("plugin/plugin.c")));
        // Others than its owner run it too.
        fs::set_permissions(programs.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        programs
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("conformance")
    }

    pub fn cases(&self) -> Vec<Case> {
        let listed = succeed(Command::new(self.path()).arg("--list"));
        let case = |line: &str| {
            let words: Vec<&str> = line.split('\t').collect();
            let [name, modes, protocol, what] = words[..] else { panic!("{line}") };
            let [name, protocol, what] = [name, protocol, what].map(str::to_owned);
            Case { name, modes: modes.parse().unwrap(), protocol, what }
        };
        listed.lines().map(case).collect()
    }

    /// Has the program run with the rights of another user, whoever starts it; `false` where this user may not.
    pub fn give_other_rights(&self) -> bool {
        let is_done = std::os::unix::fs::chown(self.path(), Some(NOBODY), Some(NOBODY)).is_ok();
        is_done && fs::set_permissions(self.path(), fs::Permissions::from_mode(0o4755)).is_ok()
    }
}

/// What a run printed, and how it ended.
#[derive(Debug)]
pub struct Run {
    pub lines: Vec<String>,
    err: String,
    /// `None` where it was killed for taking too long.
    code: Option<i32>,
    signal: Option<i32>,
    /// Whether each connection was carried by windows at the point of the case; `false` where there was none.
    pub is_accelerated: bool,
}

impl Run {
    pub fn of(programs: &Programs, case: &Case, mode: Mode, prepare: impl Fn(&mut Command)) -> Self {
        let ground = tempfile::tempdir().unwrap();
        fs::set_permissions(ground.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let [log, paths, out, err] = ["log", "paths", "out", "err"].map(|name| ground.path().join(name));
        let mut command = Command::new(programs.path());
        command.arg(&case.name).env("CONFORMANCE_LOG", &log).env("CONFORMANCE_PATHS", &paths);
        if mode == Mode::OneProcess {
            command.arg("--one");
        }
        // A domain of its own; the sides find nobody else.
        let root = ground.path().join("root");
        fs::create_dir(&root).unwrap();
        command
            .env("BEELINE_ROOT", &root)
            .env("BEELINE_SOCKETS_UDP", "true")
            .env("BEELINE_SOCKETS_UNIX", "true")
            .stdin(Stdio::null())
            .process_group(0);
        let create = |path: &Path| fs::File::create(path).unwrap();
        command.stdout(create(&out)).stderr(create(&err));
        prepare(&mut command);
        let status = wait(command.spawn().unwrap());
        let read = |path: &Path| {
            let mut bytes = Vec::new();
            if let Ok(mut file) = fs::File::open(path) {
                file.read_to_end(&mut bytes).unwrap();
            }
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let paths = read(&paths);
        Run {
            // Of one that hangs, what it had seen until then.
            lines: lines(&read(if status.is_some() { &out } else { &log })),
            err: read(&err),
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            is_accelerated: !paths.is_empty() && paths.lines().all(|path| path == "accelerated"),
        }
    }

    pub fn ended_well(&self) -> bool {
        self.code == Some(0)
    }

    /// How it ended, in words, and what it complained of.
    pub fn end(&self) -> String {
        let end = match (self.code, self.signal) {
            (Some(code), _) => format!("exited with {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => format!("hung for {} s behind {:?}", BOUND.as_secs(), self.lines.last()),
        };
        if self.err.is_empty() { end } else { format!("{end}: {}", self.err.trim_end()) }
    }
}

/// Waits until a program ends; one that takes too long is killed with its children, and gives `None`.
fn wait(mut child: Child) -> Option<std::process::ExitStatus> {
    let until = Instant::now() + BOUND;
    let group = rustix::process::Pid::from_child(&child);
    // One that ends tells by its pidfd.
    let ends = rustix::process::pidfd_open(group, rustix::process::PidfdFlags::empty()).unwrap();
    let left = until.saturating_duration_since(Instant::now());
    let mut list = [rustix::event::PollFd::new(&ends, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: 0 };
    let ended = rustix::event::poll(&mut list, Some(&limit)).unwrap() == 1;
    let status = ended.then(|| child.wait().unwrap());
    // Children that it left behind, too.
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    if status.is_none() {
        child.wait().unwrap();
    }
    status
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{err}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
