//! Both halves of a port in one process: the driver's code, real memory, the behavioural NIC, frames looped back.
//!
//! One thread plays both sides, so every run is the same; the processes are in `tests/` at the root.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use beeline_contract_device::{QueueId, SimTime};
use beeline_contract_link::{DmaMemory, Doorbell, Link, LinkError};
use beeline_contract_memory::StorePort;
use beeline_driver::{
    CoherentConfig, DescriptorConfig, FailureCause, KpioConfig, MmioConfig, Pending, Port,
    PortConfig as DriverConfig, PortState, Progress, Receive, RxCoherentConfig, RxDescriptorConfig,
    RxRingConfig, Sent, Transmit,
};
use beeline_link_shm::{DevicePort, PortConfig, PortError, ShmLink, ShmOptions, Wire, Wired};
use beeline_mmio::StoreKernel;
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::regs;

/// A wire that gives every frame back.
struct Back;

impl Wire for Back {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        Wired::Back
    }
}

fn nic() -> Nic {
    Nic::new(NicConfig { blank: true, queues: 4, window_lines: 1024, ..NicConfig::default() }).unwrap()
}

struct Rig {
    port: Port<ShmLink>,
    device: DevicePort<Nic>,
    now_ns: u64,
}

impl Rig {
    fn new(options: &ShmOptions, config: &PortConfig) -> Self {
        let (link, device) = ShmLink::pair(nic(), config, options).unwrap();
        let mut rig = Rig { port: Port::new(link, DriverConfig::default()), device, now_ns: 0 };
        while rig.port.poll(rig.now_ns).unwrap() != PortState::Ready {
            rig.turn();
        }
        rig
    }

    fn turn(&mut self) {
        self.now_ns += 100;
        assert!(self.now_ns < 10_000_000_000, "nothing happens any more");
        self.device.time_passed(SimTime::from_ns(self.now_ns));
        self.device.poll().unwrap();
        self.device.drive(&mut Back);
    }

    fn finish<T>(&mut self, mut pending: Pending<T>) -> T {
        loop {
            self.turn();
            self.port.poll(self.now_ns).unwrap();
            match self.port.finish(pending).unwrap() {
                Progress::Done(value) => return value,
                Progress::Pending(more) => pending = more,
            }
        }
    }
}

fn frames(multiple: usize) -> Vec<Vec<u8>> {
    let sizes = [14usize, 16, 55, 56, 57, 60, 64, 100, 120, 121, 1500, 1514, 4096, 9000];
    let sized = |(index, size): (usize, &usize)| {
        let bytes = size.next_multiple_of(multiple);
        (0..bytes).map(|at| (at * 7 + index * 31) as u8).collect()
    };
    sizes.iter().cycle().take(200).enumerate().map(sized).collect()
}

/// Sends every frame and receives it again, byte for byte, in order.
fn exchange<T: Transmit, R: Receive>(rig: &mut Rig, tx: &mut T, rx: &mut R) {
    let frames = frames(tx.declared().frame_multiple_bytes());
    let (mut sent, mut received, mut got) = (0, 0, Vec::new());
    while received < frames.len() {
        if sent < frames.len() && tx.try_send(&frames[sent]).unwrap() == Sent::Sent {
            sent += 1;
        }
        tx.progress().unwrap();
        rig.turn();
        while let Some(mut frame) = rx.poll().unwrap() {
            frame.copy_to(&mut got);
            assert_eq!(got, frames[received], "frame {received}");
            received += 1;
        }
    }
}

#[test]
fn every_interface_brings_every_frame_back() {
    for kernel in StoreKernel::available() {
        let options = ShmOptions { kernel, loop_back: true, ..ShmOptions::default() };
        let mut rig = Rig::new(&options, &PortConfig::default());
        assert!(rig.device.is_loop_back());
        rig.device.set_lossless(true);
        let ring = rig.port.rx_ring(3, RxRingConfig::default()).unwrap();
        let pending = rig.port.open(ring);
        let mut rx = rig.finish(pending);
        assert!(rig.device.receives());

        let mmio = rig.port.mmio(0, MmioConfig { random: 99, ..MmioConfig::default() }).unwrap();
        let pending = rig.port.open(mmio);
        let mut mmio = rig.finish(pending);
        exchange(&mut rig, &mut mmio, &mut rx);

        let kpio = rig.port.kpio(1, KpioConfig { random: 7, ..KpioConfig::default() }).unwrap();
        let pending = rig.port.open(kpio);
        let mut kpio = rig.finish(pending);
        exchange(&mut rig, &mut kpio, &mut rx);

        let descriptor = rig.port.descriptor(2, DescriptorConfig::default()).unwrap();
        let pending = rig.port.open(descriptor);
        let mut descriptor = rig.finish(pending);
        exchange(&mut rig, &mut descriptor, &mut rx);

        let link = *rig.device.counters();
        let device = rig.device.device().counters();
        assert_eq!(
            link.window_writes(),
            device.tx_writes,
            "every store reached the device as a write arrived: {kernel:?}"
        );
        assert_eq!(
            (link.bad_addresses, link.returned_drops, device.clobbers, device.bad_headers),
            (0, 0, 0, 0)
        );
        assert_eq!(device.tx_frames, 600);
    }
}

