//! Callbacks for notifications, on a thread of their own: not the domain's, which must not wait. So a callback may use the
//! whole API: call over the same connection, close it, connect to others, offer and withdraw.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_mmio::thread::Running;

use crate::notifications::Notifications;
use crate::notify::{Notification, NotificationsEnded};

/// A thread that gives notifications to a callback. Dropping it ends the thread; what was not given stays to be taken.
///
/// The drop waits for the callback that is running, unless the callback itself drops it.
#[derive(Debug)]
pub struct CallbackThread {
    notifications: Notifications,
    is_stopped: Arc<AtomicBool>,
    thread: Option<Running<()>>,
}

impl Notifications {
    /// Starts a thread that gives each notification to `callback`, one at a time and in order, and at last the reason why no
    /// more will come. All signals are blocked on it but those that its own faults raise.
    ///
    /// A panic of the callback is reported to the log, and the next notification is given. A callback that owns the
    /// [`crate::Connection`] keeps it open for as long as the thread runs.
    ///
    /// # Errors
    /// The process is out of threads.
    pub fn deliver_to<F>(self, callback: F) -> io::Result<CallbackThread>
    where
        F: FnMut(Result<Notification, NotificationsEnded>) + Send + 'static,
    {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let thread = beeline_mmio::thread::start("beeline-notify", {
            let (notifications, is_stopped) = (self.clone(), Arc::clone(&is_stopped));
            move || deliver(&notifications, &is_stopped, callback)
        })?;
        Ok(CallbackThread { notifications: self, is_stopped, thread: Some(thread) })
    }
}

fn deliver(
    notifications: &Notifications,
    is_stopped: &AtomicBool,
    mut callback: impl FnMut(Result<Notification, NotificationsEnded>),
) {
    let mut give = |given| {
        if catch_unwind(AssertUnwindSafe(|| callback(given))).is_err() {
            tracing::error!("a callback for notifications panicked");
        }
    };
    loop {
        // Relaxed: written and read under the lock of the queue, except that a callback may have stopped its own thread.
        match notifications.next_unless(|| is_stopped.load(Ordering::Relaxed)) {
            Ok(Some(notification)) => give(Ok(notification)),
            Ok(None) => return,
            Err(ended) => return give(Err(ended)),
        }
    }
}

impl CallbackThread {
    /// No callback begins from here on. Unlike the drop this does not wait for the one that is running, which may wait for something
    /// that the caller is about to end.
    pub fn stop(&self) {
        // In a forked child there is no such thread, and the lock may be one that nobody gives back.
        if self.notifications.is_own() {
            self.notifications.interrupt(|| self.is_stopped.store(true, Ordering::Relaxed));
        }
    }
}

impl Drop for CallbackThread {
    fn drop(&mut self) {
        self.stop();
        let Some(thread) = self.thread.take() else { return };
        if !self.notifications.is_own() {
            // In a forked child there is no such thread, and its stack serves other uses.
            std::mem::forget(thread);
            return;
        }
        if !thread.is_this_thread() && thread.join().is_err() {
            tracing::error!("the thread of callbacks panicked");
        }
    }
}
