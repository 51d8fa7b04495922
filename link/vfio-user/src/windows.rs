//! The memory that a client maps as the windows. Each client has memory of its own: one that kept its mapping sees and changes
//! nothing of the next.

use std::os::fd::BorrowedFd;

use beeline_link_shm::DeviceLayout;
use beeline_mmio::{LoadWindow, MemoryOptions, Region, SharedMemory};
use beeline_spec::LINE_BYTES;
use beeline_spec::escape::blank_from_random;

use crate::FunctionError;

/// The windows of a function's present client.
#[derive(Debug)]
pub(crate) struct Windows {
    memory: SharedMemory,
    region: Region,
    options: MemoryOptions,
    stride_bytes: usize,
    lines: Vec<u32>,
}

impl Windows {
    /// Memory of `bytes` for the windows of a device.
    ///
    /// # Errors
    /// It cannot be had.
    pub(crate) fn make(
        device: &DeviceLayout,
        bytes: u64,
        options: MemoryOptions,
    ) -> Result<Self, FunctionError> {
        let (memory, region) = fresh(bytes as usize, options)?;
        let (stride_bytes, lines) = (device.window_stride_bytes() as usize, device.window_lines().to_vec());
        Ok(Windows { memory, region, options, stride_bytes, lines })
    }

    /// Other memory in the place of this one.
    ///
    /// # Errors
    /// It cannot be had; this one stays.
    pub(crate) fn renew(&mut self) -> Result<(), FunctionError> {
        (self.memory, self.region) = fresh(self.memory.bytes(), self.options)?;
        Ok(())
    }

    /// The window of each queue, for the loop that looks at them, with a blank for one whose host chooses none.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn for_the_loop(&self) -> Result<Vec<(LoadWindow, u64)>, FunctionError> {
        let window = |(queue, lines): (usize, &u32)| {
            let offset = queue * self.stride_bytes;
            debug_assert!(offset + *lines as usize * LINE_BYTES <= self.region.bytes(), "a checked layout");
            let random = getrandom::u64().map_err(|error| FunctionError::Random(error.to_string()))?;
            Ok((self.region.load_window(offset, *lines), blank_from_random(random)))
        };
        self.lines.iter().enumerate().map(window).collect()
    }

    /// What a client maps.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.memory.fd()
    }

    /// The same memory, for accesses that are not made by a mapping.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }
}

fn fresh(bytes: usize, options: MemoryOptions) -> Result<(SharedMemory, Region), FunctionError> {
    let memory = SharedMemory::create("beeline-function", bytes, options)?;
    let region = memory.map()?;
    Ok((memory, region))
}
