//! The documented states, errors and flags, as data: each case of `conformance/*.toml` is a script of calls that players in C make
//! (`player.h`), with the answer that each must give.
//!
//! A step is `WHO: CALL -> ANSWER`. With `~>` the call is made until it gives the answer, for what another process or thread brings about;
//! an answer that ends with `*` is the beginning of one. `WHO: !kill`, `!STOP` and `!CONT` are done to the player, `!link down` and
//! `!link up` to its adapter 0, `!link1 down` to its adapter 1; `!cut BYTES` leaves so many bytes of the file that all share, and `!delete` none. A case is of
//! the players that it names, `owner` of node 4 and `user` of node 8 unless it says otherwise, and each has opened the descriptor `sd`
//! unless the case is `raw`; `config` is their configuration. What members have that share a `kernel`, or that share a `file`, is a case or
//! a script that is `on` that one alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, NodeId};
use beeline_fabric_process::Survey;
use toml::{Table, Value};

use c::ground::Ground;
use c::installed::installed;
use c::player::{self, Player, was_made};
use c::{C11, HERE};

/// How long a step that is repeated may take; far more than any needs.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);
const SANITIZED: [&str; 4] = ["cc", "-std=c11", "-g", "-fsanitize=address,undefined"];

#[test]
fn local_segments_answer_as_documented() {
    run("local", Ground::Kernel);
}

#[test]
fn memory_of_the_program_is_behind_segments_as_documented() {
    run("memory", Ground::Kernel);
}

#[test]
fn remote_segments_answer_as_documented() {
    run("remote", Ground::Kernel);
}

#[test]
fn segments_of_several_processes_answer_as_documented() {
    run("group", Ground::Kernel);
}

#[test]
fn sequences_and_copies_answer_as_documented() {
    run("transfer", Ground::Kernel);
}

#[test]
fn nodes_and_queries_answer_as_documented() {
    run("node", Ground::Kernel);
}

#[test]
fn callbacks_are_told_as_documented() {
    run("callback", Ground::Kernel);
}

#[test]
fn queues_of_dma_answer_as_documented() {
    run("dma", Ground::Kernel);
}

#[test]
fn links_that_go_down_and_up_are_told_as_documented() {
    run("link", Ground::Kernel);
}

#[test]
fn programs_whose_adapters_are_any_go_on_by_another_one_as_documented() {
    run("fail_over", Ground::Kernel);
}

#[test]
fn interrupts_answer_as_documented() {
    run("interrupt", Ground::Kernel);
}

#[test]
fn message_queues_answer_as_documented() {
    run("queue", Ground::Kernel);
}

#[test]
fn local_segments_answer_as_documented_over_a_file() {
    run("local", Ground::File);
}

#[test]
fn remote_segments_answer_as_documented_over_a_file() {
    run("remote", Ground::File);
}

#[test]
fn groups_answer_as_documented_over_a_file() {
    run("group", Ground::File);
}

#[test]
fn sequences_and_copies_answer_as_documented_over_a_file() {
    run("transfer", Ground::File);
}

#[test]
fn message_queues_answer_as_documented_over_a_file() {
    run("queue", Ground::File);
}

#[test]
fn nodes_and_queries_answer_as_documented_over_a_file() {
    run("node", Ground::File);
}

#[test]
fn interrupts_answer_as_documented_over_a_file() {
    run("interrupt", Ground::File);
}

#[test]
fn callbacks_are_told_as_documented_over_a_file() {
    run("callback", Ground::File);
}

#[test]
fn queues_of_dma_answer_as_documented_over_a_file() {
    run("dma", Ground::File);
}

#[test]
fn refusals_say_which_value_is_wrong() {
    run("why", Ground::Kernel);
}

#[test]
fn refusals_say_which_value_is_wrong_over_a_file() {
    run("why", Ground::File);
}

#[test]
fn deaths_and_a_file_that_is_cut_are_told_as_documented() {
    run("file", Ground::File);
}

/// The same programs with a compiler's checks of memory and of undefined behaviour. The library takes its memory from the same
/// allocator, so what it frees twice or copies into afterwards is found, too.
#[test]
fn sanitized_programs_give_the_same_answers() {
    if !compiles_sanitized() {
        eprintln!("the C compiler has no sanitizers here; not looked at");
        return;
    }
    let program = player::build(installed(), &SANITIZED, "player-sanitized");
    for script in std::fs::read_dir(scripts()).unwrap().map(Result::unwrap) {
        run_with((&program, Ground::Kernel), script.path().file_stem().unwrap().to_str().unwrap());
    }
}

fn scripts() -> PathBuf {
    Path::new(HERE).join("tests/conformance")
}

fn run(name: &str, ground: Ground) {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    run_with((PROGRAM.get_or_init(|| player::build(installed(), &C11, "player")), ground), name);
}

