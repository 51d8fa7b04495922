//! Messages whose every byte follows from where they go and their number, so that both ends know them.

/// Bytes of the longest request, which fits in no line and in few windows whole.
pub const LONGEST_CALL: usize = 20_000;

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Bytes of message `number` to `name`, `most` at most: mostly few, sometimes as many as may be.
pub fn of(name: &str, number: u64, most: usize) -> Vec<u8> {
    let seed = name.bytes().fold(number, |seed, byte| mix(seed ^ u64::from(byte)));
    let bytes = match seed % 32 {
        0 => most,
        1..4 => (seed >> 8) as usize % (most + 1),
        _ => (seed >> 8) as usize % 200.min(most + 1),
    };
    let words = (0..).map(|index| mix(seed ^ index << 32));
    words.flat_map(u64::to_le_bytes).take(bytes).collect()
}
