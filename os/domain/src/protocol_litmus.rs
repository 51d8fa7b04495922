//! The sleep protocol on this CPU, between two processes: the store-buffering litmus test, with the real membarrier
//! and, as its control, without it.
//!
//! In each round the sender stores a word and looks at the flag, while the sleeper sets the flag and looks at the
//! word. If neither sees the other, a wake-up is lost. The membarrier must make that impossible; without it the CPU
//! must be caught doing it, or the test would prove nothing.

use std::os::fd::AsRawFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use beeline_contract_memory::StorePort;
use beeline_mmio::{Flag, MemoryOptions, Region, SharedMemory, StoreKernel, Word, membarrier};

use super::{ASLEEP, AWAKE, Barriers, cancel, prepare, wake_if_asleep};

const BYTES: usize = 4096;
/// Offsets of the things shared, each on lines of its own.
const FLAG: usize = 0;
const SENDER_ROUND: usize = 256;
const SLEEPER_ROUND: usize = 512;
const SENDER_SAW: usize = 768;
const WINDOW: usize = 1024;

/// Rounds in which nothing may be lost unless [`ROUNDS_VARIABLE`] asks for others, and how few will do where other programs keep the
/// two sides apart.
const ROUNDS: u64 = 10_000;
/// Names the variable of the environment by which a long run asks for more rounds.
const ROUNDS_VARIABLE: &str = "BEELINE_LITMUS_ROUNDS";
const MIN_ROUNDS: u64 = 200;
/// When fewer rounds will do, in a short and in a long run.
const TIMEOUT: Duration = Duration::from_secs(20);
const LONG_TIMEOUT: Duration = Duration::from_secs(600);
/// Rounds in which something must be lost at least once, or the control has failed.
const MAX_CONTROL_ROUNDS: u64 = 100_000_000;
/// How long one side may wait for the other.
const WATCHDOG: Duration = Duration::from_secs(120);
/// How long the control may take.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(120);
const SENDER: &str = "BEELINE_LITMUS_SENDER";

/// The machine's barriers, the sleeper's at will.
struct Membarrier {
    is_there: bool,
}

impl Barriers for Membarrier {
    fn light(&self) {
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn heavy(&self) {
        if self.is_there {
            membarrier::global_expedited().unwrap();
        } else {
            self.light();
        }
    }
}

/// One side's view of the shared page.
struct Side {
    region: Region,
    flag: Flag,
    own_round: Word,
    other_round: Word,
    sender_saw: Word,
    random: u64,
    started: Instant,
}

impl Side {
    fn new(memory: &SharedMemory, own: usize, other: usize) -> Self {
        let region = memory.map().unwrap();
        Side {
            flag: region.flag(FLAG),
            own_round: region.word(own),
            other_round: region.word(other),
            sender_saw: region.word(SENDER_SAW),
            random: own as u64,
            started: Instant::now(),
            region,
        }
    }

    fn wait_for(&self, word: &Word, value: u64) {
        let (mut spins, mut begun) = (0u32, None);
        while word.load_acquire() < value {
            spins += 1;
            core::hint::spin_loop();
            if spins.is_multiple_of(1024) {
                std::thread::yield_now();
                let begun: &mut Instant = begun.get_or_insert_with(Instant::now);
                assert!(begun.elapsed() < WATCHDOG, "the other process does not come");
            }
        }
    }

