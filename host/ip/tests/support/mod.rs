//! Nodes of a fabric in network namespaces of their own, in this process.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use beeline_domain::DomainConfig;
use beeline_ethernet::in_network_namespace;
use beeline_fabric::{AdapterNumber, NodeId};
use beeline_fabric_process::{Configuration, FabricConfig, OneMemory};
use beeline_ip::{Ip, IpConfig, IpError, Joined, Network};

/// Far longer than anything here takes.
pub const WATCHDOG: Duration = Duration::from_secs(30);
pub const MTU: u16 = 9000;

/// By what the nodes are joined.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// A file that both have mapped, and nothing else.
    Memory,
    /// A domain, and two adapters of each node.
    Domain,
}

/// Namespaces of two nodes, and where they meet; all of it goes with this.
pub struct Ground {
    by: By,
    folder: tempfile::TempDir,
    unique: String,
}

impl Ground {
    /// None, with a word, where the kernel lets this user make no namespaces or devices.
    pub fn make(by: By) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let unique = format!("{}y{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let ground = Ground { by, folder: tempfile::tempdir_in("/dev/shm").unwrap(), unique };
        let made = [4, 8].map(|node| {
            let namespace = ground.namespace(node);
            ip(&["netns", "add", &namespace])
                .and_then(|()| ip(&["-n", &namespace, "link", "set", "lo", "up"]))
        });
        match made.into_iter().collect::<Result<Vec<()>, String>>() {
            Ok(_) if Path::new("/dev/net/tun").exists() => Some(ground),
            Ok(_) => {
                println!("no /dev/net/tun here, so that nothing is carried");
                None
            }
            Err(why) => {
                println!("no namespaces here, so that nothing is carried: {why}");
                None
            }
        }
    }

    fn namespace(&self, node: u16) -> String {
        format!("beeip{}n{node}", self.unique)
    }

    pub fn inside<R>(&self, node: u16, work: impl FnOnce() -> R) -> R {
        in_network_namespace(&self.namespace(node), work).unwrap()
    }

    pub fn memory(&self) -> PathBuf {
        self.folder.path().join("memory")
    }

    pub fn configuration(&self, node: u16) -> Configuration {
        let adapters = match self.by {
            By::Memory => vec![AdapterNumber::new(0).unwrap()],
            By::Domain => [0, 1].map(|adapter| AdapterNumber::new(adapter).unwrap()).to_vec(),
        };
        let one_memory = OneMemory { path: self.memory(), members: 4, bytes: Some(64 << 20), slot: None };
        Configuration {
            fabric: FabricConfig {
                domain: DomainConfig { root: Some(self.folder.path().join("root")), name: "ip".to_owned() },
                node: NodeId(node),
                adapters,
                nodes: [4, 8, 12].map(NodeId).to_vec(),
            },
            named: Vec::new(),
            polls: false,
            terms: Default::default(),
            one_memory: matches!(self.by, By::Memory).then_some(one_memory),
            users: Default::default(),
            exports: Default::default(),
            fails_over: true,
        }
    }

    pub fn config() -> IpConfig {
        IpConfig {
            interface: "beeline0".to_owned(),
            network: Network::new("10.77.0.0/16".parse().unwrap(), Some("fd77::/64".parse().unwrap()))
                .unwrap(),
            peers: [4, 8, 12].map(NodeId).to_vec(),
            mtu: MTU,
            queue_packets: 64,
            spin: Duration::from_micros(50),
            unrung: Duration::from_millis(100),
        }
    }

    pub fn try_up(&self, node: u16) -> Result<Ip, IpError> {
        self.try_up_with(node, Ground::config())
    }

    pub fn try_up_with(&self, node: u16, config: IpConfig) -> Result<Ip, IpError> {
        let joined = Joined::open(self.configuration(node)).unwrap();
        self.inside(node, || Ip::up(joined, config))
    }

    pub fn up(&self, node: u16) -> Ip {
        self.try_up(node).unwrap()
    }

    /// Both nodes, once each has the other.
    pub fn both(&self) -> [Ip; 2] {
        let both = [self.up(4), self.up(8)];
        has_peer(&both[0], 8);
        has_peer(&both[1], 4);
        both
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for node in [4, 8] {
            let _ = ip(&["netns", "del", &self.namespace(node)]);
        }
    }
}

pub fn address(node: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, node as u8)
}

/// Waits until a node is there.
pub fn has_peer(ip: &Ip, node: u16) {
    until("a node is there", || ip.peers().iter().any(|peer| peer.node.0 == node && peer.is_up));
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WATCHDOG, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}
