//! `beeline fabric` on members that share a file and no kernel: members of this process, and one in a process of its own that is killed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use beeline_fabric::{AdapterNumber, Call, NodeId, Part, SegmentId, Value};
use beeline_fabric_bar::{BarConfig, BarMember, BarMemory};
use beeline_mmio::OnLoss;
use serde_json::{Value as Json, json};

const PATH: &str = "BEELINE_TEST_PATH";

/// A file that members share, and a folder of domains in which nobody is.
struct Memory {
    dir: tempfile::TempDir,
    path: PathBuf,
}

impl Memory {
    fn new() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        BarMemory::make_file(&path, 8 << 20, 4).unwrap();
        Memory { dir, path }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn member(&self, node: u16) -> BarMember {
        member(&self.path, node)
    }

    /// A member of node 4 that has segment 9, in a process that is killed when this is dropped.
    fn other_process(&self) -> Killed {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(PATH, &self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.contains("@joined")));
        Killed(child)
    }

    fn beeline(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
        command.arg("fabric").args(args).env("BEELINE_ROOT", self.dir.path()).stdin(Stdio::null());
        command.env_remove("BEELINE_FABRIC_MEMORY").env_remove("BEELINE_NODE");
        // No file of the machine is read.
        command.env("BEELINE_CONFIG", self.config("empty.toml", ""));
        command
    }

    /// A configuration of this text.
    fn config(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn succeed(&self, args: &[&str]) -> String {
        succeed(&mut self.beeline(&[args, &["--memory", self.path()]].concat()))
    }

    fn fail(&self, args: &[&str]) -> String {
        fail(&mut self.beeline(&[args, &["--memory", self.path()]].concat()))
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn run(command: &mut Command, code: i32) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(status.code(), Some(code), "{command:?}\n{out}{err}");
    (out, err)
}

fn succeed(command: &mut Command) -> String {
    run(command, 0).0
}

/// What is said on standard error by a command that fails.
fn fail(command: &mut Command) -> String {
    run(command, 1).1
}

fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

fn member(path: &Path, node: u16) -> BarMember {
    let nodes = [4, 8].map(NodeId).to_vec();
    let (memory, node, on_loss) = (BarMemory::of_path(path), NodeId(node), OnLoss::Fatal);
    BarMember::open(BarConfig { memory, members: 4, slot: None, node, adapter: adapter(), nodes, on_loss })
        .unwrap()
}

/// Makes a segment and makes it available.
fn make(member: &BarMember, id: u32) {
    let (id, is_auto, is_private, is_empty, has_callback) = (SegmentId(id), false, false, false, false);
    let create = Call::CreateSegment { id, is_auto, bytes: 4096, is_private, is_empty, has_callback };
    let Ok(Value::Local(local, _)) = member.call(create) else { panic!("no segment") };
    member.call(Call::Prepare(local, adapter())).unwrap();
    member.call(Call::SetAvailable(local, adapter())).unwrap();
}

fn connect(id: u32) -> Call {
    let (node, id, adapter) = (NodeId(4), SegmentId(id), adapter());
    let (timeout_nanos, is_asynchronous, has_callback) = (Some(0), false, false);
    Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback }
}

/// Plays a member; does nothing in the test itself.
#[test]
fn role() {
    let Ok(path) = std::env::var(PATH) else { return };
    let member = member(Path::new(&path), 4);
    make(&member, 9);
    println!("@joined");
    // Ends with the process that has started this one, if it is not killed before.
    let _ended = std::io::stdin().lines().count();
}

#[test]
fn members_of_one_memory_are_listed_with_their_groups() {
    let memory = Memory::new();
    std::fs::remove_file(&memory.path).unwrap();
    let said = memory.fail(&["ls"]);
    assert!(said.contains("cannot look at the fabric in"), "{said}");
    BarMemory::make_file(&memory.path, 8 << 20, 4).unwrap();
    let members = [4, 8].map(|node| memory.member(node));
    let held = members.each_ref().map(|it| it.join_group(SegmentId(7), 4096).unwrap().is_first);
    assert_eq!(held, [true, false]);
    let listed: Json = serde_json::from_str(&memory.succeed(&["ls", "--json"])).unwrap();
    let nodes = listed["nodes"].as_array().unwrap();
    assert_eq!(nodes.iter().map(|node| &node["node"]).collect::<Vec<_>>(), [4, 8]);
    assert!(nodes.iter().all(|node| node["members"][0]["state"] == "alive"), "{listed}");
    let held = &listed["held"][0];
    assert_eq!((&held["id"], held["holders"].as_array().unwrap().len()), (&json!(7), 2));
    assert!(memory.succeed(&["probe", "8"]).contains("node 8 answers: 1 of 1 members"));
    for command in [&["probe", "12"][..], &["rm", "12"], &["rm", "12", "7"], &["link", "down", "12", "0"]] {
        let said = memory.fail(command);
        assert!(said.contains("node 12 has no member in"), "{said}");
    }
}