    /// Both sides leave together, give or take a random pause: mostly short, sometimes as long as a membarrier.
    fn start(&mut self, round: u64) {
        self.own_round.store_release(round);
        self.wait_for(&self.other_round, round);
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let bits = if (self.random >> 60).is_multiple_of(4) { 12 } else { 6 };
        for _ in 0..self.random >> (63 - bits) >> 1 {
            core::hint::spin_loop();
        }
    }
}

/// What the sender does in its own process, until the sleeper's round is the last one.
fn send(memory: &SharedMemory, kernel: StoreKernel) {
    membarrier::register().unwrap();
    let mut side = Side::new(memory, SENDER_ROUND, SLEEPER_ROUND);
    let mut window = side.region.store_window(WINDOW, 2, kernel);
    for round in 1.. {
        side.start(round);
        if side.other_round.load_acquire() == u64::MAX {
            return;
        }
        window.store_line(0, &[round; 8]);
        let saw = wake_if_asleep(&side.flag, &Membarrier { is_there: true }, || ());
        side.sender_saw.store_release(round << 1 | u64::from(saw));
    }
}

/// Runs rounds until one is lost, or `rounds` or `timeout` are over; says how many were run and lost.
fn count_lost(membarrier: Membarrier, kernel: StoreKernel, rounds: u64, timeout: Duration) -> (u64, u64) {
    membarrier::register().unwrap();
    let memory = SharedMemory::create("litmus", BYTES, MemoryOptions::default()).unwrap();
    let mut sender = start_sender(&memory, kernel);
    let mut side = Side::new(&memory, SLEEPER_ROUND, SENDER_ROUND);
    let word = side.region.word(WINDOW);
    let (mut run, mut lost) = (0, 0);
    while run < rounds && lost == 0 && side.started.elapsed() < timeout {
        run += 1;
        side.start(run);
        if membarrier.is_there {
            prepare(&side.flag, ASLEEP, &membarrier);
        } else {
            // The control stores the word: a locked or is a full barrier on some CPUs, and would lose far less.
            side.flag.store(ASLEEP);
            membarrier.heavy();
        }
        let is_seen = word.load() == run;
        side.wait_for(&side.sender_saw, run << 1);
        let sender_saw = side.sender_saw.load_acquire() & 1 == 1;
        lost += u64::from(!is_seen && !sender_saw);
        if membarrier.is_there {
            cancel(&side.flag, ASLEEP);
        } else {
            // Not the locked `and` of `cancel`: it would bring the flag's line to this core, and the store of the next round
            // would wait in the buffer for a shorter time, in which the control is to be caught.
            side.flag.store(AWAKE);
        }
    }
    side.own_round.store_release(u64::MAX);
    assert!(sender.wait().unwrap().success());
    (run, lost)
}

fn start_sender(memory: &SharedMemory, kernel: StoreKernel) -> Child {
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.fd().as_raw_fd());
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "protocol::litmus::role", "--nocapture"])
        .env(SENDER, format!("{path} {}", kernel.name()))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test, but the sender's process.
#[test]
fn role() {
    let Ok(arguments) = std::env::var(SENDER) else { return };
    let (path, kernel) = arguments.split_once(' ').unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    send(&SharedMemory::from_fd(file.into(), BYTES).unwrap(), kernel.parse().unwrap());
}

/// A cached kernel and, where the CPU has one, a non-temporal one: their stores wait in different buffers.
fn kernels() -> Vec<StoreKernel> {
    let wanted = [StoreKernel::Cached, StoreKernel::NtSse2, StoreKernel::Stnp];
    StoreKernel::available().into_iter().filter(|kernel| wanted.contains(kernel)).collect()
}

/// One test, so that its two processes have the cores to themselves as far as this program is concerned.
#[test]
fn the_membarrier_and_nothing_else_keeps_wake_ups() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let asked = std::env::var(ROUNDS_VARIABLE).map(|rounds| rounds.parse::<u64>().unwrap());
    let (rounds, timeout) = asked.map_or((ROUNDS, TIMEOUT), |rounds| (rounds, LONG_TIMEOUT));
    for kernel in kernels() {
        let (run, lost) = count_lost(Membarrier { is_there: true }, kernel, rounds, timeout);
        println!("{kernel}: with membarrier {lost} of {run} wake-ups lost");
        assert_eq!(lost, 0, "{kernel}: round {run}");
        assert!(cores == 1 || run >= MIN_ROUNDS, "{kernel}: only {run} rounds in {timeout:?}");
        if cores == 1 {
            println!("{kernel}: one core cannot lose wake-ups; the control is not run");
            continue;
        }
        let (run, lost) =
            count_lost(Membarrier { is_there: false }, kernel, MAX_CONTROL_ROUNDS, CONTROL_TIMEOUT);
        println!("{kernel}: without membarrier {lost} of {run} wake-ups lost");
        assert!(lost > 0, "{kernel}: the control lost nothing in {run} rounds, so this test proves nothing");
    }
}
