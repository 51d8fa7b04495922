//! The numbers of cores and devices.

/// A core of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

/// A device of a machine: its number is that of its branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

/// The requester ID of the first device; cores have their own numbers, which end below.
const FIRST_REQUESTER: u16 = 0x8000;

impl DeviceId {
    /// The most devices that have a bus of their own.
    pub(super) const MOST: usize = 64;

    /// Its requester ID: a bus of its own, function 0.
    pub(super) fn requester(self) -> u16 {
        FIRST_REQUESTER + (self.0 << 8)
    }

    #[inline]
    pub(super) fn is_requester(requester: u16) -> bool {
        requester >= FIRST_REQUESTER
    }

    #[inline]
    pub(super) fn of_requester(requester: u16) -> usize {
        usize::from((requester - FIRST_REQUESTER) >> 8)
    }
}
