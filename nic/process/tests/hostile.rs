//! Hosts that mean harm to the NIC's loop: the others are served, and what the NIC holds stays bounded.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use beeline_contract_link::Link;
use beeline_domain::Connection;
use beeline_link_shm::{ShmLink, ShmOptions};
use beeline_mmio::{MemoryOptions, SharedMemory};
use beeline_nic_process::{NicProcessConfig, StatisticsFeed};
use beeline_spec::formats::port_host_memory as host;
use beeline_spec::regs;
use beeline_wait::WaitPolicy;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use support::{Running, Station, WATCHDOG, config, domain};

/// A port opened by hand.
struct Hostile {
    connection: Connection,
    event: OwnedFd,
    waiting: beeline_mmio::Flag,
}

impl Hostile {
    fn open(root: &Path) -> Self {
        let memory = SharedMemory::create("hostile", host::BYTES, MemoryOptions::default()).unwrap();
        let open = br#"{"request":"open","version":1,"loop_back":false}"#;
        let (connection, mut reply) = domain(root).connect("nic", open, &[memory.fd()]).unwrap();
        let event = reply.fds.pop().unwrap();
        Hostile { connection, event, waiting: memory.map().unwrap().flag(host::NIC_WAITING_OFFSET) }
    }

    /// Waits until the NIC says that it sleeps.
    fn until_it_sleeps(&self) {
        let begun = Instant::now();
        while self.waiting.load() == 0 {
            assert!(begun.elapsed() < WATCHDOG, "the NIC never sleeps");
            std::thread::yield_now();
        }
    }
}

/// Frames pass between two stations.
fn echo(stations: &mut [Station; 2], number: u16) {
    let frame = stations[0].frame(2, number, 100);
    stations[0].send(&frame);
    assert_eq!(stations[1].receive(), frame);
    let answer = stations[1].frame(1, number, 200);
    stations[1].send(&answer);
    assert_eq!(stations[0].receive(), answer);
}

fn stations(root: &Path) -> [Station; 2] {
    [1, 2].map(|address| Station::connect(root, address, false, 512))
}

#[test]
fn whatever_a_host_does_with_its_event_the_loop_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(config(folder.path()));
    let mut stations = stations(folder.path());
    let deeds: [(&str, fn(&OwnedFd)); 6] = [
        ("makes it blocking", |event| fcntl_setfl(event, OFlags::empty()).unwrap()),
        ("drains it", |event| {
            while recv(event, &mut [0u8; 64], RecvFlags::DONTWAIT).is_ok_and(|(_, bytes)| bytes > 0) {}
        }),
        ("fills it", |event| while send(event, &[1; 4096], SendFlags::DONTWAIT).is_ok() {}),
        ("stops sending", |event| shutdown(event, Shutdown::Write).unwrap()),
        ("ends it", |event| shutdown(event, Shutdown::Both).unwrap()),
        ("passes descriptors", |event| {
            let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
            let rights = [event.as_fd()];
            assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&rights)));
            // Refused by kernels that can refuse it.
            let _ = rustix::net::sendmsg(
                event,
                &[std::io::IoSlice::new(b"x")],
                &mut control,
                SendFlags::DONTWAIT,
            );
        }),
    ];
    for (number, (deed, does)) in deeds.iter().enumerate() {
        println!("a host {deed}");
        let hostile = Hostile::open(folder.path());
        does(&hostile.event);
        for round in 0..3 {
            hostile.until_it_sleeps();
            // It wakes, and sleeps again.
            echo(&mut stations, (number * 3 + round) as u16);
        }
        let hostile = (hostile.connection, hostile.waiting);
        echo(&mut stations, 0);
        drop(hostile);
    }
    let last = nic.stop();
    assert!(last.rounds.sleeps > 0 && last.rounds.ports_opened == 8, "{:?}", last.rounds);
}

/// Mappings of this process, the NIC in it, that are windows.
fn window_mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("memfd:beeline-window")).count()
}

