//! Every interface against the behavioural NIC: frames leave byte for byte and in order, whatever their sizes, wherever
//! windows wrap, and whatever the ordering adversary does inside what the interface bears.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use beeline_contract_memory::{StorePort, forward_store_port};
use beeline_driver::{
    Batching, CreditCoalescing, DescriptorConfig, KpioConfig, MmioConfig, Mux, PortRange, Sent, Taken,
    Transmit, TxKpioMux,
};
use beeline_spec::Interface;
use beeline_window::FencePolicy;
use proptest::prelude::*;
use support::finish;
use support::nic::{LINES, counters, frame, hostile_order, nic, open, send_all, send_all_after};

#[test]
fn every_size_leaves_byte_for_byte_by_every_interface_while_windows_wrap() {
    for blank in [false, true] {
        for interface in Interface::ALL {
            for burst in [1, 16] {
                let (link, mut port) = nic(blank);
                let mut tx = hostile_order(&mut port, interface, 3, Batching::default());
                let frames: Vec<_> = (14..=tx.max_frame_bytes()).map(|bytes| frame(bytes, bytes)).collect();
                send_all(&link, &mut *tx, &frames, burst);
                // The adversary was there: `mmio` bears disorder and got it, the others bear none and got none.
                let (disorder, bears) = (counters(&link).reordered_writes, interface == Interface::Mmio);
                assert_eq!(disorder > 0, bears, "{interface}: {disorder} writes out of order");
            }
        }
    }
}

#[test]
fn short_frames_of_a_burst_share_lines() {
    let (link, mut port) = nic(true);
    let half = port.mmio(0, MmioConfig::default()).unwrap();
    let mut tx = open(&mut port, half);
    let frames: Vec<_> = (0..8).map(|i| frame(i, 60)).collect();
    send_all(&link, &mut tx, &frames, 8);
    let counted = counters(&link);
    // Eight records of 64 bytes and a header word take nine lines; one by one they would take sixteen.
    assert_eq!((counted.tx_batches, counted.tx_messages, tx.writer().position().0), (1, 1, 9));
    // Frames that fill their lines alone are not packed: two of 56 bytes take two lines either way.
    let frames: Vec<_> = (0..2).map(|i| frame(i, 56)).collect();
    send_all(&link, &mut tx, &frames, 2);
    assert_eq!(counters(&link).tx_batches, 1);
}

