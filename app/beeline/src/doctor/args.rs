//! Options of `beeline doctor`.

use clap::Args;

/// Options of `doctor`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline doctor
  beeline doctor --bar 0000:41:00.0/2     also map a real BAR (root); nothing is stored
  beeline doctor --bar /sys/bus/pci/devices/0000:41:00.0/resource2_wc --scratch 4096")]
pub struct DoctorArgs {
    /// BAR to map: a resource file of sysfs, or PCI function, slash, resource number
    #[arg(long, value_name = "FILE|BDF/N")]
    pub bar: Option<String>,
    /// Also measure that BAR, by overwriting 1024 bytes from this offset: their stores must mean nothing to the device
    #[arg(long, value_name = "OFFSET", requires = "bar")]
    pub scratch: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
