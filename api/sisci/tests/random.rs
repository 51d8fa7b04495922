//! Any calls in any order by several processes, some of which are killed at any time: no call ends its process or never returns, and
//! nothing is left of a process that has terminated.
//!
//! `BEELINE_SEED` is the seed of the calls, which a failure prints.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

use beeline_domain::{DomainConfig, Life};
use beeline_fabric::NodeId;
use beeline_fabric_process::Survey;

use c::C11;
use c::facts::{Facts, Function, is_handle};
use c::ground::Ground;
use c::installed::installed;
use c::player::{self, Player, was_made};

const CALLS: usize = 4000;
/// Fewer: of a process that is killed each other one has to find out by its silence.
const CALLS_OVER_A_FILE: usize = 1500;
/// Processes, each of one of two nodes.
const NODES: [&str; 4] = ["4", "4", "8", "8"];
/// Handles of a kind that a process has names for: few, so that calls meet.
const NAMES: usize = 2;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

#[test]
fn any_calls_by_processes_that_are_killed_end_no_other_process_and_leave_nothing() {
    let place = make_any_calls(Ground::Kernel, CALLS);
    let config = DomainConfig { root: Some(place.path().to_owned()), ..DomainConfig::default() };
    let survey = Survey::open(&config).unwrap();
    for node in [NodeId(4), NodeId(8)] {
        let left = survey.members(node).unwrap();
        let alive = left.iter().filter(|it| matches!(it.life, Life::Alive { .. })).count();
        assert_eq!(alive, 0, "{left:?}");
    }
}

#[test]
fn any_calls_over_a_file_end_no_other_process_and_leave_nothing() {
    let place = make_any_calls(Ground::File, CALLS_OVER_A_FILE);
    let program = installed().prefix().join("player-random-file");
    let mut last = Player::start((&program, Ground::File), place.path(), "12");
    begin(&mut last);
    for node in [4, 8] {
        let answer = last.answer(&format!("SCIProbeNode sci_desc_t0 0 {node} 0"));
        assert_eq!(answer, "NODE_NOT_RESPONDING 0", "{node}");
    }
}