#[test]
fn ten_thousand_requests_for_a_window_leave_the_nic_as_it_was() {
    for idle in [WaitPolicy::new().spins(100).yields(0).sleep(None), WaitPolicy::SPIN] {
        let folder = tempfile::tempdir().unwrap();
        let nic = Running::start(NicProcessConfig { idle, ..config(folder.path()) });
        let mut stations = stations(folder.path());
        let hostile = Hostile::open(folder.path());
        let (mut taken, mut most) = (0, 0);
        for number in 0..10_000u16 {
            let request = format!(r#"{{"request":"window","queue":{},"is_cached":true}}"#, number % 16);
            match hostile.connection.call(request.as_bytes(), &[]) {
                Ok(_) => taken += 1,
                Err(error) => assert!(error.to_string().contains("not yet taken over"), "{error}"),
            }
            if number % 100 == 0 {
                most = most.max(window_mappings());
                echo(&mut stations, number);
            }
        }
        // The channel's 512 and the 16 queues' own; other tests of this process have a few.
        assert!(most < 600, "{most} windows are mapped at a time, {taken} were opened");
        assert!(taken > 512, "only {taken} were opened: the loop takes nothing over");
        let begun = Instant::now();
        while window_mappings() > 40 {
            assert!(begun.elapsed() < WATCHDOG, "{} windows stay", window_mappings());
            std::thread::yield_now();
        }
        let (feed, now) = StatisticsFeed::open(&domain(folder.path()), "nic").unwrap();
        assert_eq!(now.ports.len(), 3);
        drop((feed, hostile.event));
        echo(&mut stations, 1);
        nic.stop();
    }
}

/// Page faults so far of each thread of this process that has this name, by its number and the time of its beginning: numbers are
/// given again.
fn faults(name: &str) -> HashMap<(u64, u64), u64> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let stats =
        threads.filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            let (before, after) = stat.rsplit_once(')')?;
            let (number, its_name) = before.split_once(" (")?;
            let fields: Vec<_> = after.split_ascii_whitespace().collect();
            let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
            (its_name == name).then_some(((number.parse().ok()?, field(19)?), field(7)?))
        })
        .collect()
}

#[test]
fn memory_that_a_host_registers_is_mapped_by_no_thread_that_others_wait_for() {
    const BYTES: usize = 32 << 20;
    const ROUNDS: u64 = 4;
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(config(folder.path()));
    let mut stations = stations(folder.path());
    let hostile = Hostile::open(folder.path());
    let before = faults("beeline-domain");
    for round in 0..ROUNDS {
        // Nothing is in it: whoever maps it brings its pages in.
        let memory = SharedMemory::create("sparse", BYTES, MemoryOptions::default()).unwrap();
        let register = format!(r#"{{"request":"memory","bytes":{BYTES}}}"#);
        let reply = hostile.connection.call(register.as_bytes(), &[memory.fd()]).unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&reply.payload).unwrap();
        let release = format!(r#"{{"request":"release","region":{}}}"#, answer["region"]);
        hostile.connection.call(release.as_bytes(), &[]).unwrap();
        echo(&mut stations, round as u16);
    }
    let after = faults("beeline-domain");
    assert!(after.keys().any(|thread| before.contains_key(thread)), "the NIC's thread lives at both moments");
    // Threads of other tests begin and end meanwhile.
    let faulted: u64 = after.iter().map(|(thread, faults)| faults - before.get(thread).unwrap_or(&0)).sum();
    // Each piece of memory is of 8192 pages.
    assert!(faulted < 2000, "{faulted} page faults on threads that watch, for {ROUNDS} pieces of memory");
    nic.stop();
}

/// Ends what floods, also when the test fails.
struct Floods<'a>(&'a AtomicBool);

