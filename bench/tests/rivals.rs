//! Rivals in processes of their own: each that is installed here really gives requests back, and each that is not says
//! what to install. No times are looked at.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use beeline_bench::echo::{BARE_COPY, Launch, Pair, RPC};
use beeline_bench::kv::{Keys, OwnClient, get_rate};
use beeline_bench::rivals::{self, Found, ON_ONE_MACHINE, OVER_A_WIRE, Workshop};
use beeline_bench::{
    BenchError, Bound, Settings, key_value, rpc_rate, rpc_ring, rpc_round_trip, sisci, wire_round_trip,
};
use beeline_bench_echo::Job;
use beeline_floor::Cores;
use beeline_floor::rounds::Keep;
use beeline_session::Program;

fn program() -> Program {
    Program::at(env!("CARGO_BIN_EXE_beeline-bench"))
}

/// Held by the test that runs: sides poll, and those of two tests would take the cores from each other.
static CORES: Mutex<()> = Mutex::new(());

/// Few rounds of few trips, and the cores for as long as they are held; `None` where two sides cannot have a core each.
fn settings() -> Option<(Settings, MutexGuard<'static, ()>)> {
    let settings = Settings::quick().ok()?;
    let settings = Settings { rounds: 2, trip_thousands: 1, program: program(), keep: Keep::All, ..settings };
    // What another test left broken is nothing that this one shares.
    Some((settings, CORES.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Both sides compare every byte, so trips that are made were right.
fn makes_trips(launch: &Launch, cores: Cores) {
    let mut pair = Pair::start(launch, cores).unwrap();
    for (bytes, trips) in [(10, 20), (100, 30), (10, 1)] {
        let ticks = pair.run(Job { bytes, warm_up: 3, trips }).unwrap();
        assert_eq!(ticks.len() as u64, trips, "{}: {bytes} B", pair.name());
        assert!(ticks.iter().all(|ticks| *ticks > 0), "{}: {bytes} B", pair.name());
    }
    pair.stop().unwrap();
}

#[test]
fn every_rival_echoes_or_says_what_to_install() {
    let Some((settings, _cores)) = settings() else { return };
    let workshop = Workshop::new(&program()).unwrap();
    for rival in ON_ONE_MACHINE.iter().chain(OVER_A_WIRE) {
        match workshop.find(rival).unwrap() {
            Found::Here(launch) => makes_trips(&launch, settings.cores),
            Found::Missing(why) => {
                println!("{}: n/a: {why}", rival.name);
                assert!(can_be_got(&why), "{why}");
            }
        }
    }
}

#[test]
fn our_calls_and_the_bare_copy_go_round_between_processes() {
    let Some((settings, _cores)) = settings() else { return };
    for role in [RPC, BARE_COPY] {
        makes_trips(&Launch::role(role, &program(), role), settings.cores);
    }
}

#[test]
fn calls_by_the_dozen_all_come_back() {
    let Some((settings, _cores)) = settings() else { return };
    let report = rpc_rate::run(&settings).unwrap();
    assert_eq!(report.figures.len(), 4);
    assert!(report.figures.iter().all(|figure| figure.rounds.len() == 2 && figure.rounds[0] > 0.0));
    assert_eq!(report.checks[0].bound, Bound::AtLeastMillions(20.0));
}

#[test]
fn calls_go_round_through_rings_of_every_size() {
    let Some((settings, _cores)) = settings() else { return };
    let report = rpc_ring::run(&settings).unwrap();
    let (latencies, rates) = report.figures.split_at(7);
    assert!(latencies.iter().all(|figure| figure.samples.len() == 2_000 && figure.rounds.len() == 2));
    assert!(rates.iter().all(|figure| figure.rounds.len() == 2 && figure.rounds[0] > 0.0));
    assert_eq!(
        (&*latencies[0].name, &*rates[6].name),
        ("32 B, 16 lines", "32 B, 16384 lines, 1024 outstanding")
    );
}

#[test]
fn a_program_without_the_side_is_an_error() {
    let Some((settings, _cores)) = settings() else { return };
    let outcome = Pair::start(&Launch::role("nobody", &program(), "nobody"), settings.cores);
    assert!(matches!(&outcome, Err(BenchError::Rival { rival, .. }) if rival == "nobody"), "{outcome:?}");
}

#[test]
fn the_row_has_a_figure_or_a_reason_for_every_rival() {
    let Some((settings, _cores)) = settings() else { return };
    let report = rpc_round_trip::run(&settings).unwrap();
    // Ours, the floor and the rivals, of two sizes each.
    assert_eq!(report.figures.len() / 2 - 2 + report.missing.len(), ON_ONE_MACHINE.len());
    assert_eq!(
        (&*report.figures[0].name, &*report.figures[3].name),
        ("beeline RPC, 10 B", "bare copy, 100 B")
    );
    assert!(report.figures.iter().all(|figure| figure.rounds.len() == 2));
    let slowest = report.figures.iter().map(|figure| figure.count).min().unwrap();
    assert!(
        report.figures.iter().all(|figure| figure.samples.len() as u64 == figure.count * 2) && slowest > 0
    );
    assert_eq!(report.checks.len(), report.figures.len() - 2 + 1);
    assert_eq!(report.checks[0].bound, Bound::AtMost(1.5));
    assert_eq!(report.checks[0].target, "beeline RPC, 10 B / bare copy, 10 B");
    assert!(report.checks[1..report.checks.len() / 2].iter().all(|v| v.bound == Bound::AtMost(1.0)));
}

#[test]
fn the_row_over_a_wire_has_figures_or_a_reason() {
    let Some((settings, _cores)) = settings() else { return };
    let report = wire_round_trip::run(&settings).unwrap();
    for missing in &report.missing {
        println!("{}: n/a: {}", missing.name, missing.why);
        assert!(!missing.why.is_empty());
    }
    let paths = OVER_A_WIRE.len() + 2;
    if report.missing.iter().all(|missing| missing.name != "every path") {
        assert_eq!(report.figures.len() + 2 * report.missing.len(), 2 * paths);
    }
    assert!(report.figures.iter().all(|figure| figure.samples.len() as u64 == 2 * figure.count));
}

#[test]
fn every_client_kind_of_every_key_value_server_gets_every_value() {
    let Some((settings, _cores)) = settings() else { return };
    let (keys, folder) = (Keys::new(), tempfile::tempdir().unwrap());
    let mut own = OwnClient::start(&program(), settings.cores.second, &keys).unwrap();
    for (depth, group) in [(1, 1), (8, 4), (256, 256)] {
        assert!(get_rate(&mut own, &keys, depth, group, 16_384).unwrap() > 0.0);
    }
    drop(own);
    for rival in &key_value::RIVALS {
        let Some(server) = (rival.serve)(settings.cores.second, folder.path()).unwrap() else {
            println!("{}: n/a: {}", rival.name, rival.package);
            continue;
        };
        for kind in rival.clients {
            let mut client = (kind.connect)(server.socket()).unwrap();
            // Whole laps, so that every key is asked for.
            for (depth, group) in [(1, 1), (8, 4), (256, 256)] {
                let rate = get_rate(client.as_mut(), &keys, depth, group, 16_384).unwrap();
                assert!(rate > 0.0, "{} {}", rival.name, kind.name);
            }
        }
    }
}

#[test]
fn the_key_value_row_has_a_figure_for_every_depth() {
    let Some((settings, _cores)) = settings() else { return };
    let report = key_value::run(&settings).unwrap();
    let here = key_value::RIVALS.len() - report.missing.len();
    // Ours besides.
    assert_eq!(report.figures.len(), (here + 1) * key_value::DEPTHS.len());
    let bounds: Vec<_> = report.checks.iter().map(|check| check.bound).collect();
    assert_eq!(bounds, [Bound::AtLeast(20.0), Bound::AtLeast(1.0)].repeat(here));
    assert!(report.figures.iter().all(|figure| figure.rounds.len() == 2 && figure.rounds[0] > 0.0));
    assert!(report.missing.iter().all(|missing| missing.why.starts_with("`apt-get install ")));
}

/// Whether what is missing says how to get it.
fn can_be_got(why: &str) -> bool {
    ["`apt-get install ", "`make bench`", "build it from "].iter().any(|way| why.contains(way))
}

#[test]
fn messages_and_streams_into_memory_arrive_or_say_what_to_install() {
    let Some((settings, _cores)) = settings() else { return };
    let workshop = Workshop::new(&program()).unwrap();
    let root = tempfile::tempdir().unwrap();
    let messages = [rivals::BY_STORES, rivals::BY_MEM_CPY, rivals::BARE];
    let messages = messages.iter().chain(rivals::INTO_MEMORY);
    let streams = [rivals::STREAMS_BY_STORES, rivals::STREAMS_BY_MEM_CPY, rivals::BARE_STREAMS];
    let streams = streams.iter().chain(rivals::STREAMS_INTO_MEMORY);
    let seen = [rivals::STORE_SEEN, rivals::BARE_SEEN];
    let bursts =
        [rivals::STORES_IN_BURSTS, rivals::BARE_IN_BURSTS, rivals::MEM_CPY_IN_BURSTS, rivals::PUTS_IN_BURSTS];
    let messages = messages.chain(&bursts).map(|rival| (rival, &[4, 8, 64, 4096][..]));
    let streams = streams.map(|rival| (rival, &[8, 64, 4096][..]));
    for (rival, sizes) in messages.chain(streams).chain(seen.iter().map(|rival| (rival, &[8][..]))) {
        let launch = match workshop.find(rival).unwrap() {
            Found::Here(launch) => launch.env("BEELINE_ROOT", root.path().to_str().unwrap()),
            Found::Missing(why) => {
                println!("{}: n/a: {why}", rival.name);
                assert!(can_be_got(&why), "{why}");
                continue;
            }
        };
        let mut pair = Pair::start(&launch, settings.cores).unwrap();
        for bytes in sizes {
            let ticks = pair.run(Job { bytes: *bytes, warm_up: 1, trips: 5 }).unwrap();
            assert!(ticks.len() == 5 && ticks.iter().all(|ticks| *ticks > 0), "{}: {bytes} B", rival.name);
        }
        pair.stop().unwrap();
    }
}

#[test]
fn rows_of_segments_have_a_figure_or_a_reason_for_every_path() {
    let Some((settings, _cores)) = settings() else { return };
    let streams = sisci::run_streams(&settings).unwrap();
    // Ours by stores and by copies, three others, and two by the programs of their own.
    assert_eq!(streams.figures.len() + streams.missing.len(), 7);
    assert!(streams.missing.iter().all(|missing| can_be_got(&missing.why)), "{:?}", streams.missing);
    let trips = sisci::run_round_trips(&settings).unwrap();
    // Ours, which come together or not at all, beside rivals in our loop and in their own programs'.
    let is_rival = |name: &str| ["UCX", "shm", "ucx_", "fi_"].iter().any(|part| name.contains(part));
    let ours = trips.figures.iter().filter(|figure| !is_rival(&figure.name));
    assert!([0, 14].contains(&ours.count()));
    let suite = sisci::run(&settings).unwrap();
    assert!(suite.figures.iter().any(|figure| figure.name == "transfer by DMA, in calls, 64 B"));
    assert!(suite.figures.iter().any(|figure| figure.name == "there and back by TCP over loopback, 4096 B"));
    assert!(sisci::render(&suite, "beeline-bench run sisci").contains("<svg"));
}
