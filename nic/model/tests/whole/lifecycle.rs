//! The life of queues: start, stop, failure, quarantine, hole time-outs, reset.

use beeline_contract_device::{Accept, Device, Enables, SimTime, Write};
use beeline_spec::formats::interface;
use beeline_spec::regs::field::{irq_cause, queue_status::cause};
use beeline_spec::regs::{self, queue as r};

use crate::rig::{QueueSetup, Rig, Sender, Status, small_config};

const ACTIVE: Status = Status { active: true, quarantined: false, cause: cause::NONE, epoch: 1 };

#[test]
fn a_queue_runs_only_while_device_and_queue_are_enabled() {
    let mut rig = Rig::new(small_config());
    rig.set(regs::CONTROL, 0);
    assert_eq!(rig.get(regs::STATUS) & 1, 0);
    rig.enable(1, &QueueSetup::default());
    assert!(!rig.status(1).active);
    rig.set(regs::CONTROL, 1);
    assert_eq!(rig.status(1), ACTIVE);
    let mut sender = Sender::new(1, 0);
    rig.write_lines(1, &sender.frame(&[7; 20]));
    rig.set(regs::CONTROL, 0);
    assert!(!rig.status(1).active);
    rig.write_lines(1, &sender.frame(&[8; 20]));
    assert_eq!((rig.frames_of(1), rig.nic.counters().quarantined_writes), (vec![vec![7; 20]], 1));
    rig.assert_empty();
}

/// Whatever their numbers: who shares a notification ring starts after its owner and stops before it.
#[test]
fn switched_device_keeps_the_sharers_of_a_ring() {
    const RUNNING: u64 = 1;
    let mut rig = Rig::new(small_config());
    rig.set(regs::CONTROL, 0);
    for (queue, share) in [(0, 1 | 1 << 16), (1, 0), (2, 1 | 1 << 16)] {
        for (register, value) in [
            (r::RX_MODE, 3),
            (r::RX_RING_ADDRESS, 0x1000 * u64::from(queue + 1)),
            (r::RX_RING_ENTRIES, 32),
            (r::RX_NOTIFY_ENTRIES, 4),
            (r::RX_NOTIFY_SHARE, share),
            (r::CONTROL, 1),
        ] {
            rig.set(Rig::queue_register(queue, register), value);
        }
    }
    for _ in 0..3 {
        rig.set(regs::CONTROL, 1);
        for queue in 0..3 {
            assert_eq!(rig.get(Rig::queue_register(queue, r::STATUS)), RUNNING, "queue {queue}");
        }
        rig.set(regs::CONTROL, 0);
    }
    rig.set(regs::CONTROL, 1);
    rig.set(Rig::queue_register(1, r::CONTROL), 0);
    assert_eq!([0, 1, 2].map(|queue| rig.status(queue).cause), [cause::NO_RING, cause::NONE, cause::NO_RING]);
    assert_eq!(rig.nic.counters().bad_accesses, 2);
}

#[test]
fn a_stopped_queue_drops_what_it_holds() {
    let mut rig = Rig::new(small_config());
    rig.enable(0, &QueueSetup::default());
    rig.nic.wire_ready(false);
    let mut sender = Sender::new(1, 0);
    rig.write_lines(0, &sender.frame(&[1; 300]));
    let half = sender.frame(&[2; 300]);
    rig.write_lines(0, &half[..2]);
    let _ = rig.write(0, half[3].position * 64, &[0; 8], Enables::All);
    assert!(rig.nic.free_pool_lines() < 64 && rig.nic.free_contexts() < 4);
    rig.disable(0);
    rig.assert_empty();
    rig.nic.wire_ready(true);
    rig.settle();
    assert_eq!(rig.frames, []);
}

