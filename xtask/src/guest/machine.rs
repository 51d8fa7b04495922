//! A guest that runs: booted, asked, and killed when it is dropped.

use std::fs::{self, File};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::agent::{self, Agent, Output};
use super::console::Console;
use super::folder::Folder;
use super::image::{self, AddedFile};
use super::lost::{Cause, Lost};
use super::qemu::{self, Device, Files, Machine, Serial};
use super::setup::Setup;
use crate::failure::{Context, Failure, Outcome};

/// Between two looks at a socket that nobody has come to yet.
const POLL: Duration = Duration::from_millis(5);
/// How long the rest of what a kernel says as it stops, and the end of its emulator, may take.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How long a command may take unless it is told.
pub const COMMAND_LIMIT: Duration = Duration::from_mins(1);

/// What a guest is like.
#[derive(Debug, Clone)]
pub struct Options {
    pub memory_mib: u32,
    pub cpus: u32,
    pub devices: Vec<Device>,
    /// Files beside those that all guests have.
    pub files: Vec<AddedFile>,
    /// Modules of the kernel that `modprobe` finds, by name.
    pub modules: Vec<String>,
    /// Arguments of QEMU behind all others.
    pub arguments: Vec<String>,
    /// Words of the kernel's command line behind all others.
    pub kernel_words: Vec<String>,
    /// How long the boot may take. It takes about three seconds of an idle core.
    pub boot_limit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory_mib: 512,
            cpus: 1,
            devices: Vec::new(),
            files: Vec::new(),
            modules: Vec::new(),
            arguments: Vec::new(),
            kernel_words: Vec::new(),
            boot_limit: Duration::from_mins(3),
        }
    }
}

impl Options {
    fn machine(&self) -> Machine {
        Machine {
            memory_mib: self.memory_mib,
            cpus: self.cpus,
            devices: self.devices.clone(),
            arguments: self.arguments.clone(),
            kernel_words: self.kernel_words.clone(),
        }
    }
}

/// A guest. Several may run at once; each has its folder, and ends with the thread that booted it.
#[derive(Debug)]
pub struct Guest {
    child: Child,
    agent: Agent,
    console: Console,
    /// Of the boot.
    took: Duration,
    // Dropped behind the child, whose memory is in it.
    folder: Folder,
}

impl Guest {
    /// Boots a guest and waits until it takes commands.
    pub fn boot(setup: &Setup, options: &Options) -> Outcome<Self> {
        let start = Instant::now();
        let folder = Folder::make(options.memory_mib)?;
        let first_files = write_first_files(&folder, setup, options)?;
        let (console, socket) = (folder.path("console"), folder.path("agent"));
        let listener = UnixListener::bind(&socket).while_doing("listen for the guest's agent")?;
        listener.set_nonblocking(true).while_doing("listen for the guest's agent")?;
        let files = Files { kernel: &setup.kernel(), first_files: &first_files };
        let serial = Serial::Agent { console: &console, socket: &socket };
        let mut command = qemu::command(setup.packages(), &options.machine(), files, serial)?;
        let said = File::create(folder.path("emulator")).while_doing("make a file for what QEMU says")?;
        let both = said.try_clone().while_doing("make a file for what QEMU says")?;
        let command = command.stdin(Stdio::null()).stdout(both).stderr(said);
        let mut child = command.spawn().while_doing("start QEMU")?;
        let agent = match accept(&listener, &mut child, start + options.boot_limit) {
            Ok(agent) => agent,
            Err(why) => {
                end(&mut child);
                return Err(Failure::new(format!("{why}\n{}", emulator_said(&folder))));
            }
        };
        let console = Console::at(console);
        let mut guest = Guest { child, agent, console, took: Duration::ZERO, folder };
        guest.wait("boot", options.boot_limit)?;
        guest.took = start.elapsed();
        Ok(guest)
    }

    /// How long it took from nothing to the first command.
    pub fn boot_took(&self) -> Duration {
        self.took
    }

    /// Runs a command of the guest's shell, for a minute at most.
    pub fn run(&mut self, command: &str) -> Result<Output, Lost> {
        self.run_within(command, COMMAND_LIMIT)
    }

