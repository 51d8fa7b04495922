//! `beeline ip up`: two of them in network namespaces of their own, one of which is killed; and what a user is told who has made a mistake.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

const BEELINE: &str = env!("CARGO_BIN_EXE_beeline");

struct Ground(tempfile::TempDir);

impl Ground {
    /// None, with a word, where the kernel lets this user make no namespaces.
    fn make() -> Option<Self> {
        let ground = Ground(tempfile::tempdir_in("/dev/shm").unwrap());
        let made = [4, 8].iter().all(|node| ip(&["netns", "add", &ground.namespace(*node)]));
        if !made || !PathBuf::from("/dev/net/tun").exists() {
            println!("no namespaces or no /dev/net/tun here, so that nothing is carried");
            return None;
        }
        Some(ground)
    }

    fn namespace(&self, node: u16) -> String {
        format!("beecli{}n{node}", std::process::id())
    }

    fn memory(&self) -> String {
        self.0.path().join("memory").to_str().unwrap().to_owned()
    }

    /// Node `node`, which waits for the other one.
    fn up(&self, node: u16) -> Node {
        let (memory, peer) = (self.memory(), (12 - node).to_string());
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &self.namespace(node),
            BEELINE,
            "ip",
            "up",
            "--json",
            "--peers",
            &peer,
        ]);
        command.args(["--memory", &memory, "--memory-bytes", "64MiB"]);
        let mut child = command.env("BEELINE_NODE", node.to_string()).stdout(Stdio::piped()).spawn().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        let mut node = Node { child, says };
        assert_eq!(node.says()["what"], "up");
        node
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for node in [4, 8] {
            ip(&["netns", "del", &self.namespace(node)]);
        }
    }
}

struct Node {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Node {
    fn says(&mut self) -> Json {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// The next thing that it says is of this kind, and of the other node.
    fn hears(&mut self, what: &str) -> Json {
        let said = self.says();
        assert_eq!(said["what"], what, "{said}");
        said
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn node_that_is_killed_is_missed_and_met_again_and_a_signal_ends_the_other_with_its_counts() {
    let Some(ground) = Ground::make() else { return };
    let (mut here, mut there) = (ground.up(4), ground.up(8));
    assert_eq!(here.hears("came")["address"], "10.77.0.8");
    there.hears("came");
    there.signal(Signal::KILL);
    drop(there);
    here.hears("absent");
    let mut there = ground.up(8);
    here.hears("came");
    there.hears("came");
    // A namespace without the device is reached by nobody else: bash has a way to send a datagram.
    let sent = Command::new("ip")
        .args(["netns", "exec", &ground.namespace(4), "bash", "-c", "echo hello > /dev/udp/10.77.0.8/7"])
        .status();
    assert!(sent.unwrap().success());
    for node in [&mut here, &mut there] {
        node.signal(Signal::TERM);
    }
    let told: Vec<Json> = [&mut here, &mut there].map(carried).into();
    assert!(
        told[0]["sent_packets"].as_u64() >= Some(1) && told[1]["received_packets"].as_u64() >= Some(1),
        "{told:?}"
    );
    assert!(here.child.wait().unwrap().success() && there.child.wait().unwrap().success());
}

/// What it says in the end of the other node, which may have gone before.
fn carried(node: &mut Node) -> Json {
    loop {
        let said = node.says();
        if said["what"] == "carried" {
            return said;
        }
        assert_eq!(said["what"], "absent", "{said}");
    }
}

fn refused(arguments: &[&str]) -> String {
    let output: Output = Command::new(BEELINE)
        .args(["ip", "up"])
        .args(arguments)
        .env("BEELINE_NODE", "4")
        .env_remove("BEELINE_CONFIG")
        .output()
        .unwrap();
    assert_eq!((output.status.success(), output.stdout.len()), (false, 0));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn mistakes_are_said_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none").to_str().unwrap().to_owned();
    for (arguments, words) in [
        (&["--peers", "4"][..], &["nobody", "--peers", "BEELINE_NODE"][..]),
        (&[], &["nobody", "--peers"]),
        (&["--peers", "0"], &["1..=251"]),
        (&["--peers", "8", "--net", "10.77.0.0/25"], &["10.77.0.0/25", "at most 24 bits"]),
        (&["--peers", "8", "--net", "10.77.0.4/16"], &["10.77.0.0/16"]),
        (&["--peers", "8", "--memory", &missing], &["none", "--memory-bytes"]),
        (&["--peers", "8", "--memory-bytes", "1MiB"], &["--memory"]),
        (&["--peers", "8", "--mtu", "100"], &["1280"]),
    ] {
        let said = refused(arguments);
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
    }
}
