//! Options of `beeline send`.

use std::path::PathBuf;

use beeline_spec::Interface;
use clap::Args;

use crate::choices::interface;
use crate::options::{DeviceName, FenceArgs, KernelArgs, RootArgs};

/// Options of `send`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline send in.pcap --out out.pcap                    through mmio and a private NIC
  beeline send in.pcap --out out.pcap --interface kpio
  beeline send in.pcap --out out.pcap --kernel nt8 --fences per-message
  beeline send in.pcap --out out.pcap --adversary 7      stores split and permuted, same bytes out
  beeline send in.pcap --out out.pcap --device rtl       through the NIC's RTL (built with --features rtl)")]
pub struct SendArgs {
    /// Capture to read (pcap or pcapng, Ethernet)
    #[arg(value_name = "IN.pcap")]
    pub input: PathBuf,
    /// Capture to write (pcap): what the wire saw
    #[arg(long, short, value_name = "OUT.pcap")]
    pub out: PathBuf,
    /// Interface that carries the frames
    #[arg(long, default_value_t = Interface::Mmio, value_name = "NAME", value_parser = interface())]
    pub interface: Interface,
    /// Device behind the link
    #[arg(long, default_value = "model", value_name = "NAME")]
    pub device: DeviceName,
    /// Split and permute stores with this seed, within what the interface declares it bears
    #[arg(long, value_name = "SEED")]
    pub adversary: Option<u64>,
    /// Let frames begin when so many lines of their message are there (mmio on --device rtl; 0: when all are)
    #[arg(long, default_value_t = 0, value_name = "LINES")]
    pub cut_through_lines: u16,
    /// Write a wave dump of the RTL (with --device rtl; built with --features waves)
    #[arg(long, value_name = "OUT.vcd")]
    pub waves: Option<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub fences: FenceArgs,
    #[command(flatten)]
    pub root: RootArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}