#[test]
fn segment_and_group_are_removed_and_who_uses_a_segment_keeps_it_unless_forced() {
    let memory = Memory::new();
    let [owner, user] = [4, 8].map(|node| memory.member(node));
    make(&owner, 7);
    let Ok(Value::Remote(remote, _)) = user.call(connect(7)) else { panic!("not connected") };
    let said = memory.fail(&["rm", "4", "7"]);
    assert!(said.contains("segment 7 of node 4 is not removed") && said.contains("--force"), "{said}");
    assert_eq!(memory.succeed(&["rm", "4", "7", "--force"]), "node 4: segment 7 removed\n");
    assert!(user.map_remote(remote, Part { offset: 0, bytes: 64 }).is_err());
    let said = memory.fail(&["rm", "4", "7"]);
    assert!(said.contains("no member of node 4 that lives has segment 7"), "{said}");
    for member in [&owner, &user] {
        member.join_group(SegmentId(3), 4096).unwrap();
    }
    let said = memory.succeed(&["rm", "252", "3"]);
    assert_eq!(
        said,
        "groups: 3 removed from a member of node 4\ngroups: 3 removed from a member of node 8\n"
    );
    assert!(owner.join_group(SegmentId(3), 4096).unwrap().is_first);
    let said = memory.fail(&["rm", "252"]);
    assert!(said.contains("names of groups go with the member"), "{said}");
}

#[test]
fn link_of_each_member_of_a_node_is_taken_down_and_up() {
    let memory = Memory::new();
    let [owner, other, user] = [4, 4, 8].map(|node| memory.member(node));
    make(&owner, 7);
    let said = memory.succeed(&["link", "down", "4", "0"]);
    assert_eq!(said, "node 4: adapter 0 is down, as 2 members see it\n");
    assert_eq!([&owner, &other, &user].map(|it| it.is_link_up(adapter()).unwrap()), [false, false, true]);
    assert!(user.call(connect(7)).is_err());
    memory.succeed(&["link", "up", "4", "0"]);
    assert!(user.call(connect(7)).is_ok());
    let said = memory.fail(&["link", "down", "4", "5"]);
    assert!(said.contains("2 members of node 4 do not take it down: the member refuses"), "{said}");
}

#[test]
fn what_a_killed_member_has_left_is_taken_out_and_who_lives_keeps_all() {
    let memory = Memory::new();
    let owner = memory.member(4);
    make(&owner, 7);
    drop(memory.other_process());
    assert_eq!(memory.succeed(&["rm", "4"]), "node 4: 1 names of 1 dead members taken out\n");
    assert_eq!(memory.succeed(&["rm", "4"]), "node 4: 0 names of 0 dead members taken out\n");
    let listed: Json = serde_json::from_str(&memory.succeed(&["ls", "--json"])).unwrap();
    assert_eq!(listed["nodes"][0]["members"].as_array().unwrap().len(), 1);
    assert_eq!(owner.lost(), None);
}

#[test]
fn memory_is_that_of_the_option_else_of_the_environment_else_of_the_file() {
    let (memory, other) = (Memory::new(), Memory::new());
    let _members = [memory.member(4), other.member(8)];
    let of_file =
        |memory: &Memory| memory.config("said.toml", &format!("[fabric]\nmemory = \"{}\"\n", memory.path()));
    let nodes = |command: &mut Command| -> Vec<u64> {
        let listed: Json = serde_json::from_str(&succeed(command)).unwrap();
        listed["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_u64().unwrap()).collect()
    };
    let ls = ["ls", "--json"];
    assert_eq!(nodes(memory.beeline(&ls).env("BEELINE_CONFIG", of_file(&other))), [8]);
    let both = |args: &[&str]| {
        let mut command = memory.beeline(args);
        command.env("BEELINE_CONFIG", of_file(&other)).env("BEELINE_FABRIC_MEMORY", memory.path());
        command
    };
    assert_eq!(nodes(&mut both(&ls)), [4]);
    assert_eq!(nodes(&mut both(&["ls", "--json", "--memory", other.path()])), [8]);
    assert_eq!(nodes(&mut both(&["ls", "--json", "--domain", "default"])), [0; 0]);
    assert_eq!(nodes(&mut both(&["ls", "--json", "--root", memory.dir.path().to_str().unwrap()])), [0; 0]);
    assert_eq!(nodes(&mut memory.beeline(&ls)), [0; 0]);
    for args in [&["link", "down", "4", "0"][..], &["rm", "4"], &["probe", "4"], &["watch", "--count", "1"]] {
        let said = succeed(&mut both(args));
        assert!(said.contains('4'), "{said}");
    }
}

#[test]
fn memory_that_is_not_there_is_said_with_who_has_named_it() {
    let memory = Memory::new();
    let gone = memory.dir.path().join("gone");
    let file = memory.config("said.toml", &format!("[fabric]\nmemory = \"{}\"\n", gone.display()));
    for args in [&["ls"][..], &["link", "down", "4", "0"], &["rm", "4"], &["probe", "4"], &["watch"]] {
        let said = fail(memory.beeline(args).env("BEELINE_FABRIC_MEMORY", &gone));
        assert!(said.contains("cannot look at the fabric in") && said.contains("gone"), "{said}");
        assert!(said.contains("BEELINE_FABRIC_MEMORY names"), "{said}");
        let said = fail(memory.beeline(args).env("BEELINE_CONFIG", &file));
        assert!(said.contains("the table fabric of") && said.contains("said.toml names"), "{said}");
    }
    let said = fail(memory.beeline(&["ls"]).env("BEELINE_FABRIC_MEMORY", ""));
    assert!(said.contains("cannot tell which fabric is meant") && said.contains("is empty"), "{said}");
    let said = fail(memory.beeline(&["ls"]).env("BEELINE_CONFIG", &gone));
    assert!(said.contains("cannot read"), "{said}");
}
