//! Correctness over three processes: a sender, the NIC, a receiver. Nothing is timed: three spinning processes on two
//! cores would measure the scheduler.

use std::io::BufReader;
use std::process::{Child, Command, Stdio};

use beeline_spec::Interface;

use super::results::CheckRow;
use crate::failure::Failure;
use crate::private_nic::{Options, PrivateNic};
use crate::worker::read_line;

/// Sends `frames` frames of mixed sizes from one process through another to a third.
pub fn run(interface: Interface, frames: u64, seed: u64) -> Result<CheckRow, Failure> {
    let nic = PrivateNic::start(&Options { lossless: true, ..Options::default() })?;
    let mut receiver = Worker::start(&nic, interface, frames, seed, None)?;
    let mac = receiver.line()?;
    let mut sender = Worker::start(&nic, interface, frames, seed, Some(&mac))?;
    sender.finish("the sender")?;
    let bytes = receiver.line()?;
    receiver.finish("the receiver")?;
    nic.stop()?;
    let bytes =
        bytes.parse().map_err(|_| Failure::new(format!("the receiver said {bytes:?} instead of a count")))?;
    Ok(CheckRow { interface, frames, bytes, verdict: "complete, in order, unchanged".to_owned() })
}

struct Worker {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start(
        nic: &PrivateNic,
        interface: Interface,
        frames: u64,
        seed: u64,
        to: Option<&str>,
    ) -> Result<Self, Failure> {
        let failed = |e| Failure::new("cannot start a worker process").because(e);
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args([
            "worker",
            "--domain",
            nic.domain(),
            "--nic",
            nic.name(),
            "--interface",
            interface.name(),
        ]);
        command.args(["--frames", &frames.to_string(), "--seed", &seed.to_string()]);
        if let Some(to) = to {
            command.args(["--to", to]);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let output = BufReader::new(child.stdout.take().expect("the child was spawned with a pipe"));
        Ok(Worker { child, output })
    }

    fn line(&mut self) -> Result<String, Failure> {
        read_line(&mut self.output)
            .ok_or_else(|| Failure::new("a worker process ended early; see its message above"))
    }

    fn finish(&mut self, who: &str) -> Result<(), Failure> {
        let status =
            self.child.wait().map_err(|e| Failure::new(format!("cannot wait for {who}")).because(e))?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::new(format!("{who} failed; see its message above")))
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process may have ended already; both calls are then harmless errors.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
