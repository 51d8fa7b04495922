//! Which frames the multiplexer of kPIO+WC sends by which path: the TCP destination port of a frame.
//!
//! Host and device must agree on it to the byte, or the device drops what the host sent by the other path; so it stands
//! here once. A TCP segment is found behind any number of VLAN tags and IPv6 extension headers with a length of their
//! own; an IP fragment that is not the first has no port and counts as other traffic.
//!
//! Larsen & Lee, NAS'15, §III.B ("kPIO+WC can be used for a certain range of TCP ports").

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;
/// IPv6 extension headers that carry their length in their second byte: hop-by-hop, routing, destination options.
const IPV6_OPTIONS: [u8; 3] = [0, 43, 60];

#[inline]
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The TCP destination port of an Ethernet frame; `None` when it carries no TCP header that can be read. Bounded by
/// the frame's length, whatever it holds.
#[inline]
pub fn tcp_destination_port(frame: &[u8]) -> Option<u16> {
    let mut at = 12;
    let mut ethertype = be16(frame, at)?;
    while VLAN_TAGS.contains(&ethertype) {
        at += 4;
        ethertype = be16(frame, at)?;
    }
    let ip = frame.get(at + 2..)?;
    let tcp_at = match ethertype {
        IPV4 => ipv4_tcp_offset(ip)?,
        IPV6 => ipv6_tcp_offset(ip)?,
        _ => return None,
    };
    be16(ip, tcp_at + 2)
}

#[inline]
fn ipv4_tcp_offset(ip: &[u8]) -> Option<usize> {
    let first = *ip.first()?;
    let header_bytes = usize::from(first & 0xf) * 4;
    let fragment_offset = be16(ip, 6)? & 0x1fff;
    let is_tcp = first >> 4 == 4 && header_bytes >= 20 && *ip.get(9)? == TCP && fragment_offset == 0;
    is_tcp.then_some(header_bytes)
}

fn ipv6_tcp_offset(ip: &[u8]) -> Option<usize> {
    if *ip.first()? >> 4 != 6 {
        return None;
    }
    let mut next = *ip.get(6)?;
    let mut at = 40;
    // Each step moves on by at least 8 bytes, so the walk ends with the frame.
    while IPV6_OPTIONS.contains(&next) {
        next = *ip.get(at)?;
        at += (usize::from(*ip.get(at + 1)?) + 1) * 8;
    }
    (next == TCP).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with `tags` VLAN tags, `ip` in front of a TCP header, in a buffer that needs no allocation.
    fn tcp<'a>(buffer: &'a mut [u8; 256], tags: usize, ethertype: u16, ip: &[u8], port: u16) -> &'a [u8] {
        let mut at = 12;
        for _ in 0..tags {
            buffer[at..at + 4].copy_from_slice(&[0x81, 0x00, 0, 7]);
            at += 4;
        }
        buffer[at..at + 2].copy_from_slice(&ethertype.to_be_bytes());
        buffer[at + 2..at + 2 + ip.len()].copy_from_slice(ip);
        at += 2 + ip.len();
        buffer[at..at + 2].copy_from_slice(&[0x30, 0x39]);
        buffer[at + 2..at + 4].copy_from_slice(&port.to_be_bytes());
        &buffer[..at + 4]
    }

    fn ipv4(protocol: u8, fragment: u16) -> [u8; 24] {
        let mut ip = [0u8; 24];
        ip[0] = 0x46;
        ip[6..8].copy_from_slice(&fragment.to_be_bytes());
        ip[9] = protocol;
        ip
    }

    fn ipv6(extension: u8) -> [u8; 56] {
        let mut ip = [0u8; 56];
        ip[0] = 0x60;
        ip[6] = extension;
        ip[40] = TCP;
        ip[41] = 1;
        ip
    }

    #[test]
    fn the_port_is_found_behind_tags_options_and_extensions() {
        for tags in 0..3 {
            let mut buffer = [0; 256];
            assert_eq!(
                tcp_destination_port(tcp(&mut buffer, tags, IPV4, &ipv4(TCP, 0x4000), 11211)),
                Some(11211)
            );
            for extension in IPV6_OPTIONS {
                let mut buffer = [0; 256];
                assert_eq!(
                    tcp_destination_port(tcp(&mut buffer, tags, IPV6, &ipv6(extension), 443)),
                    Some(443)
                );
            }
        }
    }

    #[test]
    fn other_traffic_has_no_port() {
        let mut buffer = [0; 256];
        assert_eq!(tcp_destination_port(tcp(&mut buffer, 0, IPV4, &ipv4(17, 0), 80)), None, "UDP");
        assert_eq!(
            tcp_destination_port(tcp(&mut buffer, 0, IPV4, &ipv4(TCP, 1), 80)),
            None,
            "a later fragment"
        );
        assert_eq!(tcp_destination_port(tcp(&mut buffer, 0, IPV6, &ipv6(44), 80)), None, "an IPv6 fragment");
        assert_eq!(tcp_destination_port(tcp(&mut buffer, 0, 0x0806, &[0; 28], 80)), None, "ARP");
    }

    #[test]
    fn no_prefix_of_a_frame_panics() {
        let mut buffer = [0; 256];
        let frame = tcp(&mut buffer, 2, IPV6, &ipv6(60), 80);
        for length in 0..frame.len() {
            assert_eq!(tcp_destination_port(&frame[..length]), None);
        }
    }
}
