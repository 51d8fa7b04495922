//! `beeline run` and `beeline sockets`, on processes that count on boards as the socket library does: this test program, started again. The library that is
//! preloaded is a small one in C, which says that it is there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_domain::{Domain, DomainConfig};
use beeline_socket_rules::{Board, Carrier, Run, Settings, Why, Windows};
use serde_json::Value as Json;

const ROLE: &str = "BEELINE_TEST_ROLE";
const NAME: &str = "libbeeline_sockets.so";

/// A folder with a domain and a library in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        let source = place.path("library.c");
        let text = "#include <unistd.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void there(void)\n\
                    { if (getenv(\"BEELINE_TEST_SAY\") && write(1, \"preloaded\\n\", 10) < 0) _exit(99); }\n";
        std::fs::write(&source, text).unwrap();
        let made =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(place.path(NAME)).arg(source).status();
        assert!(made.unwrap().success());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn beeline(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
        command.args(args).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("BEELINE_") {
                command.env_remove(name);
            }
        }
        command.env_remove("LD_PRELOAD").env("BEELINE_CONFIG", self.path("beeline.toml"));
        command.env("BEELINE_ROOT", self.0.path()).env("BEELINE_SOCKETS_LIBRARY", self.path(NAME));
        if !self.path("beeline.toml").exists() {
            std::fs::write(self.path("beeline.toml"), "").unwrap();
        }
        command
    }

    fn output(&self, args: &[&str]) -> (Option<i32>, String, String) {
        text(self.beeline(args).output().unwrap())
    }

    fn succeed(&self, args: &[&str]) -> String {
        let (code, out, err) = self.output(args);
        assert_eq!((code, &*err), (Some(0), ""), "beeline {args:?}\n{out}");
        out
    }

    fn json(&self, args: &[&str]) -> Json {
        serde_json::from_str(&self.succeed(args)).unwrap()
    }

    /// A process with a board, that has the library only by name.
    fn talker(&self) -> Talker {
        Talker::start(self.role("talk").env("BEELINE_ROOT", self.0.path()))
    }

    fn role(&self, role: &str) -> Command {
        let mut command = Command::new(own_program());
        command.args(ROLE_ARGS).env(ROLE, role);
        command
    }
}

fn text(output: Output) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = output;
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

const ROLE_ARGS: [&str; 4] = ["--exact", "role", "--nocapture", "--test-threads=1"];

fn own_program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

/// A process that plays a role: it takes a step for each line.
struct Talker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Talker {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut talker = Talker { child, input, output };
        talker.hear("ready");
        talker
    }

    fn hear(&mut self, word: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(word) {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "no {word}");
        }
    }

    fn step(&mut self) {
        writeln!(self.input.as_mut().unwrap(), "step").unwrap();
        self.hear("ready");
    }

    /// Ends its input, and gives what it says last.
    fn end(mut self) -> (std::process::ExitStatus, String) {
        self.input = None;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What processes of these tests do that are no tests.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("talk") => talk(),
        Ok("stop") => {
            let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGTERM, 9, stop.clone())
                .unwrap();
            stop.store(true, std::sync::atomic::Ordering::SeqCst);
            println!("ready");
            let _ = std::io::stdin().read_to_string(&mut String::new());
            std::process::exit(8);
        }
        _ => {}
    }
}

/// Two connections: one by a window, and one that the rules leave to the kernel. A line moves more bytes; the end of lines ends the process without its board's end,
/// as a kill does.
fn talk() {
    let settings = Settings::of_this_process().expect("rules");
    let config = DomainConfig::named(settings.rules().domain.clone());
    let domain = Domain::open(&config).unwrap();
    let board = Board::create(domain.path(), Run::of_environment()).unwrap();
    let (local, peer) = ("127.0.0.1:7777".parse().unwrap(), "127.0.0.1:40000".parse().unwrap());
    let fast = board.row(9, local, peer).unwrap();
    fast.sends_by(Carrier::Window);
    fast.sent(Carrier::Window, 3000);
    fast.received(Carrier::Socket, 1000);
    fast.spin_paid();
    let other = "10.0.0.7:22".parse().unwrap();
    let slow = board.row(10, local, other).unwrap();
    slow.set_why(settings.decide(local, other).err().or(Some(Why::NotYet)));
    slow.sent(Carrier::Socket, 500);
    println!("ready");
    for line in std::io::stdin().lines() {
        line.unwrap();
        fast.sent(Carrier::Window, 1_000_000);
        println!("ready");
    }
    std::process::exit(5);
}

