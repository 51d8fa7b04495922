//! A pool of threads that call the callbacks of many resources.
//!
//! One thread leads: it waits until something is to be told, appoints another thread to lead, and calls. So a callback that waits delays
//! none of another resource, and there are as many threads as callbacks run at a time, and one. A thread that has called looks whether
//! there is more to be told of the same resource before it does anything else.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use beeline_ffi::Outcome;
use beeline_mmio::{ThisProcess, thread};

use super::{CALLS, Call, Caller, Looked, Progress, is_in_callback};
use crate::edge::failure;
use crate::errors;

/// How long a thread waits to be appointed before it ends.
const PATIENCE: Duration = Duration::from_secs(2);
/// Threads that wait to be appointed.
const MAX_IDLE: usize = 2;

/// What the leader waits for.
pub(crate) trait Events: Send + Sync + 'static {
    /// Waits until `look` finds something. It is called whenever something may have happened.
    fn wait(&self, look: &mut dyn FnMut() -> bool);
    /// Has who waits look again.
    fn look_again(&self);
}

/// The threads, and the resources that they look at.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    /// Somebody is to lead, or a thread has ended.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    resources: BTreeMap<u64, Weak<Progress>>,
    next: u64,
    /// The resource that was told of last.
    last: u64,
    has_leader: bool,
    threads: usize,
    idle: usize,
}

/// What the leader has found.
enum Found {
    Call(Arc<Progress>, Call),
    /// No resource is left.
    Nothing,
}

