//! BARs of this machine: which there are, which could serve as windows, and one that may be scratched, opened.
//!
//! [`Function::scan`] reads what sysfs says of every PCI function; the root of sysfs is a parameter, so that tests run on a folder.
//! What sysfs says is text of the kernel, but of a container's or a test's tree as well: it is read in bounds, and what cannot be
//! understood is an error with file and line. [`Obstacle`] says in a sentence what keeps a region from being a window.
//!
//! [`Scratch`] maps a part of a BAR, or of a plain file in its place, to be overwritten by a measurement, and restores it. It
//! refuses where stores could harm (record 0090), and never opens `/dev/mem`.
//!
//! Mapping is that of `os/mmio`. Not here: the loops that measure (`lab/floor`), VFIO, a link over a BAR. HotOS'25 §2.1 stores into
//! a NIC's BAR in this way.
#![forbid(unsafe_code)]

mod error;
mod function;
mod obstacle;
mod place;
mod plain_file;
mod scratch;
mod target;
mod text;

pub use error::ScratchError;
pub use function::{BarRegion, BarRights, Function, SYSFS};
pub use obstacle::Obstacle;
pub use place::Wanted;
pub use scratch::{MappedAs, Restored, Scratch};
pub use target::{BarFile, Target, TargetError};
pub use text::SysfsError;
