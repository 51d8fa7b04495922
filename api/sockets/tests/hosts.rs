//! Programs in two network namespaces, which stand for two hosts of one machine: a wire between them is all that their kernels have in common.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod ground;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use beeline_socket_engine::{Switched, switch};
use beeline_socket_rules::Windows;
use ground::{Ground, Run, library, succeed};

/// Each with the address that its host has.
const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
const NETWORK: &str = "10.77.0.0/24";
/// Nothing takes so long that is woken.
const SLEEPS_ON_MS: u64 = 5000;

/// Two hosts with a wire between them.
struct Hosts {
    _ground: Ground,
    folder: tempfile::TempDir,
    program: PathBuf,
    /// What starts a program under a filter of system calls.
    refusing: PathBuf,
    /// Processes that hold the namespaces, and the numbers of those that are in them.
    holders: [Child; 2],
    inside: [String; 2],
    are_containers: bool,
}

impl Hosts {
    /// `None`, and a word about it, where this process may not make them.
    fn new() -> Option<Self> {
        Self::with(&["--net"])
    }

    /// Each with numbers of processes and mounts of its own, too.
    fn containers() -> Option<Self> {
        Self::with(&["--net", "--mount-proc", "--ipc", "--uts", "--pid", "--fork", "--kill-child"])
    }

    fn with(unshared: &[&str]) -> Option<Self> {
        let may = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
        if !may.is_ok_and(|status| status.success()) {
            eprintln!("skipped: only root can make network namespaces");
            return None;
        }
        let (ground, folder) = (Ground::new(), tempfile::tempdir().unwrap());
        let (program, refusing) = (ground.compile("hosts.c", &[]), ground.compile("refuse.c", &[]));
        let own = namespace_of("self");
        let holders = [(); 2].map(|()| {
            let holder = Command::new("unshare").args(unshared).args(["sleep", "600"]).spawn().unwrap();
            while namespace_of(&holder.id().to_string()) == own {
                std::thread::sleep(Duration::from_millis(1));
            }
            holder
        });
        let are_containers = unshared.contains(&"--fork");
        let inside = holders.each_ref().map(|holder| match are_containers {
            true => only_child_of(holder.id()),
            false => holder.id().to_string(),
        });
        let hosts = Hosts { _ground: ground, folder, program, refusing, holders, inside, are_containers };
        let [one, other] = &hosts.inside;
        let link =
            ["link", "add", "wire", "netns", one, "type", "veth", "peer", "name", "wire", "netns", other];
        succeed(Command::new("ip").args(link));
        for (host, address) in ADDRESSES.iter().enumerate() {
            let with_prefix = format!("{address}/24");
            succeed(hosts.on(host, "ip").args(["address", "add", &with_prefix, "dev", "wire"]));
            succeed(hosts.on(host, "ip").args(["link", "set", "wire", "up"]));
            succeed(hosts.on(host, "ip").args(["link", "set", "lo", "up"]));
        }
        Some(hosts)
    }

