//! What a device is in time: its ports, its engines, its wire.

use crate::des::Picoseconds;

/// A rate, as the time of 1024 bytes: fine enough for any link, and an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    ps_per_kib: u64,
}

impl Rate {
    /// No bytes take any time.
    pub const UNLIMITED: Rate = Rate { ps_per_kib: 0 };

    /// So many Gbit/s; 0 or less: unlimited.
    pub fn from_gbps(gbps: f64) -> Rate {
        // 1024 bytes are 8192 bits, and a bit at 1 Gbit/s takes 1000 ps.
        let ps_per_kib = if gbps > 0.0 { (8_192_000.0 / gbps).round() as u64 } else { 0 };
        Rate { ps_per_kib }
    }

    /// Whether bytes take no time.
    pub fn is_unlimited(self) -> bool {
        self.ps_per_kib == 0
    }

    /// Returns how long `bytes` take, rounded up to a picosecond; zero at an unlimited rate.
    #[inline]
    pub fn time(self, bytes: u64) -> Picoseconds {
        Picoseconds((bytes * self.ps_per_kib).div_ceil(1024))
    }
}

/// The parameters of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    /// From one write that it takes to the next.
    pub ingress_interval: Picoseconds,
    /// Payload of writes that it takes.
    pub ingress_rate: Rate,
    /// From a write or read that is there to its logic acting on it.
    pub ingress_latency: Picoseconds,
    /// From the logic that wants to read to the request that may leave.
    pub read_start: Picoseconds,
    /// From the last completion that is there to the logic that has the data.
    pub read_finish: Picoseconds,
    /// Read requests that may be outstanding.
    pub read_tags: u16,
    /// From one read request to the next.
    pub read_interval: Picoseconds,
    /// From the logic that wants to write to the packet that may leave.
    pub write_start: Picoseconds,
    /// From one write packet to the next.
    pub write_interval: Picoseconds,
    /// The data paths inside, one to the logic and one from it, where a transfer is stored before it goes on.
    pub data_rate: Rate,
    /// What both of them share, as memory with one port: bytes of both directions added up.
    pub shared_rate: Rate,
    /// What each read takes of the path to the logic besides its bytes.
    pub read_transfer: Picoseconds,
    /// From a load that its logic has seen to the completion that may leave.
    pub register_read: Picoseconds,
    /// From a frame that its logic transmits to the first bit on the wire.
    pub transmit_latency: Picoseconds,
    /// From the last bit of a frame on the wire to its logic, which is offered the frame.
    pub receive_latency: Picoseconds,
    /// The wire; unlimited: there is none, and frames are gone at once.
    pub wire_rate: Rate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bits_in_nanoseconds() {
        assert_eq!(Rate::from_gbps(8.0).time(64), Picoseconds(64_000));
        assert_eq!(Rate::from_gbps(100.0).time(1500), Picoseconds(120_000));
        assert_eq!(Rate::from_gbps(0.0).time(1500), Picoseconds::ZERO);
    }
}
