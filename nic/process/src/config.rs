//! What a NIC process is started with, and which values make sense.

use std::path::PathBuf;
use std::time::Duration;

use beeline_domain::DomainConfig;
use beeline_ethernet::WireConfig;
use beeline_link_shm::PortConfig;
use beeline_nic_model::NicConfig;
use beeline_wait::WaitPolicy;

use crate::NicProcessError;

/// Most ports of one process: the station addresses of its ports differ in their last two bytes.
const MAX_PORTS: u32 = 4096;
/// Most entries of the address table.
const MAX_ADDRESSES: u32 = 1 << 20;

/// What a NIC process does when nothing arrives, if nothing else is said: it looks for milliseconds before it sleeps.
const IDLE: WaitPolicy = WaitPolicy::new().spins(20_000).yields(200).sleep(Some(Duration::from_millis(100)));

/// How a NIC process is set up.
#[derive(Clone, Debug)]
pub struct NicProcessConfig {
    /// The domain whose processes can open ports.
    pub domain: DomainConfig,
    /// The name under which they find it.
    pub service: String,
    /// Users besides the domain's owner whose processes may open ports and ask for statistics. SECURITY.md says what that
    /// lets them do.
    pub allowed_uids: Vec<u32>,
    /// Ports at most, functions included.
    pub max_ports: u32,
    /// Sockets at which ports are served as PCI functions, by vfio-user: the ports of guests. They are the first ports.
    pub functions: Vec<PathBuf>,
    /// The device behind each port. Its windows are always blank windows, and the number of the port is added to its
    /// station address.
    pub nic: NicConfig,
    /// How each port's memory is looked at.
    pub port: PortConfig,
    /// Whether every port gets its own frames back. Hosts can also ask for it, each for its own port.
    pub loop_back: bool,
    /// Whether a frame waits until its receiver has room, and its sender with it (`true`), or is dropped and counted.
    pub is_lossless: bool,
    /// How long the last frames of a host that is gone wait for receivers without room, at most a minute; what is left
    /// then is dropped and counted. As long its port, memory and all, stays one of `max_ports`.
    pub departure_limit: Duration,
    /// What is joined to the switch besides ports.
    pub uplinks: Vec<UplinkConfig>,
    /// The table of station addresses.
    pub addresses: MacTableConfig,
    /// What to do when nothing arrives.
    pub idle: WaitPolicy,
    /// The core to run on; `None` leaves it to the system.
    pub core: Option<usize>,
}

impl Default for NicProcessConfig {
    fn default() -> Self {
        NicProcessConfig {
            domain: DomainConfig { root: None, name: "default".into() },
            service: "nic".into(),
            allowed_uids: Vec::new(),
            max_ports: 64,
            functions: Vec::new(),
            nic: NicConfig { blank: true, ..NicConfig::default() },
            port: PortConfig::default(),
            loop_back: false,
            is_lossless: true,
            departure_limit: Duration::from_secs(5),
            uplinks: Vec::new(),
            addresses: MacTableConfig::default(),
            idle: IDLE,
            core: None,
        }
    }
}

impl NicProcessConfig {
    /// Whether a NIC process can be started with this.
    ///
    /// # Errors
    /// The first value that makes no sense, with what it may be.
    pub fn validate(&self) -> Result<(), NicProcessError> {
        let within = |what, found: u32, most: u32| match found {
            1.. if found <= most => Ok(()),
            _ => Err(NicProcessError::OutOfRange { what, found, least: 1, most }),
        };
        within("max_ports", self.max_ports, MAX_PORTS)?;
        if self.functions.len() as u64 > u64::from(self.max_ports) {
            return Err(NicProcessError::Functions {
                functions: self.functions.len(),
                ports: self.max_ports,
            });
        }
        within("addresses.entries", self.addresses.entries, MAX_ADDRESSES)?;
        within("port.burst_lines", self.port.burst_lines, u32::MAX)?;
        if self.addresses.ageing < Duration::from_secs(1) {
            return Err(NicProcessError::Ageing(self.addresses.ageing));
        }
        if self.departure_limit > Duration::from_secs(60) {
            return Err(NicProcessError::Departure(self.departure_limit));
        }
        if let Some(limit) = self.idle.sleep
            && !(Duration::from_millis(1)..=Duration::from_secs(1)).contains(&limit)
        {
            return Err(NicProcessError::Sleep(limit));
        }
        self.nic.validate()?;
        let is_network =
            |uplink: &&UplinkConfig| matches!(uplink, UplinkConfig::Tap(_) | UplinkConfig::Wire(_));
        let networks = self.uplinks.iter().filter(is_network).count();
        let loops = self.uplinks.iter().filter(|uplink| matches!(uplink, UplinkConfig::Loopback)).count();
        if loops > 0 && loops + networks > 1 {
            // A loop-back and anything else that gives frames would hand a flooded frame to each other for ever.
            return Err(NicProcessError::Loop);
        }
        Ok(())
    }
}

