//! Options of `beeline compare --bar`.

use bytesize::ByteSize;
use clap::Args;

use beeline_link_bar::Wanted;

/// What `compare` measures of others; with a BAR nothing of it.
const OF_INTERFACES: [&str; 10] = [
    "only",
    "interface",
    "device",
    "clock_mhz",
    "size",
    "any_placement",
    "samples",
    "read",
    "report",
    "root",
];

/// Stores into a BAR instead of everything else.
#[derive(Args, Debug, Clone, Default)]
pub struct BarArgs {
    /// Measure one BAR instead: a PCI function, its resource file in sysfs, /dev/uioN, or a plain file to try it
    ///
    /// Bytes of the BAR are overwritten, and restored where they read back. Name none that has registers: what a register did when
    /// it was stored into does not come back. A function that a kernel driver is bound to is refused. `beeline doctor` lists the BARs
    /// that would do.
    #[arg(long, value_name = "BDF|FILE", requires = "stores", conflicts_with_all = OF_INTERFACES)]
    pub bar: Option<String>,
    /// With --bar: stores of every size, kernel and fence policy, and lines read back (HotOS'25 figure 2)
    #[arg(long, requires = "bar")]
    pub stores: bool,
    /// With --bar: which BAR of the function [default: the first prefetchable one]
    #[arg(long, value_name = "N", requires = "bar", value_parser = clap::value_parser!(u8).range(0..=5))]
    pub region: Option<u8>,
    /// With --bar: where in it the bytes begin that may be scratched, a multiple of 4KiB [default: 0]
    #[arg(long, value_name = "SIZE", requires = "bar")]
    pub offset: Option<ByteSize>,
    /// With --bar: how many bytes may be scratched, a power of two from 4KiB to 64MiB [default: 256KiB, or what there is]
    #[arg(long, value_name = "SIZE", requires = "bar")]
    pub bytes: Option<ByteSize>,
    /// With --bar: seconds that all rounds take together [default: 20, quick: 2]
    #[arg(long, value_name = "S", requires = "bar", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// With --bar: the bytes mean nothing, although the BAR is not prefetchable or the file has contents
    #[arg(long, requires = "bar")]
    pub may_overwrite: bool,
}

impl BarArgs {
    /// Which bytes may be scratched.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            region: self.region,
            offset_bytes: self.offset.map_or(0, |offset| offset.as_u64()),
            bytes: self.bytes.map(|bytes| bytes.as_u64()),
            may_overwrite: self.may_overwrite,
        }
    }
}

/// More than none, and at most a day.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0 && *seconds <= 86_400.0);
    seconds.ok_or_else(|| "a number of seconds above 0, at most 86400".to_owned())
}
