//! The memory of an AF_XDP socket: frames in chunks, and four rings that hand them to the kernel and back.
//!
//! What comes in is shown where the kernel put it; what goes out is written where the kernel takes it from. Neither is
//! copied here, and nothing here but the setting up is a system call: to wake the kernel, to bind the socket and to
//! steer frames to it is the business of `os/ethernet`. The kernel's indices and entries are treated as a peer's
//! ([`XskError`]). Everything but `socket.rs` works on plain memory, which is how the tests and Miri run it.
//!
//! The size of the rings is a trade that the RAMCloud/HiStar notes name (R bullets): frames that are many wait longer
//! without being lost, and are colder when they are reused.

mod error;
mod frames;
mod ring;
mod socket;
#[cfg(test)]
mod tests;

pub use error::{XskError, XskRing, XskStep};

use frames::{CHUNK_BYTES, Frames, Owner};
use ring::{Giver, Taker};

/// Most frames of one direction: 256 MiB of memory.
const MOST_FRAMES: u32 = 1 << 16;
/// Empty chunks are kept back in groups of at most this many, so that the line of the fill ring's index changes hands
/// less often; of an eighth of the chunks if that is less, for the kernel cannot fill what it was not shown.
const MOST_UNPUBLISHED: u32 = 16;

/// How many frames an AF_XDP socket has room for, of 4096 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskSizes {
    /// Frames that may wait to be looked at; a power of two.
    pub receive: u32,
    /// Frames that may wait to be sent; a power of two.
    pub transmit: u32,
}

impl XskSizes {
    fn check(self) -> Result<(), XskError> {
        let fits = |frames: u32| frames.is_power_of_two() && frames <= MOST_FRAMES;
        match fits(self.receive) && fits(self.transmit) {
            true => Ok(()),
            false => {
                Err(XskError::Sizes { receive: self.receive, transmit: self.transmit, most: MOST_FRAMES })
            }
        }
    }
}

/// The rings and frames of one AF_XDP socket, this side of them.
pub struct XskRings {
    frames: Frames,
    fill: Giver,
    receive: Taker,
    transmit: Giver,
    completion: Taker,
    /// Chunks to send from that are ours; the last one used is the first to be used again, for it is in the cache.
    spare: Vec<u32>,
    /// The chunk of a frame that is being looked at; still here when the look ended in a panic.
    looked_at: Option<u32>,
    transmitted: u64,
    sizes: XskSizes,
}

impl XskRings {
    /// Bytes of the longest frame that can be sent. The kernel keeps 256 bytes before each frame it receives.
    pub const LONGEST_FRAME_BYTES: usize = CHUNK_BYTES as usize;
    /// Bytes of the longest frame that can be received.
    pub const LONGEST_RECEIVED_BYTES: usize = CHUNK_BYTES as usize - 256;

    fn new(
        frames: Frames,
        givers: [Giver; 2],
        takers: [Taker; 2],
        sizes: XskSizes,
    ) -> Result<Self, XskError> {
        let [fill, transmit] = givers;
        let [receive, completion] = takers;
        // The chunks to receive into come first.
        let spare = (sizes.receive..sizes.receive + sizes.transmit).rev().collect();
        let (looked_at, transmitted) = (None, 0);
        let mut rings =
            XskRings { frames, fill, receive, transmit, completion, spare, looked_at, transmitted, sizes };
        for chunk in 0..sizes.receive {
            rings.refill(chunk)?;
        }
        rings.fill.publish();
        Ok(rings)
    }

    /// Entries of the fill ring. The kernel takes entries in groups and says so only when it takes the next group: at
    /// worst it has taken every chunk, we have given every one back, and it has said neither.
    const fn fill_entries(sizes: XskSizes) -> u32 {
        2 * sizes.receive
    }

    /// The sizes it was made with.
    pub fn sizes(&self) -> XskSizes {
        self.sizes
    }

