//! A byte that is written again changes nothing that was complete before, however close behind it comes.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail the test")]

use beeline_contract_device::{Accept, Device, Enables, ReadTag, Want, Write};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_spec::regs::field::{queue_control, queue_status};
use beeline_spec::regs::{self, queue};
use beeline_spec::{Header, Kind, LINE_BYTES};

const EPOCH: u8 = 7;
/// What the second write of a byte brings.
const WRONG: u8 = 0xee;

fn write(nic: &mut RtlNic, offset_bytes: u64, data: &[u8]) {
    // The registers are cleared after reset, which takes longer than a write is kept waiting.
    for _ in 0..100 {
        if nic.write_arrived(Write { offset_bytes, data, enables: Enables::All }) == Accept::Taken {
            return;
        }
    }
    panic!("a write at {offset_bytes:#x} is refused for ever");
}

fn register(nic: &mut RtlNic, offset: u32, value: u64) {
    write(nic, offset.into(), &value.to_le_bytes());
    while nic.next().is_some() {}
}

fn is_quarantined(nic: &mut RtlNic) -> bool {
    nic.read_arrived((regs::QUEUE + queue::STATUS).into(), ReadTag(0));
    let mut status = None;
    while let Some(want) = nic.next() {
        if let Want::ReadCompletion { value, .. } = want {
            status = Some(value);
        }
    }
    status.unwrap() >> queue_status::QUARANTINED_LSB & queue_status::QUARANTINED_MASK == 1
}

/// A message that fills one line; its frame is all `filler`.
fn message(filler: u8) -> [u8; LINE_BYTES] {
    let mut line = [filler; LINE_BYTES];
    line[..8].copy_from_slice(&Header::new(Kind::Data, 56, EPOCH).encode().to_le_bytes());
    line
}

/// Lines 1 to `complete` come first, line 0 last; right behind it, in the same write where they are neighbours, bytes of
/// line `again` come for the second time.
fn frames_around_a_rewrite(complete: u64, again: u64, backpressure: u64) -> Vec<Vec<u8>> {
    let config = RtlConfig { span_lines: 16, window_lines: 64, ..RtlConfig::default() };
    let mut nic = RtlNic::new(&config).unwrap();
    let window = config.aperture().0;
    let at = |line: u64| window + line * LINE_BYTES as u64;
    register(&mut nic, regs::CONTROL, 1);
    let control = 1
        | 1 << queue_control::IFACE_LSB
        | u64::from(EPOCH) << queue_control::EPOCH_LSB
        | backpressure << queue_control::BACKPRESSURE_LSB;
    register(&mut nic, regs::QUEUE + queue::CONTROL, control);
    for line in 1..=complete {
        write(&mut nic, at(line), &message(line as u8));
    }
    assert!(nic.next().is_none(), "line 0 is missing");
    let mut last = message(0).to_vec();
    if again == 1 {
        last.extend_from_slice(&message(1)[..8]);
        last.extend_from_slice(&[WRONG; 8]);
        write(&mut nic, at(0), &last);
    } else {
        write(&mut nic, at(0), &last);
        write(&mut nic, at(again) + 8, &[WRONG; 8]);
    }
    let mut frames = Vec::new();
    while let Some(want) = nic.next() {
        if let Want::Transmit { frame, .. } = want {
            frames.push(frame.to_vec());
        }
    }
    assert!(is_quarantined(&mut nic), "line {again} was written twice, and the queue runs on");
    assert!(!nic.has_failed(), "an assertion of the RTL failed");
    frames
}

#[test]
fn complete_lines_that_are_written_again_leave_as_they_were() {
    for backpressure in [0, 1] {
        for (complete, again) in [(1, 1), (3, 1), (2, 2), (5, 3), (5, 5)] {
            let frames = frames_around_a_rewrite(complete, again, backpressure);
            let expected: Vec<_> = (0..=complete).map(|line| vec![line as u8; 56]).collect();
            assert_eq!(frames, expected, "line {again} of {complete}, back-pressure {backpressure}");
        }
    }
}
