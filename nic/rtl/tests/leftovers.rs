//! What an earlier life of a queue left behind is its own: neither credit, nor room, nor failure of the next one.
#![cfg(feature = "rtl")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::HashMap;

use beeline_contract_device::{Accept, Device, Enables, ReadTag, SimTime, Want, Write};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_spec::regs::field::queue_control;
use beeline_spec::regs::{self, counter, queue};
use beeline_spec::{Header, Kind};

const CREDITS: u64 = 0x10_0000;

/// What came out: frames by the number of their queue and their filler, and the freed lines of each queue, told last.
#[derive(Debug, Default)]
struct Seen {
    frames: Vec<(u16, u8)>,
    freed: HashMap<u64, Vec<u64>>,
    answer: Option<u64>,
}

struct Bench {
    nic: RtlNic,
    config: RtlConfig,
    seen: Seen,
}

fn base(queue: u16) -> u32 {
    regs::QUEUE + u32::from(queue) * regs::QUEUE_STRIDE
}

impl Bench {
    fn new(config: RtlConfig) -> Self {
        let mut bench = Bench { nic: RtlNic::new(&config).unwrap(), config, seen: Seen::default() };
        bench.register(regs::CONTROL, 1);
        bench
    }

    fn take(&mut self) {
        while let Some(want) = self.nic.next() {
            match want {
                Want::Transmit { queue, frame } => self.seen.frames.push((queue.0, frame[0])),
                Want::DmaWrite { address, data } => {
                    let queue = (address - CREDITS) / 64;
                    let lines = u64::from_le_bytes(data.try_into().unwrap());
                    self.seen.freed.entry(queue).or_default().push(lines);
                }
                Want::ReadCompletion { value, .. } => self.seen.answer = Some(value),
                _ => {}
            }
        }
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) {
        for _ in 0..100 {
            let write = Write { offset_bytes, data, enables: Enables::All };
            if self.nic.write_arrived(write) == Accept::Taken {
                return;
            }
        }
        panic!("a write at {offset_bytes:#x} is refused for ever");
    }

    fn register(&mut self, offset: u32, value: u64) {
        self.write(offset.into(), &value.to_le_bytes());
    }

    fn start(&mut self, queue: u16, epoch: u8, class: u8, backpressure: bool) {
        self.register(base(queue) + queue::CREDIT_ADDRESS, CREDITS + 64 * u64::from(queue));
        self.register(base(queue) + queue::CREDIT_COALESCE, 1);
        let value = 1
            | 1 << queue_control::IFACE_LSB
            | u64::from(epoch) << queue_control::EPOCH_LSB
            | u64::from(class) << queue_control::CLASS_LSB
            | u64::from(backpressure) << queue_control::BACKPRESSURE_LSB;
        self.register(base(queue) + queue::CONTROL, value);
    }

    fn hole_timeout(&mut self, queue: u16, ns: u64) {
        self.register(base(queue) + queue::HOLE_TIMEOUT_NS, ns);
    }

    fn stop(&mut self, queue: u16) {
        self.register(base(queue) + queue::CONTROL, 0);
    }

    fn read(&mut self, offset: u32) -> u64 {
        self.nic.read_arrived(offset.into(), ReadTag(1));
        self.take();
        self.seen.answer.take().unwrap()
    }

    fn counter(&mut self, offset: u32) -> u64 {
        self.read(regs::COUNTERS + offset)
    }

    fn status(&mut self, queue: u16) -> u64 {
        self.read(base(queue) + queue::STATUS)
    }

    /// One message of one line at a position of a queue.
    fn message(&mut self, queue: u16, position: u64, epoch: u8) {
        let mut line = [epoch; 64];
        line[..8].copy_from_slice(&Header::new(Kind::Data, 56, epoch).encode().to_le_bytes());
        let (aperture, stride) = self.config.aperture();
        let line_index = position % u64::from(self.config.window_lines);
        self.write(aperture + u64::from(queue) * stride + line_index * 64, &line);
    }
}