/// Makes calls in processes of a place, until all of them have terminated.
fn make_any_calls(ground: Ground, calls: usize) -> tempfile::TempDir {
    let given = std::env::var("BEELINE_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish()) | 1;
    println!("BEELINE_SEED={seed}");
    let name = if ground == Ground::File { "player-random-file" } else { "player-random" };
    let program = player::build(installed(), &C11, name);
    let place = ground.place_of(16);
    let exported = player::exported(installed());
    let facts = Facts::read();
    // What a query's structure points at is the program's to have right.
    let functions: Vec<(&String, &Function)> =
        facts.functions.iter().filter(|(name, _)| exported.contains(name) && *name != "SCIQuery").collect();
    let names = c::parameter_names();
    let mut random = Random(seed);
    let mut players: Vec<Player> =
        NODES.iter().map(|node| begun((&program, ground), place.path(), node)).collect();
    let mut succeeded = 0;
    for _ in 0..calls {
        let who = random.below(players.len());
        if random.below(250) == 0 {
            players.remove(who).kill();
            players.insert(who, begun((&program, ground), place.path(), NODES[who]));
        }
        // Those that programs need are called most.
        let (name, function) = loop {
            let (name, function) = functions[random.below(functions.len())];
            if function.is_core || random.below(6) == 0 {
                break (name, function);
            }
        };
        // Rarely what ends all that a process has.
        if (name == "SCITerminate" || name == "SCIClose") && random.below(8) > 0 {
            continue;
        }
        let line = line(&mut random, name, function, &names[name]);
        let answer = players[who].answer(&line);
        assert!(was_made(&answer), "BEELINE_SEED={seed}: {line}: {answer}");
        succeeded += usize::from(answer.starts_with("OK"));
        if answer.contains("NOT_INITIALIZED") {
            begin(&mut players[who]);
        }
    }
    println!("{succeeded} of {calls} calls succeeded");
    assert!(succeeded > calls / 20, "BEELINE_SEED={seed}: only {succeeded} calls did something");
    for player in &mut players {
        // As often as it was initialized, which random calls did.
        while player.answer("SCIOpen last 0") != "NOT_INITIALIZED" {
            assert_eq!(player.answer("SCITerminate"), "done", "BEELINE_SEED={seed}");
        }
    }
    place
}

fn begin(player: &mut Player) {
    assert_eq!(player.answer("SCIInitialize 0"), "OK");
    assert_eq!(player.answer("SCIOpen sci_desc_t0 0"), "OK");
}

/// A process that has something from the start.
fn begun(program: (&Path, Ground), root: &Path, node: &str) -> Player {
    let mut player = Player::start(program, root, node);
    begin(&mut player);
    for line in [
        "SCICreateSegment sci_desc_t0 sci_local_segment_t0 1 65536 NULL NULL AUTO_ID",
        "SCIPrepareSegment sci_local_segment_t0 0 0",
        "SCISetSegmentAvailable sci_local_segment_t0 0 0",
    ] {
        assert_eq!(player.answer(line), "OK", "{line}");
    }
    player
}

/// A call with any arguments that a program may pass, mostly such as mean something.
fn line(random: &mut Random, name: &str, function: &Function, names: &[String]) -> String {
    let mut words = vec![name.to_owned()];
    for (at, kind) in function.takes.iter().enumerate() {
        words.push(argument(random, kind, &names[at]));
    }
    if let Some(known) = &function.flags {
        words.push(match random.below(20) {
            0..14 => "0".to_owned(),
            14..19 if !known.is_empty() => known[random.below(known.len())].clone(),
            _ => format!("{:#x}", 1_u32 << random.below(32)),
        });
    }
    words.join(" ")
}

fn argument(random: &mut Random, kind: &str, name: &str) -> String {
    let handle = kind.trim_end_matches(" *");
    if is_handle(handle) {
        return match random.below(20) {
            0 if kind == handle => random.one_of(&["NULL", "wild", "0x1"]).to_owned(),
            0 => "NULL".to_owned(),
            _ => format!("{handle}{}", random.below(NAMES)),
        };
    }
    if random.below(40) == 0 && !kind.ends_with('*') && name != "timeout" && !kind.starts_with("sci_cb_") {
        return random.one_of(&["0", "17", "4096", "4294967295"]).to_owned();
    }
    let words: &[&str] = match (kind, name) {
        (_, "timeout") => &["0", "0", "1", "5"],
        (_, "arg") => &["NULL", "label"],
        ("unsigned int", "localAdapterNo" | "adapterNo") => &["0"],
        ("unsigned int", "nodeId") => &["4", "8"],
        ("unsigned int", "segmentId") => &["1", "2", "3", "4", "5"],
        ("unsigned int", "interruptNo") => &["1", "2", "3"],
        ("unsigned int *", "interruptNo") => &["out:1", "out:2", "out:3"],
        ("unsigned int *", "length") => &["out:0", "out:64", "out:4096"],
        ("size_t", "size") => &["1", "64", "4096", "65536"],
        ("size_t" | "unsigned int", _) => &["0", "0", "1", "64", "4096"],
        ("void *", "address") => &["$pages", "$pages+8192", "$pages+8", "buf", "NULL"],
        ("void *" | "volatile void *", _) => &["buf", "buf", "buf", "NULL"],
        ("const char *", _) => &["name", "NULL"],
        ("dis_dma_vec_t *", _) => &["vec", "vec", "NULL"],
        _ if kind.starts_with("sci_cb_") => &["callback", "callback", "NULL"],
        _ if kind.ends_with('*') => &["out", "out", "out", "NULL"],
        _ => &["1"],
    };
    random.one_of(words).to_owned()
}
