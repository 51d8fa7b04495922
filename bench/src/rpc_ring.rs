//! What the size of a ring costs: latency and rate of calls through windows of 16 to 16,384 lines.
//!
//! A large ring takes long bursts and a small one stays in the caches; the RAMCloud/HiStar notes (R bullets) expect a
//! large one to increase latency.
//! Both windows of a client have the same size. One call at a time gives the latency; as many as there are lines, 1024 at
//! most, give the rate.

use beeline_bench_echo::{EchoClient, Job, round_trips};
use beeline_mmio::clock::Calibration;

use crate::echo::{Launch, RPC, RpcClient, ServerHalf};
use crate::figure::Row;
use crate::placed::Placed;
use crate::rpc_rate::{BYTES, failed, rate};
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};
use beeline_floor::{MEMORY, on_core};

const BENCH: &str = "rpc-ring";
/// Lines of a window.
const LINES: [u32; 7] = [16, 64, 256, 512, 1024, 4096, 16_384];
/// Most calls outstanding.
const MOST_OUTSTANDING: u32 = 1024;

/// One size of ring: both sides, and what they took.
struct Ring {
    lines: u32,
    client: RpcClient,
    server: ServerHalf,
    latencies: Latencies,
    rates: Vec<f64>,
}

/// Runs every size.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let (trips, calls) =
        (settings.trips(), settings.stream_messages().next_multiple_of(MOST_OUTSTANDING.into()));
    let (rings, placed) = on_core::<_, BenchError>(settings.cores.first, || {
        let calibration = Calibration::measure();
        let rings = LINES.into_iter().map(|lines| Ring::open(settings, lines));
        let mut rings: Vec<Ring> = rings.collect::<Result<_, _>>()?;
        let placed = Placed::run(settings, || {
            rings.iter_mut().try_for_each(|ring| ring.round(trips, calls, &calibration))
        })?;
        Ok((rings, placed))
    })?;
    let (mut latencies, mut rates) = (Vec::new(), Vec::new());
    for ring in rings {
        let [latency, rate] = ring.figures(trips, calls)?;
        latencies.push(latency);
        rates.push(rate);
    }
    Ok(placed.report(BENCH, &[latencies, rates].concat(), |figures| {
        let largest_to_smallest = |figures: &[Figure]| match figures {
            [smallest, .., largest] => Some(Check::ratio(BENCH, largest, smallest, Bound::Shown)),
            _ => None,
        };
        figures.chunks(LINES.len()).filter_map(largest_to_smallest).collect()
    }))
}

impl Ring {
    fn open(settings: &Settings, lines: u32) -> Result<Self, BenchError> {
        let launch = Launch::role("beeline RPC", &settings.program, &format!("{RPC},{lines}"));
        let server = ServerHalf::start(&launch, settings.cores.second)?;
        let client = RpcClient::connect(server.address(), lines).map_err(|error| failed(&error))?;
        Ok(Ring { lines, client, server, latencies: Latencies::new(), rates: Vec::new() })
    }

    fn round(&mut self, trips: u64, calls: u64, calibration: &Calibration) -> Result<(), BenchError> {
        let job = Job { bytes: BYTES, warm_up: trips / 20, trips };
        self.server.begin(job)?;
        self.client.begin(BYTES).map_err(|error| failed(&error))?;
        let ticks = round_trips(&mut self.client, job).map_err(|error| failed(&error))?;
        self.server.finish()?;
        let events: Vec<f64> = ticks.into_iter().map(|ticks| calibration.to_ns(ticks)).collect();
        self.latencies.add_round(&events);
        self.server.begin(Job { bytes: BYTES, warm_up: 0, trips: calls })?;
        let outstanding = self.outstanding();
        self.rates.push(rate(&mut self.client.0, outstanding.into(), calls)?);
        self.server.finish()
    }

    fn outstanding(&self) -> u32 {
        self.lines.min(MOST_OUTSTANDING)
    }

    fn figures(self, trips: u64, calls: u64) -> Result<[Figure; 2], BenchError> {
        let names = [
            format!("{BYTES} B, {} lines", self.lines),
            format!("{BYTES} B, {} lines, {} outstanding", self.lines, self.outstanding()),
        ];
        let row = |name, count| {
            let (kernel, size_bytes) = ("cached", BYTES as u32);
            Row { bench: BENCH, name, kernel, memory: MEMORY, size_bytes, count }
        };
        let Ring { client, server, latencies, rates, .. } = self;
        drop(client);
        server.stop()?;
        Ok([Figure::latency(row(&names[0], trips), latencies), Figure::rate(row(&names[1], calls), rates)])
    }
}