    /// As [`Guest::run`], with another limit. Behind one that is reached the guest is still busy with that command.
    pub fn run_within(&mut self, command: &str, limit: Duration) -> Result<Output, Lost> {
        if let Err(why) = agent::check(command) {
            let doing = command.chars().take(80).collect();
            return Err(Lost { cause: Cause::Refused(why.to_string()), doing, console: String::new() });
        }
        match self.agent.send(command) {
            Ok(()) => self.wait(command, limit),
            Err(error) => Err(self.lost(Cause::Cut(error.to_string()), command)),
        }
    }

    /// What a command says that has to succeed.
    pub fn output(&mut self, command: &str) -> Outcome<String> {
        let output = self.run(command)?;
        if output.status == 0 {
            return Ok(output.text());
        }
        let (status, text) = (output.status, output.text());
        Err(Failure::new(format!("`{command}` in the guest ended with {status}\n{text}")))
    }

    /// Stops the whole machine, until [`Guest::go_on`].
    pub fn stop(&self) -> Outcome {
        self.signal(Signal::STOP)
    }

    /// Lets a machine that is stopped go on, which does not know that it was.
    pub fn go_on(&self) -> Outcome {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Outcome {
        kill_process(Pid::from_child(&self.child), signal).while_doing("signal the emulator")
    }

    /// What the kernel says.
    pub fn console(&self) -> &Console {
        &self.console
    }

    fn wait(&mut self, doing: &str, limit: Duration) -> Result<Output, Lost> {
        let until = Instant::now() + limit;
        loop {
            let cause = match self.agent.answer() {
                Ok(Some(output)) => return Ok(output),
                Ok(None) if self.console.fault().is_some() => Cause::Panicked(String::new()),
                Ok(None) => match self.child.try_wait() {
                    Ok(Some(status)) => Cause::Ended(status.to_string()),
                    _ if Instant::now() >= until => Cause::Silent(limit),
                    _ => continue,
                },
                Err(error) => Cause::Cut(error.to_string()),
            };
            return Err(self.lost(cause, doing));
        }
    }

    /// Says why there is no answer. A kernel that stops ends the emulator and cuts the line, in an order that nobody knows: so the end
    /// is waited for, and what the kernel said goes before how the emulator ended.
    fn lost(&mut self, cause: Cause, doing: &str) -> Lost {
        let ended = match cause {
            Cause::Silent(_) => None,
            _ => self.wait_for_end(LAST_WORDS),
        };
        let cause = match (self.console.fault(), ended, cause) {
            (Some(line), _, _) => Cause::Panicked(line),
            (None, Some(status), Cause::Cut(_)) => Cause::Ended(status.to_string()),
            (None, _, cause) => cause,
        };
        let console = format!("{}\n{}", self.console.tail(), emulator_said(&self.folder));
        Lost { cause, doing: doing.to_owned(), console }
    }

    fn wait_for_end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(POLL);
        }
        None
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A guest with its console on this terminal, until it is powered off.
pub fn on_terminal(setup: &Setup, options: &Options) -> Outcome<ExitStatus> {
    let folder = Folder::make(options.memory_mib)?;
    let first_files = write_first_files(&folder, setup, options)?;
    let files = Files { kernel: &setup.kernel(), first_files: &first_files };
    let mut command = qemu::command(setup.packages(), &options.machine(), files, Serial::Terminal)?;
    command.status().while_doing("run QEMU")
}

fn accept(listener: &UnixListener, child: &mut Child, until: Instant) -> Outcome<Agent> {
    loop {
        match listener.accept() {
            Ok((line, _)) => return Agent::on(line).while_doing("speak with the guest's agent"),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).while_doing("wait for QEMU"),
        }
        if let Some(status) = child.try_wait().while_doing("wait for QEMU")? {
            return Err(Failure::new(format!("QEMU ended before the guest began: {status}")));
        }
        if Instant::now() >= until {
            return Err(Failure::new("QEMU has not begun in the time that a boot may take"));
        }
        thread::sleep(POLL);
    }
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// One file of two archives, which the kernel unpacks one after the other.
fn write_first_files(folder: &Folder, setup: &Setup, options: &Options) -> Outcome<PathBuf> {
    let packages = setup.packages();
    let mut bytes = setup.base()?;
    let (guest, kernel) = (packages.guest(), packages.kernel());
    bytes.extend(image::additions(&options.files, &options.modules, &guest, kernel)?);
    let path = folder.path("first-files");
    fs::write(&path, bytes).while_doing(format!("write {}", path.display()))?;
    Ok(path)
}

fn emulator_said(folder: &Folder) -> String {
    fs::read_to_string(folder.path("emulator")).unwrap_or_default()
}
