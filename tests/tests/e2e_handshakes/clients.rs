//! Clients that keep no rule.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use beeline::rpc::{Replied, Reply, Request};
use beeline_domain::{ConnectError, Connection, Domain};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};

use crate::descriptors::{BYTES, good, many, wrong};
use crate::e2e_support::{WATCHDOG, domain_at};

pub fn echo(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    let mut asked = Vec::new();
    request.copy_to(&mut asked);
    reply.send(&asked)
}

/// The code of an answer in the header of a packet; 4 is a refusal.
const REPLY: u16 = 3;
const WINDOW: &str = r#"{"window":1}"#;
const CALLS: &str = r#"{"rpc":1,"slots":8,"stores":"cached"}"#;
const NIC: &str = r#"{"request":"open","version":1,"loop_back":false}"#;
/// Names, and the first request of each that comes with one descriptor of [`BYTES`].
const HELLOS: [(&str, &str); 3] = [("window", WINDOW), ("calls", CALLS), ("nic", NIC)];

/// Everything once, against a process that offers each of [`HELLOS`].
pub fn attack(root: &Path) {
    let domain = domain_at(root);
    for (name, hello) in HELLOS {
        wrong_descriptors(&domain, name, hello);
        wrong_requests(&domain, name);
        half_open(&root.join("e2e").join(format!("{name}.sock")), hello);
    }
    wrong_reply_windows(&domain);
    wrong_port_requests(&domain);
    for (name, hello) in HELLOS {
        connected(&domain, name, hello);
    }
}

/// Connects as soon as there is room: what was left half open before is closed by threads that nobody waits for.
fn connected(domain: &Domain, name: &str, hello: &str) -> Connection {
    let (fine, begun) = (good(BYTES), Instant::now());
    loop {
        match domain.connect(name, hello.as_bytes(), &[fine.as_fd()]) {
            Ok((connection, _)) => return connection,
            Err(error) => assert!(begun.elapsed() < WATCHDOG, "{name}: {error}"),
        }
    }
}

