//! The device around its engines: registers, capabilities, the life of queues, quarantine, interrupts, reset.

use beeline_nic_contract::{Accept, Device, Enables, SimTime, Write};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::caps::Capabilities;
use beeline_spec::formats::{KPIO_EOP_DEFAULT, interface};
use beeline_spec::regs::field::{irq_cause, magic, queue_status::cause};
use beeline_spec::regs::{self, counter, queue as r};
use beeline_spec::{Header, Kind, escape};

use crate::rig::{QueueSetup, Rig, Sender, Status};

fn config() -> NicConfig {
    NicConfig {
        queues: 4,
        window_lines: 16,
        span_lines: 8,
        contexts: 4,
        pool_lines: 64,
        ..NicConfig::default()
    }
}

const ACTIVE: Status = Status { active: true, quarantined: false, cause: cause::NONE, epoch: 1 };

#[test]
fn software_finds_the_device_by_its_registers() {
    let mut rig = Rig::new(config());
    assert_eq!(rig.get(regs::MAGIC), magic::VALUE_RESET);
    assert_eq!(rig.get(regs::VERSION) & 0xffff, 1);
    let list = rig.get(regs::CAPS);
    let (offset, bytes) = (list as u32, (list >> 32) as u32);
    let words: Vec<u64> = (0..bytes / 8).map(|i| rig.get(offset + 8 * i)).collect();
    assert_eq!(Capabilities::parse(&words), Ok(config().capabilities()));
    assert_eq!(rig.get(offset + bytes), u64::MAX, "nothing follows the list");
    assert_eq!(rig.get(Rig::queue_register(3, r::WINDOW_LINES)), 16);
    assert_eq!(rig.get(regs::MAC), u64::from_le_bytes([0x02, 0xbe, 0xe1, 0x1e, 0, 0, 0, 0]));
    rig.set(regs::MAC, u64::MAX);
    assert_eq!(rig.get(regs::MAC), 0xffff_ffff_ffff);
}

#[test]
fn what_is_written_is_read_back() {
    let mut rig = Rig::new(config());
    for register in [r::BLANK, r::CREDIT_ADDRESS, r::RX_MODERATION, r::KPIO_EOP, r::CONTROL] {
        let value = u64::from(register) << 32 | 0xa4;
        rig.set(Rig::queue_register(2, register), value);
        assert_eq!(rig.get(Rig::queue_register(2, register)), value);
        assert_ne!(rig.get(Rig::queue_register(1, register)), value, "queues are apart");
    }
    rig.set(regs::DOORBELL + 2 * regs::DOORBELL_STRIDE, 77);
    assert_eq!(rig.get(regs::DOORBELL + 2 * regs::DOORBELL_STRIDE), 77);
    assert_eq!(rig.nic.counters().bad_accesses, 0);
}

#[test]
fn bad_accesses_are_counted_and_harmless() {
    let mut rig = Rig::new(config());
    rig.enable(0, &QueueSetup::default());
    let before = (rig.status(0), rig.nic.counters().bad_accesses);
    let aperture = config().aperture_bytes();
    let mut expected = before.1;
    for (offset_bytes, bytes, enables) in [
        // Registers: a half word, two at once, one in part, unaligned, read-only, absent, of a queue there is not.
        (u64::from(regs::CONTROL), 4, Enables::All),
        (u64::from(regs::CONTROL), 16, Enables::All),
        (u64::from(regs::CONTROL), 8, Enables::Mask(0x7f)),
        (u64::from(regs::CONTROL) + 4, 8, Enables::All),
        (u64::from(regs::MAGIC), 8, Enables::All),
        (u64::from(regs::STATUS), 8, Enables::All),
        (u64::from(regs::CAPABILITIES), 8, Enables::All),
        (u64::from(regs::COUNTERS + counter::RUNTS), 8, Enables::All),
        (u64::from(Rig::queue_register(0, r::NEXT_START)), 8, Enables::All),
        (u64::from(Rig::queue_register(0, 0xf8)), 8, Enables::All),
        (u64::from(Rig::queue_register(4, r::CONTROL)), 8, Enables::All),
        (u64::from(regs::DOORBELL) + 0x10, 8, Enables::All),
        (0x8000, 8, Enables::All),
        (aperture - 8, 8, Enables::All),
        // Windows: nothing written, over the end, enables that cannot be, a queue that never ran, beyond the last.
        (aperture, 0, Enables::All),
        (aperture + 16 * 64 - 8, 16, Enables::All),
        (aperture + 16 * 64, 8, Enables::All),
        (aperture, 72, Enables::Mask(1)),
        (aperture + 4096, 64, Enables::All),
        (aperture + 4 * 4096, 64, Enables::All),
        (u64::MAX - 7, 8, Enables::All),
    ] {
        let data = vec![0xff; bytes];
        assert_eq!(rig.nic.write_arrived(Write { offset_bytes, data: &data, enables }), Accept::Taken);
        rig.settle();
        expected += 1;
        assert_eq!(rig.nic.counters().bad_accesses, expected, "{bytes} bytes at {offset_bytes:#x}");
    }
    for offset in [4, 0x48, 0x8000, Rig::queue_register(4, 0), aperture as u32] {
        assert_eq!(rig.get(offset), u64::MAX, "{offset:#x}");
        expected += 1;
        assert_eq!(rig.nic.counters().bad_accesses, expected, "{offset:#x}");
    }
    assert_eq!(rig.status(0), before.0);
    assert_eq!(rig.nic.counters().tx_writes, 0);
}

