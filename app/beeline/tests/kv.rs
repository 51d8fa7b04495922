//! `beeline kv` as people use it: a store in a process of its own, calls from others, exit codes and messages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A folder that everything of one test lives in, rendezvous included.
struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    fn new() -> Self {
        TestFolder { folder: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
        command.arg("kv").args(args).env("BEELINE_ROOT", self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Exit code, standard output, standard error.
    fn run(&self, args: &[&str]) -> (Option<i32>, Vec<u8>, String) {
        parts(self.command(args).output().unwrap())
    }

    fn run_with(&self, args: &[&str], input: &[u8]) -> (Option<i32>, Vec<u8>, String) {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that refuses before it has read everything closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(input);
        parts(child.wait_with_output().unwrap())
    }

    fn json(&self, args: &[&str]) -> (Option<i32>, Value) {
        let (code, out, err) = self.run(args);
        (code, serde_json::from_slice(&out).unwrap_or_else(|_| panic!("kv {args:?}: {err}")))
    }

    fn serve(&self, args: &[&str]) -> Store {
        let args: Vec<&str> = ["serve"].iter().chain(args).copied().collect();
        let mut child = self.command(&args).stderr(Stdio::piped()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        err.read_line(&mut said).unwrap();
        assert!(said.starts_with("store "), "kv {args:?}: {said}");
        Store { child, err, said }
    }
}

fn parts(output: Output) -> (Option<i32>, Vec<u8>, String) {
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

/// A store that ends with the test, however the test ends.
struct Store {
    child: Child,
    err: BufReader<ChildStderr>,
    said: String,
}

impl Store {
    /// Ends it as Ctrl-C does; what it says then.
    fn stop(mut self) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut last = String::new();
        self.err.read_to_string(&mut last).unwrap();
        (self.child.wait().unwrap(), last)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const DONE: (Option<i32>, Vec<u8>, String) = (Some(0), Vec::new(), String::new());

#[test]
fn what_is_set_is_got_until_it_is_deleted() {
    let folder = TestFolder::new();
    let store = folder.serve(&[]);
    assert_eq!(store.said, "store kv in domain default, up to 1.0 GiB; end it with Ctrl-C\n");
    assert_eq!(folder.run(&["set", "user:1", "Ada Lovelace"]), DONE);
    assert_eq!(folder.run(&["get", "user:1"]), (Some(0), b"Ada Lovelace".to_vec(), String::new()));
    let picture: Vec<u8> = (0..300_000u32).map(|index| (index * 7 % 251) as u8).collect();
    assert_eq!(folder.run_with(&["set", "picture"], &picture), DONE);
    assert!(folder.run(&["get", "picture"]).1 == picture);
    assert_eq!(folder.run(&["set", "--", "-5", "-6"]), DONE);
    assert_eq!(folder.run(&["get", "--", "-5"]).1, b"-6");
    assert_eq!(folder.run(&["delete", "user:1"]), DONE);
    for action in ["get", "delete"] {
        let (code, out, err) = folder.run(&[action, "user:1"]);
        assert_eq!((code, out), (Some(3), Vec::new()));
        assert_eq!(err, "beeline: nothing under key user:1 in store kv\n");
    }
    let (status, last) = store.stop();
    assert!(status.success(), "{status}: {last}");
    assert!(
        last.starts_with("stopped with 2 items in ")
            && last.contains("; 3 hits, 1 misses, 3 sets, 1 deletes"),
        "{last}"
    );
}

#[test]
fn raw_keys_are_those_that_text_keys_are_padded_to() {
    let folder = TestFolder::new();
    let _store = folder.serve(&["--name", "raw", "--domain", "lab", "--workers", "2", "--secret-hash"]);
    let named = ["--name", "raw", "--domain", "lab"];
    let run = |args: &[&str]| folder.run(&[args, &named].concat());
    assert_eq!(run(&["set", "ab", "text"]), DONE);
    assert_eq!(run(&["get", "--hex", "61620000000000000000000000000000"]).1, b"text");
    assert_eq!(run(&["get", "--hex", "61620000000000000000000000000001"]).0, Some(3));
    let (code, _, err) = run(&["get", "--hex", "6162"]);
    assert!(code == Some(1) && err.contains("32 hexadecimal digits"), "{err}");
    let (code, _, err) = run(&["get", "a key of 17 bytes"]);
    assert!(
        code == Some(1) && err.contains("17 bytes; it must have 1 to 16") && err.contains("--hex"),
        "{err}"
    );
}

#[test]
fn results_are_json_when_asked_for() {
    let folder = TestFolder::new();
    let _store = folder.serve(&["--max-memory", "1MiB", "--max-value-bytes", "1000"]);
    let stored = json!({ "key": "k", "stored": true, "bytes": 1 });
    assert_eq!(folder.json(&["set", "k", "v", "--json"]), (Some(0), stored));
    let got = json!({ "key": "k", "found": true, "bytes": 1, "text": "v" });
    assert_eq!(folder.json(&["get", "--json", "k"]), (Some(0), got));
    assert_eq!(folder.run_with(&["set", "k"], b"\xff\0"), DONE);
    let got = json!({ "key": "k", "found": true, "bytes": 2, "hex": "ff00" });
    assert_eq!(folder.json(&["get", "--json", "k"]), (Some(0), got));
    let absent = json!({ "key": "other", "found": false });
    assert_eq!(folder.json(&["get", "--json", "other"]), (Some(3), absent.clone()));
    assert_eq!(folder.json(&["delete", "--json", "other"]), (Some(3), absent));
    let (code, stats) = folder.json(&["stats", "--json"]);
    let counts = ["items", "hits", "misses", "sets", "refused", "deletes", "workers", "max_value_bytes"];
    let counts: Vec<u64> = counts.iter().map(|name| stats[name].as_u64().unwrap()).collect();
    assert_eq!((code, counts), (Some(0), vec![1, 2, 1, 2, 0, 0, 1, 1000]));
    assert_eq!(stats["max_memory_bytes"], 1 << 20);
    let deleted = json!({ "key": "k", "found": true, "deleted": true });
    assert_eq!(folder.json(&["delete", "--json", "k"]), (Some(0), deleted));
    let (_, text, _) = folder.run(&["stats"]);
    assert!(String::from_utf8(text).unwrap().starts_with("items    0\nmemory   "));
}

#[test]
fn what_a_store_refuses_is_said() {
    let folder = TestFolder::new();
    let _store = folder.serve(&["--max-memory", "64KiB", "--max-value-bytes", "60000"]);
    let (code, _, err) = folder.run_with(&["set", "k"], &[7; 60_001]);
    assert!(
        code == Some(1) && err.contains("a value of 60001 bytes; this store takes at most 60000"),
        "{err}"
    );
    let (code, _, err) = folder.run_with(&["set", "k"], &vec![7; 2 << 20]);
    assert!(code == Some(1) && err.contains("longer than 1048560 bytes"), "{err}");
    assert_eq!(folder.run_with(&["set", "k"], &[7; 50_000]), DONE);
    let (code, _, err) = folder.run_with(&["set", "l"], &[7; 50_000]);
    assert!(
        code == Some(1) && err.contains("the store is full") && err.contains("serve with more memory"),
        "{err}"
    );
    assert_eq!(folder.run(&["get", "k"]).1, [7; 50_000]);
}

#[test]
fn a_store_that_is_not_there_is_named_with_what_to_do() {
    let folder = TestFolder::new();
    let (code, _, err) = folder.run(&["get", "k", "--name", "nobody", "--timeout-ms", "20"]);
    assert_eq!(code, Some(1));
    assert!(err.starts_with("beeline: cannot reach store nobody in domain default: "), "{err}");
    assert!(err.contains("try: beeline kv serve --name nobody --domain default"), "{err}");
    let store = folder.serve(&[]);
    let (code, _, err) = folder.run(&["serve"]);
    assert!(
        code == Some(1) && err.starts_with("beeline: cannot serve store kv in domain default: "),
        "{err}"
    );
    drop(store);
    // The name of a store that was killed is free.
    let _store = folder.serve(&[]);
    assert_eq!(folder.run(&["get", "k"]).0, Some(3));
}

#[test]
fn store_that_comes_within_the_timeout_answers_and_one_that_does_not_is_not_waited_for_longer() {
    let folder = TestFolder::new();
    let mut get = folder.command(&["get", "k", "--timeout-ms", "60000"]);
    let get = get.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The client makes the folder of the domain and looks once before it waits.
    while !folder.folder.path().join("default").is_dir() {
        std::thread::yield_now();
    }
    let _store = folder.serve(&[]);
    let (code, _, err) = parts(get.wait_with_output().unwrap());
    assert_eq!(code, Some(3), "{err}");
    let called = Instant::now();
    let (code, _, err) = folder.run(&["get", "k", "--name", "nobody", "--timeout-ms", "1200"]);
    assert!(code == Some(1) && called.elapsed() >= Duration::from_millis(1200), "{err}");
    assert!(err.starts_with("waiting for store nobody in domain default, 1.2 s at most"), "{err}");
}

#[test]
fn command_lines_that_mean_nothing_are_refused() {
    let folder = TestFolder::new();
    for args in [
        &["serve", "--max-memory", "lots"][..],
        &["serve", "--max-value-bytes", "1048561"],
        &["get"],
        &["put", "k", "v"],
        &["serve", "--workers", "0"],
        &["serve", "--allow-uid", "root"],
        &["get", "k", "--owner", "4294967295"],
    ] {
        assert_eq!(folder.run(args).0, Some(2), "{args:?}");
    }
    let (code, _, err) = folder.run(&["serve", "--workers", "2", "--core", "0"]);
    assert!(code == Some(1) && err.contains("1 cores for 2 threads"), "{err}");
    let (code, _, err) = folder.run(&["serve", "--core", "1000000"]);
    assert!(code == Some(1) && err.contains("core 1000000"), "{err}");
    let (code, _, err) = folder.run(&["serve", "--preallocate", "--workers", "2"]);
    assert!(code == Some(1) && err.contains("--preallocate with 2 threads"), "{err}");
    let (code, _, err) = folder.run(&["serve", "--max-memory", "1KiB"]);
    assert!(code == Some(1) && err.contains("at least 65536"), "{err}");
}

#[test]
fn every_command_has_its_help_and_its_man_page() {
    let folder = TestFolder::new();
    for args in [
        &["--help"][..],
        &["serve", "--help"],
        &["get", "--help"],
        &["set", "-h"],
        &["delete", "-h"],
        &["stats", "-h"],
    ] {
        let (code, out, _) = folder.run(args);
        assert!(code == Some(0) && out.len() > 200, "{args:?}");
    }
    let examples = String::from_utf8(folder.run(&["--help"]).1).unwrap();
    assert!(
        examples.contains("beeline kv set user:1") && examples.contains("3 nothing under the key"),
        "{examples}"
    );
    let folder = folder.folder.path().join("man");
    let mut generate = Command::new(env!("CARGO_BIN_EXE_beeline"));
    assert!(generate.args(["generate", "man", "--out"]).arg(&folder).status().unwrap().success());
    for page in ["beeline-kv.1", "beeline-kv-serve.1", "beeline-kv-get.1", "beeline-kv-set.1"] {
        assert!(folder.join(page).is_file(), "{page}");
    }
}
