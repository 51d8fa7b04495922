//! No allocation for a frame, on any transmit or receive queue, whatever its size; nor when a queue is full or empty.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::cell::RefCell;
use std::rc::Rc;

use beeline_driver::{
    CoherentConfig, DescriptorConfig, EnsoConfig, InlineConfig, KpioConfig, LongFrameConfig, MmioConfig, Mux,
    NiqConfig, Port, PortRange, Progress, QueueHalf, Receive, RxCoherentConfig, RxDescriptorConfig,
    RxEnsoConfig, RxEnsoMemberConfig, RxNiqConfig, RxRingConfig, Sent, Stopped, Taken, Transmit, TxKpioMux,
};
use beeline_spec::coherent::{self, LineHeader, LineKind};
use beeline_spec::entry::{EntryHeader, EntryKind, position_of};
use beeline_spec::pipe::{self, Notification};

#[path = "support/scripted.rs"]
mod scripted;
use scripted::Scripted;

fn open<H: QueueHalf>(port: &mut Port<Scripted>, half: Stopped<H>) -> H {
    let mut pending = port.open(half);
    for now in 0..1000 {
        port.poll(now).unwrap();
        pending = match port.finish(pending).unwrap() {
            Progress::Done(half) => return half,
            Progress::Pending(pending) => pending,
        };
    }
    panic!("an operation does not end");
}

/// The word by which the device gives room back, at the start of a queue's region.
type Head = Rc<RefCell<Vec<u64>>>;

/// Sends frames of all kinds of sizes, singly and in bursts, to a queue whose device finishes everything now and then.
fn exercise(tx: &mut dyn Transmit, finished: &mut dyn FnMut(), frames: &[&[u8]]) {
    for round in 0..50 {
        for frame in frames {
            if tx.try_send(frame).unwrap() == Sent::Full {
                finished();
            }
        }
        let taken = tx.try_send_burst(frames).unwrap().0;
        if taken < frames.len() || round % 7 == 0 {
            finished();
        }
        tx.progress().unwrap();
    }
}

/// Allocations inside `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

#[test]
fn sending_allocates_nothing() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let bytes = [0x5a; 1518];
    let frames: Vec<&[u8]> =
        [60, 14, 61, 64, 200, 256, 257, 1512, 63, 60, 60, 60].iter().map(|n| &bytes[..*n]).collect();
    let mmio = port.mmio(0, MmioConfig::default()).unwrap();
    let mut mmio = open(&mut port, mmio);
    let head: Head = link.0.borrow().regions[0].clone();
    let count = allocations(|| {
        for _ in 0..50 {
            for frame in &frames {
                let _ = mmio.try_send(frame).unwrap();
            }
            let _ = mmio.try_send_burst(&frames).unwrap();
            head.borrow_mut()[0] = mmio.writer().position().0;
            mmio.progress().unwrap();
        }
    });
    assert_eq!(count, 0, "mmio");

    // Neither interface says how far it is, so the device's answer is taken from what it was told.
    let kpio = port.kpio(1, KpioConfig::default()).unwrap();
    let mut kpio = open(&mut port, kpio);
    let head = link.0.borrow().regions[1].clone();
    let lines: u64 = frames.iter().map(|f| f.len().next_multiple_of(8) as u64 / 64 + 1).sum();
    let mut stored = 0;
    let count = allocations(|| {
        for _ in 0..50 {
            assert_eq!(kpio.try_send_burst(&frames), Ok(Taken(frames.len())));
            stored += lines;
            head.borrow_mut()[0] = stored;
            kpio.progress().unwrap();
            assert!(kpio.is_idle());
        }
    });
    assert_eq!(count, 0, "kpio");

    let descriptor =
        port.descriptor(2, DescriptorConfig { entries: 16, completion_frames: 4, ..Default::default() });
    let mut descriptor = open(&mut port, descriptor.unwrap());
    let (head, shared) = (link.0.borrow().regions[2].clone(), link.0.clone());
    let doorbell = beeline_spec::regs::DOORBELL + 2 * beeline_spec::regs::DOORBELL_STRIDE;
    // The doorbell's own table entry is made by the first ring.
    let _ = descriptor.try_send(frames[0]).unwrap();
    let mut finished = || head.borrow_mut()[0] = shared.borrow().rings[&doorbell].0;
    assert_eq!(allocations(|| exercise(&mut descriptor, &mut finished, &frames)), 0, "descriptor");

    let range = PortRange { first: 1, last: 2 };
    let mut mux = TxKpioMux::new(kpio, descriptor, Mux::ByPort(range));
    assert_eq!(allocations(|| exercise(&mut mux, &mut finished, &frames)), 0, "multiplexer");
}

