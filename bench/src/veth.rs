//! Wires between two network namespaces: veth pairs, and an IPv4 address at either end of each.
//!
//! The namespaces have no names: each lives as long as a process that waits in it, and the pairs with them, so that a
//! run that is killed leaves nothing. Making them takes root; without it, or without `ip`, `unshare` and `nsenter`, there
//! is no wire and a reason why. Not here: what goes over it.

use std::process::{Command, Stdio};

use crate::BenchError;
use beeline_session::Role;

/// The interface of either end of the first wire, in its namespace.
pub const INTERFACE: &str = "wire0";
/// Addresses of the two ends of the first wire. Nobody else is in their namespaces, so any will do.
pub const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

/// Runs in a namespace until its standard input ends.
const STAY: [&str; 5] = ["unshare", "--net", "sh", "-c", "echo here; read end"];

/// Both ends of one wire or more. Dropping it takes them away.
#[derive(Debug)]
pub struct Veth {
    ends: [Role; 2],
}

impl Veth {
    /// A fresh wire, up at both ends; or why there can be none.
    ///
    /// # Errors
    /// None so far as the machine is asked for what it may refuse: [`BenchError::Role`] when a process that was started
    /// cannot be talked to.
    pub fn new() -> Result<Result<Self, String>, BenchError> {
        Veth::of_wires(1)
    }

    /// As [`Veth::new`], with so many wires beside each other, each a network of its own ([`interface`], [`address`]).
    ///
    /// # Errors
    /// As [`Veth::new`].
    pub fn of_wires(wires: u8) -> Result<Result<Self, String>, BenchError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Err("needs root, for network namespaces".to_owned()));
        }
        let mut ends = Vec::new();
        for _ in ADDRESSES {
            let mut command = Command::new(STAY[0]);
            let Ok(mut end) = Role::start(command.args(&STAY[1..])) else {
                return Ok(Err("`apt-get install util-linux`, for unshare".to_owned()));
            };
            if end.line().as_deref() != Some("here") {
                return Ok(Err("this system lets nobody make a network namespace".to_owned()));
            }
            ends.push(end);
        }
        let ends: [Role; 2] = ends.try_into().expect("there is an end for each address");
        let veth = Veth { ends };
        Ok((0..wires).try_for_each(|wire| veth.connect(wire)).map(|()| veth))
    }

    /// What a command line begins with that is to run at this end.
    pub fn enter(&self, end: usize) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.ends[end].pid())]
    }

    /// Has `ip` do something at an end.
    ///
    /// # Errors
    /// It failed: the command, and what it said on standard error.
    pub fn ip(&self, end: usize, words: &str) -> Result<(), String> {
        let enter = self.enter(end);
        run(Command::new(&enter[0]).args(&enter[1..]).arg("ip").args(words.split_whitespace()))
    }

    /// A count of the kernel's for an end, of `/proc/net/netstat`; `None` where it has none of that name.
    pub fn count(&self, end: usize, table: &str, name: &str) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/net/netstat", self.ends[end].pid())).ok()?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(table)?.strip_prefix(": "));
        let (names, counts) = (lines.next()?, lines.next()?);
        let found = names.split(' ').zip(counts.split(' ')).find(|(found, _)| *found == name);
        found.and_then(|(_, count)| count.parse().ok())
    }

    fn connect(&self, wire: u8) -> Result<(), String> {
        let interface = &*interface(wire);
        let [first, second] = [0, 1].map(|end: usize| self.ends[end].pid().to_string());
        let peer = ["peer", "name", interface, "netns", &second];
        run(Command::new("ip").args(["link", "add", interface, "netns", &first, "type", "veth"]).args(peer))?;
        for end in 0..ADDRESSES.len() {
            self.ip(end, &format!("address add {}/24 dev {interface}", address(wire, end)))?;
            self.ip(end, &format!("link set {interface} up"))?;
        }
        Ok(())
    }
}

/// The interface of either end of a wire.
pub fn interface(wire: u8) -> String {
    format!("wire{wire}")
}

/// Of end 0 or 1; each wire is a network of 256 addresses.
pub fn address(wire: u8, end: usize) -> String {
    format!("10.0.{wire}.{}", end + 1)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|_| "`apt-get install iproute2`, for ip".to_owned())?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}", words.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_see_each_other_and_go_with_the_wire() -> Result<(), BenchError> {
        let veth = match Veth::new()? {
            Ok(veth) => veth,
            Err(why) => {
                println!("skipped: {why}");
                return Ok(());
            }
        };
        let namespaces: Vec<_> = veth.ends.iter().map(|end| format!("/proc/{}/ns/net", end.pid())).collect();
        let own = std::fs::read_link("/proc/self/ns/net")?;
        for end in 0..2 {
            let enter = veth.enter(end);
            let mut command = Command::new(&enter[0]);
            command.args(&enter[1..]).args(["ip", "-brief", "-4", "address", "show", INTERFACE]);
            let shown = String::from_utf8_lossy(&command.output()?.stdout).into_owned();
            assert!(shown.contains("UP") && shown.contains(ADDRESSES[end]), "{shown}");
            assert_ne!(std::fs::read_link(&namespaces[end])?, own);
        }
        assert_eq!(
            (interface(0).as_str(), [0, 1].map(|end| address(0, end))),
            (INTERFACE, ADDRESSES.map(str::to_owned))
        );
        assert!(
            veth.count(0, "TcpExt", "SyncookiesSent").is_some() && veth.count(0, "TcpExt", "none").is_none()
        );
        drop(veth);
        assert!(namespaces.iter().all(|namespace| std::fs::read_link(namespace).is_err()));
        Ok(())
    }
}
