//! Descriptors that this library holds for a process: whether each is still the file that it was, and another number for one that is
//! in use.
//!
//! Other code of the process may close a descriptor of ours (`closefrom`, `close_range`), or have another file take its number
//! (`dup2`, or the next `open` after such a close). So before a number is used, and before it is closed, the file behind it is
//! compared with the one that was opened. Between that look and the use another thread may still take the number: this finds
//! a loss, it does not prevent one. A descriptor that has moved out of the way is not met at all.
//!
//! Who uses a descriptor holds the number that it had when the use began ([`Held`]). A move opens the file under another number
//! for those who come later, and the old one is closed when its last user is done.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::file_identity::{FileIdentity, is_same_kind};
use crate::numbers::{Number, Purpose, lowest};

/// A descriptor of ours, and which file it was opened as.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// Swapped without a lock: a forked child uses the folders of its parent, one of whose threads may be about to move them.
    number: ArcSwap<Number>,
    purpose: Purpose,
    identity: Identity,
}

/// The number of a descriptor at one moment. It stands for the file for as long as this is there, also when the descriptor moves.
#[derive(Clone, Debug)]
pub(crate) struct Held(Arc<Number>);

/// What tells our file from others that may take its number.
#[derive(Debug)]
enum Identity {
    /// `None`: the kernel did not say, so that it is never ours.
    File(Option<FileIdentity>),
    /// An epoll is like every other; ours has an event in it that no other has.
    Epoll { event: Arc<Descriptor>, token: u64 },
    /// An epoll of ours watches it, and finds it by its number and by the file behind the number.
    Watched { by: Arc<Descriptor>, token: u64 },
}

/// How an epoll watches a descriptor; it knows it by its number.
pub(crate) struct Watching<'a> {
    pub(crate) by: &'a Descriptor,
    pub(crate) token: EventData,
    pub(crate) flags: EventFlags,
}

/// Gives a new descriptor a number that is high enough. Where there is none free, the one it has is better than none.
fn raise(fd: OwnedFd) -> OwnedFd {
    let lowest = lowest();
    let raised =
        if fd.as_raw_fd() < lowest { rustix::io::fcntl_dupfd_cloexec(&fd, lowest).ok() } else { None };
    raised.unwrap_or(fd)
}

impl Descriptor {
    /// Takes a new descriptor in, under a number that is high enough.
    pub(crate) fn new(fd: OwnedFd, purpose: Purpose) -> Self {
        let fd = raise(fd);
        let identity = Identity::File(FileIdentity::of(fd.as_fd()).ok());
        Self::list(fd, purpose, identity)
    }

    /// Takes a new epoll in and has it watch `event`, with `token`.
    pub(crate) fn epoll(epoll: OwnedFd, event: &Arc<Descriptor>, token: u64) -> Result<Self, Errno> {
        let epoll = raise(epoll);
        epoll::add(&epoll, event.hold(), EventData::new_u64(token), EventFlags::IN)?;
        let identity = Identity::Epoll { event: Arc::clone(event), token };
        Ok(Self::list(epoll, Purpose::Epoll, identity))
    }

    /// Takes a new descriptor in, and has `epoll` watch it with `token` for as long as it is open.
    pub(crate) fn watched(
        fd: OwnedFd,
        purpose: Purpose,
        by: &Arc<Descriptor>,
        token: u64,
    ) -> Result<Self, Errno> {
        let fd = raise(fd);
        epoll::add(by.hold(), &fd, EventData::new_u64(token), EventFlags::IN)?;
        Ok(Self::list(fd, purpose, Identity::Watched { by: Arc::clone(by), token }))
    }

    fn list(fd: OwnedFd, purpose: Purpose, identity: Identity) -> Self {
        Descriptor { number: ArcSwap::from_pointee(Number::new(fd, purpose)), purpose, identity }
    }

    /// The number that it has now.
    pub(crate) fn hold(&self) -> Held {
        Held(self.number.load_full())
    }

    /// What `look` finds under the number that it has now; once more if it moved meanwhile and nothing was found.
    fn find<T>(&self, look: impl Fn(&Held) -> Option<T>) -> Option<(Held, T)> {
        loop {
            let held = self.hold();
            if let Some(found) = look(&held) {
                return Some((held, found));
            }
            if Arc::ptr_eq(&held.0, &self.number.load()) {
                return None;
            }
        }
    }

