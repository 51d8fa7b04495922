//! What cannot be had is refused with what, where and what to do.

use beeline_ethernet::{
    AfPacket, AfPacketConfig, AfXdp, AfXdpConfig, Uplink, UplinkError, WireConfig, XdpAttach, XdpCopy,
    XskSizes,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::rig::{Net, frame, ip, send, until};

fn refused<T>(opened: Result<T, UplinkError>) -> String {
    opened.err().map(|error| error.to_string()).unwrap_or_else(|| "it was opened".into())
}

/// Runs `work` in a thread that has lost these capabilities; `None` where this process has none to lose.
fn without<R: Send>(lost: CapabilitySet, work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective -= lost;
            sets.permitted -= lost;
            set_capabilities(None, sets).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn without_capabilities_the_missing_one_is_named() {
    let config = AfXdpConfig::new("lo");
    let all = CapabilitySet::all();
    let error = without(all, || refused(AfXdp::open(&config)));
    let has_af_xdp = !error.contains("CONFIG_XDP_SOCKETS");
    assert!(error.contains("AF_XDP socket on lo, queue 0"), "{error}");
    assert!(!has_af_xdp || (error.contains("make it") && error.contains("CAP_NET_RAW")), "{error}");
    let packet = AfPacketConfig { interface: "lo".into(), ether_type: None, is_promiscuous: false };
    let error = without(all, || refused(AfPacket::open(&packet)));
    assert!(error.contains("AF_PACKET socket on lo") && error.contains("CAP_NET_RAW"), "{error}");
    let Some(net) = Net::make() else { return };
    let error = without(all, || {
        refused(format!("auto:e,netns={}", net.near.namespace).parse::<WireConfig>().unwrap().open())
    });
    assert!(error.contains(&net.near.namespace) && error.contains("CAP_SYS_ADMIN"), "{error}");
}

/// With CAP_NET_RAW alone a socket can be made, but not steered to: AF_PACKET takes its place where that is allowed.
#[test]
fn without_bpf_af_packet_takes_the_place() {
    let Some(net) = Net::make() else { return };
    let lost =
        CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN | CapabilitySet::PERFMON;
    let near = &net.near;
    let open = |kind: &str| {
        let wire: WireConfig = format!("{kind}:{}", near.interface).parse().unwrap();
        // Entered with the capability, opened without it.
        near.inside(|| {
            let before = capabilities(None).unwrap();
            let mut sets = before;
            sets.effective -= lost;
            set_capabilities(None, sets).unwrap();
            let opened = wire.open();
            set_capabilities(None, before).unwrap();
            opened
        })
    };
    let error = refused(open("af-xdp"));
    assert!(error.contains("steer frames") && error.contains("CAP_BPF"), "{error}");
    assert!(open("auto").unwrap().name().starts_with("af-packet"));
}

#[test]
fn a_driver_without_zero_copy_is_not_applicable() {
    let Some(net) = Net::make() else { return };
    let config = AfXdpConfig { copy: XdpCopy::ZeroCopy, ..net.near.config(XdpAttach::Auto) };
    let error = refused(net.near.try_xdp(&config));
    assert!(error.starts_with("n/a: driver veth of") && error.contains(&net.near.interface), "{error}");
    until("the program to be detached again", || (!net.near.has_program()).then_some(()));
    let uplink = net.near.xdp(XdpAttach::Auto);
    assert!(!uplink.is_zero_copy() && uplink.name().contains("(copy)"));
}

#[test]
fn a_queue_that_is_taken_and_one_that_is_not_there_are_told_apart() {
    let Some(net) = Net::make() else { return };
    let near = &net.near;
    let held = near.xdp(XdpAttach::Generic);
    let error = refused(near.try_xdp(&near.config(XdpAttach::Generic)));
    assert!(error.contains("another XDP program is attached") && error.contains("xdp off"), "{error}");
    let error = refused(near.try_xdp(&near.config(XdpAttach::Native)));
    assert!(error.contains("attached"), "{error}");
    drop(held);
    let config = AfXdpConfig { queue: 7, ..near.config(XdpAttach::Auto) };
    let error = refused(near.try_xdp(&config));
    assert!(error.contains("queue 7") && error.contains("ethtool -l"), "{error}");
    let config = AfXdpConfig { interface: "no-such-one".into(), ..near.config(XdpAttach::Auto) };
    let error = refused(near.try_xdp(&config));
    assert!(error.contains("no interface `no-such-one`"), "{error}");
}

#[test]
fn frames_too_long_for_the_driver_are_steered_after_it_or_refused() {
    let Some(net) = Net::make() else { return };
    for end in [&net.near, &net.far] {
        ip(&["-n", &end.namespace, "link", "set", &end.interface, "mtu", "9000"]).unwrap();
    }
    let error = refused(net.near.try_xdp(&net.near.config(XdpAttach::Native)));
    assert!(error.contains("MTU") && error.contains("generic"), "{error}");
    assert!(!net.near.xdp(XdpAttach::Auto).is_native());
}

#[test]
fn too_little_locked_memory_is_said_with_the_bytes() {
    let Some(net) = Net::make() else { return };
    // For this process only, and lower than before; nothing else here counts against it while it holds CAP_IPC_LOCK.
    let before = getrlimit(Resource::Memlock);
    setrlimit(Resource::Memlock, Rlimit { current: Some(4096), ..before }).unwrap();
    let sizes = XskSizes { receive: 1024, transmit: 1024 };
    let config = AfXdpConfig { sizes, ..net.near.config(XdpAttach::Auto) };
    let near = &net.near;
    let error = near.inside(|| {
        let all = capabilities(None).unwrap();
        set_capabilities(None, {
            let mut sets = all;
            sets.effective -= CapabilitySet::IPC_LOCK;
            sets
        })
        .unwrap();
        let error = refused(AfXdp::open(&config));
        set_capabilities(None, all).unwrap();
        error
    });
    setrlimit(Resource::Memlock, before).unwrap();
    assert!(error.contains("8388608 bytes") && error.contains("ulimit -l"), "{error}");
}

/// An interface that goes down keeps what is sent until it is up again or there is no room; one that is deleted is an
/// error that says so.
#[test]
fn an_interface_that_goes_is_noticed() {
    let Some(net) = Net::make() else { return };
    let near = &net.near;
    let mut uplink = near.xdp(XdpAttach::Auto);
    let packet = AfPacketConfig { interface: near.interface.clone(), ether_type: None, is_promiscuous: true };
    let mut packets = near.inside(|| AfPacket::open(&packet)).unwrap();
    ip(&["-n", &near.namespace, "link", "set", &near.interface, "down"]).unwrap();
    send(&mut packets, &frame(0, 60));
    let accepted = uplink.send(&frame(0, 60)).unwrap();
    println!("down: {accepted:?}");
    assert!(!uplink.poll(&mut Vec::new()).unwrap());
    ip(&["-n", &near.namespace, "link", "del", &near.interface]).unwrap();
    let error = until("an error", || uplink.send(&frame(1, 60)).err()).to_string();
    assert!(error.contains("ip link show") && error.contains(&near.interface), "{error}");
    let error = until("an error", || packets.send(&frame(1, 60)).err()).to_string();
    assert!(error.contains("ip link show") && error.contains(&near.interface), "{error}");
}
