//! Threads that this crate has started and that the kernel still has: some calls are for processes with one thread only.
//!
//! A thread that was joined is there for a moment longer: the C library lets go of who joins it before the kernel has taken it out of its process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::PerProcess;

const BETWEEN_LOOKS: Duration = Duration::from_micros(20);
/// From so many on, those that have gone are forgotten when another begins.
const MANY: usize = 32;

/// Those of each process: a child of fork has none of its parent's.
static STARTED: PerProcess<Mutex<Started>> = PerProcess::new();

#[derive(Default)]
struct Started {
    /// Threads that are being made, of which no number is known yet.
    beginning: usize,
    numbers: Vec<libc::pid_t>,
}

/// A thread that is about to be made; dropped where none was.
pub(super) struct Beginning(());

impl Beginning {
    pub(super) fn new() -> Self {
        started().beginning += 1;
        Beginning(())
    }

    /// The calling thread is it.
    pub(super) fn runs(self) {
        let number = this_thread();
        let mut started = started();
        if started.numbers.len() >= MANY {
            started.numbers.retain(|number| is_there(*number));
        }
        started.numbers.push(number);
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        let mut started = started();
        started.beginning = started.beginning.saturating_sub(1);
    }
}

/// Waits until the kernel has none of the threads that [`super::start`] has started in this process, but no longer than `until`; whether it has none. They end by
/// themselves: whoever calls has told them to.
pub fn wait_until_gone(until: Instant) -> bool {
    loop {
        let are_gone = {
            let mut started = started();
            started.numbers.retain(|number| is_there(*number));
            started.beginning == 0 && started.numbers.is_empty()
        };
        if are_gone || Instant::now() >= until {
            return are_gone;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

fn started() -> MutexGuard<'static, Started> {
    STARTED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Miri has no such call.
fn this_thread() -> libc::pid_t {
    if cfg!(miri) {
        return 0;
    }
    // SAFETY: the call has no argument, and changes nothing.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Whether this process has a thread of this number.
fn is_there(number: libc::pid_t) -> bool {
    // SAFETY: signal 0 is none: the kernel looks for the thread, and changes nothing.
    !cfg!(miri) && unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), number, 0) } == 0
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::thread::start;

    #[test]
    fn threads_are_gone_once_the_kernel_has_none_of_them() {
        // Others of this program start threads, too: in a process of its own there are none.
        let in_child = || {
            // An emulator has a thread of its own.
            let tasks = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
            let before = tasks();
            let (to, from) = channel::<()>();
            let waits = start("test", move || from.recv().is_err()).ok();
            let are_there = !wait_until_gone(Instant::now());
            drop(to);
            let are_gone = wait_until_gone(Instant::now() + Duration::from_secs(60));
            waits.is_some() && are_there && are_gone && before > 0 && tasks() == before
        };
        // SAFETY: what the child calls starts and ends threads by the C library, which allows it there, and ends without handlers.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = i32::from(!in_child());
            // SAFETY: ends the child.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: writes the status of a child of this test.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:x}");
    }
}
