//! What a restart leaves on the wire: of a queue whose last frame still waits for it, and of a device in mid-frame.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use beeline_contract_device::{Accept, Device, Enables, Want, Write};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_spec::regs::field::queue_control;
use beeline_spec::regs::{self, queue};
use beeline_spec::{Header, Kind};

const CREDITS: u64 = 0x10_0000;

fn write(nic: &mut RtlNic, offset_bytes: u64, data: &[u8]) {
    for _ in 0..100 {
        if nic.write_arrived(Write { offset_bytes, data, enables: Enables::All }) == Accept::Taken {
            return;
        }
    }
    panic!("a write at {offset_bytes:#x} is refused for ever");
}

fn register(nic: &mut RtlNic, offset: u32, value: u64) {
    write(nic, offset.into(), &value.to_le_bytes());
}

/// One message of one line at a position of queue 0.
fn message(nic: &mut RtlNic, config: &RtlConfig, position: u64, epoch: u8) {
    let mut line = [epoch; 64];
    line[..8].copy_from_slice(&Header::new(Kind::Data, 56, epoch).encode().to_le_bytes());
    write(nic, config.aperture().0 + position * 64, &line);
}

/// Frames by their filler, and the freed lines that were told last.
fn drain(nic: &mut RtlNic) -> (Vec<u8>, Option<u64>) {
    let (mut frames, mut freed) = (Vec::new(), None);
    while let Some(want) = nic.next() {
        match want {
            Want::Transmit { frame, .. } => frames.push(frame[0]),
            Want::DmaWrite { data, .. } => freed = Some(u64::from_le_bytes(data.try_into().unwrap())),
            _ => {}
        }
    }
    (frames, freed)
}

#[test]
fn what_its_last_life_left_behind_is_not_counted_in_the_new_one() {
    let config = RtlConfig { span_lines: 16, window_lines: 64, ..RtlConfig::default() };
    let mut nic = RtlNic::new(&config).unwrap();
    let control =
        |epoch: u8| 1 | 1 << queue_control::IFACE_LSB | u64::from(epoch) << queue_control::EPOCH_LSB;
    register(&mut nic, regs::CONTROL, 1);
    register(&mut nic, regs::QUEUE + queue::CREDIT_ADDRESS, CREDITS);
    register(&mut nic, regs::QUEUE + queue::CREDIT_COALESCE, 1);
    register(&mut nic, regs::QUEUE + queue::CONTROL, control(7));
    // Three messages leave; the fourth stands in front of a wire that does not take it.
    for position in 0..3 {
        message(&mut nic, &config, position, 7);
    }
    assert_eq!(drain(&mut nic), (vec![7; 3], Some(3)));
    nic.wire_ready(false);
    message(&mut nic, &config, 3, 7);
    assert_eq!(drain(&mut nic).0, []);
    register(&mut nic, regs::QUEUE + queue::CONTROL, 0);
    register(&mut nic, regs::QUEUE + queue::CONTROL, control(8));
    assert_eq!(drain(&mut nic).0, []);
    nic.wire_ready(true);
    let (frames, freed) = drain(&mut nic);
    assert!(frames.len() <= 1, "{frames:?}");
    assert!(freed.is_none_or(|freed| freed == 0 || freed == 4), "{freed:?} lines freed");
    // The new life counts from its own beginning.
    message(&mut nic, &config, 0, 8);
    assert_eq!(drain(&mut nic), (vec![8], Some(1)));
    message(&mut nic, &config, 1, 8);
    assert_eq!(drain(&mut nic), (vec![8], Some(2)));
    assert!(!nic.has_failed(), "an assertion of the RTL failed");
}

#[test]
fn a_frame_that_a_reset_cuts_short_is_aborted_and_spoils_no_other() {
    let config = RtlConfig { span_lines: 16, window_lines: 64, ..RtlConfig::default() };
    let mut nic = RtlNic::new(&config).unwrap();
    let control =
        |epoch: u8| 1 | 1 << queue_control::IFACE_LSB | u64::from(epoch) << queue_control::EPOCH_LSB;
    register(&mut nic, regs::CONTROL, 1);
    register(&mut nic, regs::QUEUE + queue::CONTROL, control(7));
    while nic.next().is_some() {}
    // Twenty lines that are one frame; its first beats are on the wire when the device is reset.
    let mut long = vec![7; 20 * 64];
    long[..8].copy_from_slice(&Header::new(Kind::Data, 20 * 64 - 8, 7).encode().to_le_bytes());
    write(&mut nic, config.aperture().0, &long);
    let before = nic.beats();
    while nic.beats() < before + 3 {
        nic.cycle();
    }
    nic.wire_ready(false);
    register(&mut nic, regs::CONTROL, 2);
    nic.wire_ready(true);
    assert_eq!(drain(&mut nic).0, [], "the frame was cut short");
    register(&mut nic, regs::CONTROL, 1);
    register(&mut nic, regs::QUEUE + queue::CONTROL, control(8));
    message(&mut nic, &config, 0, 8);
    let frames: Vec<Vec<u8>> = std::iter::from_fn(|| {
        Some(match nic.next()? {
            Want::Transmit { frame, .. } => frame.to_vec(),
            _ => Vec::new(),
        })
    })
    .filter(|frame| !frame.is_empty())
    .collect();
    assert_eq!(frames, [vec![8; 56]]);
}
