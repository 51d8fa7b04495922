//! What moves lines between a core and a device with a cache.

use crate::des::Picoseconds;

/// The interconnect between a core and a device with a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interconnect {
    /// A transfer of a line from one to the other.
    pub line: Picoseconds,
    /// From one transfer to the next.
    pub interval: Picoseconds,
}
