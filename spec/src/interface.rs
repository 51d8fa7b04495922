//! The interfaces: ways to hand frames to a NIC (DESIGN, "Vocabulary").

use crate::formats::interface as f;

/// One way to hand frames to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interface {
    /// Unordered write-combined stores of the whole frame (HotOS'25).
    Mmio,
    /// Ordered write-combined lines with EOP stuffing (kPIO+WC).
    Kpio,
    /// Doorbell, descriptor DMA, payload DMA.
    Descriptor,
}

impl Interface {
    /// Every interface that is built.
    pub const ALL: [Interface; 3] = [Interface::Mmio, Interface::Kpio, Interface::Descriptor];

    /// The value of queue control's `iface` field.
    pub const fn code(self) -> u8 {
        match self {
            Interface::Mmio => f::MMIO,
            Interface::Kpio => f::KPIO,
            Interface::Descriptor => f::DESCRIPTOR,
        }
    }

    /// The interface of a queue control value; `None` for one that is off or not built.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            f::MMIO => Some(Interface::Mmio),
            f::KPIO => Some(Interface::Kpio),
            f::DESCRIPTOR => Some(Interface::Descriptor),
            _ => None,
        }
    }

    /// The name people type.
    pub const fn name(self) -> &'static str {
        match self {
            Interface::Mmio => "mmio",
            Interface::Kpio => "kpio",
            Interface::Descriptor => "descriptor",
        }
    }
}

impl core::fmt::Display for Interface {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.pad(self.name())
    }
}

impl core::str::FromStr for Interface {
    type Err = UnknownInterface;
    fn from_str(name: &str) -> Result<Self, UnknownInterface> {
        Interface::ALL.into_iter().find(|i| i.name() == name).ok_or(UnknownInterface)
    }
}

/// The name is none of `mmio`, `kpio`, `descriptor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownInterface;

impl core::fmt::Display for UnknownInterface {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("unknown interface; there are mmio, kpio and descriptor")
    }
}

impl core::error::Error for UnknownInterface {}
