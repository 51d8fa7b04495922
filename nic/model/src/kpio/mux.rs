//! The MUX between kPIO+WC and descriptor DMA: which of the two transmit paths a frame may take.
//!
//! The paper names two ways to choose: one path for all traffic, set by a control bit, or a range of TCP ports that
//! goes by kPIO+WC while all other traffic goes by descriptors. The host decides by which path it hands a frame over;
//! the MUX forwards the frames that arrive by the path they are configured for. A frame that arrives by the other one
//! is dropped and counted (`mux_mismatches`): it shows a driver that disagrees with the device about the choice, and
//! forwarding it would let the two paths reorder a connection. `mmio` does not pass here.
//!
//! From: [`crate::Nic`], a `kpio` or `descriptor` frame that the arbiter chose. To: the same, whether it goes out. Not
//! here: where a frame's TCP port stands ([`beeline_spec::flow`]: host and device must agree on it to the byte).
//! Larsen & Lee, NAS'15, §III (figure 2) and §III.B.

use beeline_spec::Interface;
use beeline_spec::flow::tcp_destination_port;
use beeline_spec::regs::field::{control as c, mux_ports as p};

/// A transmit path that ends in the MUX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// kPIO+WC lines.
    Kpio,
    /// Descriptor DMA.
    Descriptor,
}

impl Path {
    /// The path of an interface; `None` for one whose frames do not pass the MUX.
    #[inline]
    pub(crate) const fn of(interface: Interface) -> Option<Self> {
        match interface {
            Interface::Kpio => Some(Path::Kpio),
            Interface::Descriptor => Some(Path::Descriptor),
            _ => None,
        }
    }
}

/// The choice in force: CONTROL.mux and MUX_PORTS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mux {
    /// Both interfaces may send.
    #[default]
    Both,
    /// Only frames that came by descriptors are forwarded.
    DescriptorOnly,
    /// Only frames that came by kPIO+WC are forwarded.
    KpioOnly,
    /// TCP segments for a destination port in `first..=last` by kPIO+WC, everything else by descriptors.
    ByPort {
        /// First port of the range.
        first: u16,
        /// Last port of the range, included; a range whose last port is below its first is empty.
        last: u16,
    },
}

impl Mux {
    /// The choice that the values of CONTROL and MUX_PORTS make.
    pub(crate) const fn from_registers(control: u64, mux_ports: u64) -> Self {
        match (control >> c::MUX_LSB) & c::MUX_MASK {
            0 => Mux::Both,
            1 => Mux::DescriptorOnly,
            2 => Mux::KpioOnly,
            _ => Mux::ByPort {
                first: ((mux_ports >> p::FIRST_LSB) & p::FIRST_MASK) as u16,
                last: ((mux_ports >> p::LAST_LSB) & p::LAST_MASK) as u16,
            },
        }
    }

    /// Whether a frame that came by `path` is forwarded.
    #[inline]
    pub(crate) fn forwards(self, path: Path, frame: &[u8]) -> bool {
        match self {
            Mux::Both => true,
            Mux::DescriptorOnly => path == Path::Descriptor,
            Mux::KpioOnly => path == Path::Kpio,
            Mux::ByPort { first, last } => {
                let is_in_range =
                    tcp_destination_port(frame).is_some_and(|port| first <= port && port <= last);
                is_in_range == (path == Path::Kpio)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP segment in IPv4 for `port`.
    fn segment(port: u16) -> Vec<u8> {
        let mut frame = vec![0u8; 54];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        (frame[14], frame[23]) = (0x45, 6);
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame
    }

    #[test]
    fn the_registers_choose() {
        let ports = 100 | 200 << 16;
        let mode = |mode: u64| Mux::from_registers(mode << 4 | 1, ports);
        assert_eq!([mode(0), mode(1), mode(2)], [Mux::Both, Mux::DescriptorOnly, Mux::KpioOnly]);
        assert_eq!(mode(3), Mux::ByPort { first: 100, last: 200 });
    }

    #[test]
    fn one_path_for_all_traffic_or_a_port_range() {
        let mut arp = segment(150);
        arp[13] = 0x06;
        for path in [Path::Kpio, Path::Descriptor] {
            assert!(Mux::Both.forwards(path, &arp));
            assert_eq!(Mux::KpioOnly.forwards(path, &arp), path == Path::Kpio);
            assert_eq!(Mux::DescriptorOnly.forwards(path, &arp), path == Path::Descriptor);
            let by_port = Mux::ByPort { first: 100, last: 200 };
            for (port, by_kpio) in [(99, false), (100, true), (150, true), (200, true), (201, false)] {
                assert_eq!(
                    by_port.forwards(path, &segment(port)),
                    by_kpio == (path == Path::Kpio),
                    "port {port}"
                );
            }
            assert_eq!(by_port.forwards(path, &arp), path == Path::Descriptor);
            assert_eq!(
                Mux::ByPort { first: 2, last: 1 }.forwards(path, &segment(2)),
                path == Path::Descriptor
            );
        }
    }
}