impl Pool {
    /// Begins to call for a resource. `next` looks whether something is to be told, and `call` tells it.
    ///
    /// # Errors
    /// The process is out of threads.
    pub(crate) fn begin<E: Send + 'static>(
        self: &Arc<Self>,
        caller: &Caller,
        events: &Arc<impl Events>,
        mut next: impl FnMut() -> Option<E> + Send + 'static,
        call: impl Fn(E) -> u32 + Clone + Send + 'static,
    ) -> Outcome<()> {
        let look = move || {
            let (event, call) = (next()?, call.clone());
            Some(Box::new(move || call(event)) as Call)
        };
        caller.0.lock().look = Some(Box::new(look));
        let mut state = self.lock();
        state.next += 1;
        let number = state.next;
        state.resources.insert(number, Arc::downgrade(&caller.0));
        // A thread that has stopped to lead and ends is none that leads. One that is idle leads once it finds that nobody does.
        if state.has_leader || state.idle > 0 {
            drop(state);
            events.look_again();
            return Ok(());
        }
        let begun = self.start(&mut state, events);
        if begun.is_err() {
            state.resources.remove(&number);
            drop(state);
            caller.0.lock().look = None;
        }
        begun
    }

    /// Waits until every thread has ended, after the callbacks of all resources were stopped. In a callback it waits for nobody.
    pub(crate) fn end(&self, events: &impl Events) {
        // What could not be removed is not called any more.
        self.lock().resources.clear();
        // In a callback, too: who leads has the session until it looks.
        events.look_again();
        let mut state = self.lock();
        while state.threads > 0 && !is_in_callback() {
            drop(state);
            events.look_again();
            state = self.lock();
            self.changed.notify_all();
            // With a bound: one that has not begun to wait yet is not woken.
            let waited = self.changed.wait_timeout(state, Duration::from_millis(10));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts a thread that leads.
    fn start(self: &Arc<Self>, state: &mut State, events: &Arc<impl Events>) -> Outcome<()> {
        let (pool, events) = (Arc::clone(self), Arc::clone(events));
        let begun = thread::start("beeline-callback", move || {
            CALLS.set(Some(ThisProcess::get()));
            pool.work(&events);
            // Before the end is told: whoever waits for it leaves the fabric.
            drop(events);
            pool.lock().threads -= 1;
            pool.changed.notify_all();
        });
        begun.map_err(|error| failure(errors::SYSTEM, format!("no thread for callbacks: {error}")))?;
        state.threads += 1;
        state.has_leader = true;
        Ok(())
    }

    /// Leads and calls by turns, until this thread is one too many.
    fn work(self: &Arc<Self>, events: &Arc<impl Events>) {
        loop {
            let mut found = None;
            events.wait(&mut || {
                found = self.find();
                found.is_some()
            });
            let Some(Found::Call(progress, call)) = found else {
                if self.resign() {
                    return;
                }
                continue;
            };
            self.appoint(events);
            progress.run(call);
            drop(progress);
            if !self.follow() {
                return;
            }
        }
    }

    /// Something to be told, of each resource in its turn.
    fn find(&self) -> Option<Found> {
        let mut state = self.lock();
        let (last, mut over, mut found) = (state.last, Vec::new(), None);
        let behind = state.resources.range((Excluded(last), Unbounded));
        for (number, progress) in behind.chain(state.resources.range(..=last)) {
            let looked = progress.upgrade().map(|progress| (progress.look(), progress));
            match looked {
                Some((Looked::Call(call), progress)) => {
                    found = Some((*number, Found::Call(progress, call)));
                    break;
                }
                Some((Looked::Nothing, _)) => {}
                Some((Looked::Over, _)) | None => over.push(*number),
            }
        }
        over.iter().for_each(|number| {
            state.resources.remove(number);
        });
        let Some((number, found)) = found else {
            return state.resources.is_empty().then_some(Found::Nothing);
        };
        state.last = number;
        Some(found)
    }

    /// Stops to lead where there is nothing to be looked at; whether that is so.
    fn resign(&self) -> bool {
        let mut state = self.lock();
        let is_over = state.resources.is_empty();
        if is_over {
            state.has_leader = false;
            self.changed.notify_all();
        }
        is_over
    }

    /// Has another thread lead. Without one the thread that calls does so after its callback.
    fn appoint(self: &Arc<Self>, events: &Arc<impl Events>) {
        let mut state = self.lock();
        state.has_leader = false;
        if state.idle > 0 {
            self.changed.notify_one();
        } else {
            let _out_of_threads = self.start(&mut state, events);
        }
    }

    /// Waits to be appointed; `false` if this thread is to end.
    fn follow(&self) -> bool {
        let mut state = self.lock();
        if state.has_leader && state.idle >= MAX_IDLE {
            return false;
        }
        state.idle += 1;
        let mut has_time = true;
        while state.has_leader && has_time {
            let (guard, waited) =
                self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            has_time = !waited.timed_out();
        }
        state.idle -= 1;
        let leads = !state.has_leader;
        state.has_leader = true;
        leads
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::callback::CANCEL;
    use crate::callback::tests::stops_while_a_callback_runs;

    /// Something that happens is a change of a number.
    #[derive(Default)]
    struct Changes {
        count: Mutex<u64>,
        changed: Condvar,
    }

    impl Events for Changes {
        fn wait(&self, look: &mut dyn FnMut() -> bool) {
            loop {
                let seen = *self.count.lock().unwrap();
                if look() {
                    return;
                }
                let count = self.count.lock().unwrap();
                drop(self.changed.wait_while(count, |count| *count == seen).unwrap());
            }
        }

        fn look_again(&self) {
            *self.count.lock().unwrap() += 1;
            self.changed.notify_all();
        }
    }

    #[derive(Default)]
    struct Fixture {
        pool: Arc<Pool>,
        changes: Arc<Changes>,
    }

    impl Fixture {
        /// A resource that tells what is sent to it.
        fn resource(&self, call: impl Fn(u32) -> u32 + Clone + Send + 'static) -> (Caller, Sender<u32>) {
            let (tell, told) = channel();
            let (caller, next) = (Caller::default(), move || Receiver::try_recv(&told).ok());
            self.pool.begin(&caller, &self.changes, next, call).unwrap();
            (caller, tell)
        }

        fn tell(&self, to: &Sender<u32>, what: u32) {
            to.send(what).unwrap();
            self.changes.look_again();
        }
    }

    #[test]
    fn callback_that_waits_delays_no_other_and_few_threads_call_for_many_resources() {
        const RESOURCES: u32 = 2000;
        let fixture = Fixture::default();
        let (say, said) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let (may_go_on, says_last) = (Arc::new(Mutex::new(may_go_on)), say.clone());
        let (waits, tell_waits) = fixture.resource(move |number| {
            may_go_on.lock().unwrap().recv().unwrap();
            says_last.send(RESOURCES + number).unwrap();
            2
        });
        let others: Vec<_> = (0..RESOURCES)
            .map(|_| {
                let say = say.clone();
                fixture.resource(move |number| {
                    say.send(number).unwrap();
                    2
                })
            })
            .collect();
        fixture.tell(&tell_waits, 0);
        for (number, (_, tell)) in (0..).zip(&others) {
            fixture.tell(tell, number);
        }
        let mut told: Vec<_> = said.iter().take(RESOURCES as usize).collect();
        let threads = fixture.pool.lock().threads;
        told.sort_unstable();
        assert!(told.into_iter().eq(0..RESOURCES));
        assert!(threads < 50, "{threads} threads");
        go_on.send(()).unwrap();
        assert_eq!(said.recv(), Ok(RESOURCES));
        waits.stop();
        others.iter().for_each(|(caller, _)| caller.stop());
        fixture.pool.end(&*fixture.changes);
        assert_eq!(fixture.pool.lock().threads, 0);
    }

    #[test]
    fn resource_that_begins_while_the_last_thread_ends_is_called() {
        let fixture = Fixture::default();
        for number in 0..5000 {
            let (say, said) = channel();
            let (caller, tell) = fixture.resource(move |number| {
                say.send(number).unwrap();
                2
            });
            fixture.tell(&tell, number);
            assert_eq!(said.recv_timeout(Duration::from_secs(60)), Ok(number));
            caller.stop();
            // The leader finds that nothing is left, about when the next resource begins.
            fixture.changes.look_again();
        }
        fixture.pool.end(&*fixture.changes);
    }

    #[test]
    fn end_waits_for_no_resource_that_was_not_stopped() {
        let fixture = Fixture::default();
        let (_caller, _tell) = fixture.resource(|_| 2);
        fixture.pool.end(&*fixture.changes);
        assert_eq!(fixture.pool.lock().threads, 0);
    }

    #[test]
    fn callbacks_of_one_resource_come_in_their_order() {
        const EVENTS: u32 = 2000;
        let fixture = Fixture::default();
        let resources: Vec<_> = (0..4)
            .map(|_| {
                let (say, said) = channel();
                let is_called = Arc::new(Mutex::new(()));
                let resource = fixture.resource(move |number| {
                    let _alone = is_called.try_lock().unwrap();
                    say.send(number).unwrap();
                    2
                });
                (resource, said)
            })
            .collect();
        for number in 0..EVENTS {
            resources.iter().for_each(|((_, tell), _)| fixture.tell(tell, number));
        }
        for ((caller, _), said) in &resources {
            assert!(said.iter().take(EVENTS as usize).eq(0..EVENTS));
            caller.stop();
        }
        fixture.pool.end(&*fixture.changes);
    }

    #[test]
    fn stop_waits_for_the_callback_that_runs_and_none_begins_afterwards() {
        let fixture = Fixture::default();
        stops_while_a_callback_runs(|call| {
            let (caller, tell) = fixture.resource(move |number| call(number));
            let fixture = &fixture;
            (caller, move |number| fixture.tell(&tell, number))
        });
    }

    #[test]
    fn callback_that_cancels_is_the_last_and_one_may_stop_itself_and_others() {
        let fixture = Fixture::default();
        let (say, said) = channel();
        let says_cancelled = say.clone();
        let (cancels, tell) = fixture.resource(move |number| {
            says_cancelled.send(number).unwrap();
            CANCEL
        });
        tell.send(1).unwrap();
        // What it looks at is dropped.
        while tell.send(2).is_ok() {
            fixture.changes.look_again();
        }
        let callers: Arc<[Caller; 2]> = Arc::default();
        for (number, caller) in (3..).zip(&*callers) {
            let (all, say) = (Arc::clone(&callers), say.clone());
            let mut numbers = number..=number;
            let call = move |number| {
                all.iter().for_each(Caller::stop);
                say.send(number).unwrap();
                2
            };
            fixture.pool.begin(caller, &fixture.changes, move || numbers.next(), call).unwrap();
        }
        assert_eq!(said.recv(), Ok(1));
        assert!(said.recv().is_ok_and(|number| number > 2));
        callers.iter().chain([&cancels]).for_each(Caller::stop);
        fixture.pool.end(&*fixture.changes);
    }
}
