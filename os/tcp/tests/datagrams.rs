//! A datagram's socket is the one that receives it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use beeline_tcp::{
    NoOtherSocket, Tuple, cookie, is_neutral_for_datagrams, is_tcp, is_udp, may_come_to_this_host,
    netns_cookie, receiver, source_towards,
};
use rustix::io::Errno;
use rustix::net::AddressFamily;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Sends one from `sender` to `to`; whether `receiver` has it, and from whom.
fn sent(sender: &UdpSocket, to: SocketAddr, receiver: &UdpSocket) -> Option<SocketAddr> {
    sender.send_to(b"?", to).unwrap();
    receiver.set_nonblocking(true).unwrap();
    receiver.recv_from(&mut [0; 8]).ok().map(|(_, from)| from)
}

#[test]
fn the_socket_that_is_found_is_the_one_that_receives() {
    for (bound, to_ip, from) in [
        ("127.0.0.1:0", "127.0.0.1", "127.0.0.1:0"),
        ("0.0.0.0:0", "127.0.0.1", "0.0.0.0:0"),
        ("[::1]:0", "::1", "[::]:0"),
        ("[::]:0", "::1", "[::]:0"),
        ("[::]:0", "127.0.0.1", "0.0.0.0:0"),
    ] {
        let (ours, sender) = (UdpSocket::bind(bound).unwrap(), UdpSocket::bind(from).unwrap());
        let to = SocketAddr::new(to_ip.parse().unwrap(), ours.local_addr().unwrap().port());
        let source = sent(&sender, to, &ours).unwrap();
        let namespace = netns_cookie(&ours).unwrap();
        let found = receiver(namespace, Tuple::new(to, source)).unwrap();
        assert_eq!(Ok(found.cookie), cookie(&ours), "{bound}");
        assert_eq!(found.uid, rustix::process::geteuid().as_raw());
        let back = receiver(namespace, Tuple::new(source, to)).unwrap();
        assert_eq!(Ok(back.cookie), cookie(&sender), "{bound}");
        let source_ip = source_towards(to.ip()).unwrap().to_canonical();
        assert_eq!(source_ip, source.ip().to_canonical(), "{bound}");
        assert_eq!(receiver(namespace + 1, Tuple::new(to, source)), Err(NoOtherSocket::OtherNamespace));
    }
}

#[test]
fn connected_socket_receives_from_its_peer_alone() {
    let [ours, peer, stranger] = [0; 3].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [to, from, other] = [&ours, &peer, &stranger].map(|socket| socket.local_addr().unwrap());
    ours.connect(from).unwrap();
    let namespace = netns_cookie(&ours).unwrap();
    assert_eq!(sent(&peer, to, &ours), Some(from));
    assert_eq!(receiver(namespace, Tuple::new(to, from)).map(|found| found.cookie).ok(), cookie(&ours).ok());
    assert_eq!(sent(&stranger, to, &ours), None);
    assert_eq!(receiver(namespace, Tuple::new(to, other)), Err(NoOtherSocket::Elsewhere));
}

#[test]
fn of_sockets_on_one_port_the_kernels_choice_is_found() {
    let shared = |address: SocketAddr| {
        let socket = rustix::net::socket(AddressFamily::INET, rustix::net::SocketType::DGRAM, None).unwrap();
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        rustix::net::bind(&socket, &address).unwrap();
        UdpSocket::from(socket)
    };
    let first = shared(address("127.0.0.1:0"));
    let to = first.local_addr().unwrap();
    let second = shared(to);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let from = sender.local_addr().unwrap();
    let found = receiver(netns_cookie(&first).unwrap(), Tuple::new(to, from)).unwrap().cookie;
    let chosen = if sent(&sender, to, &first).is_some() { &first } else { &second };
    assert_eq!(cookie(chosen), Ok(found));
}

#[test]
fn addresses_of_other_hosts_and_of_groups_have_no_socket_here() {
    let ours = UdpSocket::bind("0.0.0.0:0").unwrap();
    let namespace = netns_cookie(&ours).unwrap();
    let from = address("127.0.0.1:7");
    for ip in [[8, 8, 8, 8], [192, 0, 2, 1], [224, 0, 0, 1], [255, 255, 255, 255], [0, 0, 0, 0]] {
        let to = SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), ours.local_addr().unwrap().port());
        assert_eq!(receiver(namespace, Tuple::new(to, from)), Err(NoOtherSocket::Elsewhere), "{to}");
    }
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(receiver(namespace, Tuple::new(nobody, from)), Err(NoOtherSocket::Elsewhere));
    assert_eq!(source_towards([255, 255, 255, 255].into()), Err(Errno::ACCESS));
}

#[test]
fn socket_says_which_protocol_it_has_and_options_that_share_a_port_are_not_neutral() {
    let (udp, tcp) = (UdpSocket::bind("[::1]:0").unwrap(), std::net::TcpListener::bind("[::1]:0").unwrap());
    assert!(is_udp(&udp) && !is_tcp(&udp) && !is_udp(&tcp));
    for name in [
        libc::SO_REUSEADDR,
        libc::SO_REUSEPORT,
        libc::SO_ATTACH_FILTER,
        libc::SO_TIMESTAMP,
        libc::SO_BINDTODEVICE,
    ] {
        assert!(!is_neutral_for_datagrams(libc::SOL_SOCKET, name), "{name}");
    }
    assert!(!is_neutral_for_datagrams(libc::IPPROTO_IP, libc::IP_PKTINFO));
    assert!(!is_neutral_for_datagrams(libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP));
    assert!(!is_neutral_for_datagrams(libc::IPPROTO_UDP, 104));
    assert!(is_neutral_for_datagrams(libc::SOL_SOCKET, libc::SO_RCVBUF));
}

#[test]
fn addresses_of_this_host_of_groups_and_of_everybody_may_come_here_and_those_of_others_do_not() {
    let comes = |text: &str| may_come_to_this_host(text.parse::<IpAddr>().unwrap());
    for here in [
        "127.0.0.1",
        "127.3.2.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "127.255.255.255",
        "::1",
        "::",
        "ff02::1",
    ] {
        assert!(comes(here), "{here}");
    }
    for elsewhere in ["192.0.2.1", "198.51.100.7", "2001:db8::1", "::ffff:192.0.2.1"] {
        assert!(!comes(elsewhere), "{elsewhere}");
    }
}
