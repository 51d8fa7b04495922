//! Where programs run: a folder of their own, a domain of their own, and nothing of them left behind.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Job, Share};
use crate::BenchError;

/// Between two looks whether something has happened.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a server may take until it listens, and until it has ended when it is asked to.
const LISTENS_WITHIN: Duration = Duration::from_secs(30);
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// By which path the connections of a case may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Native,
    /// By `beeline run`, both ends.
    Accelerated,
    /// By `beeline run` with rules by which nothing is accelerated.
    Preloaded,
}

/// The program `beeline` and the library that it preloads.
#[derive(Clone, Debug)]
pub struct Tools {
    pub beeline: PathBuf,
    pub library: PathBuf,
}

/// A folder and a domain in which programs run one way.
#[derive(Debug)]
pub struct Ground {
    way: Way,
    tools: Tools,
    started: AtomicU32,
    /// Whether programs carry what they have with other users' too.
    is_shared: AtomicBool,
    folder: tempfile::TempDir,
}

/// A program that runs. Dropping it kills it, with all that it has started in its group.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    has_ended: bool,
    out: PathBuf,
    err: PathBuf,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
    /// Of it and of all that it has waited for.
    pub cpu: Duration,
}

impl Ground {
    /// # Errors
    /// There is no place for the folder, or the tools are not there.
    pub fn new(way: Way, tools: &Tools) -> Result<Self, BenchError> {
        let folder = tempfile::Builder::new().prefix("beeline-programs-").tempdir()?;
        // Servers that do not run as root, started by root, read and write here too.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let own = folder.path().join("tools");
        fs::create_dir(&own)?;
        // Copies, which every user can read, wherever they were built.
        let copy = |from: &Path| -> Result<PathBuf, BenchError> {
            let to = own.join(from.file_name().unwrap_or_default());
            fs::copy(from, &to)?;
            Ok(to)
        };
        let tools = match way {
            Way::Native => tools.clone(),
            Way::Accelerated | Way::Preloaded => {
                Tools { beeline: copy(&tools.beeline)?, library: copy(&tools.library)? }
            }
        };
        Ok(Ground { way, tools, started: AtomicU32::new(0), is_shared: AtomicBool::new(false), folder })
    }

    pub fn way(&self) -> Way {
        self.way
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a folder that `user` has.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self, name: &str, user: Option<&str>) -> Result<PathBuf, BenchError> {
        let path = self.path(name);
        fs::create_dir_all(&path)?;
        if let Some(user) = user.filter(|_| is_root()) {
            let given = Command::new("chown").arg(user).arg(&path).status()?;
            if !given.success() {
                return Err(failed(user, "there is no such user"));
            }
        }
        Ok(path)
    }

    /// Writes a file that every user can read.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, BenchError> {
        let path = self.path(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
        Ok(path)
    }

    /// Makes the folder of a user's domains; what `BEELINE_ROOT` is for all users.
    fn domains_of(&self, user: Option<&str>) -> Result<PathBuf, BenchError> {
        let uid = match user.filter(|_| is_root()) {
            None => rustix::process::geteuid().as_raw().to_string(),
            Some(user) => {
                let said = Command::new("id").args(["-u", user]).output()?;
                if !said.status.success() {
                    return Err(failed(user, "there is no such user"));
                }
                String::from_utf8_lossy(&said.stdout).trim().to_owned()
            }
        };
        self.folder(&format!("domains-{uid}"), user)?;
        Ok(self.path("domains-%u"))
    }

    /// Has programs that are started from now on carry what they have with processes of other users, one of whom is this.
    ///
    /// # Errors
    /// The user has no folder for its domains.
    pub fn share_with(&self, user: &str) -> Result<(), BenchError> {
        self.is_shared.store(true, Ordering::Relaxed);
        self.domains_of(Some(user)).map(drop)
    }