#[test]
fn receive_descriptors_work_too() {
    let mut rig = Rig::new(&ShmOptions::default(), &PortConfig::default());
    rig.device.set_lossless(true);
    let rx = rig.port.rx_descriptor(1, RxDescriptorConfig::default()).unwrap();
    let pending = rig.port.open(rx);
    let mut rx = rig.finish(pending);
    let tx = rig.port.mmio(0, MmioConfig { random: 3, ..MmioConfig::default() }).unwrap();
    let pending = rig.port.open(tx);
    let mut tx = rig.finish(pending);
    exchange(&mut rig, &mut tx, &mut rx);
}

#[test]
fn watched_lines_bring_every_frame_back_and_nothing_else_does() {
    let mut rig = Rig::new(&ShmOptions::default(), &PortConfig::default());
    rig.device.set_lossless(true);
    let rx = rig.port.rx_coherent(1, RxCoherentConfig { entries: 8, buffers: 3, ..Default::default() });
    let pending = rig.port.open(rx.unwrap());
    let mut rx = rig.finish(pending);
    assert!(rig.device.receives());
    let half = rig.port.coherent(0, CoherentConfig { entries: 8, ..CoherentConfig::default() }).unwrap();
    let pending = rig.port.open(half);
    let mut tx = rig.finish(pending);
    exchange(&mut rig, &mut tx, &mut rx);
    let (link, device) = (*rig.device.counters(), rig.device.device().counters());
    assert_eq!((link.window_writes(), link.doorbells, link.bad_addresses), (0, 0, 0));
    assert_eq!((device.tx_frames, device.entries, device.completions), (200, 200, 200));
    assert_eq!((device.bad_headers, device.dma_errors, device.rx_no_space), (0, 0, 0));
    // A next life, whose watches are not taken for the last one's.
    let pending = rig.port.close(tx);
    let stopped = rig.finish(pending);
    let pending = rig.port.open(stopped);
    let mut tx = rig.finish(pending);
    exchange(&mut rig, &mut tx, &mut rx);
    assert_eq!(rig.device.device().counters().tx_frames, 400);
}

#[test]
fn watched_line_outside_all_memory_fails_its_queue_alone() {
    let mut rig = Rig::new(&ShmOptions::default(), &PortConfig::default());
    let half = rig.port.coherent(1, CoherentConfig::default()).unwrap();
    let pending = rig.port.open(half);
    let mut tx = rig.finish(pending);
    let control = 1 | u64::from(beeline_spec::Interface::Coherent.code()) << 4;
    for (register, value) in [
        (regs::queue::TX_RING_ADDRESS, 77 << 32),
        (regs::queue::TX_RING_ENTRIES, 64),
        (regs::queue::CONTROL, control),
    ] {
        assert_eq!(rig.port.link().write_register(regs::QUEUE + register, value), Ok(true));
        rig.turn();
    }
    rig.turn();
    for (queue, is_quarantined, cause) in [(0, true, FailureCause::DmaError), (1, false, FailureCause::None)]
    {
        let pending = rig.port.queue_status(queue);
        let status = rig.finish(pending);
        assert_eq!((status.quarantined, status.cause), (is_quarantined, cause), "queue {queue}");
    }
    assert_eq!(tx.try_send(&[7; 60]), Ok(Sent::Sent));
    rig.turn();
    rig.turn();
    assert_eq!((tx.progress(), tx.is_idle()), (Ok(()), true));
}

