//! Transfers of 64 B to 4 MiB to another member's segment, by stores and by DMA: how long each takes, and for how much of that time the
//! program's thread is in a call and can do nothing else.
//!
//! A program that leaves a transfer to DMA starts it and works on, here at sums of its own, with a look now and then whether the transfer
//! has ended. Whoever waits for it instead copies itself (record 0045), which `dma` measures.

use std::hint::black_box;
use std::time::Instant;

use beeline_fabric::{DmaEntry, DmaState, Part};
use beeline_fabric_process::{DmaDirection, DmaLocal, DmaQueue, DmaTransfer, FabricMember, Map};
use beeline_floor::on_core;
use beeline_session::PrivateDomain;

use crate::fabric::{OWNER, USER, broken, connect, make_segment, member};
use crate::figure::Row;
use crate::{BenchError, Figure, Latencies, Settings};

pub(super) const SIZES: [usize; 9] =
    [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// What is measured of each way: until the transfer has ended, and inside of calls.
pub(super) const TAKEN: [[&str; 2]; 2] =
    [["by stores", "by stores, in calls"], ["by DMA", "by DMA, in calls"]];
const TRANSFERS: usize = 60;
/// Turns of the program's own work between two looks: about a microsecond.
const WORK: u64 = 1000;

struct Transfers {
    queue: DmaQueue,
    local: beeline_fabric::LocalSegment,
    remote: beeline_fabric::RemoteSegment,
    map: Map,
    own: Vec<u8>,
    // After what is of them.
    _user: FabricMember,
    _owner: FabricMember,
    _domain: PrivateDomain,
}

impl Transfers {
    fn new() -> Result<Self, BenchError> {
        let bytes = SIZES[SIZES.len() - 1];
        let domain = PrivateDomain::new().map_err(|error| broken(&error))?;
        let owner = member(domain.config().clone(), OWNER)?;
        let user = member(domain.config().clone(), USER)?;
        make_segment(&owner, bytes)?;
        let local = make_segment(&user, bytes)?;
        let remote = connect(&user)?;
        let part = Part { offset: 0, bytes: bytes as u64 };
        let map = user.map_remote(remote, part).map_err(|error| broken(&error))?;
        let queue = user.dma_queue(1).map_err(|error| broken(&error))?;
        let own = vec![1; bytes];
        Ok(Transfers { queue, local, remote, map, own, _user: user, _owner: owner, _domain: domain })
    }

    /// Nanoseconds of a transfer by stores.
    fn store(&self, bytes: usize) -> Result<[f64; 2], BenchError> {
        let started = Instant::now();
        self.map.copy_in(0, black_box(&self.own[..bytes])).map_err(|error| broken(&error))?;
        Ok([started.elapsed().as_nanos() as f64; 2])
    }

    /// Nanoseconds of a transfer by DMA, all and in calls.
    fn transfer(&self, bytes: usize) -> Result<[f64; 2], BenchError> {
        let entries = [DmaEntry { local_offset: 0, remote_offset: 0, bytes: bytes as u64 }];
        let (local, remote) = (DmaLocal::Segment(self.local), self.remote);
        let transfer = DmaTransfer { local, remote, direction: DmaDirection::Write, entries: &entries };
        let started = Instant::now();
        self.queue.start(transfer).map_err(|error| broken(&error))?;
        let mut in_calls = started.elapsed();
        loop {
            black_box((0..WORK).fold(0, |sum: u64, number| black_box(sum ^ number)));
            let looked = Instant::now();
            let state = self.queue.state();
            in_calls += looked.elapsed();
            match state {
                DmaState::Posted => {}
                DmaState::Done => break,
                other => return Err(BenchError::Fabric(format!("a job of DMA ended as {other:?}"))),
            }
        }
        Ok([started.elapsed(), in_calls].map(|time| time.as_nanos() as f64))
    }
}

/// Figures of every size: each way's times until the end, and those in calls.
pub(super) fn measure(bench: &str, settings: &Settings) -> Result<Vec<Figure>, BenchError> {
    let transfers = Transfers::new()?;
    // Here, so that the thread of DMA is not bound to the core of the program's. It begins with the first job that is not small.
    transfers.transfer(SIZES[SIZES.len() - 1])?;
    on_core::<_, BenchError>(settings.cores.first, || run_here(bench, &transfers, settings.rounds))
}

fn run_here(bench: &str, transfers: &Transfers, rounds: u32) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for bytes in SIZES {
        let mut latencies = [(); 2].map(|()| [(); 2].map(|()| Latencies::new()));
        for _ in 0..rounds {
            let mut events = [(); 2].map(|()| [(); 2].map(|()| Vec::with_capacity(TRANSFERS)));
            for _ in 0..TRANSFERS {
                let taken = [transfers.store(bytes)?, transfers.transfer(bytes)?];
                for (events, taken) in events.iter_mut().flatten().zip(taken.into_iter().flatten()) {
                    events.push(taken);
                }
            }
            for (latencies, events) in latencies.iter_mut().flatten().zip(events.iter().flatten()) {
                latencies.add_round(events);
            }
        }
        for (latencies, way) in latencies.into_iter().flatten().zip(TAKEN.into_iter().flatten()) {
            let name = format!("transfer {way}, {bytes} B");
            let (size_bytes, count) = (bytes as u32, TRANSFERS as u64);
            let row = Row { bench, name: &name, kernel: "-", memory: "segment", size_bytes, count };
            figures.push(Figure::latency(row, latencies));
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_copies_and_calls_take_no_longer_than_all() {
        let transfers = Transfers::new().unwrap();
        let mut found = [9];
        let mut look = |transfers: &Transfers| {
            transfers.map.copy_out(4095, &mut found).unwrap();
            found
        };
        transfers.store(4096).unwrap();
        assert_eq!(look(&transfers), [1]);
        let [all, in_calls] = transfers.transfer(4096).unwrap();
        // The local segment is blank.
        assert_eq!(look(&transfers), [0]);
        assert!(0.0 < in_calls && in_calls <= all);
    }
}
