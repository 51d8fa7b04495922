//! What an owner told a client unasked, until the client's program takes it.
//!
//! The domain's thread puts each notification in, checked and numbered without a gap; any other thread takes it. The owner
//! may have [`MAX_UNTAKEN_NOTIFICATIONS`] untaken, and is told when some were taken; one that sends more loses its
//! connection. So what waits here is bounded, and answers never wait behind it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::Event;
use crate::error::MisuseError;
use crate::notify::{Notification, NotificationsEnded};
use crate::wire::{
    MAX_NOTIFICATION_BYTES, MAX_NOTIFICATION_FDS, MAX_UNTAKEN_FDS, MAX_UNTAKEN_NOTIFICATIONS, WireError,
};

/// The owner is told after so many have been taken: a quarter of what it may send, so that it need not stop.
const TELL_AFTER: u32 = MAX_UNTAKEN_NOTIFICATIONS as u32 / 4;
/// And after so many descriptors: when all have been taken, there is room for another notification with as many as one may
/// have.
const TELL_AFTER_FDS: usize = MAX_UNTAKEN_FDS / 4;
const _: () = assert!(MAX_UNTAKEN_FDS - TELL_AFTER_FDS >= MAX_NOTIFICATION_FDS);

/// Notifications of one connection that wait for its program.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Notification>,
    waiting_fds: usize,
    /// Notifications that came in all, and those that were taken.
    received: u32,
    taken: u32,
    /// Taken since the owner was told.
    untold: u32,
    untold_fds: usize,
    /// Answers that came in all.
    answers: u64,
    /// Notifications that the owner accepted in all, by its goodbye.
    said: Option<u32>,
    ended: Option<NotificationsEnded>,
    /// Readable while there is something to take or the end is known; made when somebody asks for it.
    event: Option<Event>,
}

/// How a connection went, as far as its thread can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Going {
    ClosedHere,
    Closed,
    Died,
    Broken(WireError),
    Lost,
}

/// What was taken, and what the owner is to be told: the number of notifications taken in all.
pub(crate) struct Taken {
    pub notification: Notification,
    pub tell: Option<u32>,
}

impl Notices {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is finished before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts in what the owner sent, and takes the descriptors; an error is the end of the connection.
    pub(crate) fn receive(
        &self,
        serial: u32,
        payload: &[u8],
        fds: &mut Vec<OwnedFd>,
    ) -> Result<(), WireError> {
        let (bytes, fd_count) = (payload.len(), fds.len());
        if bytes > MAX_NOTIFICATION_BYTES || fd_count > MAX_NOTIFICATION_FDS {
            return Err(WireError::LargeNotification { bytes, fds: fd_count });
        }
        let mut state = self.lock();
        let expected = state.received.wrapping_add(1);
        if serial != expected {
            return Err(WireError::Sequence { expected, found: serial });
        }
        let is_full = state.waiting.len() >= MAX_UNTAKEN_NOTIFICATIONS;
        if is_full || state.waiting_fds + fd_count > MAX_UNTAKEN_FDS {
            return Err(WireError::Flood);
        }
        let answers_before = state.answers;
        state.received = serial;
        state.waiting_fds += fd_count;
        let fds = std::mem::take(fds);
        state.waiting.push_back(Notification { payload: payload.to_vec(), fds, answers_before });
        self.tell_of_change(&state);
        Ok(())
    }

    /// Counts an answer of the owner; what comes later came after it.
    pub(crate) fn count_answer(&self) {
        self.lock().answers += 1;
    }

    /// The owner's goodbye says how many notifications it accepted.
    pub(crate) fn goodbye(&self, said: u32) {
        self.lock().said = Some(said);
    }

