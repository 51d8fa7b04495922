//! Queues that only receive leave a quarantine as others do: with another epoch, empty, and with nothing of what was
//! received before; against the behavioural NIC.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use beeline_contract_link::Link as _;
use beeline_driver::{
    EnsoConfig, FailureCause, Port, PortError, QueueHalf, QueueStatus, Receive, RxCoherentConfig,
    RxDescriptorConfig, RxEnsoConfig, RxRingConfig, Stopped, TxQueueConfig,
};
use beeline_spec::regs::field::queue_control as c;
use beeline_spec::regs::{self, queue as r};
use proptest::prelude::*;
use support::nic::{Link, counters, frame, nic, open, receive_all};
use support::{BusDoorbell, BusMemory, finish};

const QUEUE: u32 = 1;

type Memory = BusMemory<beeline_nic_model::Nic>;
type Bell = BusDoorbell<beeline_nic_model::Nic>;

fn status(port: &mut Port<Link>) -> QueueStatus {
    let pending = port.queue_status(QUEUE);
    finish(port, pending).unwrap()
}

fn recovered<H: QueueHalf>(port: &mut Port<Link>, half: H) -> H {
    let pending = port.recover(half);
    finish(port, pending).expect("another epoch lifts a quarantine")
}

/// The device starts the queue with a ring of three lines or entries, which no way to receive has, and fails it.
fn quarantine(port: &mut Port<Link>, epoch: u8) {
    let first = regs::QUEUE + QUEUE * regs::QUEUE_STRIDE;
    let on = 1 << c::ENABLE_LSB | u64::from(epoch) << c::EPOCH_LSB;
    for (register, value) in [(r::CONTROL, 0), (r::RX_RING_ENTRIES, 3), (r::CONTROL, on)] {
        assert!(port.link().write_register(first + register, value).unwrap());
    }
    let found = status(port);
    assert!(found.quarantined && found.cause == FailureCause::BadLength, "{found}");
    assert_eq!(found.epoch, epoch);
}

/// Lives of a queue, each with frames that are received, frames that are left in memory, a quarantine and a recovery.
fn live_and_fail<H: QueueHalf + Receive>(
    (link, mut port): (Link, Port<Link>),
    half: Stopped<H>,
    first_epoch: u8,
    lives: &[(Vec<usize>, Vec<usize>)],
) {
    let mut rx = open(&mut port, half);
    let mut epoch = first_epoch;
    for (life, (taken, left)) in lives.iter().enumerate() {
        assert_eq!((status(&mut port).active, status(&mut port).epoch), (true, epoch));
        let frames: Vec<_> = taken.iter().map(|bytes| frame(life, *bytes)).collect();
        receive_all(&link, &mut rx, &frames, 3);
        // These the device writes, and the host never looks for.
        link.0.borrow_mut().arriving.extend(left.iter().map(|bytes| frame(life + 100, *bytes)));
        link.pass(100);
        link.0.borrow_mut().arriving.clear();
        quarantine(&mut port, epoch);
        rx = recovered(&mut port, rx);
        epoch = epoch.wrapping_add(1);
        assert!(rx.poll().unwrap().is_none(), "a frame of life {life} in the next one");
        link.pass(1_000);
        assert!(rx.poll().unwrap().is_none(), "a frame of life {life} in the next one");
    }
    receive_all(&link, &mut rx, &[frame(7, 60), frame(8, 1500)], 1);
    let found = status(&mut port);
    assert_eq!((found.active, found.quarantined, found.epoch), (true, false, epoch));
}

