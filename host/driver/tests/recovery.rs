//! Recovery over real shared memory: a store is lost, the NIC quarantines the queue, and after recovery the window is
//! blank again, the epoch new, and every frame arrives; and so is a queue that only receives. Both halves on one thread,
//! so every run is the same.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use beeline_contract_device::{Accept, QueueId, SimTime};
use beeline_contract_link::Link;
use beeline_contract_memory::{Line, StorePort, forward_store_port, store_port_default};
use beeline_driver::{
    FailureCause, MmioConfig, Pending, Port, PortConfig, PortState, Progress, QueueHalf, Receive,
    RxEnsoConfig, Sent, Transmit, TxQueueConfig,
};
use beeline_link_shm::{DevicePort, PortConfig as DeviceConfig, ShmLink, ShmOptions, Wire, Wired};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::regs::field::queue_control as c;
use beeline_spec::regs::{self, queue as r};

/// Keeps what reaches the wire.
#[derive(Default)]
struct Wires(Vec<Vec<u8>>);

impl Wire for Wires {
    fn transmit(&mut self, _queue: QueueId, frame: &[u8]) -> Wired {
        self.0.push(frame.to_vec());
        Wired::Taken
    }
}

/// Loses the line store of this number, as a sender that dies does.
struct Lossy<P> {
    inner: P,
    stores_left: u32,
}

impl<P: StorePort> StorePort for Lossy<P> {
    fn store_line(&mut self, line: u32, words: &Line) {
        self.stores_left = self.stores_left.wrapping_sub(1);
        if self.stores_left != 0 {
            self.inner.store_line(line, words);
        }
    }
    store_port_default! { composed }
    forward_store_port! { |this| this.inner; lines, store_word, hints, fence, wake_receiver, progress }
}

struct Rig {
    port: Port<ShmLink>,
    device: DevicePort<Nic>,
    wire: Wires,
    now_ns: u64,
}

impl Rig {
    fn new() -> Self {
        let config =
            NicConfig { blank: true, queues: 2, window_lines: 64, span_lines: 32, ..NicConfig::default() };
        let (link, device) =
            ShmLink::pair(Nic::new(config).unwrap(), &DeviceConfig::default(), &ShmOptions::default())
                .unwrap();
        let port = Port::new(link, PortConfig::default());
        let mut rig = Rig { port, device, wire: Wires::default(), now_ns: 0 };
        while rig.port.poll(rig.now_ns).unwrap() != PortState::Ready {
            rig.turn();
        }
        rig
    }

    fn turn(&mut self) {
        self.now_ns += 100;
        self.device.time_passed(SimTime::from_ns(self.now_ns));
        self.device.poll().unwrap();
        self.device.drive(&mut self.wire);
    }

    fn finish<T>(&mut self, mut pending: Pending<T>) -> T {
        for _ in 0..100_000 {
            self.turn();
            self.port.poll(self.now_ns).unwrap();
            match self.port.finish(pending).unwrap() {
                Progress::Done(value) => return value,
                Progress::Pending(again) => pending = again,
            }
        }
        panic!("an operation does not end");
    }

    /// Sends frames of all sizes and checks what reaches the wire.
    fn send(&mut self, tx: &mut impl Transmit, salt: usize) {
        let frames: Vec<Vec<u8>> = (14..400)
            .step_by(3)
            .map(|bytes| (0..bytes).map(|i| (i * 5 + bytes + salt) as u8).collect())
            .collect();
        self.wire.0.clear();
        for frame in &frames {
            for _ in 0..1000 {
                if tx.try_send(frame).unwrap() == Sent::Sent {
                    break;
                }
                self.turn();
            }
        }
        for _ in 0..100 {
            self.turn();
        }
        assert_eq!(self.wire.0.len(), frames.len());
        assert!(self.wire.0 == frames, "frames are not what was sent");
    }
}

#[test]
fn a_queue_that_lost_a_store_is_recovered_over_shared_memory() {
    let mut rig = Rig::new();
    let queue = TxQueueConfig { hole_timeout_ns: 1_000, ..TxQueueConfig::default() };
    let config = MmioConfig { random: 77, queue, ..MmioConfig::default() };
    let half = rig.port.mmio_behind(1, config, |inner, _| Lossy { inner, stores_left: 5 }).unwrap();
    let pending = rig.port.open(half);
    let mut tx = rig.finish(pending);
    for life in 1..4u8 {
        for _ in 0..10 {
            let _ = tx.try_send(&[life; 300]).unwrap();
        }
        for _ in 0..100 {
            rig.turn();
        }
        let pending = rig.port.queue_status(tx.queue());
        let status = rig.finish(pending);
        if life == 1 {
            assert!(status.quarantined, "{status}");
            assert_eq!(status.cause, FailureCause::HoleTimeout);
        }
        assert_eq!(status.epoch, life);
        // Whatever the former life left in the window and in the device is gone.
        let pending = rig.port.recover(tx);
        tx = rig.finish(pending);
        rig.send(&mut tx, usize::from(life));
    }
    assert_eq!(rig.device.device().counters().bad_headers, 0);
}

#[test]
fn a_queue_that_only_receives_is_recovered_over_shared_memory() {
    let mut rig = Rig::new();
    let half = rig.port.rx_enso(1, RxEnsoConfig::default()).unwrap();
    let pending = rig.port.open(half);
    let mut rx = rig.finish(pending);
    let mut bytes = Vec::new();
    for life in 1..5u8 {
        for number in 0..3 {
            assert_eq!(rig.device.frame_arrived(&[life ^ number; 600]), Accept::Taken);
        }
        rig.turn();
        // The others stay where they are, and are of the former life from here on.
        rx.poll().unwrap().expect("a frame came").copy_to(&mut bytes);
        assert_eq!(bytes, [life; 600]);
        // The device finds three lines when the queue starts again, which are no pipe.
        let on = 1 << c::ENABLE_LSB | u64::from(life) << c::EPOCH_LSB;
        for (register, value) in [(r::CONTROL, 0), (r::RX_RING_ENTRIES, 3), (r::CONTROL, on)] {
            let offset = regs::QUEUE + regs::QUEUE_STRIDE + register;
            while !rig.port.link().write_register(offset, value).unwrap() {
                rig.turn();
            }
        }
        let pending = rig.port.queue_status(1);
        let status = rig.finish(pending);
        assert_eq!((status.quarantined, status.epoch), (true, life), "{status}");
        let pending = rig.port.recover(rx);
        rx = rig.finish(pending);
        assert!(rx.poll().unwrap().is_none(), "a frame of life {life}");
    }
}
