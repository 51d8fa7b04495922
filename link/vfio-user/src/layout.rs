//! The BARs of a function and what lies in them, from what a device says of itself.

use beeline_link_shm::DeviceLayout;
use beeline_spec::formats::{PCI_VECTOR_BAR, PCI_WINDOW_BAR};

use crate::FunctionError;

/// Regions of a PCI device in VFIO: six BARs, the expansion ROM, configuration space, VGA.
pub(crate) const REGIONS: u32 = 9;
pub(crate) const CONFIG_REGION: u32 = 7;
/// Bytes of configuration space: what PCI had from the beginning.
pub(crate) const CONFIG_BYTES: usize = 256;
/// Kinds of interrupts in VFIO: INTx, MSI, MSI-X, errors, requests.
pub(crate) const IRQ_KINDS: u32 = 5;
pub(crate) const MSIX_KIND: u32 = 2;
/// The first kind of those that tell of errors and requests: one interrupt each, which is taken and never raised.
pub(crate) const FIRST_TOLD_KIND: u32 = 3;

pub(crate) const REGISTER_REGION: u32 = 0;
pub(crate) const WINDOW_REGION: u32 = PCI_WINDOW_BAR as u32;
pub(crate) const VECTOR_REGION: u32 = PCI_VECTOR_BAR as u32;

/// Bytes of an entry of the table of vectors.
const VECTOR_BYTES: u64 = 16;
/// The smallest BAR that is mapped: a page.
const PAGE_BYTES: u64 = 4096;
/// The largest BAR that a guest's firmware finds room for without being told to.
const MAX_BAR_BYTES: u64 = 1 << 30;

/// Sizes of a function's BARs; each a power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionLayout {
    /// BAR 0: the register map before the aperture.
    pub(crate) register_bytes: u64,
    /// BAR 2: the windows.
    pub(crate) window_bytes: u64,
    /// BAR 4: the table of vectors, then the pending bits.
    pub(crate) vector_bytes: u64,
    /// Where the pending bits begin.
    pub(crate) pending_offset_bytes: u64,
    /// Vectors: one for each queue.
    pub(crate) vectors: u32,
    /// End of what BAR 0 has: the aperture's offset in the register map.
    pub(crate) aperture_bytes: u64,
}

impl FunctionLayout {
    /// # Errors
    /// A BAR would be too large.
    pub(crate) fn of(device: &DeviceLayout) -> Result<Self, FunctionError> {
        let bar = |what, bytes: u64| match bytes.checked_next_power_of_two() {
            Some(rounded) if rounded <= MAX_BAR_BYTES => Ok(rounded.max(PAGE_BYTES)),
            _ => Err(FunctionError::TooLarge { what, bytes }),
        };
        let vectors = device.queues();
        let pending_offset_bytes = (u64::from(vectors) * VECTOR_BYTES).next_multiple_of(PAGE_BYTES);
        let pending_bytes = u64::from(vectors).div_ceil(64) * 8;
        let stride = device.window_stride_bytes();
        let windows = stride.saturating_mul(u64::from(vectors));
        Ok(FunctionLayout {
            register_bytes: bar("the registers", device.window_base_bytes())?,
            window_bytes: bar("the windows", windows)?,
            vector_bytes: bar("the vectors", pending_offset_bytes + pending_bytes)?,
            pending_offset_bytes,
            vectors,
            aperture_bytes: device.window_base_bytes(),
        })
    }

    /// How many interrupts a client may set of this kind.
    pub(crate) fn interrupts_of(&self, kind: u32) -> u32 {
        match kind {
            MSIX_KIND => self.vectors,
            FIRST_TOLD_KIND..IRQ_KINDS => 1,
            _ => 0,
        }
    }

    /// Bytes of a region; 0: it is not there.
    pub(crate) fn bytes_of(&self, region: u32) -> u64 {
        match region {
            REGISTER_REGION => self.register_bytes,
            WINDOW_REGION => self.window_bytes,
            VECTOR_REGION => self.vector_bytes,
            CONFIG_REGION => CONFIG_BYTES as u64,
            _ => 0,
        }
    }
}
