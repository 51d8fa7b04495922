//! What a link whose host memory is coherent keeps of a device's watches, and when it answers them.
//!
//! A link that can load host memory itself (in this process, or shared) looks at the first word of each watched line in
//! every round: the word lies in this core's cache until the host stores to it, so the look costs nothing, and the
//! interconnect that tells of the change is the CPU's own. A link in virtual time knows of each store and looks then.
//! Not here: the memory, which the link owns ([`HostMemory`]).

use alloc::vec::Vec;

use crate::{Device, MAX_WATCH_BYTES, MAX_WATCHES, Want, WatchEnd, WatchTag};

/// Host memory as a link's watches see it.
pub trait HostMemory {
    /// The aligned word at a bus address, with acquire; `None` when that is not memory of the port.
    fn word(&mut self, address: u64) -> Option<u64>;

    /// Reads the bytes at a bus address; `false` when they are not all memory of the port.
    fn read(&mut self, address: u64, data: &mut [u8]) -> bool;
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    tag: WatchTag,
    address: u64,
    known: u64,
    bytes: u32,
    is_forgotten: bool,
}

/// The watches of one device that are outstanding, at most [`MAX_WATCHES`].
#[derive(Debug, Default)]
pub struct Watches {
    outstanding: Vec<Watch>,
}

impl Watches {
    /// None outstanding; takes memory for all there may be.
    pub fn new() -> Self {
        Watches { outstanding: Vec::with_capacity(MAX_WATCHES) }
    }

    /// Takes over a want if it is one of watches; whether it is.
    ///
    /// # Panics
    /// If the device watches under a tag that is out of range (or, in a debug build, in use), or asks for bytes that it
    /// must not.
    pub fn take(&mut self, want: &Want<'_>) -> bool {
        match *want {
            Want::WatchLine { tag, address, known, bytes } => {
                let is_bytes = bytes.is_multiple_of(8) && (8..=MAX_WATCH_BYTES as u32).contains(&bytes);
                assert!(usize::from(tag.0) < MAX_WATCHES && is_bytes, "a watch {want:?}");
                debug_assert!(
                    self.outstanding.iter().all(|watch| watch.tag != tag),
                    "a tag in use: {want:?}"
                );
                self.outstanding.push(Watch { tag, address, known, bytes, is_forgotten: false });
            }
            Want::ForgetLine { tag } => {
                let watch = self.outstanding.iter_mut().find(|watch| watch.tag == tag);
                if let Some(watch) = watch {
                    watch.is_forgotten = true;
                }
            }
            _ => return false,
        }
        true
    }

    /// Looks at every watched line once and answers what has changed or ended; whether anything had. One load of a
    /// cached word for each watch.
    #[inline]
    pub fn look<D: Device + ?Sized>(&mut self, device: &mut D, memory: &mut impl HostMemory) -> bool {
        let mut any = false;
        let mut index = 0;
        while let Some(watch) = self.outstanding.get(index) {
            let word = memory.word(watch.address);
            if word == Some(watch.known) && !watch.is_forgotten {
                index += 1;
                continue;
            }
            let watch = self.outstanding.swap_remove(index);
            answer(watch, word, device, memory);
            any = true;
        }
        any
    }
}

