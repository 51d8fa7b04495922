//! The up-link through an AF_XDP socket: frames of one EtherType, past the kernel's network.
//!
//! What came in is found by a load from memory and read where it lies; what goes out is written where the kernel, or
//! the device, takes it, and costs one system call for a burst. Other traffic of the interface goes on as before. A
//! program on the interface steers frames here; it goes when this is dropped, and when the process is killed.
//!
//! The RAMCloud/HiStar notes (R bullets) ask for this: functions of the NIC in user space, a protocol of one's own,
//! polling, frames processed where they lie. Frames come from and go to `nic/process` and whoever drives an up-link in
//! its own polling thread; rings and frames are in `os/mmio` (`xsk`), system calls in `os/ethernet/sys`.

mod config;
mod open;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use beeline_mmio::{XskError, XskRings};
use rustix::io::Errno;
use rustix::net::sockopt::xdp_statistics;
use rustix::net::{RecvFlags, SendFlags, recv, send};

pub use config::{AfXdpConfig, BusyPoll, XdpAttach, XdpCopy};

use crate::net_interface::NetInterface;
use crate::{Accept, Taken, Traits, Uplink, UplinkError};
use open::{Opened, Steering};

/// An AF_XDP socket on one queue of an interface.
pub struct AfXdp {
    name: String,
    interface: NetInterface,
    /// Before the socket, so that frames stop coming before the memory for them goes.
    _steering: Steering,
    socket: OwnedFd,
    rings: XskRings,
    longest_frame_bytes: usize,
    /// Frames were published, and the kernel would not look at them yet.
    owes_kick: bool,
    /// A look that finds nothing polls the device.
    polls_device: bool,
    is_zero_copy: bool,
    is_native: bool,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    received: u64,
    too_long: u64,
    kicks: u64,
}

/// What an AF_XDP socket has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfXdpStatistics {
    /// Frames handed to the kernel.
    pub sent: u64,
    /// Frames that the kernel has said are sent.
    pub transmitted: u64,
    /// Frames received.
    pub received: u64,
    /// Frames to be sent that were longer than the interface's, and lost.
    pub too_long: u64,
    /// System calls that told the kernel of frames.
    pub kicks: u64,
    /// Frames that the kernel dropped for other reasons than the next two: too long for a chunk.
    pub kernel_dropped: u64,
    /// Frames that the kernel dropped because we did not look in time.
    pub receive_ring_full: u64,
    /// Times the kernel had no chunk to put a frame in.
    pub fill_ring_empty: u64,
    /// Entries that the kernel refused: 0, or a defect here.
    pub invalid_entries: u64,
}

impl AfXdp {
    /// Opens a socket on an interface of this thread's network namespace, and has frames steered to it.
    ///
    /// Waits at most a second where another socket is in the way, for it may be one that was just closed.
    ///
    /// # Errors
    /// There is no such interface or queue, another socket or program has it, the driver does not do what was asked
    /// for, or the process lacks a capability or locked memory.
    pub fn open(config: &AfXdpConfig) -> Result<Self, UplinkError> {
        let interface = NetInterface::find(&config.interface)?;
        let Opened { steering, socket, rings, is_zero_copy, is_native } = open::open(config, &interface)?;
        let how = if is_zero_copy { "zero-copy" } else { "copy" };
        let name = format!("af-xdp {} queue {} ({how})", interface.name, config.queue);
        let longest_frame_bytes = interface.longest_frame_bytes.min(XskRings::LONGEST_RECEIVED_BYTES);
        Ok(AfXdp {
            name,
            interface,
            _steering: steering,
            socket,
            rings,
            longest_frame_bytes,
            owes_kick: false,
            polls_device: config.busy_poll.is_some(),
            is_zero_copy,
            is_native,
            counts: Counts::default(),
        })
    }

    /// Whether this process could open such a socket on some interface: kernel, capabilities and memory. Touches none.
    ///
    /// # Errors
    /// As [`AfXdp::open`], as far as that does not depend on the interface.
    pub fn probe() -> Result<(), UplinkError> {
        open::prepare(&AfXdpConfig::new("any interface")).map(drop)
    }

    /// The station address of the interface.
    pub fn station_address(&self) -> [u8; 6] {
        self.interface.station
    }

    /// Whether the device uses the memory for frames itself.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Whether frames are steered in the driver.
    pub fn is_native(&self) -> bool {
        self.is_native
    }

