//! Callbacks: who calls them, and how they end.
//!
//! Callbacks of one resource come one after the other, and those of two never wait for each other: a callback may wait for what another
//! one does. Segments, connections and interrupts share the threads of a [`Pool`](pool::Pool); a DMA queue has a thread of its own, which
//! waits for its transfers. Whoever removes a resource waits for a callback of it that is running, unless it is itself in a callback: two
//! that remove each other's resources would wait for ever. None begins after a removal either way.

pub(crate) mod pool;

use core::cell::Cell;
use core::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use beeline_ffi::{Failure, Outcome};
use beeline_mmio::{ThisProcess, thread};

use crate::constants::SCI_FLAG_USE_CALLBACK;
use crate::edge::failure;
use crate::errors;

/// `SCI_CALLBACK_CANCEL`
const CANCEL: u32 = 1;
/// `SCI_CALLBACK_CONTINUE`
pub(crate) const CONTINUE: u32 = 2;

thread_local! {
    /// The process in which the thread calls callbacks. What is left of the thread in a child of fork calls none.
    static CALLS: Cell<Option<ThisProcess>> = const { Cell::new(None) };
}

/// What C wants to be given in a callback.
#[derive(Clone, Copy)]
pub(crate) struct Argument(*mut c_void);

// SAFETY: an address that is given back to C as it came, and never followed.
unsafe impl Send for Argument {}

impl Argument {
    pub(crate) fn of(argument: *mut c_void) -> Self {
        Argument(argument)
    }

    pub(crate) fn get(self) -> *mut c_void {
        self.0
    }
}

/// Fails if a program wants a callback and gives none.
pub(crate) fn check_callback(flags: u32, is_given: bool) -> Outcome<()> {
    if flags & SCI_FLAG_USE_CALLBACK != 0 && !is_given {
        return Err(Failure::invalid("callback is NULL, with SCI_FLAG_USE_CALLBACK"));
    }
    Ok(())
}

/// Fails if a program waits for what its callback is told.
pub(crate) fn check_waits(has_callback: bool) -> Outcome<()> {
    if has_callback { Err(failure(errors::ILLEGAL_OPERATION, "its callback is told")) } else { Ok(()) }
}

/// The callback of a resource.
#[derive(Default)]
pub(crate) struct Caller(Arc<Progress>);

/// A look at whether there is something to be told: the call that tells it.
type Look = Box<dyn FnMut() -> Option<Call> + Send>;
/// Calls a callback; what it returns.
type Call = Box<dyn FnOnce() -> u32 + Send>;

/// What a look at a resource finds.
enum Looked {
    Call(Call),
    Nothing,
    /// Its callback has cancelled, or is stopped.
    Over,
}

#[derive(Default)]
struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_stopped: bool,
    /// A callback runs, or a thread waits for what it is told.
    is_running: bool,
    /// Where a pool looks for what is to be told.
    look: Option<Look>,
}

impl Caller {
    /// Begins to call on a thread of its own. `next` waits for something to be told and gives nothing when there will be none any more;
    /// `call` tells it.
    ///
    /// # Errors
    /// The process is out of threads.
    pub(crate) fn begin<E>(
        &self,
        mut next: impl FnMut() -> Option<E> + Send + 'static,
        mut call: impl FnMut(E) -> u32 + Send + 'static,
    ) -> Outcome<()> {
        self.0.lock().is_running = true;
        let progress = Arc::clone(&self.0);
        let begun = thread::start("beeline-callback", move || {
            CALLS.set(Some(ThisProcess::get()));
            while let Some(event) = next() {
                if progress.lock().is_stopped || call(event) == CANCEL {
                    break;
                }
            }
            // Before the end is told: whoever waits for it gives back what they use.
            drop((next, call));
            progress.rest();
        });
        match begun {
            Ok(_detached) => Ok(()),
            Err(error) => {
                self.0.lock().is_running = false;
                Err(failure(errors::SYSTEM, format!("no thread for callbacks: {error}")))
            }
        }
    }

