//! What happens where something is short: pool, contexts, credits, the wire; and lengths that are too long.

use beeline_contract_device::{Accept, Device, Enables, SimTime};
use beeline_nic_model::NicConfig;
use beeline_spec::formats::{KPIO_EOP_DEFAULT, interface};
use beeline_spec::regs::field::queue_status::cause;
use beeline_spec::regs::queue as r;
use beeline_spec::{Header, Kind, escape};

use crate::rig::{QueueSetup, Rig, Sender, small_config};

#[test]
fn a_sender_past_its_credits_fails_its_queue() {
    for whole in [true, false] {
        let mut rig = Rig::new(small_config());
        rig.enable(0, &QueueSetup::default());
        rig.nic.wire_ready(false);
        let mut sender = Sender::new(1, 0);
        for number in 0..16 {
            rig.write_lines(0, &sender.frame(&[number; 20]));
        }
        assert!(rig.status(0).active);
        let line = &sender.frame(&[16; 20])[0];
        let bytes = if whole { &line.bytes[..] } else { &line.bytes[..8] };
        let _ = rig.write(0, 0, bytes, Enables::All);
        assert_eq!((rig.status(0).cause, rig.nic.counters().overruns), (cause::OVERRUN, 1));
        rig.nic.wire_ready(true);
        rig.settle();
        assert_eq!(rig.frames_of(0).len(), 16);
    }
}

#[test]
fn an_escape_is_for_blank_windows_and_makes_no_frame_longer() {
    let mut rig = Rig::new(NicConfig { max_frame_bytes: 100, ..small_config() });
    rig.enable(0, &QueueSetup::default());
    // A chain that leads back to the header, but in a window without a blank.
    let header = Header { escape_last: 1, ..Header::new(Kind::Data, 20, 1) };
    let mut line = [0; 64];
    line[..8].copy_from_slice(&header.encode().to_le_bytes());
    let _ = rig.write(0, 0, &line, Enables::All);
    assert_eq!((rig.status(0).cause, rig.frames.len()), (cause::BAD_HEADER, 0));

    let blank = escape::blank_from_random(5);
    rig.enable(1, &QueueSetup { blank, ..QueueSetup::default() });
    let frame = [blank.to_le_bytes().to_vec(), vec![7; 93]].concat();
    rig.write_lines(1, &Sender::new(1, blank).frame(&frame));
    assert_eq!((rig.status(1).cause, rig.nic.counters().bad_lengths), (cause::BAD_LENGTH, 1));
}

#[test]
fn a_queue_on_credits_does_not_start_without_its_reservation() {
    let mut rig = Rig::new(NicConfig { pool_lines: 40, contexts: 3, ..small_config() });
    for queue in 0..2 {
        rig.enable(queue, &QueueSetup::default());
        assert!(rig.status(queue).active);
    }
    rig.enable(2, &QueueSetup::default());
    assert_eq!((rig.status(2).cause, rig.nic.counters().no_pool), (cause::NO_POOL, 1));
    rig.disable(0);
    rig.disable(2);
    rig.enable(2, &QueueSetup { epoch: 2, ..QueueSetup::default() });
    assert!(rig.status(2).active);

    let mut rig = Rig::new(NicConfig { contexts: 1, ..small_config() });
    rig.enable(0, &QueueSetup::default());
    rig.enable(1, &QueueSetup::default());
    assert_eq!((rig.status(1).cause, rig.nic.counters().no_context), (cause::NO_CONTEXT, 1));
    // With back-pressure a queue may start, and fails when it is the one that asks in vain.
    rig.enable(2, &QueueSetup { backpressure: true, ..QueueSetup::default() });
    let line = &Sender::new(1, 0).frame(&[1; 20])[0];
    assert!(rig.status(2).active);
    let _ = rig.write(2, 0, &line.bytes[..8], Enables::All);
    assert_eq!((rig.status(2).cause, rig.nic.counters().no_context), (cause::NO_CONTEXT, 2));
    rig.write_lines(0, std::slice::from_ref(line));
    assert_eq!(rig.frames_of(0), [vec![1; 20]]);
}

