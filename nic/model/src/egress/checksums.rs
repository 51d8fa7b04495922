//! Checksums of IPv4, TCP and UDP, filled in on the way to the wire for queues that ask.
//!
//! What is understood is filled in, whatever stood in its place: the header checksum of a well-formed IPv4 header, and
//! the checksum of TCP or UDP over IPv4 that is no fragment, or over IPv6 without extension headers, behind up to two
//! VLAN tags, where all lengths agree. A UDP checksum that comes out as zero is sent as ones. Everything else leaves as it
//! came.
//!
//! From: [`crate::Nic`], a frame that is about to leave. RFC 791, 768, 9293, 8200, 1071.

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
/// VLAN tags that are looked behind.
const MOST_TAGS: usize = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6_HEADER_BYTES: usize = 40;

/// Fills in the checksums of an Ethernet frame without FCS.
pub(crate) fn fill_in(frame: &mut [u8]) {
    let mut at = 12;
    for _ in 0..MOST_TAGS {
        if be16(frame, at).is_some_and(|kind| VLAN_TAGS.contains(&kind)) {
            at += 4;
        }
    }
    let kind = be16(frame, at);
    let Some(packet) = frame.get_mut(at + 2..) else { return };
    match kind {
        Some(IPV4) => fill_in_v4(packet),
        Some(IPV6) => fill_in_v6(packet),
        _ => {}
    }
}

fn fill_in_v4(packet: &mut [u8]) {
    let header_bytes = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    let Some(total) = be16(packet, 2).map(usize::from) else { return };
    let is_sound =
        packet[0] >> 4 == 4 && header_bytes >= 20 && total >= header_bytes && total <= packet.len();
    if !is_sound {
        return;
    }
    let (header, payload) = packet[..total].split_at_mut(header_bytes);
    header[10..12].fill(0);
    let sum = !folded(sum_of(header));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    // More fragments, or an offset.
    let is_fragment = be16(header, 6).is_none_or(|flags| flags & 0x3fff != 0);
    if !is_fragment {
        fill_in_transport(&header[12..20], header[9], payload);
    }
}

fn fill_in_v6(packet: &mut [u8]) {
    let Some(payload_bytes) = be16(packet, 4).map(usize::from) else { return };
    let total = IPV6_HEADER_BYTES + payload_bytes;
    if packet[0] >> 4 != 6 || total > packet.len() {
        return;
    }
    let (header, payload) = packet[..total].split_at_mut(IPV6_HEADER_BYTES);
    fill_in_transport(&header[8..], header[6], payload);
}

/// The pseudo headers of IPv4 and IPv6 add up to the same: addresses, length and protocol.
fn fill_in_transport(addresses: &[u8], protocol: u8, segment: &mut [u8]) {
    let place = match protocol {
        TCP if segment.len() >= 20 => 16,
        UDP if segment.len() >= 8 && be16(segment, 4).map(usize::from) == Some(segment.len()) => 6,
        _ => return,
    };
    segment[place..place + 2].fill(0);
    let pseudo = sum_of(addresses) + segment.len() as u64 + u64::from(protocol);
    let mut sum = !folded(pseudo + sum_of(segment));
    if protocol == UDP && sum == 0 {
        sum = 0xffff;
    }
    segment[place..place + 2].copy_from_slice(&sum.to_be_bytes());
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The sum of 16-bit words, an odd last byte padded by zero.
fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    sum + rest.first().map_or(0, |&last| u64::from(last) << 8)
}

/// Sixteen bits, carries added in at the low end.
fn folded(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    const PAYLOADS: [&[u8]; 5] = [b"", b"x", b"beeline", &[0xff; 200], &[0; 1301]];

    /// A frame whose packet an independent builder wrote, behind so many VLAN tags.
    fn packet(tags: usize, is_v6: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x81, 0x00, 0, 7, 0x88, 0xa8, 0, 8][..4 * tags].iter());
        frame.extend(if is_v6 { IPV6 } else { IPV4 }.to_be_bytes());
        let build = match is_v6 {
            true => PacketBuilder::ipv6([1; 16], [2; 16], 64),
            false => PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
        };
        match protocol {
            TCP => build.tcp(5, 6, 7, 8).write(&mut frame, payload),
            _ => build.udp(5, 6).write(&mut frame, payload),
        }
        .unwrap();
        frame
    }

    /// Where the checksums of a frame that was built stand.
    fn places(tags: usize, is_v6: bool, protocol: u8) -> Vec<usize> {
        let ip = 14 + 4 * tags;
        let transport = ip + if is_v6 { 40 } else { 20 };
        let place = transport + if protocol == TCP { 16 } else { 6 };
        if is_v6 { vec![place] } else { vec![ip + 10, place] }
    }

    #[test]
    fn what_is_filled_in_is_what_an_independent_builder_writes() {
        for (tags, is_v6, protocol) in [
            (0, false, TCP),
            (0, false, UDP),
            (0, true, TCP),
            (0, true, UDP),
            (1, false, UDP),
            (1, true, TCP),
            (2, false, TCP),
            (2, true, UDP),
        ] {
            for payload in PAYLOADS {
                let right = packet(tags, is_v6, protocol, payload);
                let mut frame = right.clone();
                for place in places(tags, is_v6, protocol) {
                    frame[place..place + 2].copy_from_slice(&[0xde, 0xad]);
                }
                fill_in(&mut frame);
                assert_eq!(frame, right, "{tags} tags, v6 {is_v6}, protocol {protocol}, {}", payload.len());
                // Padding behind the packet is not covered and not touched.
                frame.extend([0x5a; 20]);
                let padded = frame.clone();
                fill_in(&mut frame);
                assert_eq!(frame, padded);
            }
        }
    }

    #[test]
    fn a_fragment_gets_the_headers_checksum_only() {
        let mut frame = packet(0, false, UDP, b"beeline");
        let transport = frame[34..].to_vec();
        frame[20] = 0x20;
        frame[40] = 0xee;
        fill_in(&mut frame);
        assert_eq!(sum_of(&frame[14..34]) % 0xffff, 0, "the header adds up");
        assert_eq!((frame[40], &frame[34..40]), (0xee, &transport[..6]));
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_ones_by_udp() {
        let mut frame = packet(0, false, UDP, &[0, 0]);
        let place = 40;
        // What the checksum was, put into the payload, leaves nothing for the checksum.
        let [high, low] = [frame[place], frame[place + 1]];
        frame[42..44].copy_from_slice(&[high, low]);
        fill_in(&mut frame);
        assert_eq!(frame[place..place + 2], [0xff, 0xff]);
    }

    #[test]
    fn what_is_not_understood_leaves_as_it_came() {
        let good = packet(0, false, TCP, b"beeline");
        let cut = |bytes: usize| good[..bytes].to_vec();
        let with = |at: usize, value: u8| {
            let mut frame = good.clone();
            frame[at] = value;
            frame
        };
        let mut six_without_room = packet(0, true, UDP, b"");
        six_without_room.truncate(50);
        for frame in [
            vec![],
            cut(13),
            cut(14),
            cut(15),
            cut(33),
            cut(40),
            with(12, 0x09),
            with(14, 0x55),
            with(14, 0x44),
            with(17, 0xff),
            with(17, 3),
            six_without_room,
        ] {
            let mut after = frame.clone();
            fill_in(&mut after);
            assert_eq!(after, frame);
        }
    }
}