#[test]
fn a_queue_closed_and_opened_again_starts_blank() {
    let mut rig = Rig::new(&ShmOptions::default(), &PortConfig::default());
    rig.device.set_lossless(true);
    let ring = rig.port.rx_ring(1, RxRingConfig::default()).unwrap();
    let pending = rig.port.open(ring);
    let mut rx = rig.finish(pending);
    let tx = rig.port.mmio(0, MmioConfig { random: 5, ..MmioConfig::default() }).unwrap();
    let pending = rig.port.open(tx);
    let mut tx = rig.finish(pending);
    for _ in 0..5 {
        exchange(&mut rig, &mut tx, &mut rx);
        // A message torn by closing: stored, and never looked at as one of the next life.
        let _ = tx.try_send(&[0xaa; 700]).unwrap();
        let pending = rig.port.close(tx);
        let stopped = rig.finish(pending);
        while rx.poll().unwrap().is_some() {}
        let pending = rig.port.open(stopped);
        tx = rig.finish(pending);
    }
    assert_eq!(rig.device.device().counters().bad_headers, 0);
}

#[test]
fn one_sender_a_window_and_dropped_memory_is_lent_again() {
    let (mut link, _device) =
        ShmLink::pair(nic(), &PortConfig { max_regions: 3, ..PortConfig::default() }, &ShmOptions::default())
            .unwrap();
    let first = link.window(2).unwrap();
    assert_eq!(first.lines(), 1024);
    assert_eq!(link.window(2).unwrap_err(), LinkError::WindowTaken(2));
    assert_eq!(link.window(4).unwrap_err(), LinkError::NoSuchQueue(4, 4));
    assert_eq!(link.window_reads(2).unwrap_err(), LinkError::NotExpressible);
    drop(first);
    let _again = link.window(2).unwrap();
    assert!(link.doorbell(regs::DOORBELL + 4 * regs::DOORBELL_STRIDE).is_err());
    assert!(link.doorbell(regs::MAGIC).is_err());
    for _ in 0..5 {
        let kept = [link.memory(1).unwrap(), link.memory(5000).unwrap(), link.memory(64).unwrap()];
        let LinkError::Refused { what: "device-visible memory", reason } = link.memory(64).unwrap_err()
        else {
            panic!("another error")
        };
        assert!(reason.contains("4096 more bytes") && reason.contains("3 regions"), "{reason}");
        let addresses: Vec<u64> = kept.iter().map(|memory| memory.address()).collect();
        assert!(addresses.iter().all(|address| *address != 0 && address % 64 == 0), "{addresses:x?}");
        assert_eq!(kept[1].bytes(), 8192);
    }
}

#[test]
fn reads_under_way_are_bounded_and_answered_by_tag() {
    let (mut link, mut device) =
        ShmLink::pair(nic(), &PortConfig::default(), &ShmOptions::default()).unwrap();
    let mut reads = Vec::new();
    while let Some(read) =
        link.start_read(if reads.len() % 2 == 0 { regs::MAGIC } else { regs::VERSION }).unwrap()
    {
        reads.push(read);
        assert!(reads.len() <= 64);
    }
    assert_eq!(reads.len(), 64);
    assert!(reads.iter().all(|read| link.poll_read(*read).unwrap().is_none()));
    assert!(!link.write_register(regs::MUX_PORTS, 5).unwrap(), "the channel is full");
    for _ in 0..20 {
        device.poll().unwrap();
        device.drive(&mut Back);
    }
    for (index, read) in reads.iter().enumerate() {
        let expected = if index % 2 == 0 { u64::from_le_bytes(*b"BEELINE1") } else { 1 };
        assert_eq!(link.poll_read(*read).unwrap(), Some(expected));
        assert_eq!(link.poll_read(*read).unwrap(), None, "once");
    }
    // Reads whose answers nobody fetches do not use up the entries.
    for _ in 0..300 {
        if link.start_read(regs::MAGIC).unwrap().is_none() {
            device.poll().unwrap();
            device.drive(&mut Back);
        }
    }
    while link.start_read(regs::MAGIC).unwrap().is_none() {
        device.poll().unwrap();
        device.drive(&mut Back);
    }
}