#[test]
fn incomplete_data_without_pool_fails_the_queue_that_asked() {
    // Lines of a long message that cannot end, in a pool that is shared.
    let mut rig = Rig::new(NicConfig { pool_lines: 16, ..small_config() });
    let setup = QueueSetup { backpressure: true, ..QueueSetup::default() };
    rig.enable(0, &setup);
    rig.enable(1, &setup);
    let long = Sender::new(1, 0).frame(&[1; 900]);
    rig.write_lines(0, &long[..14]);
    rig.write_lines(1, &long[..2]);
    rig.write_lines(1, &long[2..3]);
    assert_eq!((rig.status(1).cause, rig.nic.counters().no_pool), (cause::NO_POOL, 1));
    assert_eq!((rig.status(0).active, rig.nic.counters().refused_writes), (true, 0));
    rig.write_lines(0, &long[14..]);
    assert_eq!(rig.frames_of(0), [vec![1; 900]]);
}

#[test]
fn back_pressure_waits_for_complete_frames_only() {
    let mut rig = Rig::new(NicConfig { pool_lines: 16, ..small_config() });
    let setup = QueueSetup { backpressure: true, ..QueueSetup::default() };
    rig.enable(0, &setup);
    rig.enable(1, &setup);
    rig.nic.wire_ready(false);
    let mut sender = Sender::new(1, 0);
    let mut taken = 0;
    loop {
        let line = &sender.frame(&[taken; 20])[0];
        if rig.write(0, line.position % 16 * 64, &line.bytes, Enables::All) == Accept::Refused {
            break;
        }
        taken += 1;
    }
    assert_eq!((taken, rig.nic.counters().refused_writes), (16, 1));
    // Disorder is never refused: a write that needs no pool line now, but also one that might, only waits for frames.
    rig.nic.wire_ready(true);
    assert!(rig.take_want());
    rig.settle();
    let line = &Sender { position: 16, ..Sender::new(1, 0) }.frame(&[16; 20])[0];
    assert_eq!(rig.write(0, 0, &line.bytes, Enables::All), Accept::Taken);
    assert_eq!(rig.frames_of(0).len(), 17);
    rig.assert_empty();
}

/// With no time to wait, the lines that a coalescing count holds back are returned as soon as the device is idle.
#[test]
fn credits_are_not_kept_back_by_an_idle_device() {
    let mut rig = Rig::new(small_config());
    let setup = QueueSetup { credit_lines: 100, ..QueueSetup::default() };
    rig.enable(0, &setup);
    rig.set(Rig::queue_register(1, r::KPIO_EOP), KPIO_EOP_DEFAULT);
    rig.enable(1, &QueueSetup { interface: interface::KPIO, ..setup });
    let mut sender = Sender::new(1, 0);
    for _ in 0..3 {
        for line in sender.frame(&[1; 20]) {
            let _ = rig.write_only(0, line.position * 64, &line.bytes, Enables::All);
        }
    }
    let mut line = [0x11; 64];
    line[56..].copy_from_slice(&KPIO_EOP_DEFAULT.to_le_bytes());
    let _ = rig.write_only(1, 0, &line, Enables::All);
    rig.settle();
    assert_eq!((rig.credits[0], rig.credits[1]), (3, 1));
    assert_eq!(rig.nic.counters().credit_pushes, 2, "a burst shares a push");

    rig.enable(2, &QueueSetup { credit_time_ns: 500, ..setup });
    rig.write_lines(2, &Sender::new(1, 0).frame(&[1; 20]));
    assert_eq!((rig.credits[2], rig.nic.wake_at()), (0, Some(SimTime::from_ns(500))));
    rig.pass_time(500);
    assert_eq!(rig.credits[2], 1);
}
