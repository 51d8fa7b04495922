//! Options of `beeline trace`.

use std::path::PathBuf;

use beeline_spec::Interface;
use beeline_spec::formats::{MAX_FRAME_BYTES, MIN_FRAME_BYTES};
use clap::Args;

use crate::choices::{PlatformName, interface};
use crate::options::{FenceArgs, SimDeviceArgs};
use crate::sim::args::{Change, PLATFORM};

/// Options of `trace`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline trace                               a frame of 104 bytes by mmio, packet by packet
  beeline trace --interface descriptor        the round trips that mmio does not make
  beeline trace --interface kpio --size 1500 --frames 2 --back-to-back
  beeline trace --device rtl                  the same by the NIC's RTL, cycle by cycle
  beeline trace --fences per-line --perfetto trace.json    open it in ui.perfetto.dev
Every time is simulated: it is of the platform that is named, not of this machine.")]
pub struct TraceArgs {
    /// Platform: the name of a built-in one (`beeline platforms` lists them), or a file
    #[arg(long, default_value = PLATFORM, value_name = "NAME|FILE", value_parser = PlatformName, hide_possible_values = true)]
    pub platform: String,
    /// Change a parameter of the platform
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Change>,
    /// Interface to send by
    #[arg(long, default_value_t = Interface::Mmio, value_name = "NAME", value_parser = interface())]
    pub interface: Interface,
    #[command(flatten)]
    pub device: SimDeviceArgs,
    /// Frame size in bytes, FCS excluded; the default is that of kPIO+WC's trace
    #[arg(long, default_value_t = 104, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(MIN_FRAME_BYTES as i64..=MAX_FRAME_BYTES as i64))]
    pub size: u32,
    /// Frames to show
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub frames: u64,
    /// Frames that are sent before, and not shown
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub skip: u64,
    /// Send each frame at once; without it, when the one before has left
    #[arg(long)]
    pub back_to_back: bool,
    #[command(flatten)]
    pub fences: FenceArgs,
    /// Link to look at, counted from the root complex
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub link: usize,
    /// Nanoseconds to go on after the last frame has left
    #[arg(long, default_value_t = 2000, value_name = "NS", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub tail_ns: u64,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    pub seed: u64,
    /// Write cores, root complex, link and device as tracks of trace events (ui.perfetto.dev, chrome://tracing)
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write the packets as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the packets as JSON; `-` for standard output, without the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
