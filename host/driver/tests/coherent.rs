//! Coherent lines against a device that is played by hand: what a hostile one writes into them, what the host passes and
//! when it takes back, and that a next life takes nothing of the last one's for its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "support/scripted.rs"]
mod scripted;

use std::cell::RefCell;
use std::rc::Rc;

use beeline_contract_link::Link;
use beeline_driver::{
    CoherentConfig, Pending, Port, PortError, Progress, QueueHalf, Receive, RxCoherentConfig, RxError, Sent,
    Stopped, Taken, Transmit, TxError,
};
use beeline_spec::coherent::{LineBuffer, LineHeader, LineKind, given_back, is_passed};
use beeline_spec::{Interface, regs};
use proptest::prelude::*;
use scripted::{Scripted, queue_register};

type Memory = Rc<RefCell<Vec<u64>>>;

fn done<T>(port: &mut Port<Scripted>, mut pending: Pending<T>) -> T {
    for now_ns in 0..10_000 {
        port.poll(now_ns).unwrap();
        match port.finish(pending).unwrap() {
            Progress::Done(value) => return value,
            Progress::Pending(again) => pending = again,
        }
    }
    panic!("an operation does not end");
}

fn open<H: QueueHalf>(port: &mut Port<Scripted>, half: Stopped<H>) -> H {
    // The device has the queue active, with the epoch that was asked for.
    let pending = port.open(half);
    done(port, pending)
}

/// A device with one transmit queue, and its memory.
fn sender(config: CoherentConfig) -> (Scripted, impl Transmit + QueueHalf, Memory) {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let half = port.coherent(0, config).unwrap();
    let tx = open(&mut port, half);
    let memory = link.0.borrow().regions[0].clone();
    (link, tx, memory)
}

/// A device with one receive queue, and its memory.
fn receiver(config: RxCoherentConfig) -> (Scripted, impl Receive + QueueHalf, Memory) {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let half = port.rx_coherent(0, config).unwrap();
    let rx = open(&mut port, half);
    let memory = link.0.borrow().regions[0].clone();
    (link, rx, memory)
}

const SMALL: CoherentConfig = CoherentConfig {
    queue: beeline_driver::TxQueueConfig {
        epoch: 1,
        class: 0,
        weight: 1,
        backpressure: false,
        checksums: false,
        hole_timeout_ns: 0,
    },
    entries: 4,
    entry_lines_log2: 0,
    short_buffers: 8,
    long_buffers: 2,
};

const RX_SMALL: RxCoherentConfig = RxCoherentConfig {
    epoch: 1,
    entries: 4,
    entry_lines_log2: 0,
    buffers: 2,
    interrupts: beeline_driver::InterruptModeration { frames: 1, time_ns: 0 },
};

#[test]
fn a_device_without_the_interface_is_refused_by_name() {
    let link = Scripted::sound(64);
    {
        let mut shared = link.0.borrow_mut();
        let name = beeline_spec::caps::header(beeline_spec::formats::capability::INTERFACES, 4);
        let at = (0..40)
            .map(|i| regs::CAPABILITIES + 8 * i)
            .find(|offset| shared.registers.get(offset).copied() == Some(name));
        shared.registers.insert(at.expect("the list names it") + 8, 0b0111_1110);
    }
    let mut port = link.ready();
    let refused = PortError::NoInterface { interface: Interface::Coherent, mask: 0b0111_1110 };
    assert_eq!(port.coherent(0, SMALL).map(drop), Err(refused.clone()));
    assert_eq!(port.rx_coherent(0, RX_SMALL).map(drop), Err(refused));
}

#[test]
fn settings_out_of_range_are_refused_with_the_number() {
    let mut port = Scripted::sound(64).ready();
    for (bad, what, value) in [
        (CoherentConfig { entries: 48, ..SMALL }, "entries of the transmit ring", 48),
        (CoherentConfig { entry_lines_log2: 3, ..SMALL }, "power of two of an entry's lines", 3),
        (CoherentConfig { short_buffers: 1 << 20, ..SMALL }, "short buffers", 1 << 20),
        (CoherentConfig { long_buffers: 0, ..SMALL }, "long buffers", 0),
    ] {
        let error = port.coherent(0, bad).map(drop).unwrap_err();
        assert!(
            matches!(error, PortError::Config { what: w, value: v, .. } if (w, v) == (what, value)),
            "{error}"
        );
    }
    for (bad, what) in [
        (RxCoherentConfig { entries: 1, ..RX_SMALL }, "entries of the receive ring"),
        (RxCoherentConfig { buffers: 0, ..RX_SMALL }, "receive buffers"),
    ] {
        let error = port.rx_coherent(0, bad).map(drop).unwrap_err();
        assert!(matches!(error, PortError::Config { what: w, .. } if w == what), "{error}");
    }
}