fn answer<D: Device + ?Sized>(watch: Watch, word: Option<u64>, device: &mut D, memory: &mut impl HostMemory) {
    let mut line = [0; MAX_WATCH_BYTES];
    let line = &mut line[..watch.bytes as usize];
    let data = match word {
        _ if watch.is_forgotten => Err(WatchEnd::Forgotten),
        Some(word) if memory.read(watch.address, line) => {
            // The word that was compared, whatever the host has stored since: nothing is read twice.
            line[..8].copy_from_slice(&word.to_le_bytes());
            Ok(&*line)
        }
        _ => Err(WatchEnd::BadAddress),
    };
    device.line_changed(watch.tag, data);
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::{Accept, DmaError, DmaTag, ReadTag, SimTime, Write};

    /// Words of memory at address 0, and the answers that came.
    struct Memory(Vec<u64>);

    impl HostMemory for Memory {
        fn word(&mut self, address: u64) -> Option<u64> {
            self.0.get(address as usize / 8).copied()
        }

        fn read(&mut self, address: u64, data: &mut [u8]) -> bool {
            let words = self.0.get(address as usize / 8..address as usize / 8 + data.len() / 8);
            for (chunk, word) in data.as_chunks_mut::<8>().0.iter_mut().zip(words.unwrap_or_default()) {
                *chunk = word.to_le_bytes();
            }
            words.is_some()
        }
    }

    #[derive(Default)]
    struct Told(Vec<(u16, Result<Vec<u8>, WatchEnd>)>);

    impl Device for Told {
        fn write_arrived(&mut self, _write: Write<'_>) -> Accept {
            Accept::Taken
        }
        fn read_arrived(&mut self, _offset_bytes: u64, _tag: ReadTag) {}
        fn dma_completed(&mut self, _tag: DmaTag, _data: Result<&[u8], DmaError>) {}
        fn line_changed(&mut self, tag: WatchTag, data: Result<&[u8], WatchEnd>) {
            self.0.push((tag.0, data.map(<[u8]>::to_vec)));
        }
        fn frame_arrived(&mut self, _frame: &[u8]) -> Accept {
            Accept::Taken
        }
        fn time_passed(&mut self, _now: SimTime) {}
        fn wire_ready(&mut self, _ready: bool) {}
        fn next(&mut self) -> Option<Want<'_>> {
            None
        }
        fn wake_at(&self) -> Option<SimTime> {
            None
        }
    }

    fn watch(tag: u16, address: u64, known: u64) -> Want<'static> {
        Want::WatchLine { tag: WatchTag(tag), address, known, bytes: 16 }
    }

    #[test]
    fn a_change_is_told_once_whether_it_was_before_or_after() {
        let (mut watches, mut device) = (Watches::new(), Told::default());
        let mut memory = Memory(vec![5, 6, 7, 8]);
        assert!(watches.take(&watch(1, 0, 4)) && watches.take(&watch(2, 16, 7)));
        assert!(watches.look(&mut device, &mut memory) && !watches.look(&mut device, &mut memory));
        let line = |words: [u64; 2]| Ok(words.map(u64::to_le_bytes).concat());
        assert_eq!(device.0, [(1, line([5, 6]))], "it had changed before");
        memory.0[2] = 9;
        memory.0[2] = 7;
        assert!(!watches.look(&mut device, &mut memory), "what is as it was has not changed");
        memory.0[2] = 1;
        memory.0[2] = 2;
        assert!(watches.look(&mut device, &mut memory) && !watches.look(&mut device, &mut memory));
        assert_eq!(device.0[1..], [(2, line([2, 8]))], "two stores are told as one");
    }

    #[test]
    fn every_watch_is_answered_however_it_ends() {
        let (mut watches, mut device) = (Watches::new(), Told::default());
        let mut memory = Memory(vec![0; 8]);
        assert!(watches.take(&watch(0, 0, 0)) && watches.take(&watch(3, 1 << 20, 0)));
        // The first word is there, the rest of what was asked for is not.
        assert!(watches.take(&watch(4, 56, 1)));
        assert!(watches.take(&Want::ForgetLine { tag: WatchTag(0) }));
        assert!(watches.take(&Want::ForgetLine { tag: WatchTag(9) }), "of none outstanding: without meaning");
        assert!(watches.look(&mut device, &mut memory));
        device.0.sort_by_key(|(tag, _)| *tag);
        let (forgotten, bad) = (Err(WatchEnd::Forgotten), Err(WatchEnd::BadAddress));
        assert_eq!(device.0, [(0, forgotten), (3, bad.clone()), (4, bad)]);
        assert!(!watches.look(&mut device, &mut memory));
        assert!(watches.take(&watch(0, 0, 0)), "the tag is free again");
        assert!(!watches.take(&Want::Interrupt { vector: 0 }));
    }
}
