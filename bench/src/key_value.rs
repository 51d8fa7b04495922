//! GETs a second from key-value servers: 16-byte keys, 32-byte values, one connection, 1 to 256 outstanding.
//!
//! The client polls on the first core, the server has the second, ours and theirs. Every server is asked in each way it
//! knows, in whole and in parts of the depth, and the fastest combination at a depth, found in a short look beforehand,
//! is the one that is measured there: a rival is used as its best user would.

use std::time::Duration;

use tempfile::TempDir;

use crate::check::fastest;
use crate::figure::Row;
use crate::kv::{
    ClientKind, Keys, KvClient, KvRival, KvServer, OWN_NAME, OwnClient, get_rate, memcached, redis,
};
use crate::{BenchError, Bound, Check, Figure, Missing, Report, Settings};
use beeline_floor::{MEMORY, on_core};

const BENCH: &str = "key-value";
/// Numbers of GETs outstanding.
pub const DEPTHS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Servers that somebody else wrote.
pub static RIVALS: [KvRival; 2] = [memcached::RIVAL, redis::RIVAL];
/// Times that our rate with one outstanding is to be a rival's.
const LEAST_AT_ONE: f64 = 20.0;
/// Parts that a depth is asked for in: whole, or so that the server has one while the client has another.
const PARTS: [usize; 3] = [1, 2, 4];

/// A server, its clients, and how it is asked at each depth.
struct Contender {
    name: &'static str,
    clients: Vec<(&'static str, Box<dyn KvClient>)>,
    plans: Vec<Plan>,
    // After its clients, so that it is the last to go. Ours is its client's.
    server: Option<KvServer>,
}

/// How a contender is asked at one depth, and what came of it.
struct Plan {
    depth: usize,
    client: usize,
    group: usize,
    gets: u64,
    rates: Vec<f64>,
}

/// Runs every server that is installed.
///
/// # Errors
/// [`BenchError`]; a server that is not installed is no error.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let folder = tempfile::Builder::new().prefix("beeline-bench-").tempdir()?;
    // Servers end with the thread that starts them, so that is this one.
    let (mut servers, mut missing) = (Vec::new(), Vec::new());
    for rival in &RIVALS {
        match (rival.serve)(settings.cores.second, folder.path())? {
            Some(server) => servers.push((rival, server)),
            None => missing.push(Missing {
                bench: BENCH.to_owned(),
                name: rival.name.to_owned(),
                why: format!("`apt-get install {}`", rival.package),
            }),
        }
    }
    let figures = on_core::<_, BenchError>(settings.cores.first, move || measure(settings, servers))?;
    drop::<TempDir>(folder);
    let checks = checks_of(&figures[0], &figures[1..]);
    Ok(Report { figures: figures.concat(), missing, checks, ..Report::default() })
}

