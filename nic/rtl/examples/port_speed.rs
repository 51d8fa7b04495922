//! How fast the Verilated port runs: lines a second through every engine's neighbourhood, on one core. One line of JSON.
//!
//! One-line messages of 16 queues, one a cycle, behind the device trait; the argument is how many.

use std::time::Instant;

use beeline_contract_device::{Accept, Device, Enables, Write};
use beeline_nic_rtl::{RtlConfig, RtlError, RtlNic};
use beeline_spec::regs::field::queue_control;
use beeline_spec::regs::{self, queue};
use beeline_spec::{Header, Kind};

const QUEUES: u64 = 16;
const EPOCH: u8 = 7;

fn write_until_taken(nic: &mut RtlNic, offset_bytes: u64, data: &[u8]) {
    while nic.write_arrived(Write { offset_bytes, data, enables: Enables::All }) == Accept::Refused {}
}

fn main() -> Result<(), RtlError> {
    let lines = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000_u64);
    let config = RtlConfig { span_lines: 16, ..RtlConfig::default() };
    let mut nic = RtlNic::new(&config)?;
    write_until_taken(&mut nic, regs::CONTROL.into(), &1_u64.to_le_bytes());
    for number in 0..QUEUES {
        let control = u64::from(regs::QUEUE + queue::CONTROL) + number * u64::from(regs::QUEUE_STRIDE);
        let value = 1
            | 1 << queue_control::IFACE_LSB
            | 1 << queue_control::BACKPRESSURE_LSB
            | u64::from(EPOCH) << queue_control::EPOCH_LSB;
        write_until_taken(&mut nic, control, &value.to_le_bytes());
    }
    while nic.next().is_some() {}
    let (aperture, stride) = config.aperture();
    let mut line = [0x42; 64];
    line[..8].copy_from_slice(&Header::new(Kind::Data, 56, EPOCH).encode().to_le_bytes());
    let (cycles, beats, start) = (nic.cycles(), nic.beats(), Instant::now());
    for number in 0..lines {
        // In any order inside blocks of eight.
        let place = ((number / QUEUES) ^ 7) % u64::from(config.window_lines);
        write_until_taken(&mut nic, aperture + number % QUEUES * stride + place * 64, &line);
    }
    let seconds = start.elapsed().as_secs_f64();
    let (cycles, frames) = (nic.cycles() - cycles, nic.beats() - beats);
    println!("{{\"cycles\":{cycles},\"lines\":{lines},\"frames\":{frames},\"seconds\":{seconds:.6}}}");
    Ok(())
}
