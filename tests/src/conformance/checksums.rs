//! Checksums of IPv4, TCP and UDP are filled in for a queue that asks for it, by every interface.

use beeline_driver::TxQueueConfig;
use beeline_spec::formats::feature;
use etherparse::PacketBuilder;

use super::exchange::{exchange, exchange_into, longest};
use super::{Setup, frames::random_frames};
use crate::{Random, Rig};

/// Where the checksum of IPv4 stands in a frame, and those of UDP and TCP behind it.
const IPV4_AT: usize = 24;
const UDP_AT: usize = 40;
const TCP_AT: usize = 50;

/// A frame as an independent builder writes it, and the same with something else in place of its checksums.
fn packets(is_tcp: bool, payload: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let build = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [4, 0, 0, 0, 0, 2]);
    let build = build.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    let mut right = Vec::new();
    let written = match is_tcp {
        true => build.tcp(5, 6, 7, 8).write(&mut right, payload),
        false => build.udp(5, 6).write(&mut right, payload),
    };
    written.expect("a payload that fits a packet");
    let mut blank = right.clone();
    for at in [IPV4_AT, if is_tcp { TCP_AT } else { UDP_AT }] {
        blank[at..at + 2].copy_from_slice(&[0xbe, 0xef]);
    }
    (blank, right)
}

/// Packets without checksums arrive with them, others as they are; a queue that does not ask gets everything as it is.
///
/// # Panics
/// When the interface breaks the promise.
pub fn filled_in<R: Rig>(rig: &mut R, setup: &Setup) {
    let asks = TxQueueConfig { checksums: true, ..TxQueueConfig::default() };
    assert!(rig.port().has_feature(feature::CHECKSUMS), "every device of the project fills in checksums");
    let (mut tx, mut rx) = (setup.transmit(rig, 0, asks), setup.receive(rig, 1));
    let mut random = Random::new(setup.random);
    let (mut blank, mut right) = (Vec::new(), Vec::new());
    for (number, payload) in random_frames(&mut random, 9_000, 60, longest(&tx) - 54).iter().enumerate() {
        let (sent, arrives) = packets(number % 3 == 0, payload);
        blank.push(sent);
        right.push(arrives);
        if number % 5 == 0 {
            blank.push(payload.clone());
            right.push(payload.clone());
        }
    }
    exchange_into(rig, &mut tx, &mut rx, (&blank, &right), 8);
    let mut plain = setup.transmit(rig, 2, TxQueueConfig::default());
    exchange(rig, &mut plain, &mut rx, &blank, 8);
}
