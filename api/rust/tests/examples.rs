//! Every example that needs nobody else runs to its end, as a user runs it. Cargo has built them beside this test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

fn program(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let program = deps.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is not built; `cargo test -p beeline-ipc` builds it", program.display());
    program
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
