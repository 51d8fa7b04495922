//! A port's and a queue's life against the behavioural NIC: bring-up, opening, closing, quarantine and recovery,
//! interrupts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use beeline_driver::{
    Causes, FailureCause, KpioConfig, MmioConfig, PortConfig, Receive, RxRingConfig, Sent, Transmit,
};
use beeline_nic_model::NicConfig;
use beeline_spec::Interface;
use support::nic::{Link, MAX_FRAME, counters, frame, nic, open, receive_all, send_all};
use support::{bring_up, finish};

#[test]
fn the_port_tells_what_the_device_is() {
    let (_, port) = nic(true);
    assert_eq!((port.queues(), port.max_frame_bytes()), (4, MAX_FRAME as usize));
    assert_eq!(port.mac(), NicConfig::default().mac);
    assert!(Interface::ALL.into_iter().all(|interface| port.has_interface(interface)));
}

#[test]
fn the_station_address_can_be_set() {
    let (link, port) = nic(false);
    drop(port);
    let mac = [2, 1, 2, 3, 4, 5];
    let port = bring_up(&link, PortConfig { mac: Some(mac), ..PortConfig::default() });
    assert_eq!(port.mac(), mac);
}

#[test]
fn both_directions_of_one_queue_open_and_close_together() {
    let (link, mut port) = nic(true);
    let tx = port.mmio(2, MmioConfig::default()).unwrap();
    let rx = port.rx_ring(2, RxRingConfig::default()).unwrap();
    let other = port.rx_ring(1, RxRingConfig::default()).unwrap();
    assert!(other.with(port.rx_ring(2, RxRingConfig::default()).unwrap()).is_err());
    let (mut tx, mut rx) = open(&mut port, tx.with(rx).unwrap());
    for life in 0..3 {
        send_all(&link, &mut tx, &[frame(life, 300), frame(life, 30)], 2);
        receive_all(&link, &mut rx, &[frame(life, 999)], 1);
        let pending = port.close((tx, rx));
        let stopped = finish(&mut port, pending).unwrap();
        (tx, rx) = open(&mut port, stopped);
    }
}

#[test]
fn after_close_the_device_touches_no_memory_of_the_queue() {
    let (link, mut port) = nic(true);
    let half = port.rx_ring(1, RxRingConfig::default()).unwrap();
    let rx = open(&mut port, half);
    let pending = port.close(rx);
    let _stopped = finish(&mut port, pending).unwrap();
    link.0.borrow_mut().arriving.push_back(frame(0, 100));
    link.pass(1_000);
    assert_eq!((counters(&link).rx_frames, counters(&link).rx_no_space), (0, 1));
}

#[test]
fn queue_recovered_from_quarantine_loses_no_later_frame() {
    for interface in [Interface::Mmio, Interface::Kpio] {
        let (link, mut port) = nic(true);
        let queue = beeline_driver::TxQueueConfig { hole_timeout_ns: 1_000, ..Default::default() };
        // A store is lost on the way: no adversary does that, a dying sender does.
        let lose = |link: &Link| link.0.borrow_mut().lose_store_after = Some(2);
        let status = match interface {
            Interface::Mmio => {
                let half = port.mmio(0, MmioConfig { queue, ..MmioConfig::default() }).unwrap();
                let mut tx = open(&mut port, half);
                lose(&link);
                for i in 0..4 {
                    assert_eq!(tx.try_send(&frame(i, 100)), Ok(Sent::Sent));
                }
                link.pass(5_000);
                let status = port.queue_status(0);
                let status = finish(&mut port, status).unwrap();
                let pending = port.recover(tx);
                let mut tx = finish(&mut port, pending).unwrap();
                link.take_wire();
                send_all(&link, &mut tx, &[frame(7, 700), frame(8, 80)], 1);
                status
            }
            _ => {
                let half = port.kpio(0, KpioConfig { queue, ..KpioConfig::default() }).unwrap();
                let mut tx = open(&mut port, half);
                lose(&link);
                for i in 0..4 {
                    assert_eq!(tx.try_send(&frame(i, 100)), Ok(Sent::Sent));
                }
                link.pass(5_000);
                let status = port.queue_status(0);
                let status = finish(&mut port, status).unwrap();
                let pending = port.recover(tx);
                let mut tx = finish(&mut port, pending).unwrap();
                link.take_wire();
                send_all(&link, &mut tx, &[frame(7, 704), frame(8, 80)], 1);
                status
            }
        };
        if interface == Interface::Mmio {
            assert!(status.quarantined, "{status}");
            assert_eq!((status.cause, status.epoch), (FailureCause::HoleTimeout, 1));
        }
        let status = port.queue_status(0);
        let status = finish(&mut port, status).unwrap();
        assert_eq!((status.active, status.quarantined, status.epoch), (true, false, 2), "{interface}");
    }
}

#[test]
fn an_armed_port_is_interrupted_by_a_frame_and_a_masked_one_is_not() {
    let (link, mut port) = nic(true);
    let half = port.rx_ring(1, RxRingConfig::default()).unwrap();
    let mut rx = open(&mut port, half);
    receive_all(&link, &mut rx, &[frame(0, 60)], 1);
    assert!(link.0.borrow().interrupts.is_empty());
    let armed = port.arm(Causes { rx_frame: true, ..Causes::default() });
    finish(&mut port, armed).unwrap();
    assert_eq!(rx.wants_interrupt(), Ok(true));
    link.0.borrow_mut().arriving.push_back(frame(1, 61));
    link.pass(100);
    assert_eq!(link.0.borrow().interrupts, [1]);
    assert_eq!(rx.wants_interrupt(), Ok(false), "a frame is there");
    assert_eq!(rx.poll().unwrap().expect("looking takes nothing").len(), 61);
}
