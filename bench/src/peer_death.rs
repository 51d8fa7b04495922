//! How soon a peer that was killed is seen as dead: from `kill -9` to the first `false` of
//! [`beeline_domain::Peer::is_alive`], which its peer asks without pause, as a hot path does between messages.
//!
//! The victim is another process, which opened the domain and connected to this one. Every other one has also forked a
//! child that holds every descriptor it has and lives on; a death is to be seen all the same.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use beeline_domain::{Answer, Departure, Domain, DomainConfig, Peer, Refusal, Reply, Service};
use clap::Args;
use rustix::event::{PollFd, PollFlags, poll};

use crate::domain_args::DomainArgs;
use crate::figure::Row;
use crate::{BenchError, Check, Figure, Report, Settings};
use beeline_mmio::StoreKernel;
use beeline_session::{NicError, PrivateDomain, Role, Session, SessionOptions, TIMEOUT, with_causes};

const BENCH: &str = "peer-death";

/// The hidden subcommand that runs [`be_victim`].
const ROLE: &str = "victim";
/// What this process offers in its domain.
pub(crate) const NAME: &str = "mourner";
/// What a victim says once it is connected.
const CONNECTED: &str = "connected";
/// What a victim connects with: others that connect are not mourned.
const VICTIM: &[u8] = b"victim";

/// Kills a round of each kind of victim. With the rounds of a full run, more than 100 of each.
const KILLS_A_ROUND: usize = 8;
/// Milliseconds within which every death is to be seen.
pub(crate) const LIMIT_MS: f64 = 50.0;

/// Arguments that a victim is started with.
#[derive(Args, Clone, Debug)]
pub struct VictimArgs {
    #[command(flatten)]
    domain: DomainArgs,
    /// Fork a child that lives on.
    #[arg(long)]
    forks: bool,
    /// Open a port of this NIC, and connect to nothing else.
    #[arg(long)]
    nic: Option<String>,
}

/// Connects, says so, and waits to be killed; ends with its standard input all the same.
///
/// # Errors
/// It cannot connect, fork or talk.
pub fn be_victim(args: &VictimArgs) -> Result<(), BenchError> {
    let meet = |error: &dyn std::error::Error| BenchError::Meet(with_causes(error));
    let config = args.domain.config();
    if let Some(nic) = &args.nic {
        let _port = Session::open(&SessionOptions::new(config, nic.clone(), StoreKernel::Cached))?;
        return wait_for_the_end();
    }
    let domain = Domain::open(&config).map_err(|e| meet(&e))?;
    let _connection = domain.connect(NAME, VICTIM, &[]).map_err(|e| meet(&e))?;
    if args.forks
        && let fork::Fork::Child = fork::fork()?
    {
        wait_for_hang_up();
        // Nothing of what it holds is its own, so nothing of it may run: not even what an orderly end would.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    wait_for_the_end()
}

/// Says that everything is there, and waits to be killed.
fn wait_for_the_end() -> Result<(), BenchError> {
    writeln!(std::io::stdout(), "{CONNECTED}")?;
    std::io::stdout().flush()?;
    wait_for_hang_up();
    Ok(())
}

/// Returns when whoever started this process has closed its standard input, or ended.
fn wait_for_hang_up() {
    // A hang-up is reported without being asked for. An error ends the wait too: this process is then of no use.
    let _ = poll(&mut [PollFd::new(&std::io::stdin(), PollFlags::empty())], None);
}

/// Hands out the victims that connect.
pub(crate) struct Mourner(pub(crate) Sender<Peer>);

impl Service for Mourner {
    fn connected(&mut self, peer: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        if request != VICTIM {
            return Ok(Reply::default().into());
        }
        self.0.send(peer.clone()).map_err(|_| Refusal::new("nobody mourns any more"))?;
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn departed(&mut self, _: &Peer) {}
}

/// Runs both kinds of victim in turn.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let meet = |error: &dyn std::error::Error| BenchError::Meet(with_causes(error));
    let private = PrivateDomain::new().map_err(NicError::Random)?;
    let domain = Domain::open(private.config()).map_err(|e| meet(&e))?;
    let (sender, peers) = channel();
    let offer = domain.offer(NAME, Box::new(Mourner(sender))).map_err(|e| meet(&e))?;
    let (mut plain, mut forked) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        let mut round = [Vec::new(), Vec::new()];
        for _ in 0..KILLS_A_ROUND {
            for (times, forks) in round.iter_mut().zip([false, true]) {
                times.push(kill_one(settings, &private, &peers, forks)?);
            }
        }
        let [plain_round, forked_round] = round;
        plain.push(plain_round);
        forked.push(forked_round);
    }
    drop((offer, domain));
    let figures =
        [("process killed", plain), ("killed, its forked child lives", forked)].map(|(name, rounds)| {
            let count = KILLS_A_ROUND as u64;
            Figure::delay(Row { bench: BENCH, name, kernel: "-", memory: "-", size_bytes: 0, count }, rounds)
        });
    let checks = figures.iter().map(|figure| Check::limit(BENCH, figure, LIMIT_MS)).collect();
    Ok(Report { figures: figures.into(), checks, ..Report::default() })
}

/// Starts a victim in a domain and waits until everything of it is there.
pub(crate) fn start_victim(
    settings: &Settings,
    domain: &DomainConfig,
    options: &[&str],
) -> Result<Role, BenchError> {
    let mut command = settings.program.command(ROLE);
    DomainArgs::add_to(&mut command, domain);
    command.args(options);
    let mut victim = Role::start(&mut command)?;
    let said = victim.line().unwrap_or_default();
    if said != CONNECTED {
        return Err(BenchError::Meet(format!("it said {said:?} and not that it is connected")));
    }
    Ok(victim)
}

/// Starts a victim, kills it, and gives the nanoseconds until it is seen as dead.
pub(crate) fn kill_one(
    settings: &Settings,
    private: &PrivateDomain,
    peers: &Receiver<Peer>,
    forks: bool,
) -> Result<f64, BenchError> {
    let options: &[&str] = if forks { &["--forks"] } else { &[] };
    let mut victim = start_victim(settings, private.config(), options)?;
    let pid = victim.pid();
    let peer = peers.recv_timeout(TIMEOUT).map_err(|error| BenchError::Meet(error.to_string()))?;
    if peer.pid() != pid || !peer.is_alive() {
        return Err(BenchError::Missed { pid, seen: format!("{peer:?} before that") });
    }
    let killed = Instant::now();
    victim.kill()?;
    while peer.is_alive() {
        if killed.elapsed() > TIMEOUT {
            return Err(BenchError::Missed { pid, seen: format!("it alive for {} s", TIMEOUT.as_secs()) });
        }
        std::hint::spin_loop();
    }
    let took = killed.elapsed();
    match peer.departure() {
        Some(Departure::Died) => Ok(took.as_nanos() as f64),
        other => Err(BenchError::Missed { pid, seen: format!("{other:?}") }),
    }
}
