use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::regs;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::message::{Malformed, command, words};

fn nic() -> Nic {
    let sizes = NicConfig {
        queues: 2,
        window_lines: 16,
        span_lines: 4,
        contexts: 2,
        pool_lines: 64,
        ..NicConfig::default()
    };
    Nic::new(NicConfig { blank: true, ..sizes }).expect("sizes that make sense")
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

fn record(command: u16, descriptors: u8, body: Vec<u8>) -> Record {
    Record { command, flags: 0, descriptors, excess_bytes: 0, body }
}

/// An access of a region; with `data` a write.
fn access(region: u32, offset: u64, bytes: u32, data: Option<&[u8]>) -> Record {
    let mut body = longs(&[offset]);
    body.extend(words(&[region, bytes]));
    body.extend(data.unwrap_or_default());
    record(if data.is_some() { command::REGION_WRITE } else { command::REGION_READ }, 0, body)
}

fn map(address: u64, offset: u64, bytes: u64, descriptors: u8) -> Record {
    let mut body = words(&[40, 3]);
    body.extend(longs(&[offset, address, bytes]));
    record(command::DMA_MAP, descriptors, body)
}

/// Whatever a client could say: sound commands with numbers at the edges, and bytes that are none.
fn any_record() -> impl Strategy<Value = Record> {
    let edge = || {
        prop_oneof![
            (0u64..0x20).prop_map(|page| page * 4096),
            Just(1 << 32),
            Just(u64::MAX),
            Just(u64::MAX - 4095),
            any::<u64>()
        ]
    };
    let register = (0u32..2, 0u32..32)
        .prop_map(|(queue, index)| u64::from(regs::QUEUE + queue * regs::QUEUE_STRIDE + index * 8));
    let offset = prop_oneof![3 => register, 1 => (0u64..64).prop_map(|index| index * 8), 1 => edge()];
    let value = prop_oneof![3 => 0u64..4, 2 => edge(), 1 => any::<u64>()];
    let write = (0u32..9, offset.clone(), value).prop_map(|(region, offset, value)| {
        access(if region > 4 { 0 } else { region }, offset, 8, Some(&value.to_le_bytes()))
    });
    let read =
        (0u32..10, offset, 0u32..70).prop_map(|(region, offset, bytes)| access(region, offset, bytes, None));
    let mapped = (edge(), edge(), edge(), 0u8..16)
        .prop_map(|(address, offset, bytes, descriptors)| map(address, offset, bytes, descriptors));
    let unmapped = (edge(), edge(), 0u32..4).prop_map(|(address, bytes, flags)| {
        let mut body = words(&[24, flags]);
        body.extend(longs(&[address, bytes]));
        record(command::DMA_UNMAP, 0, body)
    });
    let irqs =
        (any::<u8>(), 0u32..6, 0u32..4, 0u32..5, 0u8..16).prop_map(|(flags, kind, first, count, fds)| {
            record(command::SET_IRQS, fds, words(&[20, u32::from(flags), kind, first, count]))
        });
    let other = (0u16..20, 0u32..64, 0u8..16, -4i8..4, vec(any::<u8>(), 0..80)).prop_map(
        |(command, flags, descriptors, excess_bytes, body)| Record {
            command,
            flags,
            descriptors,
            excess_bytes,
            body,
        },
    );
    prop_oneof![4 => write, 2 => read, 2 => mapped, 1 => unmapped, 1 => irqs, 1 => other]
}

/// Memory decoding and bus master.
fn master() -> Record {
    access(7, 4, 2, Some(&[6, 0]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_client_says_the_next_one_is_served(records in vec(any_record(), 0..MOST_RECORDS)) {
        play(nic(), &[&[master(), map(0, 0, GUEST_BYTES as u64, 1)], &records[..]].concat());
    }
}

#[test]
fn memory_is_mapped_whole_sealed_and_once() {
    let is_taken = |maps: &[Record]| {
        let (answers, ended) = answers_to(nic(), maps);
        assert!(ended.is_none() && answers.len() == maps.len(), "{ended:?}");
        !answers.iter().any(Header::is_error)
    };
    let (sealed, shrinks, event) = (1, 2, 4);
    assert!(is_taken(&[
        map(0, 0, 4096, sealed),
        map(4096, 4096, 8192, sealed),
        map(1 << 40, 0, 4096, sealed)
    ]));
    assert!(is_taken(&[map(0xf_0000, 0, 0x1_0000, 0)]), "a ROM, which the device does not reach");
    for (why, map) in [
        ("it can shrink", map(0, 0, 4096, shrinks)),
        ("it is none", map(0, 0, 4096, event)),
        ("two of them", map(0, 0, 4096, sealed | shrinks)),
        ("it is not all there", map(0, 60 << 10, 8192, sealed)),
        ("no page", map(64, 0, 4096, sealed)),
        ("nothing", map(0, 0, 0, sealed)),
        ("it goes round", map(u64::MAX - 4095, 0, 8192, sealed)),
    ] {
        assert!(!is_taken(&[map]), "{why}");
    }
    assert!(!is_taken(&[map(4096, 0, 8192, sealed), map(8192, 0, 4096, sealed)]), "an overlap");
    assert!(!is_taken(&[map(8192, 0, 4096, sealed), map(4096, 0, 8192, sealed)]), "an overlap, from below");
}

#[test]
fn memory_is_given_back_in_whole_pieces() {
    let unmap = |address: u64, bytes: u64, flags: u32| {
        let mut body = words(&[24, flags]);
        body.extend(longs(&[address, bytes]));
        record(command::DMA_UNMAP, 0, body)
    };
    let pieces = [map(0, 0, 4096, 1), map(4096, 4096, 8192, 1)];
    let then = |records: &[Record]| {
        let (answers, ended) = answers_to(nic(), &[&pieces, records].concat());
        assert!(ended.is_none(), "{ended:?}");
        answers[2..].iter().map(Header::is_error).collect::<Vec<_>>()
    };
    assert_eq!(then(&[unmap(4096, 8192, 0), pieces[1].clone()]), [false, false], "it can be mapped again");
    assert_eq!(then(&[unmap(4096, 4096, 0), pieces[1].clone()]), [true, true], "half a piece stays whole");
    assert_eq!(then(&[unmap(8192, 4096, 0)]), [true]);
    assert_eq!(then(&[unmap(2048, 4096 * 3 - 2048, 0)]), [true], "the first piece is cut, the last is not");
    assert_eq!(then(&[unmap(0, 0, 2), pieces[0].clone(), pieces[1].clone()]), [false, false, false]);
}

#[test]
fn vectors_lead_to_events_that_do_not_wait() {
    let irqs = |flags: u32, kind: u32, first: u32, count: u32, descriptors: u8| {
        record(command::SET_IRQS, descriptors, words(&[20, flags, kind, first, count]))
    };
    let is_taken = |record: Record| !answers_to(nic(), &[record]).0[0].is_error();
    let (by_event, off, event, socket) = (4 | 32, 1 | 32, 4, 8);
    assert!(is_taken(irqs(by_event, 2, 1, 1, event)));
    assert!(is_taken(irqs(by_event, 2, 0, 2, event)), "the second leads nowhere");
    assert!(is_taken(irqs(off, 2, 0, 0, 0)));
    assert!(!is_taken(irqs(by_event, 2, 0, 1, socket)), "a socket's writes may wait");
    assert!(!is_taken(irqs(by_event, 2, 2, 1, event)), "a vector that there is not");
    assert!(!is_taken(irqs(by_event, 2, u32::MAX, 2, event)));
    assert!(!is_taken(irqs(by_event, 0, 0, 1, event)), "no INTx");
    assert!(!is_taken(irqs(4, 2, 0, 1, event)), "no trigger");
}

#[test]
fn what_is_no_message_ends_the_connection() {
    let ended = |record: Record| play(nic(), &[record]);
    let short = Record { excess_bytes: -1, ..record(command::DEVICE_INFO, 0, Vec::new()) };
    assert!(matches!(ended(short), Some(Ended::Malformed(Malformed::Length(15)))));
    let reply = Record { flags: 1, ..record(command::DEVICE_INFO, 0, vec![0; 16]) };
    assert!(matches!(ended(reply), Some(Ended::Malformed(Malformed::Kind(1)))));
    let torn = access(0, 0, 9, Some(&[1; 8]));
    assert!(matches!(ended(torn), Some(Ended::Malformed(Malformed::Short { .. }))));
}
