//! One store to a group of eight holders, beside a store to each of eight segments.
//!
//! All members are this process: what differs is how often the writer stores, and how many lines a reader has to have. In the first part nobody
//! reads: a store is a copy of 64 bytes through a map of the connection. In the second a thread on another core looks through the maps of
//! all eight holders, or segments, until each has the number that was written, and says so in a line of its own: the time is
//! from the first store to that. Stores are timed by the batch, the second part one by one.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use beeline_fabric::{Call, LocalSegment, NodeId, Part, RemoteSegment, SegmentId, Value};
use beeline_fabric_process::{FabricMember, Map};
use beeline_floor::on_core;
use beeline_session::PrivateDomain;

use crate::fabric::{OWNER, USER, adapter, broken, call, member};
use crate::figure::Row;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

const BENCH: &str = "group";
const HOLDERS: usize = 8;
const BYTES: usize = 64;
/// A store to the group is to take at most a fourth of the stores to all.
const MOST: f64 = 0.25;
const PATHS: [&str; 2] = ["one store to a group of 8", "a store to each of 8"];

/// Batches a round, and stores of one.
const BATCHES: usize = 2000;
const STORES: usize = 200;
/// Numbers of a round that are waited for until all have them.
const SEEN: usize = 20_000;

/// The maps of one way: what the writer stores through, and what each holder reads through.
struct Way {
    written: Vec<Map>,
    read: Vec<Map>,
}

struct Bench {
    ways: [Way; 2],
    // After what is of them.
    _members: Vec<FabricMember>,
    _domain: PrivateDomain,
}

fn part() -> Part {
    Part { offset: 0, bytes: BYTES as u64 }
}

impl Bench {
    fn new() -> Result<Self, BenchError> {
        let domain = PrivateDomain::new().map_err(|error| broken(&error))?;
        let writer = member(domain.config().clone(), USER)?;
        let mut members = Vec::new();
        let (mut group, mut single) = (Way::empty(), Way::empty());
        for holder in 0..HOLDERS {
            let member = member(domain.config().clone(), OWNER)?;
            let held = member.join_group(SegmentId(7), BYTES as u64).map_err(|error| broken(&error))?;
            group.read.push(opened(&member, held.local)?);
            let id = SegmentId(100 + holder as u32);
            let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
            let create =
                Call::CreateSegment { id, is_auto, bytes: BYTES as u64, is_private, is_empty, has_callback };
            let Value::Local(local, _) = call(&member, create)? else { return Err(unexpected()) };
            single.read.push(opened(&member, local)?);
            single.written.push(connected(&writer, OWNER, id)?.1);
            members.push(member);
        }
        let (remote, map) = connected(&writer, NodeId::GROUPS, SegmentId(7))?;
        group.written.push(map);
        // So that the writer is connected to all before anything is timed.
        while writer.holders_of(remote) < HOLDERS {
            std::thread::yield_now();
        }
        members.push(writer);
        Ok(Bench { ways: [group, single], _members: members, _domain: domain })
    }
}

impl Way {
    fn empty() -> Self {
        Way { written: Vec::new(), read: Vec::new() }
    }

    fn store(&self, bytes: &[u8]) -> Result<(), BenchError> {
        self.written.iter().try_for_each(|map| map.copy_in(0, bytes).map_err(|error| broken(&error)))
    }

    /// Whether every holder has this number.
    fn all_have(&self, number: u64) -> bool {
        self.read.iter().all(|map| {
            let mut found = [0; 8];
            map.copy_out(0, &mut found).is_ok() && u64::from_ne_bytes(found) == number
        })
    }

    /// Nanoseconds of one store to all, of a batch of them.
    fn batch(&self, bytes: &[u8; BYTES]) -> Result<f64, BenchError> {
        let start = Instant::now();
        (0..STORES).try_for_each(|_| self.store(std::hint::black_box(bytes)))?;
        Ok(start.elapsed().as_nanos() as f64 / STORES as f64)
    }

