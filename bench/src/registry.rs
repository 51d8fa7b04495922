//! What there is to run.

use beeline_session::with_causes;

use crate::{
    BenchError, Failed, Report, Settings, byte_stream, bytes, connect, connection, copy_sizes, dma,
    fail_over, fan_in, frames_under_attack, group, idle, ip_round_trip, key_value, kv_fill, lap, nic_one_way,
    nic_rate, peer_death, round_trip, rpc_rate, rpc_ring, rpc_round_trip, segment, simulation, sisci,
    sockets_programs, store, stream, waiter, wake_up, watch_latency, wire_round_trip, work,
};

/// A bench by name.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// The name that is typed.
    pub name: &'static str,
    /// What the bench measures, in one line.
    pub about: &'static str,
    pub run: fn(&Settings) -> Result<Report, BenchError>,
}

/// Every bench, in the order in which `run` without names takes them.
pub const BENCHES: &[Bench] = &[
    Bench {
        name: "window-store",
        about: "64 B messages stored into a window with no receiver, by kernel and fence policy",
        run: store::run,
    },
    Bench {
        name: "window-stream",
        about: "64 B messages streamed between two cores: window, SPSC rings in chunks (four crates, Concurrency Kit, DPDK), descriptor ring",
        run: stream::run,
    },
    Bench {
        name: "window-bytes",
        about: "1 KB and 8 KB messages streamed and copied out: window in bulk, memcpy through a ring of bytes",
        run: bytes::run,
    },
    Bench {
        name: "window-byte-stream",
        about: "a byte stream by writes of 64 B, 1 KB and 16 KB: window, memcpy through a ring of bytes, pair of Unix sockets",
        run: byte_stream::run,
    },
    Bench {
        name: "window-lap",
        about: "64 B messages streamed: blank window, lap window to one receiver and to two, cached and non-temporal",
        run: lap::run,
    },
    Bench {
        name: "window-fan-in",
        about: "64 B messages to a receiver of 1 window and of 64, one of which has a sender",
        run: fan_in::run,
    },
    Bench {
        name: "window-idle",
        about: "a pass over 16 to 1,000 windows that nobody sends into: a set, receivers in turn, bare loads",
        run: idle::run,
    },
    Bench {
        name: "window-work",
        about: "64 B messages sent and then received on one core: what each end costs without transfer",
        run: work::run,
    },
    Bench {
        name: "window-round-trip",
        about: "64 B there and back between two cores: window by kernel, bare copy, bare line",
        run: round_trip::run,
    },
    Bench {
        name: "connection-round-trip",
        about: "64 B there and back by a connection: its windows, windows that are kept and checked, its socket by the ledger; TCP, bare copy",
        run: connection::run,
    },
    Bench {
        name: "copy-sizes",
        about: "copies of 4 B to 1 MiB into mapped memory and out of it, aligned and odd: ours, memcpy",
        run: copy_sizes::run,
    },
    Bench {
        name: "dma",
        about: "jobs of DMA of 4 KiB to 16 MiB between segments: waited for, started before; stores, memcpy",
        run: dma::run,
    },
    Bench {
        name: "group",
        about: "64 B to a group of 8 holders by one store, to 8 segments by a store each; until all have it",
        run: group::run,
    },
    Bench {
        name: "rpc-round-trip",
        about: "10 B and 100 B there and back between two processes: our RPC, bare copy, every rival",
        run: rpc_round_trip::run,
    },
    Bench {
        name: "rpc-rate",
        about: "32 B calls and answers a second of one client, 16 to 512 outstanding",
        run: rpc_rate::run,
    },
    Bench {
        name: "rpc-ring",
        about: "32 B calls through rings of 16 to 16,384 lines, one and a ring of them outstanding",
        run: rpc_ring::run,
    },
    Bench {
        name: "key-value",
        about: "GETs of 16 B keys and 32 B values, 1 to 256 outstanding: beeline kv, memcached, redis",
        run: key_value::run,
    },
    Bench {
        name: "kv-fill",
        about: "GETs of one client while another fills the store with 1 million items (--items), and while it replaces them",
        run: kv_fill::run,
    },
    Bench {
        name: "wire-round-trip",
        about: "10 B and 100 B over veth between two network namespaces and back: our RPC, kernel UDP",
        run: wire_round_trip::run,
    },
    Bench {
        name: "ip-round-trip",
        about: "10 B and 100 B of UDP between two network namespaces and back: over veth, and over `beeline ip up` of either kind",
        run: ip_round_trip::run,
    },
    Bench {
        name: "nic-one-way",
        about: "64 B frames through the NIC process and back, one at a time: mmio, kpio, descriptor",
        run: nic_one_way::run,
    },
    Bench {
        name: "nic-rate",
        about: "64 B frames in bursts onto the NIC's wire, and there and back: mmio, kpio, descriptor",
        run: nic_rate::run,
    },
    Bench {
        name: "notification",
        about: "a notification to another process and back, polled, asleep, by callback: ours, eventfds, packet sockets",
        run: wake_up::run,
    },
    Bench {
        name: "interrupt",
        about: "an interrupt of another member of a fabric and one back, with a message and without, polled and asleep: ours, eventfds, the bare line",
        run: wake_up::run_interrupts,
    },
    Bench {
        name: "waiter",
        about: "one thread that waits for 1 to 1,000 windows, one or all of them busy: a set, epoll; eventfds, sockets",
        run: waiter::run,
    },
    Bench {
        name: "peer-death",
        about: "from kill -9 of a process to its peer seeing it as dead, also when its forked child lives",
        run: peer_death::run,
    },
    Bench {
        name: "watch-latency",
        about: "from kill -9 of a peer, and of a host of a NIC, to its death being seen, idle and under attacks",
        run: watch_latency::run,
    },
    Bench {
        name: "frames-under-attack",
        about: "64 B frames between two ports of a NIC while a third one keeps it busy: with and without waits for a core",
        run: frames_under_attack::run,
    },
    Bench {
        name: "connect",
        about: "connect, a first message and close: window, window in an arena, Unix stream socket, TCP over loopback",
        run: connect::run,
    },
    Bench {
        name: "segment",
        about: "a segment of 4 KiB made, connected to, mapped, stored into and removed by two processes: ours, a page of a memfd; checks of a sequence, barriers",
        run: segment::run,
    },
    Bench {
        name: "segment-round-trip",
        about: "4 B, 8 B and 64 B there and back through segments of SISCI, and one store until it is seen: stores, SCIMemCpy; bare line, UCX, libfabric",
        run: sisci::run_round_trips,
    },
    Bench {
        name: "segment-stream",
        about: "64 B messages streamed into a segment of SISCI: stores, SCIMemCpy; bare stores, UCX, libfabric",
        run: sisci::run_streams,
    },
    Bench {
        name: "sisci",
        about: "SISCI by size: sent, there and back, TCP beside it; DMA and what it leaves of the CPU; interrupts (--html FILE draws it)",
        run: sisci::run,
    },
    Bench {
        name: "sockets-programs",
        about: "redis, memcached, nginx, pgbench, iperf3, sockperf, connects, idle connections: natively and both ends by `beeline run`",
        run: sockets_programs::run,
    },
    Bench {
        name: "sockets-fail-over",
        about: "how long a stream stands still when its path fails and comes back: windows ordered down, windows written over; MPTCP over two wires",
        run: fail_over::run,
    },
    Bench {
        name: "simulation",
        about: "packets and events a second that virtual time does in real time, on one core and on two",
        run: simulation::run,
    },
];

