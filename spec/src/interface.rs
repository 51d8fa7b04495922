//! The interfaces: ways to hand frames to a NIC (docs/design.md, Vocabulary).

use crate::formats::interface as f;

/// How frames of an interface get from the host to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stores {
    /// The host stores them across the link, and the device puts them in order.
    AnyOrder,
    /// The host stores them across the link in lines that must arrive whole and in order.
    InOrder,
    /// The host stores none across the link: the device reads host memory.
    None,
}

/// What the host writes into the BAR for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writes {
    /// The frame, into the lines of the window, one after the other.
    Lines,
    /// The frame or its beginning, into entries that are found by their number.
    Entries,
    /// A doorbell, after the frame is in host memory.
    Doorbell,
    /// The device finds the frame in host memory by itself.
    Nothing,
}

/// The one list of interfaces: its documentation, name in code, name that people type, code in the registers, stores, writes,
/// of how many bytes its frames are a multiple, and faults of its own. `cargo xtask house` reads the names too.
macro_rules! interfaces {
    ($($(#[$doc:meta])* $interface:ident $name:literal $code:ident $stores:ident $writes:ident $multiple_bytes:literal $faults:tt;)*) => {
        /// One way to hand frames to a NIC.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(rename_all = "kebab-case")
        )]
        pub enum Interface {
            $($(#[$doc])* $interface,)*
        }

        impl Interface {
            /// Every interface that is built. What a given device has is in its capability list.
            pub const ALL: [Interface; [$($name),*].len()] = [$(Interface::$interface),*];

            /// The value of queue control's `iface` field.
            pub const fn code(self) -> u8 {
                match self {
                    $(Interface::$interface => f::$code,)*
                }
            }

            /// The interface of a queue control value; `None` for one that is off or not built.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $(f::$code => Some(Interface::$interface),)*
                    _ => None,
                }
            }

            /// The name people type.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Interface::$interface => $name,)*
                }
            }

            /// How its frames get to the device. Whoever chooses a store kernel asks this.
            pub const fn stores(self) -> Stores {
                match self {
                    $(Interface::$interface => Stores::$stores,)*
                }
            }

            /// What the host writes into the BAR for a frame.
            pub const fn writes(self) -> Writes {
                match self {
                    $(Interface::$interface => Writes::$writes,)*
                }
            }

            /// Frames are padded with zeros to a multiple of this many bytes, and arrive so.
            pub const fn frame_multiple_bytes(self) -> usize {
                match self {
                    $(Interface::$interface => $multiple_bytes,)*
                }
            }

            /// Counters of what goes wrong with this interface alone, by name. A device without it need not have them.
            pub const fn faults(self) -> &'static [&'static str] {
                match self {
                    $(Interface::$interface => &$faults,)*
                }
            }
        }
    };
}

interfaces! {
    /// Unordered write-combined stores of the whole frame (HotOS'25).
    Mmio "mmio" MMIO AnyOrder Lines 1 [];
    /// Ordered write-combined lines with EOP stuffing (kPIO+WC).
    Kpio "kpio" KPIO InOrder Lines 8 [];
    /// Doorbell, descriptor DMA, payload DMA.
    Descriptor "descriptor" DESCRIPTOR None Doorbell 1 [];
    /// Entries in a ring, pushed into a window of two halves as well (BlueFlame).
    Inline "inline" INLINE InOrder Entries 1 ["push_torn", "push_unused", "push_tested"];
    /// Frames back to back in a pipe in host memory, one tail write (Ensō).
    Enso "enso" ENSO None Doorbell 1 [];
    /// Small packets whole in a queue entry (NIQ).
    Niq "niq" NIQ InOrder Entries 1 ["held_read_timeouts"];
    /// Lines of host memory whose ownership passes with them (CC-NIC).
    Coherent "coherent" COHERENT None Nothing 1 [];
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
        out.write_str("unknown interface; there are ")?;
        for (at, interface) in Interface::ALL.into_iter().enumerate() {
            let before = if at == 0 {
                ""
            } else if at + 1 < Interface::ALL.len() {
                ", "
            } else {
                " and "
            };
            write!(out, "{before}{interface}")?;
        }
        Ok(())
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

    #[test]
    fn unknown_interface_lists_every_name_in_a_sentence() {
        extern crate std;
        let error = "pio".parse::<Interface>().unwrap_err();
        assert_eq!(
            std::string::ToString::to_string(&error),
            "unknown interface; there are mmio, kpio, descriptor, inline, enso, niq and coherent"
        );
    }
}
