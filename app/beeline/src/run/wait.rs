//! A command as a child: waited for, with the signals that this process is sent.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// Signals that end a command, or mean something to it, which it is to get and not this process.
const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
/// What a signal that ended a command is added to, as shells do.
const OF_SIGNAL: i32 = 128;

/// Runs a command to its end, and gives its exit code.
pub fn run(mut command: Command) -> io::Result<u8> {
    // Before it runs, so that no signal ends this process and leaves the command.
    let mut signals = Signals::new(FORWARDED)?;
    let handle = signals.handle();
    let mut child = command.spawn()?;
    // By descriptor: its number may be another process's once it was waited for.
    let target = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let forward = move || {
        for number in &mut signals {
            if is_of_terminal(number) && is_in_foreground() {
                continue;
            }
            if let Some(signal) = Signal::from_named_raw(number) {
                // One that has ended needs none.
                let _ = pidfd_send_signal(&target, signal);
            }
        }
    };
    let forwarding = beeline_mmio::thread::start("signals", forward);
    let status = child.wait();
    handle.close();
    if let Ok(forwarding) = forwarding {
        let _ = forwarding.join();
    }
    status.map(code_of)
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| OF_SIGNAL + signal));
    code.and_then(|code| u8::try_from(code & 0xff).ok()).unwrap_or(u8::MAX)
}

fn is_of_terminal(signal: i32) -> bool {
    signal == SIGINT || signal == SIGQUIT
}

/// Whether the terminal sends its signals to this process's group: the command, which is in it, has had them then.
fn is_in_foreground() -> bool {
    let terminal =
        rustix::fs::open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
    let group = terminal.and_then(rustix::termios::tcgetpgrp);
    group.is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_the_commands_or_128_and_the_signal() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run(command).unwrap()
        };
        assert_eq!(["exit 0", "exit 7", "kill -9 $$", "kill -TERM $$"].map(shell), [0, 7, 137, 143]);
        assert!(run(Command::new("/no such program")).is_err());
    }
}
