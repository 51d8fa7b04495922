//! A lap window between processes: a sealed memfd that the receivers open and map for reading only, so that a store into it
//! would end them. One of them is killed on the way; the sender removes it when the kernel says so, and the others get
//! every message.
#![cfg(all(target_os = "linux", not(miri), not(loom)))]

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_mmio::{MemoryOptions, ReadOnlyMemory, SharedMemory, StoreKernel, Word};
use beeline_window::lap::{LapReceiver, LapWriter, ReaderId};
use beeline_window::{Position, Sent};

/// Tells a receiving process where its window and its credits are, and after how many messages it stops.
const ROLE: &str = "BEELINE_TEST_LAP_RECEIVER";
const LINES: u32 = 64;
const WINDOW_BYTES: usize = LINES as usize * 64;
const MESSAGES: u64 = 20_000;
/// Generous: nothing here is to take a second.
const WATCHDOG: Duration = Duration::from_secs(120);

/// A credit word between two processes.
struct Credits(Word);

impl CreditSource for Credits {
    fn freed_lines(&mut self) -> u64 {
        // Acquire: pairs with `publish`.
        self.0.load_acquire()
    }
}

impl CreditSink for Credits {
    fn publish(&mut self, freed_lines: u64) {
        // Release: pairs with `freed_lines`.
        self.0.store_release(freed_lines);
    }
}

/// Message `number`: of any length up to eleven lines, of words whose top bits vary.
fn payload(number: u64) -> Vec<u8> {
    let words = (0..).map(|word: u64| (number + word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).take(number as usize * 37 % 660).collect()
}

/// The descriptor `fd` of the process `pid`, opened anew: for reading, or for both.
fn open(pid: u32, fd: i32, for_both: bool) -> OwnedFd {
    let path = format!("/proc/{pid}/fd/{fd}");
    OpenOptions::new().read(true).write(for_both).open(path).expect("the sender's descriptor").into()
}

fn receive(role: &str) {
    let numbers: Vec<u64> = role.split(' ').map(|number| number.parse().expect("a number")).collect();
    let [pid, window, credits, last] = numbers[..] else { panic!("a role is four numbers: {role}") };
    let memory = ReadOnlyMemory::from_fd(open(pid as u32, window as i32, false), WINDOW_BYTES);
    let window = memory.and_then(|memory| memory.map()).expect("memory for reading");
    let credits = SharedMemory::from_fd(open(pid as u32, credits as i32, true), 4096);
    let credits = credits.and_then(|memory| memory.map()).expect("memory for credits");
    let port = window.read_window(0, LINES);
    let mut receiver = LapReceiver::new(port, Credits(credits.word(0)), 0, Position(0));
    for number in 0..last {
        let start = Instant::now();
        let mut out = Vec::new();
        while receiver
            .poll()
            .expect("an honest sender")
            .map(|mut message| message.copy_to(&mut out))
            .is_none()
        {
            assert!(start.elapsed() < WATCHDOG, "message {number} never arrives");
            std::thread::yield_now();
        }
        assert_eq!(out, payload(number), "message {number}");
    }
    if last < MESSAGES {
        // The death that is to be seen: no more credits, and no end of its own before the watchdog's.
        let begun = Instant::now();
        while begun.elapsed() < WATCHDOG {
            std::thread::park_timeout(WATCHDOG);
        }
    }
    receiver.push_credits();
}

struct Process {
    child: Child,
    reader: ReaderId,
}

#[test]
fn receivers_in_other_processes_map_the_window_for_reading_and_one_may_die() {
    if let Ok(role) = std::env::var(ROLE) {
        return receive(&role);
    }
    let (region, memory) = ReadOnlyMemory::create("beeline-test-lap", WINDOW_BYTES).expect("a window");
    let port = region.store_window(0, LINES, StoreKernel::Cached);
    let mut writer = LapWriter::new(port, 0);
    let mut start = |last: u64| {
        let credits = SharedMemory::create("beeline-test-credits", 4096, MemoryOptions::default());
        let credits = credits.expect("memory for credits");
        let word = credits.map().expect("a mapping").word(0);
        let (reader, position) = writer.join(Credits(word));
        assert_eq!(position, Position(0));
        let (window, credits_fd) = (memory.fd().as_raw_fd(), credits.fd().as_raw_fd());
        let mut command = Command::new(std::env::current_exe().expect("this program's path"));
        let name = "receivers_in_other_processes_map_the_window_for_reading_and_one_may_die";
        command.args([name, "--exact", "--nocapture"]);
        command.env(ROLE, format!("{} {window} {credits_fd} {last}", std::process::id()));
        (Process { child: command.spawn().expect("a process"), reader }, credits)
    };
    // The descriptors are kept, since the receivers open them when they like.
    let (mut processes, _credits): (Vec<_>, Vec<_>) =
        [MESSAGES, MESSAGES / 3, MESSAGES].into_iter().map(&mut start).unzip();
    let (victim, begun) = (processes[1].reader, Instant::now());
    for number in 0..MESSAGES {
        let message = payload(number);
        while writer.try_send(&message).expect("honest receivers") == Sent::Full {
            assert!(begun.elapsed() < WATCHDOG, "message {number} never leaves");
            let slowest = writer.slowest().expect("somebody receives").0;
            if slowest == victim && number > MESSAGES / 3 {
                // What the window waits for is a process that the kernel says is dead.
                let child = &mut processes[1].child;
                child.kill().expect("our own child");
                assert!(!child.wait().expect("our own child").success());
                assert!(writer.remove(victim).is_some());
            }
            std::thread::yield_now();
        }
    }
    assert!(writer.remove(victim).is_none(), "it was removed on the way");
    for process in [0, 2] {
        assert!(processes[process].child.wait().expect("our own child").success());
    }
}
