//! A capture as traffic: the sizes of its frames and the gaps between them.

use std::hash::Hasher;
use std::path::Path;
use std::sync::Arc;

use beeline_ethernet::{PcapIn, Uplink};
use beeline_link_sim::des::Picoseconds;
use siphasher::sip::SipHasher13;

use crate::failure::Failure;
use crate::send;

/// The properties of a capture that an experiment uses.
pub struct Capture {
    /// Its file, for people.
    pub name: String,
    /// Sizes in bytes.
    pub sizes: Vec<usize>,
    /// Gap before each frame, the first as long as the mean; none if the capture has no times.
    pub gaps: Option<Arc<[Picoseconds]>>,
    /// Tells captures apart.
    pub digest: u64,
}

impl Capture {
    /// Reads a capture whole.
    ///
    /// # Errors
    /// It cannot be read, has no frames, or frames that no NIC carries.
    pub fn read(path: &Path) -> Result<Capture, Failure> {
        send::check_input(path)?;
        let mut capture: PcapIn = send::open(path)?.without_warnings();
        let (mut sizes, mut times) = (Vec::new(), Vec::new());
        let mut frame = Vec::new();
        while capture.poll(&mut frame).map_err(|e| Failure::new("cannot use the capture").because(e))? {
            sizes.push(frame.len());
            times.extend(capture.captured_at_ns());
        }
        let gaps = (times.len() == sizes.len()).then(|| gaps(&times)).flatten();
        let mut hasher = SipHasher13::new();
        sizes.iter().for_each(|size| hasher.write_u64(*size as u64));
        gaps.iter().flat_map(|gaps| gaps.iter()).for_each(|gap| hasher.write_u64(gap.0));
        Ok(Capture { name: path.display().to_string(), sizes, gaps, digest: hasher.finish() })
    }

    /// Mean size in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.sizes.iter().sum::<usize>() as f64 / self.sizes.len() as f64
    }
}

/// Gaps between times in order of the file; where the clock went back there is none.
fn gaps(times_ns: &[u64]) -> Option<Arc<[Picoseconds]>> {
    let between: Vec<u64> = times_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let all: u64 = between.iter().sum();
    let mean = all.checked_div(between.len() as u64).filter(|mean| *mean > 0)?;
    Some(std::iter::once(mean).chain(between).map(Picoseconds::from_ns).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_is_the_mean_and_none_is_negative() {
        let found = gaps(&[100, 400, 300, 500]).unwrap();
        assert_eq!(found.iter().map(|gap| gap.as_ns()).collect::<Vec<_>>(), [166, 300, 0, 200]);
        assert!(gaps(&[5]).is_none() && gaps(&[7, 7, 7]).is_none(), "a rate is not to be had from these");
    }
}
