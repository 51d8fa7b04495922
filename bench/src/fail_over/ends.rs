//! Both ends of the stream that is measured: programs of plain sockets, which know of no path.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::script::{ALL, BEGUN, CONNECTIONS, GAP, LASTS, LEAST_GAP_NS};
use crate::BenchError;

const EVERY: Duration = Duration::from_micros(200);
const MESSAGE_BYTES: usize = 256;
/// Of the clock that all processes have in common.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sends a message every 200 us, on one connection after the other.
pub(crate) fn flow(to: (IpAddr, u16)) -> Result<(), BenchError> {
    for _ in 0..CONNECTIONS {
        let mut peer = TcpStream::connect(to)?;
        peer.set_nodelay(true)?;
        let (started, mut sent, mut due) = (Instant::now(), 0_u64, Duration::ZERO);
        while started.elapsed() < LASTS {
            let message: [u8; MESSAGE_BYTES] = std::array::from_fn(|at| (sent + at as u64) as u8);
            peer.write_all(&message)?;
            sent += MESSAGE_BYTES as u64;
            due += EVERY;
            std::thread::sleep(due.saturating_sub(started.elapsed()));
        }
        peer.shutdown(std::net::Shutdown::Write)?;
        // It ends when the receiver has all.
        peer.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

/// Receives and checks what a sender sends, and says when each long gap ended and how long it was, once its connection has ended.
pub(crate) fn sink(at: (IpAddr, u16)) -> Result<(), BenchError> {
    let listener = TcpListener::bind(at)?;
    for _ in 0..CONNECTIONS {
        let (mut peer, _) = listener.accept()?;
        println!("{BEGUN}{}", now_ns());
        let (mut gaps, mut total, mut bytes) = (Vec::with_capacity(1 << 16), 0_u64, vec![0; 1 << 16]);
        let mut last = now_ns();
        loop {
            let received = peer.read(&mut bytes)?;
            if received == 0 {
                break;
            }
            let now = now_ns();
            if let Some(wrong) = wrong_at(&bytes[..received], total) {
                let what = format!("received another byte than was sent behind {}", total + wrong as u64);
                return Err(BenchError::Rival { rival: "a stream".to_owned(), what });
            }
            total += received as u64;
            if now - last > LEAST_GAP_NS {
                gaps.push((now, now - last));
            }
            last = now;
        }
        gaps.iter().for_each(|(at, gap)| println!("{GAP}{at} {gap}"));
        println!("{ALL}{total}");
    }
    Ok(())
}

/// Where the first byte is that is not of the stream, of bytes that stand behind so many.
fn wrong_at(bytes: &[u8], behind: u64) -> Option<usize> {
    bytes.iter().zip(behind..).position(|(found, at)| *found != at as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_place_are_wrong() {
        let stream: Vec<u8> = (0..1000_u64).map(|at| at as u8).collect();
        assert_eq!(wrong_at(&stream[300..600], 300), None);
        assert_eq!(wrong_at(&stream[300..600], 301), Some(0));
        let mut doubled = stream[300..400].to_vec();
        doubled.extend(&stream[399..500]);
        assert_eq!(wrong_at(&doubled, 300), Some(100));
    }
}
