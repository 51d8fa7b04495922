//! `beeline fabric`, on members in processes of their own: this test program, started again as a member.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, Call, NodeId, SegmentId, Value};
use beeline_fabric_process::{FabricConfig, FabricMember};
use rustix::process::{Pid, Signal};
use serde_json::{Value as Json, json};

const NODE: &str = "BEELINE_TEST_NODE";
/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// A folder with a fabric in it.
struct Fabric(tempfile::TempDir);

/// A member: it makes the calls that a test tells it, a line each, and leaves when its input ends.
struct Member {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Fabric {
    fn new() -> Self {
        Fabric(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn member(&self, node: u16) -> Member {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(NODE, node.to_string())
            .env("BEELINE_ROOT", self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut member = Member { child, input, output };
        member.hear("joined");
        member
    }

    /// Node 4 with segment 7, available, and 9, not prepared.
    fn owner(&self) -> Member {
        let mut owner = self.member(4);
        owner.tell("available 7 4096");
        owner.tell("create 9 100");
        owner
    }

    fn beeline(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
        command.arg("fabric").args(args).env("BEELINE_ROOT", self.path()).stdin(Stdio::null());
        command.env_remove("BEELINE_FABRIC_MEMORY").env_remove("BEELINE_CONFIG");
        command
    }

    fn run(&self, args: &[&str], code: i32) -> (String, String) {
        let Output { status, stdout, stderr } = self.beeline(args).output().unwrap();
        let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert_eq!(status.code(), Some(code), "beeline fabric {args:?}\n{out}{err}");
        (out, err)
    }

    fn succeed(&self, args: &[&str]) -> String {
        self.run(args, 0).0
    }

    /// What is said on standard error by a command that fails.
    fn fail(&self, args: &[&str]) -> String {
        self.run(args, 1).1
    }

    fn json(&self, args: &[&str]) -> Json {
        serde_json::from_str(&self.succeed(args)).unwrap()
    }
}

impl Member {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        self.hear("done");
    }

    fn hear(&mut self, word: &str) {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the member ended");
            // The test runner of the process prints lines of its own.
            if let Some((_, said)) = line.trim_end().split_once('@') {
                assert_eq!(said, word);
                return;
            }
        }
    }

    fn stop(&self) {
        let pid = Pid::from_raw(self.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
    }

    fn kill(mut self) -> u32 {
        let pid = self.pid();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        pid
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays a member; does nothing in the test itself.
#[test]
fn role() {
    let Ok(node) = std::env::var(NODE) else { return };
    let adapter = AdapterNumber::new(0).unwrap();
    let config = FabricConfig {
        domain: DomainConfig::default(),
        node: NodeId(node.parse().unwrap()),
        adapters: vec![adapter, AdapterNumber::new(1).unwrap()],
        nodes: vec![NodeId(4), NodeId(8)],
    };
    let member = FabricMember::open(config).unwrap();
    let say = |word: &str| {
        println!("@{word}");
        std::io::stdout().flush().unwrap();
    };
    say("joined");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u32>().unwrap();
        let create = || {
            let (id, bytes) = (SegmentId(number(1)), number(2).into());
            let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
            let made =
                member.call(Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback });
            let Ok(Value::Local(local, _)) = made else { panic!("{made:?}") };
            local
        };
        match words[0] {
            "create" => drop(create()),
            "available" => {
                let local = create();
                member.call(Call::Prepare(local, adapter)).unwrap();
                member.call(Call::SetAvailable(local, adapter)).unwrap();
            }
            "join" => drop(member.join_group(SegmentId(number(1)), number(2).into()).unwrap()),
            "share" => member.share(create()).unwrap(),
            "attach" => drop(member.attach(SegmentId(number(1))).unwrap()),
            "connect" => {
                let (node, id) = (NodeId(4), SegmentId(number(1)));
                let (timeout_nanos, is_asynchronous, has_callback) = (None, false, false);
                let call = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
                member.call(call).unwrap();
            }
            other => panic!("{other}"),
        }
        say("done");
    }
}

#[test]
fn ls_shows_nodes_members_adapters_and_segments_with_their_processes() {
    let fabric = Fabric::new();
    assert!(fabric.succeed(&["ls"]).starts_with("no node of a fabric in "));
    let (owner, mut user) = (fabric.owner(), fabric.member(8));
    user.tell("connect 7");
    user.tell("connect 7");
    let view = fabric.json(&["ls", "--json"]);
    let [four, eight] = view["nodes"].as_array().unwrap().as_slice() else { panic!("{view}") };
    assert_eq!((&four["node"], &eight["node"]), (&json!(4), &json!(8)));
    let adapters = json!([
        {"adapter": 0, "is_up": true, "changes": 0}, {"adapter": 1, "is_up": true, "changes": 0}
    ]);
    let member = &four["members"][0];
    assert_eq!(member["pid"], json!(owner.pid()));
    assert_eq!((&member["state"], &member["adapters"]), (&json!("alive"), &adapters));
    assert_eq!((&member["names"], &member["consumers"]), (&json!(2), &json!(1)));
    let segments = json!([
        {
            "id": 7, "bytes": 4096, "holding": "alone", "state": "available", "adapters": [0], "connections": 2,
            "maps": 0
        },
        {
            "id": 9, "bytes": 100, "holding": "alone", "state": "not prepared", "adapters": [], "connections": 0,
            "maps": 0
        },
    ]);
    assert_eq!(member["segments"], segments);
    let user_is = &eight["members"][0];
    assert_eq!((&user_is["pid"], &user_is["connections"]), (&json!(user.pid()), &json!(2)));

    let text = fabric.succeed(&["ls", "--node", "4"]);
    assert!(text.contains("available on 0") && text.contains("0 up, 1 up"), "{text}");
    assert!(text.contains(&owner.pid().to_string()) && !text.contains(&user.pid().to_string()), "{text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "it fits a terminal: {widest:?}\n{text}");
    let missing = fabric.fail(&["ls", "--node", "5"]);
    assert!(missing.contains("no process of node 5 has joined") && missing.contains("try: "), "{missing}");
}

#[test]
fn member_that_is_stopped_is_said_to_be_silent_and_others_are_shown() {
    let fabric = Fabric::new();
    let (owner, other) = (fabric.owner(), fabric.member(8));
    owner.stop();
    let (text, said) = fabric.run(&["ls", "--timeout-ms", "100"], 1);
    let shown = |pid: u32, state: &str| {
        text.lines().any(|line| line.contains(&pid.to_string()) && line.contains(state))
    };
    assert!(shown(owner.pid(), "silent") && shown(other.pid(), "alive"), "{text}");
    assert!(said.contains("node 4, member ") && said.contains("is it stopped?"), "{said}");
    let said = fabric.fail(&["probe", "4", "--timeout-ms", "100"]);
    assert!(said.contains("node 4 does not answer: ") && said.contains("is it stopped?"), "{said}");
    let said = fabric.fail(&["rm", "4", "7", "--timeout-ms", "100"]);
    assert!(said.contains(&format!("kill -CONT {}", owner.pid())), "{said}");
    let said = fabric.fail(&["link", "down", "4", "0", "--timeout-ms", "100"]);
    assert!(said.contains("1 members of node 4 do not take it down: "), "{said}");
}

#[test]
fn names_of_dead_members_are_shown_and_taken_out() {
    let fabric = Fabric::new();
    let _alive = fabric.member(4);
    let pid = fabric.owner().kill();
    let text = fabric.succeed(&["ls"]);
    assert!(text.contains("node 4: 2 names of 1 dead members; `beeline fabric rm 4`"), "{text}");
    assert!(!text.contains(&pid.to_string()), "{text}");
    let removed = fabric.succeed(&["rm", "4"]);
    assert_eq!(removed, "node 4: 2 names of 1 dead members taken out\n");
    assert!(!fabric.succeed(&["ls"]).contains("dead"));
    assert_eq!(fabric.succeed(&["rm", "4"]), "node 4: 0 names of 0 dead members taken out\n");
    let missing = fabric.fail(&["rm", "5"]);
    assert!(missing.contains("no process of node 5 has joined"), "{missing}");
}

#[test]
fn groups_and_shared_segments_are_shown_with_all_who_hold_them_and_removed_from_each() {
    let fabric = Fabric::new();
    let none = fabric.fail(&["rm", "252"]);
    assert!(none.contains("no process has ever joined a group in ") && none.contains("try: "), "{none}");
    let mut members = [fabric.member(4), fabric.member(4), fabric.member(8)];
    members[0].tell("share 7 100");
    members[1].tell("attach 7");
    members[0].tell("join 7 4096");
    members[2].tell("join 7 4096");
    let [first, second, third] = members.each_ref().map(Member::pid);
    let view = fabric.json(&["ls", "--json"]);
    let [group, shared] = view["held"].as_array().unwrap().as_slice() else { panic!("{view}") };
    let pids = |held: &Json| -> Vec<(u64, u64)> {
        let holders = held["holders"].as_array().unwrap().iter();
        let mut pids: Vec<_> =
            holders.map(|it| (it["node"].as_u64().unwrap(), it["pid"].as_u64().unwrap())).collect();
        pids.sort_unstable();
        pids
    };
    assert_eq!((&group["node"], &group["id"], &group["bytes"]), (&Json::Null, &json!(7), &json!(4096)));
    assert_eq!(pids(group), [(4, first.into()), (8, third.into())]);
    assert_eq!((&shared["node"], &shared["id"], &shared["bytes"]), (&json!(4), &json!(7), &json!(100)));
    let mut sharing = [(4, first.into()), (4, second.into())];
    sharing.sort_unstable();
    assert_eq!(pids(shared), sharing);
    let text = fabric.succeed(&["ls"]);
    let line = |what: &str| text.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("segment 7 of node 4").contains("2: pid"), "{text}");
    assert!(text.contains("7, shared") && text.contains("group 7"), "{text}");

    // Who dies leaves a name of a group, which is of no node, and no memory.
    let [first, second, third] = members;
    third.kill();
    let text = fabric.succeed(&["ls"]);
    assert!(text.contains("groups: 1 names of 1 dead members; `beeline fabric rm 252`"), "{text}");
    assert_eq!(fabric.json(&["ls", "--json"])["left_of_groups"], json!({"members": 1, "names": 1}));
    assert_eq!(fabric.succeed(&["rm", "252"]), "groups: 1 names of 1 dead members taken out\n");
    assert_eq!(fabric.succeed(&["rm", "252", "7"]), "groups: 7 removed from a member of node 4\n");
    let gone = fabric.fail(&["rm", "252", "7"]);
    assert!(gone.contains("no member that lives holds group 7") && gone.contains("try: "), "{gone}");
    let held = &fabric.json(&["ls", "--json"])["held"];
    assert_eq!(held.as_array().unwrap().len(), 1, "the segment of the same number is another: {held}");
    drop((first, second));
}

#[test]
fn segment_in_use_is_removed_by_force_alone() {
    let fabric = Fabric::new();
    let (_owner, mut user) = (fabric.owner(), fabric.member(8));
    user.tell("connect 7");
    let busy = fabric.fail(&["rm", "4", "7"]);
    assert!(busy.contains("it is in use") && busy.contains("beeline fabric rm 4 7 --force"), "{busy}");
    assert_eq!(fabric.succeed(&["rm", "4", "7", "--force"]), "node 4: segment 7 removed\n");
    assert_eq!(fabric.succeed(&["rm", "4", "9"]), "node 4: segment 9 removed\n");
    let view = fabric.json(&["ls", "--json", "--node", "4"]);
    assert_eq!(view["nodes"][0]["members"][0]["segments"], json!([]));
    let gone = fabric.fail(&["rm", "4", "7"]);
    assert!(gone.contains("no member of node 4 that lives has segment 7"), "{gone}");
    let alone = fabric.run(&["rm", "4", "--force"], 2).1;
    assert!(alone.contains("<ID>"), "{alone}");
}

#[test]
fn link_is_taken_down_and_up_for_all_members_and_a_node_is_probed() {
    let fabric = Fabric::new();
    let (first, second) = (fabric.owner(), fabric.member(4));
    let down = fabric.succeed(&["link", "down", "4", "0"]);
    assert_eq!(down, "node 4: adapter 0 is down, as 2 members see it\n");
    let adapter = json!({"adapter": 0, "is_up": false, "changes": 1});
    let members = &fabric.json(&["ls", "--json"])["nodes"][0]["members"];
    assert_eq!((&members[0]["adapters"][0], &members[1]["adapters"][0]), (&adapter, &adapter));
    let probed = fabric.succeed(&["probe", "4"]);
    assert_eq!(probed, "node 4 answers: 2 of 2 members; adapters 0 down, 1 up\n");
    fabric.succeed(&["link", "up", "4", "0"]);
    assert!(fabric.succeed(&["probe", "4"]).contains("adapters 0 up, 1 up"));
    let none = fabric.fail(&["link", "down", "4", "5"]);
    assert!(none.contains("this node has no such adapter"), "{none}");
    assert_eq!(fabric.json(&["probe", "4", "--json"])["answered"], json!(2));
    first.kill();
    second.kill();
    let nobody = fabric.fail(&["probe", "4"]);
    assert!(nobody.contains("node 4 does not answer: no member of it lives"), "{nobody}");
    let nobody = fabric.fail(&["link", "down", "4", "0"]);
    assert!(nobody.contains("no member of node 4 lives"), "{nobody}");
    for missing in [fabric.fail(&["probe", "5"]), fabric.fail(&["link", "down", "5", "0"])] {
        assert!(missing.contains("no process of node 5 has joined"), "{missing}");
        assert!(missing.contains("try: `beeline fabric ls`"), "{missing}");
    }
}

#[test]
fn watch_says_what_changes_and_nothing_else() {
    let fabric = Fabric::new();
    let mut owner = fabric.owner();
    let pid = owner.pid();
    // It ends by itself where a line never comes.
    let mut watch = fabric
        .beeline(&["watch", "--interval-ms", "50", "--count", "600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut until = |end: &str| {
        let begun = Instant::now();
        let mut seen = Vec::new();
        while !seen.last().is_some_and(|line: &String| line.contains(end)) {
            assert!(begun.elapsed() < LONG, "{seen:?}");
            seen.push(lines.next().unwrap());
        }
        seen
    };
    until("not prepared");
    owner.tell("create 11 64");
    let said = until("segment 11");
    let added = format!("+ node 4 segment 11 of pid {pid}: 64 bytes, not prepared, 0 connections, 0 maps");
    assert_eq!(said.last(), Some(&added));
    fabric.succeed(&["link", "down", "4", "1"]);
    let said = until("1 down");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with(&format!("~ node 4 member pid {pid}: alive, adapters 0 up, 1 up")),
        "{said:?}"
    );
    fabric.succeed(&["rm", "4", "7"]);
    assert_eq!(until("segment 7"), [format!("- node 4 segment 7 of pid {pid}")]);
    watch.kill().unwrap();
    watch.wait().unwrap();
    let looks = fabric.succeed(&["watch", "--json", "--count", "2", "--interval-ms", "50"]);
    let looks: Vec<Json> = looks.lines().map(|look| serde_json::from_str(look).unwrap()).collect();
    assert_eq!((looks.len(), &looks[0]), (2, &looks[1]));
}

#[test]
fn files_that_are_no_registry_are_said_so_and_other_nodes_are_shown() {
    let fabric = Fabric::new();
    let other = fabric.member(8);
    let folder = fabric.path().join("default");
    let owner = fabric.owner();
    std::fs::File::options()
        .write(true)
        .open(folder.join("fabric.4.registry"))
        .unwrap()
        .set_len(70_000)
        .unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("fabric.5.registry")).unwrap();
    std::fs::write(folder.join("fabric.6.registry"), "a text that is no registry").unwrap();
    let (text, said) = fabric.run(&["ls"], 1);
    assert!(text.contains(&other.pid().to_string()), "{text}");
    let is_said = |node: &str, why: &str| {
        said.lines().any(|line| line.contains(node) && line.contains(why) && line.contains(".registry"))
    };
    assert!(is_said("node 4: ", "is too short"), "{said}");
    assert!(is_said("node 5: ", "no file of the domain's owner"), "{said}");
    assert!(is_said("node 6: ", "has format"), "{said}");
    let said = fabric.fail(&["rm", "6"]);
    assert!(said.contains("has format"), "{said}");
    drop(owner);
    let nowhere = fabric.fail(&["ls", "--root", "@net"]);
    assert!(nowhere.contains("choose a folder"), "{nowhere}");
}

#[test]
fn domain_of_another_user_is_refused_with_the_user_to_run_as() {
    let fabric = Fabric::new();
    // Only root can give the folder away; anybody else has folders of root.
    let (root, uid) = match std::os::unix::fs::chown(fabric.path(), Some(54321), None) {
        Ok(()) => (fabric.path(), 54321),
        Err(_) => (Path::new("/etc"), 0),
    };
    let refused = fabric.fail(&["ls", "--root", root.to_str().unwrap()]);
    let remedy = format!("try: run this as uid {uid}: a fabric is one user's");
    assert!(refused.contains(&format!("belongs to uid {uid}")) && refused.contains(&remedy), "{refused}");
}

#[test]
fn pcie_functions_that_could_carry_a_fabric_are_found_in_sysfs() {
    let fabric = Fabric::new();
    let function = fabric.path().join("sys/bus/pci/devices/0000:3b:00.0");
    std::fs::create_dir_all(&function).unwrap();
    let sysfs = fabric.path().join("sys");
    let probe = ["probe", "--sysfs", sysfs.to_str().unwrap()];
    assert!(fabric.succeed(&probe).starts_with("0 PCI functions, and none"));
    for (name, text) in [
        ("vendor", "0x1af4\n"),
        ("device", "0x1110\n"),
        ("class", "0x050000\n"),
        ("resource", "0x4000000000 0x400fffffff 0x14220c\n"),
        ("resource0", ""),
    ] {
        std::fs::write(function.join(name), text).unwrap();
    }
    let text = fabric.succeed(&probe);
    assert!(text.contains("1af4:1110") && text.contains("BAR 0: 268435456 bytes, not write-"), "{text}");
    let found = fabric.json(&[&probe[..], &["--json"]].concat());
    assert_eq!((&found[0]["role"], &found[0]["windows"][0]["bar"]), (&json!("shared-memory"), &json!(0)));
    let slow = "0000:3b:00.0: BAR 0 is not mapped write-combining";
    assert!(text.contains(slow) && found[0]["problems"][0].as_str().unwrap().starts_with("BAR 0"), "{text}");
    let none = fabric.fail(&["probe", "--sysfs", "/nonexistent"]);
    assert!(none.contains("cannot list PCI functions in /nonexistent") && none.contains("try: "), "{none}");
}

#[test]
fn each_command_of_fabric_has_a_man_page_with_examples() {
    let fabric = Fabric::new();
    let mut generate = Command::new(env!("CARGO_BIN_EXE_beeline"));
    let status = generate.args(["generate", "man", "--out"]).arg(fabric.path()).status().unwrap();
    assert!(status.success());
    for command in ["ls", "watch", "rm", "link", "probe"] {
        let page =
            std::fs::read_to_string(fabric.path().join(format!("beeline-fabric-{command}.1"))).unwrap();
        let page = page.replace('\\', "");
        assert!(page.contains("EXAMPLES") && page.contains(&format!("beeline fabric {command}")), "{page}");
        assert!(page.contains("BEELINE_ROOT") && !page.contains("sysfs DIR"), "{page}");
    }
}