fn run_with((program, ground): (&Path, Ground), name: &str) {
    let path = scripts().join(format!("{name}.toml"));
    let table: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let on = |what: Option<&Value>| what.is_none_or(|on| on.as_str() == Some(ground.name()));
    if !on(table.get("on")) {
        return;
    }
    // Links go down and up by requests in the domain.
    let is_of_ground = |case: &&Value| {
        on(case.get("on"))
            && (ground == Ground::Kernel || !case["steps"].as_str().unwrap().contains(": !link"))
    };
    let cases = table["case"].as_array().unwrap().iter().filter(is_of_ground);
    let cases: Vec<&Value> = cases.collect();
    let wrong: Vec<String> = cases.iter().filter_map(|case| play((program, ground), case).err()).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Plays a case; what was not as it should be.
fn play((program, ground): (&Path, Ground), case: &Value) -> Result<(), String> {
    let text = |key: &str, default: &'static str| {
        case.get(key).map_or(default, |value| value.as_str().unwrap()).to_owned()
    };
    let place = ground.place();
    if let Some(config) = case.get("config") {
        std::fs::write(place.path().join("beeline.toml"), config.as_str().unwrap()).unwrap();
    }
    let mut players = BTreeMap::new();
    let mut nodes = BTreeMap::new();
    for player in text("players", "owner@4 user@8").split_whitespace() {
        let (name, node) = player.split_once('@').unwrap();
        let mut player = Player::start((program, ground), place.path(), node);
        if case.get("raw").is_none() {
            assert_eq!(player.answer("SCIInitialize 0"), "OK");
            assert_eq!(player.answer("SCIOpen sd 0"), "OK");
        }
        players.insert(name.to_owned(), player);
        nodes.insert(name.to_owned(), NodeId(node.parse().unwrap()));
    }
    let steps = text("steps", "");
    for step in steps.lines().map(str::trim).filter(|step| !step.is_empty() && !step.starts_with('#')) {
        if let Some((who, what)) = step.split_once(": !link") {
            let (adapter, state) = what.split_once(' ').unwrap();
            let adapter = if adapter.is_empty() { 0 } else { adapter.parse().unwrap() };
            set_link(place.path(), nodes[who], (adapter, state == "up"));
            continue;
        }
        if let Some((_, bytes)) = step.split_once(": !cut ") {
            ground.cut(place.path(), bytes.parse().unwrap());
            continue;
        }
        if step.ends_with(": !delete") {
            ground.delete(place.path());
            continue;
        }
        take(&mut players, step).map_err(|found| format!("{}: {step}\n    {found}", text("name", "?")))?;
    }
    Ok(())
}

/// Takes the link of an adapter of every process of a node down, or up, as somebody who looks after the fabric does.
fn set_link(root: &Path, node: NodeId, (adapter, is_up): (u32, bool)) {
    let config = DomainConfig { root: Some(root.to_owned()), ..DomainConfig::default() };
    let survey = Survey::open(&config).unwrap();
    let adapter = AdapterNumber::new(adapter).unwrap();
    for member in survey.members(node).unwrap() {
        survey.set_link(node, member.number, (adapter, is_up), PATIENCE).unwrap();
    }
}

fn take(players: &mut BTreeMap<String, Player>, step: &str) -> Result<(), String> {
    let (who, rest) = step.split_once(": ").unwrap_or_else(|| panic!("{step}"));
    if rest == "!kill" {
        players.remove(who).unwrap().kill();
        return Ok(());
    }
    let player = players.get_mut(who).unwrap_or_else(|| panic!("{step}"));
    if let Some(signal) = rest.strip_prefix('!') {
        player.signal(signal);
        return Ok(());
    }
    let (call, expected, is_repeated) = match (rest.split_once(" -> "), rest.split_once(" ~> ")) {
        (Some((call, expected)), _) => (call, expected, false),
        (None, Some((call, expected))) => (call, expected, true),
        (None, None) => panic!("{step}"),
    };
    let start = Instant::now();
    loop {
        let found = player.answer(call);
        if !was_made(&found) {
            return Err(found);
        }
        if expected.strip_suffix('*').map_or(found == expected, |beginning| found.starts_with(beginning)) {
            return Ok(());
        }
        if !is_repeated || start.elapsed() > PATIENCE {
            return Err(found);
        }
        std::thread::sleep(PAUSE);
    }
}

fn compiles_sanitized() -> bool {
    let place = tempfile::tempdir().unwrap();
    let empty = place.path().join("empty.c");
    std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
    let mut probe = std::process::Command::new(SANITIZED[0]);
    probe.args(&SANITIZED[1..]).arg(&empty).arg("-o").arg(empty.with_extension(""));
    probe.status().unwrap().success()
}
