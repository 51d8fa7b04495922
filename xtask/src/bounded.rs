//! A program that may take so long and no longer. One that hangs is killed with everything that it has started, and what its
//! threads were doing is kept: a run of all checks ends, and says what there is to mend.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};

/// Between two looks at whether it has ended.
const POLL: Duration = Duration::from_millis(10);
/// How long a debugger may look at one process.
const DEBUGGER_SECONDS: &str = "20";
/// Processes of which stacks are shown.
const SHOWN: usize = 8;

/// How a program ended, and what it wrote.
pub struct Ended {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
    /// What its threads were doing when its time was over.
    pub hung: Option<String>,
}

/// Runs it with nothing to read. Its outputs are files: with pipes, a process that it leaves behind would be waited for too.
pub fn run(command: &mut Command, limit: Option<Duration>) -> io::Result<Ended> {
    let (mut out, mut err) = (file("out")?, file("err")?);
    let outputs = (Stdio::from(out.try_clone()?), Stdio::from(err.try_clone()?));
    let mut child = command.stdin(Stdio::null()).stdout(outputs.0).stderr(outputs.1).spawn()?;
    let until = limit.map(|limit| Instant::now() + limit);
    let mut hung = None;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            hung = Some(kill(child.id()));
            break child.wait()?;
        }
        thread::sleep(POLL);
    };
    Ok(Ended { status, out: content(&mut out)?, err: content(&mut err)?, hung })
}

fn file(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

fn content(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Kills a process and its descendants, and says what their threads were doing.
fn kill(root: u32) -> String {
    let processes = with_descendants(root);
    let stacks = processes.iter().take(SHOWN).map(|pid| stacks(*pid)).collect();
    for pid in processes {
        // It may have ended by itself meanwhile.
        let _ = Pid::from_raw(pid.cast_signed()).map(|pid| kill_process(pid, Signal::KILL));
    }
    stacks
}

/// A process and those that it and they have started; not those whose parent has ended.
fn with_descendants(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| Some((pid, parent(pid)?)))
        .collect();
    let (mut found, mut looked_at) = (vec![root], 0);
    while let Some(of) = found.get(looked_at).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
        looked_at += 1;
    }
    found
}

/// The second field behind the name, which may hold brackets and spaces (proc_pid_stat(5)).
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// What each thread of a process is in: by the kernel's word, and by a debugger's where there is one.
fn stacks(pid: u32) -> String {
    let read =
        |path: String| fs::read_to_string(path).unwrap_or_default().replace('\0', " ").trim().to_owned();
    let mut said = format!("\nprocess {pid}: {}\n", read(format!("/proc/{pid}/cmdline")));
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let of = |name: &str| read(format!("{}/{name}", task.path().display()));
        // What a system call waits for, and its number and arguments.
        let _ = writeln!(said, "  {} {}: {}", of("comm"), of("wchan"), of("syscall"));
    }
    let pid = pid.to_string();
    let debugger =
        ["-s", "KILL", DEBUGGER_SECONDS, "gdb", "-p", &pid, "-batch", "-ex", "thread apply all bt 16"];
    if let Ok(output) = Command::new("timeout").args(debugger).stdin(Stdio::null()).output() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let frames = text.lines().filter(|line| line.starts_with("Thread ") || line.starts_with('#'));
        frames.for_each(|frame| said += &format!("  {frame}\n"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_hangs_is_killed_with_its_children_and_its_words_are_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo before; sleep 1000 & echo $!; wait"]);
        let ended = run(&mut command, Some(Duration::from_millis(300))).unwrap();
        let out = String::from_utf8(ended.out).unwrap();
        let child: u32 = out.strip_prefix("before\n").unwrap().trim().parse().unwrap();
        assert!(!ended.status.success());
        let hung = ended.hung.unwrap();
        assert!(hung.contains("sleep 1000"), "{hung}");
        // Nobody of this process waits for it, so that it may be a zombie; and a signal takes its time.
        let state = || fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let is_gone = |state: String| state.is_empty() || state.contains(") Z ");
        assert!((0..1000).any(|_| is_gone(state()) || {
            thread::sleep(POLL);
            false
        }));
    }

    #[test]
    fn program_that_leaves_one_behind_is_not_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $!"]);
        let ended = run(&mut command, Some(Duration::from_secs(100))).unwrap();
        assert!(ended.status.success() && ended.hung.is_none());
        let left: i32 = String::from_utf8(ended.out).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
    }
}
