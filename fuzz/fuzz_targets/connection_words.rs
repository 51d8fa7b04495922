//! This target publishes and finds ends of connections in the words of a table. A hostile process of the user writes any word, and other connections' words come
//! to lie where one was. Who is found has a place that there is and joined under the number that is looked for; a word that nobody wrote over is found by the other end.
#![no_main]

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;

use arbitrary::Arbitrary;
use beeline_domain::fuzzing::{ConnectionSpot, ConnectionWords};
use libfuzzer_sys::fuzz_target;

const PLACES: u16 = 8192;

#[derive(Arbitrary, Debug)]
struct Input {
    key: [u8; 16],
    connections: Vec<Connection>,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
struct Connection {
    namespace: u64,
    ends: [(Address, u16); 2],
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Address {
    V4([u8; 4]),
    V6([u8; 16]),
    /// An address of IPv4 as IPv6 writes it.
    Mapped([u8; 4]),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Publish {
        connection: u8,
        is_second: bool,
        place: u16,
        number: NonZeroU64,
    },
    Find {
        connection: u8,
        is_second: bool,
        number: NonZeroU64,
        pid: u32,
    },
    Scribble {
        connection: u8,
        is_second: bool,
        word: u64,
    },
    /// What lies in one word is written into another one.
    Copy {
        from: u8,
        to: u8,
    },
    Flip {
        connection: u8,
        is_second: bool,
        bit: u8,
    },
}

/// Who published the word that lies at an end.
type Published = HashMap<usize, (u8, u16, NonZeroU64)>;

fn address((address, port): (Address, u16)) -> SocketAddr {
    let ip: IpAddr = match address {
        Address::V4(bytes) => bytes.into(),
        Address::V6(bytes) => bytes.into(),
        Address::Mapped(bytes) => std::net::Ipv4Addr::from(bytes).to_ipv6_mapped().into(),
    };
    (ip, port).into()
}

struct Table {
    words: ConnectionWords,
    published: Published,
    /// Both ends of each connection.
    spots: Vec<[ConnectionSpot; 2]>,
}

impl Table {
    fn connection(&self, number: u8) -> u8 {
        (usize::from(number) % self.spots.len()) as u8
    }

    fn spot(&self, connection: u8, is_second: bool) -> ConnectionSpot {
        self.spots[usize::from(self.connection(connection))][usize::from(is_second)]
    }

    fn scribble(&mut self, slot: usize, word: u64) {
        self.published.remove(&slot);
        self.words.scribble(slot, word);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Publish { connection, is_second, place, number } => {
                let (spot, place) = (self.spot(connection, is_second), place % PLACES);
                let [own, other] = spot.slots();
                let Some(found) = self.words.publish(spot, place, number) else { return };
                let connection = self.connection(connection);
                self.published.insert(own, (connection, place, number));
                assert!(found.is_none_or(|found| found < PLACES));
                if let Some((_, place, _)) = self.published.get(&other).filter(|(of, ..)| *of == connection) {
                    assert_eq!(found, Some(*place), "the other end was there first");
                }
            }
            Step::Find { connection, is_second, number, pid } => {
                let spot = self.spot(connection, is_second);
                let there = self.published.get(&spot.slots()[1]).copied();
                let found = self.words.find(spot, number, pid);
                assert!(found.is_none_or(|place| place < PLACES));
                if let Some((of, place, joined)) = there.filter(|(of, ..)| *of == self.connection(connection))
                {
                    // The generation is of the number's lowest bits.
                    let is_meant = joined.get() % (1 << 19) == number.get() % (1 << 19);
                    assert_eq!(found, is_meant.then_some(place), "of connection {of}");
                }
            }
            Step::Scribble { connection, is_second, word } => {
                self.scribble(self.spot(connection, is_second).slots()[0], word);
            }
            Step::Copy { from, to } => {
                let word = self.words.word_at(self.spot(from, from % 2 == 1).slots()[0]);
                self.scribble(self.spot(to, to % 2 == 1).slots()[0], word);
            }
            Step::Flip { connection, is_second, bit } => {
                let slot = self.spot(connection, is_second).slots()[0];
                self.scribble(slot, self.words.word_at(slot) ^ 1 << (bit % 64));
            }
        }
    }
}

fuzz_target!(|input: Input| {
    let spots: Vec<[ConnectionSpot; 2]> = input
        .connections
        .iter()
        .take(64)
        .filter_map(|connection| {
            let [one, other] = connection.ends.map(address);
            let spot = |local, remote| ConnectionSpot::new(input.key, connection.namespace, local, remote);
            let (one, other) = (spot(one, other), spot(other, one));
            assert_eq!(one.is_some(), other.is_some());
            Some([one?, other?])
        })
        .collect();
    if spots.is_empty() {
        return;
    }
    let mut table = Table { words: ConnectionWords::default(), published: Published::new(), spots };
    input.steps.iter().take(256).for_each(|step| table.step(*step));
});
