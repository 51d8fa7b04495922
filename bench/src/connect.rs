//! What it takes to meet: connect, a first message of 64 bytes, and close, until the other process has seen the message and the end.
//!
//! The other process sleeps for whoever comes, in the call that its kind of connection has for that, and then says when it had seen
//! the end by the clock that all processes share. A window is made for the one connection, or lent in an arena that was joined before;
//! sockets are the kernel's. Paths alternate within a round.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use beeline_domain::{
    ArenaListener, ArenaOptions, Domain, ReceiverParts, SenderArena, SenderParts, StoreOptions,
    WindowListener, WindowOptions, connect_window, join_windows, offer_window, offer_windows,
};
use beeline_mmio::{StoreKernel, cpu};
use beeline_session::{NicError, PrivateDomain, Role, TIMEOUT, with_causes};
use beeline_window::{FencePolicy, Receiver, Sent, WindowConfig, Writer};
use clap::{Args, ValueEnum};
use rustix::time::{ClockId, clock_gettime};

use crate::domain_args::DomainArgs;
use crate::figure::Row;
use crate::{BenchError, Check, Figure, LINE_PAYLOAD_BYTES, Latencies, Report, Settings};

const BENCH: &str = "connect";
/// The hidden subcommand that runs [`be_acceptor`].
const ROLE: &str = "acceptor";
/// What an acceptor says before it accepts.
const READY: &str = "ready";
/// What is offered in the domain.
const NAME: &str = "meeting";
/// Lines of each window.
const LINES: u32 = 64;
/// Meetings of each path for a thousand round trips of other benches.
const MEETINGS_A_THOUSAND: u64 = 40;
/// Microseconds that half of the meetings may take.
const WINDOW_LIMIT_US: f64 = 150.0;
const ARENA_LIMIT_US: f64 = 40.0;
/// Meetings before those that count: everything that is made once is there, on both sides.
const WARM_UP: u64 = 20;

/// A kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A window of its own.
    Window,
    /// A window in an arena.
    Arena,
    Unix,
    Tcp,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Window, Kind::Arena, Kind::Unix, Kind::Tcp];

    fn name(self) -> &'static str {
        match self {
            Kind::Window => "window",
            Kind::Arena => "window in an arena",
            Kind::Unix => "Unix stream socket",
            Kind::Tcp => "TCP over loopback",
        }
    }

    fn option(self) -> &'static str {
        match self {
            Kind::Window => "window",
            Kind::Arena => "arena",
            Kind::Unix => "unix",
            Kind::Tcp => "tcp",
        }
    }
}

/// Arguments that an acceptor is started with.
#[derive(Args, Clone, Debug)]
pub struct AcceptorArgs {
    #[command(flatten)]
    domain: DomainArgs,
    /// Core to run on.
    #[arg(long)]
    core: usize,
    /// What is accepted.
    #[arg(long)]
    kind: Kind,
}

fn broken(error: &dyn std::error::Error) -> BenchError {
    BenchError::Connect(with_causes(error))
}

fn unheard(what: &str) -> BenchError {
    BenchError::Connect(what.to_owned())
}

