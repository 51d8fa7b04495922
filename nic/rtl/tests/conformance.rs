//! The conformance bodies on the RTL: every interface that it has, all ways to receive, with the ordering adversary
//! inside what the interface declares. The behavioural NIC runs the same bodies (`tests/tests/memory.rs`).
#![cfg(feature = "rtl")]

use beeline_link_memory::Aperture;
use beeline_nic_rtl::{PARAMETERS, RtlConfig, RtlNic};
use beeline_spec::Interface;
use beeline_tests::conformance::{self, Disorder, LongFrames, Reception, Setup, limits};
use beeline_tests::{MemoryRig, Rig};

fn rig(window_lines: u32, max_frame_bytes: u32, seed: u64) -> MemoryRig<RtlNic> {
    let config = RtlConfig { window_lines, span_lines: 16, max_frame_bytes, ..RtlConfig::default() };
    let (offset_bytes, stride_bytes) = config.aperture();
    let aperture =
        Aperture { offset_bytes, stride_bytes, window_lines, queues: PARAMETERS.queues, is_blank: false };
    MemoryRig::around(RtlNic::new(&config).expect("sizes below what is built"), aperture, seed)
}

/// Longest frame of most rigs, of which every length up to it is sent: five lines and a bit, two entries of `niq`.
/// Simulated time grows with its square. A long run names a longer one; the longest of all are those of the jumbo rig.
const LONGEST_BYTES: u32 = 328;

fn longest_bytes() -> u32 {
    match std::env::var("BEELINE_RTL_LONGEST_BYTES") {
        Ok(bytes) => bytes.parse().expect("BEELINE_RTL_LONGEST_BYTES is a number of bytes"),
        Err(_) => LONGEST_BYTES,
    }
}

/// `mmio` in order with every way to receive in memory, `niq` by reads; who sends otherwise, and the adversary, change
/// nothing for who receives.
fn conforms(interface: Interface, disorder: Disorder) {
    let receptions: &[Reception] = match (interface, disorder) {
        (Interface::Mmio, Disorder::None) => &[Reception::Ring, Reception::Descriptors, Reception::Pipe],
        (Interface::Niq, Disorder::None) => &[Reception::Reads(LongFrames::Ring)],
        _ => &[Reception::Ring],
    };
    for &reception in receptions {
        let mut rig = rig(64, longest_bytes(), 1);
        let setup = Setup::new(interface, disorder, reception);
        // Classes decide inside mmio and between engines; frames of kPIO+WC leave in the order in which they became
        // complete, those of descriptors in the order in which they were fetched (kpio_egress.sv, dma.sv), those of
        // entries and pipes in the order in which they were cut (frame_cut.sv, niq_tx.sv).
        if interface == Interface::Mmio {
            conformance::all(&mut rig, &setup);
        } else {
            conformance::all_but_priority(&mut rig, &setup);
        }
        assert!(!rig.link().with_bus(|bus| bus.device.has_failed()), "an assertion of the RTL failed");
    }
}

#[test]
fn mmio_conforms_in_order() {
    conforms(Interface::Mmio, Disorder::None);
}

#[test]
fn mmio_conforms_whatever_the_adversary_does() {
    conforms(Interface::Mmio, Disorder::Declared(0));
}

#[test]
fn kpio_conforms_inside_what_it_declares() {
    conforms(Interface::Kpio, Disorder::None);
    conforms(Interface::Kpio, Disorder::Declared(5));
}

#[test]
fn descriptor_conforms() {
    conforms(Interface::Descriptor, Disorder::None);
}

#[test]
fn inline_conforms_inside_what_it_declares() {
    conforms(Interface::Inline, Disorder::None);
    conforms(Interface::Inline, Disorder::Declared(5));
}

#[test]
fn enso_conforms() {
    conforms(Interface::Enso, Disorder::None);
}

#[test]
fn niq_conforms_inside_what_it_declares() {
    conforms(Interface::Niq, Disorder::None);
    conforms(Interface::Niq, Disorder::Declared(3));
}

#[test]
fn jumbo_frames_conform() {
    // The RTL has no cache that an interconnect keeps coherent.
    for interface in Interface::ALL.into_iter().filter(|interface| *interface != Interface::Coherent) {
        let mut rig = rig(256, 9216, 2);
        let setup = Setup::new(interface, Disorder::Declared(9), Reception::Ring);
        conformance::transport::bursts(&mut rig, &setup);
        rig.restart();
        conformance::transport::back_pressure(&mut rig, &setup);
    }
}

/// kPIO+WC needs its lines in order (its paper's limit); `mmio` takes the same disorder and loses nothing.
#[test]
fn disorder_corrupts_kpio_and_not_mmio() {
    let (mut kpio_wrong, mut kpio_sent) = (0, 0);
    for seed in 0..3 {
        let (right, sent) = limits::right_under_disorder(&mut rig(64, 1518, seed), Interface::Mmio, seed);
        assert!(sent > 100 && right == sent, "seed {seed}: mmio lost {} of {sent}", sent - right);
        let (right, sent) = limits::right_under_disorder(&mut rig(64, 1518, seed), Interface::Kpio, seed);
        kpio_wrong += sent - right;
        kpio_sent += sent;
    }
    assert!(kpio_wrong > 0, "the adversary left all {kpio_sent} kPIO frames alone");
}
