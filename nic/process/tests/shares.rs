//! What one process may have of a NIC, and where that goes when it is given back: by a release, by a close, by a death.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use beeline_domain::Connection;
use beeline_link_shm::PortConfig;
use beeline_mmio::{MemoryOptions, SharedMemory};
use beeline_nic_process::NicProcessConfig;
use beeline_spec::formats::port_host_memory as host;
use support::{Running, WATCHDOG, config, domain};

/// What a port may have mapped, and what is registered at a time.
const PORT_BYTES: u64 = 1 << 20;
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that a port may have, and those that all ports of a process may.
const OF_PORT: usize = 4;
const OF_PROCESS: usize = 2 * OF_PORT;
/// Ports of the NIC, and those that one process may have.
const PORTS: u32 = 16;
const PORTS_OF_PROCESS: usize = 15;
/// Names the folder in a process that only takes what it gets.
const TAKER: &str = "BEELINE_TEST_TAKER";

/// What the memory of a taker is called in the mappings of the NIC's process, which is this one: each test has a taker.
fn takers_memory(root: &Path) -> String {
    format!("of-the-taker-in-{}", root.file_name().unwrap().display())
}

fn small(root: &Path) -> NicProcessConfig {
    let port = PortConfig { max_memory_bytes: PORT_BYTES, ..PortConfig::default() };
    NicProcessConfig { port, max_ports: PORTS, ..config(root) }
}

/// A port opened by hand, and its regions.
struct Port {
    connection: Connection,
    regions: Vec<u64>,
}

impl Port {
    fn open(root: &Path) -> Result<Self, String> {
        let memory = SharedMemory::create("port", host::BYTES, MemoryOptions::default()).unwrap();
        let open = br#"{"request":"open","version":1,"loop_back":false}"#;
        let opened = domain(root).connect("nic", open, &[memory.fd()]);
        let (connection, _) = opened.map_err(|error| error.to_string())?;
        Ok(Port { connection, regions: Vec::new() })
    }