/// Figures by contender, ours first, each with one for every depth.
fn measure(
    settings: &Settings,
    servers: Vec<(&'static KvRival, KvServer)>,
) -> Result<Vec<Vec<Figure>>, BenchError> {
    let (keys, round) = (Keys::new(), settings.round_of_gets());
    let own = OwnClient::start(&settings.program, settings.cores.second, &keys)?;
    let mut contenders =
        vec![Contender::prepare(OWN_NAME, vec![("cached", Box::new(own))], None, &keys, round)?];
    for (rival, server) in servers {
        let connect = |kind: &ClientKind| Ok((kind.name, (kind.connect)(server.socket())?));
        let clients = rival.clients.iter().map(connect).collect::<Result<_, BenchError>>()?;
        contenders.push(Contender::prepare(rival.name, clients, Some(server), &keys, round)?);
    }
    for _ in 0..settings.rounds {
        for depth in 0..DEPTHS.len() {
            for contender in &mut contenders {
                contender.round(depth, &keys)?;
            }
        }
    }
    Ok(contenders.into_iter().map(Contender::figures).collect())
}

/// Checks ours against each rival: with one GET outstanding, and at the depth that is best for the rival.
fn checks_of(ours: &[Figure], rivals: &[Vec<Figure>]) -> Vec<Check> {
    let mut checks = Vec::new();
    for rival in rivals {
        let bound = Bound::AtLeast(LEAST_AT_ONE);
        checks.extend(
            ours.iter().zip(rival).take(1).map(|(own, rival)| Check::ratio(BENCH, own, rival, bound)),
        );
        if let Some(best) = fastest(rival) {
            let depth = rival.iter().position(|figure| figure.name == best.name).unwrap_or_default();
            checks.push(Check::ratio(BENCH, &ours[depth], best, Bound::AtLeast(1.0)));
        }
    }
    checks
}

impl Contender {
    /// Looks which client and group is fastest at each depth; plans rounds of about `round`.
    fn prepare(
        name: &'static str,
        mut clients: Vec<(&'static str, Box<dyn KvClient>)>,
        server: Option<KvServer>,
        keys: &Keys,
        round: Duration,
    ) -> Result<Self, BenchError> {
        let plan = |depth| Plan::fastest(&mut clients, keys, depth, round);
        let plans = DEPTHS.into_iter().map(plan).collect::<Result<_, _>>()?;
        Ok(Contender { name, clients, plans, server })
    }

    fn round(&mut self, depth: usize, keys: &Keys) -> Result<(), BenchError> {
        let plan = &mut self.plans[depth];
        let client = self.clients[plan.client].1.as_mut();
        plan.rates.push(get_rate(client, keys, plan.depth, plan.group, plan.gets)?);
        Ok(())
    }

    fn figures(self) -> Vec<Figure> {
        let Contender { name, clients, plans, server } = self;
        let memory = if server.is_some() { "kernel" } else { MEMORY };
        let figure = |plan: Plan| {
            let (depth, kind) = (plan.depth, clients[plan.client].0);
            let parts = depth / plan.group;
            let kind = if parts == 1 { kind.to_owned() } else { format!("{kind}/{parts}") };
            let name = format!("{name}, {depth} outstanding");
            let row =
                Row { bench: BENCH, name: &name, kernel: &kind, memory, size_bytes: 32, count: plan.gets };
            Figure::rate(row, plan.rates)
        };
        plans.into_iter().map(figure).collect()
    }
}

impl Plan {
    /// The client and the group that gave most in a tenth of a round each.
    fn fastest(
        clients: &mut [(&'static str, Box<dyn KvClient>)],
        keys: &Keys,
        depth: usize,
        round: Duration,
    ) -> Result<Self, BenchError> {
        let mut best = (0.0, 0, depth);
        for (number, (_, client)) in clients.iter_mut().enumerate() {
            for parts in PARTS.into_iter().filter(|parts| *parts <= depth) {
                let group = depth / parts;
                let first = get_rate(client.as_mut(), keys, depth, group, depth as u64 * 8)?;
                let gets = gets_in(round / 10, first);
                let rate = get_rate(client.as_mut(), keys, depth, group, gets)?;
                if rate > best.0 {
                    best = (rate, number, group);
                }
            }
        }
        let (rate, client, group) = best;
        Ok(Plan { depth, client, group, gets: gets_in(round, rate), rates: Vec::new() })
    }
}

/// GETs that take about this long at this rate; at least one.
fn gets_in(time: Duration, rate: f64) -> u64 {
    (time.as_secs_f64() * rate) as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &str, rates: [f64; 3]) -> Vec<Figure> {
        let figure = |(depth, rate): (&usize, f64)| {
            let name = format!("{name}, {depth}");
            let row = Row { bench: BENCH, name: &name, kernel: "-", memory: "-", size_bytes: 32, count: 1 };
            Figure::rate(row, vec![rate])
        };
        DEPTHS.iter().zip(rates).map(figure).collect()
    }

    #[test]
    fn a_rival_is_met_at_one_and_at_its_best_depth() {
        let ours = figures("ours", [100.0, 200.0, 800.0]);
        let rivals = [figures("a", [5.0, 300.0, 250.0]), figures("b", [6.0, 7.0, 8.0])];
        let checks = checks_of(&ours, &rivals);
        let found: Vec<_> = checks.iter().map(|v| (v.target.as_str(), v.found, v.pass)).collect();
        assert_eq!(found[0], ("ours, 1 / a, 1", 20.0, true));
        assert_eq!((found[1].0, found[1].2), ("ours, 2 / a, 2", false));
        assert_eq!((found[2].0, found[2].2), ("ours, 1 / b, 1", false));
        assert_eq!(found[3], ("ours, 4 / b, 4", 100.0, true));
        assert_eq!(checks.len(), 4);
    }

    #[test]
    fn a_round_lasts_as_long_as_it_should() {
        assert_eq!(gets_in(Duration::from_millis(50), 1e6), 50_001);
        assert_eq!(gets_in(Duration::from_millis(50), 1.0), 1);
    }
}
