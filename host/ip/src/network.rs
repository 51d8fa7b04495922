//! Which address each node has: that of the network, with the number of the node in its last bits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use beeline_fabric::NodeId;
use ipnet::{Ipv4Net, Ipv6Net};

/// Bits that are left for the number of a node.
const NODE_BITS: u8 = 8;
/// Numbers of nodes end here; those above are the fabric's.
const LAST_NODE: u16 = 251;

/// The addresses of all nodes. Node 8 of 10.77.0.0/16 is 10.77.0.8, of fd77::/64 it is fd77::8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    ipv4: Ipv4Net,
    ipv6: Option<Ipv6Net>,
}

/// A network that has no address for each node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The prefix leaves too few bits.
    #[error(
        "{network} has too few addresses for the nodes 1 to {LAST_NODE}: its prefix has at most {most} bits"
    )]
    TooSmall { network: String, most: u8 },
    /// Bits behind the prefix say something.
    #[error("{given} is an address and no network; its network is {network}")]
    AnAddress { given: String, network: String },
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    Node(NodeId),
    /// To every node: a broadcast, or to a group.
    All,
    /// To no node of the network.
    Nowhere,
}

impl Network {
    /// The network with these prefixes.
    ///
    /// # Errors
    /// See [`NetworkError`].
    pub fn new(ipv4: Ipv4Net, ipv6: Option<Ipv6Net>) -> Result<Self, NetworkError> {
        let sound = |given: String, network: String, prefix: u8, bits: u8| {
            let most = bits - NODE_BITS;
            if prefix > most {
                return Err(NetworkError::TooSmall { network: given, most });
            }
            if given != network {
                return Err(NetworkError::AnAddress { given, network });
            }
            Ok(())
        };
        sound(ipv4.to_string(), ipv4.trunc().to_string(), ipv4.prefix_len(), 32)?;
        if let Some(ipv6) = ipv6 {
            sound(ipv6.to_string(), ipv6.trunc().to_string(), ipv6.prefix_len(), 128)?;
        }
        Ok(Network { ipv4, ipv6 })
    }

    /// The address of a node, and the bits of the prefix.
    pub fn ipv4_of(&self, node: NodeId) -> (Ipv4Addr, u8) {
        let network = u32::from(self.ipv4.network());
        (Ipv4Addr::from(network | u32::from(node.0)), self.ipv4.prefix_len())
    }

    /// As [`Network::ipv4_of`], of IPv6 where the network has it.
    pub fn ipv6_of(&self, node: NodeId) -> Option<(Ipv6Addr, u8)> {
        let net = self.ipv6?;
        Some((Ipv6Addr::from(u128::from(net.network()) | u128::from(node.0)), net.prefix_len()))
    }

    /// Which node has an address; `None`: it is of another network, or no node has its number.
    pub(crate) fn node_of(&self, address: IpAddr) -> Option<NodeId> {
        let rest = match address {
            IpAddr::V4(address) if self.ipv4.contains(&address) => {
                u128::from(u32::from(address) & !u32::from(self.ipv4.netmask()))
            }
            IpAddr::V6(address) => {
                let net = self.ipv6.filter(|net| net.contains(&address))?;
                u128::from(address) & !u128::from(net.netmask())
            }
            IpAddr::V4(_) => return None,
        };
        u16::try_from(rest).ok().filter(|node| (1..=LAST_NODE).contains(node)).map(NodeId)
    }

    pub(crate) fn way_to(&self, destination: IpAddr) -> Goes {
        let is_for_all = destination.is_multicast()
            || destination == IpAddr::V4(self.ipv4.broadcast())
            || destination == IpAddr::V4(Ipv4Addr::BROADCAST);
        match self.node_of(destination) {
            _ if is_for_all => Goes::All,
            Some(node) => Goes::Node(node),
            None => Goes::Nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> Network {
        Network::new("10.77.0.0/16".parse().unwrap(), Some("fd77::/64".parse().unwrap())).unwrap()
    }

    #[test]
    fn each_node_has_the_address_of_its_number_and_the_way_to_it_is_to_that_node() {
        let network = network();
        for node in (1..=LAST_NODE).map(NodeId) {
            let (ipv4, ipv6) = (network.ipv4_of(node), network.ipv6_of(node).unwrap());
            assert_eq!((ipv4.1, ipv6.1), (16, 64));
            for address in [IpAddr::from(ipv4.0), ipv6.0.into()] {
                assert_eq!(network.node_of(address), Some(node));
                assert_eq!(network.way_to(address), Goes::Node(node));
            }
        }
        assert_eq!(network.ipv4_of(NodeId(8)).0.to_string(), "10.77.0.8");
        assert_eq!(network.ipv6_of(NodeId(8)).unwrap().0.to_string(), "fd77::8");
    }

    #[test]
    fn other_addresses_are_no_nodes() {
        let network = network();
        for address in [
            "10.77.0.0",
            "10.77.0.252",
            "10.77.1.8",
            "10.78.0.8",
            "8.8.8.8",
            "fd77::",
            "fd77::1:8",
            "fd78::8",
            "::1",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(
                (network.node_of(address), network.way_to(address)),
                (None, Goes::Nowhere),
                "{address}"
            );
        }
        for address in ["10.77.255.255", "255.255.255.255", "224.0.0.1", "ff02::1"] {
            assert_eq!(network.way_to(address.parse().unwrap()), Goes::All, "{address}");
        }
        let ipv4 = Network::new("10.77.0.0/24".parse().unwrap(), None).unwrap();
        assert_eq!(ipv4.node_of("fd77::8".parse().unwrap()), None);
    }

    #[test]
    fn network_without_an_address_for_each_node_is_refused() {
        let error = |ipv4: &str, ipv6: Option<&str>| {
            let ipv6 = ipv6.map(|net| net.parse().unwrap());
            Network::new(ipv4.parse().unwrap(), ipv6).unwrap_err().to_string()
        };
        assert!(error("10.77.0.0/25", None).contains("at most 24 bits"));
        assert!(error("10.77.0.0/24", Some("fd77::/121")).contains("at most 120 bits"));
        assert!(error("10.77.0.1/16", None).contains("its network is 10.77.0.0/16"));
    }
}