    /// Whether the number still stands for the file that it was made for. One system call; for an event, three more. For an
    /// epoll, whether the event in it is still ours, too.
    pub(crate) fn is_ours(&self) -> bool {
        self.check().is_ok()
    }

    /// As [`Descriptor::is_ours`] by one system call, but an event that took the number of an event is not noticed.
    pub(crate) fn check_kind(&self) -> Result<Held, Errno> {
        let Identity::File(Some(opened)) = &self.identity else { return Err(Errno::BADF) };
        let found = self.find(|held| is_same_kind(held.as_fd(), *opened).then_some(()));
        found.map_or(Err(Errno::BADF), |(held, ())| Ok(held))
    }

    /// Fails with `BADF` where the number no longer stands for the file that it was made for.
    pub(crate) fn check(&self) -> Result<Held, Errno> {
        let found = self.find(|held| self.is_ours_as(held).then_some(()));
        found.map_or(Err(Errno::BADF), |(held, ())| Ok(held))
    }

    /// Whether a name leads to the file that the number was made for. One system call, which does not look at the number
    /// ([`Descriptor::check`]).
    pub(crate) fn has_name(&self, parent: BorrowedFd<'_>, relative: &Path) -> bool {
        matches!(&self.identity, Identity::File(Some(opened)) if opened.is_named(parent, relative))
    }

