//! Buffers of devices that are passed by descriptor.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::error::SegmentError;
use super::options::{Access, SegmentOptions};
use super::{MappedSegment, source};

/// A dma-buf: memory of a device, or that devices use, which its exporter lets be mapped.
///
/// Where caches are not coherent with the device, the CPU's accesses stand between [`DmaBuf::begin_access`] and
/// [`DmaBuf::end_access`]; elsewhere these cost a system call and change nothing.
#[derive(Debug)]
pub struct DmaBuf {
    fd: OwnedFd,
    bytes: u64,
}

impl DmaBuf {
    /// Takes over a descriptor, after checking that it is a dma-buf's.
    ///
    /// # Errors
    /// [`SegmentError::Kind`] if it is of something else, [`SegmentError::Examine`] if the kernel does not say what it is.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, SegmentError> {
        let bytes = source::dma_buf_bytes(fd.as_fd())?;
        Ok(DmaBuf { fd, bytes })
    }

    /// Returns the size of the buffer, which never changes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The descriptor, to be passed on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Maps a part of it. Its device can be removed, which needs an [`OnLoss`](super::OnLoss) that allows it.
    ///
    /// # Errors
    /// As for [`MappedSegment::memory`].
    pub fn map(&self, options: &SegmentOptions) -> Result<MappedSegment, SegmentError> {
        MappedSegment::of(&source::dma_buf(self.fd(), self.bytes, options)?, options)
    }

    /// Makes what devices wrote visible to the CPU. May wait for a device.
    ///
    /// # Errors
    /// The error of the kernel's `DMA_BUF_IOCTL_SYNC`.
    pub fn begin_access(&self, access: Access) -> Result<(), Errno> {
        self.synchronise(access, 0)
    }

    /// Makes what the CPU wrote visible to devices.
    ///
    /// # Errors
    /// The error of the kernel's `DMA_BUF_IOCTL_SYNC`.
    pub fn end_access(&self, access: Access) -> Result<(), Errno> {
        /// `DMA_BUF_SYNC_END` of Linux's `dma-buf.h`.
        const END: u64 = 1 << 2;
        self.synchronise(access, END)
    }

    fn synchronise(&self, access: Access, end: u64) -> Result<(), Errno> {
        /// `DMA_BUF_IOCTL_SYNC`, `DMA_BUF_SYNC_READ` and `DMA_BUF_SYNC_WRITE` of Linux's `dma-buf.h`.
        const SYNC: u64 = 0x4008_6200;
        const READ: u64 = 1;
        const WRITE: u64 = 2;
        let flags = end | READ | if access == Access::ReadWrite { WRITE } else { 0 };
        loop {
            // SAFETY: the descriptor is a dma-buf's, and the kernel reads the eight bytes of `flags`, which lives through the call.
            let done: c_int = unsafe { libc::ioctl(self.fd.as_raw_fd(), SYNC as _, &raw const flags) };
            if done == 0 {
                return Ok(());
            }
            match Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL) {
                Errno::INTR | Errno::AGAIN => {}
                errno => return Err(errno),
            }
        }
    }
}
