//! What is sent is what arrives, whatever the two ends are.

use beeline_ethernet::{
    Accept, AfPacket, AfPacketConfig, AfXdp, ETHER_TYPE, Taken, Uplink, WireConfig, XdpAttach, XskSizes,
};

use crate::rig::{End, Net, frame, frame_of, receive, send, until};

/// Lengths around every boundary that matters, up to the longest.
fn lengths(longest: usize) -> impl Iterator<Item = usize> {
    let usual = [18, 59, 60, 61, 63, 64, 65, 127, 128, 129, 255, 256, 1023, 1500, 1514];
    usual.into_iter().chain([longest - 1, longest]).filter(move |bytes| *bytes <= longest)
}

/// Frames of every length from one to the other, each bytes for bytes; AF_PACKET sees short ones padded by nobody.
fn every_length(from: &mut dyn Uplink, to: &mut dyn Uplink) {
    let longest = from.longest_frame_bytes().min(to.longest_frame_bytes());
    for (number, bytes) in lengths(longest).enumerate() {
        let sent = frame(number as u32, bytes);
        send(from, &sent);
        assert_eq!(receive(to), sent, "{bytes} bytes from {} to {}", from.name(), to.name());
    }
    assert!(!to.poll(&mut Vec::new()).unwrap(), "each frame once");
}

/// Many frames in bursts, more than any ring holds, in order and once each; never more on the way than these.
fn many(from: &mut dyn Uplink, to: &mut dyn Uplink, on_the_way: usize) {
    let frames: Vec<Vec<u8>> = (0..3000).map(|number| frame(number, 60 + number as usize % 300)).collect();
    let bursts: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let path = format!("from {} to {}", from.name(), to.name());
    let (mut sent, mut found, mut scratch) = (0, 0, Vec::new());
    while found < frames.len() {
        // No more on the way than the receiver has room for: neither the wire nor the sockets wait.
        let end = frames.len().min(found + on_the_way);
        if sent < end {
            sent += from.send_burst(&bursts[sent..end]).unwrap().0;
        }
        until("a frame of a burst", || {
            let look = &mut |bytes: &[u8]| {
                assert_eq!(bytes, frames[found], "frame {found} {path}");
                found += 1;
            };
            let came = to.poll_frame(&mut scratch, look).unwrap();
            if !came {
                from.flush().unwrap();
            }
            came.then_some(())
        });
    }
}

fn packet(end: &End) -> AfPacket {
    packet_of(end, Some(ETHER_TYPE))
}

fn packet_of(end: &End, ether_type: Option<u16>) -> AfPacket {
    let config = AfPacketConfig { interface: end.interface.clone(), ether_type, is_promiscuous: false };
    end.inside(|| AfPacket::open(&config)).unwrap()
}

#[test]
fn frames_cross_from_af_xdp_to_af_xdp() {
    let Some(net) = Net::make() else { return };
    for (near, far) in [
        (XdpAttach::Auto, XdpAttach::Auto),
        (XdpAttach::Native, XdpAttach::Native),
        (XdpAttach::Generic, XdpAttach::Native),
    ] {
        let (mut near, mut far) = (net.near.xdp(near), net.far.xdp(far));
        every_length(&mut near, &mut far);
        every_length(&mut far, &mut near);
        many(&mut near, &mut far, 100);
        many(&mut far, &mut near, 100);
        let counted = near.statistics().unwrap();
        assert_eq!(counted.sent, counted.transmitted, "{counted:?}");
        assert_eq!(counted.sent, far.statistics().unwrap().received, "{counted:?}");
        assert_eq!(counted.invalid_entries + counted.kernel_dropped + counted.too_long, 0, "{counted:?}");
    }
}

#[test]
fn frames_cross_between_af_xdp_and_af_packet() {
    let Some(net) = Net::make() else { return };
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        let (mut near, mut far) = (net.near.xdp(attach), packet(&net.far));
        every_length(&mut near, &mut far);
        every_length(&mut far, &mut near);
        many(&mut near, &mut far, 100);
        many(&mut far, &mut near, 100);
    }
}

