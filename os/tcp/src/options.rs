//! Options of a socket that a program may set on a connection whose bytes go by another path.

use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};

/// Options that libc does not have; their numbers are the same for every architecture (`linux/tcp.h`, `linux/in.h`).
mod kernel {
    pub const TCP_RTO_MAX_MS: i32 = 44;
    pub const TCP_RTO_MIN_US: i32 = 45;
    pub const TCP_DELACK_MAX_US: i32 = 46;
    pub const IP_LOCAL_PORT_RANGE: i32 = 51;
}

/// Whether a program that sets this option (`setsockopt`) asks for nothing that a path beside the kernel's could not give.
///
/// An option is neutral if the bytes, their order and their end stay what they are, and each call of the program gives what it would have given, except
/// that bytes come sooner. What is not known is not neutral.
///
/// | options | why they are neutral |
/// |---|---|
/// | `SO_REUSEADDR`, `SO_REUSEPORT` and its choice of a listener (`SO_ATTACH_REUSEPORT_*`), `IPV6_V6ONLY`, `*_FREEBIND`, `IP_BIND_ADDRESS_NO_PORT`, `IP_LOCAL_PORT_RANGE`, `TCP_DEFER_ACCEPT`, `TCP_SYNCNT` | how a connection comes about; it is the same one then |
/// | `SO_KEEPALIVE`, `TCP_KEEP*`, `TCP_USER_TIMEOUT`, `TCP_LINGER2`, `SO_LINGER` | when the kernel ends the connection; its FIN and RST are the only ends, and bytes in a window count as arrived |
/// | `TCP_NODELAY`, `TCP_CORK`, `TCP_QUICKACK`, `TCP_MAXSEG`, `TCP_CONGESTION`, `TCP_WINDOW_CLAMP`, `TCP_THIN_*`, `TCP_RTO_*`, `TCP_DELACK_MAX_US` | how bytes are cut into packets, and when those go; no boundary of theirs is seen |
/// | `SO_PRIORITY`, `IP_TOS`, `IPV6_TCLASS`, `IP_TTL`, `IPV6_UNICAST_HOPS`, `*_MTU_DISCOVER` | fields of packets and places in queues |
/// | `SO_SNDBUF*`, `SO_RCVBUF*`, `TCP_NOTSENT_LOWAT` | room of the kernel's path, to which a window adds its own, as a longer line would |
/// | `SO_BUSY_POLL`, `SO_PREFER_BUSY_POLL`, `SO_BUSY_POLL_BUDGET`, `SO_INCOMING_CPU` | how the kernel looks for packets, and where |
/// | `SO_RCVTIMEO`, `SO_SNDTIMEO` | how long calls wait; whoever waits in their place asks the socket for it |
///
/// Others are not, as far as they are known, because
/// - they change which bytes a call gives: `SO_PEEK_OFF` (also what `peek` of this crate shows), `SO_OOBINLINE`, `SO_RCVLOWAT`, `TCP_INQ`, filters (`SO_ATTACH_FILTER`, `SO_ATTACH_BPF`),
///   `TCP_REPAIR*`, `TCP_QUEUE_SEQ`, `TCP_ULP` (TLS in the kernel);
/// - they make the kernel tell of packets: `SO_TIMESTAMP*`, `IP_RECV*`, `IP_PKTINFO`, `IP_RECVERR`, `SO_ZEROCOPY`, `SO_RXQ_OVFL`;
/// - they demand a path or a rate: `SO_BINDTODEVICE`, `SO_MARK`, `SO_DONTROUTE`, `IP_TRANSPARENT`, `IP_OPTIONS`, `IP_MINTTL`, `SO_MAX_PACING_RATE`, `SO_TXTIME`, `TCP_TX_DELAY`;
/// - they sign the bytes: `TCP_MD5SIG`, `TCP_AO_*`;
/// - the connection begins with the first send: `TCP_FASTOPEN*`.
pub fn is_neutral(level: i32, name: i32) -> bool {
    match level {
        SOL_SOCKET => is_neutral_of_sockets(name),
        IPPROTO_TCP => is_neutral_of_tcp(name),
        IPPROTO_IP => matches!(
            name,
            libc::IP_TOS
                | libc::IP_TTL
                | libc::IP_MTU_DISCOVER
                | libc::IP_FREEBIND
                | libc::IP_BIND_ADDRESS_NO_PORT
                | kernel::IP_LOCAL_PORT_RANGE
        ),
        IPPROTO_IPV6 => matches!(
            name,
            libc::IPV6_V6ONLY
                | libc::IPV6_TCLASS
                | libc::IPV6_UNICAST_HOPS
                | libc::IPV6_MTU_DISCOVER
                | libc::IPV6_FREEBIND
        ),
        _ => false,
    }
}