    /// Shows the frame that came in longest ago to `look`, where it lies, and gives its chunk back to the kernel;
    /// `None` when there is none. No system call.
    ///
    /// # Errors
    /// The receive or fill ring holds what cannot be.
    #[inline]
    pub fn receive_with<R>(&mut self, look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, XskError> {
        if let Some(chunk) = self.looked_at.take() {
            self.refill(chunk)?;
        }
        let Some(entry) = self.receive.first()? else {
            self.fill.publish();
            return Ok(None);
        };
        let frame = self.frames.take(XskRing::Receive, entry, Owner::KernelToFill)?;
        self.receive.release();
        self.looked_at = Some(frame.chunk);
        let answer = look(self.frames.bytes(frame));
        self.looked_at = None;
        self.refill(frame.chunk)?;
        Ok(Some(answer))
    }

    #[inline]
    fn refill(&mut self, chunk: u32) -> Result<(), XskError> {
        // Only a wrong index leaves no room: see `fill_entries`.
        if !self.fill.has_room()? {
            return Err(XskError::Owner { ring: XskRing::Fill, chunk });
        }
        self.frames.give(chunk, Owner::KernelToFill);
        self.fill.put(Frames::address(chunk), None);
        if self.fill.unpublished() >= MOST_UNPUBLISHED.min(self.sizes.receive / 8) {
            self.fill.publish();
        }
        Ok(())
    }

    /// Lets `write` build a frame in place and queues it; it gives the frame's length, 0 for none. `false` without
    /// calling it when there is no room. The kernel sees the frame after [`XskRings::publish`].
    ///
    /// What `write` finds in the chunk is what was left there.
    ///
    /// # Errors
    /// The transmit or completion ring holds what cannot be.
    ///
    /// # Panics
    /// When the length is more than the chunk's.
    #[inline]
    pub fn transmit_with(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> Result<bool, XskError> {
        if self.spare.is_empty() {
            self.reap()?;
        }
        let Some(chunk) = self.spare.last().copied() else { return Ok(false) };
        if !self.transmit.has_room()? {
            return Ok(false);
        }
        let length = write(self.frames.chunk_mut(chunk));
        assert!(length <= Self::LONGEST_FRAME_BYTES, "a frame of {length} bytes in a chunk of {CHUNK_BYTES}");
        if length > 0 {
            self.spare.pop();
            self.frames.give(chunk, Owner::KernelToSend);
            self.transmit.put(Frames::address(chunk), Some(length as u32));
        }
        Ok(true)
    }

    /// Shows the kernel what was queued to be sent.
    #[inline]
    pub fn publish(&mut self) {
        self.transmit.publish();
    }

    /// Frames that the kernel has not looked at yet: published, and it has still to be told of them or is busy.
    ///
    /// # Errors
    /// The transmit ring holds what cannot be.
    #[inline]
    pub fn unseen(&mut self) -> Result<u32, XskError> {
        self.transmit.outstanding()
    }

    /// How many frames the kernel has said are sent, since the beginning. Takes their chunks back.
    ///
    /// # Errors
    /// The completion ring holds what cannot be.
    #[inline]
    pub fn transmitted(&mut self) -> Result<u64, XskError> {
        self.reap()?;
        Ok(self.transmitted)
    }

    #[inline]
    fn reap(&mut self) -> Result<(), XskError> {
        while let Some(entry) = self.completion.first()? {
            let frame = self.frames.take(XskRing::Completion, entry, Owner::KernelToSend)?;
            self.completion.release();
            self.spare.push(frame.chunk);
            self.transmitted += 1;
        }
        Ok(())
    }

    /// Whether the kernel takes frames to send only when told to, by a system call.
    #[inline]
    pub fn transmit_wants_wakeup(&self) -> bool {
        self.transmit.wants_wakeup()
    }

    /// Whether the kernel looks at empty chunks only when told to, by a system call.
    #[inline]
    pub fn fill_wants_wakeup(&self) -> bool {
        self.fill.wants_wakeup()
    }
}
