//! Random numbers from a seed that is printed when a test fails.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA'14): a good order from any seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
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

    /// Below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// Draws from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.word() as u8).collect()
    }
}

struct Report(u64);

impl Drop for Report {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the failing seed was {}; BEELINE_SEED={} runs it alone", self.0, self.0);
        }
    }
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Runs a test for the seeds below `count` (or `BEELINE_SEEDS`), or for the one in `BEELINE_SEED`.
pub fn for_seeds(count: u64, test: impl Fn(&mut Random)) {
    let only = number_from("BEELINE_SEED");
    let count = number_from("BEELINE_SEEDS").unwrap_or(count);
    let seeds = only.map_or(0..count, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let _report = Report(seed);
        test(&mut Random::new(seed));
    }
}
