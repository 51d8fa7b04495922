//! How many lines a cycle, and how many cycles from the last byte to the first beat: counts of the RTL's own clock.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use beeline_contract_device::{Accept, Device, Enables, Write};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_spec::regs::field::queue_control;
use beeline_spec::regs::{self, queue};
use beeline_spec::{Header, Kind};

const LINES: u64 = 100_000;

/// Cycles of the register that the simulation has in front of the wire.
const PIN_CYCLES: u64 = 1;

/// A NIC with queues that run without credits, so that nothing but the RTL sets the pace.
fn nic(config: &RtlConfig, queues: u64) -> RtlNic {
    let mut nic = RtlNic::new(config).unwrap();
    let mut write = |offset: u64, value: u64| {
        let data = value.to_le_bytes();
        // After reset the registers are cleared first, which a write may find to be long.
        while nic.write_arrived(Write { offset_bytes: offset, data: &data, enables: Enables::All })
            == Accept::Refused
        {}
        while nic.next().is_some() {}
    };
    write(regs::CONTROL.into(), 1);
    for number in 0..queues {
        let control = u64::from(regs::QUEUE + queue::CONTROL) + number * u64::from(regs::QUEUE_STRIDE);
        write(
            control,
            1 | 1 << queue_control::IFACE_LSB
                | 1 << queue_control::BACKPRESSURE_LSB
                | 7 << queue_control::EPOCH_LSB,
        );
    }
    nic
}

/// One message of one line: the queue's `position`-th.
fn write_line(nic: &mut RtlNic, config: &RtlConfig, queue: u64, position: u64, bytes: u32) {
    let (aperture, stride) = config.aperture();
    let offset_bytes = aperture + queue * stride + position % u64::from(config.window_lines) * 64;
    let mut line = [0x42; 64];
    line[..8].copy_from_slice(&Header::new(Kind::Data, bytes, 7).encode().to_le_bytes());
    assert_eq!(nic.write_arrived(Write { offset_bytes, data: &line, enables: Enables::All }), Accept::Taken);
}

/// Cycles for [`LINES`] messages of a line on so many queues, each queue's in the order that `place` makes of 0, 1, 2 ...
fn cycles(queues: u64, place: impl Fn(u64) -> u64) -> f64 {
    let config = RtlConfig { span_lines: 16, ..RtlConfig::default() };
    let mut nic = nic(&config, queues);
    let before = nic.cycles();
    for number in 0..LINES {
        write_line(&mut nic, &config, number % queues, place(number / queues), 56);
    }
    let cycles = (nic.cycles() - before) as f64 / LINES as f64;
    println!("{queues} queues: {cycles:.4} cycles a line and message");
    cycles
}

#[test]
fn a_line_and_a_message_go_in_every_cycle_in_order_or_not() {
    let in_order = |number| number;
    let backwards_in_eights = |number: u64| number ^ 7;
    let backwards_in_sixteens = |number: u64| number ^ 15;
    for queues in [1, 16] {
        assert!(cycles(queues, in_order) < 1.001);
        assert!(cycles(queues, backwards_in_eights) < 1.01);
        assert!(cycles(queues, backwards_in_sixteens) < 1.05);
    }
}

#[test]
fn fifteen_cycles_from_the_last_byte_to_the_first_beat_at_the_pins() {
    let config = RtlConfig { span_lines: 16, ..RtlConfig::default() };
    // One line, and five whose first comes last.
    for lines in [vec![0], vec![4, 3, 2, 1, 0]] {
        let mut nic = nic(&config, 1);
        let bytes = 64 * lines.len() as u32 - 8;
        for position in &lines {
            write_line(&mut nic, &config, 0, *position, bytes);
        }
        let last_byte = nic.cycles();
        while nic.beats() == 0 {
            nic.cycle();
        }
        // The reorder unit takes 10 (mmio.sv), the ingress in front of it 1, behind it the arbiter between the engines 3
        // and the guard in front of the MAC 1. The registers of the simulation at the pins (nic_sim.sv) are not the NIC's.
        assert_eq!(nic.cycles() - last_byte, 10 + 1 + 3 + 1 + PIN_CYCLES, "{lines:?}");
    }
}