#[test]
fn sending_by_entries_and_pipes_allocates_nothing() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let bytes = [0x5a; 1518];
    let frames: Vec<&[u8]> = [60, 14, 240, 241, 496, 497, 1518, 48].iter().map(|n| &bytes[..*n]).collect();
    let inline = port.inline(0, InlineConfig::default()).unwrap();
    let mut inline = open(&mut port, inline);
    let enso = port.enso(1, EnsoConfig::default()).unwrap();
    let mut enso = open(&mut port, enso);
    let niq = port.niq(2, NiqConfig::default()).unwrap();
    let mut niq = open(&mut port, niq);
    let heads: Vec<Head> = link.0.borrow().regions.clone();
    let mut round = || {
        for frame in &frames {
            assert_eq!(inline.try_send(frame), Ok(Sent::Sent));
            assert_eq!(enso.try_send(frame), Ok(Sent::Sent));
            assert_eq!(niq.try_send(frame), Ok(Sent::Sent));
        }
        assert_eq!(inline.try_send_burst(&frames), Ok(Taken(8)));
        assert_eq!(enso.try_send_burst(&frames), Ok(Taken(8)));
        assert_eq!(niq.try_send_burst(&frames), Ok(Taken(8)));
        // The device says that it is done, and that the lines of pushes are free.
        heads[0].borrow_mut()[0] = inline.posted();
        heads[0].borrow_mut()[8] = 4 * inline.pushes();
        heads[1].borrow_mut()[0] = enso.posted();
        heads[2].borrow_mut()[0] = niq.stored();
        for tx in [&mut inline as &mut dyn Transmit, &mut enso, &mut niq] {
            tx.progress().unwrap();
            assert!(tx.is_idle());
        }
    };
    // The doorbells' own table entries are made by the first rings.
    round();
    assert_eq!(allocations(|| (0..50).for_each(|_| round())), 0);
    assert!(inline.pushes() > 50);
}

#[test]
fn coherent_lines_allocate_nothing() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let (bytes, mut copy) = ([0x5a; 1518], [0; 1518]);
    let frames: Vec<&[u8]> = [60, 14, 120, 121, 128, 129, 1518, 48].iter().map(|n| &bytes[..*n]).collect();
    let tx = port.coherent(0, CoherentConfig { entries: 8, ..CoherentConfig::default() }).unwrap();
    let mut tx = open(&mut port, tx);
    let rx = port.rx_coherent(1, RxCoherentConfig { entries: 8, ..RxCoherentConfig::default() }).unwrap();
    let mut rx = open(&mut port, rx);
    let (sent, received) = (link.0.borrow().regions[0].clone(), link.0.borrow().regions[1].clone());
    let mut round = |count: u64| {
        for frame in &frames[..4] {
            assert_eq!(tx.try_send(frame), Ok(Sent::Sent));
        }
        assert_eq!(tx.try_send_burst(&frames), Ok(Taken(8)));
        // The device gives back whatever it has.
        sent.borrow_mut().iter_mut().step_by(16).take(8).for_each(|word| *word = coherent::given_back(*word));
        tx.progress().unwrap();
        assert!(tx.is_idle());
        let kind = LineKind::Whole(14 + count as u16 % 100);
        let header = LineHeader { kind, epoch: 0, position: coherent::position_of(count) };
        received.borrow_mut()[count as usize % 8 * 16] = header.encode();
        assert_eq!(rx.poll().unwrap().unwrap().copy_out(&mut copy), 14 + count as usize % 100);
        assert!(rx.poll().unwrap().is_none());
    };
    assert_eq!(allocations(|| (0..50).for_each(&mut round)), 0);
}

#[test]
fn receiving_from_a_pipe_allocates_nothing() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let half = port.rx_enso(0, RxEnsoConfig { lines: 64, notifications: 4, ..Default::default() }).unwrap();
    let mut rx = open(&mut port, half);
    let memory = link.0.borrow().regions[0].clone();
    let (mut bytes, mut tail, mut total) = ([0; 1518], 0u32, 0);
    let mut receive = |notifications: std::ops::Range<u64>| {
        for index in notifications {
            for length in [60u16, 14] {
                memory.borrow_mut()[8 + tail as usize % 64 * 8] = pipe::header(length);
                tail += pipe::lines_of(length.into());
            }
            let notification = Notification { tail_lines: tail, queue: 0, epoch: 0 };
            memory.borrow_mut()[index as usize % 4] = notification.encode(index, 4);
            while let Some(mut frame) = rx.poll().unwrap() {
                total += frame.copy_out(&mut bytes);
            }
        }
    };
    receive(0..8);
    assert_eq!(allocations(|| receive(8..200)), 0);
    assert_eq!(total, 200 * (60 + 14));
}

