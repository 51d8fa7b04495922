//! The words of a table, reachable for the fuzz targets alone (`fuzz/`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroU64;

use beeline_tcp::Tuple;

use super::words::{FILE_BYTES, KEY_BYTES, Key, Resident, Spot, Words, look, publish_and_look, word_offset};
use super::{Candidate, Member, OtherProcess, who};
use crate::registry::words::WORD_BYTES;

/// A table whose words any process of the user writes. Whatever was not written is 0.
#[derive(Debug, Default)]
pub struct ConnectionWords(RefCell<HashMap<usize, u64>>);

/// Where one end of a connection has its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSpot(Spot);

impl ConnectionSpot {
    /// `None` where both ends are one socket. The words lie in the file, beside each other, and the other end has the same two.
    pub fn new(key: [u8; KEY_BYTES], namespace: u64, local: SocketAddr, remote: SocketAddr) -> Option<Self> {
        let (key, tuple) = (Key(key), Tuple::new(local, remote));
        let spot = key.spot(namespace, tuple)?;
        let other = key.spot(namespace, tuple.mirrored()).expect("the ends differ from there, too");
        assert_eq!((spot.own_slot, spot.other_slot), (other.other_slot, other.own_slot));
        assert_eq!(spot.own_slot ^ spot.other_slot, 1);
        assert!(word_offset(spot.own_slot.max(spot.other_slot)) + WORD_BYTES as u64 <= FILE_BYTES);
        Some(ConnectionSpot(spot))
    }

    /// Numbers of the words of this end and of the other one.
    pub fn slots(&self) -> [usize; 2] {
        [self.0.own_slot, self.0.other_slot]
    }
}

impl ConnectionWords {
    /// Somebody writes what he likes.
    pub fn scribble(&self, slot: usize, word: u64) {
        self.0.borrow_mut().insert(slot, word);
    }

    /// What lies in a word now.
    pub fn word_at(&self, slot: usize) -> u64 {
        self.0.borrow().get(&slot).copied().unwrap_or(0)
    }

    /// Publishes who is at this end, and looks which place the one at the other end has; `None` for a number that nobody joins under.
    pub fn publish(&self, spot: ConnectionSpot, place: u16, number: NonZeroU64) -> Option<Option<u16>> {
        let own = Resident::new(place, number)?;
        let Ok(found) = publish_and_look(self, spot.0, own);
        Some(found.map(|found| found.place))
    }

    /// Which place the one at the other end has, if it is the process with `pid` that joined under `number`.
    pub fn find(&self, spot: ConnectionSpot, number: NonZeroU64, pid: u32) -> Option<u16> {
        let Ok(found) = look(self, spot.0);
        let found = found?;
        let member = Member { number, other_pid: Some(pid) };
        match who(found, Some(member)) {
            OtherProcess::Found(candidate) => {
                assert_eq!(candidate, Candidate { number, pid });
                Some(found.place)
            }
            OtherProcess::NotYet => None,
            other => panic!("{other:?} of a member that is another process"),
        }
    }
}

impl Words for ConnectionWords {
    type Error = Infallible;

    fn write(&self, slot: usize, word: u64) -> Result<(), Infallible> {
        self.scribble(slot, word);
        Ok(())
    }

    fn barrier(&self) {}

    fn read(&self, slot: usize) -> Result<u64, Infallible> {
        Ok(self.word_at(slot))
    }
}