#[test]
fn frames_cross_from_af_packet_to_af_packet() {
    let Some(net) = Net::make() else { return };
    let (mut near, mut far) = (packet(&net.near), packet(&net.far));
    every_length(&mut near, &mut far);
    many(&mut far, &mut near, 100);
    // Nobody sees what it sent itself, nor another type.
    send(&mut near, &frame(1, 60));
    assert!(!near.poll(&mut Vec::new()).unwrap());
    send(&mut near, &frame_of(0x88b6, 2, 60));
    send(&mut near, &frame(3, 60));
    assert_eq!((receive(&mut far), receive(&mut far)), (frame(1, 60), frame(3, 60)));
}

/// Frames that this machine's kernel sends are on the wire already; they do not come in.
#[test]
fn af_packet_sees_nothing_that_is_sent_beside_it() {
    let Some(net) = Net::make() else { return };
    let mut near = packet_of(&net.near, None);
    let (here, there) = (net.near.udp(), net.far.udp());
    let mut datagram = [0; 8];
    for _ in 0..3 {
        here.send_to(&[1], (net.far.address, 7)).unwrap();
        let (_, from) = there.recv_from(&mut datagram).unwrap();
        there.send_to(&[2], from).unwrap();
        here.recv(&mut datagram).unwrap();
    }
    let (mut came, mut frame) = (0, Vec::new());
    while near.poll(&mut frame).unwrap() {
        assert_ne!(frame[6..12], near.station_address(), "a frame of our own: {frame:02x?}");
        came += 1;
    }
    assert!(came >= 3, "{came} frames of the other side's came in");
}

/// The kernel sends some tens of frames in one call; the others of a burst do not wait for the next.
#[test]
fn a_whole_burst_leaves_at_once() {
    let Some(net) = Net::make() else { return };
    let (mut near, mut far) = (net.near.xdp(XdpAttach::Auto), net.far.xdp(XdpAttach::Auto));
    let frames: Vec<Vec<u8>> = (0..200).map(|number| frame(number, 60)).collect();
    let burst: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    assert_eq!(near.send_burst(&burst).unwrap(), Taken(200));
    for frame in &frames {
        assert_eq!(&receive(&mut far), frame);
    }
    let kicks = near.statistics().unwrap().kicks;
    assert!((2..=20).contains(&kicks), "{kicks} system calls for 200 frames");
}

#[test]
fn both_see_the_station_addresses_that_the_kernel_has() {
    let Some(net) = Net::make() else { return };
    let text = |address: [u8; 6]| address.map(|byte| format!("{byte:02x}")).join(":");
    let (near, far) = (net.near.xdp(XdpAttach::Auto), packet(&net.far));
    assert!(net.near.shown().contains(&text(near.station_address())));
    assert!(net.far.shown().contains(&text(far.station_address())));
    assert_eq!((near.longest_frame_bytes(), far.longest_frame_bytes()), (1514, 1514));
}

#[test]
fn a_frame_that_is_too_long_is_lost_and_counted_and_the_next_one_is_not() {
    let Some(net) = Net::make() else { return };
    let (mut near, mut far) = (net.near.xdp(XdpAttach::Auto), packet(&net.far));
    for bytes in [1515, 4096, 9216] {
        assert_eq!(near.send(&frame(0, bytes)).unwrap(), Accept::Taken);
        assert_eq!(far.send(&frame(0, bytes)).unwrap(), Accept::Taken);
    }
    assert_eq!((near.statistics().unwrap().too_long, far.too_long()), (3, 3));
    every_length(&mut near, &mut far);
    every_length(&mut far, &mut near);
}

#[test]
fn jumbo_frames_cross_as_far_as_a_chunk_holds_them() {
    let Some(net) = Net::make() else { return };
    for end in [&net.near, &net.far] {
        crate::rig::ip(&["-n", &end.namespace, "link", "set", &end.interface, "mtu", "9000"]).unwrap();
    }
    let (mut near, mut far) = (net.near.xdp(XdpAttach::Auto), net.far.xdp(XdpAttach::Auto));
    assert_eq!(near.longest_frame_bytes(), 3840);
    every_length(&mut near, &mut far);
    every_length(&mut far, &mut near);
}

