//! How long a GET of one client takes while another one fills the store with items, and while it replaces them: `beeline kv` with one
//! worker, which answers both.
//!
//! Both clients are this thread's, so that no third thread wants a core: it keeps SETs outstanding over one connection, and starts a
//! GET over the other after every so many of them. A GET waits for the SETs that are before it in its worker, and for what
//! the store does besides: growing, while it is filled, and not while items are replaced. Values are compared. One store takes memory as
//! it grows and somewhat ahead, another one all of it at the start.
//!
//! `--items 10` fills 10 million, for which one round is enough.

use std::hint::spin_loop;

use beeline_bench_echo::Job;
use beeline_domain::{Domain, DomainConfig};
use beeline_floor::{MEMORY, on_core};
use beeline_kv::{Key, KvClient};
use beeline_mmio::clock::{self, Calibration};
use beeline_rpc::{Started, shm};
use beeline_session::IdleWatch;

use crate::echo::{KV, KV_PREALLOCATED, Launch, ServerHalf};
use crate::figure::Row;
use crate::kv::{KEY_BYTES, OWN_NAME, OWN_OFFER, VALUE_BYTES};
use crate::placed::Placed;
use crate::rpc_rate::{PIPELINE_LINES, still_makes_sense};
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

const BENCH: &str = "kv-fill";
/// SETs that wait for their answers at once.
const DEPTH: u64 = 64;
const SETS_A_GET: u64 = 32;
/// Memory of the store, in MiB, for each million items: a line for each in tables that may be half full, twice over.
const MIB_A_MILLION: u64 = 256;
/// Milliseconds within which 999 of 1000 GETs are to end.
const MOST_MS: f64 = 1.0;

/// Both clients of one store.
struct Clients {
    // Fields are dropped in order: clients leave before their server ends.
    fill: KvClient,
    probe: KvClient,
    server: ServerHalf,
}

impl Clients {
    fn start(settings: &Settings, role: &str, items: u64) -> Result<Self, BenchError> {
        let mib = (items * MIB_A_MILLION).div_ceil(1_000_000).max(64);
        let launch = Launch::role(OWN_NAME, &settings.program, &format!("{role},{mib}"));
        let mut server = ServerHalf::start(&launch, settings.cores.second)?;
        // A client asks one thing of the store when it connects, and the server answers as many calls as its job says.
        server.begin(job(2))?;
        let connect = || {
            let domain = Domain::open(&DomainConfig::named(server.address().to_owned()));
            let options = shm::ClientOptions { reply_lines: PIPELINE_LINES, ..shm::ClientOptions::default() };
            let domain = domain.map_err(|error| failed(&error))?;
            KvClient::connect(&domain, OWN_OFFER, options).map_err(|error| failed(&error))
        };
        let (fill, probe) = (connect()?, connect()?);
        server.finish()?;
        Ok(Clients { fill, probe, server })
    }

