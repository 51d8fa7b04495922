//! One client after the other: its requests, checked, and their answers.
//!
//! Nothing here runs on the loop of the port. An access of a register is an order to the loop, and a read waits for the answer, at
//! most [`READ_LIMIT`]; a bus that waits longer answers with ones.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use beeline_mmio::{MappedSegment, SegmentOptions};
use beeline_spec::regs::{self, field};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::config_space::ConfigSpace;
use crate::layout::{
    CONFIG_REGION, FunctionLayout, IRQ_KINDS, MSIX_KIND, REGIONS, REGISTER_REGION, WINDOW_REGION,
};
use crate::message::{MAX_ACCESS_BYTES, Request, refusal, reply, words};
use crate::orders::{Former, Order};
use crate::socket::{Ended, Socket};
use crate::windows::Windows;

/// How long a guest's read of a register may take. The device answers within a few of its own microseconds, or when a time of its
/// own is over; only a loop that has no core takes longer.
const READ_LIMIT: Duration = Duration::from_secs(2);
/// How often a wait for the loop looks whether serving is to end.
const LOOK_FOR_STOP: Duration = Duration::from_millis(100);
/// How long a full queue of orders is left alone.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// Most pieces of memory that a client may map.
const MAX_PIECES: usize = 4096;
/// Granularity of memory that is mapped.
const PAGE_BYTES: u64 = 4096;
/// What a bus answers where nothing is.
const NOTHING: u8 = 0xff;

/// Flags of a region: it is read, written, mapped.
const READ: u32 = 1;
const WRITE: u32 = 2;
const MAP: u32 = 4;
/// Flags of a device: it can be reset, and is of PCI.
const DEVICE_FLAGS: u32 = 1 | 2;
/// Flags of a kind of interrupts: by eventfd.
const IRQ_FLAGS: u32 = 1;
/// Flags of a request that sets interrupts.
const DATA_NONE: u32 = 1;
const DATA_EVENTFD: u32 = 4;
const ACTION_TRIGGER: u32 = 32;
/// Flag of a request that gives back all memory.
const UNMAP_ALL: u32 = 2;
/// Flags of memory: the device may read it, and write it.
const MAP_READ_WRITE: u32 = 3;

/// The text of the version: what this server takes. As many descriptors as the one client of note sends at a time.
const VERSION_TEXT: &str = r#"{"capabilities":{"max_msg_fds":8,"max_data_xfer_size":4096}}"#;

/// What serves a function's clients.
pub(crate) struct Serving {
    layout: FunctionLayout,
    config: ConfigSpace,
    windows: Windows,
    orders: SyncSender<Order>,
    /// Readable when serving is to end.
    stop: Arc<OwnedFd>,
    wake: Box<dyn Fn() + Send>,
    /// Memory that is mapped: bytes by address.
    pieces: BTreeMap<u64, u64>,
}

/// The port of the function was dropped.
struct PortGone;

/// Body of an answer, and a descriptor that goes with it.
type Answer<'s> = (Vec<u8>, Option<BorrowedFd<'s>>);

impl Serving {
    pub(crate) fn new(
        layout: FunctionLayout,
        windows: Windows,
        orders: SyncSender<Order>,
        stop: Arc<OwnedFd>,
        wake: Box<dyn Fn() + Send>,
    ) -> Self {
        let config = ConfigSpace::new(&layout);
        Serving { layout, config, windows, orders, stop, wake, pieces: BTreeMap::new() }
    }

    /// Serves a client until it goes.
    ///
    /// # Errors
    /// How it ended, unless by the client's own will.
    pub(crate) fn client(&mut self, socket: &Socket) -> Result<(), Ended> {
        loop {
            // A client that always has something to say must not keep this from ending.
            if self.is_stopped(Duration::ZERO) {
                return Ok(());
            }
            let (header, body, fds) = match socket.receive() {
                Err(Ended::Closed) => return Ok(()),
                received => received?,
            };
            if !header.is_command() {
                return Err(crate::message::Malformed::Kind(header.flags).into());
            }
            let request = Request::decode(header.command, &body, fds)?;
            let answer = self.answer(request);
            if header.wants_reply() {
                match answer {
                    Ok((body, fd)) => socket.send(&reply(&header, &body), fd.as_slice())?,
                    Err(errno) => socket.send(&refusal(&header, errno.raw_os_error() as u32), &[])?,
                }
            } else if let Err(errno) = answer {
                tracing::debug!(command = header.command, "what no answer is wanted to is refused: {errno}");
            }
        }
    }

