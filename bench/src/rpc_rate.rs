//! Calls a second of one client with many outstanding: 32 bytes there, 32 bytes back, both sides polling, a core each.
//!
//! The client begins calls and takes answers in groups of half its depth, so that the server has one group while it has
//! the other; the server is another process and answers in its polling thread. Every answer counts into a sum that
//! depends on their order. Rings have 512 lines, the best of `rpc_ring.rs`.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use beeline_bench_echo::Job;
use beeline_rpc::{Started, shm};

use crate::check::fastest;
use crate::echo::{ECHO, Launch, RPC, RpcClient, ServerHalf};
use crate::figure::Row;
use crate::placed::Placed;
use crate::{BenchError, Check, Figure, Report, Settings};
use beeline_floor::{Source, Sum, on_core};
use beeline_session::IdleWatch;

const BENCH: &str = "rpc-rate";
/// Bytes of a request and of its answer.
pub(crate) const BYTES: usize = 32;
/// Lines of both windows of a client with many calls outstanding: 32 KiB, which stay in a core's first cache. Twice as
/// many cost a third of the rate here.
pub(crate) const PIPELINE_LINES: u32 = 512;
/// Numbers of calls outstanding.
const DEPTHS: [u64; 4] = [16, 64, 256, 512];
/// How long no answer may come before the row gives up: longer than a busy machine keeps the server from its core.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Millions a second that the fastest of them is to reach.
const LEAST_MILLIONS: f64 = 20.0;

/// Runs every depth.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let launch = Launch::role("beeline RPC", &settings.program, &format!("{RPC},{PIPELINE_LINES}"));
    let mut server = ServerHalf::start(&launch, settings.cores.second)?;
    // Whole depths of every one.
    let calls = settings.stream_messages().next_multiple_of(DEPTHS[DEPTHS.len() - 1]);
    let (rounds, placed) = on_core::<_, BenchError>(settings.cores.first, || {
        let mut client =
            RpcClient::connect(server.address(), PIPELINE_LINES).map_err(|error| failed(&error))?;
        let mut rounds = DEPTHS.map(|_| Vec::new());
        let placed = Placed::run(settings, || {
            for (depth, rates) in DEPTHS.into_iter().zip(&mut rounds) {
                server.begin(Job { bytes: BYTES, warm_up: 0, trips: calls })?;
                rates.push(rate(&mut client.0, depth, calls)?);
                server.finish()?;
            }
            Ok(())
        })?;
        Ok((rounds, placed))
    })?;
    server.stop()?;
    let figure = |(depth, rates)| {
        let name = format!("beeline RPC, {BYTES} B, {depth} outstanding");
        let (memory, size_bytes) = (beeline_floor::MEMORY, BYTES as u32);
        let row = Row { bench: BENCH, name: &name, kernel: "-", memory, size_bytes, count: calls };
        Figure::rate(row, rates)
    };
    let figures: Vec<_> = DEPTHS.into_iter().zip(rounds).map(figure).collect();
    Ok(placed.report(BENCH, &figures, |figures| {
        fastest(figures).map(|best| Check::rate(BENCH, best, LEAST_MILLIONS)).into_iter().collect()
    }))
}

/// Makes the calls, whole depths of them, and gives how many a second. A window has at least as many lines as the depth.
pub(crate) fn rate(client: &mut shm::Client, depth: u64, calls: u64) -> Result<f64, BenchError> {
    let group = depth / 2;
    let (source, mut sum) = (Source::new(), Sum::default());
    let (mut begun, mut ended) = (0, 0);
    let started = Instant::now();
    while ended < calls {
        while begun < calls && begun - ended + group <= depth {
            for call in begun..begun + group {
                begin(client, source.message(call), call)?;
            }
            begun += group;
        }
        let enough = ended + group;
        let mut idle = IdleWatch::new();
        while ended < enough {
            let Some(completion) = client.poll() else {
                idle.idle(|waited| still_makes_sense(waited, || format!("answer after {ended} of {calls}")))?;
                continue;
            };
            let answer = completion.result.map_err(|error| failed(&error))?;
            if answer.len() != BYTES {
                return Err(failed(&format!("an answer of {} bytes", answer.len())));
            }
            sum.add((0..BYTES / 8).fold(0, |all, word| all ^ answer.word(word)));
            ended += 1;
        }
    }
    let took = started.elapsed();
    source.check("beeline RPC", sum, calls, BYTES / 8)?;
    Ok(beeline_floor::rate(calls, took))
}

/// Fails once nothing has come for [`TIMEOUT`], so that a lost call does not hang the bench.
pub(crate) fn still_makes_sense(waited: Duration, what: impl FnOnce() -> String) -> Result<(), BenchError> {
    if waited < TIMEOUT {
        return Ok(());
    }
    Err(failed(&format!("no {} for {} s", what(), TIMEOUT.as_secs())))
}

#[inline(always)]
fn begin(client: &mut shm::Client, message: &[u8; 64], call: u64) -> Result<(), BenchError> {
    let request = message.first_chunk::<BYTES>().expect("a message is longer");
    let mut idle = IdleWatch::new();
    loop {
        match client.start(ECHO, request, None).map_err(|error| failed(&error))? {
            Started::Call(_) => return Ok(()),
            // Answers wait for nothing of this side, so there will be room while there is a server.
            Started::Full => {
                spin_loop();
                idle.idle(|waited| still_makes_sense(waited, || format!("room for call {call}")))?;
            }
        }
    }
}

#[cold]
pub(crate) fn failed(what: &dyn std::fmt::Display) -> BenchError {
    BenchError::Rival { rival: "beeline RPC".to_owned(), what: what.to_string() }
}
