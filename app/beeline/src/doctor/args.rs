//! Options of `beeline doctor`.

use clap::Args;

/// Options of `doctor`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline doctor
  beeline doctor --tune                   time anew how windows are used best here, and keep it
  beeline doctor --bar 0000:41:00.0/2     also map a real BAR (root); nothing is stored
  beeline doctor --bar /sys/bus/pci/devices/0000:41:00.0/resource2_wc --scratch 4096")]
pub struct DoctorArgs {
    /// BAR to map: a resource file of sysfs, or PCI function, slash, resource number
    #[arg(long, value_name = "FILE|BDF/N")]
    pub bar: Option<String>,
    /// Also measure that BAR, by overwriting 1024 bytes from this offset: their stores must mean nothing to the device
    #[arg(long, value_name = "OFFSET", requires = "bar")]
    pub scratch: Option<usize>,
    /// Time anew how windows are used best between two cores here, whatever is kept: some tenth of a second
    ///
    /// Without it that is timed where nothing is kept, or where a line between the cores takes half as long again as it did, or
    /// half less. Programs that open windows use what was found last.
    #[arg(long)]
    pub tune: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