fn lives() -> impl Strategy<Value = Vec<(Vec<usize>, Vec<usize>)>> {
    let sizes = || proptest::collection::vec(14usize..1519, 0..12);
    proptest::collection::vec((sizes(), sizes()), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_receive_half_recovers_and_gives_no_earlier_frame(
        lives in lives(),
        epoch in prop_oneof![Just(1), Just(255), any::<u8>()],
    ) {
        let (link, mut port) = nic(true);
        let half = port.rx_ring(QUEUE, RxRingConfig { epoch, lines: 64, ..Default::default() }).unwrap();
        live_and_fail((link, port), half, epoch, &lives);
        let (link, mut port) = nic(true);
        let config = RxDescriptorConfig { epoch, entries: 8, ..Default::default() };
        let half = port.rx_descriptor(QUEUE, config).unwrap();
        live_and_fail((link, port), half, epoch, &lives);
        let (link, mut port) = nic(true);
        let config = RxEnsoConfig { epoch, lines: 64, notifications: 4, ..Default::default() };
        let half = port.rx_enso(QUEUE, config).unwrap();
        live_and_fail((link, port), half, epoch, &lives);
        let (link, mut port) = nic(true);
        let config = RxCoherentConfig { epoch, entries: 8, buffers: 4, ..Default::default() };
        let half = port.rx_coherent(QUEUE, config).unwrap();
        live_and_fail((link, port), half, epoch, &lives);
    }
}

/// Descriptors that cannot be read fail the queue while frames come: those that were written before are lost.
#[test]
fn a_queue_that_fails_while_frames_come_receives_the_next_ones() {
    let (link, mut port) = nic(true);
    let config = RxDescriptorConfig { entries: 8, freed_coalesce: 1, ..Default::default() };
    let half = port.rx_descriptor(QUEUE, config).unwrap();
    let mut rx = open(&mut port, half);
    for life in 1..4 {
        receive_all(&link, &mut rx, &[frame(life, 500)], 1);
        link.0.borrow_mut().arriving.extend((0..3).map(|index| frame(50 + index, 200)));
        link.pass(100);
        // The first is taken and its buffer lent again; the descriptors of the next lap cannot be read.
        link.0.borrow_mut().fails_reads = true;
        assert!(rx.poll().unwrap().is_some());
        link.pass(100);
        link.0.borrow_mut().fails_reads = false;
        let found = status(&mut port);
        assert_eq!((found.quarantined, found.cause), (true, FailureCause::DmaError), "{found}");
        assert_eq!(u64::from(found.epoch), life as u64);
        rx = recovered(&mut port, rx);
        assert!(rx.poll().unwrap().is_none());
    }
    receive_all(&link, &mut rx, &[frame(9, 90)], 1);
}

#[test]
fn altered_coherent_lines_fail_the_queue_until_it_is_recovered() {
    let (link, mut port) = nic(true);
    let config = RxCoherentConfig { entries: 4, buffers: 2, ..Default::default() };
    let half = port.rx_coherent(QUEUE, config).unwrap();
    let region = link.0.borrow().regions().len() - 1;
    let mut rx = open(&mut port, half);
    for life in 1..4 {
        receive_all(&link, &mut rx, &[frame(life, 60), frame(life, 900)], 1);
        // Two of four entries are out, so the device looks for the oldest to come back.
        link.0.borrow_mut().arriving.extend((0..2).map(|index| frame(50 + index, 70)));
        link.pass(100);
        link.0.borrow_mut().spoil(region, 2 * 128, 0x1234);
        link.pass(100);
        let found = status(&mut port);
        assert_eq!((found.quarantined, found.cause), (true, FailureCause::BadHeader), "{found}");
        rx = recovered(&mut port, rx);
        assert!(rx.poll().unwrap().is_none());
    }
    assert_eq!(status(&mut port).epoch, 4);
    receive_all(&link, &mut rx, &[frame(9, 90)], 1);
}

/// A program that lost its half may begin anew: it chooses the epoch, and the device refuses the old one.
#[test]
fn another_half_lifts_a_quarantine_with_another_epoch_only() {
    let (link, mut port) = nic(true);
    let config = RxRingConfig { lines: 64, ..RxRingConfig::default() };
    let half = port.rx_ring(QUEUE, config).unwrap();
    drop(open(&mut port, half));
    quarantine(&mut port, 1);
    let first = regs::QUEUE + QUEUE * regs::QUEUE_STRIDE;
    assert!(port.link().write_register(first + r::CONTROL, 0).unwrap());
    let half = port.rx_ring(QUEUE, config).unwrap();
    let pending = port.open(half);
    let error = finish(&mut port, pending).err();
    assert!(matches!(error, Some(PortError::FailedAtStart { queue: QUEUE, .. })), "{error:?}");
    assert!(port.link().write_register(first + r::CONTROL, 0).unwrap());
    let half = port.rx_ring(QUEUE, RxRingConfig { epoch: 2, ..config }).unwrap();
    let mut rx = open(&mut port, half);
    receive_all(&link, &mut rx, &[frame(1, 700)], 1);
    assert_eq!(counters(&link).bad_accesses, 1, "the start with the old epoch");
}

/// A pair states the epoch that its entries carry, whatever the other half would have alone.
#[test]
fn a_pair_has_the_epoch_of_its_transmit_half() {
    let (link, mut port) = nic(true);
    let queue = TxQueueConfig { epoch: 9, ..TxQueueConfig::default() };
    let tx = port.enso(QUEUE, EnsoConfig { queue, ..EnsoConfig::default() }).unwrap();
    let rx: Stopped<beeline_driver::RxEnso<Memory, Bell>> =
        port.rx_enso(QUEUE, RxEnsoConfig { epoch: 77, ..RxEnsoConfig::default() }).unwrap();
    let mut pair = open(&mut port, rx.with(tx).unwrap());
    for life in 9..12 {
        assert_eq!(status(&mut port).epoch, life);
        receive_all(&link, &mut pair.0, &[frame(life.into(), 300)], 1);
        pair = recovered(&mut port, pair);
    }
}
