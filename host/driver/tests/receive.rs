//! Receiving from the behavioural NIC: frames arrive byte for byte and in order in both kinds of ring, whatever their
//! sizes and wherever rings wrap.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use beeline_driver::{RxCoherentConfig, RxDescriptorConfig, RxRingConfig};
use proptest::prelude::*;
use support::nic::{MAX_FRAME, counters, frame, nic, open, receive_all};

#[test]
fn every_size_arrives_byte_for_byte_while_the_ring_wraps() {
    let frames: Vec<_> = (14..=MAX_FRAME as usize).map(|bytes| frame(bytes, bytes)).collect();
    for lines in [64, 256] {
        let (link, mut port) = nic(true);
        let half = port.rx_ring(1, RxRingConfig { lines, ..RxRingConfig::default() }).unwrap();
        let mut rx = open(&mut port, half);
        receive_all(&link, &mut rx, &frames, 7);
        assert_eq!(rx.frames(), frames.len() as u64);
        assert_eq!(counters(&link).rx_no_space, 0);
    }
}

#[test]
fn every_size_arrives_byte_for_byte_in_lent_buffers() {
    let frames: Vec<_> = (14..=MAX_FRAME as usize).map(|bytes| frame(bytes, bytes)).collect();
    let (link, mut port) = nic(true);
    let config = RxDescriptorConfig { entries: 8, ..RxDescriptorConfig::default() };
    let half = port.rx_descriptor(1, config).unwrap();
    let mut rx = open(&mut port, half);
    receive_all(&link, &mut rx, &frames, 20);
    assert_eq!(rx.frames(), frames.len() as u64);
}

#[test]
fn every_size_arrives_byte_for_byte_in_coherent_lines() {
    let frames: Vec<_> = (14..=MAX_FRAME as usize).map(|bytes| frame(bytes, bytes)).collect();
    for entry_lines_log2 in [0, 1, 2] {
        let (link, mut port) = nic(true);
        let config = RxCoherentConfig { entries: 8, buffers: 3, entry_lines_log2, ..Default::default() };
        let half = port.rx_coherent(1, config).unwrap();
        let mut rx = open(&mut port, half);
        receive_all(&link, &mut rx, &frames, 20);
        assert_eq!(rx.frames(), frames.len() as u64);
        let counted = counters(&link);
        assert_eq!((counted.doorbells, counted.bad_headers, counted.rx_no_space), (0, 0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_arrive_in_order_by_both_kinds_of_ring(
        descriptors in any::<bool>(),
        freed_coalesce in 0u32..4,
        sizes in proptest::collection::vec(14usize..1519, 1..150),
        chunk in 1usize..60,
    ) {
        let (link, mut port) = nic(true);
        let frames: Vec<_> = sizes.iter().enumerate().map(|(i, bytes)| frame(i, *bytes)).collect();
        if descriptors {
            let config = RxDescriptorConfig { entries: 8, freed_coalesce, ..RxDescriptorConfig::default() };
            let half = port.rx_descriptor(3, config).unwrap();
            let mut rx = open(&mut port, half);
            receive_all(&link, &mut rx, &frames, chunk);
        } else {
            let config = RxRingConfig { lines: 64, freed_coalesce, ..RxRingConfig::default() };
            let half = port.rx_ring(3, config).unwrap();
            let mut rx = open(&mut port, half);
            receive_all(&link, &mut rx, &frames, chunk);
        }
        prop_assert_eq!(counters(&link).bad_accesses, 0);
    }
}
