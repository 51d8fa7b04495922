//! Key-value servers and tight clients of theirs: GETs of 16-byte keys with 32-byte values over one connection.
//!
//! A client is a [`KvClient`]: it asks for a group of keys and takes their answers; [`get_rate`] keeps a number of GETs
//! outstanding with it and compares every value. [`memcached`] and [`redis`] start the real servers, pinned to a core,
//! on a Unix socket (no slower than loopback here, and faster at depth 1), without persistence; [`OwnClient`] starts
//! ours. Not here: the row (`key_value.rs`).

mod connection;
mod load;
pub mod memcached;
mod own;
mod protocol;
pub mod redis;
mod server;

use std::path::Path;
use std::time::Instant;

pub use connection::Connection;
pub use load::{KEY_BYTES, Key, Keys, VALUE_BYTES, Value};
pub(crate) use own::Store;
pub use own::{NAME as OWN_NAME, OFFER as OWN_OFFER, OwnClient};
pub use protocol::{Asker, Protocol};
pub use server::KvServer;

use crate::BenchError;
use beeline_floor::{FloorError, rate};

/// One connection to a key-value server.
pub trait KvClient {
    /// Announces this many GETs, for a server that answers by count.
    ///
    /// # Errors
    /// It does not begin.
    fn begin(&mut self, _gets: u64) -> Result<(), BenchError> {
        Ok(())
    }

    /// Ends the GETs that were announced, all of which were answered.
    ///
    /// # Errors
    /// It has not ended.
    fn end(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    /// Asks for these keys, all of them, before it returns.
    ///
    /// # Errors
    /// They cannot be sent.
    fn ask(&mut self, keys: &[Key]) -> Result<(), BenchError>;

    /// Waits for the answers to that many keys, those asked for first, and hands over their values in that order.
    ///
    /// # Errors
    /// They do not come, or one is not a value.
    fn take(&mut self, keys: usize, values: &mut dyn FnMut(&Value)) -> Result<(), BenchError>;
}

/// How a rival is started, loaded and asked.
#[derive(Clone, Copy, Debug)]
pub struct KvRival {
    /// Name of the rival in figures.
    pub name: &'static str,
    /// Starts the server on a core, with everything of it in a folder; gives `None` and the package to install where
    /// there is none.
    pub serve: fn(core: usize, folder: &Path) -> Result<Option<KvServer>, BenchError>,
    /// Debian package that brings the server.
    pub package: &'static str,
    /// Clients of it, each in one way of asking; the fastest at a depth counts there.
    pub clients: &'static [ClientKind],
}

/// One way of asking a server for many keys.
#[derive(Clone, Copy, Debug)]
pub struct ClientKind {
    /// Name in figures.
    pub name: &'static str,
    /// Connects, to ask so.
    pub connect: fn(&Path) -> Result<Box<dyn KvClient>, BenchError>,
}

/// GETs a second with `depth` of them outstanding, asked for and taken in groups of `group`, which divides it. Makes at
/// least `gets`, in whole depths.
///
/// # Errors
/// [`BenchError::Floor`]: a value is not its key's; what the client gives.
pub fn get_rate(
    client: &mut dyn KvClient,
    keys: &Keys,
    depth: usize,
    group: usize,
    gets: u64,
) -> Result<f64, BenchError> {
    let gets = gets.next_multiple_of(depth as u64);
    let (mut asked, mut taken, mut wrong) = (0, 0, None);
    client.begin(gets)?;
    let started = Instant::now();
    while asked < depth as u64 {
        client.ask(keys.group(asked, group))?;
        asked += group as u64;
    }
    while taken < gets {
        client.take(group, &mut |value| {
            if value != keys.value(taken) && wrong.is_none() {
                wrong = Some((taken, *value));
            }
            taken += 1;
        })?;
        if asked < gets {
            client.ask(keys.group(asked, group))?;
            asked += group as u64;
        }
    }
    let took = started.elapsed();
    client.end()?;
    match wrong {
        None => Ok(rate(gets, took)),
        Some((number, value)) => {
            let first =
                |value: &Value| u64::from_le_bytes(*value.first_chunk().expect("a value has 32 bytes"));
            let expected = first(keys.value(number));
            Err(BenchError::Floor(FloorError::Corrupt {
                path: format!("GET {number}"),
                found: first(&value),
                expected,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A server in the client: answers from the keys themselves, but for one GET.
    struct Mirror<'k> {
        keys: &'k Keys,
        asked: VecDeque<Value>,
        most: usize,
        count: u64,
        wrong: Option<u64>,
    }

    impl KvClient for Mirror<'_> {
        fn ask(&mut self, keys: &[Key]) -> Result<(), BenchError> {
            for key in keys {
                let mut value = *self.keys.value_of(key).expect("only known keys are asked for");
                if self.wrong == Some(self.count) {
                    value[31] ^= 1;
                }
                self.count += 1;
                self.asked.push_back(value);
            }
            self.most = self.most.max(self.asked.len());
            Ok(())
        }

        fn take(&mut self, keys: usize, values: &mut dyn FnMut(&Value)) -> Result<(), BenchError> {
            for _ in 0..keys {
                values(&self.asked.pop_front().expect("no more is taken than asked for"));
            }
            Ok(())
        }
    }

    #[test]
    fn the_depth_is_kept_and_every_value_compared() -> Result<(), BenchError> {
        let keys = Keys::new();
        for (depth, group) in [(1, 1), (8, 8), (8, 4), (8, 1), (256, 64)] {
            let mut mirror = Mirror { keys: &keys, asked: VecDeque::new(), most: 0, count: 0, wrong: None };
            assert!(get_rate(&mut mirror, &keys, depth, group, 2_001)? > 0.0);
            assert_eq!((mirror.most, mirror.asked.len()), (depth, 0));
            assert_eq!(mirror.count, 2_001u64.next_multiple_of(depth as u64));
        }
        for wrong in [0, 777, 1_999] {
            let asked = VecDeque::new();
            let mut mirror = Mirror { keys: &keys, asked, most: 0, count: 0, wrong: Some(wrong) };
            let outcome = get_rate(&mut mirror, &keys, 8, 4, 2_000);
            let path = format!("GET {wrong}");
            assert!(
                matches!(&outcome, Err(BenchError::Floor(FloorError::Corrupt { path: found, .. })) if *found == path)
            );
        }
        Ok(())
    }
}
