//! Threads that belong to the library and not to the program: no signal of the program's is handled on them.

use std::io;
use std::thread::{Builder, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// What a thread's own faults raise. Blocked, they would end the process without its handlers: a stack overflow without a
/// word, a filtered system call without the filter's.
const OWN_FAULTS: [Signal; 7] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGSYS,
    Signal::SIGABRT,
];

/// Starts a thread on which all signals are blocked from its first instruction but [`OWN_FAULTS`]: the program's handlers
/// run on the program's threads, and no system call of this one is interrupted.
pub(crate) fn spawn_without_signals(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let mut blocked = SigSet::all();
    OWN_FAULTS.into_iter().for_each(|signal| blocked.remove(signal));
    // A thread starts with the mask of the one that makes it, so that there is no moment at which it has another.
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let spawned = Builder::new().name(name.to_owned()).spawn(body);
    before.thread_set_mask()?;
    spawned
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn only_own_faults_reach_the_thread_and_the_maker_keeps_its_mask() {
        let before = SigSet::thread_get_mask().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = spawn_without_signals("test", move || {
            sender.send(SigSet::thread_get_mask().unwrap()).unwrap();
        });
        let blocked = receiver.recv().unwrap();
        thread.unwrap().join().unwrap();
        // What cannot be blocked is not in the mask.
        let open = |signal: &Signal| {
            OWN_FAULTS.contains(signal) || [Signal::SIGKILL, Signal::SIGSTOP].contains(signal)
        };
        for signal in Signal::iterator() {
            assert_eq!(blocked.contains(signal), !open(&signal), "{signal}");
        }
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }
}
