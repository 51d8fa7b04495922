//! Everything that a machine is put together from.

use thiserror::Error;

use super::Interconnect;
use crate::cpu::{CoreSettings, CoreSettingsError};
use crate::des::Picoseconds;
use crate::device::DeviceSettings;
use crate::pcie::{Header, LinkSettings, SettingsError};
use crate::root::RootSettings;

/// Where the windows of a device lie in its address space, each queue's at its own place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aperture {
    /// Offset of the first window.
    pub offset_bytes: u64,
    /// Bytes from one window to the next.
    pub stride_bytes: u64,
    /// Lines of each window, a power of two.
    pub window_lines: u32,
    /// Queues, each with a window.
    pub queues: u32,
}

/// A link and the hop in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Further {
    /// What a packet takes from the link before to this one.
    pub latency: Picoseconds,
    /// The link.
    pub link: LinkSettings,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSettings {
    /// Its cores, all alike.
    pub core: CoreSettings,
    /// How many.
    pub cores: u16,
    /// The root complex.
    pub root: RootSettings,
    /// The link at the root complex.
    pub link: LinkSettings,
    /// Links behind it, towards the device, each behind a switch or a bridge.
    pub further: Vec<Further>,
    /// The device.
    pub device: DeviceSettings,
    /// What moves lines between a core and a device with a cache; then its reads and writes of memory take no link.
    pub interconnect: Option<Interconnect>,
    /// Headers of requests: of addresses below 4 GiB or above.
    pub header: Header,
    /// Where windows lie.
    pub aperture: Aperture,
}

/// A machine that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// Its cores.
    #[error(transparent)]
    Core(#[from] CoreSettingsError),
    /// One of its links.
    #[error(transparent)]
    Link(#[from] SettingsError),
    /// There is none or there are too many of something.
    #[error("a machine with {found} {what} cannot be; use {least} to {most}")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        found: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
}