#[test]
fn the_header_is_all_that_says_so_and_a_burst_needs_one() {
    let (link, mut tx, memory) = sender(SMALL);
    assert_eq!(tx.try_send(&[7; 56]), Ok(Sent::Sent));
    assert_eq!(tx.try_send_burst(&[&[1; 60], &[2; 128], &[3; 129]]), Ok(Taken(3)));
    let memory = memory.borrow();
    let whole = LineHeader::decode(memory[0], 1, 0, 64).unwrap();
    assert_eq!((whole.kind, memory[1]), (LineKind::Whole(56), 0x0707_0707_0707_0707));
    assert_eq!(LineHeader::decode(memory[8], 1, 1, 64).unwrap().kind, LineKind::Buffers(3));
    for (index, bytes) in [60, 128, 129].into_iter().enumerate() {
        let named = LineBuffer::decode(memory[9 + index]);
        assert_eq!(named.length_bytes, bytes);
    }
    assert_eq!(link.0.borrow().rings.len(), 0, "no doorbell");
}

#[test]
fn entries_and_buffers_come_back_and_the_last_one_back_is_used_first() {
    let (_link, mut tx, memory) = sender(SMALL);
    let bytes = [5; 100];
    let mut used = std::collections::BTreeSet::new();
    for count in 0..40usize {
        let slot = count % 4 * 8;
        assert_eq!(tx.try_send(&bytes), Ok(Sent::Sent), "entry {count}");
        let mut memory = memory.borrow_mut();
        used.insert(LineBuffer::decode(memory[slot + 1]).address);
        memory[slot] = given_back(memory[slot]);
    }
    assert_eq!(used.len(), 1, "one buffer serves a device that is done with a frame before the next");
    tx.progress().unwrap();
    assert!(tx.is_idle());
    // Now it keeps them: entries are full before buffers are.
    for _ in 0..4 {
        assert_eq!(tx.try_send(&bytes), Ok(Sent::Sent));
    }
    assert_eq!((tx.try_send(&bytes), tx.is_idle()), (Ok(Sent::Full), false));
    assert_eq!(tx.try_send_burst(&[&bytes, &bytes]), Ok(Taken(0)));
}

#[test]
fn long_frames_stop_when_their_buffers_are_out() {
    let (_link, mut tx, memory) = sender(CoherentConfig { short_buffers: 0, ..SMALL });
    let bytes = [5; 1518];
    assert_eq!(tx.try_send_burst(&[&bytes, &bytes, &bytes]), Ok(Taken(2)), "two buffers");
    assert_eq!(tx.try_send(&bytes), Ok(Sent::Full));
    assert_eq!(tx.try_send(&bytes[..56]), Ok(Sent::Sent), "what needs none still goes");
    let header = memory.borrow()[0];
    memory.borrow_mut()[0] = given_back(header);
    assert_eq!(tx.try_send(&bytes), Ok(Sent::Sent));
}

#[test]
fn bad_frame_ends_a_burst_before_it_and_first_bad_frame_is_an_error() {
    let (_link, mut tx, _memory) = sender(SMALL);
    let (good, bad) = ([1; 60], [1; 13]);
    assert_eq!(tx.try_send_burst(&[&good, &good, &bad, &good]), Ok(Taken(2)));
    assert!(matches!(tx.try_send_burst(&[&bad, &good]), Err(TxError::Length { bytes: 13, .. })));
    assert!(matches!(tx.try_send(&[0; 1519]), Err(TxError::Length { bytes: 1519, .. })));
}

#[test]
fn entry_returned_changed_is_an_error_with_both_words() {
    let (_link, mut tx, memory) = sender(SMALL);
    assert_eq!(tx.try_send(&[7; 60]), Ok(Sent::Sent));
    let passed = memory.borrow()[0];
    assert!(is_passed(passed));
    for found in [0, !0, passed ^ 1 << 40, given_back(passed) ^ 1] {
        memory.borrow_mut()[0] = found;
        assert_eq!(tx.progress(), Err(TxError::BadReturn { entry: 0, found, passed }));
    }
    memory.borrow_mut()[0] = passed;
    assert_eq!((tx.progress(), tx.is_idle()), (Ok(()), false));
}

#[test]
fn a_next_life_begins_with_an_empty_ring() {
    let link = Scripted::sound(64);
    let mut port = link.ready();
    let half = port.coherent(0, SMALL).unwrap();
    let mut tx = open(&mut port, half);
    while tx.try_send(&[7; 60]) == Ok(Sent::Sent) {}
    let pending = port.close(tx);
    let stopped = done(&mut port, pending);
    let memory = link.0.borrow().regions[0].clone();
    assert!([0, 8, 16, 24].iter().all(|slot| memory.borrow()[*slot] == 0), "what the last life passed");
    // The next life is of the next epoch: the device says that it runs.
    let status = 1 | 2 << regs::field::queue_status::EPOCH_LSB;
    link.0.borrow_mut().registers.insert(queue_register(0, regs::queue::STATUS), status);
    let mut tx = open(&mut port, stopped);
    assert_eq!((tx.is_idle(), tx.try_send(&[8; 56])), (true, Ok(Sent::Sent)));
    assert!(LineHeader::decode(memory.borrow()[0], 2, 0, 64).is_ok(), "the next epoch, from entry 0 on");
}