#[test]
fn a_frame_that_is_on_the_wire_survives_its_queue() {
    let mut rig = Rig::new(small_config());
    rig.enable(0, &QueueSetup::default());
    let mut sender = Sender::new(1, 0);
    for line in sender.frame(&[1; 20]).iter().chain(&sender.frame(&[2; 20])) {
        let _ = rig.write_only(0, line.position * 64, &line.bytes, Enables::All);
    }
    assert!(rig.take_want(), "the first frame goes out");
    let stop = Write {
        offset_bytes: Rig::queue_register(0, r::CONTROL).into(),
        data: &[0; 8],
        enables: Enables::All,
    };
    assert_eq!(rig.nic.write_arrived(stop), Accept::Taken);
    rig.settle();
    assert_eq!(rig.frames_of(0), [vec![1; 20]]);
    rig.assert_empty();
    rig.enable(0, &QueueSetup { epoch: 2, ..QueueSetup::default() });
    rig.write_lines(0, &Sender::new(2, 0).frame(&[3; 20]));
    assert_eq!(rig.frames_of(0), [vec![1; 20], vec![3; 20]]);
}

#[test]
fn a_frame_that_is_on_the_wire_is_not_taken_for_one_of_the_next_life() {
    let mut rig = Rig::new(small_config());
    rig.enable(0, &QueueSetup::default());
    let line = &Sender::new(1, 0).frame(&[1; 20])[0];
    let _ = rig.write_only(0, 0, &line.bytes, Enables::All);
    assert!(rig.take_want(), "the first frame goes out");
    let setup = QueueSetup { epoch: 2, ..QueueSetup::default() };
    for value in [0, Rig::control_word(&setup)] {
        let offset_bytes = Rig::queue_register(0, r::CONTROL).into();
        let write = Write { offset_bytes, data: &value.to_le_bytes(), enables: Enables::All };
        assert_eq!(rig.nic.write_arrived(write), Accept::Taken);
    }
    let _ = rig.write_only(0, 0, &Sender::new(2, 0).frame(&[2; 20])[0].bytes, Enables::All);
    rig.settle();
    assert_eq!(rig.frames_of(0), [vec![1; 20], vec![2; 20]]);
}

#[test]
fn a_failed_queue_receives_no_more() {
    let mut rig = Rig::new(small_config());
    rig.set(Rig::queue_register(0, r::RX_MODE), 1);
    rig.set(Rig::queue_register(0, r::RX_RING_ADDRESS), 1 << 24);
    rig.set(Rig::queue_register(0, r::RX_RING_ENTRIES), 256);
    rig.enable(0, &QueueSetup::default());
    assert_eq!(rig.nic.frame_arrived(&[9; 60]), Accept::Taken);
    rig.settle();
    let written = rig.writes.len();
    assert!(written > 0);
    rig.write_lines(0, &Sender::new(8, 0).frame(&[1; 20]));
    assert_eq!(rig.status(0).cause, cause::BAD_HEADER);
    assert_eq!(rig.nic.frame_arrived(&[9; 60]), Accept::Taken);
    rig.settle();
    assert_eq!((rig.writes.len(), rig.nic.counters().rx_no_space), (written, 1));
}

