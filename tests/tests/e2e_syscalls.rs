//! No system call for a message: proved by tracing the threads of two processes while messages pass.
//!
//! A traced thread stops at every system call it makes. The host's thread makes one call that is easy to know, handles
//! 100,000 messages in each direction, and makes the same call again: between the two, nothing may stop it. The NIC's
//! thread may not stop at all meanwhile. That it would be seen is shown by the calls that are seen, before and after.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod e2e_support;

use std::sync::atomic::Ordering;

use beeline_driver::{DescriptorConfig, KpioConfig, MmioConfig, Receive, Sent, Transmit};
use beeline_link_shm::ShmOptions;
use e2e_support::station::{Ring, Station};
use e2e_support::{Role, WATCHDOG, own_role, say, stop_flag};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

const MESSAGES: u64 = 100_000;

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match own_role().as_deref() {
        Some("nic") => {
            say(&format!("thread {}", nix::unistd::gettid()));
            e2e_support::run_nic();
        }
        Some("host") => host(),
        other => panic!("no role {other:?}"),
    }
}

/// The call that marks a place: it has no effect, and nothing else makes it.
fn mark() {
    let _ = nix::unistd::getppid();
}

/// Exchanges messages by each interface, a mark before and after.
fn host() {
    say(&format!("thread {}", nix::unistd::gettid()));
    let stop = stop_flag();
    let options = ShmOptions { loop_back: true, ..ShmOptions::default() };
    let mut station = Station::open(&options, stop).unwrap();
    let mut rx = station.ring().unwrap();
    let half = station.port.mmio(1, MmioConfig { random: 9, ..MmioConfig::default() });
    let mut mmio = station.open_queue(half).unwrap();
    let half = station.port.kpio(2, KpioConfig { random: 9, ..KpioConfig::default() });
    let mut kpio = station.open_queue(half).unwrap();
    let half = station.port.descriptor(3, DescriptorConfig::default());
    let mut descriptor = station.open_queue(half).unwrap();
    // Pages, lazily bound symbols and the like come with the first messages.
    exchange(&mut mmio, &mut rx, 2000);
    exchange(&mut kpio, &mut rx, 2000);
    exchange(&mut descriptor, &mut rx, 2000);
    say("warm");
    // The test program attaches now, and says so by a signal file going away: its own stdin stays open.
    let go = std::path::PathBuf::from(e2e_support::argument("GO").unwrap());
    while go.exists() {
        std::thread::yield_now();
    }
    mark();
    exchange(&mut mmio, &mut rx, MESSAGES);
    mark();
    exchange(&mut kpio, &mut rx, MESSAGES);
    mark();
    exchange(&mut descriptor, &mut rx, MESSAGES);
    mark();
    say("over");
    while !stop.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

fn exchange(tx: &mut impl Transmit, rx: &mut Ring, count: u64) {
    let frame = [0x5a; 64];
    let (mut sent, mut received) = (0, 0);
    while received < count {
        if sent < count && tx.try_send(&frame).unwrap() == Sent::Sent {
            sent += 1;
        } else {
            tx.progress().unwrap();
        }
        while let Some(frame) = rx.poll().unwrap() {
            assert_eq!(frame.len(), 64);
            received += 1;
        }
    }
}

/// Number of the system call at which a stopped thread is.
fn call_of(thread: Pid) -> u64 {
    let registers = ptrace::getregs(thread).unwrap();
    #[cfg(target_arch = "x86_64")]
    return registers.orig_rax;
    #[cfg(target_arch = "aarch64")]
    return registers.regs[8];
}

#[cfg(target_arch = "x86_64")]
const GETPPID: u64 = 110;
#[cfg(target_arch = "aarch64")]
const GETPPID: u64 = 173;

/// Attaches to a thread and lets it run on until its next system call; `None` where tracing is forbidden.
fn attach(thread: Pid) -> Option<Traced> {
    match ptrace::seize(thread, ptrace::Options::PTRACE_O_TRACESYSGOOD) {
        Ok(()) => {}
        Err(nix::errno::Errno::EPERM) => return None,
        Err(error) => panic!("cannot trace thread {thread}: {error}"),
    }
    let traced = Traced(thread);
    ptrace::interrupt(thread).unwrap();
    waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
    ptrace::syscall(thread, None).unwrap();
    Some(traced)
}

/// The system calls at which a thread has stopped since it was last asked. Each is seen twice, on its way in and out.
fn stops(thread: Pid) -> Vec<u64> {
    let mut calls = Vec::new();
    loop {
        match waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)).unwrap() {
            WaitStatus::StillAlive => return calls,
            WaitStatus::PtraceSyscall(_) => calls.push(call_of(thread)),
            WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..) => {}
            other => panic!("thread {thread} ended: {other:?}"),
        }
        ptrace::syscall(thread, None).unwrap();
    }
}

/// A traced thread that is let go when this is dropped: its process could not end while it waits for its tracer.
struct Traced(Pid);

impl Drop for Traced {
    fn drop(&mut self) {
        // Any of these fails when the thread has ended by itself.
        let _ = ptrace::interrupt(self.0);
        while matches!(
            waitpid(self.0, Some(WaitPidFlag::__WALL)),
            Ok(WaitStatus::PtraceSyscall(_) | WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..))
        ) {
            if ptrace::detach(self.0, None).is_ok() {
                return;
            }
        }
    }
}

#[test]
fn a_message_costs_no_system_call_on_either_side() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    std::fs::write(&go, b"").unwrap();
    let mut nic = Role::start("nic", folder.path(), &[("IDLE", "spin")]);
    let nic_thread = Pid::from_raw(nic.expect("thread").parse().unwrap());
    nic.expect("ready");
    let mut host = Role::start("host", folder.path(), &[("GO", go.to_str().unwrap())]);
    let host_thread = Pid::from_raw(host.expect("thread").parse().unwrap());
    host.expect("warm");
    // Declared after the roles, so that the threads are let go before their processes are ended.
    let (Some(_host), Some(_nic)) = (attach(host_thread), attach(nic_thread)) else {
        println!("not proved here: tracing child processes is forbidden (kernel.yama.ptrace_scope, seccomp)");
        return;
    };
    let waiting = stops(host_thread).len();
    std::fs::remove_file(&go).unwrap();
    let begun = std::time::Instant::now();
    let (mut calls, mut nic_calls) = (Vec::new(), Vec::new());
    // Four marks, each seen on its way in and out.
    while calls.iter().filter(|call| **call == GETPPID).count() < 8 {
        calls.extend(stops(host_thread));
        nic_calls.extend(stops(nic_thread));
        assert!(begun.elapsed() < WATCHDOG, "the host's thread never comes to its last mark: {calls:?}");
        std::thread::yield_now();
    }
    let first = calls.iter().position(|call| *call == GETPPID).unwrap();
    let last = calls.iter().rposition(|call| *call == GETPPID).unwrap();
    let between = &calls[first..=last];
    assert!(between.iter().all(|call| *call == GETPPID), "system calls between messages: {between:?}");
    assert!(nic_calls.is_empty(), "the NIC made system calls while messages passed: {nic_calls:?}");
    println!(
        "{} messages by three interfaces: 0 system calls; {} seen before them",
        3 * MESSAGES,
        waiting + first
    );
    assert!(waiting + first > 0, "the calls of a waiting host are seen");
    // The NIC's would have been seen too: it is told to end, and what it does then is.
    nic.hang_up();
    while stops(nic_thread).is_empty() {
        assert!(begun.elapsed() < WATCHDOG, "the NIC's calls are not seen");
        std::thread::yield_now();
    }
}
