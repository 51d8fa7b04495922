//! Host memory that the device may read and write, by bus address.
//!
//! A bus address is a region's number in its upper half and an offset in its lower. Whatever a host programs into a
//! ring or a descriptor ends here: an access that does not lie in one registered region is not made.

use core::sync::atomic::{Ordering, fence};

use beeline_contract_link::DmaMemory;
use beeline_mmio::DmaRegion;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use super::account::Charge;
use crate::layout::REGION_SHIFT;

/// Most lines that are fetched ahead of a write.
const WRITE_AHEAD_LINES: usize = 32;

/// The registered regions of one port.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    slots: Vec<Option<DmaRegion>>,
    /// What each stands for in the port's account; apart from them, because no access looks at it.
    charges: Vec<Option<Charge>>,
}

/// A region that was taken out, and its place in the account: the mapping goes before it is counted as gone.
pub(crate) type Former = (Option<DmaRegion>, Option<Charge>);

impl Regions {
    /// Registers a region under a number; gives the former one.
    pub(crate) fn insert(&mut self, number: u32, memory: DmaRegion, charge: Charge) -> Option<Former> {
        let index = number as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
            self.charges.resize_with(index + 1, || None);
        }
        let former = (self.slots[index].replace(memory), self.charges[index].replace(charge));
        former.0.is_some().then_some(former)
    }

    /// Forgets a region, and gives it.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Former> {
        let memory = self.slots.get_mut(number as usize)?.take()?;
        Some((Some(memory), self.charges[number as usize].take()))
    }
}

impl BusMemory for Regions {
    #[inline(always)]
    fn find(&mut self, address: u64, bytes: usize) -> Option<(&mut DmaRegion, usize)> {
        let memory = self.slots.get_mut((address >> REGION_SHIFT) as usize)?.as_mut()?;
        let offset = (address & ((1 << REGION_SHIFT) - 1)) as usize;
        // Both are below 2^32, so the sum does not wrap.
        (offset + bytes <= memory.bytes()).then_some((memory, offset))
    }
}

/// Memory that a device reaches by bus address. Whoever has it says where an address leads; every access is made here.
pub trait BusMemory {
    /// The memory in which all bytes of an access lie, and the offset of the first; `None` if there is none.
    fn find(&mut self, address: u64, bytes: usize) -> Option<(&mut DmaRegion, usize)>;

    /// Writes; `false` if not all of it is there, and then nothing is written. Visible in the order of the calls. `is_stream`: the
    /// next write is likely to be as long, and to follow this one.
    #[inline]
    fn dma_write(&mut self, address: u64, data: &[u8], is_stream: bool) -> bool {
        let Some((memory, offset)) = self.find(address, data.len()) else { return false };
        write_in_order(memory, offset, data, is_stream);
        true
    }

    /// Reads into `data`; `false` if not all of it is there.
    #[inline]
    fn dma_read(&mut self, address: u64, data: &mut [u8]) -> bool {
        let Some((memory, offset)) = self.find(address, data.len()) else { return false };
        memory.copy_out(offset, data);
        true
    }

    /// The word at a bus address; `None` if it is not all there, or not aligned. Acquire, pairs with the host's store of a word
    /// that is watched.
    #[inline]
    fn dma_word(&mut self, address: u64) -> Option<u64> {
        let (memory, offset) = self.find(address, WORD_BYTES).filter(|_| address.is_multiple_of(8))?;
        Some(memory.load_acquire(offset))
    }

    /// Fetches the lines of a read that will be made soon.
    #[inline]
    fn dma_prefetch(&mut self, address: u64, bytes: usize) {
        let Some((memory, offset)) = self.find(address, bytes) else { return };
        for line in (offset & !(LINE_BYTES - 1)..offset + bytes).step_by(LINE_BYTES) {
            memory.prefetch(line);
        }
    }
}

/// Writes to memory that a device may write; the write lies inside it.
///
/// Writes become visible in the order of the calls: words with release, which pairs with the host's `load_acquire` of a ring's
/// header or a credit word; everything else behind a release fence.
///
/// In a stream of writes (`is_stream`) the lines of the next are fetched for writing now. A single write does not do so: its host
/// polls the next line, and would have to fetch it back.
#[inline]
fn write_in_order(memory: &mut DmaRegion, offset_bytes: usize, data: &[u8], is_stream: bool) {
    match <[u8; 8]>::try_from(data) {
        Ok(word) if offset_bytes.is_multiple_of(8) => {
            memory.store_release(offset_bytes, u64::from_le_bytes(word));
        }
        _ => {
            // Release: what was written before is visible before this; costs nothing on x86.
            fence(Ordering::Release);
            memory.copy_in(offset_bytes, data);
            if is_stream {
                // Devices write rings: the next write is likely to be as long, and to follow this one. Only as far
                // as that: a line fetched earlier is fetched back by the host that polls ahead.
                let end = (offset_bytes + data.len()).next_multiple_of(LINE_BYTES);
                for line in 0..(data.len() / LINE_BYTES + 1).min(WRITE_AHEAD_LINES) {
                    memory.prefetch_to_write(end + line * LINE_BYTES);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use beeline_mmio::{MemoryOptions, SharedMemory};

    use super::super::account::MemoryAccount;
    use super::*;
    use crate::layout::region_address;

    fn regions() -> Regions {
        let (mut regions, account) = (Regions::default(), MemoryAccount::new(8192));
        for number in [1, 3] {
            let memory =
                SharedMemory::create("regions", 4096, MemoryOptions::default()).unwrap().map().unwrap();
            let charge = account.charge(4096, 0).unwrap();
            regions.insert(number, memory.dma_memory(0, 4096, region_address(number)), charge);
        }
        regions
    }

    #[test]
    fn what_is_written_is_read_at_any_alignment() {
        let mut regions = regions();
        for (offset, bytes) in [(0, 8), (8, 64), (13, 100), (4096 - 7, 7)] {
            let data: Vec<u8> = (0..bytes).map(|i| (i + offset) as u8).collect();
            assert!(regions.dma_write(region_address(3) + offset as u64, &data, bytes > 8));
            let mut back = vec![0; bytes];
            regions.dma_prefetch(region_address(3) + offset as u64, bytes);
            assert!(regions.dma_read(region_address(3) + offset as u64, &mut back));
            assert_eq!(back, data);
        }
        let mut other = [9; 64];
        assert!(regions.dma_read(region_address(1), &mut other));
        assert_eq!(other, [0; 64], "the other region is untouched");
    }

    #[test]
    fn wild_addresses_touch_nothing() {
        let mut regions = regions();
        let mut data = [7; 64];
        let inside = region_address(1);
        for address in
            [0, 64, inside + 4096, inside + 4096 - 63, region_address(2), region_address(4), u64::MAX]
        {
            assert!(!regions.dma_write(address, &data, true), "{address:#x}");
            assert!(!regions.dma_read(address, &mut data), "{address:#x}");
            regions.dma_prefetch(address, 64);
        }
        regions.remove(1);
        regions.remove(77);
        assert!(!regions.dma_write(inside, &data, false));
    }
}
