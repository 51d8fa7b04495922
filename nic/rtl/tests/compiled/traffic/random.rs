//! Where a run's choices come from.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA'14).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed makes the same choices.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn bytes(&mut self, count: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count as usize + 8);
        while (bytes.len() as u64) < count {
            bytes.extend_from_slice(&self.word().to_le_bytes());
        }
        bytes.truncate(count as usize);
        bytes
    }
}