/// Nanoseconds of the clock that all processes share.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// What an acceptor waits in.
enum Place {
    Window(WindowListener),
    Arena(ArenaListener),
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// Accepts one connection after the other, and says for each when it had seen the end; ends with its standard input.
///
/// # Errors
/// It cannot offer, accept or talk; a message is not there.
pub fn be_acceptor(args: &AcceptorArgs) -> Result<(), BenchError> {
    // With every thread that it starts. Where there is one core only, both processes share it.
    let _ = cpu::pin_current_thread(args.core);
    let domain = Domain::open(&args.domain.config()).map_err(|e| broken(&e))?;
    let (place, address) = match args.kind {
        Kind::Window => {
            let options = WindowOptions { lines: LINES, ..WindowOptions::default() };
            (Place::Window(offer_window(&domain, NAME, options).map_err(|e| broken(&e))?), String::new())
        }
        Kind::Arena => {
            let options = ArenaOptions { lines: LINES, ..ArenaOptions::default() };
            (Place::Arena(offer_windows(&domain, NAME, options).map_err(|e| broken(&e))?), String::new())
        }
        Kind::Unix => {
            let path = args.domain.file(NAME);
            let listener = UnixListener::bind(&path)?;
            (Place::Unix(listener), path.display().to_string())
        }
        Kind::Tcp => {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            let address = listener.local_addr()?.to_string();
            (Place::Tcp(listener), address)
        }
    };
    let mut output = std::io::stdout();
    writeln!(output, "{READY} {address}")?;
    output.flush()?;
    // One byte asks for one meeting; the end of the input ends the process.
    let mut asked = [0];
    while std::io::stdin().read(&mut asked)? > 0 {
        let seen_ns = meet(&place)?;
        writeln!(output, "{seen_ns}")?;
        output.flush()?;
    }
    Ok(())
}

/// Waits for one connection, its message and its end.
fn meet(place: &Place) -> Result<u64, BenchError> {
    let nobody = || unheard("nobody came");
    match place {
        Place::Window(listener) => read_window(listener.accept(TIMEOUT).ok_or_else(nobody)?),
        Place::Arena(listener) => read_window(listener.accept(TIMEOUT).ok_or_else(nobody)?),
        Place::Unix(listener) => read_socket(listener.accept()?.0),
        Place::Tcp(listener) => read_socket(listener.accept()?.0),
    }
}

fn read_window(parts: ReceiverParts) -> Result<u64, BenchError> {
    let config = WindowConfig::blank(parts.blank, parts.epoch);
    let (peer, mut receiver) = (parts.peer, Receiver::new(parts.load, parts.sink, config));
    let mut is_over = false;
    loop {
        if let Some(message) = receiver.poll()? {
            if message.len() != LINE_PAYLOAD_BYTES {
                return Err(unheard("a message of another size"));
            }
            break;
        }
        // One that went before its message was looked for has left it.
        if is_over {
            return Err(unheard("an end without a message"));
        }
        is_over = peer.departure().is_some();
        std::thread::yield_now();
    }
    // The domain's thread, which may share the core, is to hear of the end.
    while peer.departure().is_none() {
        std::thread::yield_now();
    }
    let seen_ns = now_ns();
    drop(receiver);
    Ok(seen_ns)
}

fn read_socket(mut stream: impl Read) -> Result<u64, BenchError> {
    let mut message = Vec::with_capacity(2 * LINE_PAYLOAD_BYTES);
    stream.read_to_end(&mut message)?;
    let seen_ns = now_ns();
    if message.len() == LINE_PAYLOAD_BYTES { Ok(seen_ns) } else { Err(unheard("a message of another size")) }
}

/// One path: the other process, and what this one connects by.
struct Path {
    kind: Kind,
    acceptor: Role,
    domain: Domain,
    arena: Option<SenderArena>,
    address: String,
}

impl Path {
    fn start(kind: Kind, settings: &Settings, private: &PrivateDomain) -> Result<Self, BenchError> {
        let mut command = settings.program.command(ROLE);
        DomainArgs::add_to(&mut command, private.config());
        command.args(["--core", &settings.cores.second.to_string(), "--kind", kind.option()]);
        let mut acceptor = Role::start(&mut command)?;
        let said = acceptor.line_within(TIMEOUT)?.unwrap_or_default();
        let address = said.strip_prefix(READY).ok_or_else(|| unheard("it is not ready"))?.trim().to_owned();
        let domain = Domain::open(private.config()).map_err(|e| broken(&e))?;
        let arena = match kind {
            Kind::Arena => Some(join_windows(&domain, NAME, LINES).map_err(|e| broken(&e))?),
            Kind::Window | Kind::Unix | Kind::Tcp => None,
        };
        Ok(Path { kind, acceptor, domain, arena, address })
    }