    /// Starts a program, by `beeline run` where the case has it so, as its user and on its core, with its output kept.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, job: Job) -> Result<Running, BenchError> {
        let root = self.domains_of(job.user)?;
        let mut words = job.inside;
        if let Some(core) = job.core {
            words.extend(["taskset", "--cpu-list", &core.to_string()].map(str::to_owned));
        }
        if let Some(user) = job.user.filter(|_| is_root()) {
            let user = [format!("--reuid={user}"), format!("--regid={user}")];
            words.extend(["setpriv".to_owned(), "--init-groups".to_owned()].into_iter().chain(user));
        }
        if self.way != Way::Native {
            words.extend([self.tools.beeline.to_string_lossy().into_owned(), "run".to_owned()]);
            words.extend((self.way == Way::Preloaded).then(|| "--accelerate=false".to_owned()));
            words.extend(["--why".to_owned(), "--".to_owned()]);
        }
        words.push(job.program.clone());
        words.extend(job.arguments);
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = Path::new(&job.program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let said = |what: &str| self.path(&format!("{number}-{name}.{what}"));
        let (out, err) = (said("out"), said("err"));
        let input = match &job.input {
            Some(path) => Stdio::from(File::open(path)?),
            None => Stdio::null(),
        };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(input).stdout(File::create(&out)?).stderr(File::create(&err)?);
        command.current_dir(self.folder.path()).process_group(0).env("BEELINE_ROOT", root);
        command.env("BEELINE_SOCKETS_LIBRARY", &self.tools.library).env("BEELINE_CONFIG", "/dev/null");
        if self.is_shared.load(Ordering::Relaxed) {
            command.env("BEELINE_SOCKETS_OTHER_USERS", "true");
        }
        command.env_remove("LD_PRELOAD").envs(job.variables);
        let child = command.spawn().map_err(|error| failed(&name, &format!("cannot be started: {error}")))?;
        Ok(Running { name, child, has_ended: false, out, err })
    }

    /// Has `beeline` do something in the domain of programs that run as this user.
    ///
    /// # Errors
    /// It failed; the error has what it said on standard error.
    pub fn beeline(&self, words: &[&str]) -> Result<(), BenchError> {
        let mut command = Command::new(&self.tools.beeline);
        command.args(words).env("BEELINE_ROOT", self.domains_of(None)?).env("BEELINE_CONFIG", "/dev/null");
        let output = command.stdin(Stdio::null()).output()?;
        let said = || String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if output.status.success() { Ok(()) } else { Err(failed("beeline", &said())) }
    }

