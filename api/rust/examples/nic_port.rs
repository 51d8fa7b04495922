//! Frames to a NIC and back: `cargo run -p beeline-ipc --example nic_port`.
//!
//! The NIC is a process: this program starts itself again as one. Elsewhere `beeline nic` is it.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use beeline::{Domain, PortOptions, Result};
use beeline_nic_process::{NicProcess, NicProcessConfig};

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("nic") {
        let config = NicProcessConfig { service: "example".into(), ..Default::default() };
        let mut nic = NicProcess::new(config).expect("no other NIC of this name runs");
        println!("ready");
        nic.run(&AtomicBool::new(false)).expect("it is bound to no core");
    }
    let program = std::env::current_exe().expect("a running program has a path");
    let mut nic = Command::new(program).arg("nic").stdout(Stdio::piped()).spawn().expect("it starts");
    nic.stdout.take().map(|mut said| said.read(&mut [0; 6]));
    let outcome = exchange();
    nic.kill().and_then(|()| nic.wait()).expect("it runs until then");
    outcome.map(|()| println!("1000 frames through the NIC and back, unchanged"))
}

fn exchange() -> Result<()> {
    // The NIC gives this port its own frames back; without `loop_back` its other ports get them.
    let options = PortOptions::new().loop_back(true);
    let mut port = Domain::open("default")?.port_with("example", options)?;
    let (mut sent, mut received) = ([0xff; 64], [0; 64]);
    sent[6..12].copy_from_slice(&port.mac());
    for number in 0..1000u16 {
        sent[14..16].copy_from_slice(&number.to_be_bytes());
        port.send(&sent)?;
        assert_eq!((port.recv()?.copy_out(&mut received), received), (64, sent));
    }
    Ok(())
}
