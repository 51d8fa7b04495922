//! MPTCP over two wires between two network namespaces: unmodified programs by `mptcpize run`, on the kernel's defaults.

use crate::BenchError;
use crate::programs::Job;
use crate::veth::{Veth, address, interface};

/// The wire on which the connection is made, and which goes down; and the other one.
const FIRST: u8 = 0;
const SECOND: u8 = 1;
const WIRES: u8 = 2;
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// Two wires, and MPTCP that uses both.
pub(super) struct Wires(Veth);

/// Whether this machine can have them; or why not.
pub(super) fn is_there() -> Result<Result<(), String>, BenchError> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&folders).any(|folder| folder.join("mptcpize").exists()) {
        return Ok(Err("`apt-get install mptcpize`".to_owned()));
    }
    Ok(Wires::new()?.map(drop))
}

impl Wires {
    pub(super) fn new() -> Result<Result<Self, String>, BenchError> {
        let veth = match Veth::of_wires(WIRES)? {
            Ok(veth) => veth,
            Err(why) => return Ok(Err(why)),
        };
        let second = interface(SECOND);
        // The sender opens a second subflow by its other address, and hears of the receiver's.
        let steps = [
            (SENDER, "mptcp limits set subflow 2 add_addr_accepted 2".to_owned()),
            (RECEIVER, "mptcp limits set subflow 2 add_addr_accepted 2".to_owned()),
            (SENDER, format!("mptcp endpoint add {} dev {second} subflow", address(SECOND, SENDER))),
            (RECEIVER, format!("mptcp endpoint add {} dev {second} signal", address(SECOND, RECEIVER))),
        ];
        let laid = steps.iter().try_for_each(|(end, words)| veth.ip(*end, words));
        Ok(laid.map(|()| Wires(veth)))
    }

    /// A program at an end, whose sockets of TCP are of MPTCP.
    pub(super) fn job(&self, end: usize, program: &str) -> Job {
        let enter = self.0.enter(end);
        let job = enter[1..].iter().fold(Job::new(&enter[0]), |job, word| job.arg(word));
        job.words("mptcpize run").arg(program)
    }

    pub(super) fn receiver_s_address(&self) -> String {
        address(FIRST, RECEIVER)
    }

    /// Sets the first wire up or down.
    pub(super) fn set(&self, to: &str) -> Result<(), BenchError> {
        let what = format!("link set {} {to}", interface(FIRST));
        self.0.ip(SENDER, &what).map_err(failed)
    }

    /// Fails where not each connection was one of MPTCP with a second subflow.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let joined = self.0.count(SENDER, "MPTcpExt", "MPJoinSynAckRx").unwrap_or(0);
        let wanted = super::script::CONNECTIONS as u64;
        if joined < wanted {
            Err(failed(format!("{joined} of {wanted} connections had a second subflow")))
        } else {
            Ok(())
        }
    }
}

fn failed(what: String) -> BenchError {
    BenchError::Rival { rival: "MPTCP".to_owned(), what }
}
