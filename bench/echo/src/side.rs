//! Arguments of one side of a comparison: the rival, server or client, the core.

use std::io;
use std::thread;
use std::time::Duration;

use beeline_mmio::cpu;
use rustix::event::{PollFd, PollFlags, poll};

use crate::Failure;

/// How long a side may take to end in good order when its standard input has ended.
const GRACE: Duration = Duration::from_secs(2);

/// Which side a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// Answers.
    Server,
    /// Asks, and holds the clock.
    Client {
        /// Address that the server printed behind `ready`.
        address: String,
    },
}

/// Arguments that one side is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideArgs {
    pub rival: String,
    pub side: Side,
    /// Core to run on.
    pub core: usize,
}

impl SideArgs {
    /// From the arguments `RIVAL server CORE` or `RIVAL client CORE ADDRESS`.
    ///
    /// # Errors
    /// They are not that.
    pub fn from_args(args: &[String]) -> Result<Self, Failure> {
        let usage = || -> Failure { "usage: RIVAL server CORE | RIVAL client CORE ADDRESS".into() };
        let (rival, side, core) = match args {
            [rival, side, core] if side == "server" => (rival, Side::Server, core),
            [rival, side, core, address] if side == "client" => {
                (rival, Side::Client { address: address.clone() }, core)
            }
            _ => return Err(usage()),
        };
        let core = core.parse().map_err(|_| usage())?;
        Ok(SideArgs { rival: rival.clone(), side, core })
    }

    /// Pins the calling thread, and sees to it that this process ends with its standard input. For the start of
    /// `main`: threads made later inherit the core.
    ///
    /// # Errors
    /// The core cannot be had.
    pub fn start(&self) -> Result<(), Failure> {
        cpu::pin_current_thread(self.core)?;
        end_with_stdin()?;
        Ok(())
    }
}

/// Starts a thread that ends this process some time after its standard input has ended, so that one that still spins
/// ends too.
///
/// # Errors
/// The thread cannot be started.
pub fn end_with_stdin() -> io::Result<()> {
    thread::Builder::new().name("stdin".to_owned()).spawn(|| {
        // A hang-up is reported without being asked for, and takes nothing from what is to be read. An error ends the
        // wait too: this process could not be told to end any more.
        let _ = poll(&mut [PollFd::new(&io::stdin(), PollFlags::empty())], None);
        thread::sleep(GRACE);
        std::process::exit(3);
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<SideArgs> {
        SideArgs::from_args(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).ok()
    }

    #[test]
    fn arguments_give_rival_side_and_core() {
        let server = SideArgs { rival: "x".to_owned(), side: Side::Server, core: 1 };
        assert_eq!(parsed("x server 1"), Some(server));
        let client = Side::Client { address: "here".to_owned() };
        assert_eq!(
            parsed("y client 0 here"),
            Some(SideArgs { rival: "y".to_owned(), side: client, core: 0 })
        );
        for wrong in ["", "x server", "x server one", "x server 1 here", "x client 0", "x judge 1"] {
            assert_eq!(parsed(wrong), None, "{wrong:?}");
        }
    }
}
