//! What a process finds out once. A child of `fork` finds it out again: a thread of its parent that was about to does not run in
//! the child, and whoever waited for it there would wait for ever.

use std::sync::OnceLock;

use beeline_mmio::PerProcess;

/// A value that each process makes once. Threads that ask meanwhile wait for it.
pub(crate) struct OncePerProcess<T>(PerProcess<OnceLock<T>>);

impl<T> OncePerProcess<T> {
    pub(crate) const fn new() -> Self {
        OncePerProcess(PerProcess::new())
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(OnceLock::new).get_or_init(make)
    }
}

#[cfg(test)]
#[cfg(not(miri))]
pub(crate) mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

    use super::*;

    /// What no child takes on the busiest machine.
    const WATCHDOG: Duration = Duration::from_secs(120);

    /// Returns what `body` says in a forked child; `None` of one that hangs or ends without a word.
    pub(crate) fn in_child(body: impl FnOnce() -> u8) -> Option<u8> {
        let (reader, writer) = std::io::pipe().unwrap();
        let child = match fork::fork().unwrap() {
            fork::Fork::Child => {
                let _ = rustix::io::write(&writer, &[body()]);
                // Without the exit handlers of the C library, which are the parent's.
                let _ = kill_process(getpid(), Signal::KILL);
                unreachable!()
            }
            fork::Fork::Parent(child) => Pid::from_raw(child).unwrap(),
        };
        drop(writer);
        let mut said = [0];
        let limit = WATCHDOG.try_into().unwrap();
        let is_over = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&limit)).unwrap() == 1;
        let bytes = if is_over { rustix::io::read(&reader, &mut said).unwrap() } else { 0 };
        kill_process(child, Signal::KILL).unwrap();
        waitpid(Some(child), WaitOptions::empty()).unwrap();
        (bytes == 1).then_some(said[0])
    }

    #[test]
    fn value_is_made_once_and_by_a_child_again() {
        let value = OncePerProcess::new();
        assert_eq!((*value.get_or_init(|| 1), *value.get_or_init(|| 2)), (1, 1));
        assert_eq!(in_child(|| *value.get_or_init(|| 3)), Some(3));
        assert_eq!(*value.get_or_init(|| 4), 1);
    }

    #[test]
    fn child_does_not_wait_for_the_thread_of_its_parent_that_makes_the_value() {
        let value = OncePerProcess::new();
        std::thread::scope(|scope| {
            let ((begins, begun), (go_on, may)) = (channel(), channel());
            let value = &value;
            scope.spawn(move || {
                value.get_or_init(|| {
                    begins.send(()).unwrap();
                    may.recv().unwrap();
                    1
                })
            });
            begun.recv().unwrap();
            let said = in_child(|| *value.get_or_init(|| 2));
            go_on.send(()).unwrap();
            assert_eq!(said, Some(2));
        });
        assert_eq!(*value.get_or_init(|| 3), 1);
    }
}
