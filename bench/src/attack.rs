//! What a process does that means to keep others waiting: a hidden subcommand of this program, which rests until it is told
//! to begin, and begins and rests as often as it is told.
//!
//! Each attack asks as fast as it is answered for something whose time grows with what was asked for, or costs its victim more than
//! itself. Not here: what it does to whom (`watch_latency`, `frames_under_attack`).

use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use beeline_bench_echo::Failure;
use beeline_domain::{Domain, DomainConfig, StoreOptions, connect_window};
use beeline_driver::Transmit;
use beeline_mmio::{MemoryOptions, SharedMemory, StoreKernel};
use beeline_session::{
    Frames, Job, NicError, Queue, Role, Rx, Session, SessionOptions, finish, send_one, with_causes,
};
use beeline_spec::Interface;
use beeline_spec::formats::port_host_memory;
use clap::{Args, ValueEnum};

use crate::domain_args::DomainArgs;
use crate::{BenchError, Settings, peer_death};

/// The hidden subcommand that runs [`be_attacker`].
const ROLE: &str = "attacker";
/// Name of the NIC that is attacked.
const NIC: &str = "nic";
/// Under which [`Attack::LargeWindows`] asks for windows.
pub const LARGE_WINDOW: &str = "large";
/// Bytes of a region that is registered and released; a port may have 256 MiB.
const REGION_BYTES: usize = 255 << 20;
/// Frames that are sent before the attacker looks whether it is to rest.
const FRAMES: u64 = 1_000;
/// How long a deed that is always refused is tried.
const LONGEST_TRY: Duration = Duration::from_secs(5);

/// What is done again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Attack {
    /// A region of 255 MiB is registered with a NIC and released.
    Regions,
    /// A port of a NIC opens a queue, whose windows are blanked, and closes it.
    Queues,
    /// A port of a NIC rings a doorbell for each frame of 64 bytes, which go nowhere.
    Doorbells,
    /// A large window is opened and closed.
    LargeWindows,
    /// A connection is opened and closed.
    Connections,
}

impl Attack {
    /// What happens, as figures say it.
    pub fn name(self) -> &'static str {
        match self {
            Attack::Regions => "255 MiB regions",
            Attack::Queues => "queues opened",
            Attack::Doorbells => "doorbells",
            Attack::LargeWindows => "64 MiB windows",
            Attack::Connections => "connections",
        }
    }

    fn run(self, config: &DomainConfig, is_over: &AtomicBool) -> Result<u64, Failure> {
        // Relaxed: nothing comes with it, and it is looked at again and again.
        let goes_on = || !is_over.load(Ordering::Relaxed);
        match self {
            Attack::Regions => regions(&Domain::open(config)?, goes_on),
            Attack::Queues => queues(config, goes_on),
            Attack::Doorbells => doorbells(config, goes_on),
            Attack::LargeWindows => large_windows(&Domain::open(config)?, goes_on),
            Attack::Connections => connections(&Domain::open(config)?, goes_on),
        }
    }
}

/// Does it again and again, and says how often it was done and not refused: once at least, if it can be done in a while.
fn again(
    goes_on: impl Fn() -> bool,
    mut deed: impl FnMut() -> Result<bool, Failure>,
) -> Result<u64, Failure> {
    let (begun, mut done) = (Instant::now(), 0);
    loop {
        done += u64::from(deed()?);
        if !goes_on() && (done > 0 || begun.elapsed() > LONGEST_TRY) {
            return Ok(done);
        }
    }
}

