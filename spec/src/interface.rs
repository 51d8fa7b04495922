//! The interfaces: ways to hand frames to a NIC (docs/design.md, Vocabulary).

use crate::formats::interface as f;

/// One way to hand frames to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Interface {
    /// Unordered write-combined stores of the whole frame (HotOS'25).
    Mmio,
    /// Ordered write-combined lines with EOP stuffing (kPIO+WC).
    Kpio,
    /// Doorbell, descriptor DMA, payload DMA.
    Descriptor,
    /// Entries in a ring, pushed into a window of two halves as well (BlueFlame).
    Inline,
    /// Frames back to back in a pipe in host memory, one tail write (Ensō).
    Enso,
    /// Small packets whole in a queue entry (NIQ).
    Niq,
    /// Lines of host memory whose ownership passes with them (CC-NIC).
    Coherent,
}

impl Interface {
    /// Every interface that is built. What a given device has is in its capability list.
    pub const ALL: [Interface; 7] = [
        Interface::Mmio,
        Interface::Kpio,
        Interface::Descriptor,
        Interface::Inline,
        Interface::Enso,
        Interface::Niq,
        Interface::Coherent,
    ];

    /// The value of queue control's `iface` field.
    pub const fn code(self) -> u8 {
        match self {
            Interface::Mmio => f::MMIO,
            Interface::Kpio => f::KPIO,
            Interface::Descriptor => f::DESCRIPTOR,
            Interface::Inline => f::INLINE,
            Interface::Enso => f::ENSO,
            Interface::Niq => f::NIQ,
            Interface::Coherent => f::COHERENT,
        }
    }

    /// The interface of a queue control value; `None` for one that is off or not built.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            f::MMIO => Some(Interface::Mmio),
            f::KPIO => Some(Interface::Kpio),
            f::DESCRIPTOR => Some(Interface::Descriptor),
            f::INLINE => Some(Interface::Inline),
            f::ENSO => Some(Interface::Enso),
            f::NIQ => Some(Interface::Niq),
            f::COHERENT => Some(Interface::Coherent),
            _ => None,
        }
    }

    /// The name people type.
    pub const fn name(self) -> &'static str {
        match self {
            Interface::Mmio => "mmio",
            Interface::Kpio => "kpio",
            Interface::Descriptor => "descriptor",
            Interface::Inline => "inline",
            Interface::Enso => "enso",
            Interface::Niq => "niq",
            Interface::Coherent => "coherent",
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

/// The name is none of those that [`Interface::name`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownInterface;

impl core::fmt::Display for UnknownInterface {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("unknown interface; there are mmio, kpio, descriptor, inline, enso, niq and coherent")
    }
}

impl core::error::Error for UnknownInterface {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_has_a_code_and_a_name_of_its_own() {
        for interface in Interface::ALL {
            assert_eq!(Interface::from_code(interface.code()), Some(interface));
            assert_eq!(interface.name().parse(), Ok(interface));
        }
        assert_eq!((Interface::from_code(f::NONE), Interface::from_code(15)), (None, None));
    }
}
