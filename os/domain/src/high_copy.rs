//! A second descriptor of a file of the program's, under a number of the library's.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::file_identity::FileIdentity;
use crate::numbers::lowest;

/// A descriptor with a number as those of the library have one ([`crate::place_descriptors_above`]), or another where none of these is free. It is
/// closed on exec.
///
/// Other code of the process may close the number, and have another file take it: then it is left alone when this is dropped. So is an
/// epoll, which cannot be told from another one: it is for those that stay for good.
#[derive(Debug)]
pub struct HighCopy {
    /// `None` once it is being dropped.
    fd: Option<OwnedFd>,
    /// `None`: the kernel did not say.
    identity: Option<FileIdentity>,
    is_closed: AtomicBool,
}

impl HighCopy {
    /// Makes a second descriptor of an open file.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let copy = rustix::io::fcntl_dupfd_cloexec(fd, lowest());
        Ok(Self::with(copy.or_else(|_| rustix::io::fcntl_dupfd_cloexec(fd, 0))?))
    }

    /// Gives a descriptor such a number; the one that it has is better than none.
    pub fn instead_of(fd: OwnedFd) -> Self {
        Self::of(fd.as_fd()).unwrap_or_else(|_| Self::with(fd))
    }

    fn with(fd: OwnedFd) -> Self {
        let identity = FileIdentity::of(fd.as_fd()).ok();
        HighCopy { fd: Some(fd), identity, is_closed: AtomicBool::new(false) }
    }

    /// Whether the number stands for the file still. One system call, or a few.
    pub fn is_whole(&self) -> bool {
        let is_its = |identity: FileIdentity| identity.is_of(self.as_fd());
        // Relaxed: who closes it is the only thread of its process.
        !self.is_closed.load(Ordering::Relaxed) && self.identity.is_none_or(is_its)
    }

    /// Closes it in a child of fork, where the owners are on stacks of threads that the child does not have.
    pub fn close_in_child(&self) {
        if self.is_whole() {
            self.is_closed.store(true, Ordering::Relaxed);
            // The kernel closes it whatever it answers.
            let _ = nix::unistd::close(self.as_fd().as_raw_fd());
        }
    }
}

impl AsFd for HighCopy {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is taken out by the drop alone").as_fd()
    }
}

impl Drop for HighCopy {
    fn drop(&mut self) {
        let is_whole = self.is_whole();
        if let Some(fd) = self.fd.take().filter(|_| !is_whole) {
            let _ = fd.into_raw_fd();
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn pipe() -> (OwnedFd, OwnedFd) {
        let (reader, writer) = std::io::pipe().unwrap();
        (reader.into(), writer.into())
    }

    fn has_writers(reader: &OwnedFd) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut ended = [PollFd::new(reader, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec::default())).unwrap();
        !ended[0].revents().contains(PollFlags::HUP)
    }

    /// Numbers that no other test of this process gets.
    fn copy_at(fd: &OwnedFd, number: i32) -> HighCopy {
        HighCopy::with(rustix::io::fcntl_dupfd_cloexec(fd, number).unwrap())
    }

    #[test]
    fn copy_keeps_its_file_open_until_it_is_dropped() {
        let (reader, writer) = pipe();
        let copy = HighCopy::instead_of(writer);
        assert!(copy.is_whole() && has_writers(&reader));
        drop(copy);
        assert!(!has_writers(&reader));
    }

    #[test]
    fn number_that_is_another_file_s_is_left_alone() {
        let ((reader, writer), (_, file)) = (pipe(), pipe());
        let copy = copy_at(&file, 840);
        let number = copy.as_fd().as_raw_fd();
        nix::unistd::close(number).unwrap();
        assert!(!copy.is_whole());
        let other = rustix::io::fcntl_dupfd_cloexec(&writer, number).unwrap();
        assert_eq!(other.as_raw_fd(), number);
        drop(writer);
        copy.close_in_child();
        drop(copy);
        assert!(has_writers(&reader));
        drop(other);
        assert!(!has_writers(&reader));
    }

    #[test]
    fn copy_is_closed_in_a_child_whoever_owns_it_and_once() {
        let ((reader, writer), (others_reader, others)) = (pipe(), pipe());
        let copy = std::sync::Arc::new(copy_at(&writer, 850));
        drop(writer);
        copy.close_in_child();
        assert!(!has_writers(&reader));
        let number = copy.as_fd().as_raw_fd();
        let other = rustix::io::fcntl_dupfd_cloexec(&others, number).unwrap();
        drop(others);
        copy.close_in_child();
        drop(copy);
        assert!(has_writers(&others_reader));
        drop(other);
    }
}
