//! Options of `beeline ping`, through a NIC of this machine or over a wire.

use beeline_spec::Interface;
use clap::Args;

use crate::choices::interface;
use crate::options::{FenceArgs, KernelArgs, OutputArgs, ReachArgs};
use crate::wire_ping::args::WireArgs;

/// Options of `ping`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline ping                            10 and 100 byte payloads, private NIC
  beeline ping --size 10,100,1024 --count 100000 --interface mmio,descriptor
  beeline ping --kernel nt8 --fences per-line   non-temporal stores, a fence after each
  beeline ping --nic nic                  through the NIC that `beeline nic` runs under this name
  beeline ping --nic nic --owner 1000     the same of user 1000, whose NIC runs with --allow-uid and your uid
Over a wire, past the kernel; the server says its station address:
  sudo beeline ping --server --uplink af-xdp:veth1,netns=there --core 1
  sudo beeline ping --client 02:00:00:00:00:02 --uplink af-xdp:veth0 --uplink af-packet:veth0 --core 0
  sudo beeline ping --client 02:00:00:00:00:02 --uplink auto:eth0 --loss 5   what losses cost")]
pub struct PingArgs {
    /// Payload sizes in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [10u32, 100], value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=9000))]
    pub size: Vec<u32>,
    /// Round trips for each size
    #[arg(long, short, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub count: u64,
    /// Interfaces to use
    #[arg(long, value_delimiter = ',', default_values_t = [Interface::Mmio], value_name = "NAME", value_parser = interface())]
    pub interface: Vec<Interface>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub fences: FenceArgs,
    /// Use the NIC running under this name instead of a private one
    #[arg(long, value_name = "NAME")]
    pub nic: Option<String>,
    /// Milliseconds to wait for the NIC of --nic, if it is not there yet [default: 0]
    #[arg(long, value_name = "MS", requires = "nic")]
    pub timeout_ms: Option<u64>,
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Core of the measuring thread and core of the private NIC
    #[arg(long, value_delimiter = ',', default_values_t = [0usize, 1], num_args = 1, value_name = "HOST,NIC")]
    pub cores: Vec<usize>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub wire: WireArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: PingArgs,
    }

    fn parse(line: &str) -> Result<WireArgs, String> {
        let words = line.split(' ').skip(1);
        Line::try_parse_from(words).map(|line| line.args.wire).map_err(|error| error.to_string())
    }

    #[test]
    fn a_side_needs_a_wire_and_is_one_side() {
        let client = "beeline ping --client 02:00:00:00:00:01 --uplink auto:eth0,netns=a --loss 5";
        let args = parse(client).unwrap();
        assert!(args.is_wanted() && args.loss == 5.0 && args.uplink.len() == 1);
        assert!(parse("beeline ping --server --uplink af-packet:eth0").unwrap().server);
        assert!(!parse("beeline ping").unwrap().is_wanted());
        for line in [
            "beeline ping --server",
            "beeline ping --client 02:00:00:00:00:01",
            "beeline ping --client 03:00:00:00:00:01 --uplink auto:eth0",
            "beeline ping --server --client 02:00:00:00:00:01 --uplink auto:eth0",
            "beeline ping --server --uplink auto:eth0 --loss 100",
            "beeline ping --server --uplink auto:eth0 --interface mmio",
            "beeline ping --server --uplink eth0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