    /// A second descriptor of the file, for somebody else. It is looked at itself, so that it is of no other file, whatever becomes of
    /// the number meanwhile.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd, Errno> {
        let Identity::File(Some(opened)) = &self.identity else { return Err(Errno::BADF) };
        let second = rustix::io::fcntl_dupfd_cloexec(self.check()?, lowest())?;
        if opened.is_of(second.as_fd()) {
            return Ok(second);
        }
        // Left open: to close any descriptor of a file ends the record locks of whoever has it.
        let _ = second.into_raw_fd();
        Err(Errno::BADF)
    }

    fn is_ours_as(&self, held: &Held) -> bool {
        let is_known = |epoll: &Held, watched: &Held, token: u64| {
            epoll::modify(epoll, watched, EventData::new_u64(token), EventFlags::IN).ok()
        };
        match &self.identity {
            Identity::File(opened) => opened.is_some_and(|opened| opened.is_of(held.as_fd())),
            // The kernel finds it by its number and by the file behind the number.
            Identity::Epoll { event, token } => event.find(|event| is_known(held, event, *token)).is_some(),
            Identity::Watched { by, token } => by.find(|by| is_known(by, held, *token)).is_some(),
        }
    }

    /// Gives it a number of at least `lowest`, and has the epoll that watches it know it by that one. Uses that have begun go on
    /// under the old number, which is closed after them.
    ///
    /// One thread at a time; who watches it, or no longer, is that thread too.
    ///
    /// # Errors
    /// It was lost; there is no such number free; the process lacks memory.
    pub(crate) fn move_above(&self, lowest: RawFd, watching: Option<&Watching<'_>>) -> Result<(), Errno> {
        let old = self.check()?;
        if old.as_fd().as_raw_fd() >= lowest {
            return Ok(());
        }
        let new = Number::new(rustix::io::fcntl_dupfd_cloexec(&old, lowest)?, self.purpose);
        if let Some(Watching { by, token, flags }) = watching {
            // Both are known for a moment: an event that comes then is told twice, and none is missed.
            epoll::add(by.hold(), &new, *token, *flags)?;
        }
        self.number.store(Arc::new(new));
        if let Some(Watching { by, .. }) = watching {
            // While the number stands for the file: the epoll would tell of it for as long as the file is open under any number.
            let _ = epoll::delete(by.hold(), &old);
        }
        Ok(())
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Descriptor {
    /// The file is closed with its last user, unless the number stands for one of somebody else.
    fn drop(&mut self) {
        if !self.is_ours() {
            self.number.load().set_lost();
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::numbers::{descriptors, place_descriptors_above};

    fn event() -> OwnedFd {
        use rustix::event::{EventfdFlags, eventfd};
        eventfd(0, EventfdFlags::CLOEXEC).unwrap()
    }

    fn file() -> OwnedFd {
        rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
    }

    /// As `dup2` of other code does it, which knows the number alone.
    fn replace(ours: &Descriptor, theirs: &OwnedFd) {
        let mut number = ours.number.swap(Arc::new(Number::new(event(), Purpose::Event)));
        rustix::io::dup2(theirs, Arc::get_mut(&mut number).unwrap().fd_mut()).unwrap();
        ours.number.store(number);
    }

    #[test]
    fn descriptor_that_moves_is_the_same_file_and_its_old_number_lasts_as_long_as_its_user() {
        let ours = Descriptor::new(event(), Purpose::Event);
        let user = ours.hold();
        let old = user.as_fd().as_raw_fd();
        ours.move_above(700, None).unwrap();
        let new = ours.hold().as_fd().as_raw_fd();
        assert!(new >= 700 && ours.is_ours() && ours.check_kind().is_ok());
        rustix::io::write(&user, &3u64.to_ne_bytes()).unwrap();
        let mut count = [0; 8];
        rustix::io::read(ours.hold(), &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 3);
        for number in [old, new] {
            assert!(descriptors().contains(&(number, Purpose::Event)), "{number}");
        }
        ours.move_above(650, None).unwrap();
        assert_eq!(ours.hold().as_fd().as_raw_fd(), new, "it is high enough");
    }

    #[test]
    fn epoll_tells_of_a_descriptor_that_has_moved_by_its_token_until_it_is_taken_out() {
        let epoll = || epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let wake = Arc::new(Descriptor::new(event(), Purpose::Event));
        let outer = Arc::new(Descriptor::epoll(epoll(), &wake, 1).unwrap());
        let inner = Descriptor::watched(epoll(), Purpose::Epoll, &outer, 2).unwrap();
        let (by, flags) = (&*outer, EventFlags::IN);
        outer.move_above(700, None).unwrap();
        wake.move_above(700, Some(&Watching { by, token: EventData::new_u64(1), flags })).unwrap();
        inner.move_above(700, Some(&Watching { by, token: EventData::new_u64(2), flags })).unwrap();
        assert!(outer.is_ours() && wake.is_ours() && inner.is_ours());
        rustix::io::write(wake.hold(), &1u64.to_ne_bytes()).unwrap();
        let told = || {
            let mut events = Vec::with_capacity(4);
            let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            epoll::wait(outer.hold(), rustix::buffer::spare_capacity(&mut events), Some(&now)).unwrap();
            events.iter().map(|event| event.data.u64()).collect::<Vec<_>>()
        };
        assert_eq!(told(), [1], "once: the old number is not known any more");
        epoll::delete(outer.hold(), wake.hold()).unwrap();
        assert_eq!(told(), [0; 0]);
    }

    #[test]
    fn descriptor_is_listed_until_it_is_dropped() {
        let ours = Descriptor::new(event(), Purpose::Event);
        let number = ours.hold().as_fd().as_raw_fd();
        assert!(ours.is_ours() && ours.check().is_ok());
        assert!(descriptors().contains(&(number, Purpose::Event)));
        drop(ours);
        assert!(!descriptors().contains(&(number, Purpose::Event)));
    }

    #[test]
    fn duplicate_is_of_the_same_file_and_outlives_it() {
        let ours = Descriptor::new(event(), Purpose::Event);
        let second = ours.duplicate().unwrap();
        rustix::io::write(ours.hold(), &3u64.to_ne_bytes()).unwrap();
        drop(ours);
        let mut count = [0; 8];
        rustix::io::read(&second, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 3);
    }

    #[test]
    fn file_that_took_the_number_is_noticed_and_not_closed() {
        for (mine, other) in [(event(), file()), (file(), event()), (event(), event()), (file(), file())] {
            let ours = Descriptor::new(mine, Purpose::Event);
            let (reader, writer) = std::io::pipe().unwrap();
            for theirs in [&other, &OwnedFd::from(writer)] {
                replace(&ours, theirs);
                assert!(!ours.is_ours());
                assert_eq!(ours.check().err(), Some(Errno::BADF));
                assert_eq!(ours.duplicate().err(), Some(Errno::BADF));
            }
            let number = ours.hold().as_fd().as_raw_fd();
            drop(ours);
            // The copy of the writing end is still there, and is all that keeps the pipe open.
            assert_eq!(rustix::io::ioctl_fionread(&reader), Ok(0));
            let found = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
            assert!(found.to_str().unwrap().starts_with("pipe:"), "{found:?}");
            nix::unistd::close(number).unwrap();
        }
    }

    #[test]
    fn number_that_the_process_may_not_have_is_refused() {
        for lowest in [-1, RawFd::MAX] {
            assert!(place_descriptors_above(lowest).is_err());
        }
    }
}