impl Drop for Floods<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes registers of a port of its own, resets and starts of queues among them, until it is told to stop, and counts them.
fn flood_registers(root: &Path, stop: &AtomicBool, written: &AtomicU64) {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    while !stop.load(Ordering::Relaxed) {
        // A port that broke a rule is expelled; the next one goes on.
        let Ok(mut link) = ShmLink::connect(&domain(root), &ShmOptions::default()) else { continue };
        while !stop.load(Ordering::Relaxed) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let queue = regs::QUEUE + (random >> 8) as u32 % 17 * regs::QUEUE_STRIDE;
            let (offset, value) = match random % 4 {
                0 => (regs::CONTROL, random >> 32 & 3),
                1 => (queue + regs::queue::CONTROL, 1 | (random >> 32 & 7) << 4),
                2 => (queue + (random >> 16) as u32 % 0x12 * 8, random >> 20),
                _ => ((random >> 16) as u32, random),
            };
            match link.write_register(offset, value) {
                Ok(is_written) => _ = written.fetch_add(u64::from(is_written), Ordering::Relaxed),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn floods_of_register_writes_and_questions_change_no_frame_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(config(folder.path()));
    let mut stations = stations(folder.path());
    let (stop, written, asked) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let is_flooded = || written.load(Ordering::Relaxed) > 1000 && asked.load(Ordering::Relaxed) > 10;
    let echoes = std::thread::scope(|scope| {
        scope.spawn(|| flood_registers(folder.path(), &stop, &written));
        let questions = scope.spawn(|| {
            let (feed, _) = StatisticsFeed::open(&domain(folder.path()), "nic").unwrap();
            while !stop.load(Ordering::Relaxed) {
                assert!(feed.next().is_ok(), "a question is not answered");
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        let floods = Floods(&stop);
        // Both floods take their time to begin, and frames pass while they last.
        let (begun, mut echoes) = (Instant::now(), 0_u64);
        while echoes < 300 || !is_flooded() {
            assert!(!questions.is_finished(), "a question is not answered");
            let is_in_time = is_flooded() || begun.elapsed() < WATCHDOG;
            assert!(is_in_time, "{written:?} registers, {asked:?} questions are no flood");
            echo(&mut stations, echoes as u16);
            echoes += 1;
        }
        drop(floods);
        echoes
    });
    println!("{written:?} registers were written, {asked:?} questions asked, {echoes} echoes");
    echo(&mut stations, 0);
    nic.stop();
}

/// Prints how long frames take between two honest ports, without and with a host that registers and releases 255 MiB as fast
/// as it can.
#[test]
#[ignore = "its times mean something on a quiet machine only"]
fn frames_pass_while_large_memory_is_registered_and_released() {
    const BYTES: usize = 255 << 20;
    const LASTS: std::time::Duration = std::time::Duration::from_secs(3);
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(config(folder.path()));
    let mut stations = stations(folder.path());
    let mut measure = |what: &str| {
        let (start, mut times) = (Instant::now(), Vec::new());
        while start.elapsed() < LASTS {
            let begun = Instant::now();
            echo(&mut stations, times.len() as u16);
            times.push(begun.elapsed());
        }
        times.sort();
        let at = |share: f64| times[(times.len() as f64 * share) as usize];
        println!("{what}: median {:?}, p99 {:?}, worst {:?}", at(0.5), at(0.99), times[times.len() - 1]);
        at(0.5)
    };
    let quiet = measure("nothing is registered");
    let hostile = Hostile::open(folder.path());
    let stop = AtomicBool::new(false);
    let busy = std::thread::scope(|scope| {
        let churn = scope.spawn(|| {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                let memory = SharedMemory::create("sparse", BYTES, MemoryOptions::default()).unwrap();
                let register = format!(r#"{{"request":"memory","bytes":{BYTES}}}"#);
                // The one before counts until it is unmapped.
                let Ok(reply) = hostile.connection.call(register.as_bytes(), &[memory.fd()]) else {
                    continue;
                };
                let answer: serde_json::Value = serde_json::from_slice(&reply.payload).unwrap();
                let release = format!(r#"{{"request":"release","region":{}}}"#, answer["region"]);
                hostile.connection.call(release.as_bytes(), &[]).unwrap();
                rounds += 1;
            }
            rounds
        });
        let busy = measure("255 MiB are registered and released");
        stop.store(true, Ordering::Relaxed);
        println!("{} times", churn.join().unwrap());
        busy
    });
    assert!(busy < quiet + std::time::Duration::from_millis(50));
    nic.stop();
}