#[test]
fn reads_that_found_the_channel_full_use_up_no_entries() {
    let (mut link, mut device) =
        ShmLink::pair(nic(), &PortConfig::default(), &ShmOptions::default()).unwrap();
    let turns = |device: &mut DevicePort<Nic>| {
        for _ in 0..20 {
            device.poll().unwrap();
            device.drive(&mut Back);
        }
    };
    // Every entry is answered and nobody fetches the answer.
    while link.start_read(regs::MAGIC).unwrap().is_some() {}
    turns(&mut device);
    while link.write_register(regs::MUX_PORTS, 5).unwrap() {}
    for _ in 0..100 {
        assert!(link.start_read(regs::MAGIC).unwrap().is_none(), "the channel is full");
    }
    turns(&mut device);
    let reads = (0..64).map_while(|_| link.start_read(regs::MAGIC).unwrap()).count();
    assert_eq!(reads, 64, "entries are lost");
}

#[test]
fn memory_whose_release_is_refused_is_released_later() {
    let config = PortConfig { max_regions: 3, ..PortConfig::default() };
    let (mut link, mut device) = ShmLink::pair(nic(), &config, &ShmOptions::default()).unwrap();
    let lent = [link.memory(64).unwrap(), link.memory(64).unwrap(), link.memory(64).unwrap()];
    // Until the device's side has taken over what was opened, only so much more can be.
    let doorbell = regs::DOORBELL + regs::doorbell::TX_TAIL;
    let refused =
        std::iter::repeat_with(|| link.doorbell(doorbell)).take(10_000).find_map(Result::err).unwrap();
    assert!(
        matches!(&refused, LinkError::Refused { what: "a doorbell", reason } if reason.contains("not yet taken over"))
    );
    drop(lent);
    for _ in 0..3 {
        let LinkError::Refused { what, reason } = link.memory(64).unwrap_err() else {
            panic!("another error")
        };
        assert!(what == "the release of memory" && reason.contains("not yet taken over"), "{what}: {reason}");
        assert!(!link.is_device_gone());
    }
    device.apply_updates();
    let again = [link.memory(64).unwrap(), link.memory(64).unwrap(), link.memory(64).unwrap()];
    assert_eq!(again.len(), 3, "all three were released");
}

#[test]
fn a_doorbell_that_rings_the_same_value_in_a_new_life_is_heard() {
    let mut rig = Rig::new(&ShmOptions::default(), &PortConfig::default());
    let offset = regs::DOORBELL + 2 * regs::DOORBELL_STRIDE + regs::doorbell::TX_TAIL;
    let mut doorbell = rig.port.link().doorbell(offset).unwrap();
    let control = regs::QUEUE + 2 * regs::QUEUE_STRIDE + regs::queue::CONTROL;
    for life in 1..4 {
        assert!(rig.port.link().write_register(control, 1).unwrap());
        rig.turn();
        doorbell.ring(5);
        rig.turn();
        assert_eq!(rig.device.counters().doorbells, life);
        assert!(rig.port.link().write_register(control, 0).unwrap());
        rig.turn();
    }
}

#[test]
fn a_device_switched_off_and_on_starts_its_queues_again() {
    let mut rig = Rig::new(&ShmOptions::default(), &PortConfig::default());
    rig.device.set_lossless(true);
    let ring = rig.port.rx_ring(1, RxRingConfig::default()).unwrap();
    let pending = rig.port.open(ring);
    let mut rx = rig.finish(pending);
    let tx = rig.port.mmio(0, MmioConfig { random: 5, ..MmioConfig::default() }).unwrap();
    let pending = rig.port.open(tx);
    let mut tx = rig.finish(pending);
    exchange(&mut rig, &mut tx, &mut rx);
    assert!(rig.device.lines_taken(0).unwrap() > 0 && rig.device.receives());
    assert!(rig.port.link().write_register(regs::CONTROL, 0).unwrap());
    rig.turn();
    assert!(!rig.device.receives());
    assert!(rig.port.link().write_register(regs::CONTROL, 1).unwrap());
    rig.turn();
    assert_eq!((rig.device.lines_taken(0), rig.device.lines_taken(3)), (Some(0), None));
    assert!(rig.device.receives() && rig.device.torn_queues().next().is_none());
}

#[test]
fn a_closed_port_is_gone_for_its_host() {
    let (mut link, mut device) =
        ShmLink::pair(nic(), &PortConfig::default(), &ShmOptions::default()).unwrap();
    assert!(!link.is_device_gone());
    device.close(Some(PortError::BadRequest { access: 0, word: 0 }));
    assert!(link.is_device_gone());
    assert_eq!(link.window(0).unwrap_err(), LinkError::DeviceGone);
    assert_eq!(link.write_register(regs::CONTROL, 1), Err(LinkError::DeviceGone));
}