fn is_neutral_of_sockets(name: i32) -> bool {
    matches!(
        name,
        libc::SO_REUSEADDR
            | libc::SO_REUSEPORT
            | libc::SO_ATTACH_REUSEPORT_CBPF
            | libc::SO_ATTACH_REUSEPORT_EBPF
            | libc::SO_KEEPALIVE
            | libc::SO_LINGER
            | libc::SO_PRIORITY
            | libc::SO_SNDBUF
            | libc::SO_SNDBUFFORCE
            | libc::SO_RCVBUF
            | libc::SO_RCVBUFFORCE
            | libc::SO_BUSY_POLL
            | libc::SO_PREFER_BUSY_POLL
            | libc::SO_BUSY_POLL_BUDGET
            | libc::SO_INCOMING_CPU
            | libc::SO_RCVTIMEO
            | libc::SO_SNDTIMEO
    )
}

fn is_neutral_of_tcp(name: i32) -> bool {
    matches!(
        name,
        libc::TCP_NODELAY
            | libc::TCP_CORK
            | libc::TCP_QUICKACK
            | libc::TCP_MAXSEG
            | libc::TCP_CONGESTION
            | libc::TCP_WINDOW_CLAMP
            | libc::TCP_THIN_LINEAR_TIMEOUTS
            | libc::TCP_THIN_DUPACK
            | libc::TCP_KEEPIDLE
            | libc::TCP_KEEPINTVL
            | libc::TCP_KEEPCNT
            | libc::TCP_USER_TIMEOUT
            | libc::TCP_LINGER2
            | libc::TCP_SYNCNT
            | libc::TCP_DEFER_ACCEPT
            | libc::TCP_NOTSENT_LOWAT
            | kernel::TCP_RTO_MAX_MS
            | kernel::TCP_RTO_MIN_US
            | kernel::TCP_DELACK_MAX_US
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_servers_and_their_clients_are_neutral() {
        for (level, name) in [
            (SOL_SOCKET, libc::SO_REUSEADDR),
            (SOL_SOCKET, libc::SO_REUSEPORT),
            (SOL_SOCKET, libc::SO_KEEPALIVE),
            (SOL_SOCKET, libc::SO_LINGER),
            (SOL_SOCKET, libc::SO_SNDBUF),
            (SOL_SOCKET, libc::SO_RCVBUF),
            (SOL_SOCKET, libc::SO_SNDTIMEO),
            (SOL_SOCKET, libc::SO_RCVTIMEO),
            (IPPROTO_TCP, libc::TCP_NODELAY),
            (IPPROTO_TCP, libc::TCP_CORK),
            (IPPROTO_TCP, libc::TCP_KEEPIDLE),
            (IPPROTO_TCP, libc::TCP_KEEPINTVL),
            (IPPROTO_TCP, libc::TCP_KEEPCNT),
            (IPPROTO_TCP, libc::TCP_QUICKACK),
            (IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
            (IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
            (IPPROTO_TCP, libc::TCP_CONGESTION),
            (IPPROTO_TCP, libc::TCP_MAXSEG),
            (IPPROTO_IP, libc::IP_TOS),
            (IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT),
            (IPPROTO_IPV6, libc::IPV6_V6ONLY),
            (IPPROTO_IPV6, libc::IPV6_TCLASS),
        ] {
            assert!(is_neutral(level, name), "level {level}, option {name}");
        }
    }

    #[test]
    fn options_that_change_bytes_or_paths_or_that_nobody_knows_are_not_neutral() {
        const SO_MAX_PACING_RATE: i32 = 47;
        const TCP_INQ: i32 = 36;
        for (level, name) in [
            (SOL_SOCKET, libc::SO_PEEK_OFF),
            (SOL_SOCKET, libc::SO_OOBINLINE),
            (SOL_SOCKET, libc::SO_RCVLOWAT),
            (SOL_SOCKET, libc::SO_ATTACH_FILTER),
            (SOL_SOCKET, libc::SO_TIMESTAMP),
            (SOL_SOCKET, libc::SO_TIMESTAMPING),
            (SOL_SOCKET, libc::SO_ZEROCOPY),
            (SOL_SOCKET, libc::SO_BINDTODEVICE),
            (SOL_SOCKET, libc::SO_MARK),
            (SOL_SOCKET, SO_MAX_PACING_RATE),
            (IPPROTO_TCP, libc::TCP_ULP),
            (IPPROTO_TCP, libc::TCP_REPAIR),
            (IPPROTO_TCP, libc::TCP_MD5SIG),
            (IPPROTO_TCP, libc::TCP_FASTOPEN),
            (IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
            (IPPROTO_TCP, TCP_INQ),
            (IPPROTO_IP, libc::IP_TRANSPARENT),
            (IPPROTO_IP, libc::IP_RECVERR),
            (IPPROTO_IP, libc::IP_PKTINFO),
            (IPPROTO_IP, libc::IP_MINTTL),
            (IPPROTO_IPV6, libc::IPV6_RECVERR),
        ] {
            assert!(!is_neutral(level, name), "level {level}, option {name}");
        }
        for level in [SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6, -1, libc::SOL_TLS, i32::MAX] {
            for name in [i32::MIN, -1, 1000, i32::MAX] {
                assert!(!is_neutral(level, name), "level {level}, option {name}");
            }
        }
        // A number means an option of its level alone.
        assert!(!is_neutral(libc::IPPROTO_UDP, libc::TCP_NODELAY));
    }
}
