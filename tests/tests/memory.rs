//! The conformance bodies on the behavioural NIC in this process: every interface, both kinds of window, both ways to
//! receive, with the ordering adversary inside what the interface declares.

use beeline_nic_model::NicConfig;
use beeline_spec::Interface;
use beeline_tests::conformance::{self, Disorder, LongFrames, Reception, Setup, limits};
use beeline_tests::{MemoryRig, Rig};

fn rig(is_blank: bool, seed: u64) -> MemoryRig {
    let config = NicConfig {
        queues: 4,
        window_lines: 64,
        span_lines: 16,
        contexts: 4,
        pool_lines: 4 * 64,
        blank: is_blank,
        max_frame_bytes: 1518,
        ..NicConfig::default()
    };
    MemoryRig::new(config, seed)
}

fn conforms(interface: Interface, disorder: Disorder) {
    for is_blank in [false, true] {
        for reception in [Reception::Ring, Reception::Descriptors, Reception::Pipe, Reception::Lines] {
            let mut rig = rig(is_blank, 1);
            conformance::all(&mut rig, &Setup::new(interface, disorder, reception));
        }
    }
}

#[test]
fn mmio_conforms_in_order() {
    conforms(Interface::Mmio, Disorder::None);
}

#[test]
fn mmio_conforms_whatever_the_adversary_does() {
    for seed in 0..3 {
        conforms(Interface::Mmio, Disorder::Declared(seed));
    }
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
    for seed in 0..3 {
        conforms(Interface::Inline, Disorder::Declared(seed));
    }
}

#[test]
fn enso_conforms() {
    conforms(Interface::Enso, Disorder::None);
}

#[test]
fn niq_conforms_inside_what_it_declares() {
    conforms(Interface::Niq, Disorder::None);
    for seed in 0..3 {
        conforms(Interface::Niq, Disorder::Declared(seed));
    }
}

#[test]
fn receiving_by_reads_conforms_wherever_long_frames_go() {
    for (seed, long) in (0..).zip([LongFrames::Ring, LongFrames::Descriptors, LongFrames::Pipe]) {
        for interface in [Interface::Niq, Interface::Mmio] {
            let mut rig = rig(seed == 1, seed);
            conformance::all(
                &mut rig,
                &Setup::new(interface, Disorder::Declared(seed), Reception::Reads(long)),
            );
        }
    }
}

#[test]
fn coherent_conforms() {
    conforms(Interface::Coherent, Disorder::None);
}

/// Frames are whole in entries, in short buffers of bursts and in long ones, and entries come back by themselves.
#[test]
fn coherent_goes_every_way_without_a_doorbell() {
    let mut rig = rig(false, 4);
    let setup = Setup::new(Interface::Coherent, Disorder::None, Reception::Lines);
    conformance::transport::every_length(&mut rig, &setup);
    let before = rig.counters();
    assert!(before.payload_fetches > 1000 && before.entries > before.payload_fetches / 2, "{before:?}");
    rig.restart();
    conformance::transport::bursts(&mut rig, &setup);
    let counters = rig.counters();
    assert!(counters.tx_frames > 2 * counters.entries, "an entry names several frames: {counters:?}");
    assert_eq!((counters.completions, counters.doorbells), (counters.entries, 0), "{counters:?}");
    assert_eq!((counters.bad_headers, counters.bad_lengths, counters.dma_errors), (0, 0, 0));
}

/// Pushes are used, not used for the self-test, and fetched for want of anything better; each often.
#[test]
fn inline_frames_cross_by_push_and_by_fetch() {
    for is_blank in [false, true] {
        let mut rig = rig(is_blank, 4);
        let setup = Setup::new(Interface::Inline, Disorder::Declared(12), Reception::Pipe);
        conformance::transport::every_length(&mut rig, &setup);
        let counters = rig.counters();
        assert!(counters.push_taken > 20 && counters.push_tested > 10, "{counters:?}");
        assert!(counters.descriptor_fetches > 20 && counters.notifications > 20, "{counters:?}");
        assert_eq!((counters.bad_headers, counters.bad_accesses, counters.dma_errors), (0, 0, 0));
        assert_eq!(counters.credit_pushes > 0, is_blank, "{counters:?}");
    }
}

#[test]
fn jumbo_frames_conform() {
    for interface in Interface::ALL {
        let config =
            NicConfig { queues: 4, window_lines: 256, pool_lines: 1024, contexts: 4, ..NicConfig::default() };
        let mut rig = MemoryRig::new(config, 2);
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
    for seed in 0..5 {
        let (right, sent) = limits::right_under_disorder(&mut rig(false, seed), Interface::Mmio, seed);
        assert!(sent > 100 && right == sent, "seed {seed}: mmio lost {} of {sent}", sent - right);
        let (right, sent) = limits::right_under_disorder(&mut rig(false, seed), Interface::Kpio, seed);
        kpio_wrong += sent - right;
        kpio_sent += sent;
    }
    assert!(kpio_wrong > 0, "the adversary left all {kpio_sent} kPIO frames alone");
}

#[test]
fn the_adversary_reaches_the_reorder_unit() {
    let mut rig = rig(true, 3);
    let setup = Setup::new(Interface::Mmio, Disorder::Declared(11), Reception::Ring);
    conformance::transport::bursts(&mut rig, &setup);
    let counters = rig.counters();
    assert!(counters.reordered_writes > 0 && counters.split_lines > 0, "{counters:?}");
    assert_eq!((counters.clobbers, counters.overruns, counters.span_exceeded), (0, 0, 0));
}