/// Runs benches one after the other. One that fails spoils no other: it is in [`Report::failed`], and what the others measured
/// before and after it stands.
pub fn run_all(benches: &[&Bench], settings: &Settings, mut starts: impl FnMut(&Bench)) -> Report {
    let mut report = Report::default();
    for bench in benches {
        starts(bench);
        match (bench.run)(settings) {
            Ok(measured) => report.append(measured),
            Err(error) => {
                let mut why = with_causes(&error);
                if let Some(remedy) = error.remedy() {
                    why.push_str("; try: ");
                    why.push_str(&remedy);
                }
                report.failed.push(Failed { bench: bench.name.to_owned(), why });
            }
        }
    }
    report
}

/// The bench of this name.
///
/// # Errors
/// [`BenchError::Unknown`].
pub fn find(name: &str) -> Result<&'static Bench, BenchError> {
    BENCHES.iter().find(|bench| bench.name == name).ok_or_else(|| BenchError::Unknown(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_that_fails_spoils_no_other() -> Result<(), BenchError> {
        fn noted(note: &str) -> Result<Report, BenchError> {
            Ok(Report { notes: vec![note.to_owned()], ..Report::default() })
        }
        let good = |name, run| Bench { name, about: "", run };
        let benches = [
            good("first", |_| noted("before")),
            good("second", |_| Err(BenchError::Unknown("second".to_owned()))),
            good("third", |_| noted("after")),
        ];
        let mut started = Vec::new();
        let all: Vec<&Bench> = benches.iter().collect();
        let report = run_all(&all, &Settings::quick()?, |bench| started.push(bench.name));
        assert_eq!(started, ["first", "second", "third"]);
        assert_eq!(report.notes, ["before", "after"]);
        let failed: Vec<&str> = report.failed.iter().map(|failed| failed.bench.as_str()).collect();
        assert_eq!(failed, ["second"]);
        assert!(crate::to_table(&report).contains("FAIL  second: "), "{}", crate::to_table(&report));
        Ok(())
    }

    #[test]
    fn names_are_found_once() {
        for bench in BENCHES {
            assert_eq!(find(bench.name).map(|found| found.name).ok(), Some(bench.name));
            assert_eq!(BENCHES.iter().filter(|other| other.name == bench.name).count(), 1);
        }
        assert!(matches!(find("nothing"), Err(BenchError::Unknown(_))));
    }
}
