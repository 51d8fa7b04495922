//! What the rings of both halves of a connection have in common.

/// How many places a frame may be overtaken by before it counts as missing.
pub(crate) const REORDER_DEGREE: u64 = 3;

/// Bytes from slot to slot: whole lines, an odd number of them, so that the slots' first lines, which are all that
/// short messages touch, spread over the sets of a cache.
pub(crate) fn stride(bytes: usize) -> usize {
    const LINE: usize = beeline_spec::LINE_BYTES;
    (bytes.div_ceil(LINE) | 1) * LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_odd_lines() {
        assert_eq!(stride(1514), 25 * 64);
        assert_eq!(stride(64), 64);
        assert_eq!(stride(65), 3 * 64);
    }
}
