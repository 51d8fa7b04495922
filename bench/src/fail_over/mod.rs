//! How long a stream stands still when its path fails and comes back, by one script on every path: MPTCP over two wires of which one goes down, windows that
//! are ordered down, windows that are written over. The programs are the same on all, and use plain sockets.
//!
//! A round is a pair of new processes on each path, and four connections one after the other, each with its faults at the same times. What is measured is the
//! longest gap between two arrivals that the receiver saw, of those that began at a change or within 100 ms behind it. TCP over loopback, to which nothing happens, is what the machine itself does to such a
//! stream. Each run checks that its path was the one that is meant; the receiver checks each byte.

mod ends;
mod rival;
#[path = "../../../host/sockets/tests/support/scribbles.rs"]
mod scribbles;
mod script;

use std::fs;
use std::time::{Duration, Instant};

pub(crate) use ends::{flow, now_ns, sink};

use crate::figure::Row;
use crate::programs::{Ended, Ground, Job, Running, Share, Tools, Way, free_port};
use crate::{BenchError, Bound, Check, Figure, Missing, Report, Settings};
use rival::Wires;
use scribbles::Windows;
use script::{CONNECTIONS, Changes, DOWN_AT, LASTS, Said, Stalls, UP_AT};

const BENCH: &str = "sockets-fail-over";
/// A round takes twenty seconds for each path.
const MOST_ROUNDS: u32 = 3;
const LIBRARY: &str = "libbeeline_sockets.so";
/// Between two looks at what the receiver says.
const PAUSE: Duration = Duration::from_millis(10);
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// Slots of connections that may be in use at once, with those that are about to be.
const SLOTS: u64 = 6;
/// Milliseconds that a change of path may take at most.
const STALL_MS: f64 = 10.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// TCP over loopback, and nothing changes.
    Untouched,
    /// MPTCP, whose first wire goes down.
    Mptcp,
    /// Windows, by `beeline sockets down` and `up`.
    Ordered,
    /// Windows that are written over; copies are kept.
    Overwritten,
}

const PATHS: [Path; 4] = [Path::Untouched, Path::Mptcp, Path::Ordered, Path::Overwritten];

/// Runs every path in turn.
///
/// # Errors
/// A program fails; a path was another than the one that is meant. What is not there is in the report.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let beside = |name: &str| settings.program.path().with_file_name(name);
    let tools = Tools { beeline: beside("beeline"), library: beside(LIBRARY) };
    let mut report = Report::default();
    let mut missing = |name: &str, why: String| {
        report.missing.push(Missing { bench: BENCH.to_owned(), name: name.to_owned(), why });
    };
    if let Some(not_there) = [&tools.beeline, &tools.library].into_iter().find(|path| !path.is_file()) {
        missing("windows", format!("{} is not built: `make build`", not_there.display()));
        return Ok(report);
    }
    let has_rival = rival::is_there()?.map_err(|why| missing("MPTCP", why)).is_ok();
    let mut rounds: Vec<(Path, Vec<Stalls>)> = PATHS
        .into_iter()
        .filter(|path| has_rival || *path != Path::Mptcp)
        .map(|path| (path, Vec::new()))
        .collect();
    for _ in 0..settings.rounds.min(MOST_ROUNDS) {
        for (path, stalls) in &mut rounds {
            stalls.push(measure(*path, settings, &tools)?);
        }
    }
    let figures: Vec<Vec<Figure>> = rounds.iter().map(|(path, stalls)| path.figures(stalls)).collect();
    let of = |wanted: Path| rounds.iter().position(|(path, _)| *path == wanted).map(|at| &figures[at]);
    for path in [Path::Ordered, Path::Overwritten] {
        let Some(ours) = of(path) else { continue };
        report.checks.extend(ours.iter().map(|figure| Check::limit(BENCH, figure, STALL_MS)));
        let rivals = of(Path::Mptcp).into_iter().flatten();
        report.checks.extend(
            ours.iter()
                .zip(rivals)
                .map(|(ours, rival)| Check::p99_ratio(BENCH, ours, rival, Bound::AtMost(1.0))),
        );
    }
    report.figures = figures.into_iter().flatten().collect();
    Ok(report)
}

impl Path {
    fn way(self) -> Way {
        match self {
            Path::Untouched | Path::Mptcp => Way::Native,
            Path::Ordered | Path::Overwritten => Way::Accelerated,
        }
    }

    /// What happens when it goes down, and when it comes back.
    fn changes(self) -> [Option<&'static str>; 2] {
        match self {
            Path::Untouched => [Some("TCP over loopback, nothing changes"), None],
            Path::Mptcp => {
                [Some("MPTCP over two wires, one goes down"), Some("MPTCP over two wires, it comes back")]
            }
            Path::Ordered => [Some("windows, `beeline sockets down`"), Some("windows, `beeline sockets up`")],
            // For good: nothing comes back.
            Path::Overwritten => [Some("windows with copies, written over"), None],
        }
    }

    fn figures(self, rounds: &[Stalls]) -> Vec<Figure> {
        let sides: [fn(&Stalls) -> &Vec<f64>; 2] = [|stalls| &stalls.down, |stalls| &stalls.up];
        let named = self.changes().into_iter().zip(sides).filter_map(|(name, side)| Some((name?, side)));
        named
            .map(|(name, side)| {
                let row = Row {
                    bench: BENCH,
                    name,
                    kernel: "-",
                    memory: "-",
                    size_bytes: 256,
                    count: CONNECTIONS as u64,
                };
                Figure::delay(row, rounds.iter().map(|stalls| side(stalls).clone()).collect())
            })
            .collect()
    }
}