/// A window that counts its fences.
struct Fenced<P> {
    window: P,
    fences: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<P: StorePort> StorePort for Fenced<P> {
    fn fence(&mut self) {
        self.fences.set(self.fences.get() + 1);
        self.window.fence();
    }
    forward_store_port! { |this| this.window; lines, stores, hints, wake_receiver, progress }
}

#[test]
fn an_mmio_queue_fences_where_its_configuration_says() {
    // 40 messages of 4 lines go round the window of 64 lines twice, and start a third lap.
    let (messages, lines) = (40, 4);
    for (fence_policy, expected) in [
        (FencePolicy::None, 0),
        (FencePolicy::PerWrap, messages * lines / u64::from(LINES)),
        (FencePolicy::PerMessage, messages),
        (FencePolicy::PerLine, messages * lines),
    ] {
        let (link, mut port) = nic(true);
        let fences = std::rc::Rc::new(std::cell::Cell::new(0));
        let config = MmioConfig { fence_policy, batching: Batching::OFF, ..MmioConfig::default() };
        let wrap = |window, _| Fenced { window, fences: std::rc::Rc::clone(&fences) };
        let half = port.mmio_behind(0, config, wrap).unwrap();
        let mut tx = open(&mut port, half);
        let frames: Vec<_> = (0..messages as usize).map(|i| frame(i, 4 * 64 - 8)).collect();
        send_all(&link, &mut tx, &frames, 1);
        assert_eq!(fences.get(), expected, "{fence_policy}");
    }
}

#[test]
fn a_batch_that_finds_little_room_takes_what_fits() {
    let (link, mut port) = nic(true);
    let half = port.mmio(0, MmioConfig::default()).unwrap();
    let mut tx = open(&mut port, half);
    // 61 of 64 lines are taken.
    for i in 0..61 {
        assert_eq!(tx.try_send(&frame(i, 50)), Ok(Sent::Sent));
    }
    let frames: Vec<_> = (0..8).map(|i| frame(100 + i, 60)).collect();
    let views: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    // Two records of 64 bytes and the header word take the three lines.
    assert_eq!(tx.try_send_burst(&views), Ok(Taken(2)));
    assert_eq!(tx.try_send_burst(&views), Ok(Taken(0)));
    link.pass(10_000);
    let wire = link.take_wire();
    assert_eq!((wire.len(), &wire[61], &wire[62]), (63, &frames[0], &frames[1]));
    assert_eq!(counters(&link).tx_batches, 1);
}

#[test]
fn a_full_queue_takes_nothing_until_the_device_has_worked() {
    for interface in Interface::ALL {
        let (link, mut port) = nic(true);
        let mut tx = hostile_order(&mut port, interface, 1, Batching::OFF);
        let mut sent = 0;
        while tx.try_send(&frame(sent, 200)).unwrap() == Sent::Sent {
            sent += 1;
            assert!(sent <= LINES as usize, "{interface} never fills");
        }
        tx.progress().unwrap();
        assert!(!tx.is_idle());
        for _ in 0..200 {
            tx.progress().unwrap();
            link.pass(5_000);
        }
        assert_eq!(tx.try_send(&frame(sent, 200)), Ok(Sent::Sent), "{interface}");
    }
}

#[test]
fn frames_of_impossible_length_are_refused_and_the_queue_goes_on() {
    for interface in Interface::ALL {
        let (link, mut port) = nic(true);
        let mut tx = hostile_order(&mut port, interface, 1, Batching::default());
        let longest = tx.max_frame_bytes();
        for bytes in [0, 13, longest + 1, 1 << 20] {
            assert!(tx.try_send(&vec![1; bytes]).is_err(), "{interface}: {bytes} bytes");
        }
        let good = frame(0, 60);
        assert_eq!(tx.try_send_burst(&[&good, &good, &[1; 3], &good]), Ok(Taken(2)), "{interface}");
        assert!(tx.try_send_burst(&[&[1; 3], &good]).is_err(), "{interface}");
        send_all_after(&link, &mut *tx, 2);
    }
}

#[test]
fn the_multiplexer_of_host_and_device_agree() {
    let (link, mut port) = nic(true);
    let range = PortRange { first: 8000, last: 8999 };
    let pending = port.set_mux(Mux::ByPort(range));
    finish(&mut port, pending).unwrap();
    let kpio = port.kpio(0, KpioConfig::default()).unwrap();
    let kpio = open(&mut port, kpio);
    let descriptor = port.descriptor(1, DescriptorConfig::default()).unwrap();
    let descriptor = open(&mut port, descriptor);
    let mut tx = TxKpioMux::new(kpio, descriptor, Mux::ByPort(range));
    let tcp = |port: u16| {
        let mut frame = vec![0u8; 64];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = 6;
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame
    };
    let frames: Vec<Vec<u8>> = [8000, 1, 8999, 9000, 8500, 8501, 7999, 80].into_iter().map(tcp).collect();
    let views: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    assert_eq!(tx.choose(views[0]), Interface::Kpio);
    assert_eq!(tx.choose(views[1]), Interface::Descriptor);
    assert_eq!(tx.try_send_burst(&views), Ok(Taken(8)));
    link.pass(100_000);
    let counted = counters(&link);
    assert_eq!((counted.mux_mismatches, counted.kpio_frames, counted.tx_frames), (0, 4, 8));
    // The choice of all traffic by one path, too.
    let pending = port.set_mux(Mux::DescriptorOnly);
    finish(&mut port, pending).unwrap();
    let (kpio, descriptor) = tx.into_parts();
    let mut tx = TxKpioMux::new(kpio, descriptor, Mux::DescriptorOnly);
    assert_eq!(tx.try_send_burst(&views), Ok(Taken(8)));
    link.pass(100_000);
    assert_eq!((counters(&link).mux_mismatches, counters(&link).tx_frames), (0, 16));
}

#[test]
fn early_credits_and_late_ones_carry_the_same_frames() {
    for lines in [1, 7, 31] {
        let (link, mut port) = nic(true);
        let credits = CreditCoalescing { lines, time_ns: 100 };
        let half = port.mmio(0, MmioConfig { credits, ..MmioConfig::default() }).unwrap();
        let mut tx = open(&mut port, half);
        let frames: Vec<_> = (0..200).map(|i| frame(i, 14 + i * 7)).collect();
        send_all(&link, &mut tx, &frames, 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_leave_in_order_whatever_the_adversary_does(
        seed in any::<u64>(),
        blank in any::<bool>(),
        interface in proptest::sample::select(&Interface::ALL[..]),
        sizes in proptest::collection::vec(prop_oneof![3 => 14usize..130, 1 => 14usize..1519], 1..120),
        burst in 1usize..40,
        batch_lines in 0u32..20,
    ) {
        let (link, mut port) = nic(blank);
        let batching = Batching { max_frame_bytes: 256, max_lines: batch_lines };
        let mut tx = hostile_order(&mut port, interface, seed, batching);
        let longest = tx.max_frame_bytes();
        let frames: Vec<_> = sizes.iter().enumerate().map(|(i, bytes)| frame(i, *bytes.min(&longest))).collect();
        send_all(&link, &mut *tx, &frames, burst);
        let counted = counters(&link);
        prop_assert_eq!((counted.bad_headers, counted.span_exceeded, counted.clobbers, counted.overruns), (0, 0, 0, 0));
    }

    #[test]
    fn payloads_made_of_blanks_cross_a_blank_window_unchanged(
        seed in any::<u64>(),
        words in proptest::collection::vec((0u64..4, 2usize..60), 1..40),
        burst in 1usize..10,
    ) {
        let (link, mut port) = nic(true);
        let blank = beeline_spec::escape::blank_from_random(seed);
        let mut tx = hostile_order(&mut port, Interface::Mmio, seed, Batching::default());
        // Word i of a frame is blank, blank + 1, blank - 1 or 0 by two bits of a number.
        let frames: Vec<Vec<u8>> = words
            .iter()
            .map(|(kind, count)| {
                let word = |i: usize| match (*kind + i as u64) % 4 {
                    0 | 1 => blank,
                    2 => blank.wrapping_add(1),
                    _ => 0,
                };
                (0..*count).flat_map(|i| word(i).to_le_bytes()).collect()
            })
            .collect();
        let blanks = frames.iter().flat_map(|frame| frame.chunks(8)).filter(|word| **word == blank.to_le_bytes()).count();
        send_all(&link, &mut *tx, &frames, burst);
        // Records of a batch are not aligned to words, so blanks inside them need not be words of the message.
        let escapes = counters(&link).tx_escapes;
        prop_assert!(escapes <= blanks as u64 && (burst > 1 || escapes == blanks as u64), "{} {}", escapes, blanks);
    }
}