#[test]
fn command_has_the_library_first_and_its_rules_in_one_variable() {
    let place = Place::new();
    std::fs::write(place.path("beeline.toml"), "[sockets]\nspin = \"1ms\"\nretain = \"copy\"\n").unwrap();
    let script = "echo \"$LD_PRELOAD\"; echo \"$BEELINE_SOCKETS_RULES\"; echo \"$BEELINE_SOCKETS_SPIN$BEELINE_SOCKETS_RUN\"; \
                  echo \"$BEELINE_SOCKETS_LOG\"; echo \"$0 $@\"";
    let mut command =
        place.beeline(&["run", "--spin", "7us", "--never-ports", "22", "--", "sh", "-c", script, "a", "-b"]);
    let other = place.path("other.so");
    std::fs::copy(place.path(NAME), &other).unwrap();
    command.env("LD_PRELOAD", &other).env("BEELINE_SOCKETS_SPIN", "9us").env("BEELINE_SOCKETS_LOG", "debug");
    let (code, out, err) = text(command.env("BEELINE_TEST_SAY", "1").output().unwrap());
    assert_eq!((code, &*err), (Some(0), ""));
    let lines: Vec<_> = out.lines().filter(|line| *line != "preloaded").collect();
    assert!(out.starts_with("preloaded\n"), "{out}");
    assert_eq!(lines[0], format!("{}:{}", place.path(NAME).display(), other.display()));
    let rules: Json = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(
        (&rules["spin"], &rules["retain"], &rules["log"]),
        (&"7000ns".into(), &"copy".into(), &"debug".into())
    );
    assert_eq!(rules["never_ports"][0], "22-22");
    assert_eq!(lines[2..], ["", "", "a -b"]);
    let name = "tr '\\0' ' ' < /proc/$$/cmdline";
    assert!(place.succeed(&["run", "--", "sh", "-c", name]).starts_with("sh -c "));
}

#[test]
fn exit_code_is_the_commands_and_says_what_could_not_be_run() {
    let place = Place::new();
    let code = |args: &[&str]| place.output(args).0;
    for why in [&[][..], &["--why"]] {
        let run = |command: &[&str]| code(&[&["run"], why, &["--"], command].concat());
        assert_eq!(run(&["sh", "-c", "exit 7"]), Some(7));
        assert_eq!(run(&["true"]), Some(0));
        assert_eq!((run(&["no-such-command"]), run(&["/etc/passwd"])), (Some(127), Some(126)));
    }
    assert_eq!(code(&["run", "--why", "--", "sh", "-c", "kill -9 $$"]), Some(137));
    // Nothing is between, so that the signal is the command's own.
    let status = place.beeline(&["run", "sh", "-c", "kill -9 $$"]).status().unwrap();
    assert_eq!(status.signal(), Some(9));
    let (_, _, err) = place.output(&["run", "no-such-command"]);
    assert_eq!(err, "beeline: cannot run no-such-command: no such command in the folders of PATH\n");
}

#[test]
fn rules_that_mean_nothing_are_refused_before_the_command_runs() {
    let place = Place::new();
    let refused = |args: &[&str]| {
        let (code, out, err) = place.output(args);
        assert_eq!((code, &*out), (Some(1), ""), "{err}");
        err
    };
    let err = refused(&["run", "--spin", "soon", "--", "echo", "ran"]);
    assert!(err.starts_with("beeline: --spin: spin = \"soon\"; `soon` is no time"), "{err}");
    std::fs::write(place.path("beeline.toml"), "[sockets]\nnever_port = [22]\n").unwrap();
    let err = refused(&["run", "--", "echo", "ran"]);
    assert!(
        err.contains("beeline.toml:2: there is no key `never_port`; `never_ports` is the nearest"),
        "{err}"
    );
    let err = refused(&["sockets"]);
    assert!(err.contains("there is no key `never_port`"), "{err}");
}

