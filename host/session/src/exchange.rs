//! One frame at a time: handed over, waited for, finished.

use beeline_driver::{Receive, Sent, Transmit};
use beeline_mmio::clock::now_ticks;

use crate::{NicError, Rx, Session, Watchdog};

/// Bytes that a frame of `bytes` bytes has on arrival: some interfaces pad (kPIO+WC to multiples of 8).
pub fn padded_bytes<T: Transmit>(bytes: usize, tx: &T) -> usize {
    bytes.next_multiple_of(tx.declared().frame_multiple_bytes())
}

/// Hands a frame over, waiting for room.
///
/// # Errors
/// The queue refuses the frame, or room does not come.
pub fn send_one<T: Transmit>(session: &mut Session, tx: &mut T, frame: &[u8]) -> Result<(), NicError> {
    let mut watchdog = Watchdog::new();
    loop {
        match tx.try_send(frame)? {
            Sent::Sent => return Ok(()),
            Sent::Full => {
                tx.progress()?;
                watchdog.idle(session, "room to send")?;
            }
        }
    }
}

/// Waits for a frame; the time in ticks at which it was in hand. Its bytes are copied to `found` after that.
///
/// # Errors
/// The device broke the protocol, or nothing comes.
pub fn receive_one(session: &mut Session, rx: &mut Rx, found: &mut Vec<u8>) -> Result<u64, NicError> {
    let mut watchdog = Watchdog::new();
    loop {
        if let Some(mut frame) = rx.poll()? {
            let end = now_ticks();
            frame.copy_to(found);
            return Ok(end);
        }
        watchdog.idle(session, "a frame to come back")?;
    }
}

/// Waits until the device has finished every frame that it was handed.
///
/// # Errors
/// The device's counts are impossible, or it does not finish.
pub fn finish<T: Transmit>(session: &mut Session, tx: &mut T) -> Result<(), NicError> {
    let mut watchdog = Watchdog::new();
    loop {
        tx.progress()?;
        if tx.is_idle() {
            return Ok(());
        }
        watchdog.idle(session, "the NIC to transmit the last frames")?;
    }
}
