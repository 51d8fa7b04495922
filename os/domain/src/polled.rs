//! Readiness by descriptor: something to wait for stands in a poll or epoll set beside other descriptors.
//!
//! The other side's stores make nothing readable by themselves: as with a sleep, who waits pays. [`Polled::arm`] announces
//! the wait, orders the announcement before a last look, and takes that look; from then on the other side's next store
//! ends in a signal (docs/decisions/0020-readiness-by-descriptor.md).

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use crate::Event;

/// Something that can be waited for by descriptor.
pub trait Source {
    /// Has `event` signalled when there may be something to do, then looks. What comes after the look is signalled; what
    /// came before it is found by it.
    fn listen(&mut self, event: &Event) -> Armed;

    /// Takes back what [`Source::listen`] asked for. A signal that is on its way may still come.
    fn unlisten(&mut self);
}

/// What there is to do before the descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Armed {
    /// There is something: take it first. The descriptor is readable.
    Ready,
    /// There is nothing. The descriptor becomes readable when there may be something.
    Wait,
    /// As [`Armed::Wait`], but arm again after this time at the latest: something is due then that nobody signals.
    WaitAtMost(Duration),
}

impl Armed {
    /// The timeout for `poll` in milliseconds: 0 for [`Armed::Ready`], -1 for [`Armed::Wait`].
    pub fn timeout_ms(self) -> i32 {
        match self {
            Armed::Ready => 0,
            Armed::Wait => -1,
            Armed::WaitAtMost(limit) => {
                // Rounded up: a poll that ends too early finds nothing and is repeated at once.
                i32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
            }
        }
    }
}

/// A descriptor that is readable whenever there may be something to do at a source, which is kept elsewhere.
///
/// Every call is given the same source. [`Polled`] keeps both together, for whoever can.
#[derive(Debug)]
pub struct Readiness {
    event: Event,
    is_armed: bool,
}

impl Readiness {
    /// Makes the descriptor, which is readable.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Readiness { event: Event::new()?, is_armed: false })
    }

    /// Makes the descriptor unreadable if there is nothing to do at `source`, until there is. Some microseconds, most of
    /// them a membarrier; for who is about to wait.
    pub fn arm(&mut self, source: &mut impl Source) -> Armed {
        // Before the last look: what is signalled after it must stay.
        self.event.clear();
        self.is_armed = true;
        let armed = source.listen(&self.event);
        if armed == Armed::Ready {
            self.disarm(source);
        }
        armed
    }

    /// Waits until the descriptor is readable, for at most `limit`; whether it is.
    pub fn wait(&self, limit: Duration) -> bool {
        self.event.wait(limit)
    }

    /// Makes the descriptor readable, and spares the other side the wake-up. Not needed after a wait.
    pub fn disarm(&mut self, source: &mut impl Source) {
        self.withdraw(source);
        self.event.signal();
    }

    /// Takes back what the last [`Readiness::arm`] announced, and leaves the descriptor as it is: for a source that is
    /// about to be dropped.
    pub fn withdraw(&mut self, source: &mut impl Source) {
        if self.is_armed {
            source.unlisten();
            self.is_armed = false;
        }
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// A source together with a descriptor that is readable whenever there may be something to do.
///
/// Before each wait call [`Polled::arm`]. The descriptor is readable at all other times, so that who forgets it spins and
/// misses nothing. It may be readable for no reason; look, and arm again. Level and edge triggered sets both do.
///
/// Whatever uses the source by `&mut` disarms it first, which costs a write to an eventfd once for each wait.
#[derive(Debug)]
pub struct Polled<S: Source> {
    source: S,
    readiness: Readiness,
}

impl<S: Source> Polled<S> {
    /// Puts a descriptor beside `source`.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new(source: S) -> io::Result<Self> {
        Ok(Polled { source, readiness: Readiness::new()? })
    }

    /// Makes the descriptor unreadable if there is nothing to do, until there is. Some microseconds, most of them a
    /// membarrier; for who is about to wait.
    pub fn arm(&mut self) -> Armed {
        self.readiness.arm(&mut self.source)
    }

    /// Makes the descriptor readable, and spares the other side the wake-up. Not needed after a wait.
    pub fn disarm(&mut self) {
        self.readiness.disarm(&mut self.source);
    }
}