    /// Brings the function to its reset state and forgets a client's memory and vectors; `false` when the port is gone.
    pub(crate) fn forget(&mut self) -> bool {
        let none = (0..self.layout.vectors).map(|_| None).collect();
        let is_there =
            self.reset().is_ok() && self.release(0, u64::MAX).is_ok() && self.vectors(0, none).is_ok();
        self.pieces.clear();
        is_there && self.renew_windows().is_ok()
    }

    /// Gives the next client windows of its own. Without memory for them it has those of the one before it, and that is told.
    fn renew_windows(&mut self) -> Result<(), PortGone> {
        match self.windows.renew().and_then(|()| self.windows.for_the_loop()) {
            Ok(windows) => self.waited(|done| Order::Windows { windows, done }),
            Err(error) => {
                tracing::error!("the next guest shares the windows of the one that went: {error}");
                Ok(())
            }
        }
    }

    fn answer(&mut self, request: Request) -> Result<Answer<'_>, Errno> {
        match request {
            Request::Version { major: 0 } => {
                let text = [&[0; 4][..], VERSION_TEXT.as_bytes(), &[0]].concat();
                Ok((text, None))
            }
            Request::DeviceInfo => Ok((words(&[16, DEVICE_FLAGS, REGIONS, IRQ_KINDS]), None)),
            Request::RegionInfo { index } => self.region_info(index),
            Request::IrqInfo { index } if index < IRQ_KINDS => {
                let count = self.layout.interrupts_of(index);
                Ok((words(&[16, if count > 0 { IRQ_FLAGS } else { 0 }, index, count]), None))
            }
            Request::RegionRead { offset_bytes, region, bytes } => {
                let mut body = access(offset_bytes, region, bytes);
                body.extend(self.read(region, offset_bytes, bytes as usize)?);
                Ok((body, None))
            }
            Request::RegionWrite { offset_bytes, region, data } => {
                self.write(region, offset_bytes, &data)?;
                Ok((access(offset_bytes, region, data.len() as u32), None))
            }
            Request::DmaMap { flags, offset_bytes, address, bytes, fds } => {
                self.map(flags, offset_bytes, address, bytes, fds)?;
                Ok((Vec::new(), None))
            }
            Request::DmaUnmap { flags, address, bytes } => {
                self.unmap(flags, address, bytes)?;
                let mut body = words(&[24, flags]);
                body.extend([address, bytes].iter().flat_map(|long| long.to_le_bytes()));
                Ok((body, None))
            }
            Request::SetIrqs { flags, index, first, count, fds } => {
                self.set_irqs(flags, index, first, count, fds)?;
                Ok((Vec::new(), None))
            }
            Request::Reset => self.reset().map(|()| (Vec::new(), None)).map_err(gone),
            Request::Version { .. } | Request::Unknown => Err(Errno::NOTSUP),
            Request::IrqInfo { .. } => Err(Errno::INVAL),
        }
    }

    fn region_info(&self, index: u32) -> Result<Answer<'_>, Errno> {
        if index >= REGIONS {
            return Err(Errno::INVAL);
        }
        let bytes = self.layout.bytes_of(index);
        let fd = (index == WINDOW_REGION).then(|| self.windows.fd());
        let flags = match (bytes, fd) {
            (0, _) => 0,
            (_, None) => READ | WRITE,
            (_, Some(_)) => READ | WRITE | MAP,
        };
        let mut body = words(&[32, flags, index, 0]);
        body.extend([bytes, 0].iter().flat_map(|long: &u64| long.to_le_bytes()));
        Ok((body, fd))
    }

    /// Hands an order to the loop, as soon as there is room for it.
    fn order(&self, mut order: Order) -> Result<(), PortGone> {
        while let Err(refused) = self.orders.try_send(order) {
            let TrySendError::Full(back) = refused else { return Err(PortGone) };
            order = back;
            (self.wake)();
            if self.is_stopped(FULL_PAUSE) {
                return Err(PortGone);
            }
        }
        (self.wake)();
        Ok(())
    }

    /// Whether serving is to end; waits for that as long as `limit`.
    pub(crate) fn is_stopped(&self, limit: Duration) -> bool {
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
        // A signal is no stop, and is looked for again.
        poll(&mut [PollFd::new(&*self.stop, PollFlags::IN)], Some(&limit)).is_ok_and(|ready| ready > 0)
    }

    /// Reads of a region, by a guest or by whoever is in front of it.
    fn read(&self, region: u32, offset: u64, bytes: usize) -> Result<Vec<u8>, Errno> {
        self.check(region, offset, bytes)?;
        let mut data = vec![0; bytes];
        match region {
            CONFIG_REGION => {
                self.config.read(offset, &mut data);
            }
            WINDOW_REGION => {
                self.windows.region().copy_out(offset as usize, &mut data);
            }
            REGISTER_REGION => self.read_registers(offset, &mut data)?,
            // The table is the client's own; nothing is ever pending here.
            _ => {}
        }
        Ok(data)
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        self.check(region, offset, data.len())?;
        match region {
            CONFIG_REGION => {
                let was_master = self.config.is_bus_master();
                self.config.write(offset, data);
                let is_master = self.config.is_bus_master();
                if is_master != was_master {
                    // Answered when it holds: a driver that has cut the function off uses its memory for something else.
                    self.waited(|done| Order::Master { is_master, done }).map_err(gone)?;
                }
            }
            WINDOW_REGION => {
                self.windows.region().copy_in(offset as usize, data);
            }
            REGISTER_REGION => self.write_registers(offset, data)?,
            _ => {}
        }
        Ok(())
    }

    fn check(&self, region: u32, offset: u64, bytes: usize) -> Result<(), Errno> {
        let end = offset.checked_add(bytes as u64).ok_or(Errno::INVAL)?;
        let is_inside = bytes <= MAX_ACCESS_BYTES && end <= self.layout.bytes_of(region);
        if is_inside { Ok(()) } else { Err(Errno::INVAL) }
    }

    /// Registers are words; a narrower read is a part of one.
    fn read_registers(&self, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let (word, inside) = (at & !7, (at & 7) as usize);
            let taken = rest.len().min(8 - inside);
            let (part, behind) = rest.split_at_mut(taken);
            part.copy_from_slice(&self.read_register(word)?.to_le_bytes()[inside..inside + taken]);
            at += taken as u64;
            rest = behind;
        }
        Ok(())
    }

    fn read_register(&self, offset: u64) -> Result<u64, Errno> {
        let ones = u64::from_ne_bytes([NOTHING; 8]);
        if offset >= self.layout.aperture_bytes {
            return Ok(ones);
        }
        let (answer, answered) = sync_channel(1);
        self.order(Order::Read { offset_bytes: offset as u32, answer }).map_err(gone)?;
        Ok(answered.recv_timeout(READ_LIMIT).unwrap_or(ones))
    }

    /// Registers are written whole: what is no aligned word is dropped, as the device would drop it.
    fn write_registers(&self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let Ok(word) = <[u8; 8]>::try_from(data) else { return Ok(()) };
        if !offset.is_multiple_of(8) || offset >= self.layout.aperture_bytes {
            return Ok(());
        }
        self.order(Order::Write { offset_bytes: offset as u32, value: u64::from_le_bytes(word) })
            .map_err(gone)
    }

    /// Maps a piece of the guest's memory. What comes without a descriptor (ROMs) is not reached by the device.
    fn map(
        &mut self,
        flags: u32,
        offset: u64,
        address: u64,
        bytes: u64,
        mut fds: Vec<OwnedFd>,
    ) -> Result<(), Errno> {
        let is_whole = bytes > 0 && [address, bytes].iter().all(|value| value.is_multiple_of(PAGE_BYTES));
        let end = address.checked_add(bytes).filter(|_| is_whole).ok_or(Errno::INVAL)?;
        let before = self.pieces.range(..end).next_back();
        if before.is_some_and(|(first, bytes)| first + bytes > address) {
            return Err(Errno::EXIST);
        }
        if self.pieces.len() >= MAX_PIECES {
            return Err(Errno::NOSPC);
        }
        let fd = match fds.len() {
            0 => return Ok(()),
            1 => fds.pop().ok_or(Errno::INVAL)?,
            _ => return Err(Errno::INVAL),
        };
        if flags & MAP_READ_WRITE != MAP_READ_WRITE {
            return Ok(());
        }
        let bytes = usize::try_from(bytes).map_err(|_| Errno::INVAL)?;
        let options =
            SegmentOptions { offset_bytes: offset, bytes: Some(bytes), ..SegmentOptions::default() };
        let segment = MappedSegment::memory(fd.as_fd(), &options).map_err(|error| {
            tracing::warn!(
                "memory of the guest at {address:#x} is not reached: {error}; give it a sealed memfd"
            );
            Errno::PERM
        })?;
        let region = segment.region().ok_or(Errno::PERM)?;
        let memory = region.dma_memory(0, bytes, address);
        self.order(Order::Map { address, memory }).map_err(gone)?;
        self.pieces.insert(address, bytes as u64);
        Ok(())
    }

    /// Gives memory back: whole pieces, and when this returns the device does not reach them any more.
    fn unmap(&mut self, flags: u32, address: u64, bytes: u64) -> Result<(), Errno> {
        let (first, bytes) = if flags & UNMAP_ALL != 0 { (0, u64::MAX) } else { (address, bytes) };
        let end = first.checked_add(bytes).ok_or(Errno::INVAL)?;
        // Pieces do not overlap: one that is cut is the last that begins before either end.
        let is_cut = |edge: u64| {
            let before = self.pieces.range(..edge).next_back();
            before.is_some_and(|(at, bytes)| at + bytes > edge)
        };
        if is_cut(first) || is_cut(end) {
            return Err(Errno::INVAL);
        }
        self.release(first, bytes).map_err(gone)?;
        self.pieces.retain(|at, _| !(first..end).contains(at));
        Ok(())
    }

    fn release(&self, address: u64, bytes: u64) -> Result<(), PortGone> {
        self.waited(|done| Order::Unmap { address, bytes, done })
    }

    fn vectors(&self, first: u32, events: Vec<Option<OwnedFd>>) -> Result<(), PortGone> {
        self.waited(|done| Order::Vectors { first, events, done })
    }

    /// Gives an order and waits until it was carried out; what it made superfluous is dropped here.
    fn waited(&self, order: impl FnOnce(SyncSender<Former>) -> Order) -> Result<(), PortGone> {
        let (done, is_done) = sync_channel(1);
        self.order(order(done))?;
        loop {
            match is_done.recv_timeout(LOOK_FOR_STOP) {
                Ok(Former { memory, events }) => {
                    drop((memory, events));
                    return Ok(());
                }
                // The loop has no core, or is stopped: until it has let go, nobody is told that it has.
                Err(RecvTimeoutError::Timeout) if !self.is_stopped(Duration::ZERO) => {}
                Err(_) => return Err(PortGone),
            }
        }
    }

    fn set_irqs(
        &self,
        flags: u32,
        kind: u32,
        first: u32,
        count: u32,
        fds: Vec<OwnedFd>,
    ) -> Result<(), Errno> {
        let vectors = self.layout.interrupts_of(kind);
        let end = first.checked_add(count).filter(|end| *end <= vectors).ok_or(Errno::INVAL)?;
        if kind >= IRQ_KINDS || flags & ACTION_TRIGGER == 0 {
            return Err(Errno::INVAL);
        }
        if kind != MSIX_KIND {
            // Of the kinds that there are none of only switching off is sound, and the others are never raised.
            return Ok(());
        }
        if flags & DATA_NONE != 0 {
            // None from the first on: the kind is switched off. Otherwise somebody asks for interrupts without a cause.
            let all = (first..vectors).map(|_| None).collect();
            return if count == 0 { self.vectors(first, all).map_err(gone) } else { Err(Errno::NOTSUP) };
        }
        if flags & DATA_EVENTFD == 0 || fds.len() > count as usize {
            return Err(Errno::INVAL);
        }
        let mut events =
            fds.into_iter().map(|fd| checked_event(fd).map(Some)).collect::<Result<Vec<_>, _>>()?;
        // As many vectors as there are descriptors lead somewhere, and the others nowhere.
        events.resize_with((end - first) as usize, || None);
        self.vectors(first, events).map_err(gone)
    }

    /// The function as it was made: no memory is reached, every queue is off.
    fn reset(&mut self) -> Result<(), PortGone> {
        self.config = ConfigSpace::new(&self.layout);
        let value = field::control::RESET_MASK << field::control::RESET_LSB;
        self.order(Order::Write { offset_bytes: regs::CONTROL, value })?;
        // Behind the write, so that both hold when it is done.
        self.waited(|done| Order::Master { is_master: false, done })
    }
}

fn gone(_: PortGone) -> Errno {
    Errno::NODEV
}

/// What an answer to an access of a region begins with.
fn access(offset: u64, region: u32, bytes: u32) -> Vec<u8> {
    [&offset.to_le_bytes()[..], &region.to_le_bytes(), &bytes.to_le_bytes()].concat()
}

/// An eventfd whose writes do not wait: the port's loop writes it.
fn checked_event(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
    let target = rustix::fs::readlink(path, Vec::new())?;
    if target.as_bytes() != b"anon_inode:[eventfd]" {
        return Err(Errno::INVAL);
    }
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
    Ok(fd)
}
