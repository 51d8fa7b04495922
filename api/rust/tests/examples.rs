//! Every example that needs nobody else runs to its end, as a user runs it. `cargo test -p beeline-ipc` builds them beside this
//! test; with `--test examples` it builds none, and the tests fail where one is not there or older than its source.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn program(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let program = deps.parent().unwrap().parent().unwrap().join("examples").join(name);
    let remedy = "`cargo test -p beeline-ipc` builds it, with `--test examples` it does not";
    assert!(program.exists(), "{} is not built: {remedy}", program.display());
    if let Some(newer) = newer_source(&program) {
        panic!("{} is older than {newer}: {remedy}", program.display());
    }
    program
}

/// A source of a program that was changed, or taken away, after cargo had built it.
fn newer_source(program: &Path) -> Option<String> {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|it| it.modified());
    let built = changed(program).unwrap();
    // Cargo lists the sources of a program, those of its dependencies in the workspace too, in a file beside it:
    // `program: source source`, with a backslash in front of a space that is part of a name.
    let list = std::fs::read_to_string(program.with_extension("d")).unwrap();
    let (_, sources) = list.split_once(": ").unwrap();
    let sources = sources.replace("\\ ", "\0");
    let mut sources = sources.split_whitespace().map(|source| source.replace('\0', " "));
    sources.find(|source| changed(Path::new(source)).map_or(true, |changed| changed > built))
}

fn run(name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(program(name)).env("BEELINE_ROOT", folder.path()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{out}{err}", output.status);
    out.into_owned()
}

macro_rules! examples {
    ($($name:ident says $text:literal;)*) => {$(
        #[test]
        fn $name() {
            let out = run(stringify!($name));
            assert!(out.contains($text), "{out}");
        }
    )*};
}

examples! {
    admission says "1000 messages of a process that was let in by its connection";
    arena says "30000 messages of 10000 windows received by one thread";
    batch says "1000 messages in";
    bytes says "lines";
    fan_in says "10000 messages of 200 senders";
    forked says "as many in the child";
    notifications says "2000 changes told to two programs";
    readiness says "red: 4";
    segment says "5 changes of a table of 4 GiB";
    sleep says "ring 9";
    window says "100000 messages from another program";
}

#[cfg(feature = "rpc")]
examples! {
    calls says "40 + 2 = 42";
}

#[cfg(feature = "nic")]
examples! {
    nic_port says "1000 frames through the NIC";
}

#[test]
fn two_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let start = |role: &str| {
        let mut command = Command::new(program("two_terminals"));
        command.arg(role).env("BEELINE_ROOT", folder.path()).stdout(Stdio::piped()).spawn().unwrap()
    };
    // In either order: the sender waits for its receiver.
    let sender = start("send");
    let receiver = start("receive");
    assert!(sender.wait_with_output().unwrap().status.success());
    let received = receiver.wait_with_output().unwrap();
    assert!(received.status.success());
    assert_eq!(String::from_utf8(received.stdout).unwrap(), "40\n41\n42\n");
}
