//! One connection of a set: what the program asked to be told of it, and whether that is to be told now.

use rustix::event::epoll::{Event, EventData, EventFlags};

use super::watched::Watched;

/// What a window's bytes are told as.
const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDNORM);
/// What an edge tells beside it, since natively one shows the whole state: a connection on its window can be written to, or says otherwise
/// when it is tried.
const WRITABLE: EventFlags = EventFlags::OUT.union(EventFlags::WRNORM);

/// A registration as the program made it.
#[derive(Debug)]
pub(crate) struct Member<W> {
    /// None while the connection has not come so far that its bytes may come by a window, and for what is none.
    watched: Option<W>,
    /// Which connection that was.
    id: u64,
    asked: EventFlags,
    data: u64,
    /// What an edge was last reported at: bytes taken, and arrivals. `None` is armed.
    reported: Option<(u64, u64)>,
    /// Whether its sender knows the set's sleeper.
    pub(crate) has_sleeper: bool,
    /// Its place in the list of those that may have news.
    pub(crate) active_at: Option<usize>,
    /// Taken out by the program, and kept in the list for when it is put in again. Nothing of it is told.
    pub(crate) is_parked: bool,
}

impl<W: Watched> Member<W> {
    pub(crate) fn new(watched: Option<W>, event: Event) -> Self {
        Member {
            watched,
            id: watched.map_or(0, Watched::id),
            asked: event.flags,
            data: event.data.u64(),
            reported: None,
            has_sleeper: false,
            active_at: None,
            is_parked: false,
        }
    }

    /// A new registration of the same connection, which arms it.
    pub(crate) fn modify(&mut self, event: Event) {
        self.is_parked = false;
        self.asked = event.flags;
        self.data = event.data.u64();
        self.reported = None;
    }

    /// The program is told nothing of it from now on.
    pub(crate) fn park(&mut self) {
        self.is_parked = true;
        self.asked = EventFlags::empty();
    }

    /// Whether it is the registration of this connection, which was taken out.
    pub(crate) fn is_parked_of(&self, watched: W) -> bool {
        self.is_parked && self.watched.is_some() && self.id == watched.id()
    }

    pub(crate) fn asked(&self) -> EventFlags {
        self.asked
    }

    pub(crate) fn data(&self) -> u64 {
        self.data
    }

    pub(crate) fn watched(&self) -> Option<W> {
        self.watched
    }

    /// What the number of this registration has become.
    pub(crate) fn watch(&mut self, watched: W) {
        self.watched = Some(watched);
        self.id = watched.id();
        self.reported = None;
    }

    pub(crate) fn leave_sleeper(&mut self, sleeper: Option<&W::Sleeper>) {
        if std::mem::take(&mut self.has_sleeper)
            && let (Some(watched), Some(sleeper)) = (self.watched, sleeper)
            // Another connection may have the handle by now, and this sleeper.
            && watched.id() == self.id
        {
            watched.remove_sleeper(sleeper);
        }
    }

    /// What an edge is told at. What arrives is counted while the sender knows the set's sleeper; else what a receive leaves may have come later.
    fn mark(&self) -> (u64, u64) {
        let taken = |watched: W| if self.has_sleeper { 0 } else { watched.taken_bytes() };
        self.watched.map_or((0, 0), |watched| (taken(watched), watched.arrivals()))
    }

    fn is_edge(&self) -> bool {
        self.asked.intersects(EventFlags::ET.union(EventFlags::ONESHOT))
    }

    /// Whether there is something to report. Looking arms an edge whose news had gone.
    pub(crate) fn is_reportable(&mut self) -> bool {
        if !self.asked.intersects(READABLE) {
            return false;
        }
        if !self.watched.is_some_and(Watched::has_news) {
            self.reported = None;
            return false;
        }
        !self.is_edge() || self.reported.is_none_or(|mark| mark != self.mark())
    }

    /// Reports, if there is something to report.
    pub(crate) fn take(&mut self) -> Option<Event> {
        if !self.is_reportable() {
            return None;
        }
        let mut flags = self.asked & READABLE;
        if self.is_edge() {
            // Behind the look: the program finds what has come until here.
            self.reported = Some(self.mark());
            flags |= self.asked & WRITABLE;
        }
        if self.asked.contains(EventFlags::ONESHOT) {
            // The kernel's registration is as it was: it may tell something once beside this, before the connection is the kernel's alone.
            self.asked = EventFlags::ONESHOT;
        }
        Some(Event { flags, data: EventData::new_u64(self.data) })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::readiness::{Glance, Sleeper};

    static HAS_NEWS: AtomicBool = AtomicBool::new(true);

    /// Says that it has something or not, and counts nothing: an entry of the ledger is no byte.
    #[derive(Clone, Copy)]
    struct Countless;

    struct Nobody;

    impl Sleeper for Nobody {
        fn bell(&self) -> BorrowedFd<'_> {
            unreachable!("no sleeper is made")
        }

        fn announce(&self) {}

        fn withdraw(&self) {}

        fn is_whole(&self) -> bool {
            true
        }

        fn clear(&self) -> bool {
            true
        }

        fn ring(&self) {}
    }

    impl Glance for Nobody {
        fn is_empty_still(&self) -> bool {
            false
        }
    }

    impl Watched for Countless {
        type Sleeper = Nobody;
        type Glance = Nobody;

        fn id(self) -> u64 {
            1
        }

        fn glance(self) -> Option<Nobody> {
            None
        }

        fn has_news(self) -> bool {
            HAS_NEWS.load(Ordering::Relaxed)
        }

        fn taken_bytes(self) -> u64 {
            0
        }

        fn arrivals(self) -> u64 {
            0
        }

        fn may_have_news(self) -> bool {
            true
        }

        fn add_sleeper(self, _: &Nobody) -> bool {
            true
        }

        fn remove_sleeper(self, _: &Nobody) {}
    }

    #[test]
    fn edge_is_told_again_when_news_had_gone_in_between() {
        let event = Event { flags: EventFlags::IN | EventFlags::ET, data: EventData::new_u64(3) };
        let mut member = Member::new(Some(Countless), event);
        assert!(member.take().is_some_and(|told| told.data.u64() == 3));
        assert!(member.take().is_none());
        HAS_NEWS.store(false, Ordering::Relaxed);
        assert!(!member.is_reportable());
        HAS_NEWS.store(true, Ordering::Relaxed);
        assert!(member.is_reportable());
        assert!(member.take().is_some());
    }
}
