//! The server's half: a handler for each thread.

use std::sync::Arc;

use beeline_rpc::{Replied, Reply, Request, Service};

use crate::blocks::Pieces;
use crate::counters::{Counters, KvStats};
use crate::error::OpenError;
use crate::hash::KeyHash;
use crate::item_page::Found;
use crate::key::{KEY_BYTES, Key};
use crate::options::KvOptions;
use crate::protocol::{DELETE, FULL, GET, MALFORMED, NOT_FOUND, SET, STATS, VALUE_TOO_LONG, bytes_of};
use crate::shared::SharedTable;
use crate::single_thread::SingleThreadTable;
use crate::table::{Refused, Table};

/// One thread's share of a store: hand it to the worker of that thread.
#[derive(Debug)]
pub struct KvService {
    items: Items,
    office: Office,
}

#[derive(Debug)]
enum Items {
    SingleThread(SingleThreadTable),
    Shared(SharedTable),
}

/// The state of a store apart from its items.
#[derive(Debug)]
struct Office {
    /// One for each thread.
    counters: Arc<[Counters]>,
    /// This one's.
    index: usize,
    options: KvOptions,
}

impl KvService {
    /// A store with nothing in it, for `workers` threads: one service each. One alone has it without an atomic
    /// operation.
    ///
    /// # Errors
    /// An option is out of bounds; the system gives no random number, or not the memory.
    pub fn open(workers: usize, options: KvOptions) -> Result<Vec<KvService>, OpenError> {
        options.check(workers)?;
        let (hash, max_bytes) = (KeyHash::random(options.hashing)?, options.max_memory_bytes);
        let counters: Arc<[Counters]> = (0..workers).map(|_| Counters::default()).collect();
        let office = |index| Office { counters: Arc::clone(&counters), index, options: options.clone() };
        if workers == 1 {
            let table = SingleThreadTable::new(hash, max_bytes, options.is_preallocated)?;
            return Ok(vec![KvService { items: Items::SingleThread(table), office: office(0) }]);
        }
        let table = SharedTable::new(hash, max_bytes);
        let service = |index| KvService { items: Items::Shared(table.clone()), office: office(index) };
        Ok((0..workers).map(service).collect())
    }

    /// What the store has done and holds: all threads together.
    pub fn stats(&self) -> KvStats {
        match &self.items {
            Items::SingleThread(table) => self.office.stats(table),
            Items::Shared(table) => self.office.stats(table),
        }
    }
}

impl Service for KvService {
    #[inline(always)]
    fn call(&mut self, request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
        match &mut self.items {
            Items::SingleThread(table) => self.office.serve(table, request, reply),
            Items::Shared(table) => self.office.serve(table, request, reply),
        }
    }
}

impl Office {
    #[inline(always)]
    fn mine(&self) -> &Counters {
        &self.counters[self.index]
    }

    #[inline(always)]
    fn serve(&self, table: &mut impl Table, request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
        if request.method() == GET && request.len() == KEY_BYTES {
            let key = key_of(request);
            return table.get(key, |found| match found {
                Some(Found::Whole(value)) => {
                    self.mine().hits.count();
                    reply.send(value)
                }
                Some(Found::InPieces(pieces)) => {
                    self.mine().hits.count();
                    send_pieces(pieces, reply)
                }
                None => {
                    self.mine().misses.count();
                    reply.fail(NOT_FOUND, &[])
                }
            });
        }
        self.serve_other(table, request, reply)
    }

    #[inline(never)]
    fn serve_other(&self, table: &mut impl Table, request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
        match (request.method(), request.len()) {
            (SET, KEY_BYTES..) => self.set(table, request, reply),
            (DELETE, KEY_BYTES) => {
                if !table.delete(key_of(request)) {
                    return reply.fail(NOT_FOUND, &[]);
                }
                self.mine().deletes.count();
                reply.send(&[])
            }
            (STATS, 0) => reply.send(self.stats(table).encode().as_ref()),
            (GET | SET | DELETE | STATS, _) => reply.fail(MALFORMED, &[]),
            _ => reply.unknown_method(),
        }
    }

    fn set(&self, table: &mut impl Table, request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
        let (bytes, max_bytes) = (request.len() - KEY_BYTES, self.options.max_value_bytes);
        if bytes > max_bytes {
            self.mine().refused.count();
            return reply.fail(VALUE_TOO_LONG, bytes_of([bytes as u64, max_bytes as u64]).as_ref());
        }
        match table.set(key_of(request), request, bytes) {
            Ok(()) => {
                self.mine().sets.count();
                reply.send(&[])
            }
            Err(Refused { used_bytes, max_bytes, needed_bytes }) => {
                self.mine().refused.count();
                reply.fail(FULL, bytes_of([used_bytes, max_bytes, needed_bytes]).as_ref())
            }
        }
    }

    fn stats(&self, table: &impl Table) -> KvStats {
        let mut stats = KvStats {
            items: table.items(),
            used_bytes: table.used_bytes(),
            max_memory_bytes: self.options.max_memory_bytes,
            max_value_bytes: self.options.max_value_bytes as u64,
            workers: self.counters.len() as u64,
            ..KvStats::default()
        };
        for counters in self.counters.iter() {
            counters.add_to(&mut stats);
        }
        stats
    }
}

/// Answers with a value that does not lie in one piece.
#[inline(never)]
fn send_pieces(pieces: Pieces<'_>, reply: Reply<'_>) -> Replied {
    let mut answer = reply.begin(pieces.bytes());
    for piece in pieces {
        answer.write(piece).expect("room for the whole value was asked for");
    }
    answer.commit()
}

#[inline(always)]
fn key_of(request: &mut Request<'_>) -> Key {
    Key::from_words([request.word(0), request.word(1)])
}