#[test]
fn a_queue_runs_only_while_device_and_queue_are_enabled() {
    let mut rig = Rig::new(config());
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

#[test]
fn a_stopped_queue_drops_what_it_holds() {
    let mut rig = Rig::new(config());
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
    let mut rig = Rig::new(config());
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
    let mut rig = Rig::new(config());
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
fn a_sender_past_its_credits_fails_its_queue() {
    for whole in [true, false] {
        let mut rig = Rig::new(config());
        rig.enable(0, &QueueSetup::default());
        rig.nic.wire_ready(false);
        let mut sender = Sender::new(1, 0);
        for number in 0..16 {
            rig.write_lines(0, &sender.frame(&[number; 20]));
        }
        assert_eq!(rig.status(0), ACTIVE);
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
    let mut rig = Rig::new(NicConfig { max_frame_bytes: 100, ..config() });
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
fn a_write_of_several_lines_is_one_write() {
    let mut rig = Rig::new(config());
    rig.enable(0, &QueueSetup::default());
    let lines = Sender::new(1, 0).frame(&[3; 400]);
    let bytes: Vec<u8> = lines.iter().flat_map(|line| line.bytes).collect();
    assert_eq!(rig.write(0, 3 * 64 + 8, &bytes[3 * 64 + 8..6 * 64], Enables::All), Accept::Taken);
    assert_eq!(rig.write(0, 0, &bytes[..3 * 64 + 8], Enables::All), Accept::Taken);
    rig.write_lines(0, &lines[6..]);
    let counters = rig.nic.counters();
    assert_eq!((counters.tx_writes, counters.reordered_writes, counters.split_lines), (3, 1, 1));
    assert_eq!((counters.reorder_depth_max, counters.displacement_histogram[3]), (6, 1));
    assert_eq!(counters.tlp_bytes_histogram[7], 3);
    assert_eq!(rig.frames_of(0), [vec![3; 400]]);
}

#[test]
fn a_failed_queue_receives_no_more() {
    let mut rig = Rig::new(config());
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
fn the_multiplexer_drops_and_counts_what_it_does_not_forward() {
    let mut rig = Rig::new(config());
    rig.set(Rig::queue_register(0, r::KPIO_EOP), KPIO_EOP_DEFAULT);
    rig.enable(0, &QueueSetup { interface: interface::KPIO, ..QueueSetup::default() });
    rig.enable(1, &QueueSetup::default());
    let mut line = [0x11; 64];
    line[56..].copy_from_slice(&KPIO_EOP_DEFAULT.to_le_bytes());
    let mut sender = Sender::new(1, 0);
    let (both, descriptor_only, kpio_only) = (0, 1, 2);
    for (at, mux) in [descriptor_only, kpio_only, both].into_iter().enumerate() {
        rig.set(regs::CONTROL, 1 | mux << 4);
        assert_eq!(rig.write(0, at as u64 * 64, &line, Enables::All), Accept::Taken);
        rig.write_lines(1, &sender.frame(&[2; 20]));
    }
    assert_eq!((rig.frames_of(0).len(), rig.frames_of(1).len()), (2, 3));
    assert_eq!((rig.nic.counters().mux_mismatches, rig.nic.counters().tx_frames), (1, 5));
}

#[test]
fn a_quarantine_is_lifted_by_a_new_epoch_and_nothing_else() {
    let mut rig = Rig::new(config());
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
    let mut rig = Rig::new(config());
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
    let mut rig = Rig::new(config());
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

#[test]
fn a_queue_on_credits_does_not_start_without_its_reservation() {
    let mut rig = Rig::new(NicConfig { pool_lines: 40, contexts: 3, ..config() });
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

    let mut rig = Rig::new(NicConfig { contexts: 1, ..config() });
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
    let mut rig = Rig::new(NicConfig { pool_lines: 16, ..config() });
    let setup = QueueSetup { backpressure: true, ..QueueSetup::default() };
    rig.enable(0, &setup);
    rig.enable(1, &setup);
    let long = Sender::new(1, 0).frame(&[1; 900]);
    rig.write_lines(0, &long[..14]);
    rig.write_lines(1, &long[..2]);
    rig.write_lines(1, &long[2..3]);
    assert_eq!((rig.status(1).cause, rig.nic.counters().no_pool), (cause::NO_POOL, 1));
    assert_eq!((rig.status(0), rig.nic.counters().refused_writes), (ACTIVE, 0));
    rig.write_lines(0, &long[14..]);
    assert_eq!(rig.frames_of(0), [vec![1; 900]]);
}

#[test]
fn back_pressure_waits_for_complete_frames_only() {
    let mut rig = Rig::new(NicConfig { pool_lines: 16, ..config() });
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

#[test]
fn reset_forgets_everything_but_time_and_owed_answers() {
    let mut rig = Rig::new(config());
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
}

#[test]
fn a_clear_takes_causes_away_and_a_mask_keeps_interrupts_back() {
    let mut rig = Rig::new(config());
    rig.enable(0, &QueueSetup::default());
    rig.write_lines(0, &Sender::new(7, 0).frame(&[1; 20]));
    let failed = irq_cause::QUEUE_FAILED_MASK << irq_cause::QUEUE_FAILED_LSB;
    assert_eq!((rig.interrupts.len(), rig.get(regs::IRQ_CAUSE)), (0, failed));
    rig.set(regs::IRQ_CAUSE, 1);
    assert_eq!(rig.get(regs::IRQ_CAUSE), failed);
    rig.set(regs::IRQ_CAUSE, failed);
    assert_eq!(rig.get(regs::IRQ_CAUSE), 0);
    rig.set(regs::IRQ_MASK, u64::MAX);
    assert_eq!(rig.get(regs::IRQ_MASK), 7);
    assert_eq!(rig.nic.counters().interrupts, 0);
}

#[test]
fn counters_are_read_at_their_registers() {
    let mut rig = Rig::new(config());
    rig.enable(0, &QueueSetup::default());
    let line = &Sender::new(1, 0).frame(&[1; 20])[0];
    let _ = rig.write(0, 40, &line.bytes[40..], Enables::All);
    let _ = rig.write(0, 0, &line.bytes, Enables::Mask((1 << 40) - 1));
    for (register, expected) in [
        (counter::TX_WRITES, 2),
        (counter::TX_WRITE_BYTES, 64),
        (counter::TX_MESSAGES, 1),
        (counter::TX_FRAMES, 1),
        (counter::TX_FRAME_BYTES, 20),
        (counter::REORDERED_WRITES, 1),
        (counter::REORDER_DEPTH_MAX, 1),
        (counter::SPLIT_LINES, 1),
        (counter::HOLES, 1),
        (counter::CREDIT_PUSHES, 1),
        (counter::TLP_BYTES_HISTOGRAM + 8 * 2, 1),
        (counter::TLP_BYTES_HISTOGRAM + 8 * 4, 1),
        (counter::DISPLACEMENT_HISTOGRAM, 2),
    ] {
        assert_eq!(rig.get(regs::COUNTERS + register), expected, "{register:#x}");
    }
}

#[test]
fn a_device_that_cannot_be_is_not_made() {
    let error =
        Nic::new(NicConfig { span_lines: 32, ..config() }).err().expect("the span is longer than the window");
    assert_eq!(error.to_string(), "a NIC with span_lines = 32 cannot be made: choose 1 to 16");
}
