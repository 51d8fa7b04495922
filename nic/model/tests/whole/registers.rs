//! The device's registers: capabilities, what is written is read, bad accesses, interrupts, counters, multiplexer.

use beeline_contract_device::{Accept, Device, Enables, Write};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::caps::Capabilities;
use beeline_spec::formats::{KPIO_EOP_DEFAULT, interface};
use beeline_spec::regs::field::{irq_cause, magic};
use beeline_spec::regs::{self, counter, queue as r};

use crate::rig::{QueueSetup, Rig, Sender, small_config};

#[test]
fn software_finds_the_device_by_its_registers() {
    let mut rig = Rig::new(small_config());
    assert_eq!(rig.get(regs::MAGIC), magic::VALUE_RESET);
    assert_eq!(rig.get(regs::VERSION) & 0xffff, 1);
    let list = rig.get(regs::CAPS);
    let (offset, bytes) = (list as u32, (list >> 32) as u32);
    let words: Vec<u64> = (0..bytes / 8).map(|i| rig.get(offset + 8 * i)).collect();
    assert_eq!(Capabilities::parse(&words), Ok(small_config().capabilities()));
    assert_eq!(rig.get(offset + bytes), u64::MAX, "nothing follows the list");
    assert_eq!(rig.get(Rig::queue_register(3, r::WINDOW_LINES)), 16);
    assert_eq!(rig.get(regs::MAC), u64::from_le_bytes([0x02, 0xbe, 0xe1, 0x1e, 0, 0, 0, 0]));
    rig.set(regs::MAC, u64::MAX);
    assert_eq!(rig.get(regs::MAC), 0xffff_ffff_ffff);
}

#[test]
fn what_is_written_is_read_back() {
    let mut rig = Rig::new(small_config());
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
    let mut rig = Rig::new(small_config());
    rig.enable(0, &QueueSetup::default());
    let before = (rig.status(0), rig.nic.counters().bad_accesses);
    let aperture = small_config().aperture_bytes();
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
        (u64::from(regs::DOORBELL) + 0x18, 8, Enables::All),
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
fn a_write_of_several_lines_is_one_write() {
    let mut rig = Rig::new(small_config());
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
fn the_multiplexer_drops_and_counts_what_it_does_not_forward() {
    let mut rig = Rig::new(small_config());
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
fn a_clear_takes_causes_away_and_a_mask_keeps_interrupts_back() {
    let mut rig = Rig::new(small_config());
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
    let mut rig = Rig::new(small_config());
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
    let error = Nic::new(NicConfig { span_lines: 32, ..small_config() })
        .expect_err("the span is longer than the window");
    assert_eq!(error.to_string(), "a NIC with span_lines = 32 cannot be made: choose 1 to 16");
}
