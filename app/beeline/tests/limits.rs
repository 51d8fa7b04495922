//! The program under limits of the shell that starts it: what they forbid is said in words.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A shell that sets a limit and becomes the program, in a folder of the test's.
fn limited(folder: &Path, limit: &str, args: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("ulimit {limit} && exec \"$0\" {args}"), env!("CARGO_BIN_EXE_beeline")]);
    command.env("BEELINE_ROOT", folder.join("root")).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

fn fails_with(output: &Output, words: &[&str]) {
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.signal(), output.status.code()), (None, Some(1)), "{err}");
    for word in words {
        assert!(err.contains(word), "no {word:?} in: {err}");
    }
    assert!(!err.contains("panicked"), "{err}");
}

/// A capture of so many frames of 1000 bytes.
fn capture(path: &Path, frames: usize) {
    let head = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65535, 1];
    let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    for _ in 0..frames {
        bytes.extend([0_u32, 0, 1000, 1000].iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend([2; 1000]);
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn file_that_may_not_grow_is_a_failure_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // The capture is longer than the limit, and the windows of the NIC are not. In units of 1024 bytes.
    capture(&path.join("in.pcap"), 20_000);
    fails_with(
        &limited(path, "-f 8192", "send in.pcap --out out.pcap"),
        &["cannot write", "out.pcap", "File too large"],
    );
    fails_with(
        &limited(path, "-f 4", "platforms epyc-7543-cx6dx > out"),
        &["standard output", "File too large"],
    );
    assert!(path.join("out").metadata().unwrap().len() <= 4096);
}

#[test]
fn memory_between_processes_that_the_limit_of_files_forbids_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = limited(folder.path(), "-f 4", "ping --count 10 --cores 0,0");
    fails_with(&output, &["shared memory", "files of 4096 bytes (RLIMIT_FSIZE)", "ulimit -f"]);
}

#[test]
fn address_space_that_is_too_small_is_named_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    for (kib, args) in [
        (40_000, "stat --once"),
        (40_000, "nic"),
        (130_000, "kv serve --max-memory 64MiB"),
        (1_000_000, "figures"),
    ] {
        let output = limited(folder.path(), &format!("-v {kib}"), args);
        fails_with(&output, &["of address space (RLIMIT_AS)", "try: ulimit -v"]);
        assert!(!folder.path().join("root").exists(), "beeline {args} opened a domain");
    }
}

#[test]
fn commands_get_along_with_the_address_space_that_they_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    for args in ["ping --count 10 --cores 0,0", "platforms", "trace", "sim"] {
        let output = limited(folder.path(), "-v 131072", args);
        assert!(output.status.success(), "beeline {args}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