#[test]
fn a_frame_is_built_and_looked_at_in_place() {
    let Some(net) = Net::make() else { return };
    let (mut near, mut far) = (net.near.xdp(XdpAttach::Auto), net.far.xdp(XdpAttach::Auto));
    let built = frame(7, 100);
    let build = |buffer: &mut [u8]| {
        assert_eq!(buffer.len(), 1514);
        buffer[..100].copy_from_slice(&built);
        100
    };
    assert_eq!(near.queue_with(build).unwrap(), Accept::Taken);
    assert_eq!(near.transmitted().unwrap(), 0, "the kernel was not told");
    assert!(far.poll_with(|_| ()).unwrap().is_none());
    assert_eq!(near.send_with(build).unwrap(), Accept::Taken);
    assert_eq!(near.send_with(|_| 0).unwrap(), Accept::Taken, "none is sent");
    for _ in 0..2 {
        assert_eq!(until("a frame", || far.poll_with(<[u8]>::to_vec).unwrap()), built);
    }
    until("completions", || (near.transmitted().unwrap() == 2).then_some(()));
    assert!(far.poll_with(|_| ()).unwrap().is_none());
}

/// A receiver that does not look loses what has no room, as a wire does; nothing is lost before, and all is well after.
#[test]
fn what_has_no_room_is_dropped_and_counted() {
    let Some(net) = Net::make() else { return };
    let sizes = XskSizes { receive: 64, transmit: 64 };
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        let config = beeline_ethernet::AfXdpConfig { sizes, ..net.far.config(attach) };
        let (mut near, mut far) = (net.near.xdp(attach), net.far.try_xdp(&config).unwrap());
        for number in 0..200 {
            send(&mut near, &frame(number, 60));
        }
        for number in 0..64 {
            assert_eq!(receive(&mut far), frame(number, 60));
        }
        assert!(!far.poll(&mut Vec::new()).unwrap());
        let counted = far.statistics().unwrap();
        let lost = counted.receive_ring_full + counted.fill_ring_empty + counted.kernel_dropped;
        assert!(counted.received == 64 && lost > 0, "{counted:?}");
        many(&mut near, &mut far, 32);
    }
}

/// An up-link may be opened, used and closed again and again; the queue is free each time.
#[test]
fn a_queue_is_given_back() {
    let Some(net) = Net::make() else { return };
    let mut far = packet(&net.far);
    for number in 0..10 {
        let mut near = net.near.xdp(XdpAttach::Auto);
        send(&mut near, &frame(number, 60));
        assert_eq!(receive(&mut far), frame(number, 60));
        send(&mut far, &frame(number, 64));
        assert_eq!(receive(&mut near), frame(number, 64));
    }
}

#[test]
fn an_up_link_is_opened_from_words_inside_its_namespace() {
    let Some(net) = Net::make() else { return };
    let words = |kind: &str, end: &End| format!("{kind}:{},netns={}", end.interface, end.namespace);
    for (near, far, names) in
        [("af-xdp", "auto", ["af-xdp", "af-xdp"]), ("af-packet", "af-xdp", ["af-packet", "af-xdp"])]
    {
        let open = |text: String| text.parse::<WireConfig>().unwrap().open().unwrap();
        let (mut near, mut far) = (open(words(near, &net.near)), open(words(far, &net.far)));
        assert!(near.name().starts_with(names[0]) && far.name().starts_with(names[1]));
        every_length(near.as_mut(), far.as_mut());
        every_length(far.as_mut(), near.as_mut());
    }
}

#[test]
fn busy_polling_brings_the_same_frames() {
    let Some(net) = Net::make() else { return };
    let polling = |end: &End| {
        let busy_poll = Some(beeline_ethernet::BusyPoll { microseconds: 20, budget: 8 });
        let config = beeline_ethernet::AfXdpConfig { busy_poll, ..end.config(XdpAttach::Native) };
        end.try_xdp(&config).unwrap()
    };
    let (mut near, mut far): (AfXdp, AfXdp) = (polling(&net.near), polling(&net.far));
    assert!(near.looks_by_system_call());
    every_length(&mut near, &mut far);
    many(&mut far, &mut near, 100);
}