fn regions(domain: &Domain, goes_on: impl Fn() -> bool) -> Result<u64, Failure> {
    let memory = SharedMemory::create("attacker", port_host_memory::BYTES, MemoryOptions::default())?;
    let open = br#"{"request":"open","version":1,"loop_back":false}"#;
    let (connection, _reply) = domain.connect(NIC, open, &[memory.fd()])?;
    let register = format!(r#"{{"request":"memory","bytes":{REGION_BYTES}}}"#);
    again(goes_on, || {
        // Sparse: whoever maps it brings its pages in.
        let memory = SharedMemory::create("sparse", REGION_BYTES, MemoryOptions::default())?;
        // The one before counts until it is unmapped, and is refused meanwhile.
        let Ok(reply) = connection.call(register.as_bytes(), &[memory.fd()]) else { return Ok(false) };
        let answer: serde_json::Value = serde_json::from_slice(&reply.payload)?;
        let release = format!(r#"{{"request":"release","region":{}}}"#, answer["region"]);
        connection.call(release.as_bytes(), &[])?;
        Ok(true)
    })
}

/// Uses a queue for nothing.
struct Nothing;

impl Job for Nothing {
    type Output = ();
    type Error = NicError;

    fn run<T: Transmit>(self, _: &mut Session, _: &mut T, _: &mut Rx) -> Result<(), NicError> {
        Ok(())
    }
}

fn session(config: &DomainConfig) -> Result<Session, Failure> {
    Ok(Session::open(&SessionOptions::new(config.clone(), NIC, StoreKernel::Cached))?)
}

fn queues(config: &DomainConfig, goes_on: impl Fn() -> bool) -> Result<u64, Failure> {
    let mut session = session(config)?;
    again(goes_on, || {
        session.with_queue(Queue::of(Interface::Mmio), Nothing)?;
        Ok(true)
    })
}

/// Sends frames to the port itself, which the switch drops: each is a doorbell of its own.
struct Flood;

impl Job for Flood {
    type Output = ();
    type Error = NicError;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, _: &mut Rx) -> Result<(), NicError> {
        let frame = Frames::new(64, session.mac(), session.mac()).buffer();
        (0..FRAMES).try_for_each(|_| send_one(session, tx, &frame))?;
        finish(session, tx)
    }
}

fn doorbells(config: &DomainConfig, goes_on: impl Fn() -> bool) -> Result<u64, Failure> {
    let mut session = session(config)?;
    let floods = again(goes_on, || {
        session.with_queue(Queue::of(Interface::Descriptor), Flood)?;
        Ok(true)
    })?;
    Ok(floods * FRAMES)
}

fn large_windows(domain: &Domain, goes_on: impl Fn() -> bool) -> Result<u64, Failure> {
    let options = StoreOptions::with_kernel(StoreKernel::Cached);
    // Refused while the one before is not gone yet.
    again(goes_on, || Ok(connect_window(domain, LARGE_WINDOW, options).is_ok()))
}

fn connections(domain: &Domain, goes_on: impl Fn() -> bool) -> Result<u64, Failure> {
    // Refused while too many of those before are not gone yet.
    again(goes_on, || Ok(domain.connect(peer_death::NAME, b"", &[]).is_ok()))
}

/// Arguments that an attacker is started with.
#[derive(Args, Clone, Debug)]
pub struct AttackArgs {
    #[arg(long, value_enum)]
    attack: Attack,
    #[command(flatten)]
    domain: DomainArgs,
}

/// An attack that is under way.
struct UnderWay {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

/// Attacks when it is told `begin` and rests when it is told `rest`, until standard input ends. It says how much it did.
///
/// # Errors
/// It cannot reach its victim, or talk.
pub fn be_attacker(args: &AttackArgs) -> Result<(), BenchError> {
    let config = args.domain.config();
    let attack = args.attack;
    let failed = |what: String| BenchError::Rival { rival: format!("attack {}", attack.name()), what };
    let mut under_way: Option<UnderWay> = None;
    for line in stdin().lock().lines() {
        let said = match (line?.as_str(), under_way.take()) {
            ("begin", None) => {
                let is_over = Arc::new(AtomicBool::new(false));
                let (config, seen) = (config.clone(), Arc::clone(&is_over));
                let run = move || attack.run(&config, &seen).map_err(|error| with_causes(error.as_ref()));
                under_way = Some(UnderWay { is_over, thread: std::thread::spawn(run) });
                "begun".to_owned()
            }
            ("rest", Some(UnderWay { is_over, thread })) => {
                is_over.store(true, Ordering::Relaxed);
                let done = thread.join().map_err(|_| failed("panicked".to_owned()))?;
                format!("rests {}", done.map_err(failed)?)
            }
            (other, _) => return Err(failed(format!("cannot do {other:?} now"))),
        };
        writeln!(stdout(), "{said}")?;
        stdout().flush()?;
    }
    Ok(())
}

/// An attacker, as the process that started it sees it.
pub(crate) struct Attacker {
    pub(crate) attack: Attack,
    role: Role,
    /// What it did in all rounds.
    pub(crate) done: u64,
}

impl Attacker {
    /// Starts it; it rests.
    pub(crate) fn start(
        settings: &Settings,
        domain: &DomainConfig,
        attack: Attack,
    ) -> Result<Self, BenchError> {
        let mut command = settings.program.command(ROLE);
        let value = attack.to_possible_value().expect("no attack is skipped");
        command.args(["--attack", value.get_name()]);
        DomainArgs::add_to(&mut command, domain);
        Ok(Attacker { attack, role: Role::start(&mut command)?, done: 0 })
    }

    /// Has it attack while `work` is done.
    pub(crate) fn during<T>(
        &mut self,
        work: impl FnOnce() -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.tell("begin", "begun")?;
        // It is under way when the first samples are taken.
        std::thread::sleep(Duration::from_millis(20));
        let outcome = work();
        let did = self.tell("rest", "rests ")?;
        self.done += did.parse::<u64>().unwrap_or_default();
        outcome
    }

    fn tell(&mut self, order: &str, expected: &str) -> Result<String, BenchError> {
        self.role.tell(order)?;
        let said = self.role.line_within(beeline_session::TIMEOUT)?.unwrap_or_default();
        match said.strip_prefix(expected) {
            Some(rest) => Ok(rest.to_owned()),
            None => Err(BenchError::Rival {
                rival: format!("attack {}", self.attack.name()),
                what: format!("said {said:?} to {order:?}"),
            }),
        }
    }
}
