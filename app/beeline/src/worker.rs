//! The sender and the receiver of a check over three processes: they share a seed and nothing else.

use beeline_driver::{Receive, Transmit};
use beeline_mmio::Traffic;
use beeline_session::{
    Frames, HEADER_BYTES, Job, NicError, Queue, Rx, Session, SessionOptions, Watchdog, finish, send_one,
};
use beeline_spec::Interface;
use clap::Args;

use crate::choices::interface;
use crate::failure::Failure;
use crate::options::{DomainArgs, KernelArgs};
use crate::out;

/// Options of `worker`, which `compare` starts.
#[derive(Args, Debug, Clone)]
pub struct WorkerArgs {
    #[command(flatten)]
    pub domain: DomainArgs,
    /// Name of the NIC
    #[arg(long)]
    pub nic: String,
    /// Interface to send by
    #[arg(long, value_parser = interface())]
    pub interface: Interface,
    /// Frames to exchange
    #[arg(long)]
    pub frames: u64,
    /// Seed of sizes and contents
    #[arg(long)]
    pub seed: u64,
    /// Station address to send to; without it this side receives and prints its own
    #[arg(long)]
    pub to: Option<String>,
    #[command(flatten)]
    pub kernel: KernelArgs,
}

/// Longest frame of a check: a jumbo frame.
const LONGEST_BYTES: u64 = 9000;

/// Runs `beeline worker`.
pub fn run(args: &WorkerArgs) -> Result<(), Failure> {
    let kernel = args.kernel.choose(Traffic::Stream);
    let options = SessionOptions::new(args.domain.config(), &args.nic, kernel);
    let mut session = Session::open(&options)?;
    let queue = Queue::of(args.interface);
    let multiple = args.interface.frame_multiple_bytes();
    match &args.to {
        Some(text) => {
            let to = parse_mac(text).ok_or_else(|| Failure::new(format!("{text} is no station address")))?;
            Ok(session.with_queue(queue, Give { args, to })?)
        }
        None => {
            let bytes = session.with_queue(queue, Gather { args, multiple })?;
            out::line(bytes)
        }
    }
}

/// Size of frame `number`: mostly small, some of every size, the same for both sides.
fn size(seed: u64, number: u64) -> usize {
    // SplitMix64 (Steele et al. 2014): a good hash of a counter, which is all that is needed here.
    let mut z = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    let longest = if z & 7 == 0 { LONGEST_BYTES } else { 256 };
    HEADER_BYTES + ((z >> 8) % (longest - HEADER_BYTES as u64 + 1)) as usize
}

struct Give<'a> {
    args: &'a WorkerArgs,
    to: [u8; 6],
}

impl Job for Give<'_> {
    type Output = ();
    type Error = NicError;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, _rx: &mut Rx) -> Result<(), NicError> {
        // The source address is not part of what is compared, so the receiver need not know it.
        let longest = Frames::new(LONGEST_BYTES as usize, self.to, [2, 0, 0, 0, 0, 1]).buffer();
        let mut frame = longest;
        for number in 0..self.args.frames {
            Frames::number(&mut frame, number);
            send_one(session, tx, &frame[..size(self.args.seed, number)])?;
        }
        finish(session, tx)
    }
}

struct Gather<'a> {
    args: &'a WorkerArgs,
    multiple: usize,
}

impl Job for Gather<'_> {
    type Output = u64;
    type Error = Failure;

    fn run<T: Transmit>(self, session: &mut Session, _tx: &mut T, rx: &mut Rx) -> Result<u64, Failure> {
        let mac = session.mac();
        out::line(format_mac(mac))?;
        let mut expected = Frames::new(LONGEST_BYTES as usize, mac, [2, 0, 0, 0, 0, 1]).buffer();
        let (mut found, mut wanted) = (Vec::new(), Vec::new());
        let (mut number, mut bytes) = (0, 0);
        let mut watchdog = Watchdog::new();
        while number < self.args.frames {
            let Some(mut frame) = rx.poll().map_err(NicError::Receive)? else {
                watchdog.idle(session, &format!("frame {number} of {}", self.args.frames))?;
                std::thread::yield_now();
                continue;
            };
            frame.copy_to(&mut found);
            drop(frame);
            watchdog.pat();
            Frames::number(&mut expected, number);
            let length = size(self.args.seed, number);
            wanted.clear();
            wanted.extend_from_slice(&expected[..length]);
            wanted.resize(length.next_multiple_of(self.multiple), 0);
            Frames::check(&wanted, &found, number)?;
            bytes += length as u64;
            number += 1;
        }
        Ok(bytes)
    }
}

/// `02:00:00:00:00:01`.
pub fn format_mac(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_same_on_both_sides_and_cover_small_and_large() {
        let sizes: Vec<usize> = (0..1000).map(|n| size(7, n)).collect();
        assert_eq!(sizes, (0..1000).map(|n| size(7, n)).collect::<Vec<_>>());
        assert!(sizes.iter().all(|s| (HEADER_BYTES..=9000).contains(s)));
        assert!(sizes.iter().any(|s| *s < 64) && sizes.iter().any(|s| *s > 4000));
    }

    #[test]
    fn a_station_address_comes_back() {
        let mac = [2, 0, 0xab, 0, 0, 1];
        assert_eq!(parse_mac(&format_mac(mac)), Some(mac));
        assert_eq!(parse_mac("02:00"), None);
        assert_eq!(parse_mac("nonsense"), None);
    }
}
