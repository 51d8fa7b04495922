//! Configuration space of the function: who it is, where its BARs are, and MSI-X. What a guest writes changes the bits that are
//! writable and no others.

use beeline_spec::formats::{PCI_CLASS, PCI_DEVICE_ID, PCI_VENDOR_ID};

use crate::layout::{CONFIG_BYTES as BYTES, FunctionLayout, REGISTER_REGION, VECTOR_REGION, WINDOW_REGION};

const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const REVISION: usize = 0x08;
const CACHE_LINE: usize = 0x0c;
const FIRST_BAR: usize = 0x10;
const SUBSYSTEM: usize = 0x2c;
const CAPABILITIES: usize = 0x34;
const INTERRUPT_LINE: usize = 0x3c;
const MSIX: usize = 0x40;

/// Bits of the command register that can be set: memory, bus master, no INTx.
const COMMAND_MASK: u16 = 0x0406;
const BUS_MASTER: u8 = 0x04;
const HAS_CAPABILITIES: u8 = 0x10;
const MSIX_ID: u8 = 0x11;
/// Bits of MSI-X's control that can be set: mask all, enable.
const MSIX_MASK: u8 = 0xc0;
/// What the lowest bits of a BAR say of it.
const BAR_64: u32 = 0x4;
const BAR_PREFETCHABLE: u32 = 0x8;

/// Configuration space.
#[derive(Clone, Debug)]
pub(crate) struct ConfigSpace {
    bytes: [u8; BYTES],
    writable: [u8; BYTES],
}

impl ConfigSpace {
    pub(crate) fn new(layout: &FunctionLayout) -> Self {
        let mut space = ConfigSpace { bytes: [0; BYTES], writable: [0; BYTES] };
        space.put(0, &(PCI_VENDOR_ID as u16).to_le_bytes());
        space.put(2, &(PCI_DEVICE_ID as u16).to_le_bytes());
        space.writable[COMMAND..STATUS].copy_from_slice(&COMMAND_MASK.to_le_bytes());
        space.bytes[STATUS] = HAS_CAPABILITIES;
        space.bytes[REVISION] = 1;
        space.put(REVISION + 1, &(PCI_CLASS as u32).to_le_bytes()[..3]);
        space.writable[CACHE_LINE] = u8::MAX;
        space.put_bar(REGISTER_REGION, layout.register_bytes, BAR_64);
        space.put_bar(WINDOW_REGION, layout.window_bytes, BAR_64 | BAR_PREFETCHABLE);
        space.put_bar(VECTOR_REGION, layout.vector_bytes, 0);
        space.put(SUBSYSTEM, &(PCI_VENDOR_ID as u16).to_le_bytes());
        space.put(SUBSYSTEM + 2, &(PCI_DEVICE_ID as u16).to_le_bytes());
        space.bytes[CAPABILITIES] = MSIX as u8;
        space.writable[INTERRUPT_LINE] = u8::MAX;
        space.bytes[MSIX] = MSIX_ID;
        space.put(MSIX + 2, &(layout.vectors as u16 - 1).to_le_bytes());
        space.writable[MSIX + 3] = MSIX_MASK;
        space.put(MSIX + 4, &VECTOR_REGION.to_le_bytes());
        space.put(MSIX + 8, &(layout.pending_offset_bytes as u32 | VECTOR_REGION).to_le_bytes());
        space
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// A BAR: the bits of an address inside it cannot be set, which tells its size.
    fn put_bar(&mut self, index: u32, bytes: u64, kind: u32) {
        let at = FIRST_BAR + 4 * index as usize;
        let mask = (!(bytes - 1)).to_le_bytes();
        let width = if kind & BAR_64 == 0 { 4 } else { 8 };
        self.put(at, &kind.to_le_bytes());
        self.writable[at..at + width].copy_from_slice(&mask[..width]);
    }

    /// Whether the function may reach memory and raise interrupts.
    pub(crate) fn is_bus_master(&self) -> bool {
        self.bytes[COMMAND] & BUS_MASTER != 0
    }

    /// Copies out what lies at `offset`; `false` if not all of it is there.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        let Some(found) =
            usize::try_from(offset).ok().and_then(|at| self.bytes.get(at..at.checked_add(out.len())?))
        else {
            return false;
        };
        out.copy_from_slice(found);
        true
    }

    /// Writes the writable bits of what lies at `offset`; `false` if not all of it is there, and then nothing is written.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> bool {
        let Some(range) = usize::try_from(offset).ok().and_then(|at| Some(at..at.checked_add(data.len())?))
        else {
            return false;
        };
        let (Some(bytes), Some(masks)) = (self.bytes.get_mut(range.clone()), self.writable.get(range)) else {
            return false;
        };
        for ((byte, mask), new) in bytes.iter_mut().zip(masks).zip(data) {
            *byte = *byte & !mask | new & mask;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn space() -> ConfigSpace {
        ConfigSpace::new(&FunctionLayout {
            register_bytes: 1 << 21,
            window_bytes: 1 << 24,
            vector_bytes: 8192,
            pending_offset_bytes: 4096,
            vectors: 16,
            aperture_bytes: 0x11_0000,
        })
    }

    fn word(space: &ConfigSpace, at: u64) -> u32 {
        let mut out = [0; 4];
        assert!(space.read(at, &mut out));
        u32::from_le_bytes(out)
    }

    #[test]
    fn a_bus_driver_finds_what_the_function_is() {
        let mut space = space();
        assert_eq!(word(&space, 0), (PCI_DEVICE_ID as u32) << 16 | PCI_VENDOR_ID as u32);
        assert_eq!(word(&space, 8) >> 8, PCI_CLASS as u32);
        // A BAR's size is what stays clear when ones are written.
        for (bar, bytes, kind) in [(0, 1u64 << 21, 0x4), (2, 1 << 24, 0xc), (4, 8192, 0)] {
            let at = 0x10 + 4 * bar;
            assert_eq!(word(&space, at), kind, "BAR {bar}");
            assert!(space.write(at, &[u8::MAX; 8]));
            assert_eq!(u64::from(word(&space, at) & !0xf), (!(bytes - 1)) & 0xffff_ffff, "BAR {bar}");
        }
        assert_eq!(word(&space, 0x40) & 0xff, 0x11);
        assert_eq!(word(&space, 0x40) >> 16, 15, "one less than the vectors");
        assert_eq!((word(&space, 0x44), word(&space, 0x48)), (4, 4096 | 4));
    }

    #[test]
    fn memory_is_reached_only_as_a_bus_master() {
        let mut space = space();
        assert!(!space.is_bus_master());
        assert!(space.write(0x04, &[0x06, 0]));
        assert!(space.is_bus_master());
        assert!(space.write(0x04, &[0x02, 0]));
        assert!(!space.is_bus_master());
    }

    proptest! {
        #[test]
        fn what_is_not_writable_stays(writes in proptest::collection::vec((any::<u64>(), proptest::collection::vec(any::<u8>(), 0..16)), 0..40)) {
            let mut space = space();
            let before = space.bytes;
            for (offset, data) in writes {
                let fits = offset.checked_add(data.len() as u64).is_some_and(|end| end <= BYTES as u64);
                let offset = if offset & 1 == 0 { offset % 256 } else { offset };
                let fits = fits || offset.checked_add(data.len() as u64).is_some_and(|end| end <= BYTES as u64);
                prop_assert_eq!(space.write(offset, &data), fits);
            }
            for ((now, before), mask) in space.bytes.iter().zip(before).zip(space.writable) {
                prop_assert_eq!(now & !mask, before & !mask);
            }
        }
    }
}
