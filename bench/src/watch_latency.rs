//! How soon a peer that was killed is seen as dead while somebody keeps the domain, or the NIC, busy: from `kill -9` to the first
//! look that shows it, with nobody at work and under each attack, in turn.
//!
//! A peer of this process is asked for without pause, as in `peer_death`. A host of a NIC process is looked for in the NIC's own
//! statistics, which are asked for without pause too: their answer is part of the time. Under an attack the two cores have more
//! to do than they can, so a victim also takes its time to die.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use beeline_domain::{Domain, Peer, WindowListener, WindowOptions, offer_window};
use beeline_nic_process::StatisticsFeed;
use beeline_session::{NicError, NicOptions, PrivateDomain, PrivateNic, TIMEOUT, with_causes};

use crate::attack::{Attack, Attacker, LARGE_WINDOW};
use crate::figure::Row;
use crate::peer_death::{LIMIT_MS, Mourner, NAME, kill_one, start_victim};
use crate::{BenchError, Check, Figure, Report, Settings};

const BENCH: &str = "watch-latency";
/// Kills a round of each row.
const KILLS_A_ROUND: usize = 8;
/// Lines of the windows that come and go: 64 MiB.
const LARGE_WINDOW_LINES: u32 = 1 << 20;
/// How long a thread that accepts windows waits before it looks whether it is to end.
const ACCEPT_FOR: Duration = Duration::from_millis(100);

/// Who sees the death.
enum Watch<'a> {
    /// This process, of a peer in its domain.
    Peer { domain: &'a PrivateDomain, peers: &'a Receiver<Peer> },
    /// A NIC process, of a host of its.
    Nic { nic: &'a PrivateNic, feed: &'a StatisticsFeed },
}

/// A row: who is killed, under which attack, and how long each death took by round.
struct Case<'a> {
    watch: Watch<'a>,
    attacker: Option<Attacker>,
    rounds: Vec<Vec<f64>>,
}

impl Watch<'_> {
    fn kill_one(&self, settings: &Settings) -> Result<f64, BenchError> {
        match self {
            Watch::Peer { domain, peers } => kill_one(settings, domain, peers, false),
            Watch::Nic { nic, feed } => kill_host(settings, nic, feed),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Watch::Peer { .. } => "peer",
            Watch::Nic { .. } => "host of a NIC",
        }
    }
}

/// Opens a port in another process, kills that, and gives the nanoseconds until the NIC does not count the port any more.
fn kill_host(settings: &Settings, nic: &PrivateNic, feed: &StatisticsFeed) -> Result<f64, BenchError> {
    let meet = |error: &dyn std::error::Error| BenchError::Meet(with_causes(error));
    let mut victim = start_victim(settings, nic.domain(), &["--nic", nic.name()])?;
    let pid = victim.pid();
    let is_there = || -> Result<bool, BenchError> {
        let now = feed.next().map_err(|error| meet(&error))?;
        Ok(now.ports.iter().any(|port| port.pid == pid))
    };
    if !is_there()? {
        return Err(BenchError::Missed { pid, seen: "no port of it before that".to_owned() });
    }
    let killed = Instant::now();
    victim.kill()?;
    while is_there()? {
        if killed.elapsed() > TIMEOUT {
            return Err(BenchError::Missed { pid, seen: format!("it alive for {} s", TIMEOUT.as_secs()) });
        }
    }
    Ok(killed.elapsed().as_nanos() as f64)
}

impl Case<'_> {
    fn round(&mut self, settings: &Settings) -> Result<(), BenchError> {
        let Case { watch, attacker, rounds } = self;
        let kills = || (0..KILLS_A_ROUND).map(|_| watch.kill_one(settings)).collect();
        rounds.push(match attacker {
            Some(attacker) => attacker.during(kills)?,
            None => kills()?,
        });
        Ok(())
    }

    fn name(&self) -> String {
        let attack = self.attacker.as_ref().map_or("nobody else at work", |attacker| attacker.attack.name());
        format!("{}, {attack}", self.watch.name())
    }

    /// How many deaths were seen late, and how much the attacker did meanwhile.
    fn note(&self) -> String {
        let times = || self.rounds.iter().flatten();
        let late = times().filter(|ns| **ns > LIMIT_MS * 1e6).count();
        let did = self
            .attacker
            .as_ref()
            .map_or(String::new(), |attacker| format!("; the attacker did {}", attacker.done));
        format!("{BENCH}: {}: {late} of {} deaths after {LIMIT_MS} ms{did}", self.name(), times().count())
    }
}

/// Kills peers and hosts in turn, without an attack and under each.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let meet = |error: &dyn std::error::Error| BenchError::Meet(with_causes(error));
    let private = PrivateDomain::new().map_err(NicError::Random)?;
    let domain = Domain::open(private.config()).map_err(|e| meet(&e))?;
    let (sender, peers) = channel();
    let _offer = domain.offer(NAME, Box::new(Mourner(sender))).map_err(|e| meet(&e))?;
    let options = WindowOptions { lines: LARGE_WINDOW_LINES, ..WindowOptions::default() };
    let listener = offer_window(&domain, LARGE_WINDOW, options).map_err(|e| meet(&e))?;
    let nic = PrivateNic::start(&settings.program, &NicOptions::default())?;
    let nic_domain = Domain::open(nic.domain()).map_err(|e| meet(&e))?;
    let (feed, _) = StatisticsFeed::open(&nic_domain, nic.name()).map_err(|e| meet(&e))?;
    let attacker = |domain, attack| Attacker::start(settings, domain, attack).map(Some);
    let peer = || Watch::Peer { domain: &private, peers: &peers };
    let host = || Watch::Nic { nic: &nic, feed: &feed };
    let mut cases = [
        (peer(), None),
        (peer(), attacker(private.config(), Attack::LargeWindows)?),
        (peer(), attacker(private.config(), Attack::Connections)?),
        (host(), None),
        (host(), attacker(nic.domain(), Attack::Regions)?),
        (host(), attacker(nic.domain(), Attack::Queues)?),
    ]
    .map(|(watch, attacker)| Case { watch, attacker, rounds: Vec::new() });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        drop_accepted(scope, &listener, &is_over);
        let rounds =
            (0..settings.rounds).try_for_each(|_| cases.iter_mut().try_for_each(|case| case.round(settings)));
        // Relaxed: nothing comes with it.
        is_over.store(true, Ordering::Relaxed);
        rounds
    })?;
    Ok(report(&cases))
}

/// Accepts windows and drops them, as a program that its senders leave again.
fn drop_accepted<'s>(scope: &'s Scope<'s, '_>, listener: &'s WindowListener, is_over: &'s AtomicBool) {
    scope.spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            drop(listener.accept(ACCEPT_FOR));
        }
    });
}

fn report(cases: &[Case<'_>]) -> Report {
    let figure = |case: &Case<'_>| {
        let (name, count) = (case.name(), KILLS_A_ROUND as u64);
        let row = Row { bench: BENCH, name: &name, kernel: "-", memory: "-", size_bytes: 0, count };
        Figure::delay(row, case.rounds.clone())
    };
    let figures: Vec<_> = cases.iter().map(figure).collect();
    let checks = figures.iter().map(|figure| Check::limit(BENCH, figure, LIMIT_MS)).collect();
    let notes = cases.iter().map(Case::note).collect();
    Report { figures, checks, notes, ..Report::default() }
}