#[test]
fn a_hole_from_before_a_reset_of_the_device_is_none_behind_it() {
    let config = RtlConfig { span_lines: 16, window_lines: 64, ..RtlConfig::default() };
    let mut bench = Bench::new(config);
    bench.hole_timeout(0, 1_000_000);
    bench.start(0, 7, 0, false);
    bench.message(0, 1, 7);
    bench.take();
    assert_eq!(bench.counter(counter::HOLES), 1);
    bench.register(regs::CONTROL, 2);
    bench.register(regs::CONTROL, 1);
    bench.hole_timeout(0, 1_000_000_000);
    bench.start(0, 8, 0, false);
    bench.nic.time_passed(SimTime::from_ns(2_000_000));
    bench.take();
    assert_eq!(bench.status(0) & 1, 1, "the time-out of the life before the reset");
    // A hole in the same place is a new one, whose time runs.
    bench.message(0, 1, 8);
    bench.take();
    let seen = (bench.status(0) & 1, bench.counter(counter::HOLES), bench.counter(counter::HOLE_TIMEOUTS));
    assert_eq!(seen, (1, 1, 0));
    bench.nic.time_passed(SimTime::from_ns(2_000_000_000));
    bench.take();
    assert_eq!((bench.status(0) & 1, bench.counter(counter::HOLE_TIMEOUTS)), (0, 1));
}

#[test]
fn frame_of_the_last_life_is_waited_for_after_another_queue_started() {
    let mut bench = Bench::new(RtlConfig { span_lines: 16, window_lines: 64, ..RtlConfig::default() });
    bench.start(0, 7, 0, false);
    // The queue that was started last is another one.
    bench.start(1, 9, 0, false);
    for position in 0..3 {
        bench.message(0, position, 7);
    }
    bench.take();
    assert_eq!(bench.seen.freed[&0].last(), Some(&3));
    bench.nic.wire_ready(false);
    bench.message(0, 3, 7);
    bench.take();
    bench.stop(0);
    bench.start(0, 8, 0, false);
    bench.take();
    bench.seen.freed.clear();
    bench.nic.wire_ready(true);
    bench.take();
    for position in 0..2 {
        bench.message(0, position, 8);
    }
    bench.take();
    let status = bench.status(0);
    let freed = bench.seen.freed[&0].iter().max();
    assert_eq!((status & 1, freed), (1, Some(&2)), "{:?} {status:#x}", bench.seen.frames);
    assert!(!bench.nic.has_failed(), "an assertion of the RTL failed");
}

#[test]
fn credits_of_the_pool_survive_any_number_of_messages_that_leave() {
    let window = 1024;
    let config = RtlConfig { span_lines: 16, window_lines: window, pool_lines: 4096, ..RtlConfig::default() };
    let mut bench = Bench::new(config);
    bench.start(0, 7, 0, false);
    bench.start(1, 9, 1, true);
    bench.nic.wire_ready(false);
    for position in 0..u64::from(window) {
        bench.message(0, position, 7);
    }
    bench.nic.wire_ready(true);
    for position in 0..500 {
        bench.message(1, position, 9);
    }
    bench.take();
    assert!(!bench.nic.has_failed(), "an assertion of the RTL failed");
    assert_eq!(bench.seen.freed[&1].last(), Some(&500));
    assert_eq!(bench.seen.freed[&0].last(), Some(&u64::from(window)));
}

#[test]
fn write_that_waits_for_the_pool_counts_as_one_refusal() {
    let config = RtlConfig { span_lines: 16, window_lines: 64, ..RtlConfig::default() };
    let mut bench = Bench::new(config.clone());
    bench.start(0, 7, 0, true);
    bench.nic.wire_ready(false);
    let offer = |bench: &mut Bench, position: u64| {
        let mut line = [7; 64];
        line[..8].copy_from_slice(&Header::new(Kind::Data, 56, 7).encode().to_le_bytes());
        let offset_bytes = bench.config.aperture().0 + position % u64::from(config.window_lines) * 64;
        bench.nic.write_arrived(Write { offset_bytes, data: &line, enables: Enables::All })
    };
    // One queue on back-pressure may fill the pool. The device holds the next write at its pins for hundreds of cycles.
    let mut taken = 0;
    while offer(&mut bench, taken) == Accept::Taken {
        taken += 1;
        assert!(taken < 1 << 16, "the pool is never full");
    }
    bench.nic.wire_ready(true);
    bench.take();
    let refused = bench.counter(counter::REFUSED_WRITES);
    assert!(
        (1..=2).contains(&refused),
        "one write waited, perhaps with the one before it: {refused} refusals"
    );
    assert!(taken >= u64::from(config.pool_lines) / 2, "{taken} lines were taken");
    assert!(!bench.nic.has_failed(), "an assertion of the RTL failed");
}
