//! Correctness over three processes: a sender, the NIC, a receiver. Nothing is timed: three spinning processes on two
//! cores would measure the scheduler.

use beeline_mmio::StoreKernel;
use beeline_session::{NicOptions, PrivateNic, Role};
use beeline_spec::Interface;

use super::results::CheckRow;
use crate::failure::{Failure, own_program};
use crate::options::RootArgs;

/// What the sender and the receiver are both told.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// Interface of the sender.
    pub interface: Interface,
    /// Store kernel of the sender; without it, the best.
    pub kernel: Option<StoreKernel>,
    /// Frames of mixed sizes.
    pub frames: u64,
    /// Seed of sizes and contents.
    pub seed: u64,
    /// Where the domain of the NIC lies.
    pub root: &'a RootArgs,
}

/// Sends frames from one process through another to a third.
pub fn run(check: Check<'_>) -> Result<CheckRow, Failure> {
    let root = check.root.root.clone();
    let options = NicOptions { lossless: true, root, ..NicOptions::default() };
    let nic = PrivateNic::start(&own_program()?, &options)?;
    let mut receiver = Worker::start(&nic, check, None)?;
    let mac = receiver.line()?;
    let mut sender = Worker::start(&nic, check, Some(&mac))?;
    sender.finish("the sender")?;
    let bytes = receiver.line()?;
    receiver.finish("the receiver")?;
    nic.stop()?;
    let bytes =
        bytes.parse().map_err(|_| Failure::new(format!("the receiver said {bytes:?} instead of a count")))?;
    let Check { interface, frames, .. } = check;
    Ok(CheckRow { interface, frames, bytes, result: "complete, in order, unchanged".to_owned() })
}

/// A sender or a receiver.
struct Worker(Role);

impl Worker {
    fn start(nic: &PrivateNic, check: Check<'_>, to: Option<&str>) -> Result<Self, Failure> {
        let Check { interface, kernel, frames, seed, root } = check;
        let mut command = own_program()?.command("worker");
        command.args([
            "--domain",
            nic.domain().name.as_str(),
            "--nic",
            nic.name(),
            "--interface",
            interface.name(),
        ]);
        command.args(["--frames", &frames.to_string(), "--seed", &seed.to_string()]);
        if let Some(kernel) = kernel {
            command.args(["--kernel", kernel.name()]);
        }
        if let Some(root) = &root.root {
            command.arg("--root").arg(root);
        }
        if let Some(to) = to {
            command.args(["--to", to]);
        }
        let role = Role::start(&mut command);
        Ok(Worker(role.map_err(|e| Failure::new("cannot start a worker process").because(e))?))
    }

    fn line(&mut self) -> Result<String, Failure> {
        self.0.line().ok_or_else(|| Failure::new("a worker process ended early; see its message above"))
    }

    fn finish(&mut self, who: &str) -> Result<(), Failure> {
        let status = self.0.end().map_err(|e| Failure::new(format!("cannot wait for {who}")).because(e))?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::new(format!("{who} failed; see its message above")))
        }
    }
}
