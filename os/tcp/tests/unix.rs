//! The two ends of a stream of `AF_UNIX` are known by the kernel's word, and bytes with which something comes are told from others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

use beeline_tcp::{
    NoOtherSocket, Peeked, TakeError, cookie, is_unix_stream, netns_cookie, reset, unix_established,
    unix_inode, unix_is_drained, unix_peek, unix_take, unix_tuple,
};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg, sockopt,
};

/// A connection by a name, and what listens there.
fn pair() -> (UnixStream, UnixStream, UnixListener) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let client = UnixStream::connect(&path).unwrap();
    let server = listener.accept().unwrap().0;
    (client, server, listener)
}

fn send_with_descriptor(to: &UnixStream, bytes: &[u8]) {
    let passed = [to.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
}

#[test]
fn each_end_names_the_socket_of_the_other() {
    let (client, server, _listener) = pair();
    let namespace = netns_cookie(&client).unwrap();
    for (own, other) in [(&client, &server), (&server, &client)] {
        let tuple = unix_tuple(own).unwrap();
        assert_eq!(tuple, unix_tuple(other).unwrap().mirrored());
        let found = unix_established(namespace, tuple.mirrored()).unwrap();
        assert_eq!(Ok(found.cookie), cookie(other));
        assert_eq!(found.uid, rustix::process::geteuid().as_raw());
        assert_eq!(Some(found.inode), unix_inode(tuple.remote));
        assert_eq!(u64::from(found.inode), rustix::fs::fstat(other).unwrap().st_ino);
        let elsewhere = unix_established(namespace + 1, tuple.mirrored());
        assert_eq!(elsewhere, Err(NoOtherSocket::OtherNamespace));
    }
}

#[test]
fn ends_of_two_connections_are_no_connection() {
    let (one, _other, _listener) = pair();
    let (two, _another, _listener) = pair();
    let namespace = netns_cookie(&one).unwrap();
    let (one, two) = (unix_tuple(&one).unwrap(), unix_tuple(&two).unwrap());
    let mixed = beeline_tcp::Tuple { local: one.local, remote: two.local };
    assert_eq!(unix_established(namespace, mixed), Err(NoOtherSocket::Elsewhere));
    assert_eq!(unix_established(namespace, one.mirrored()).unwrap().inode, unix_inode(one.remote).unwrap());
}

#[test]
fn end_that_nobody_has_accepted_and_one_that_has_gone_are_not_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let client = UnixStream::connect(&path).unwrap();
    assert_eq!(unix_tuple(&client), Err(NoOtherSocket::Elsewhere));
    let server = listener.accept().unwrap().0;
    let tuple = unix_tuple(&client).unwrap();
    drop(server);
    let namespace = netns_cookie(&client).unwrap();
    assert!(unix_established(namespace, tuple.mirrored()).is_err());
    assert!(unix_tuple(&listener).is_err());
}

/// Whoever may give a socket to another user, which root may.
#[test]
fn end_of_another_user_is_not_named() {
    let (client, server, _listener) = pair();
    let nobody = rustix::fs::Uid::from_raw(65534);
    if rustix::fs::fchown(&server, Some(nobody), None).is_err() {
        println!("not shown: this user may not give a socket to another one");
        return;
    }
    assert_eq!(unix_tuple(&client), Err(NoOtherSocket::Elsewhere));
    assert_eq!(unix_tuple(&server), Err(NoOtherSocket::Elsewhere));
}

#[test]
fn streams_of_unix_are_told_from_others() {
    let (client, _server, listener) = pair();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = std::os::unix::net::UnixDatagram::unbound().unwrap();
    assert!(is_unix_stream(&client) && is_unix_stream(&listener));
    assert!(!is_unix_stream(&udp) && !is_unix_stream(&tcp) && !is_unix_stream(&datagrams));
}

#[test]
fn socket_is_drained_when_its_last_byte_is_taken_and_not_when_it_is_peeked_at() {
    let (mut client, mut server, _listener) = pair();
    assert_eq!(unix_is_drained(&client), Ok(true));
    client.write_all(b"abcdef").unwrap();
    assert_eq!(unix_is_drained(&client), Ok(false));
    let mut out = [0; 16];
    assert_eq!(unix_peek(&server, &mut out), Ok((Peeked::Bytes(6), false)));
    assert_eq!(unix_take(&server, 5), Ok(()));
    assert_eq!(unix_is_drained(&client), Ok(false));
    server.read_exact(&mut out[..1]).unwrap();
    assert_eq!((out[0], unix_is_drained(&client)), (b'f', Ok(true)));
    assert_eq!(unix_is_drained(&server), Ok(true));
    assert_eq!(unix_peek(&server, &mut out), Ok((Peeked::Nothing, false)));
    let short = Err(TakeError::Short { asked: 1, taken: 0 });
    assert_eq!(unix_take(&server, 1), short);
    drop(client);
    assert_eq!(unix_peek(&server, &mut out), Ok((Peeked::End, false)));
}

#[test]
fn bytes_with_a_descriptor_are_told_and_it_stays_with_them() {
    let (mut client, server, _listener) = pair();
    client.write_all(b"plain").unwrap();
    let mut out = [0; 16];
    assert_eq!(unix_peek(&server, &mut out), Ok((Peeked::Bytes(5), false)));
    send_with_descriptor(&client, b"x");
    assert_eq!(unix_peek(&server, &mut out), Ok((Peeked::Bytes(6), true)));
    assert_eq!(unix_take(&server, 5), Ok(()));
    assert_eq!(unix_peek(&server, &mut out), Ok((Peeked::Bytes(1), true)));
    // The program's own call has both.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(&server, &mut [IoSliceMut::new(&mut out)], &mut control, RecvFlags::empty()).unwrap();
    assert_eq!((received.bytes, out[0]), (1, b'x'));
    let Some(RecvAncillaryMessage::ScmRights(mut passed)) = control.drain().next() else {
        panic!("no rights")
    };
    assert_eq!(cookie(passed.next().unwrap()), cookie(&client));
}

#[test]
fn credentials_that_are_asked_for_are_told() {
    let (mut client, server, _listener) = pair();
    sockopt::set_socket_passcred(&server, true).unwrap();
    client.write_all(b"x").unwrap();
    assert_eq!(unix_peek(&server, &mut [0; 4]), Ok((Peeked::Bytes(1), true)));
}

#[test]
fn reset_ends_both_directions() {
    let (mut client, mut server, _listener) = pair();
    reset(&client).unwrap();
    let mut out = [0; 4];
    assert_eq!(server.read(&mut out).unwrap(), 0);
    assert_eq!(client.read(&mut out).unwrap(), 0);
    assert!(server.write(b"x").is_err() && client.write(b"x").is_err());
}