fn refused(domain: &Domain, name: &str, request: &[u8], fds: &[BorrowedFd<'_>]) {
    let answer = domain.connect(name, request, fds).map(|_| ());
    let shown = String::from_utf8_lossy(&request[..request.len().min(80)]);
    match answer {
        Err(ConnectError::Refused { .. } | ConnectError::Closed { .. } | ConnectError::Protocol { .. }) => {}
        other => panic!("{name}: {shown} with {} descriptors: {other:?}", fds.len()),
    }
}

fn wrong_descriptors(domain: &Domain, name: &str, hello: &str) {
    let (fine, hello) = (good(BYTES), hello.as_bytes());
    for (what, fd) in wrong(BYTES) {
        println!("{name}: {what}");
        refused(domain, name, hello, &[fd.as_fd()]);
        refused(domain, name, hello, &[fine.as_fd(), fd.as_fd()]);
        refused(domain, name, hello, &many(&fd));
    }
    refused(domain, name, hello, &[]);
    refused(domain, name, hello, &many(&fine));
}

/// Requests that are none, with memory that is as it should be.
fn wrong_requests(domain: &Domain, name: &str) {
    let long = "9".repeat(60_000);
    let mut requests: Vec<Vec<u8>> = [
        "",
        "null",
        "true",
        "0",
        "[]",
        "{}",
        "\"window\"",
        "{\"window\":1",
        "{\"window\":2}",
        "{\"window\":-1}",
        "{\"window\":1e99}",
        "{\"window\":\"1\"}",
        "{\"rpc\":1}",
        "{\"rpc\":2,\"slots\":8}",
        "{\"rpc\":1,\"slots\":0}",
        "{\"rpc\":1,\"slots\":7}",
        "{\"rpc\":1,\"slots\":4294967295}",
        "{\"rpc\":1,\"slots\":18446744073709551616}",
        "{\"request\":\"open\"}",
        "{\"request\":\"open\",\"version\":2,\"loop_back\":false}",
        "{\"request\":\"fly\"}",
        "{\"request\":\"window\",\"queue\":0,\"is_cached\":true}",
        "{\"request\":\"release\",\"region\":0}",
        "{\"worker\":0,\"window\":{\"lines\":64,\"bytes\":8192,\"blank\":9223372036854775813,\"epoch\":0}}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    for deep in ["[", "{\"window\":", "{\"request\":[", "{\"rpc\":{"] {
        requests.push(deep.repeat(60_000 / deep.len()).into_bytes());
    }
    requests.push(format!("{{\"window\":{long}}}").into_bytes());
    requests.push(format!("{{\"rpc\":1,\"slots\":8,\"{long}\":1").into_bytes());
    requests.push(vec![0; 60_000]);
    requests.push(vec![0xff; 60_000]);
    let fine = good(BYTES);
    for request in requests {
        refused(domain, name, &request, &[fine.as_fd()]);
    }
}

/// A client of calls that opens reply windows which are none.
fn wrong_reply_windows(domain: &Domain) {
    let window = good(2 * BYTES);
    let terms = |lines: u64, bytes: u64, blank: u64| {
        format!(r#"{{"worker":0,"window":{{"lines":{lines},"bytes":{bytes},"blank":{blank},"epoch":0}}}}"#)
    };
    let blank = 1 << 63 | 5;
    let whole = terms(64, 2 * BYTES as u64, blank);
    let connection = connected(domain, "calls", CALLS);
    for (what, fd) in wrong(2 * BYTES) {
        assert!(connection.call(whole.as_bytes(), &[fd.as_fd()]).is_err(), "{what}");
    }
    let wild = [0, 1, 63, 1 << 24, 1 << 25, u64::from(u32::MAX), u64::MAX];
    for lines in wild {
        for bytes in [0, BYTES as u64, 1 << 40, u64::MAX] {
            assert!(
                connection.call(terms(lines, bytes, blank).as_bytes(), &[window.as_fd()]).is_err(),
                "{lines} {bytes}"
            );
        }
    }
    assert!(connection.call(terms(64, 2 * BYTES as u64, 5).as_bytes(), &[window.as_fd()]).is_err());
    let another = whole.replace("\"worker\":0", "\"worker\":64");
    assert!(connection.call(another.as_bytes(), &[window.as_fd()]).is_err());
    for request in [CALLS, WINDOW, NIC, "", "[[[["] {
        assert!(connection.call(request.as_bytes(), &[window.as_fd()]).is_err(), "{request}");
    }
    connection.call(whole.as_bytes(), &[window.as_fd()]).unwrap();
}

/// A port that asks for what there is not.
fn wrong_port_requests(domain: &Domain) {
    let host = good(BYTES);
    let connection = connected(domain, "nic", NIC);
    let memory = format!(r#"{{"request":"memory","bytes":{BYTES}}}"#);
    for (what, fd) in wrong(BYTES) {
        assert!(connection.call(memory.as_bytes(), &[fd.as_fd()]).is_err(), "{what}");
    }
    for request in [
        r#"{"request":"memory","bytes":0}"#.to_owned(),
        format!(r#"{{"request":"memory","bytes":{}}}"#, u64::MAX),
        format!(r#"{{"request":"window","queue":{},"is_cached":true}}"#, u32::MAX),
        format!(r#"{{"request":"doorbell","offset_bytes":{}}}"#, u32::MAX),
        format!(r#"{{"request":"release","region":{}}}"#, u32::MAX),
        NIC.to_owned(),
    ] {
        assert!(connection.call(request.as_bytes(), &[host.as_fd()]).is_err(), "{request}");
    }
    connection.call(memory.as_bytes(), &[host.as_fd()]).unwrap();
}

fn raw_connect(path: &Path) -> OwnedFd {
    let kind = SocketType::SEQPACKET;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

/// Sends what there is room for; the other side may have closed already.
fn raw_send(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(60))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags);
}

/// The first packet of a client, as version 4 of the rendezvous has it.
fn packet(payload: &[u8], fds: u16) -> Vec<u8> {
    let mut packet = b"BEE\x01\x04\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00".to_vec();
    packet.extend((payload.len() as u32).to_le_bytes());
    packet.extend(fds.to_le_bytes());
    packet.extend([0; 10]);
    packet.extend(payload);
    packet
}

/// The kind of the first packet that a packet with one descriptor is answered with.
fn answer_to(path: &Path, packet: &[u8], fd: &OwnedFd) -> Option<u16> {
    let socket = raw_connect(path);
    raw_send(&socket, packet, &[fd.as_fd()]);
    let mut header = [0; 32];
    let (bytes, _) = rustix::net::recv(&socket, &mut header, RecvFlags::empty()).unwrap();
    (bytes == header.len()).then(|| u16::from_le_bytes([header[6], header[7]]))
}

/// Connections that end in the middle, and headers of which each byte is spoiled once.
fn half_open(path: &Path, hello: &str) {
    let (fine, whole) = (good(BYTES), packet(hello.as_bytes(), 1));
    let begun = Instant::now();
    // What is spoiled below is a packet that is answered as it is; a window may still be that of the sender before.
    while answer_to(path, &whole, &fine) != Some(REPLY) {
        assert!(begun.elapsed() < WATCHDOG, "a whole packet is not answered");
    }
    let silent: Vec<OwnedFd> = (0..20).map(|_| raw_connect(path)).collect();
    for at in 0..32 {
        for flip in [1, 0x80, 0xff] {
            let mut spoiled = whole.clone();
            spoiled[at] ^= flip;
            raw_send(&raw_connect(path), &spoiled, &[fine.as_fd()]);
        }
        // A part of it, and all of it from one that does not wait for the answer.
        raw_send(&raw_connect(path), &whole[..at], &[fine.as_fd()]);
        raw_send(&raw_connect(path), &whole, &[fine.as_fd()]);
    }
    raw_send(&raw_connect(path), &packet(hello.as_bytes(), 60), &[fine.as_fd(); 60]);
    drop(silent);
}
