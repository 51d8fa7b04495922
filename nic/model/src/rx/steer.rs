//! Which receive queue a frame goes to: one flow always to the same, flows spread over the queues.
//!
//! As receive side scaling does it, a hash over what names the flow (addresses and protocol of the network layer,
//! ports where there are some, otherwise the Ethernet addresses) picks one of the queues that receive. With one queue
//! there is nothing to hash. The hash is ours and not keyed: a peer that wants all its flows on one queue can have
//! that, and gains only its own congestion.
//!
//! From: [`super::RxEngine`]. To: the same.

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// TCP, UDP and SCTP: protocols whose header begins with two 16-bit ports.
const WITH_PORTS: [u8; 3] = [6, 17, 132];

/// A hash of the flow a frame belongs to.
pub(super) fn flow_hash(frame: &[u8]) -> u32 {
    let hash = ip_flow(frame).unwrap_or_else(|| fold(0, frame.get(..12).unwrap_or(frame)));
    // The high half of the product depends on every bit of the sum.
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// The sum over the flow's fields; `None` when the frame is not IP as far as can be seen.
fn ip_flow(frame: &[u8]) -> Option<u64> {
    let ip = frame.get(14..)?;
    let (addresses, protocol, header_bytes) = match frame.get(12..14)? {
        kind if kind == IPV4 => (ip.get(12..20)?, *ip.get(9)?, usize::from(ip.first()? & 0xf) * 4),
        kind if kind == IPV6 => (ip.get(8..40)?, *ip.get(6)?, 40),
        _ => return None,
    };
    // A fragment has its ports only if it is the first, so none of them is hashed by ports.
    let is_fragment = frame[12..14] == IPV4 && ip.get(6..8).is_some_and(|f| f[0] & 0x3f != 0 || f[1] != 0);
    let ports =
        ip.get(header_bytes..header_bytes + 4).filter(|_| WITH_PORTS.contains(&protocol) && !is_fragment);
    Some(fold(fold(u64::from(protocol), addresses), ports.unwrap_or(&[])))
}

fn fold(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |sum, byte| sum.rotate_left(7).wrapping_mul(31) ^ u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source_port: u16, source: u8, id: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&IPV4);
        frame[14] = 0x45;
        frame[18..20].copy_from_slice(&id.to_be_bytes());
        frame[23] = 17;
        frame[29] = source;
        frame[34..36].copy_from_slice(&source_port.to_be_bytes());
        frame
    }

    #[test]
    fn a_flow_keeps_its_hash_and_flows_spread() {
        assert_eq!(
            flow_hash(&udp(5, 1, 1)),
            flow_hash(&udp(5, 1, 2)),
            "the identification is not the flow's"
        );
        let mut seen = [0; 4];
        for port in 0..400 {
            seen[(flow_hash(&udp(port, 1, 0)) % 4) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (60..140).contains(n)), "{seen:?}");
    }

    #[test]
    fn fragments_of_a_datagram_stay_together() {
        let mut first = udp(5, 1, 9);
        first[20] = 0x20;
        let mut second = udp(777, 1, 9);
        second[21] = 1;
        assert_eq!(flow_hash(&first), flow_hash(&second));
    }

    #[test]
    fn any_bytes_have_a_hash() {
        let frame = udp(5, 1, 1);
        for length in 0..frame.len() {
            flow_hash(&frame[..length]);
        }
        let other = |a: u8| flow_hash(&[a; 14]);
        assert_ne!(other(1), other(2), "without IP the Ethernet addresses count");
    }
}