#[test]
fn library_that_is_not_there_is_refused_with_where_it_was_looked_for() {
    let place = Place::new();
    let (code, _, err) = place.output(&["run", "--library", "/none.so", "--", "true"]);
    assert!(code == Some(1) && err.contains("/none.so is no file, which --library names"), "{err}");
    let (code, _, err) = place.output(&["run", "--library", "/etc/passwd", "--", "true"]);
    assert!(code == Some(1) && err.contains("/etc/passwd is no library"), "{err}");
    let spaced = place.path("a b.so");
    std::fs::copy(place.path(NAME), &spaced).unwrap();
    let (code, _, err) = place.output(&["run", "--library", spaced.to_str().unwrap(), "--", "true"]);
    assert!(code == Some(1) && err.contains("has a space or a colon"), "{err}");
}

#[test]
fn program_that_the_loader_preloads_nothing_into_is_told_and_runs() {
    if !rustix::process::geteuid().is_root() {
        println!("left out: only root gives a program to another user");
        return;
    }
    let place = Place::new();
    let program = place.path("setuid");
    std::fs::copy("/bin/true", &program).unwrap();
    std::os::unix::fs::chown(&program, Some(65533), None).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let (code, _, err) = place.output(&["run", "--", program.to_str().unwrap()]);
    assert!(code == Some(0) && err.contains("the loader ignores LD_PRELOAD there"), "{code:?} {err}");
    let own = place.path("own");
    std::fs::copy("/bin/true", &own).unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(place.output(&["run", "--", own.to_str().unwrap()]), (Some(0), String::new(), String::new()));
}

#[test]
fn why_says_what_carried_each_connection_also_of_a_process_that_was_not_ended_well() {
    let place = Place::new();
    let mut command =
        place.beeline(&["run", "--why", "--never-addresses", "10.0.0.0/8", "--domain", "lab", "--"]);
    command.arg(own_program()).args(ROLE_ARGS).env(ROLE, "talk").stderr(Stdio::piped());
    let mut talker = Talker::start(&mut command);
    talker.step();
    // Others see the process while it runs.
    let seen = place.json(&["sockets", "--domain", "lab", "--json"]);
    assert_eq!(
        (&seen[0]["state"], &seen[0]["connections"][0]["bytes"]),
        (&"running".into(), &1_004_000.into())
    );
    let mut errors = talker.child.stderr.take().unwrap();
    let (status, _) = talker.end();
    assert_eq!(status.code(), Some(5));
    let mut err = String::new();
    errors.read_to_string(&mut err).unwrap();
    let fast =
        "  127.0.0.1:7777 to 127.0.0.1:40000: accelerated; 1003000 bytes by windows, 1000 by the socket\n";
    let slow = "  127.0.0.1:7777 to 10.0.0.7:22: not accelerated: the rules leave its addresses out (addresses, never_addresses); \
                500 bytes by the socket\n";
    assert!(err.contains(fast) && err.contains(slow) && err.starts_with("beeline: run-"), "{err}");
    assert_eq!(std::fs::read_dir(place.path("lab/sockets")).unwrap().count(), 0);
    let (code, _, err) = place.output(&["run", "--why", "--", "true"]);
    assert!(code == Some(0) && err.contains("no connection of the run is listed"), "{err}");
}