    /// Starts a program and waits until it listens on `port`, without connecting to it.
    ///
    /// # Errors
    /// It cannot be started, ends, or does not listen in time.
    pub fn serve(&self, job: Job, port: u16) -> Result<Running, BenchError> {
        let mut server = self.start(job)?;
        let until = Instant::now() + LISTENS_WITHIN;
        while !listens(server.pid(), port) {
            if let Some(status) = server.child.try_wait()? {
                server.has_ended = true;
                return Err(server.failed(&format!("ended with {status} before it listened")));
            }
            if Instant::now() > until {
                return Err(server.failed("does not listen"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(server)
    }

    /// Runs a program to its end; one that takes longer than `limit` is killed.
    ///
    /// # Errors
    /// It cannot be started, takes too long, or fails.
    pub fn run(&self, job: Job, limit: Duration) -> Result<Ended, BenchError> {
        let running = self.start(job)?;
        let name = running.name.clone();
        let ended = running.wait(limit)?;
        match ended.status.success() {
            true => Ok(ended),
            false => {
                Err(failed(&name, &format!("{}\n{}\n{}", ended.status, tail(&ended.out), tail(&ended.err))))
            }
        }
    }
}

impl Running {
    /// Whether it has not ended by itself.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn is_running(&mut self) -> Result<bool, BenchError> {
        Ok(self.child.try_wait()?.is_none())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        read(&self.out)
    }

    /// The same of its standard error.
    pub fn complained(&self) -> String {
        read(&self.err)
    }

    /// Waits until it has ended; one that takes longer than `limit` is killed.
    ///
    /// # Errors
    /// It was killed, because `limit` was over.
    pub fn wait(self, limit: Duration) -> Result<Ended, BenchError> {
        let until = Instant::now() + limit;
        // Not waited for before it is: what its children used is counted then.
        while !is_dead(self.child.id()) {
            if Instant::now() > until {
                return Err(self.failed(&format!("has not ended after {} s", limit.as_secs())));
            }
            std::thread::sleep(PAUSE);
        }
        self.reap()
    }

    /// Asks it to end, as an administrator does, and waits for that.
    ///
    /// # Errors
    /// It does not end, or ends in another way than by being asked.
    pub fn end(self) -> Result<Ended, BenchError> {
        self.end_by(Signal::TERM)
    }

    /// As [`Running::end`], by a signal that means it to the program.
    ///
    /// # Errors
    /// As [`Running::end`].
    pub fn end_by(mut self, signal: Signal) -> Result<Ended, BenchError> {
        if let Some(status) = self.child.try_wait()? {
            self.has_ended = true;
            return Err(self.failed(&format!("ended by itself with {status}")));
        }
        // Its own, not the group's: `beeline run` hands it on.
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
        let name = self.name.clone();
        let ended = self.wait(ENDS_WITHIN)?;
        let is_asked = ended.status.success()
            || ended.status.signal() == Some(signal.as_raw())
            || ended.status.code() == Some(128 + signal.as_raw());
        match is_asked {
            true => Ok(ended),
            false => Err(failed(
                &name,
                &format!("ended with {} when it was asked to\n{}", ended.status, ended.err),
            )),
        }
    }

    fn reap(mut self) -> Result<Ended, BenchError> {
        let before = used_by_children();
        let status = self.child.wait()?;
        self.has_ended = true;
        let cpu = used_by_children().saturating_sub(before);
        Ok(Ended { status, out: read(&self.out), err: read(&self.err), cpu })
    }

    fn failed(&self, what: &str) -> BenchError {
        let said = format!("{what}\n{}\n{}", tail(&read(&self.out)), tail(&read(&self.err)));
        failed(&self.name, &said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        if !self.has_ended {
            let _ = self.child.wait();
        }
    }
}

impl Ended {
    /// What `beeline run --why` said of its connections.
    pub fn share(&self) -> Share {
        Share::read(&self.err)
    }
}

/// A port that nobody has at the moment.
///
/// # Errors
/// The kernel has no port left for a listener on the loopback address.
pub fn free_port() -> Result<u16, BenchError> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Whether something listens on a port of this host.
/// Whether somebody does in the network namespace of a process.
fn listens(pid: u32, port: u16) -> bool {
    let port = format!(":{port:04X}");
    ["tcp", "tcp6"].map(|table| read(Path::new(&format!("/proc/{pid}/net/{table}")))).iter().any(|table| {
        let mut rows = table.lines().map(|row| row.split_whitespace().skip(1));
        rows.any(|mut row| {
            row.next().is_some_and(|local| local.ends_with(&port)) && row.nth(1) == Some(LISTENS)
        })
    })
}

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a child has ended and waits to be waited for.
fn is_dead(pid: u32) -> bool {
    let stat = read(Path::new(&format!("/proc/{pid}/stat")));
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['Z', 'X']))
}

/// CPU time of children that were waited for, and of theirs. Ticks are a hundredth of a second on every Linux.
fn used_by_children() -> Duration {
    let stat = read(Path::new("/proc/self/stat"));
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split(' ').skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The last lines of what a program said.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

pub(super) fn failed(program: &str, what: &str) -> BenchError {
    BenchError::Rival { rival: program.to_owned(), what: what.to_owned() }
}
