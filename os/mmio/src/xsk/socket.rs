//! From an AF_XDP socket to its rings: registering memory, setting sizes, mapping.

use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use rustix::net::sockopt;
use rustix::net::xdp::{
    XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
    XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};

use super::frames::{CHUNK_BYTES, Frames};
use super::ring::{Giver, Layout, Taker, entry_bytes};
use super::{XskError, XskRing, XskRings, XskSizes, XskStep};
use crate::Region;
use crate::mapping::{Backing, Mapping};

impl XskRings {
    /// Gets memory for frames, registers it with an AF_XDP socket that is not bound yet, and maps the socket's rings.
    /// Every chunk to receive into is given to the kernel, so that the socket can be bound at once.
    ///
    /// The kernel pins the memory: it counts against the limit of locked memory unless the process has CAP_IPC_LOCK.
    ///
    /// # Errors
    /// The sizes are no powers of two, or the kernel refused a step.
    pub fn map(socket: impl AsFd, sizes: XskSizes) -> Result<Self, XskError> {
        sizes.check()?;
        let socket = socket.as_fd();
        let chunks = sizes.receive + sizes.transmit;
        let bytes = chunks as usize * CHUNK_BYTES as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice harms no other.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE | MapFlags::POPULATE)
        };
        let region = owned(start, bytes, XskStep::Memory)?;
        let frames = Frames::new(&region, chunks);
        register(socket, &frames)?;
        let size_of_each = |ring: XskRing| match ring {
            XskRing::Fill => XskRings::fill_entries(sizes),
            XskRing::Receive => sizes.receive,
            XskRing::Transmit | XskRing::Completion => sizes.transmit,
        };
        for ring in [XskRing::Fill, XskRing::Completion, XskRing::Receive, XskRing::Transmit] {
            let size = size_of_each(ring);
            let set = match ring {
                XskRing::Fill => sockopt::set_xdp_umem_fill_ring_size(socket, size),
                XskRing::Completion => sockopt::set_xdp_umem_completion_ring_size(socket, size),
                XskRing::Receive => sockopt::set_xdp_rx_ring_size(socket, size),
                XskRing::Transmit => sockopt::set_xdp_tx_ring_size(socket, size),
            };
            let bytes = size as usize * entry_bytes(ring);
            set.map_err(|errno| XskError::Setup { step: XskStep::Size(ring), bytes, errno })?;
        }
        let offsets = sockopt::xdp_mmap_offsets(socket).map_err(|errno| XskError::Setup {
            step: XskStep::Layout,
            bytes: 0,
            errno,
        })?;
        let mapped = |ring: XskRing, at: XdpRingOffset, page_offset: u64| {
            let size = size_of_each(ring);
            let layout =
                Layout { producer: at.producer, consumer: at.consumer, flags: at.flags, entries: at.desc };
            let bytes =
                usize::try_from(at.desc).unwrap_or(usize::MAX / 2) + size as usize * entry_bytes(ring);
            let flags = MapFlags::SHARED | MapFlags::POPULATE;
            // SAFETY: a new mapping at an address of the kernel's choice harms no other.
            let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, socket, page_offset) };
            Ok::<_, XskError>((owned(start, bytes, XskStep::Map(ring))?, layout, size))
        };
        let giver = |ring, at, page_offset| {
            let (region, layout, size) = mapped(ring, at, page_offset)?;
            Giver::new(&region, layout, ring, size)
        };
        let taker = |ring, at, page_offset| {
            let (region, layout, size) = mapped(ring, at, page_offset)?;
            Taker::new(&region, layout, ring, size)
        };
        let fill = giver(XskRing::Fill, offsets.fr, XDP_UMEM_PGOFF_FILL_RING)?;
        let transmit = giver(XskRing::Transmit, offsets.tx, XDP_PGOFF_TX_RING)?;
        let receive = taker(XskRing::Receive, offsets.rx, XDP_PGOFF_RX_RING)?;
        let completion = taker(XskRing::Completion, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING)?;
        XskRings::new(frames, [fill, transmit], [receive, completion], sizes)
    }
}

/// Tells the kernel where frames lie. It pins the pages: they stay what they are to it even when this process is gone
/// and the mapping with it, so that nobody else's memory is ever written.
fn register(socket: impl AsFd, frames: &Frames) -> Result<(), XskError> {
    let bytes = frames.bytes_in_all();
    let memory = XdpUmemReg {
        addr: frames.start().expose_provenance() as u64,
        len: bytes as u64,
        chunk_size: CHUNK_BYTES,
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    sockopt::set_xdp_umem_reg(socket, memory).map_err(|errno| XskError::Setup {
        step: XskStep::Register,
        bytes,
        errno,
    })
}

fn owned(
    start: Result<*mut core::ffi::c_void, Errno>,
    bytes: usize,
    step: XskStep,
) -> Result<Region, XskError> {
    let start = start.map_err(|errno| XskError::Setup { step, bytes, errno })?;
    let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never gives address 0");
    // SAFETY: the caller mapped these bytes for reading and writing just now, and hands them over.
    Ok(Region::new(unsafe { Mapping::from_mmap(start, bytes, Backing::Shared) }))
}