#[test]
fn signal_that_is_sent_to_a_run_is_the_commands() {
    let place = Place::new();
    let mut command = place.beeline(&["run", "--why", "--"]);
    command.arg(own_program()).args(ROLE_ARGS).env(ROLE, "stop").stderr(Stdio::null());
    let mut talker = Talker::start(&mut command);
    let pid = rustix::process::Pid::from_child(&talker.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let _input = talker.input.take();
    assert_eq!(talker.child.wait().unwrap().code(), Some(9));
}

#[test]
fn connections_are_listed_as_a_table_as_json_and_for_prometheus() {
    let place = Place::new();
    let none = "no connection of a program with the socket library; `beeline run -- CMD` starts one\n";
    assert_eq!(place.succeed(&["sockets"]), none);
    assert_eq!(place.json(&["sockets", "--json"]), Json::Array(Vec::new()));
    let talker = place.talker();
    let pid = talker.child.id().to_string();
    let table = place.succeed(&["sockets"]);
    let rows: Vec<_> = table.lines().filter(|line| line.contains(&pid)).collect();
    assert_eq!(rows.len(), 2, "{table}");
    let listed = place.json(&["sockets", "--json", "--pid", &pid]);
    let connection = &listed[0]["connections"][0];
    assert_eq!(
        (&listed[0]["pid"], &connection["local"]),
        (&talker.child.id().into(), &"127.0.0.1:7777".into())
    );
    assert_eq!((&connection["bytes"], &connection["by_window"]), (&4000.into(), &0.75.into()));
    assert_eq!((&connection["sends_by"], &connection["receives_by"]), (&"window".into(), &"socket".into()));
    assert_eq!(
        (&connection["messages"], &connection["spins"], &connection["fail_forwards"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(listed[0]["connections"][1]["why"], "NotYet");
    assert_eq!(place.json(&["sockets", "--json", "--pid", "1"]), Json::Array(Vec::new()));
    let prometheus = place.succeed(&["sockets", "--prometheus"]);
    let sample = format!(
        "beeline_socket_bytes_total{{pid=\"{pid}\",program=\"{}\",socket=\"9\",local=\"127.0.0.1:7777\",peer=\"127.0.0.1:40000\",\
         direction=\"sent\",path=\"window\"}} 3000\n",
        Path::new(&own_program()).file_name().unwrap().to_str().unwrap()
    );
    assert!(
        prometheus.contains(&sample) && prometheus.contains("# TYPE beeline_socket_bytes_total counter\n"),
        "{prometheus}"
    );
    let all = place.succeed(&["sockets", "--all"]);
    assert!(all.contains("why") && all.contains("begin_after"), "{all}");
    drop(talker);
    assert_eq!(place.succeed(&["sockets", "--all"]), none);
}

#[test]
fn rates_are_of_what_was_moved_between_two_looks() {
    let place = Place::new();
    let mut talker = place.talker();
    let mut command =
        place.beeline(&["sockets", "--watch", "--json", "--interval-ms", "200", "--count", "2"]);
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut look = || serde_json::from_str::<Json>(&lines.next().unwrap().unwrap()).unwrap();
    let first = look();
    assert!(first[0]["connections"][0].get("bytes_per_second").is_none());
    talker.step();
    let second = look();
    let connection = &second[0]["connections"][0];
    assert_eq!(connection["bytes"], 1_004_000);
    // A million bytes, in 200 ms at least.
    let rate = connection["bytes_per_second"].as_f64().unwrap();
    assert!(rate > 0.0 && rate <= 5_000_000.0, "{rate}");
    assert_eq!(second[0]["connections"][1]["bytes_per_second"], 0.0);
    assert!(watch.wait().unwrap().success());
}

#[test]
fn windows_are_ordered_down_and_up_and_who_has_not_done_it_is_named() {
    let place = Place::new();
    let config = DomainConfig { root: Some(place.0.path().to_owned()), name: "default".to_owned() };
    let domain = Domain::open(&config).unwrap();
    let board = Board::create(domain.path(), None).unwrap();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A process that does what it is ordered, and counts in which order.
        let obeying = scope.spawn(|| {
            let (mut last, mut obeyed) = (board.order(), Vec::new());
            while !has_ended.load(Ordering::Relaxed) {
                let order = board.order();
                if order != last {
                    obeyed.extend(order.windows());
                    board.carried_out(order);
                    last = order;
                }
                std::thread::yield_now();
            }
            obeyed
        });
        assert_eq!(place.succeed(&["sockets", "down"]), "windows are down in 1 processes\n");
        assert_eq!(board.windows_of_domain(), Windows::Down);
        let table = place.succeed(&["sockets"]);
        assert!(table.contains("windows of the domain are down; `beeline sockets up`"), "{table}");
        assert_eq!(place.succeed(&["sockets", "up"]), "windows are up in 1 processes\n");
        assert_eq!(board.windows_of_domain(), Windows::Up);
        let talker = place.talker();
        let (own, other) = (std::process::id().to_string(), talker.child.id().to_string());
        let one = place.succeed(&["sockets", "down", "--pid", &own]);
        assert_eq!((&*one, board.windows_of_domain()), ("windows are down in 1 processes\n", Windows::Up));
        let (code, out, err) = place.output(&["sockets", "up", "--timeout-ms", "50"]);
        assert_eq!((code, &*out), (Some(1), "windows are up in 1 processes\n"));
        assert!(err.contains(&format!("no answer from {other}, which do it when they run")), "{err}");
        let (code, _, err) = place.output(&["sockets", "down", "--pid", "1"]);
        assert!(code == Some(1) && err.contains("no process 1 has the socket library"), "{err}");
        has_ended.store(true, Ordering::Relaxed);
        let [down, up] = [Windows::Down, Windows::Up];
        assert_eq!(obeying.join().unwrap(), [down, up, down, up]);
    });
}