    /// Lets `write` build a frame where the kernel takes it from, and sends it; `write` gives the frame's length, 0 for
    /// none. Refused, without calling it, when there is no room.
    ///
    /// The buffer is as long as the longest frame; what is in it is what was left there.
    ///
    /// # Errors
    /// The rings hold what cannot be, or the interface is gone.
    ///
    /// # Panics
    /// When the length is more than the buffer's.
    #[inline]
    pub fn send_with(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> Result<Accept, UplinkError> {
        let accept = self.queue_with(write)?;
        self.kick()?;
        Ok(accept)
    }

    /// As [`AfXdp::send_with`], but the kernel is not told: the frame leaves with the next one that is sent, or with
    /// [`Uplink::flush`].
    ///
    /// # Errors
    /// The rings hold what cannot be.
    #[inline]
    pub fn queue_with(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> Result<Accept, UplinkError> {
        let longest = self.longest_frame_bytes;
        let mut length = 0;
        let queued = self.rings.transmit_with(|chunk| {
            length = write(&mut chunk[..longest]);
            assert!(length <= longest, "a frame of {length} bytes in a buffer of {longest}");
            length
        });
        match queued {
            Ok(true) => {
                self.counts.sent += u64::from(length > 0);
                Ok(Accept::Taken)
            }
            Ok(false) => Ok(Accept::Refused),
            Err(error) => Err(self.broken(error)),
        }
    }

    /// Shows the next frame that came in to `look`, where it lies; `None` when there is none. No system call, unless
    /// the kernel or the options ask for one.
    ///
    /// # Errors
    /// The rings hold what cannot be, or the interface is gone.
    #[inline]
    pub fn poll_with<R>(&mut self, look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, UplinkError> {
        match self.rings.receive_with(look) {
            Ok(Some(answer)) => {
                self.counts.received += 1;
                Ok(Some(answer))
            }
            Ok(None) => {
                if self.owes_kick | self.polls_device | self.is_zero_copy {
                    self.nothing_came()?;
                }
                Ok(None)
            }
            Err(error) => Err(self.broken(error)),
        }
    }

    /// How many frames the kernel has said are sent, of all that were handed to it since the socket was opened.
    ///
    /// # Errors
    /// The rings hold what cannot be.
    #[inline]
    pub fn transmitted(&mut self) -> Result<u64, UplinkError> {
        self.rings.transmitted().map_err(|error| self.broken(error))
    }

    /// What was counted, here and in the kernel. A system call.
    ///
    /// # Errors
    /// The rings hold what cannot be, or the kernel does not answer.
    pub fn statistics(&mut self) -> Result<AfXdpStatistics, UplinkError> {
        let transmitted = self.transmitted()?;
        let kernel =
            xdp_statistics(&self.socket).map_err(|error| self.failed("be asked for counts", error))?;
        let Counts { sent, received, too_long, kicks } = self.counts;
        Ok(AfXdpStatistics {
            sent,
            transmitted,
            received,
            too_long,
            kicks,
            kernel_dropped: kernel.rx_dropped,
            receive_ring_full: kernel.rx_ring_full.unwrap_or(0),
            fill_ring_empty: kernel.rx_fill_ring_empty_descs.unwrap_or(0),
            invalid_entries: kernel.rx_invalid_descs + kernel.tx_invalid_descs,
        })
    }

    /// Queues a frame by copying it. One that is too long is lost and counted.
    #[inline]
    fn queue(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        if frame.len() > self.longest_frame_bytes {
            self.counts.too_long += 1;
            return Ok(Accept::Taken);
        }
        self.queue_with(|buffer| {
            buffer[..frame.len()].copy_from_slice(frame);
            frame.len()
        })
    }

    /// Publishes what was queued and tells the kernel, where it wants to be told. In copy mode the kernel sends in
    /// this call, some tens of frames each time, so that it is repeated as long as it gets on.
    #[inline]
    fn kick(&mut self) -> Result<(), UplinkError> {
        self.rings.publish();
        if !self.rings.transmit_wants_wakeup() {
            return Ok(());
        }
        let mut left = u32::MAX;
        loop {
            self.counts.kicks += 1;
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) => {
                    self.owes_kick = false;
                    return Ok(());
                }
                // More than one call's share, no memory for a packet just now, or the receiver's queue is full.
                Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {
                    let now = self.rings.unseen().map_err(|error| self.broken(error))?;
                    self.owes_kick = now > 0;
                    if now == 0 || now >= left {
                        return Ok(());
                    }
                    left = now;
                }
                // The interface is down: what was sent leaves when it is up again.
                Err(Errno::NETDOWN) => {
                    self.owes_kick = true;
                    return Ok(());
                }
                Err(error) => return Err(self.failed("send", error)),
            }
        }
    }

    /// What is to be done when no frame came in: kicks that are owed, and polling where that is what brings frames.
    #[cold]
    fn nothing_came(&mut self) -> Result<(), UplinkError> {
        if self.owes_kick {
            self.kick()?;
        }
        if self.polls_device || (self.is_zero_copy && self.rings.fill_wants_wakeup()) {
            match recv(&self.socket, &mut [0; 0][..], RecvFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR | Errno::NETDOWN) => {}
                Err(error) => return Err(self.failed("poll the device", error)),
            }
        }
        Ok(())
    }

    #[cold]
    fn broken(&self, error: XskError) -> UplinkError {
        UplinkError::Rings { name: self.name.clone(), error }
    }

    #[cold]
    fn failed(&self, step: &'static str, error: Errno) -> UplinkError {
        let (name, interface) = (self.name.clone(), self.interface.name.clone());
        UplinkError::Socket { name, interface, step, error: error.into() }
    }
}

impl Uplink for AfXdp {
    fn name(&self) -> &str {
        &self.name
    }

    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: false, gives: true, waits: false, learns: true }
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        let accept = self.queue(frame)?;
        self.kick()?;
        Ok(accept)
    }

    #[inline]
    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        let came = self.poll_with(|bytes| {
            frame.clear();
            frame.extend_from_slice(bytes);
        })?;
        Ok(came.is_some())
    }

    fn send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, UplinkError> {
        let mut taken = 0;
        for frame in frames {
            if self.queue(frame)? == Accept::Refused {
                break;
            }
            taken += 1;
        }
        self.kick()?;
        Ok(Taken(taken))
    }

    #[inline]
    fn poll_frame(
        &mut self,
        _scratch: &mut Vec<u8>,
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, UplinkError> {
        Ok(self.poll_with(|bytes| look(bytes))?.is_some())
    }

    fn completed(&mut self) -> Result<Option<u64>, UplinkError> {
        self.transmitted().map(Some)
    }

    fn longest_frame_bytes(&self) -> usize {
        self.longest_frame_bytes
    }

    fn looks_by_system_call(&self) -> bool {
        self.polls_device
    }

    fn flush(&mut self) -> Result<(), UplinkError> {
        self.kick()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}
