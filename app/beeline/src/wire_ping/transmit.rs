//! How long sending takes: from handing frames over to their being done, 1, 2 and 10 in a row, as the HiStar notes
//! measured it (frames of 100 bytes, Ethernet header included).
//!
//! "Done" is what the system says: with AF_XDP the completion ring, which says that the frames' memory is ours again;
//! with AF_PACKET the return of the call. The frames are of no version of the protocol, so the server drops them.

use beeline_datagram::MacAddress;
use beeline_ethernet::{Accept, ETHER_TYPE, Uplink, UplinkError};
use beeline_mmio::clock::{Calibration, now_ticks};
use beeline_session::{Times, new_times};

use super::socket::Socket;

/// Frames in a row.
pub const BURSTS: [usize; 3] = [1, 2, 10];
pub const FRAME_BYTES: usize = 100;
/// Looks at the completion ring before a burst counts as stuck.
const MOST_LOOKS: u64 = 100_000_000;

/// Reasons for which there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum TransmitError {
    /// The up-link failed.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// The up-link took no frame, or never said that one is done.
    #[error("{done} of {frames} frames were done; see that the interface and its peer are up: `ip link`")]
    Stuck {
        /// Frames handed over.
        frames: usize,
        /// Frames that were done.
        done: u64,
    },
}

/// Times `count` bursts of `frames` frames each.
pub fn measure(
    socket: &mut Socket,
    server: MacAddress,
    frames: usize,
    count: u64,
    calibration: Calibration,
) -> Result<Times, TransmitError> {
    let mut frame = [0; FRAME_BYTES];
    frame[..6].copy_from_slice(&server.0);
    frame[6..12].copy_from_slice(&socket.station().0);
    frame[12..14].copy_from_slice(&ETHER_TYPE.to_be_bytes());
    let burst = vec![frame.as_slice(); frames];
    let mut times = new_times();
    for number in 0..count + count / 10 {
        let start = now_ticks();
        send(socket, &burst)?;
        let ns = calibration.to_ns(now_ticks() - start);
        if number >= count / 10 {
            times.saturating_record(ns as u64);
        }
    }
    Ok(times)
}

/// Sends a burst and waits until it is done.
fn send(socket: &mut Socket, burst: &[&[u8]]) -> Result<(), TransmitError> {
    let frames = burst.len();
    match socket {
        Socket::Xdp(socket) => {
            let before = socket.transmitted()?;
            if socket.send_burst(burst)?.0 < frames {
                return Err(TransmitError::Stuck { frames, done: 0 });
            }
            for _ in 0..MOST_LOOKS {
                if socket.transmitted()? - before >= frames as u64 {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            Err(TransmitError::Stuck { frames, done: socket.transmitted()? - before })
        }
        Socket::Packet(socket) => {
            for (done, frame) in burst.iter().enumerate() {
                if socket.send(frame)? == Accept::Refused {
                    return Err(TransmitError::Stuck { frames, done: done as u64 });
                }
            }
            Ok(())
        }
    }
}
