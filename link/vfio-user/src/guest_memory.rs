//! The memory of a guest, by the addresses that its drivers program. An access that does not lie in one mapped piece is not made.

use beeline_contract_link::DmaMemory;
use beeline_link_shm::BusMemory;
use beeline_mmio::DmaRegion;

/// Pieces of a guest's memory, in order of their addresses; none overlaps another.
#[derive(Debug, Default)]
pub(crate) struct GuestMemory {
    pieces: Vec<(u64, DmaRegion)>,
    /// The piece of the last access: most follow one another in one piece.
    last: usize,
}

impl GuestMemory {
    /// Adds a piece that begins at `address`; it overlaps none that there is.
    pub(crate) fn insert(&mut self, address: u64, memory: DmaRegion) {
        let at = self.pieces.partition_point(|(first, _)| *first < address);
        self.pieces.insert(at, (address, memory));
    }

    /// Takes out every piece that begins among the `bytes` from `address` on.
    pub(crate) fn remove(&mut self, address: u64, bytes: u64) -> Vec<DmaRegion> {
        self.last = 0;
        let is_inside =
            |piece: &mut (u64, DmaRegion)| piece.0.checked_sub(address).is_some_and(|at| at < bytes);
        self.pieces.extract_if(.., is_inside).map(|(_, memory)| memory).collect()
    }
}

impl BusMemory for GuestMemory {
    #[inline]
    fn find(&mut self, address: u64, bytes: usize) -> Option<(&mut DmaRegion, usize)> {
        let place = |(first, memory): &(u64, DmaRegion)| {
            let offset = usize::try_from(address.checked_sub(*first)?).ok()?;
            (offset.checked_add(bytes)? <= memory.bytes()).then_some(offset)
        };
        let mut index = self.last;
        let mut offset = self.pieces.get(index).and_then(place);
        if offset.is_none() {
            index = self.pieces.partition_point(|(first, _)| *first <= address).checked_sub(1)?;
            offset = self.pieces.get(index).and_then(place);
        }
        self.last = index;
        Some((&mut self.pieces.get_mut(index)?.1, offset?))
    }
}

#[cfg(test)]
mod tests {
    use beeline_mmio::{MemoryOptions, SharedMemory};

    use super::*;

    fn piece(bytes: usize, address: u64) -> DmaRegion {
        let memory = SharedMemory::create("guest", bytes, MemoryOptions::default()).unwrap();
        memory.map().unwrap().dma_memory(0, bytes, address)
    }

    #[test]
    fn an_access_lies_in_one_piece_or_is_not_made() {
        let mut memory = GuestMemory::default();
        for (address, bytes) in [(1 << 32, 8192), (0, 4096), (0x10_0000, 4096)] {
            memory.insert(address, piece(bytes, address));
        }
        let mut out = [0; 16];
        for (address, is_there) in [
            (0u64, true),
            (4080, true),
            (4081, false),
            (4096, false),
            (0xf_fff8, false),
            (0x10_0000, true),
            (0x10_0ff1, false),
            ((1 << 32) - 8, false),
            ((1 << 32) + 8176, true),
            ((1 << 32) + 8177, false),
            (u64::MAX - 7, false),
        ] {
            assert_eq!(
                memory.dma_write(address, &address.to_le_bytes().repeat(2), false),
                is_there,
                "{address:#x}"
            );
            assert_eq!(memory.dma_read(address, &mut out), is_there, "{address:#x}");
            if is_there {
                assert_eq!(out[..8], address.to_le_bytes(), "{address:#x}");
            }
            memory.dma_prefetch(address, 64);
        }
        assert_eq!(memory.dma_word(0x10_0000), Some(0x10_0000));
        assert_eq!(memory.dma_word(0x10_0004), None, "not aligned");
        assert_eq!(memory.remove(0x10_0000, 1).len(), 1);
        assert!(!memory.dma_write(0x10_0000, &[1], false) && memory.dma_write(0, &[1], false));
        assert_eq!(memory.remove(0, u64::MAX).len(), 2);
        assert!(!memory.dma_read(0, &mut out));
    }
}