impl<S: Source> Deref for Polled<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.source
    }
}

impl<S: Source> DerefMut for Polled<S> {
    /// Disarms: a source that is replaced or swapped takes no announcement with it that names this descriptor.
    fn deref_mut(&mut self) -> &mut S {
        if self.readiness.is_armed {
            self.disarm();
        }
        &mut self.source
    }
}

impl<S: Source> AsFd for Polled<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }
}

impl<S: Source> AsRawFd for Polled<S> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<S: Source> Drop for Polled<S> {
    fn drop(&mut self) {
        self.readiness.withdraw(&mut self.source);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::event::tests::is_readable;

    /// Says what it is told to, and keeps the event.
    struct Script(Armed, Rc<RefCell<Option<Event>>>);

    impl Source for Script {
        fn listen(&mut self, event: &Event) -> Armed {
            *self.1.borrow_mut() = Some(event.clone());
            self.0
        }

        fn unlisten(&mut self) {
            *self.1.borrow_mut() = None;
        }
    }

    #[test]
    fn descriptor_is_readable_unless_armed_with_nothing_to_do() {
        let listening = Rc::default();
        let mut polled = Polled::new(Script(Armed::Wait, Rc::clone(&listening))).unwrap();
        assert!(is_readable(&polled), "not armed yet");
        assert_eq!(polled.arm(), Armed::Wait);
        assert!(!is_readable(&polled));
        listening.borrow().as_ref().unwrap().signal();
        assert!(is_readable(&polled));
        polled.0 = Armed::Ready;
        assert_eq!(polled.arm(), Armed::Ready);
        assert!(is_readable(&polled) && listening.borrow().is_none());
        polled.0 = Armed::Wait;
        assert_eq!(polled.arm(), Armed::Wait);
        polled.disarm();
        assert!(is_readable(&polled) && listening.borrow().is_none());
        assert_eq!(polled.arm(), Armed::Wait);
        drop(polled);
        assert!(listening.borrow().is_none(), "a drop disarms");
    }

    #[test]
    fn source_that_is_swapped_signals_the_descriptor_it_is_beside() {
        let scripts: [Rc<RefCell<Option<Event>>>; 2] = Default::default();
        let [mut one, mut other] =
            scripts.each_ref().map(|script| Polled::new(Script(Armed::Wait, Rc::clone(script))).unwrap());
        assert_eq!((one.arm(), other.arm()), (Armed::Wait, Armed::Wait));
        std::mem::swap(&mut *one, &mut *other);
        assert!(scripts.iter().all(|script| script.borrow().is_none()), "both are disarmed");
        assert!(is_readable(&one) && is_readable(&other), "and a wait that is not armed ends at once");
        assert_eq!((one.arm(), other.arm()), (Armed::Wait, Armed::Wait));
        // The first script is now beside the second descriptor.
        scripts[0].borrow().as_ref().unwrap().signal();
        assert!(is_readable(&other) && !is_readable(&one));
    }

    #[test]
    fn timeouts_are_those_of_poll() {
        let millis = |micros| Armed::WaitAtMost(Duration::from_micros(micros)).timeout_ms();
        assert_eq!((Armed::Ready.timeout_ms(), Armed::Wait.timeout_ms()), (0, -1));
        assert_eq!((millis(0), millis(1), millis(1000), millis(1001)), (0, 1, 1, 2));
        assert_eq!(Armed::WaitAtMost(Duration::MAX).timeout_ms(), i32::MAX);
    }
}