#[test]
fn a_received_entry_is_given_back_when_its_frame_is_dropped() {
    let (link, mut rx, memory) = receiver(RX_SMALL);
    assert!(rx.poll().unwrap().is_none());
    for count in 0..20u64 {
        let slot = (count % 4 * 8) as usize;
        let position = beeline_spec::coherent::position_of(count);
        let header = LineHeader { kind: LineKind::Whole(20), epoch: 0, position }.encode();
        memory.borrow_mut()[slot + 1] = count;
        memory.borrow_mut()[slot] = header;
        let mut frame = rx.poll().unwrap().expect("the entry was passed");
        assert_eq!((frame.len(), frame.word(0), memory.borrow()[slot]), (20, Some(count), header));
        drop(frame);
        assert_eq!(memory.borrow()[slot], given_back(header));
        assert!(rx.poll().unwrap().is_none(), "the next is not there");
    }
    assert_eq!(link.0.borrow().rings.len(), 0, "no doorbell");
}

#[test]
fn a_buffer_that_is_not_ours_is_never_read() {
    let buffers_at = 4 * 64;
    for (address, is_ours) in [(0, true), (1536, true), (3072, false), (64, false), (1 << 40, false)] {
        let (_link, mut rx, memory) = receiver(RX_SMALL);
        let base = first_address();
        let buffer = LineBuffer { length_bytes: 1518, address: base + buffers_at + address };
        memory.borrow_mut()[1] = buffer.encode();
        memory.borrow_mut()[0] = LineHeader { kind: LineKind::Buffers(1), epoch: 0, position: 0 }.encode();
        let found = rx.poll().map(|frame| frame.map(|frame| frame.len()));
        let word = buffer.encode();
        let expected = if is_ours { Ok(Some(1518)) } else { Err(RxError::BadCompletion { frame: 0, word }) };
        assert_eq!(found, expected, "{address:#x}");
    }
}

/// Where the memory of a first queue lies on the bus.
fn first_address() -> u64 {
    let mut link = Scripted::sound(64);
    let memory = Link::memory(&mut link, 64).unwrap();
    beeline_contract_link::DmaMemory::address(&memory)
}

/// A word of an entry: nearly right, or anything.
fn word() -> impl Strategy<Value = u64> {
    let kind = prop_oneof![(0u16..70).prop_map(LineKind::Whole), (0u8..9).prop_map(LineKind::Buffers)];
    let header = (kind, 0u8..2, 0u32..6, any::<bool>()).prop_map(|(kind, epoch, position, back)| {
        let header = LineHeader { kind, epoch, position }.encode();
        if back { given_back(header) } else { header }
    });
    let buffer = (0u16..1600, 0u64..80).prop_map(|(length_bytes, lines)| {
        LineBuffer { length_bytes, address: first_address() + lines * 64 }.encode()
    });
    prop_oneof![header, buffer, any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_entries_give_frames_in_bounds_or_an_error(
        words in proptest::collection::vec((0usize..32, word()), 0..40),
        rounds in 1usize..4,
    ) {
        let (_link, mut rx, memory) = receiver(RX_SMALL);
        let mut bytes = [0; 1518];
        for _ in 0..rounds {
            for (at, word) in &words {
                memory.borrow_mut()[*at] = *word;
            }
            for _ in 0..20 {
                let found = rx.poll().map(|frame| frame.map(|mut frame| frame.copy_out(&mut bytes)));
                match found {
                    Ok(None) => break,
                    Ok(Some(length)) => prop_assert!((1..=1518).contains(&length)),
                    Err(error) => {
                        prop_assert_eq!(rx.poll().map(|_| ()), Err(error));
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn any_words_in_the_transmit_ring_give_progress_or_an_error(
        words in proptest::collection::vec((0usize..32, word()), 1..40),
        sizes in proptest::collection::vec(0usize..1600, 1..8),
    ) {
        let (_link, mut tx, memory) = sender(SMALL);
        let bytes = [0x5a; 1600];
        let frames: Vec<&[u8]> = sizes.iter().map(|size| &bytes[..*size]).collect();
        for (at, word) in words {
            let _ = tx.try_send_burst(&frames);
            memory.borrow_mut()[at] = word;
            let _ = tx.progress();
            let _ = tx.try_send(frames[0]);
            // What it says must be, so that something does come back.
            let passed = memory.borrow()[at / 8 * 8];
            memory.borrow_mut()[at / 8 * 8] = given_back(passed);
        }
    }
}
