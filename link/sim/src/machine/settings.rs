//! Everything that a machine is put together from.

use thiserror::Error;

use super::Interconnect;
use crate::cpu::{CoreSettings, CoreSettingsError};
use crate::des::Picoseconds;
use crate::device::DeviceSettings;
use crate::pcie::{Header, LinkSettings, SettingsError, SwitchError};
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
    pub link: LinkSettings,
}

/// A switch with several devices, behind the links that lead from the root complex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSettings {
    /// What a packet takes from one of its ports to another, as [`Further::latency`].
    pub latency: Picoseconds,
    /// A downstream port each, with a device at its end.
    pub branches: Vec<Branch>,
    /// Multicast groups, as the numbers of their devices: of a group's window each posted write is copied to all of them
    /// but the one that it came from.
    pub groups: Vec<Vec<u16>>,
}

/// The links from a port of a switch to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The link at the port.
    pub link: LinkSettings,
    /// Links behind it.
    pub further: Vec<Further>,
}

/// Every parameter of a machine in virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSettings {
    pub core: CoreSettings,
    pub cores: u16,
    /// The root complex.
    pub root: RootSettings,
    /// The link at the root complex.
    pub link: LinkSettings,
    /// Links behind it, towards the device, each behind a switch or a bridge.
    pub further: Vec<Further>,
    /// The switch at the end of those, if there is one; without, there is one device.
    pub switch: Option<SwitchSettings>,
    pub device: DeviceSettings,
    /// What moves lines between a core and a device with a cache; then its reads and writes of memory take no link.
    pub interconnect: Option<Interconnect>,
    /// Headers of requests: of addresses below 4 GiB or above.
    pub header: Header,
    /// Where windows lie.
    pub aperture: Aperture,
}

/// A machine that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    #[error(transparent)]
    Core(#[from] CoreSettingsError),
    #[error(transparent)]
    Link(#[from] SettingsError),
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// Not as many devices as places for them.
    #[error(
        "{found} devices for a machine with places for {places}; give it one for each branch of its switch"
    )]
    Devices { found: usize, places: usize },
    /// Windows that do not fit below 4 GiB, where requests have the short header.
    #[error(
        "windows of {found_bytes} bytes in all do not fit below 4 GiB; use header_dw = 4, or fewer queues"
    )]
    Addresses { found_bytes: u64 },
    /// Something that is with one device only.
    #[error("{what} is of machines with one device; {advice}")]
    OneDevice {
        what: &'static str,
        /// What the user can do.
        advice: &'static str,
    },
    /// There is none or there are too many of something.
    #[error("a machine with {found} {what} cannot be; use {least} to {most}")]
    Count {
        what: &'static str,
        found: usize,
        /// The fewest.
        least: usize,
        most: usize,
    },
}