    fn on(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.inside[host], "--net"]);
        command.args(if self.are_containers { &["--mount", "--ipc", "--uts", "--pid"][..] } else { &[] });
        command.arg(program);
        command
    }

    /// The program on one of the hosts, with the library and these rules.
    fn program(&self, host: usize, rules: &[&str], arguments: &[&str]) -> Command {
        let is_filtered = rules.iter().any(|rule| rule.starts_with("UNDER_FILTER"));
        let mut command = match is_filtered {
            true => {
                let mut command = self.on(host, self.refusing.to_str().unwrap());
                command.arg("env");
                command
            }
            false => self.on(host, "env"),
        };
        command.arg(format!("LD_PRELOAD={}", library().display()));
        command.arg(format!("BEELINE_ROOT={}", self.folder.path().display()));
        command.arg("BEELINE_SOCKETS_BEGIN_AFTER_MESSAGES=0");
        command.args(rules.iter().map(|rule| format!("BEELINE_SOCKETS_{rule}")));
        command.arg(&self.program).args(arguments).stdout(Stdio::piped());
        command
    }

    /// A server on the second host.
    fn server(&self, rules: &[&str], how: &str) -> Server {
        let mut process = self.program(1, rules, &["serve", ADDRESSES[1], how]).spawn().unwrap();
        let mut says = BufReader::new(process.stdout.take().unwrap());
        let mut port = String::new();
        says.read_line(&mut port).unwrap();
        Server { process, says, port: port.trim_start_matches("port ").trim().to_owned() }
    }

    /// What a client on the first host says that has sent so many messages over each of so many connections.
    fn ask(&self, rules: &[&str], server: &Server, connections: u32, messages: u32, pause_us: u32) -> String {
        let numbers = [connections, messages, pause_us].map(|number| number.to_string());
        let mut arguments = vec!["ask", ADDRESSES[1], &server.port];
        arguments.extend(numbers.iter().map(String::as_str));
        let client = Run::of(&mut self.program(0, rules, &arguments));
        assert!(client.ended_well(), "{client:?}");
        client.out
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

struct Server {
    process: Child,
    says: BufReader<std::process::ChildStdout>,
    port: String,
}

impl Server {
    /// What it says at its end.
    fn end(mut self) -> String {
        let mut all = String::new();
        self.says.read_to_string(&mut all).unwrap();
        assert!(self.process.wait().unwrap().success(), "{all}");
        all
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn namespace_of(process: &str) -> PathBuf {
    std::fs::read_link(format!("/proc/{process}/ns/net")).unwrap()
}

fn sorted(mut pids: [u32; 2]) -> Vec<u32> {
    pids.sort_unstable();
    pids.to_vec()
}

fn rule() -> String {
    format!("HOSTS={NETWORK}")
}

/// Of a process that starts one and no other.
fn only_child_of(process: u32) -> String {
    loop {
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
        if let Some(child) = children.split_whitespace().next() {
            return child.to_owned();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The longest time that an answer took.
fn longest_ms(said: &str) -> u64 {
    let words: Vec<&str> = said.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "longest").unwrap();
    words[at + 1].parse().unwrap()
}

#[test]
fn connections_between_hosts_that_both_ends_name_are_carried_and_sleepers_are_woken() {
    let Some(hosts) = Hosts::new() else { return };
    let rule = rule();
    for (how, spin, connections) in [("poll", "SPIN=0", 40), ("block", "SPIN=0", 1), ("poll", "SPIN=50us", 1)]
    {
        let rules = [&*rule, spin];
        let server = hosts.server(&rules, how);
        let said = hosts.ask(&rules, &server, connections, 150, 2000);
        assert!(said.contains(&format!("carried {connections} of {connections}")), "{how} {spin}: {said}");
        assert!(longest_ms(&said) < SLEEPS_ON_MS, "{how} {spin}: {said}");
        assert_eq!(server.end(), format!("end behind {}\n", connections * 150));
    }
}

#[test]
fn connection_is_the_kernels_where_one_end_does_not_name_hosts_or_others() {
    let Some(hosts) = Hosts::new() else { return };
    let own = rule();
    let others = "HOSTS=10.78.0.0/16";
    for (server_s, client_s) in [(&*own, "SPIN=50us"), ("SPIN=50us", &*own), (&*own, others)] {
        let server = hosts.server(&[server_s], "poll");
        let said = hosts.ask(&[client_s], &server, 2, 100, 1000);
        assert!(said.contains("carried 0 of 2"), "{server_s} {client_s}: {said}");
        assert_eq!(server.end(), "end behind 200\n");
    }
}

#[test]
fn what_goes_on_by_windows_needs_no_wire_until_it_is_back() {
    let Some(hosts) = Hosts::new() else { return };
    let rule = rule();
    let server = hosts.server(&[&rule], "poll");
    let arguments = ["ask", ADDRESSES[1], &server.port, "4", "400", "5000"];
    let client = hosts.program(0, &[&rule], &arguments).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    succeed(hosts.on(0, "ip").args(["link", "set", "wire", "down"]));
    std::thread::sleep(Duration::from_millis(500));
    succeed(hosts.on(0, "ip").args(["link", "set", "wire", "up"]));
    let client = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success() && said.contains("carried 4 of 4"), "{said}");
    assert_eq!(server.end(), "end behind 1600\n");
}

#[test]
fn orders_reach_the_processes_of_every_host() {
    let Some(hosts) = Hosts::new() else { return };
    let rules = [&*rule(), "SPIN=0"];
    let server = hosts.server(&rules, "poll");
    let arguments = ["ask", ADDRESSES[1], &server.port, "4", "400", "5000"];
    let client = hosts.program(0, &rules, &arguments).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let domain = hosts.folder.path().join("default");
    let pids = [server.process.id(), client.id()];
    for to in [Windows::Down, Windows::Up] {
        let mut switched = switch(&domain, &[], to, Duration::from_secs(10)).unwrap();
        switched.done.sort_unstable();
        assert_eq!(switched, Switched { done: sorted(pids), not_yet: Vec::new() }, "{to:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let client = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success() && said.contains("carried 4 of 4"), "{said}");
    assert_eq!(server.end(), "end behind 1600\n");
}

#[test]
fn end_of_a_killed_process_on_the_other_host_is_seen_as_natively() {
    let Some(hosts) = Hosts::new() else { return };
    let rule = rule();
    for how in ["poll", "block"] {
        let server = hosts.server(&[&rule, "SPIN=0"], how);
        let arguments = ["ask", ADDRESSES[1], &server.port, "1", "100", "1000", "stay"];
        let mut client = hosts.program(0, &[&rule, "SPIN=0"], &arguments).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(client.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("carried 1 of 1"), "{said}");
        std::thread::sleep(Duration::from_millis(50));
        client.kill().unwrap();
        client.wait().unwrap();
        let since = Instant::now();
        assert_eq!(server.end(), "end behind 100\n", "{how}");
        assert!(since.elapsed() < Duration::from_millis(SLEEPS_ON_MS), "{how}");
    }
}

#[test]
fn containers_share_connections_and_the_end_of_one_is_seen() {
    let Some(mut hosts) = Hosts::containers() else { return };
    let rules = [&*rule(), "SPIN=0"];
    let server = hosts.server(&rules, "poll");
    let said = hosts.ask(&rules, &server, 3, 100, 1000);
    assert!(said.contains("carried 3 of 3"), "{said}");
    assert_eq!(server.end(), "end behind 300\n");
    let server = hosts.server(&rules, "block");
    let arguments = ["ask", ADDRESSES[1], &server.port, "1", "100", "1000", "stay"];
    let mut client = hosts.program(0, &rules, &arguments).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(client.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("carried 1 of 1"), "{said}");
    // With its first process all others are killed.
    hosts.holders[0].kill().unwrap();
    let _ = client.wait();
    let since = Instant::now();
    assert_eq!(server.end(), "end behind 100\n");
    assert!(since.elapsed() < Duration::from_millis(SLEEPS_ON_MS));
}

#[test]
fn connections_of_containers_with_a_filter_of_system_calls_are_carried_where_a_rule_says_that_it_kills_for_none()
 {
    let Some(hosts) = Hosts::containers() else { return };
    let rule = rule();
    for (filtered, carried) in [("UNDER_FILTER=true", 3), ("UNDER_FILTER=false", 0)] {
        let server = hosts.server(&[&rule, filtered], "poll");
        let said = hosts.ask(&[&rule, filtered], &server, 3, 100, 1000);
        assert!(said.contains(&format!("carried {carried} of 3")), "{filtered}: {said}");
        assert_eq!(server.end(), "end behind 300\n");
    }
}
