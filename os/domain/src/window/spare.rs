//! A window that is made before its sender comes.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Weak};

use super::halves::{FreshWindow, MappedWindow};
use crate::descriptor::Descriptor;
use crate::moving::{self, Movable, Registered};
use crate::numbers::Purpose;

/// A window that nobody has been shown: its lines and its blank are as fresh as those of one that is made when it is asked for.
#[derive(Debug)]
pub(super) struct SpareWindow {
    mapped: MappedWindow,
    memory: Arc<Memory>,
    _moves: Registered,
}

/// The descriptor, which stays open until somebody is passed a copy.
#[derive(Debug)]
pub(super) struct Memory(Descriptor);

impl Movable for Memory {
    fn move_above(&self, lowest: RawFd) -> io::Result<()> {
        Ok(self.0.move_above(lowest, None)?)
    }
}

impl SpareWindow {
    pub(super) fn keep(window: FreshWindow) -> Self {
        let (fd, mapped) = window.split();
        let memory = Arc::new(Memory(Descriptor::new(fd, Purpose::Window)));
        let moves: Weak<Memory> = Arc::downgrade(&memory);
        SpareWindow { mapped, memory, _moves: moving::register(moves) }
    }

    #[cfg(test)]
    #[cfg(not(loom))]
    pub(super) fn memory(&self) -> Weak<Memory> {
        Arc::downgrade(&self.memory)
    }

    /// The window for a sender, with this epoch; `None` where other code of this process has closed or replaced its descriptor. What
    /// is left is dropped when there is time for it.
    pub(super) fn take(self, epoch: u8) -> Option<(OwnedFd, MappedWindow, impl Send + use<>)> {
        let SpareWindow { mut mapped, memory, _moves } = self;
        let fd = memory.0.duplicate().ok()?;
        mapped.terms.epoch = epoch;
        Some((fd, mapped, (memory, _moves)))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use beeline_mmio::MemoryOptions;

    use super::*;
    use crate::numbers::descriptors;

    #[test]
    fn spare_window_moves_out_of_a_programs_way() {
        let spare = SpareWindow::keep(FreshWindow::create("test", 64, MemoryOptions::default(), 0).unwrap());
        // Not all descriptors of this process, whose other tests have theirs.
        spare.memory.move_above(800).unwrap();
        let number = spare.memory.0.hold().as_fd().as_raw_fd();
        assert!(number >= 800 && descriptors().contains(&(number, Purpose::Window)));
        let (fd, _mapped, _left) = spare.take(5).unwrap();
        assert_ne!(fd.as_raw_fd(), number);
    }
}