    /// No further notification will come. The first reason counts.
    pub(crate) fn end(&self, going: Going) {
        let mut state = self.lock();
        let ended = match (going, state.said) {
            (Going::ClosedHere, _) => NotificationsEnded::ClosedHere,
            (Going::Died, _) => NotificationsEnded::OwnerDied,
            (Going::Lost, _) => NotificationsEnded::Misuse(MisuseError::DescriptorLost),
            (Going::Broken(error), _) => NotificationsEnded::Broken(error),
            (Going::Closed, Some(said)) if said == state.received => NotificationsEnded::Closed,
            (Going::Closed, said) => {
                NotificationsEnded::CutOff { missing: said.map(|said| said.wrapping_sub(state.received)) }
            }
        };
        state.ended.get_or_insert(ended);
        self.tell_of_change(&state);
    }

    fn tell_of_change(&self, state: &State) {
        self.changed.notify_all();
        if let Some(event) = &state.event {
            event.signal();
        }
    }

    /// Takes the next one, if there is one.
    pub(crate) fn take(&self) -> Result<Option<Taken>, NotificationsEnded> {
        self.lock().take()
    }

    /// Takes the next one, waiting for it until `deadline` (`None`: for ever), or until `gives_up` says so, which is asked
    /// again after each [`Notices::interrupt`].
    pub(crate) fn wait(
        &self,
        deadline: Option<Instant>,
        gives_up: impl Fn() -> bool,
    ) -> Result<Option<Taken>, NotificationsEnded> {
        let mut state = self.lock();
        loop {
            if gives_up() {
                return Ok(None);
            }
            if let Some(taken) = state.take()? {
                return Ok(Some(taken));
            }
            state = match deadline {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Does `change` and has all who wait ask again whether they give up.
    pub(crate) fn interrupt(&self, change: impl FnOnce()) {
        // With the lock, so that nobody is between its question and its wait.
        let _state = self.lock();
        change();
        self.changed.notify_all();
    }

    /// The descriptor to wait on.
    pub(crate) fn event(&self) -> io::Result<Event> {
        let mut state = self.lock();
        if let Some(event) = &state.event {
            return Ok(event.clone());
        }
        let event = Event::new()?;
        state.event = Some(event.clone());
        state.clear_if_idle();
        Ok(event)
    }
}

impl State {
    fn take(&mut self) -> Result<Option<Taken>, NotificationsEnded> {
        let Some(notification) = self.waiting.pop_front() else {
            return self.ended.map_or(Ok(None), Err);
        };
        let fds = notification.fds.len();
        self.waiting_fds -= fds;
        self.taken = self.taken.wrapping_add(1);
        self.untold += 1;
        self.untold_fds += fds;
        let tells = self.untold >= TELL_AFTER || self.untold_fds >= TELL_AFTER_FDS;
        if tells {
            (self.untold, self.untold_fds) = (0, 0);
        }
        self.clear_if_idle();
        Ok(Some(Taken { notification, tell: tells.then_some(self.taken) }))
    }

    fn clear_if_idle(&self) {
        if let Some(event) = &self.event
            && self.waiting.is_empty()
            && self.ended.is_none()
        {
            event.clear();
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::event::tests::is_readable;

    fn fd() -> OwnedFd {
        Event::new().unwrap().as_fd().try_clone_to_owned().unwrap()
    }

    fn fds(count: usize) -> Vec<OwnedFd> {
        (0..count).map(|_| fd()).collect()
    }

    #[test]
    fn notifications_are_numbered_without_a_gap() {
        let notices = Notices::default();
        notices.receive(1, b"a", &mut vec![]).unwrap();
        for found in [0, 1, 3, u32::MAX] {
            let expected = 2;
            assert_eq!(
                notices.receive(found, b"", &mut vec![]),
                Err(WireError::Sequence { expected, found })
            );
        }
        notices.lock().received = u32::MAX;
        notices.receive(0, b"b", &mut vec![]).unwrap();
    }

    #[test]
    fn what_an_owner_can_make_a_client_hold_is_bounded() {
        let notices = Notices::default();
        let long = vec![0; MAX_NOTIFICATION_BYTES + 1];
        assert!(matches!(notices.receive(1, &long, &mut vec![]), Err(WireError::LargeNotification { .. })));
        let mut many = fds(MAX_NOTIFICATION_FDS + 1);
        assert!(matches!(notices.receive(1, b"", &mut many), Err(WireError::LargeNotification { .. })));
        let mut serial = 0;
        for _ in 0..MAX_UNTAKEN_FDS / MAX_NOTIFICATION_FDS {
            serial += 1;
            notices.receive(serial, &long[1..], &mut fds(MAX_NOTIFICATION_FDS)).unwrap();
        }
        assert_eq!(notices.receive(serial + 1, b"", &mut fds(1)), Err(WireError::Flood));
        while (serial as usize) < MAX_UNTAKEN_NOTIFICATIONS {
            serial += 1;
            notices.receive(serial, b"", &mut vec![]).unwrap();
        }
        assert_eq!(notices.receive(serial + 1, b"", &mut vec![]), Err(WireError::Flood));
        notices.take().unwrap().unwrap();
        notices.receive(serial + 1, b"", &mut vec![]).unwrap();
    }

    #[test]
    fn owner_is_told_before_it_has_to_stop() {
        let notices = Notices::default();
        let tell = |notices: &Notices| notices.take().unwrap().unwrap().tell;
        for serial in 1..=TELL_AFTER {
            notices.receive(serial, b"", &mut vec![]).unwrap();
        }
        for taken in 1..=TELL_AFTER {
            assert_eq!(tell(&notices), (taken == TELL_AFTER).then_some(taken));
        }
        // Few with many descriptors fill what they may fill just as well.
        for serial in TELL_AFTER + 1..=TELL_AFTER + 2 {
            notices.receive(serial, b"", &mut fds(MAX_NOTIFICATION_FDS)).unwrap();
        }
        assert_eq!((tell(&notices), tell(&notices)), (None, Some(TELL_AFTER + 2)));
    }

    #[test]
    fn descriptor_is_readable_while_there_is_something_to_take_and_at_the_end() {
        let notices = Notices::default();
        notices.receive(1, b"", &mut vec![]).unwrap();
        let event = notices.event().unwrap();
        assert!(is_readable(&event));
        notices.receive(2, b"", &mut vec![]).unwrap();
        notices.take().unwrap();
        assert!(is_readable(&event), "one more waits");
        notices.take().unwrap();
        assert!(!is_readable(&event) && notices.take().unwrap().is_none());
        notices.receive(3, b"", &mut vec![]).unwrap();
        assert!(is_readable(&event));
        notices.end(Going::Died);
        assert!(notices.take().unwrap().is_some(), "what came before the end");
        assert!(is_readable(&event));
        assert!(matches!(notices.take(), Err(NotificationsEnded::OwnerDied)));
        assert!(is_readable(notices.event().unwrap()));
    }

    #[test]
    fn end_says_whether_something_is_missing() {
        for (said, ended) in [
            (Some(1), NotificationsEnded::Closed),
            (Some(4), NotificationsEnded::CutOff { missing: Some(3) }),
            (None, NotificationsEnded::CutOff { missing: None }),
        ] {
            let notices = Notices::default();
            notices.receive(1, b"", &mut vec![]).unwrap();
            said.into_iter().for_each(|said| notices.goodbye(said));
            notices.end(Going::Closed);
            notices.end(Going::Died);
            assert!(notices.take().unwrap().is_some());
            assert_eq!(notices.take().map(|taken| taken.is_some()), Err(ended));
        }
    }

    #[test]
    fn notification_says_how_many_answers_came_before_it() {
        let notices = Notices::default();
        notices.receive(1, b"", &mut vec![]).unwrap();
        notices.count_answer();
        notices.receive(2, b"", &mut vec![]).unwrap();
        let before = || notices.take().unwrap().unwrap().notification.answers_before;
        assert_eq!((before(), before()), (0, 1));
    }
}
