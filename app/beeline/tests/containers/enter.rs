//! Becoming a container: this process leaves every namespace that a user without privileges can leave, and sees a root of
//! its own in which nothing of the machine is left but programs to read and one folder to share.
//!
//! Written with system calls and not with `unshare` and `mount`, so that it needs no tool, and so that a kernel that refuses
//! a step is told from a test that fails.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Pid, Signal, WaitOptions};

use crate::roles::{self, say};

/// First argument of this program when it is to be a container.
pub const CONTAINER: &str = "@container";
/// First argument of this program when it is to play a role outside of all containers.
pub const PLAIN: &str = "@plain";
/// Says, in front of a line, that the machine does not allow a container.
pub const CANNOT: &str = "cannot ";
/// The command line's program as it is seen in a container.
pub const PROGRAM: &str = "/beeline";
/// Namespaces that a container has for itself, as `/proc/self/ns` calls them.
pub const NAMESPACES: [&str; 6] = ["user", "pid", "ipc", "mnt", "net", "uts"];

/// What the program and its libraries are read from. None of it can be written to by a container's processes.
const SYSTEM: [&str; 7] = ["usr", "bin", "lib", "lib32", "lib64", "nix", "gnu"];
/// Folders in which programs meet outside of containers; a container's own are empty.
const PRIVATE: [&str; 3] = ["tmp", "run", "dev/shm"];

/// A step that the kernel refused.
#[derive(Debug)]
struct Refused(String);

/// Names the step that an error belongs to.
trait During<T> {
    fn during(self, step: impl std::fmt::Display) -> Result<T, Refused>;
}

impl<T, E: std::fmt::Display> During<T> for Result<T, E> {
    fn during(self, step: impl std::fmt::Display) -> Result<T, Refused> {
        self.map_err(|error| Refused(format!("{step}: {error}")))
    }
}

/// How a container is made, as the arguments that follow [`CONTAINER`].
pub struct Plan {
    /// The uid that this process's user has in the container.
    pub inside_uid: u32,
    /// The folder that is shared.
    pub share: PathBuf,
    /// Where the container sees the folder.
    pub seen_at: PathBuf,
    /// An empty folder to put the container's root on.
    pub root: PathBuf,
    /// The command line's program.
    pub program: PathBuf,
}

impl Plan {
    pub fn to_args(&self) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let paths = [&self.share, &self.seen_at, &self.root, &self.program].map(|path| text(path));
        [vec![CONTAINER.to_owned(), self.inside_uid.to_string()], paths.to_vec()].concat()
    }

    /// The plan, and the arguments of the role that follow it.
    fn from_args(args: &[String]) -> (Plan, &[String]) {
        let ([uid, share, seen_at, root, program], role) = args.split_first_chunk().unwrap();
        let [share, seen_at, root, program] = [share, seen_at, root, program].map(PathBuf::from);
        (Plan { inside_uid: uid.parse().unwrap(), share, seen_at, root, program }, role)
    }
}

/// Makes a container of this process and plays the role in it.
pub fn enter(args: &[String]) -> ExitCode {
    let (plan, role) = Plan::from_args(args);
    end_with_parent();
    if let Err(Refused(step)) = leave_namespaces(&plan) {
        say(&format!("{CANNOT}{step}"));
        return ExitCode::FAILURE;
    }
    // Only a child is in the new pid namespace, as its first process. It begins when this process has said who it is.
    let (mut is_said, saying) = std::io::pipe().unwrap();
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            drop(saying);
            is_said.read_to_end(&mut Vec::new()).unwrap();
            first_process(&plan, role)
        }
        fork::Fork::Parent(pid) => {
            say(&format!("pid {pid}"));
            drop(saying);
            let ended = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty()).unwrap();
            let status = ended.map(|(_, status)| status).unwrap();
            status
                .exit_status()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}

/// Has the kernel end this process when its parent ends.
pub fn end_with_parent() {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
}

fn leave_namespaces(plan: &Plan) -> Result<(), Refused> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let user = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    let rest = CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS;
    unshare(user | rest).during("leave the namespaces of the machine")?;
    // A group can be mapped without privileges only where nobody can leave one.
    fs::write("/proc/self/setgroups", "deny").during("give up setgroups")?;
    fs::write("/proc/self/uid_map", format!("{} {uid} 1", plan.inside_uid)).during("map the user")?;
    fs::write("/proc/self/gid_map", format!("{} {gid} 1", plan.inside_uid)).during("map the group")
}

fn first_process(plan: &Plan, role: &[String]) -> ExitCode {
    end_with_parent();
    if let Err(Refused(step)) = change_root(plan) {
        say(&format!("{CANNOT}{step}"));
        return ExitCode::FAILURE;
    }
    roles::introduce(&PRIVATE);
    match role.split_first() {
        Some((program, args)) if program == PROGRAM => {
            let mut command = Command::new(PROGRAM);
            let error = command.args(args).env_clear().env("BEELINE_ROOT", &plan.seen_at).exec();
            panic!("{PROGRAM} does not start: {error}")
        }
        _ => roles::play(&plan.seen_at, role),
    }
}

/// Makes a root out of an empty file system in memory: system folders, the program, and the shared folder.
fn change_root(plan: &Plan) -> Result<(), Refused> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .during("keep its mounts to itself")?;
    let root = &plan.root;
    mount(Some("none"), root, Some("tmpfs"), MsFlags::empty(), none).during("mount a root")?;
    for folder in SYSTEM {
        match fs::read_link(Path::new("/").join(folder)) {
            Ok(target) => std::os::unix::fs::symlink(target, root.join(folder)).during("copy a link")?,
            Err(_) if Path::new("/").join(folder).is_dir() => {
                bind(&Path::new("/").join(folder), &root.join(folder))?;
            }
            Err(_) => {}
        }
    }
    for folder in PRIVATE {
        fs::create_dir_all(root.join(folder)).during("make a folder")?;
    }
    bind_file(Path::new("/dev/null"), &root.join("dev/null"))?;
    bind_file(&plan.program, &under(root, Path::new(PROGRAM)))?;
    bind(&plan.share, &under(root, &plan.seen_at))?;
    fs::create_dir(root.join("proc")).during("make a folder")?;
    mount(Some("proc"), &root.join("proc"), Some("proc"), MsFlags::empty(), none).during("mount /proc")?;
    let old = root.join("old");
    fs::create_dir(&old).during("make a folder")?;
    rustix::process::pivot_root(root, &old).during("change the root")?;
    std::env::set_current_dir("/").during("enter the root")?;
    umount2("/old", MntFlags::MNT_DETACH).during("let the machine's root go")?;
    fs::remove_dir("/old").during("remove a folder")
}

fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap())
}

fn bind(from: &Path, to: &Path) -> Result<(), Refused> {
    fs::create_dir_all(to).during(format!("make {}", to.display()))?;
    bind_over(from, to)
}

fn bind_file(from: &Path, to: &Path) -> Result<(), Refused> {
    File::create(to).during(format!("make {}", to.display()))?;
    bind_over(from, to)
}

fn bind_over(from: &Path, to: &Path) -> Result<(), Refused> {
    let none: Option<&str> = None;
    // With what is mounted below it: a part alone would show what the machine hides there, which the kernel refuses.
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(from), to, none, flags, none).during(format!("mount {}", from.display()))
}