    /// Lets no callback begin any more. The resource is removed already, so that nothing is waited for. Returns when the callback that
    /// is running has returned, unless this is called in a callback.
    pub(crate) fn stop(&self) {
        let mut state = self.0.lock();
        state.is_stopped = true;
        let look = state.look.take();
        if !is_in_callback() {
            while state.is_running {
                state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(state);
        drop(look);
    }
}

/// Whether this thread calls callbacks.
pub(crate) fn is_in_callback() -> bool {
    CALLS.get().is_some_and(ThisProcess::is_this)
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No callback runs any more.
    fn rest(&self) {
        self.lock().is_running = false;
        self.changed.notify_all();
    }

    /// What is to be told next, if no callback runs. Then one runs.
    fn look(&self) -> Looked {
        let mut state = self.lock();
        if state.is_running {
            return Looked::Nothing;
        }
        let Some(look) = &mut state.look else { return Looked::Over };
        match look() {
            Some(call) => {
                state.is_running = true;
                Looked::Call(call)
            }
            None => Looked::Nothing,
        }
    }

    /// Calls until nothing is left to be told: so nobody else need look for what comes while a callback runs.
    fn run(&self, call: Call) {
        let mut next = Some(call);
        let mut ended = None;
        while let Some(call) = next {
            // It may have been stopped since it was found.
            let has_cancelled = !self.lock().is_stopped && call() == CANCEL;
            let mut state = self.lock();
            if has_cancelled {
                ended = state.look.take();
            }
            next = state.look.as_mut().and_then(|look| look());
            state.is_running = next.is_some();
        }
        drop(ended);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::process::Signal;

    use super::*;

    pub(super) type CallOfNumber = Arc<dyn Fn(u32) -> u32 + Send + Sync>;

    #[test]
    fn stop_waits_for_the_callback_that_runs_and_none_begins_afterwards() {
        stops_while_a_callback_runs(|call| {
            let ((tell, told), caller) = (channel(), Caller::default());
            caller.begin(move || told.recv().ok(), move |number| call(number)).unwrap();
            (caller, move |number| tell.send(number).unwrap())
        });
    }

    /// Stops a caller while its callback runs. `begin` makes the caller, and what tells it a number.
    pub(super) fn stops_while_a_callback_runs<T: Fn(u32)>(begin: impl FnOnce(CallOfNumber) -> (Caller, T)) {
        let (say, said) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let (may_go_on, says_stopped) = (Mutex::new(may_go_on), say.clone());
        let call = Arc::new(move |number| {
            say.send(format!("{number} begins")).unwrap();
            may_go_on.lock().unwrap().recv().unwrap();
            say.send(format!("{number} returns")).unwrap();
            2
        });
        let (caller, tell) = begin(call);
        tell(1);
        tell(2);
        assert_eq!(said.recv().unwrap(), "1 begins");
        let stopper = std::thread::spawn(move || {
            caller.stop();
            says_stopped.send("stopped".to_owned()).unwrap();
        });
        // A stop that does not wait has said so by now.
        assert!(said.recv_timeout(Duration::from_millis(50)).is_err());
        go_on.send(()).unwrap();
        // The end of the line is that nothing holds the callback.
        drop(tell);
        assert_eq!(said.iter().collect::<Vec<_>>(), ["1 returns", "stopped"]);
        stopper.join().unwrap();
    }

    #[test]
    fn callback_that_cancels_is_the_last() {
        let (say, said) = channel();
        let caller = Caller::default();
        let mut numbers = 0..;
        let call = move |number: u32| {
            say.send(number).unwrap();
            if number == 2 { CANCEL } else { 2 }
        };
        caller.begin(move || numbers.next(), call).unwrap();
        assert_eq!(said.iter().collect::<Vec<u32>>(), [0, 1, 2]);
        caller.stop();
    }

    #[test]
    fn stop_in_a_callback_waits_for_none() {
        let (own, other) = (Arc::new(Caller::default()), Arc::new(Caller::default()));
        let (say, said) = channel();
        let (own_again, other_again, say_again) = (Arc::clone(&own), Arc::clone(&other), say.clone());
        // Each stops itself and the other one, at the same time.
        let stop_both = move || {
            own_again.stop();
            other_again.stop();
            say.send(()).unwrap();
            2
        };
        let (own_too, other_too) = (Arc::clone(&own), Arc::clone(&other));
        own.begin(|| Some(()), move |()| stop_both()).unwrap();
        let begun = other.begin(
            || Some(()),
            move |()| {
                other_too.stop();
                own_too.stop();
                say_again.send(()).unwrap();
                2
            },
        );
        begun.unwrap();
        assert!(said.recv().is_ok());
        own.stop();
        other.stop();
    }

    #[test]
    fn stop_in_a_child_of_a_callback_waits_for_the_callbacks_of_the_child() {
        let caller = Caller::default();
        let (say, said) = channel();
        let call = move |()| {
            match fork::fork().unwrap() {
                fork::Fork::Child => end_of_child(),
                fork::Fork::Parent(child) => say.send(child).unwrap(),
            }
            CANCEL
        };
        caller.begin(|| Some(()), call).unwrap();
        let child = rustix::process::Pid::from_raw(said.recv().unwrap());
        let ended = rustix::process::waitpid(child, rustix::process::WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(ended.1.terminating_signal(), Some(Signal::KILL.as_raw()));
        caller.stop();
    }

    /// Kills the process if it waited for its callback, and aborts if it did not.
    fn end_of_child() -> ! {
        let (say, said) = channel();
        let has_returned = Arc::new(AtomicBool::new(false));
        let (own, returns) = (Caller::default(), Arc::clone(&has_returned));
        let call = move |()| {
            say.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            returns.store(true, Ordering::Relaxed);
            CANCEL
        };
        own.begin(|| Some(()), call).unwrap();
        said.recv().unwrap();
        own.stop();
        if has_returned.load(Ordering::Relaxed) {
            // Without destructors: what they would end is the parent's.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
        }
        std::process::abort()
    }
}