#[test]
fn a_quarantine_is_lifted_by_a_new_epoch_and_nothing_else() {
    let mut rig = Rig::new(small_config());
    rig.set(regs::IRQ_MASK, irq_cause::QUEUE_FAILED_MASK << irq_cause::QUEUE_FAILED_LSB);
    let setup = QueueSetup::default();
    rig.enable(2, &setup);
    let mut sender = Sender::new(1, 0);
    rig.write_lines(2, &sender.frame(&[1; 20]));
    // A header of another epoch.
    rig.write_lines(2, &Sender { position: 1, ..Sender::new(9, 0) }.frame(&[2; 20]));
    let failed = Status { active: false, quarantined: true, cause: cause::BAD_HEADER, epoch: 1 };
    assert_eq!(rig.status(2), failed);
    assert_eq!(rig.interrupts, [2]);
    assert_eq!(rig.get(regs::IRQ_CAUSE), irq_cause::QUEUE_FAILED_MASK << irq_cause::QUEUE_FAILED_LSB);
    assert_eq!(rig.get(regs::STATUS), 0b11, "attention");
    // Later writes are dropped and counted, also when they are good.
    rig.write_lines(2, &Sender { position: 1, ..Sender::new(1, 0) }.frame(&[3; 20]));
    assert_eq!(rig.nic.counters().quarantined_writes, 1);
    // The same epoch does not lift it, nor does the device's own switch.
    rig.disable(2);
    assert_eq!(rig.status(2), failed);
    rig.enable(2, &setup);
    assert_eq!(rig.status(2), failed);
    rig.set(regs::CONTROL, 0);
    rig.set(regs::CONTROL, 1);
    assert_eq!(rig.status(2), failed);
    rig.disable(2);
    rig.enable(2, &QueueSetup { epoch: 2, ..setup });
    assert_eq!(rig.status(2), Status { epoch: 2, ..ACTIVE });
    assert_eq!((rig.next_start(2), rig.get(regs::STATUS)), (0, 0b01));
    rig.write_lines(2, &Sender::new(2, 0).frame(&[4; 20]));
    assert_eq!(rig.frames_of(2), [vec![1; 20], vec![4; 20]]);
}

#[test]
fn complete_frames_survive_the_failure_of_their_queue() {
    let mut rig = Rig::new(small_config());
    rig.enable(0, &QueueSetup::default());
    rig.nic.wire_ready(false);
    let mut sender = Sender::new(1, 0);
    rig.write_lines(0, &sender.frame(&[1; 100]));
    rig.write_lines(0, &sender.batch(&[vec![2; 30], vec![3; 40]]));
    let cut_short = sender.frame(&[4; 500]);
    rig.write_lines(0, &cut_short[..3]);
    let _ = rig.write(0, cut_short[4].position * 64, &[0; 8], Enables::All);
    let _ = rig.write(0, cut_short[4].position * 64, &[0; 8], Enables::All);
    assert_eq!(rig.status(0).cause, cause::CLOBBER);
    rig.nic.wire_ready(true);
    rig.settle();
    assert_eq!(rig.frames_of(0), [vec![1; 100], vec![2; 30], vec![3; 40]]);
    rig.assert_empty();
    assert_eq!(rig.credits[0], 4, "what was sent is freed");
}

#[test]
fn a_hole_past_its_time_out_quarantines_only_its_queue() {
    let mut rig = Rig::new(small_config());
    let setup = QueueSetup { hole_timeout_ns: 1000, ..QueueSetup::default() };
    for queue in 0..3 {
        rig.enable(queue, &setup);
    }
    let lines: Vec<_> = (0..3).map(|queue| Sender::new(1, 0).frame(&[queue; 200])).collect();
    // Queue 0: the second half of a line first. Queue 1: a line before the one it follows. Queue 2: only a beginning.
    let _ = rig.write(0, 32, &lines[0][0].bytes[32..], Enables::All);
    let _ = rig.write(2, 0, &lines[2][0].bytes[..32], Enables::All);
    rig.pass_time(600);
    let _ = rig.write(1, 64, &lines[1][1].bytes, Enables::All);
    assert_eq!(rig.nic.counters().holes, 2);
    assert_eq!(rig.nic.wake_at(), Some(SimTime::from_ns(1000)));
    rig.pass_time(399);
    assert_eq!(rig.nic.counters().hole_timeouts, 0);
    rig.pass_time(1);
    assert_eq!((rig.status(0).cause, rig.nic.counters().hole_timeouts), (cause::HOLE_TIMEOUT, 1));
    // The hole of queue 1 is filled in time, and another one opens whose time starts anew.
    let _ = rig.write(1, 0, &lines[1][0].bytes, Enables::All);
    let _ = rig.write(1, 192, &lines[1][3].bytes, Enables::All);
    rig.pass_time(999);
    assert_eq!((rig.status(1), rig.status(2)), (ACTIVE, ACTIVE));
    rig.write_lines(1, &lines[1][2..3]);
    rig.write_lines(2, &lines[2][1..]);
    let _ = rig.write(2, 32, &lines[2][0].bytes[32..], Enables::All);
    rig.pass_time(100_000);
    assert_eq!((rig.frames_of(1), rig.frames_of(2)), (vec![vec![1; 200]], vec![vec![2; 200]]));
    assert_eq!(rig.nic.counters().hole_timeouts, 1);
    assert_eq!(rig.nic.free_contexts(), 4);
}

