//! The counters of the register map, by name.

use beeline_spec::regs::counter as reg;

/// Buckets of the histogram of TLP sizes: up to 8, 16, 24, 32, 40, 48, 56 and from 57 bytes on.
pub const TLP_BYTES_BUCKETS: usize = reg::TLP_BYTES_HISTOGRAM_COUNT as usize;
/// Buckets of the histogram of displacements, in lines from the frontier's line: 0 to 14, and 15 or more.
pub const DISPLACEMENT_BUCKETS: usize = reg::DISPLACEMENT_HISTOGRAM_COUNT as usize;

macro_rules! counters {
    ($($name:ident $register:ident $doc:literal,)*) => {
        /// Absolute counts since reset, named as in the register map. Every one wraps at 2^64.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $(#[doc = $doc] pub $name: u64,)*
            /// Writes to transmit windows by enabled bytes: up to 8, 16, 24, 32, 40, 48, 56, and from 57 on.
            pub tlp_bytes_histogram: [u64; TLP_BYTES_BUCKETS],
            /// Writes to transmit windows by lines from the frontier's line to their first: 0 to 14, and 15 or more.
            pub displacement_histogram: [u64; DISPLACEMENT_BUCKETS],
        }

        impl Counters {
            /// The counter at an offset in the counter block; `None` where there is none.
            pub fn at(&self, offset_bytes: u32) -> Option<u64> {
                match offset_bytes {
                    $(reg::$register => return Some(self.$name),)*
                    _ => {}
                }
                let bucket = |histogram: &[u64], base: u32, stride: u32| {
                    let distance = offset_bytes.checked_sub(base)?;
                    if distance % stride != 0 {
                        return None;
                    }
                    histogram.get((distance / stride) as usize).copied()
                };
                bucket(&self.tlp_bytes_histogram, reg::TLP_BYTES_HISTOGRAM, reg::TLP_BYTES_HISTOGRAM_STRIDE).or_else(
                    || {
                        bucket(
                            &self.displacement_histogram,
                            reg::DISPLACEMENT_HISTOGRAM,
                            reg::DISPLACEMENT_HISTOGRAM_STRIDE,
                        )
                    },
                )
            }

            /// Every counter but the histograms, with its name in the register map.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    tx_writes TX_WRITES "Writes taken at the transmit windows of active queues.",
    tx_write_bytes TX_WRITE_BYTES "Enabled bytes of those writes.",
    tx_messages TX_MESSAGES "Complete messages released by the reorder unit: data, void and batch.",
    tx_frames TX_FRAMES "Frames put on the wire.",
    tx_frame_bytes TX_FRAME_BYTES "Bytes of those frames, FCS excluded.",
    tx_voids TX_VOIDS "Void messages skipped.",
    tx_batches TX_BATCHES "Batches taken apart.",
    tx_escapes TX_ESCAPES "Words put back at release because they equal the blank.",
    reorder_depth_max REORDER_DEPTH_MAX "Most lines from the frontier's line to that of an early write, both included; 0 while every write came in order.",
    reordered_writes REORDERED_WRITES "Writes that did not bring the byte missing at their queue's frontier.",
    split_lines SPLIT_LINES "Lines that took more than one write.",
    holes HOLES "Missing bytes at a frontier that came to have data beyond them, each counted once.",
    hole_timeouts HOLE_TIMEOUTS "Queues quarantined because a hole stood too long.",
    quarantined_writes QUARANTINED_WRITES "Writes dropped because their queue was not active.",
    clobbers CLOBBERS "Writes to a byte that had already arrived in the same lap.",
    overruns OVERRUNS "Writes to lines that were not free.",
    span_exceeded SPAN_EXCEEDED "Writes beyond the reorder span.",
    runts RUNTS "Frames too short to send, dropped.",
    bad_lengths BAD_LENGTHS "Lengths that make no sense.",
    bad_headers BAD_HEADERS "Headers that make no sense.",
    bad_accesses BAD_ACCESSES "Accesses to what is not there, or that cannot be made there.",
    no_context NO_CONTEXT "Queues failed for want of a reorder context.",
    no_pool NO_POOL "Queues failed for want of pool lines for incomplete data.",
    refused_writes REFUSED_WRITES "Refusals of a write (back-pressure) because complete data waits for the wire; one write may be refused several times.",
    credit_pushes CREDIT_PUSHES "Credit words pushed.",
    kpio_lines KPIO_LINES "Lines taken by the kPIO engine.",
    kpio_frames KPIO_FRAMES "Frames found by the EOP filter.",
    kpio_malformed KPIO_MALFORMED "Pieces of kPIO data dropped because they form no frame.",
    mux_mismatches MUX_MISMATCHES "Frames that the multiplexer does not forward.",
    doorbells DOORBELLS "Doorbell writes.",
    descriptor_fetches DESCRIPTOR_FETCHES "DMA reads of descriptors.",
    payload_fetches PAYLOAD_FETCHES "DMA reads of payload.",
    completions COMPLETIONS "Completions written, and entries of `coherent` queues given back.",
    dma_errors DMA_ERRORS "DMA reads that brought no data.",
    interrupts INTERRUPTS "Interrupts raised.",
    rx_frames RX_FRAMES "Frames received into host memory.",
    rx_frame_bytes RX_FRAME_BYTES "Bytes of those frames.",
    rx_no_space RX_NO_SPACE "Received frames dropped because the host lent no room.",
    rx_oversize RX_OVERSIZE "Received frames dropped because they are too long.",
    push_taken PUSH_TAKEN "Entries taken from a whole push, so that none of their bytes was fetched from the ring.",
    push_torn PUSH_TORN "Pushes given up because bytes of them were missing when their time was up or the next push came over them.",
    push_unused PUSH_UNUSED "Pushes not used because their entry was not the next, is longer than a half, or found no room; it is fetched.",
    push_tested PUSH_TESTED "Whole pushes not used for the sake of the self-test.",
    notifications NOTIFICATIONS "Notifications of receive pipes written.",
    entries ENTRIES "Entries that arrived whole, in a window or in lines that changed owner.",
    entry_reads ENTRY_READS "Reads of entries in the BAR, one for each word.",
    held_reads HELD_READS "Those of them that were held because the entry was not there yet.",
    held_read_timeouts HELD_READ_TIMEOUTS "Held reads answered with zero because their time was up.",
    cut_through_frames CUT_THROUGH_FRAMES "Frames begun before their message was complete, those ended with an abort mark included.",
    cut_through_underruns CUT_THROUGH_UNDERRUNS "Those of them ended with an abort mark because the wire had taken what was there before the next line came; each is sent again, whole, when its message is complete.",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_read_at_its_own_offset() {
        let mut counters = Counters { tx_writes: 7, rx_oversize: 9, ..Counters::default() };
        counters.tlp_bytes_histogram[7] = 3;
        counters.displacement_histogram[15] = 4;
        assert_eq!(counters.at(reg::TX_WRITES), Some(7));
        assert_eq!(counters.at(reg::RX_OVERSIZE), Some(9));
        assert_eq!(counters.at(reg::TLP_BYTES_HISTOGRAM + 56), Some(3));
        assert_eq!(counters.at(reg::DISPLACEMENT_HISTOGRAM + 120), Some(4));
        for nothing in [
            reg::CUT_THROUGH_UNDERRUNS + 8,
            reg::TLP_BYTES_HISTOGRAM + 64,
            reg::DISPLACEMENT_HISTOGRAM + 128,
            4,
        ] {
            assert_eq!(counters.at(nothing), None);
        }
        let histograms = ["tlp_bytes_histogram", "displacement_histogram"];
        let of_the_map = reg::ALL.iter().map(|(name, _)| *name).filter(|name| !histograms.contains(name));
        assert!(counters.named().map(|(name, _)| name).eq(of_the_map));
    }
}
