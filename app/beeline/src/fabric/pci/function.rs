//! What is shown of a function of PCI.

use std::fmt;

use serde::Serialize;

/// A function of PCI, and what it could be to a fabric.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub address: String,
    pub vendor: u16,
    pub device: u16,
    pub role: Option<Role>,
    /// Who has it: the driver that is bound.
    pub driver: Option<String>,
    /// `16.0 GT/s PCIe x16`, where it has a link.
    pub link: Option<String>,
    /// The most that its link can have.
    pub link_at_most: Option<String>,
    /// Buses below a port, `3b-3d`.
    pub buses: Option<String>,
    /// The group in which an IOMMU translates what it reads and writes.
    pub iommu_group: Option<u32>,
    /// BARs of prefetchable memory.
    pub windows: Vec<Window>,
    /// What stands in the way, and what helps; nothing of functions without a role.
    pub problems: Vec<String>,
}

/// What a function could be to a fabric.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    NonTransparentBridge,
    /// A bridge that may be one, without a driver that says so.
    OtherBridge,
    /// A port of a root complex or a switch: what is below it is seen by this host alone.
    TransparentPort,
    /// Memory of the host of this virtual machine, which other machines may have, too (`ivshmem`).
    SharedMemory,
    /// A function with memory that plain stores reach.
    Endpoint,
}

impl Role {
    pub fn words(self) -> &'static str {
        match self {
            Role::NonTransparentBridge => "non-transparent bridge",
            Role::OtherBridge => "bridge, may be non-transparent",
            Role::TransparentPort => "transparent port",
            Role::SharedMemory => "memory shared with other machines",
            Role::Endpoint => "endpoint",
        }
    }
}

/// A BAR of prefetchable memory.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub bar: usize,
    pub bytes: u64,
    /// The kernel maps it write-combining.
    pub is_write_combining: bool,
}

impl Window {
    /// The file of sysfs by which a program maps it.
    pub fn file(&self) -> String {
        let how = if self.is_write_combining { "_wc" } else { "" };
        format!("resource{}{how}", self.bar)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Window { bar, bytes, is_write_combining } = self;
        let how = if *is_write_combining { "" } else { ", not write-combining" };
        write!(out, "BAR {bar}: {bytes} bytes{how}")
    }
}