    /// Nanoseconds until all have seen each number, with a reader on another core.
    fn seen(&self, core: usize, count: usize) -> Result<Vec<f64>, BenchError> {
        let said = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                on_core::<_, BenchError>(core, || {
                    for number in 1..=count as u64 {
                        while !self.all_have(number) {
                            spin_loop();
                        }
                        // Pairs with the load below.
                        said.store(number, Ordering::Release);
                    }
                    Ok(())
                })
            });
            let mut times = Vec::with_capacity(count);
            for number in 1..=count as u64 {
                let start = Instant::now();
                self.store(&number.to_ne_bytes())?;
                while said.load(Ordering::Acquire) != number && !reader.is_finished() {
                    spin_loop();
                }
                times.push(start.elapsed().as_nanos() as f64);
            }
            reader.join().map_err(|_| unexpected())??;
            // Nobody has the first number when this is called again.
            self.store(&[0; 8])?;
            Ok(times)
        })
    }
}

fn unexpected() -> BenchError {
    BenchError::Fabric("a call on a segment gave something else".to_owned())
}

fn opened(member: &FabricMember, local: LocalSegment) -> Result<Map, BenchError> {
    call(member, Call::Prepare(local, adapter()?))?;
    call(member, Call::SetAvailable(local, adapter()?))?;
    member.map_local(local, part()).map_err(|error| broken(&error))
}

fn connected(member: &FabricMember, node: NodeId, id: SegmentId) -> Result<(RemoteSegment, Map), BenchError> {
    let (adapter, timeout_nanos) = (adapter()?, Some(0));
    let (is_asynchronous, has_callback) = (false, false);
    let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
    let Value::Remote(remote, _) = call(member, connect)? else { return Err(unexpected()) };
    Ok((remote, member.map_remote(remote, part()).map_err(|error| broken(&error))?))
}

/// Runs both parts, the writer on the first core and the reader on the second.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let bench = Bench::new()?;
    let reader = settings.cores.second;
    on_core::<_, BenchError>(settings.cores.first, || {
        run_here(&bench, reader, settings.rounds, (BATCHES, SEEN))
    })
}

fn run_here(
    bench: &Bench,
    reader: usize,
    rounds: u32,
    (batches, seen): (usize, usize),
) -> Result<Report, BenchError> {
    let mut stores = [(); 2].map(|()| Latencies::new());
    let mut reached = [(); 2].map(|()| Latencies::new());
    for _ in 0..rounds {
        let mut events = [vec![0.0; batches], vec![0.0; batches]];
        for batch in 0..batches {
            for (way, events) in bench.ways.iter().zip(&mut events) {
                events[batch] = way.batch(&[batch as u8; BYTES])?;
            }
        }
        for (latencies, events) in stores.iter_mut().zip(events) {
            latencies.add_round(&events);
        }
        for (way, latencies) in bench.ways.iter().zip(&mut reached) {
            way.store(&[0; 8])?;
            latencies.add_round(&way.seen(reader, seen)?);
        }
    }
    let mut report = Report::default();
    for (what, latencies, count, bound) in [
        ("", stores, batches * STORES, Bound::AtMost(MOST)),
        (", until all have it", reached, seen, Bound::Shown),
    ] {
        let mut paths = PATHS.into_iter();
        let figures = latencies.map(|latencies| {
            let name = format!("{}{what}", paths.next().unwrap_or_default());
            let row = Row {
                bench: BENCH,
                name: &name,
                kernel: "-",
                memory: "segment",
                size_bytes: BYTES as u32,
                count: count as u64,
            };
            Figure::latency(row, latencies)
        });
        report.checks.push(Check::ratio(BENCH, &figures[0], &figures[1], bound));
        report.figures.extend(figures);
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_store_to_the_group_is_where_eight_stores_to_segments_are() {
        let bench = Bench::new().unwrap();
        let [group, single] = &bench.ways;
        assert_eq!((group.written.len(), single.written.len()), (1, HOLDERS));
        group.store(&5u64.to_ne_bytes()).unwrap();
        assert!(group.all_have(5) && !single.all_have(5));
        single.store(&6u64.to_ne_bytes()).unwrap();
        assert!(group.all_have(5) && single.all_have(6));
    }

    #[test]
    fn both_parts_have_a_ratio_and_the_stores_a_bound() {
        let report = run_here(&Bench::new().unwrap(), 0, 1, (10, 10)).unwrap();
        assert_eq!((report.figures.len(), report.checks.len()), (4, 2));
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 1 && figure.rounds[0] > 0.0));
    }
}
