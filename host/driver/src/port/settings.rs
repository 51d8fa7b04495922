//! How a port is brought up: its address, reset, and the multiplexer between `kpio` and `descriptor` queues.

/// Settings of bring-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Station address to set; `None` leaves the device's.
    pub mac: Option<[u8; 6]>,
    /// Whether to reset the device first, so that queues a former owner left behind are off.
    pub reset: bool,
    /// Which transmit path the device forwards (kPIO+WC §III, "MUX").
    pub mux: Mux,
    /// How long the device may take to answer a register read or to start or stop, in ns of the caller's clock.
    pub answer_timeout_ns: u64,
}

impl Default for PortConfig {
    fn default() -> Self {
        PortConfig { mac: None, reset: true, mux: Mux::Both, answer_timeout_ns: 2_000_000_000 }
    }
}

/// Which frames the device forwards from its kPIO queues and which from its descriptor queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mux {
    /// Frames of every queue.
    #[default]
    Both,
    /// Descriptor queues only.
    DescriptorOnly,
    /// kPIO queues only: the control bit of kPIO+WC §III.B, first variant.
    KpioOnly,
    /// By TCP destination port: these by kPIO, all else by descriptor; kPIO+WC §III.B, second variant.
    ByPort(PortRange),
}

/// TCP destination ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    pub first: u16,
    /// Last port of the range, included.
    pub last: u16,
}

impl PortRange {
    /// Whether `port` lies in the range.
    #[inline]
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}