    /// Registers one more piece of memory, if there may be one.
    fn register(&mut self, name: &str) -> Result<(), String> {
        let memory = SharedMemory::create(name, PIECE_BYTES, MemoryOptions::default()).unwrap();
        let register = format!(r#"{{"request":"memory","bytes":{PIECE_BYTES}}}"#);
        let reply =
            self.connection.call(register.as_bytes(), &[memory.fd()]).map_err(|error| error.to_string())?;
        let answer: serde_json::Value = serde_json::from_slice(&reply.payload).unwrap();
        self.regions.push(answer["region"].as_u64().unwrap());
        Ok(())
    }

    /// Registers all it can; how many pieces that were. What was given back lately counts until it is unmapped.
    fn fill(&mut self, name: &str) -> usize {
        let pieces = std::iter::repeat_with(|| self.register(name)).take_while(Result::is_ok).count();
        let refused = self.register(name).unwrap_err();
        assert!(refused.contains("memory"), "{refused}");
        pieces
    }

    /// Registers so many pieces more, which are on their way back to it.
    fn register_in_time(&mut self, pieces: usize) {
        let begun = Instant::now();
        for _ in 0..pieces {
            while let Err(refused) = self.register("again") {
                assert!(begun.elapsed() < WATCHDOG, "{pieces} pieces do not come back: {refused}");
            }
        }
        self.register("more").unwrap_err();
    }

    fn release(&mut self) {
        let region = self.regions.pop().unwrap();
        let release = format!(r#"{{"request":"release","region":{region}}}"#);
        self.connection.call(release.as_bytes(), &[]).unwrap();
    }
}

/// Another process, which opens all the ports it may, registers all the memory it may, and then waits.
struct Taker {
    child: Child,
    ports: usize,
    pieces: usize,
}

impl Taker {
    fn start(root: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "taker", "--nocapture", "--test-threads=1"]).env(TAKER, root);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let taken = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("taken ").map(str::to_owned));
        let taken = taken.expect("the other process takes what it can");
        let (ports, pieces) = taken.split_once(' ').unwrap();
        Taker { child, ports: ports.parse().unwrap(), pieces: pieces.parse().unwrap() }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other process, when this program is started as one.
#[test]
fn taker() {
    let Some(root) = std::env::var_os(TAKER) else { return };
    let mut ports: Vec<Port> =
        std::iter::repeat_with(|| Port::open(root.as_ref())).map_while(Result::ok).collect();
    let name = takers_memory(root.as_ref());
    let pieces: usize = ports.iter_mut().map(|port| port.fill(&name)).sum();
    println!("\ntaken {} {pieces}", ports.len());
    // Until it is killed, or whoever started it has ended.
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// The taker's memory that the NIC has mapped.
fn takers_mappings(root: &Path) -> usize {
    let (maps, name) = (std::fs::read_to_string("/proc/self/maps").unwrap(), takers_memory(root));
    maps.lines().filter(|line| line.contains(&name)).count()
}

#[test]
fn ports_of_a_process_together_have_twice_the_memory_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(small(folder.path()));
    let mut ports: Vec<Port> = (0..4).map(|_| Port::open(folder.path()).unwrap()).collect();
    let pieces: Vec<usize> = ports.iter_mut().map(|port| port.fill("own")).collect();
    assert_eq!(pieces, [OF_PORT, OF_PORT, 0, 0]);
    // What one of them releases another one can have, and no more than that.
    ports[0].release();
    ports[3].register_in_time(1);
    assert!(ports[0].register("own").is_err(), "its share is in use by another port of the process");
    // The same with all that a port had when it is closed.
    drop(ports.remove(1));
    ports[1].register_in_time(OF_PORT);
    assert!(ports[2].register("own").is_err());
    nic.stop();
}

#[test]
fn another_process_has_a_share_of_its_own_and_loses_it_with_its_life() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(small(folder.path()));
    let mut ports: Vec<Port> = (0..2).map(|_| Port::open(folder.path()).unwrap()).collect();
    assert_eq!(ports.iter_mut().map(|port| port.fill("own")).sum::<usize>(), OF_PROCESS);
    for round in 0..2 {
        let taker = Taker::start(folder.path());
        assert_eq!((taker.ports, taker.pieces), (PORTS as usize - 2, OF_PROCESS), "round {round}");
        assert_eq!(takers_mappings(folder.path()), OF_PROCESS);
        let full = Port::open(folder.path()).err().unwrap_or_default();
        assert!(full.contains("all 16 ports are open"), "{full}");
        taker.kill();
        let begun = Instant::now();
        while takers_mappings(folder.path()) > 0 {
            assert!(begun.elapsed() < WATCHDOG, "the memory of a dead process stays mapped");
            std::thread::yield_now();
        }
        // Its ports too: for whoever comes next, which has to be the next taker's 14.
        let ports = std::iter::repeat_with(|| Port::open(folder.path()).ok());
        let begun = Instant::now();
        let held: Vec<Port> = ports
            .inspect(|_| assert!(begun.elapsed() < WATCHDOG, "the ports of a dead process stay taken"))
            .flatten()
            .take(PORTS_OF_PROCESS - 2)
            .collect();
        drop(held);
        wait_for_free_ports(folder.path(), 2);
    }
    nic.stop();
}

/// Waits until the NIC has no more than so many ports.
fn wait_for_free_ports(root: &Path, ports: usize) {
    let begun = Instant::now();
    let (feed, mut now) = beeline_nic_process::StatisticsFeed::open(&domain(root), "nic").unwrap();
    while now.ports.len() > ports || now.leaving > 0 {
        assert!(begun.elapsed() < WATCHDOG, "ports stay");
        now = feed.next().unwrap();
    }
}

#[test]
fn one_process_leaves_ports_to_others_and_what_it_closes_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(small(folder.path()));
    let mut ports: Vec<Port> =
        std::iter::repeat_with(|| Port::open(folder.path())).map_while(Result::ok).collect();
    assert_eq!(ports.len(), PORTS_OF_PROCESS);
    let refused = Port::open(folder.path()).err().unwrap_or_default();
    let reason = format!("process {} has {PORTS_OF_PROCESS} of them", std::process::id());
    assert!(refused.contains(&reason), "{refused}");
    let taker = Taker::start(folder.path());
    assert_eq!(taker.ports, 1);
    // Closed in order: its number is there for the next port at once, or as soon as the loop has let go of it.
    ports.pop();
    let begun = Instant::now();
    while let Err(refused) = Port::open(folder.path()).map(|port| ports.push(port)) {
        assert!(begun.elapsed() < WATCHDOG, "{refused}");
    }
    assert_eq!(ports.len(), PORTS_OF_PROCESS);
    nic.stop();
}
