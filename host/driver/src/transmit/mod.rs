//! What every interface has in common: hand over a frame, or a burst of them, without ever waiting.

pub(crate) mod credits;
pub(crate) mod entry;
pub(crate) mod frame_buffer;
pub(crate) mod settings;

use beeline_contract_memory::Tolerance;
use beeline_spec::Interface;
use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_window::{Sent, Taken};

use crate::error::TxError;

/// A transmit queue of some interface.
pub trait Transmit {
    /// Hands over a frame (Ethernet without FCS), or says that the queue is full. The frame is the device's, or on its
    /// way to it, when this returns; the caller may reuse the bytes at once.
    ///
    /// # Errors
    /// The frame cannot be sent by this queue, or the device broke the protocol; nothing was handed over.
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError>;

    /// Hands over as many of the frames as fit, in order, as cheaply as the interface can: one doorbell, shared lines.
    /// Fewer than all means full.
    ///
    /// # Errors
    /// As [`Transmit::try_send`], and only when no frame was taken: a bad frame behind good ones ends the burst before
    /// it, and is reported when it comes first.
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError>;

    /// Looks at what the device has finished and lets a port that holds stores release them. To be called while
    /// waiting; the hot path does it by itself when it must.
    ///
    /// # Errors
    /// The device's counts are impossible.
    fn progress(&mut self) -> Result<(), TxError>;

    /// The longest frame in bytes.
    fn max_frame_bytes(&self) -> usize;

    /// Whether the device had finished everything at the last [`Transmit::progress`].
    fn is_idle(&self) -> bool;

    /// What the interface needs of the way to the device, and what it does to frames.
    fn declared(&self) -> Declared;
}

/// Properties that an interface declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    pub interface: Interface,
    /// Disorder of its stores that the device bears; `None` when it stores no frame across the link.
    pub tolerance: Option<Tolerance>,
}

impl Declared {
    /// Frames are padded with zeros to a multiple of this many bytes, and arrive so.
    pub fn frame_multiple_bytes(&self) -> usize {
        self.interface.frame_multiple_bytes()
    }
}

/// Refuses a frame that no device would transmit.
#[inline]
pub(crate) fn check_length(bytes: usize, max_bytes: usize) -> Result<(), TxError> {
    if (MIN_FRAME_BYTES..=max_bytes).contains(&bytes) {
        return Ok(());
    }
    Err(TxError::Length { bytes, min_bytes: MIN_FRAME_BYTES, max_bytes })
}

/// Sends frames one by one until one does not go; what [`Transmit::try_send_burst`] returns then.
#[inline]
pub(crate) fn burst_of_singles(
    frames: &[&[u8]],
    mut send: impl FnMut(&[u8]) -> Result<Sent, TxError>,
) -> Result<Taken, TxError> {
    for (taken, frame) in frames.iter().enumerate() {
        match send(frame) {
            Ok(Sent::Sent) => {}
            Ok(Sent::Full) => return Ok(Taken(taken)),
            Err(error) if taken == 0 => return Err(error),
            Err(_) => return Ok(Taken(taken)),
        }
    }
    Ok(Taken(frames.len()))
}
