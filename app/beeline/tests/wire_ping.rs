//! `beeline ping` between two network namespaces: two processes, a veth pair, AF_XDP and AF_PACKET, fair and foul.
//!
//! Needs root, as the sockets do; without it, or without `ip`, the tests say so and do nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use beeline_bench::veth::{INTERFACE, Veth};

/// What both ends do to the frames that they send over an impaired network.
const IMPAIRED: [&str; 8] = ["--loss", "5", "--duplicate", "2", "--reorder", "5", "--seed", "7"];

/// A wire, or `None` with the reason printed.
fn wire() -> Option<Veth> {
    match Veth::new().unwrap() {
        Ok(veth) => Some(veth),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

/// `beeline ping ...` at one end of the wire.
fn ping(veth: &Veth, end: usize, args: &[&str]) -> Command {
    let enter = veth.enter(end);
    let mut command = Command::new(&enter[0]);
    command.args(&enter[1..]).arg(env!("CARGO_BIN_EXE_beeline")).arg("ping").args(args);
    command
}

/// A server that ends with its standard input, and with this.
struct Server {
    process: Child,
    station: String,
}

impl Server {
    /// `None`, with the reason printed, on a machine that has no such socket.
    fn start(veth: &Veth, kind: &str, more: &[&str]) -> Option<Server> {
        let uplink = format!("{kind}:{INTERFACE}");
        let args = [&["--server", "--until-stdin-closes", "--uplink", &uplink], more].concat();
        let mut process = ping(veth, 1, &args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let output = process.wait_with_output().unwrap();
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(words.contains("try:") || words.contains("needs") || words.contains("AF_XDP"), "{words}");
            println!("skipped: {words}");
            return None;
        }
        assert!(line.contains("answers over"), "{line}");
        Some(Server { process, station: line.split(' ').next().unwrap().to_owned() })
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Ends it as people do; gives whether it ended well.
    fn end(mut self) -> bool {
        drop(self.process.stdin.take());
        self.process.wait().unwrap().success()
    }
}

/// The client's JSON.
fn ask(veth: &Veth, server: &Server, kind: &str, more: &[&str]) -> serde_json::Value {
    let uplink = format!("{kind}:{INTERFACE}");
    let args = [&["--client", server.station.as_str(), "--uplink", &uplink, "--json"], more].concat();
    let Output { status, stdout, stderr } = ping(veth, 0, &args).output().unwrap();
    let words = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{args:?}: {words}");
    serde_json::from_slice(&stdout).unwrap()
}

fn check(results: &serde_json::Value, kind: &str, sizes: &[u64], count: u64) {
    let rows = results["round_trips"].as_array().unwrap();
    let found: Vec<_> = rows.iter().map(|row| row["payload_bytes"].as_u64().unwrap()).collect();
    assert_eq!(found, sizes);
    for row in rows {
        assert!(row["uplink"].as_str().unwrap().starts_with(kind), "{row}");
        assert_eq!(row["count"], count);
        assert!(row["p50_ns"].as_u64().unwrap() > 0 && row["frames_sent"].as_u64().unwrap() >= count);
    }
    let bursts: Vec<_> =
        results["transmit"].as_array().unwrap().iter().map(|row| &row["frames_in_a_row"]).collect();
    assert_eq!(bursts, [1, 2, 10]);
}

#[test]
fn every_kind_of_socket_asks_and_answers() {
    let Some(veth) = wire() else { return };
    for kind in ["af-packet", "af-xdp"] {
        let Some(server) = Server::start(&veth, kind, &[]) else { continue };
        let results = ask(&veth, &server, kind, &["--count", "2000", "--size", "1,10,100,1458"]);
        check(&results, kind, &[1, 10, 100, 1458], 2000);
        assert_eq!(results["round_trips"][1]["published_us"], 26.0);
        // The next client comes from the same station, and the server is the same.
        check(&ask(&veth, &server, kind, &["--count", "100"]), kind, &[10, 100], 100);
        assert!(server.end());
    }
}

#[test]
fn what_is_lost_doubled_and_overtaken_is_answered_all_the_same() {
    let Some(veth) = wire() else { return };
    for kind in ["af-packet", "af-xdp"] {
        let Some(server) = Server::start(&veth, kind, &IMPAIRED) else { continue };
        let results = ask(&veth, &server, kind, &[&IMPAIRED[..], &["--count", "2000"]].concat());
        check(&results, kind, &[10, 100], 2000);
        let repeats: u64 = results["round_trips"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["repeats"].as_u64().unwrap())
            .sum();
        // Some 10 % of 4000 questions, and of their answers, did not come the first time.
        assert!((100..2000).contains(&repeats), "{repeats} repeats");
        assert!(server.end());
    }
}

#[test]
fn a_wire_that_is_refused_is_n_a_and_a_server_that_is_gone_is_said() {
    let Some(veth) = wire() else { return };
    let Some(server) = Server::start(&veth, "af-packet", &[]) else { return };
    let zero_copy = format!("af-xdp:{INTERFACE},copy=zero-copy");
    let more = ["--uplink", &zero_copy, "--count", "100"];
    let results = ask(&veth, &server, "af-packet", &more);
    check(&results, "af-packet", &[10, 100], 100);
    let missing = results["not_available"].as_array().unwrap();
    assert_eq!(missing.len(), 1, "a veth has no zero-copy");
    let station = server.station.clone();
    server.kill();
    let uplink = format!("af-packet:{INTERFACE}");
    let output = ping(&veth, 0, &["--client", &station, "--uplink", &uplink]).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("silent for 3s"), "{words}");
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_remedy() {
    let refuse = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_beeline")).arg("ping").args(args).output().unwrap();
        assert!(!output.status.success(), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let client = ["--client", "02:00:00:00:00:01", "--uplink", "af-packet:nowhere0"];
    assert!(refuse(&client).contains("nowhere0"));
    assert!(refuse(&[&client[..], &["--size", "1459"]].concat()).contains("give --size up to 1458"));
    assert!(
        refuse(&["--server", "--uplink", "af-packet:a", "--uplink", "af-packet:b"]).contains("one up-link")
    );
}
