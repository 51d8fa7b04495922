//! The command line of `beeline ip`.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{Args, Subcommand};
use ipnet::{Ipv4Net, Ipv6Net};

/// Options of `ip`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  BEELINE_NODE=4 beeline ip up --peers 8    on one host of the fabric: 10.77.0.4
  BEELINE_NODE=8 beeline ip up --peers 4    on the other one: 10.77.0.8
  ping 10.77.0.8; iperf3 -c 10.77.0.8       whatever speaks IP")]
pub struct IpArgs {
    /// What to do
    #[command(subcommand)]
    pub action: IpAction,
}

/// What can be done with IP.
#[derive(Subcommand, Debug, Clone)]
pub enum IpAction {
    /// Make a network device whose packets travel over windows between nodes, until Ctrl-C
    Up(UpArgs),
}

/// Options of `ip up`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  BEELINE_NODE=4 beeline ip up --peers 8,12
  beeline ip up --net 192.168.9.0/24 --net6 fd77::/64      node 8 has 192.168.9.8 and fd77::8
  beeline ip up --memory /dev/shm/bar --memory-bytes 64MiB --peers 8
                                                           hosts that share a file or a BAR and no kernel
  beeline ip up --json                                     an object a line, for a program

The node and its fabric are those of SISCI programs: BEELINE_NODE, the table fabric of beeline.toml (BEELINE_CONFIG, or
/etc/beeline.toml), else node 4 of the domain `default`. Each node has the address of its number, and nobody else's packets are
taken from it. It needs CAP_NET_ADMIN.")]
pub struct UpArgs {
    /// The other nodes, with commas between [default: those of beeline.toml]
    #[arg(long, value_delimiter = ',', value_name = "NODE", value_parser = clap::value_parser!(u16).range(1..=251))]
    pub peers: Vec<u16>,
    /// The network; the address of a node is that of the network and the number of the node
    #[arg(long, default_value = "10.77.0.0/16", value_name = "NET")]
    pub net: Ipv4Net,
    /// The network of IPv6 [default: none]
    #[arg(long, value_name = "NET")]
    pub net6: Option<Ipv6Net>,
    /// Name of the network device
    #[arg(long, default_value = "beeline0", value_name = "IFNAME")]
    pub interface: String,
    /// Bytes of the longest packet, the same at every node
    #[arg(long, default_value_t = 9000, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1280..=65_520))]
    pub mtu: u16,
    /// Packets of that length that wait at a node for each other one, at most
    #[arg(long, default_value_t = 64, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub queue: u32,
    /// Microseconds that it looks for the next packet before it sleeps
    #[arg(long, default_value_t = 50, value_name = "US", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub spin_us: u64,
    /// Members that share this file or BAR and no kernel, in place of a domain [default: $BEELINE_FABRIC_MEMORY, or `memory` in the
    /// table fabric of beeline.toml]
    #[arg(long, value_name = "FILE")]
    pub memory: Option<PathBuf>,
    /// Make the file, of so many bytes, if it is not there
    #[arg(long, value_name = "BYTES", requires = "memory")]
    pub memory_bytes: Option<ByteSize>,
    /// Print an object for each thing that happens
    #[arg(long)]
    pub json: bool,
}