/// Something joined to the switch besides ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UplinkConfig {
    /// Gives every frame that reaches it back.
    Loopback,
    /// Plays a capture into the switch.
    PcapIn(PathBuf),
    /// Captures every frame that enters the switch.
    PcapOut(PathBuf),
    /// A TAP interface of this name.
    Tap(String),
    /// A socket on an interface, past the kernel's network; promiscuous, whatever it says, because of the switch.
    Wire(Box<WireConfig>),
}

/// The address that a NIC with this address gives to a port.
pub(crate) fn station_address([a, b, c, d, high, low]: [u8; 6], number: u32) -> [u8; 6] {
    let [high, low] = u16::from_be_bytes([high, low]).wrapping_add(number as u16).to_be_bytes();
    [a, b, c, d, high, low]
}

/// The number of the port to which a NIC with this address gives `address`, if there is such a port among `ports`.
pub(crate) fn port_of_station(mac: [u8; 6], address: [u8; 6], ports: u32) -> Option<u32> {
    let last = |address: [u8; 6]| u16::from_be_bytes([address[4], address[5]]);
    let number = u32::from(last(address).wrapping_sub(last(mac)));
    (address[..4] == mac[..4] && number < ports).then_some(number)
}

/// The table of station addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacTableConfig {
    /// Addresses it holds; rounded up to a power of two.
    pub entries: u32,
    /// How long an address that is not heard of is kept.
    pub ageing: Duration,
}

impl Default for MacTableConfig {
    /// Returns the ageing time that IEEE 802.1Q recommends, 300 s.
    fn default() -> Self {
        MacTableConfig { entries: 4096, ageing: Duration::from_secs(300) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_station_is_the_one_it_was_given_to() {
        // The last two bytes go round.
        for mac in [[2, 0xbe, 0xe1, 0x1e, 0, 0xfe], [2, 0, 0, 0, 0xff, 0xf0]] {
            for number in [0, 1, 2, 15, 16, 299, 4095] {
                let address = station_address(mac, number);
                assert_eq!(port_of_station(mac, address, 4096), Some(number));
                assert_eq!(port_of_station(mac, address, number), None, "there are fewer ports");
                let other = [address[0], address[1], address[2], !address[3], address[4], address[5]];
                assert_eq!(port_of_station(mac, other, 4096), None);
            }
        }
    }

    #[test]
    fn the_default_makes_sense() {
        NicProcessConfig::default().validate().unwrap();
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_number() {
        let good = NicProcessConfig::default();
        let refused = |bad: NicProcessConfig, said: &str| {
            let error = bad.validate().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        };
        refused(NicProcessConfig { max_ports: 0, ..good.clone() }, "max_ports = 0");
        refused(NicProcessConfig { max_ports: 5000, ..good.clone() }, "1 to 4096");
        let addresses = MacTableConfig { entries: 0, ..MacTableConfig::default() };
        refused(NicProcessConfig { addresses, ..good.clone() }, "addresses.entries");
        let addresses = MacTableConfig { ageing: Duration::ZERO, ..MacTableConfig::default() };
        refused(NicProcessConfig { addresses, ..good.clone() }, "1 s");
        let nic = NicConfig { queues: 0, ..NicConfig::default() };
        refused(NicProcessConfig { nic, ..good.clone() }, "queues = 0");
        let port = PortConfig { burst_lines: 0, ..PortConfig::default() };
        refused(NicProcessConfig { port, ..good.clone() }, "burst_lines");
        let functions = vec![PathBuf::from("a"), PathBuf::from("b")];
        refused(NicProcessConfig { max_ports: 1, functions, ..good.clone() }, "2 PCI functions");
        let idle = WaitPolicy::new().spins(1).yields(1).sleep(Some(Duration::from_secs(60)));
        refused(NicProcessConfig { idle, ..good.clone() }, "1 ms to 1 s");
        let departure_limit = Duration::from_secs(61);
        refused(NicProcessConfig { departure_limit, ..good.clone() }, "at most 60 s");
        let uplinks = vec![UplinkConfig::Loopback, UplinkConfig::Tap("bee0".into())];
        refused(NicProcessConfig { uplinks, ..good.clone() }, "loop");
        let wire = "af-xdp:eth0".parse().unwrap();
        let uplinks = vec![UplinkConfig::Wire(Box::new(wire)), UplinkConfig::Loopback];
        refused(NicProcessConfig { uplinks, ..good }, "loop");
    }
}
