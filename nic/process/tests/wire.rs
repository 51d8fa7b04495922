//! Two NIC processes joined by a wire: stations behind one reach stations behind the other past both kernels.
//!
//! Needs root and `ip` of iproute2; where they are missing it says why, and checks that starting the NIC does too.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::process::Command;

use beeline_nic_process::{NicProcess, NicProcessConfig, UplinkConfig};
use support::{Running, Station, config, reasons};

/// Network namespaces that are gone with this.
struct Namespaces([String; 2]);

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let done = Command::new("ip").args(arguments).output().map_err(|error| error.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

/// Two namespaces with an end of a veth each; both ends are called `wire`.
fn namespaces() -> Result<Namespaces, String> {
    let name = |side: char| format!("beenic{}{side}", std::process::id());
    let made = Namespaces([name('a'), name('b')]);
    let [a, b] = &made.0;
    ip(&["netns", "add", a])?;
    ip(&["netns", "add", b])?;
    ip(&["-n", a, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", b])?;
    for name in &made.0 {
        ip(&["-n", name, "link", "set", "wire", "addrgenmode", "none", "up"])?;
    }
    Ok(made)
}

fn with_wire(config: NicProcessConfig, words: &str) -> NicProcessConfig {
    let wire = UplinkConfig::Wire(Box::new(words.parse().unwrap()));
    NicProcessConfig { uplinks: vec![wire], ..config }
}

#[test]
fn stations_reach_each_other_over_a_wire_between_two_nics() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let roots = folders.each_ref().map(|folder| folder.path());
    let made = match namespaces() {
        Ok(made) => made,
        Err(why) => {
            println!("no namespaces here, so that nothing is sent: {why}");
            let refused = NicProcess::new(with_wire(config(roots[0]), "af-xdp:lo,netns=no-such-one")).err();
            let refused = refused.map(|error| reasons(&error)).unwrap_or_default();
            assert!(refused.contains("no-such-one") && refused.contains("ip netns"), "{refused}");
            return;
        }
    };
    let [a, b] = &made.0;
    // One with, one without AF_XDP: each takes what the other sends.
    let near = Running::start(with_wire(config(roots[0]), &format!("af-xdp:wire,netns={a},type=0x88b5")));
    let far = Running::start(with_wire(config(roots[1]), &format!("af-packet:wire,netns={b}")));
    let mut here = Station::connect(roots[0], 1, false, 1024);
    let mut there = Station::connect(roots[1], 2, false, 1024);
    for number in 0..200u16 {
        let bytes = 60 + usize::from(number) * 7;
        let question = here.frame(2, number, bytes);
        here.send(&question);
        assert_eq!(there.receive(), question);
        let answer = there.frame(1, number, bytes + 1);
        there.send(&answer);
        assert_eq!(here.receive(), answer);
    }
    for (nic, name) in [(near.stop(), "af-xdp wire queue 0 (copy)"), (far.stop(), "af-packet wire")] {
        let uplink = &nic.uplinks[0];
        assert_eq!((uplink.name.as_str(), &uplink.failure), (name, &None));
        assert_eq!((uplink.frames_in, uplink.frames_out), (200, 200), "each frame once, each way");
    }
}
