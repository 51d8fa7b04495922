//! How a transfer becomes packets: writes at the maximum payload, reads at the maximum request, completions at the read
//! completion boundary, and nothing over a boundary of 4 KiB.

/// No request crosses a multiple of this (Base Specification, section 2.2.7).
pub const PAGE_BYTES: u64 = 4096;

/// A part of a transfer that fits one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub address: u64,
    pub length_bytes: u32,
}

/// The pieces of a transfer, in order; none of an empty one. Costs no allocation.
#[derive(Clone, Debug)]
pub struct Pieces {
    address: u64,
    end: u64,
    /// Bytes that a packet may hold, those before its first byte in the same double word included.
    most: u64,
    /// A cut lies at a multiple of this.
    boundary: u64,
    /// Whether every multiple of `boundary` is a cut, or only one where a packet is full.
    everywhere: bool,
}

/// Where a write or a read that is too long is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// After as many bytes as a packet holds: the fewest packets.
    WhenFull,
    /// At multiples of what a packet holds, as engines do that align: one packet more if the start is not aligned.
    Aligned,
}

/// A write or read of `length_bytes` at `address`, in packets of at most `most_bytes`: the maximum payload of writes, the
/// maximum read request of reads. A power of two from 128 to 4096.
///
/// Payload counts in double words, so that the first packet of a write that starts inside one carries up to three bytes less.
pub fn requests(address: u64, length_bytes: u64, most_bytes: u32, cut: Cut) -> Pieces {
    let most = u64::from(most_bytes);
    let boundary = if cut == Cut::Aligned { most } else { 4 };
    Pieces { address, end: address + length_bytes, most, boundary, everywhere: cut == Cut::Aligned }
}

/// How a completer cuts its answer; both are legal (Base Specification, section 2.3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// As much as a packet holds, up to a read completion boundary: the fewest packets.
    Longest,
    /// One packet for each read completion boundary, as completers do that answer line by line.
    EachBoundary,
}

/// The answer to one read request of `length_bytes` at `address`.
///
/// Every packet but the last ends at a multiple of `boundary_bytes`, the read completion boundary: 64 or 128 for a root
/// complex, 128 for everyone else. None is longer than `max_payload_bytes`.
pub fn completions(
    address: u64,
    length_bytes: u64,
    boundary_bytes: u32,
    max_payload_bytes: u32,
    answers: Answers,
) -> Pieces {
    Pieces {
        address,
        end: address + length_bytes,
        most: u64::from(max_payload_bytes),
        boundary: u64::from(boundary_bytes),
        everywhere: answers == Answers::EachBoundary,
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.address >= self.end {
            return None;
        }
        let page_end = round_down(self.address, PAGE_BYTES) + PAGE_BYTES;
        let mut cut = self.end.min(page_end);
        if self.everywhere {
            cut = cut.min(round_down(self.address, self.boundary) + self.boundary);
        }
        // What a packet holds is counted from the start of the first double word.
        let full = round_down(self.address, 4) + self.most;
        if cut > full {
            cut = round_down(full, self.boundary);
        }
        let piece = Piece { address: self.address, length_bytes: (cut - self.address) as u32 };
        self.address = cut;
        Some(piece)
    }
}

fn round_down(value: u64, to: u64) -> u64 {
    value & !(to - 1)
}

/// Runs of bytes that are set in a line of 64, as offset and length: one write for each run is always legal.
///
/// It is not always the fewest: one double word, or two that are aligned to eight bytes, may have holes in their byte
/// enables. Few transmitters use that.
pub fn runs(mut set: u64) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let offset = set.trailing_zeros();
        let length = (set >> offset).trailing_ones();
        // Shifting by 64 is not defined: a run to the end leaves nothing.
        set = if offset + length == 64 { 0 } else { set & (u64::MAX << (offset + length)) };
        Some((offset, length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cuts(pieces: Pieces) -> Vec<(u64, u32)> {
        pieces.map(|piece| (piece.address, piece.length_bytes)).collect()
    }

    #[test]
    fn a_transfer_is_cut_where_it_must_be() {
        assert_eq!(cuts(requests(0, 600, 256, Cut::WhenFull)), [(0, 256), (256, 256), (512, 88)]);
        assert_eq!(cuts(requests(64, 300, 256, Cut::WhenFull)), [(64, 256), (320, 44)]);
        assert_eq!(cuts(requests(64, 300, 256, Cut::Aligned)), [(64, 192), (256, 108)]);
        assert_eq!(cuts(requests(200, 100, 256, Cut::Aligned)), [(200, 56), (256, 44)]);
        assert_eq!(cuts(requests(4090, 10, 256, Cut::WhenFull)), [(4090, 6), (4096, 4)]);
        assert_eq!(cuts(requests(2, 256, 256, Cut::WhenFull)), [(2, 254), (256, 2)]);
        assert_eq!(cuts(requests(7, 0, 128, Cut::Aligned)), []);
    }

    #[test]
    fn an_answer_is_cut_at_completion_boundaries() {
        let longest = |address, length| cuts(completions(address, length, 64, 256, Answers::Longest));
        assert_eq!(longest(0, 512), [(0, 256), (256, 256)]);
        assert_eq!(longest(32, 512), [(32, 224), (256, 256), (512, 32)]);
        assert_eq!(longest(32, 64), [(32, 64)], "one packet may cross a boundary");
        let each = |address, length| cuts(completions(address, length, 64, 256, Answers::EachBoundary));
        assert_eq!(each(32, 160), [(32, 32), (64, 64), (128, 64)]);
    }

    #[test]
    fn runs_are_the_set_bytes() {
        assert_eq!(runs(u64::MAX).collect::<Vec<_>>(), [(0, 64)]);
        assert_eq!(runs(0).count(), 0);
        assert_eq!(runs(0xff00_0000_0000_00f1).collect::<Vec<_>>(), [(0, 1), (4, 4), (56, 8)]);
    }

    proptest! {
        /// Pieces join up to the transfer, and each is legal.
        #[test]
        fn every_byte_is_in_one_legal_piece(
            address in 0u64..20_000,
            length in 0u64..20_000,
            most in prop::sample::select(vec![128u32, 256, 512, 1024, 2048, 4096]),
            aligned: bool,
        ) {
            let cut = if aligned { Cut::Aligned } else { Cut::WhenFull };
            let mut next = address;
            for piece in requests(address, length, most, cut) {
                prop_assert_eq!(piece.address, next);
                next += u64::from(piece.length_bytes);
                prop_assert!(piece.length_bytes > 0);
                prop_assert_eq!(piece.address / PAGE_BYTES, (next - 1) / PAGE_BYTES);
                prop_assert!((piece.address % 4 + u64::from(piece.length_bytes)).div_ceil(4) * 4 <= u64::from(most));
            }
            prop_assert_eq!(next, address + length);
        }

        #[test]
        fn every_answer_ends_at_a_boundary(
            address in 0u64..4096,
            length in 1u64..4096,
            boundary in prop::sample::select(vec![64u32, 128]),
            max_payload in prop::sample::select(vec![128u32, 256, 512]),
            longest: bool,
        ) {
            let length = length.min(4096 - address);
            let answers = if longest { Answers::Longest } else { Answers::EachBoundary };
            let mut next = address;
            for piece in completions(address, length, boundary, max_payload, answers) {
                prop_assert_eq!(piece.address, next);
                next += u64::from(piece.length_bytes);
                prop_assert!(next == address + length || next % u64::from(boundary) == 0);
                prop_assert!(piece.length_bytes <= max_payload);
            }
            prop_assert_eq!(next, address + length);
        }
    }
}
