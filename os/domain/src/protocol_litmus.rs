//! The sleep protocol on this CPU, between two processes: the store-buffering litmus test, with the real membarrier
//! and, as its control, without it.
//!
//! In each case the sender stores a word and looks at the flag, while the sleeper sets the flag and looks at the
//! word. If neither sees the other, a wake-up is lost. The membarrier must make that impossible; without it the CPU
//! must be caught doing it, or the test would prove nothing.
//!
//! A round has many cases, as for one who sleeps on many windows: the sleeper sets all flags, passes one barrier and looks at
//! all words, while the sender goes from one to the next. So whenever the barrier comes, some case is between its store and its look.

use std::os::fd::AsRawFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use beeline_contract_memory::StorePort;
use beeline_mmio::{Flag, LINE_BYTES, MemoryOptions, Region, SharedMemory, StoreKernel, Word, membarrier};

use super::{ASLEEP, AWAKE, Barriers, cancel, wake_if_asleep};

const BYTES: usize = 8192;
/// Cases of a round: each is a bit of a word that the sender tells.
const CASES: u32 = 32;
/// Offsets of the things shared, each on lines of its own.
const SENDER_ROUND: usize = 256;
const SLEEPER_ROUND: usize = 512;
const SENDER_SAW: usize = 768;
const FLAGS: usize = 1024;
const WINDOW: usize = 4096;

/// Cases in which nothing may be lost unless [`CASES_VARIABLE`] asks for others, and how few will do where other programs keep the
/// two sides apart.
const FEW_CASES: u64 = 320_000;
/// Names the variable of the environment by which a long run asks for more cases.
const CASES_VARIABLE: &str = "BEELINE_LITMUS_CASES";
const MIN_CASES: u64 = 6_400;
/// When fewer cases will do, in a short and in a long run.
const TIMEOUT: Duration = Duration::from_secs(20);
const LONG_TIMEOUT: Duration = Duration::from_secs(600);
/// Cases in which something must be lost at least once, or the control has failed.
const MAX_CONTROL_CASES: u64 = 320_000_000;
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
    flags: Vec<Flag>,
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
            flags: (0..CASES).map(|case| region.flag(FLAGS + case as usize * LINE_BYTES)).collect(),
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
    let mut window = side.region.store_window(WINDOW, CASES, kernel);
    for round in 1.. {
        side.start(round);
        if side.other_round.load_acquire() == u64::MAX {
            return;
        }
        let mut saw = 0;
        for (case, flag) in (0..CASES).zip(&side.flags) {
            window.store_line(case, &[round; 8]);
            saw |= u64::from(wake_if_asleep(flag, &Membarrier { is_there: true }, || ())) << case;
        }
        side.sender_saw.store_release(round << CASES | saw);
    }
}

/// Runs rounds until a wake-up is lost, or `cases` or `timeout` are over; says how many cases were run and lost.
fn count_lost(membarrier: Membarrier, kernel: StoreKernel, cases: u64, timeout: Duration) -> (u64, u64) {
    membarrier::register().unwrap();
    let memory = SharedMemory::create("litmus", BYTES, MemoryOptions::default()).unwrap();
    let mut sender = start_sender(&memory, kernel);
    let mut side = Side::new(&memory, SLEEPER_ROUND, SENDER_ROUND);
    let words: Vec<Word> =
        (0..CASES).map(|case| side.region.word(WINDOW + case as usize * LINE_BYTES)).collect();
    let (mut run, mut lost) = (0, 0);
    while run * u64::from(CASES) < cases && lost == 0 && side.started.elapsed() < timeout {
        run += 1;
        side.start(run);
        for flag in &side.flags {
            // The control stores the word: a locked or is a full barrier on some CPUs, and would lose far less.
            if membarrier.is_there { flag.set(ASLEEP) } else { flag.store(ASLEEP) }
        }
        membarrier.heavy();
        let seen = words.iter().enumerate().map(|(case, word)| u64::from(word.load() == run) << case);
        let seen: u64 = seen.sum();
        side.wait_for(&side.sender_saw, run << CASES);
        lost += u64::from((!(seen | side.sender_saw.load_acquire()) as u32).count_ones());
        for flag in &side.flags {
            // As above: a locked `and` would bring the flag's line to this core, and the store of the next round would wait in the
            // buffer for a shorter time, in which the control is to be caught.
            if membarrier.is_there { cancel(flag, ASLEEP) } else { flag.store(AWAKE) }
        }
    }
    side.own_round.store_release(u64::MAX);
    assert!(sender.wait().unwrap().success());
    (run * u64::from(CASES), lost)
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
    let asked = std::env::var(CASES_VARIABLE).map(|cases| cases.parse::<u64>().unwrap());
    let (cases, timeout) = asked.map_or((FEW_CASES, TIMEOUT), |cases| (cases, LONG_TIMEOUT));
    for kernel in kernels() {
        let (run, lost) = count_lost(Membarrier { is_there: true }, kernel, cases, timeout);
        println!("{kernel}: with membarrier {lost} of {run} wake-ups lost");
        assert_eq!(lost, 0, "{kernel}: of {run}");
        assert!(cores == 1 || run >= MIN_CASES, "{kernel}: only {run} cases in {timeout:?}");
        if cores == 1 {
            println!("{kernel}: one core cannot lose wake-ups; the control is not run");
            continue;
        }
        let (run, lost) =
            count_lost(Membarrier { is_there: false }, kernel, MAX_CONTROL_CASES, CONTROL_TIMEOUT);
        println!("{kernel}: without membarrier {lost} of {run} wake-ups lost");
        assert!(lost > 0, "{kernel}: the control lost nothing in {run} cases, so this test proves nothing");
    }
}
