//! Frames to a NIC and back: `cargo run -p beeline --example nic_port`.
//!
//! The NIC is a process: this program starts itself again as one. Elsewhere `beeline nic` is it.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use beeline::{Domain, PortOptions, Result};
use beeline_domain::DomainConfig;
use beeline_nic_process::{NicProcess, NicProcessConfig};

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("nic") {
        let config = NicProcessConfig { domain: DomainConfig::named("example-nic"), ..Default::default() };
        let mut nic = NicProcess::new(config).expect("no other NIC of this name runs");
        println!("ready");
        nic.run(&AtomicBool::new(false)).expect("it is bound to no core");
    }
    let program = std::env::current_exe().expect("a running program has a path");
    let nic = Command::new(program).arg("nic").stdout(Stdio::piped()).spawn();
    let mut nic = nic.expect("it can be started again");
    nic.stdout.take().expect("it is piped").read_exact(&mut [0; 6]).expect("the NIC says that it is ready");
    // The NIC gives this port its own frames back; without `loop_back` other ports of the NIC get them.
    let options = PortOptions { loop_back: true, ..PortOptions::default() };
    let mut port = Domain::open("example-nic")?.port_with("nic", options)?;
    let (mut sent, mut received) = ([0xff; 64], [0; 64]);
    sent[6..12].copy_from_slice(&port.mac());
    for number in 0..1000u16 {
        sent[14..16].copy_from_slice(&number.to_be_bytes());
        port.send(&sent)?;
        let length = port.recv()?.copy_out(&mut received);
        assert_eq!((length, received), (64, sent));
    }
    println!("1000 frames through the NIC and back, unchanged");
    nic.kill().and_then(|()| nic.wait()).expect("it runs until then");
    Ok(())
}
