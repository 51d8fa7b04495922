//! Numbers that a seed decides, which is printed and taken back from `BEELINE_SEED`.

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// Of the seed that the test is run with.
    pub fn new() -> Self {
        let seed = number("BEELINE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
        println!("BEELINE_SEED={seed}");
        Random(seed)
    }

    /// Of a seed that another process has drawn.
    pub fn of(seed: u64) -> Self {
        Random(seed)
    }

    /// Another one, for another thread.
    pub fn split(&mut self) -> Self {
        Random(self.any())
    }

    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.any() % limit
    }
}

/// What a variable says, if it is set.
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}
