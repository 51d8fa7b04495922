//! A queue that stops in the middle of something: of what another queue does, or of engines that fall asleep.

use beeline_nic_rtl::RtlConfig;
use beeline_spec::regs::queue;
use beeline_spec::{Header, Interface, Kind};
use beeline_tests::owners::Bench;

use crate::host::{Host, Start, message};

const CONFIG: RtlConfig = RtlConfig {
    window_lines: 64,
    span_lines: 8,
    contexts: 16,
    pool_lines: 16 * 1024,
    max_frame_bytes: 9216,
    rx_lossless: true,
    mac: [2, 0, 0, 0, 0, 1],
};

/// A batch of one line with records of these lengths.
fn batch(epoch: u8, records: &[u16]) -> [u8; 64] {
    let mut payload = Vec::new();
    for bytes in records {
        payload.extend_from_slice(&bytes.to_le_bytes());
        payload.resize(payload.len() + usize::from(*bytes), 0xb0);
        payload.resize(payload.len().next_multiple_of(8), 0);
    }
    let mut line = [0; 64];
    line[..8].copy_from_slice(&Header::new(Kind::Batch, payload.len() as u32, epoch).encode().to_le_bytes());
    line[8..8 + payload.len()].copy_from_slice(&payload);
    line
}

/// Engines that nobody uses stand still in the simulation from so many cycles behind the reset on (base/engine_clock.sv);
/// the reset and what is around it take a few more.
const ASLEEP: std::ops::Range<u64> = 4040..4140;

#[test]
fn stop_ends_while_unused_engines_fall_asleep() {
    for at in ASLEEP.step_by(5) {
        let mut host = Host::new(CONFIG);
        host.start(1, Start { interface: Interface::Mmio, epoch: 1, credits: true });
        host.idle_for(at - host.cycles());
        host.set_of(1, queue::CONTROL, 0);
        assert!(!host.is_active(1), "stopped in cycle {at}");
    }
}

#[test]
fn a_stop_ends_whatever_another_queue_is_in_the_middle_of() {
    for credits in [true, false] {
        for records in [&[14][..], &[5], &[]] {
            let mut host = Host::new(CONFIG);
            let start = |epoch| Start { interface: Interface::Mmio, epoch, credits };
            host.start(0, start(5));
            for round in 0..40u64 {
                host.start(1, start(1));
                let position = round * 4;
                host.piece(0, position, &message(5, round, 1), 0, 64);
                host.piece(0, position + 3, &batch(5, records), 0, 64);
                host.piece(0, position + 1, &message(5, round, 2), 0, 64);
                host.piece(0, position + 2, &message(5, round, 3), 0, 64);
                host.idle_for(round);
                host.set_of(1, queue::CONTROL, 0);
                assert!(!host.is_active(1), "it was stopped");
                host.idle_for(100);
                let messages = host.frames[&0].iter().filter(|frame| frame.len() == 56).count();
                assert_eq!(messages as u64, 3 * (round + 1), "{records:?}, credits {credits}, round {round}");
            }
        }
    }
}
