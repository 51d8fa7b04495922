//! A thread that drops what others must not take the time to drop.
//!
//! The last handle of a mapping frees its pages, the last descriptor of a memfd too, and closing a descriptor of a peer takes
//! as long as the peer has arranged for: a socket may linger, a file may belong to a program that does not answer.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use beeline_mmio::{PerProcess, thread};

/// Drops things on a thread of its own, one in each process. Clones share the thread, which ends with the last of them.
#[derive(Clone, Debug, Default)]
pub struct Disposer(Arc<PerProcess<Option<Sender<Box<dyn Any + Send>>>>>);

impl Disposer {
    /// Starts the thread now, so that no later call has to.
    pub(crate) fn start(&self) {
        self.sender();
    }

    /// Has `thing` dropped elsewhere; it never waits for that. Where the process is out of threads it is dropped here.
    pub fn dispose(&self, thing: impl Send + 'static) {
        if let Some(sender) = self.sender() {
            // The thread lives as long as the sender; if it has panicked, what it is sent is dropped here.
            let _ = sender.send(Box::new(thing));
        }
    }

    #[cfg(test)]
    #[cfg(not(loom))]
    pub(crate) fn is_started(&self) -> bool {
        self.0.get().is_some()
    }

    fn sender(&self) -> Option<&Sender<Box<dyn Any + Send>>> {
        self.0.get_or_init(start).as_ref()
    }
}

fn start() -> Option<Sender<Box<dyn Any + Send>>> {
    let (sender, things) = channel::<Box<dyn Any + Send>>();
    match thread::start("beeline-disposer", move || things.into_iter().for_each(drop)) {
        Ok(_detached) => Some(sender),
        Err(error) => {
            tracing::warn!(%error, "no thread to drop memory on; whoever drops it takes the time");
            None
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::mpsc::Receiver;
    use std::thread::ThreadId;

    use super::*;

    /// Says where it is dropped, once it may be.
    struct Telling(Sender<ThreadId>, Receiver<()>);

    impl Drop for Telling {
        fn drop(&mut self) {
            self.1.recv().unwrap();
            self.0.send(std::thread::current().id()).unwrap();
        }
    }

    #[test]
    fn things_are_dropped_in_order_elsewhere_and_nobody_waits() {
        let (disposer, (said, heard)) = (Disposer::default(), channel());
        let may: Vec<_> = (0..2)
            .map(|_| {
                let (may, told) = channel();
                disposer.clone().dispose(Telling(said.clone(), told));
                may
            })
            .collect();
        drop(disposer);
        assert!(heard.try_recv().is_err(), "nothing is dropped yet, and the calls are over");
        may.iter().for_each(|may| may.send(()).unwrap());
        let threads: Vec<ThreadId> = (0..2).map(|_| heard.recv().unwrap()).collect();
        assert!(threads[0] == threads[1] && threads[0] != std::thread::current().id());
    }
}