/// What a round runs on.
struct Stage {
    path: Path,
    ground: Ground,
    wires: Option<Wires>,
}

impl Stage {
    fn job(&self, settings: &Settings, end: usize, port: u16) -> Job {
        let program = settings.program.path().to_string_lossy().into_owned();
        let (role, core) = [("flow", settings.cores.first), ("sink", settings.cores.second)][end];
        let job = match &self.wires {
            Some(wires) => wires.job(end, &program),
            None => Job::new(&program),
        };
        let host = self.wires.as_ref().map_or("127.0.0.1".to_owned(), |wires| wires.receiver_s_address());
        let job = job.arg("sockets-client").arg("--host").arg(host).arg(role).arg(port).on(Some(core));
        if self.path == Path::Overwritten { job.env("BEELINE_SOCKETS_RETAIN", "copy") } else { job }
    }

    fn down(&self, receiver: &Running) -> Result<(), BenchError> {
        match self.path {
            Path::Untouched => Ok(()),
            Path::Mptcp => self.wires.iter().try_for_each(|wires| wires.set("down")),
            Path::Ordered => self.ground.beeline(&["sockets", "down"]),
            Path::Overwritten => {
                let windows =
                    members(receiver.pid()).into_iter().find_map(|pid| Windows::of(&pid.to_string()));
                let windows = windows.ok_or_else(|| wrong(self.path, "has no windows"))?;
                (0..SLOTS).for_each(|slot| windows.spoil(slot));
                Ok(())
            }
        }
    }

    fn up(&self) -> Result<(), BenchError> {
        match self.path {
            Path::Untouched | Path::Overwritten => Ok(()),
            Path::Mptcp => self.wires.iter().try_for_each(|wires| wires.set("up")),
            Path::Ordered => self.ground.beeline(&["sockets", "up"]),
        }
    }

    /// Fails where the bytes did not go as is meant.
    fn check(&self, ended: &[Ended; 2], total: u64) -> Result<(), BenchError> {
        if let Some(wires) = &self.wires {
            return wires.check();
        }
        // Of five seconds three, one.
        let wanted = match self.path {
            Path::Untouched | Path::Mptcp => return Ok(()),
            Path::Ordered => 0.4..0.75,
            Path::Overwritten => 0.1..0.35,
        };
        let mut share = Share::default();
        ended.iter().for_each(|ended| share += ended.share());
        // Either end counts them.
        let by_windows = share.by_windows as f64 / (2 * total) as f64;
        let is_broken = share.reasons.iter().any(|why| why.contains("written over"));
        let is_meant = wanted.contains(&by_windows)
            && is_broken == (self.path == Path::Overwritten)
            && share.connections == 2 * CONNECTIONS as u64;
        is_meant
            .then_some(())
            .ok_or_else(|| wrong(self.path, &format!("{by_windows} of its bytes went by windows: {share:?}")))
    }
}

fn wrong(path: Path, what: &str) -> BenchError {
    BenchError::Rival { rival: format!("{path:?}"), what: what.to_owned() }
}

/// A round on one path.
fn measure(path: Path, settings: &Settings, tools: &Tools) -> Result<Stalls, BenchError> {
    let wires = match path {
        Path::Mptcp => Some(Wires::new()?.map_err(|why| wrong(path, &why))?),
        _ => None,
    };
    let stage = Stage { path, ground: Ground::new(path.way(), tools)?, wires };
    let port = free_port()?;
    let mut receiver = stage.ground.start(stage.job(settings, 1, port))?;
    std::thread::sleep(Duration::from_millis(500));
    let mut sender = stage.ground.start(stage.job(settings, 0, port))?;
    let mut changes = Vec::new();
    for number in 0..CONNECTIONS {
        let begun_ns = wait_for(number, [&mut receiver, &mut sender])?;
        sleep_until(begun_ns, DOWN_AT);
        let down_ns = now_ns();
        stage.down(&receiver)?;
        sleep_until(begun_ns, UP_AT);
        let up_ns = now_ns();
        stage.up()?;
        changes.push(Changes { down_ns, up_ns });
    }
    let ended = [sender.wait(2 * LASTS)?, receiver.wait(LASTS)?];
    if let Some(bad) = ended.iter().find(|ended| !ended.status.success()) {
        return Err(wrong(path, &format!("{}: {}", bad.status, bad.err)));
    }
    let said = Said::read(&ended[1].out);
    stage.check(&ended, said.total)?;
    Ok(said.stalls(&changes))
}

/// When the connection of this number began.
fn wait_for(number: usize, ends: [&mut Running; 2]) -> Result<u64, BenchError> {
    let (until, [receiver, sender]) = (Instant::now() + STARTS_WITHIN, ends);
    loop {
        if let Some(begun_ns) = Said::read(&receiver.said()).begun_ns.get(number) {
            return Ok(*begun_ns);
        }
        let is_over = Instant::now() > until || !receiver.is_running()? || !sender.is_running()?;
        if is_over {
            let what = format!(
                "connection {number} does not begin: {} {}",
                receiver.complained(),
                sender.complained()
            );
            return Err(BenchError::Rival { rival: "a stream".to_owned(), what });
        }
        std::thread::sleep(PAUSE);
    }
}

fn sleep_until(begun_ns: u64, behind: Duration) {
    std::thread::sleep(Duration::from_nanos((begun_ns + behind.as_nanos() as u64).saturating_sub(now_ns())));
}

/// A process and all that it has started.
fn members(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(pid).chain(children.flat_map(members)).collect()
}