    /// Sets every item once; ticks of each GET. Items with a number below `stored` are there.
    fn set_all(&mut self, items: u64, stored: u64) -> Result<Vec<u64>, BenchError> {
        let gets = items / SETS_A_GET;
        self.server.begin(job(items + gets))?;
        let mut ticks = Vec::with_capacity(gets as usize);
        let (mut begun, mut ended, mut asked) = (0, 0, None::<(u64, u64)>);
        let mut idle = IdleWatch::new();
        while ended < items || (ticks.len() as u64) < gets {
            let mut any = false;
            if begun < items && begun - ended < DEPTH && begun / SETS_A_GET <= ticks.len() as u64 {
                let set = self.fill.start_set(key(begun), &value(begun)).map_err(|error| failed(&error))?;
                begun += u64::from(set != Started::Full);
                any |= set != Started::Full;
            }
            // Only items that have been stored are asked for.
            let there = stored.max(ended);
            if asked.is_none() && there > 0 && begun / SETS_A_GET > ticks.len() as u64 {
                let number = begun.wrapping_mul(0x9e37_79b9) % there;
                let now = clock::now_ticks();
                if self.probe.start_get(key(number)).map_err(|error| failed(&error))? != Started::Full {
                    asked = Some((number, now));
                    any = true;
                }
            }
            while let Some(set) = self.fill.poll() {
                set.result.map_err(|error| failed(&error))?;
                ended += 1;
                any = true;
            }
            if let Some((number, started)) = asked
                && let Some(get) = self.probe.poll()
            {
                ticks.push(clock::now_ticks() - started);
                let mut found = [0; VALUE_BYTES];
                match get.result.map_err(|error| failed(&error))? {
                    Some(mut body) if body.len() == VALUE_BYTES => body.copy_out(&mut found),
                    other => {
                        return Err(failed(&format!(
                            "item {number} has {:?} bytes",
                            other.map(|body| body.len())
                        )));
                    }
                };
                if found != value(number) {
                    return Err(failed(&format!("item {number} is {found:02x?}")));
                }
                (asked, any) = (None, true);
            }
            if any {
                idle.pat();
            } else {
                spin_loop();
                idle.idle(|waited| still_makes_sense(waited, || format!("answer after {ended} SETs")))?;
            }
        }
        self.server.finish()?;
        Ok(ticks)
    }
}

/// Fills stores and sets their items again.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let items = settings.fill_items();
    let mut rows = [
        ("GET while items are added", Latencies::new()),
        ("GET while items are replaced", Latencies::new()),
        ("GET while items are added, preallocated", Latencies::new()),
        ("GET while items are replaced, preallocated", Latencies::new()),
    ];
    let calibration = Calibration::measure();
    let placed = on_core::<_, BenchError>(settings.cores.first, || {
        Placed::run(settings, || {
            for (role, rows) in [KV, KV_PREALLOCATED].into_iter().zip(rows.chunks_mut(2)) {
                let mut clients = Clients::start(settings, role, items)?;
                let mut stored = 0;
                for (_, latencies) in rows {
                    let ticks = clients.set_all(items, stored)?;
                    stored = items;
                    let events: Vec<f64> = ticks.into_iter().map(|ticks| calibration.to_ns(ticks)).collect();
                    latencies.add_round(&events);
                }
                let Clients { fill, probe, server } = clients;
                drop((fill, probe));
                server.stop()?;
            }
            Ok(())
        })
    })?;
    let figures = rows.map(|(name, latencies)| {
        let (size_bytes, count) = (VALUE_BYTES as u32, items / SETS_A_GET);
        let row = Row { bench: BENCH, name, kernel: "cached", memory: MEMORY, size_bytes, count };
        Figure::latency(row, latencies)
    });
    let mut report = placed.report(BENCH, &figures, |figures| {
        let [added, replaced, preallocated, _] = figures else { return Vec::new() };
        vec![
            Check::p999_limit(BENCH, added, MOST_MS),
            Check::p999_limit(BENCH, preallocated, MOST_MS),
            Check::p99_ratio(BENCH, added, replaced, Bound::Shown),
        ]
    });
    report.notes.push(format!("{BENCH}: {items} items, {DEPTH} SETs outstanding"));
    report.notes.extend(report.figures.iter().map(worst));
    Ok(report)
}

/// The longest GET of a figure.
fn worst(figure: &Figure) -> String {
    let worst_ms = figure.samples.iter().copied().fold(0.0, f64::max) / 1e6;
    format!("{BENCH}: {}: the longest took {worst_ms:.3} ms", figure.name)
}

fn key(number: u64) -> Key {
    let mut bytes = [0; KEY_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Key::new(bytes)
}

fn value(number: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0x5a; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn job(requests: u64) -> Job {
    Job { bytes: VALUE_BYTES, warm_up: 0, trips: requests }
}

#[cold]
fn failed(what: &dyn std::fmt::Display) -> BenchError {
    BenchError::Rival { rival: OWN_NAME.to_owned(), what: what.to_string() }
}
