//! The up-link that gives every frame back, in order.

use std::collections::VecDeque;

use crate::{Accept, Traits, Uplink, UplinkError};

/// Gives back what it was sent, oldest first, byte for byte.
///
/// Holds a bounded number of frames and refuses more. Buffers are kept and used again, so that it stops allocating
/// once every frame has been as long as its buffer.
#[derive(Debug)]
pub struct Loopback {
    held: VecDeque<Vec<u8>>,
    free: Vec<Vec<u8>>,
    most: usize,
}

impl Loopback {
    /// Frames held by [`Loopback::default`].
    pub const FRAMES: usize = 256;

    /// A loop-back that holds at most `frames` frames.
    pub fn new(frames: usize) -> Self {
        Loopback { held: VecDeque::with_capacity(frames), free: Vec::with_capacity(frames), most: frames }
    }
}

impl Default for Loopback {
    fn default() -> Self {
        Loopback::new(Self::FRAMES)
    }
}

impl Uplink for Loopback {
    fn name(&self) -> &str {
        "loopback"
    }

    fn traits(&self) -> Traits {
        // Learning from frames given back would move every station behind the loop-back.
        Traits { takes: true, mirrors: false, gives: true, waits: true, learns: false }
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        if self.held.len() == self.most {
            return Ok(Accept::Refused);
        }
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.held.push_back(buffer);
        Ok(Accept::Taken)
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        let Some(mut next) = self.held.pop_front() else { return Ok(false) };
        std::mem::swap(frame, &mut next);
        self.free.push(next);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_in_order_and_the_hold_is_bounded() {
        let mut uplink = Loopback::new(2);
        assert_eq!(uplink.send(&[1; 60]).unwrap(), Accept::Taken);
        assert_eq!(uplink.send(&[2; 9000]).unwrap(), Accept::Taken);
        assert_eq!(uplink.send(&[3; 60]).unwrap(), Accept::Refused);
        let mut frame = vec![9; 17];
        assert!(uplink.poll(&mut frame).unwrap());
        assert_eq!(frame, vec![1; 60]);
        assert_eq!(uplink.send(&[3; 14]).unwrap(), Accept::Taken);
        assert!(uplink.poll(&mut frame).unwrap());
        assert_eq!(frame, vec![2; 9000]);
        assert!(uplink.poll(&mut frame).unwrap());
        assert_eq!(frame, vec![3; 14]);
        assert!(!uplink.poll(&mut frame).unwrap());
        assert!(!uplink.is_finished());
    }
}
