//! An up-link that loses, repeats and reorders what comes in: for tests over a real interface, and for the command
//! line's `--loss`.
//!
//! It decides by a seed alone, so that a run can be repeated as far as the network itself can. It alters nothing: frames
//! that are damaged do not get past the FCS, which is the interface's.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use beeline_ethernet::{Accept, Traits, Uplink, UplinkError};

/// How often what happens to a frame that comes in, each from 0 (never) to 1 (always).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chances {
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that a frame comes twice.
    pub duplicate: f64,
    /// Probability that up to four later frames overtake a frame.
    pub reorder: f64,
}

/// Most frames that overtake another.
const MOST_OVERTAKEN: u64 = 4;
/// Empty polls after which a frame that is held back comes, even if nothing came to overtake it.
const MOST_EMPTY_POLLS: u32 = 64;

/// An up-link whose incoming frames suffer. What is sent goes through untouched: put one on each side.
#[derive(Debug)]
pub struct Adversary<U> {
    inner: U,
    chances: Chances,
    random: u64,
    /// Frames that come before any other, oldest first.
    repeats: VecDeque<Vec<u8>>,
    /// A frame that others overtake, and how many more may.
    held: Option<(Vec<u8>, u64)>,
    empty_polls: u32,
    lost: u64,
    /// Buffers that were used and are free.
    spare: Vec<Vec<u8>>,
}

impl<U: Uplink> Adversary<U> {
    /// Makes the frames of `inner` suffer as `chances` say, decided by `seed`.
    pub fn new(inner: U, chances: Chances, seed: u64) -> Self {
        Adversary {
            inner,
            chances,
            random: seed,
            repeats: VecDeque::new(),
            held: None,
            empty_polls: 0,
            lost: 0,
            spare: Vec::new(),
        }
    }

    /// Frames lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// SplitMix64 (Steele et al. 2014).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn happens(&mut self, chance: f64) -> bool {
        chance > 0.0 && ((self.random() >> 11) as f64) < chance * (1u64 << 53) as f64
    }

    fn copy(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(frame);
        copy
    }

    /// Gives the caller a frame of ours and keeps the caller's buffer.
    fn give(&mut self, mut ours: Vec<u8>, frame: &mut Vec<u8>) -> bool {
        std::mem::swap(&mut ours, frame);
        self.spare.push(ours);
        true
    }

    /// The frame that was held back, once enough others overtook it.
    fn take_held(&mut self, is_empty: bool) -> Option<Vec<u8>> {
        let is_due = self.held.as_ref().is_some_and(|(_, more)| *more == 0);
        if is_due || (is_empty && self.empty_polls >= MOST_EMPTY_POLLS) {
            self.empty_polls = 0;
            return self.held.take().map(|(frame, _)| frame);
        }
        None
    }
}

impl<U: Uplink> Uplink for Adversary<U> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn traits(&self) -> Traits {
        self.inner.traits()
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        self.inner.send(frame)
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        if let Some(repeat) = self.repeats.pop_front() {
            return Ok(self.give(repeat, frame));
        }
        if let Some(held) = self.take_held(false) {
            return Ok(self.give(held, frame));
        }
        while self.inner.poll(frame)? {
            if self.happens(self.chances.loss) {
                self.lost += 1;
                continue;
            }
            if self.happens(self.chances.duplicate) {
                let copy = self.copy(frame);
                self.repeats.push_back(copy);
            }
            if self.held.is_none() && self.happens(self.chances.reorder) {
                let (copy, more) = (self.copy(frame), 1 + self.random() % MOST_OVERTAKEN);
                self.held = Some((copy, more));
                continue;
            }
            if let Some((_, more)) = &mut self.held {
                *more = more.saturating_sub(1);
            }
            return Ok(true);
        }
        self.empty_polls += u32::from(self.held.is_some());
        match self.take_held(true) {
            Some(held) => Ok(self.give(held, frame)),
            None => Ok(false),
        }
    }

    fn longest_frame_bytes(&self) -> usize {
        self.inner.longest_frame_bytes()
    }

    fn is_finished(&self) -> bool {
        self.inner.is_finished() && self.held.is_none() && self.repeats.is_empty()
    }

    fn flush(&mut self) -> Result<(), UplinkError> {
        self.inner.flush()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_ethernet::Loopback;

    /// The first bytes of the frames that come out when 0, 1, 2, ... went in.
    fn through(chances: Chances, frames: u8) -> Vec<u8> {
        let mut uplink = Adversary::new(Loopback::new(256), chances, 7);
        for number in 0..frames {
            assert_eq!(uplink.send(&[number; 60]).unwrap(), Accept::Taken);
        }
        let mut frame = Vec::new();
        let mut out = Vec::new();
        for _ in 0..1000 {
            if uplink.poll(&mut frame).unwrap() {
                assert_eq!(frame, [frame[0]; 60]);
                out.push(frame[0]);
            }
        }
        out
    }

    #[test]
    fn without_chances_nothing_happens() {
        assert_eq!(through(Chances::default(), 200), (0..200).collect::<Vec<u8>>());
    }

    #[test]
    fn frames_are_lost_repeated_and_overtaken_about_as_often_as_asked() {
        let left = through(Chances { loss: 0.25, ..Chances::default() }, 200).len();
        assert!((120..180).contains(&left), "{left} of 200 are left");
        let repeated = through(Chances { duplicate: 0.25, ..Chances::default() }, 200).len();
        assert!((220..280).contains(&repeated), "{repeated} of 200");
        let mut mixed = through(Chances { reorder: 0.25, ..Chances::default() }, 200);
        let late = mixed.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!((15..60).contains(&late), "{late} of 200 were overtaken");
        mixed.sort_unstable();
        assert_eq!(mixed, (0..200).collect::<Vec<u8>>(), "none is lost, none repeated");
    }

    #[test]
    fn everything_lost_is_counted() {
        let mut uplink = Adversary::new(Loopback::new(8), Chances { loss: 1.0, ..Chances::default() }, 1);
        for _ in 0..8 {
            assert_eq!(uplink.send(&[0; 60]).unwrap(), Accept::Taken);
        }
        assert!(!uplink.poll(&mut Vec::new()).unwrap());
        assert_eq!(uplink.lost(), 8);
    }
}