#[test]
fn receiving_from_many_pipes_allocates_nothing() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let half = port.rx_enso(0, RxEnsoConfig { lines: 64, notifications: 4, ..Default::default() }).unwrap();
    let owner = open(&mut port, half);
    let mut rx = port.enso_receiver(owner);
    for queue in [1, 2] {
        let config = RxEnsoMemberConfig { lines: 64, ..RxEnsoMemberConfig::default() };
        let half = port.rx_enso_member(queue, 0, config).unwrap();
        rx.join(open(&mut port, half)).unwrap();
    }
    let regions = link.0.borrow().regions.clone();
    let (mut bytes, mut tails, mut total) = ([0; 1518], [0u32; 3], 0);
    let mut receive = |notifications: std::ops::Range<u64>| {
        for index in notifications {
            let queue = index as usize % 3;
            let (at, tail) = (if queue == 0 { 8 } else { 0 }, &mut tails[queue]);
            regions[queue].borrow_mut()[at + *tail as usize % 64 * 8] = pipe::header(60);
            *tail += pipe::lines_of(60);
            let notification =
                Notification { tail_lines: *tail, queue: queue as u16, epoch: u8::from(queue != 0) };
            regions[0].borrow_mut()[index as usize % 4] = notification.encode(index, 4);
            while let Some((from, mut frame)) = rx.poll_pipes().unwrap() {
                assert_eq!(from as usize, queue);
                total += frame.copy_out(&mut bytes);
            }
        }
    };
    receive(0..12);
    assert_eq!(allocations(|| receive(12..300)), 0);
    assert_eq!(total, 300 * 60);
}

#[test]
fn receiving_by_reads_allocates_nothing() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let long = LongFrameConfig::Ring(RxRingConfig { lines: 64, ..RxRingConfig::default() });
    let half = port.rx_niq(0, RxNiqConfig { long, ..RxNiqConfig::default() }).unwrap();
    let mut rx = open(&mut port, half);
    let (ring, window) = (link.0.borrow().regions[0].clone(), link.0.borrow().readable[&0].clone());
    let (mut bytes, mut line, mut total) = ([0; 1518], 0usize, 0);
    let mut receive = |indices: std::ops::Range<u64>| {
        for index in indices {
            let (kind, length_bytes) =
                [(EntryKind::Whole, 40), (EntryKind::Address, 500), (EntryKind::Whole, 112)]
                    [index as usize % 3];
            let position = position_of(index);
            let head = EntryHeader { length_bytes, kind, wants_irq: false, epoch: 1, position };
            window.borrow_mut()[index as usize % 32 * 16] = head.encode();
            if kind == EntryKind::Address {
                ring.borrow_mut()[line % 64 * 8] = u64::from(length_bytes) | 1 << 32;
                line += 8;
            }
            // The read that was under way finds the entry, or is given up and asked again.
            let mut frame = loop {
                if let Some(frame) = rx.poll().unwrap() {
                    break frame;
                }
            };
            total += frame.copy_out(&mut bytes);
            drop(frame);
            window.borrow_mut()[index as usize % 32 * 16] = 0;
            assert!(rx.poll().unwrap().is_none());
        }
    };
    receive(0..6);
    assert_eq!(allocations(|| receive(6..300)), 0);
    assert_eq!(total, 100 * (40 + 500 + 112));
}

#[test]
fn receiving_allocates_nothing() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let ring = port.rx_ring(0, RxRingConfig { lines: 64, ..RxRingConfig::default() }).unwrap();
    let mut ring = open(&mut port, ring);
    let config = RxDescriptorConfig { entries: 8, buffer_bytes: 1536, ..RxDescriptorConfig::default() };
    let lent = port.rx_descriptor(1, config).unwrap();
    let mut lent = open(&mut port, lent);
    let (ring_memory, lent_memory) = (link.0.borrow().regions[0].clone(), link.0.borrow().regions[1].clone());
    let mut bytes = [0; 1518];
    let (mut line, mut total) = (0usize, 0);
    let mut receive = |indices: std::ops::Range<usize>| {
        for index in indices {
            let length = [60usize, 64, 1000, 14][index % 4];
            ring_memory.borrow_mut()[line % 64 * 8] = length as u64 | 1 << 32;
            line += (length + 8).div_ceil(64);
            let lap = 1 - (index as u64 / 8) % 2;
            lent_memory.borrow_mut()[16 + index % 8] = length as u64 | lap << 32;
            total += ring.poll().unwrap().unwrap().copy_out(&mut bytes);
            total += lent.poll().unwrap().unwrap().copy_out(&mut bytes);
            assert!(ring.poll().unwrap().is_none() && lent.poll().unwrap().is_none());
        }
    };
    // The first rings make the fake doorbells' table entries.
    receive(0..8);
    assert_eq!(allocations(|| receive(8..200)), 0);
    assert_eq!(total, 2 * 50 * (60 + 64 + 1000 + 14));
}
