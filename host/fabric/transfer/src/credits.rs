//! How lines of a window are given back to who sends into it: a word that counts them.

use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_mmio::fence::{flush_write_combining, order_stores};
use beeline_mmio::{LoadWindow, Region, StoreWindow, Word};
use beeline_window::{Receiver, Writer};

/// The end of a window that messages are sent into.
pub type Sender = Writer<StoreWindow, Credits>;
/// The end of a window that messages come out of.
pub type Inlet = Receiver<LoadWindow, Credits>;

/// The word in which freed lines are counted. Nobody waits for lines, so nobody is woken.
#[derive(Debug)]
pub struct Credits {
    word: Word,
    /// Stores to it may be combined, held back and seen in another order.
    is_device: bool,
}

impl Credits {
    /// Those of the word at an offset, which the receiver stores and the sender loads. The window is in memory of the same kind.
    pub fn new(region: &Region, offset_bytes: usize) -> Self {
        Credits { word: region.word(offset_bytes), is_device: region.is_device() }
    }
}

impl CreditSource for Credits {
    #[inline]
    fn freed_lines(&mut self) -> u64 {
        // Acquire: pairs with `publish`, in the receiver's process.
        self.word.load_acquire()
    }
}

impl CreditSink for Credits {
    #[inline]
    fn publish(&mut self, freed_lines: u64) {
        // Release: pairs with `freed_lines`, in the sender's process.
        if !self.is_device {
            return self.word.store_release(freed_lines);
        }
        // The lines are blank before they are counted: a blank that came later would be stored over the next message.
        order_stores();
        self.word.store_release(freed_lines);
        // Nothing else may be stored for long by this core, and the sender waits for the lines.
        push_out();
    }
}

/// Empties the write-combining buffers of this core.
pub(crate) fn push_out() {
    flush_write_combining();
    #[cfg(test)]
    PUSHES.with(|pushes| pushes.set(pushes.get() + 1));
}

#[cfg(test)]
thread_local! {
    /// How often this thread has emptied them.
    pub(crate) static PUSHES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use beeline_mmio::{BarKind, MappedSegment, OnLoss, SegmentOptions};

    use super::*;

    /// Lines of a BAR, which an ordinary file stands for.
    fn of_device() -> Region {
        let root = tempfile::tempdir_in("/dev/shm").unwrap();
        let function = root.path().join("bus/pci/devices/0000:3b:00.1");
        std::fs::create_dir_all(&function).unwrap();
        std::fs::write(function.join("resource2_wc"), [0; 4096]).unwrap();
        let (address, options) = (
            "0000:3b:00.1".parse().unwrap(),
            SegmentOptions { on_loss: OnLoss::Fatal, ..Default::default() },
        );
        let kind = BarKind::WriteCombining;
        MappedSegment::bar_under(root.path(), address, 2, kind, &options).unwrap().region().unwrap()
    }

    #[test]
    fn credits_of_a_device_are_pushed_out_of_the_core_and_those_of_memory_are_not() {
        for (region, expected) in [(of_device(), 3), (Region::private(4096), 0)] {
            let before = PUSHES.get();
            (1..=3).for_each(|lines| Credits::new(&region, 64).publish(lines));
            assert_eq!(PUSHES.get() - before, expected, "{}", region.is_device());
            assert_eq!(Credits::new(&region, 64).freed_lines(), 3);
        }
    }
}