    /// Meets once; gives the nanoseconds that it took.
    fn meet(&mut self) -> Result<f64, BenchError> {
        self.acceptor.tell("")?;
        // Long enough for it to fall asleep in its wait: nobody connects to a server that has just got up.
        std::thread::sleep(Duration::from_micros(200));
        let started_ns = now_ns();
        match (self.kind, &self.arena) {
            (Kind::Arena, Some(arena)) => send(arena.open(StoreKernel::Cached).map_err(|e| broken(&e))?)?,
            (Kind::Window | Kind::Arena, _) => {
                let options = StoreOptions::with_kernel(StoreKernel::Cached);
                send(connect_window(&self.domain, NAME, options).map_err(|e| broken(&e))?)?;
            }
            (Kind::Unix, _) => UnixStream::connect(&self.address)?.write_all(&[1; LINE_PAYLOAD_BYTES])?,
            (Kind::Tcp, _) => TcpStream::connect(&self.address)?.write_all(&[1; LINE_PAYLOAD_BYTES])?,
        }
        let said = self.acceptor.line_within(TIMEOUT)?.unwrap_or_default();
        let seen_ns: u64 = said.parse().map_err(|_| unheard("it did not see the end"))?;
        Ok(seen_ns.saturating_sub(started_ns) as f64)
    }
}

/// Sends the first message and drops everything.
fn send(parts: SenderParts) -> Result<(), BenchError> {
    let fence_policy =
        if parts.needs_fence_per_message { FencePolicy::PerMessage } else { FencePolicy::None };
    let config = WindowConfig { blank: parts.blank, epoch: parts.epoch, fence_policy };
    let (sleeper, mut writer) = (parts.sleeper, Writer::new(parts.store, parts.credits, config));
    let sent = writer.try_send(&[1; LINE_PAYLOAD_BYTES])?;
    drop((sleeper, writer));
    if sent == Sent::Sent { Ok(()) } else { Err(unheard("a fresh window is full")) }
}

/// Runs every path.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    cpu::pin_current_thread(settings.cores.first).ok();
    let privates = Kind::ALL.map(|_| PrivateDomain::new().map_err(NicError::Random));
    let mut paths = Vec::new();
    let privates = privates.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (kind, private) in Kind::ALL.into_iter().zip(&privates) {
        paths.push((Path::start(kind, settings, private)?, Latencies::new()));
    }
    for (path, _) in &mut paths {
        for _ in 0..WARM_UP {
            path.meet()?;
        }
    }
    let meetings = (settings.trips() / 1000 * MEETINGS_A_THOUSAND).max(1);
    for _ in 0..settings.rounds {
        for (path, latencies) in &mut paths {
            let times: Vec<f64> = (0..meetings).map(|_| path.meet()).collect::<Result<_, _>>()?;
            latencies.add_round(&times);
        }
    }
    let figures: Vec<_> = paths
        .into_iter()
        .map(|(path, latencies)| {
            let size_bytes = LINE_PAYLOAD_BYTES as u32;
            let name = path.kind.name();
            let kernel = "-";
            Figure::latency(
                Row { bench: BENCH, name, kernel, memory: "-", size_bytes, count: meetings },
                latencies,
            )
        })
        .collect();
    let checks = checks(&figures);
    Ok(Report { figures, checks, ..Report::default() })
}

fn checks(figures: &[Figure]) -> Vec<Check> {
    let [window, arena, unix, tcp] = figures else { return Vec::new() };
    vec![
        Check::middle(BENCH, window, WINDOW_LIMIT_US),
        Check::middle(BENCH, arena, ARENA_LIMIT_US),
        Check::ratio(BENCH, arena, unix, crate::Bound::Shown),
        Check::ratio(BENCH, arena, tcp, crate::Bound::Shown),
    ]
}