/// When it wants to be woken is remembered only until something happens: who does not ask again is not believed to have
/// been told.
#[test]
fn what_happens_after_it_was_asked_when_to_wake_is_woken_for() {
    let mut rig = Rig::new(small_config());
    rig.enable(0, &QueueSetup { hole_timeout_ns: 1000, ..QueueSetup::default() });
    assert_eq!(rig.nic.wake_at(), None);
    let lines = Sender::new(1, 0).frame(&[0; 200]);
    assert_eq!(rig.write_only(0, 32, &lines[0].bytes[32..], Enables::All), Accept::Taken);
    rig.pass_time(1000);
    assert_eq!((rig.status(0).cause, rig.nic.counters().hole_timeouts), (cause::HOLE_TIMEOUT, 1));
}

#[test]
fn reset_forgets_everything_but_time_and_owed_answers() {
    let mut rig = Rig::new(small_config());
    rig.pass_time(500);
    let setup = QueueSetup { interface: interface::DESCRIPTOR, ..QueueSetup::default() };
    rig.set(Rig::queue_register(0, r::TX_RING_ADDRESS), 4096);
    rig.set(Rig::queue_register(0, r::TX_RING_ENTRIES), 16);
    rig.enable(0, &setup);
    rig.enable(1, &QueueSetup::default());
    rig.write_lines(1, &Sender::new(1, 0).frame(&[1; 20]));
    rig.set(regs::DOORBELL, 3);
    assert!(!rig.reads.is_empty(), "descriptors are fetched");
    rig.set(regs::CONTROL, 0b10);
    assert_eq!((rig.get(regs::CONTROL), rig.get(Rig::queue_register(1, r::CONTROL))), (0, 1 << 24));
    let counters = rig.nic.counters();
    assert_eq!((counters.tx_writes, counters.tx_frames, counters.doorbells), (0, 0, 0));
    rig.assert_empty();
    // The answers to what was asked before come late and mean nothing to the new life.
    rig.set(regs::CONTROL, 1);
    rig.set(Rig::queue_register(0, r::TX_RING_ADDRESS), 4096);
    rig.set(Rig::queue_register(0, r::TX_RING_ENTRIES), 16);
    rig.enable(0, &setup);
    rig.set(regs::DOORBELL, 1);
    let old = rig.reads.remove(0);
    rig.nic.dma_completed(old.2, Ok(&vec![0xff; old.1 as usize]));
    rig.settle();
    assert_eq!((rig.status(0).active, rig.nic.counters().dma_errors), (true, 0));
    rig.refuse_reads();
    rig.settle();
    assert_eq!(rig.status(0).cause, cause::DMA_ERROR);
    // A doorbell of a queue that does not run says nothing.
    rig.set(regs::DOORBELL, 2);
    assert_eq!((rig.reads.len(), rig.nic.counters().bad_accesses), (0, 0));
    // Time went on: a hole of the new life is as old as it is.
    rig.enable(2, &QueueSetup { hole_timeout_ns: 100, ..QueueSetup::default() });
    let _ = rig.write(2, 8, &[0; 8], Enables::All);
    assert_eq!(rig.nic.wake_at(), Some(SimTime::from_ns(600)));
}
