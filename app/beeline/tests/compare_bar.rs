//! `beeline compare --bar` as people use it, into a plain file: what is printed, what is kept, what is refused. No times.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use beeline_mmio::StoreKernel;
use serde_json::Value;

/// A folder for everything of one test.
struct ScratchFolder {
    folder: tempfile::TempDir,
}

impl ScratchFolder {
    fn new() -> Self {
        ScratchFolder { folder: tempfile::tempdir_in("/dev/shm").unwrap() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
        // Wherever this test may run.
        let core = beeline_mmio::cpu::allowed_cores()[0].to_string();
        command.arg("compare").args(args).args(["--cores", &core]).current_dir(self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn succeed(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "beeline compare {args:?}: {}\n{out}{err}", output.status);
        out.into_owned()
    }

    fn fail(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "beeline compare {args:?}: {err}");
        err
    }
}

fn kernels() -> usize {
    StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()).count()
}

#[test]
fn file_is_measured_by_every_kernel_policy_and_size_and_is_as_it_was() {
    let folder = ScratchFolder::new();
    let common = ["--bar", "bar", "--stores", "--bytes", "16KiB", "--seconds", "0.01", "--rounds", "2"];
    let text = folder.succeed(&common);
    assert!(
        text.contains("bar (made by this run), 16.0 KiB from 0x0 on. A file: no device's figures."),
        "{text}"
    );
    assert!(text.contains("the bytes that were there are there again"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let rows = |policy: &str| text.lines().filter(|line| line.contains(policy)).count();
    for policy in ["none ", "per-wrap ", "per-message ", "per-line "] {
        assert_eq!(rows(policy), kernels(), "{policy}:\n{text}");
    }
    assert!(!folder.file("report.html").exists(), "the report is of interfaces");

    let before = std::fs::read(folder.file("bar")).unwrap();
    let json = folder.succeed(&[&common[..], &["--json", "--csv", "kept"]].concat());
    assert_eq!(std::fs::read(folder.file("bar")).unwrap(), before);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["bar"]["is_device"], &json["bar"]["mapped_as"]), (&false.into(), &"file".into()));
    assert_eq!((&json["bar"]["is_kept"], &json["mapping"]["memory_type"]), (&true.into(), &"cached".into()));
    let stores = json["stores"].as_array().unwrap();
    assert_eq!(stores.len(), kernels() * 4 * 8);
    assert!(stores.iter().all(|row| row["gbps"].as_f64().unwrap() > 0.0));
    let sizes: Vec<u64> = stores[..8].iter().map(|row| row["message_bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [64, 128, 256, 512, 1024, 2048, 4096, 8192]);
    assert_eq!((&stores[0]["kernel"], &stores[8]["fences"]), (&"cached".into(), &"per-wrap".into()));
    let reads = json["reads"].as_array().unwrap();
    assert_eq!(reads.len(), kernels());
    assert!(reads.iter().all(|row| row["wrong"] == 0 && row["lines"].as_u64().unwrap() >= 32), "{reads:?}");

    let lines = |name: &str| {
        let text = std::fs::read_to_string(folder.file("kept").join(name)).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (stores, reads) = (lines("bar_stores.csv"), lines("bar_reads.csv"));
    assert_eq!(stores[0], "round,kernel,fences,message_bytes,messages,seconds,gbps");
    assert_eq!(reads[0], "round,kernel,lines,min_ns,p50_ns,p99_ns,p999_ns,max_ns,wrong");
    assert_eq!((stores.len(), reads.len()), (1 + 2 * kernels() * 4 * 8, 1 + 2 * kernels()));
    assert!(stores[1].starts_with("0,cached,none,64,"), "{}", stores[1]);
    // The second round goes backwards.
    let last = stores.last().unwrap();
    assert!(last.starts_with("1,cached,none,64,"), "{last}");
}

#[test]
fn sizes_that_do_not_fit_are_left_out_and_one_kernel_is_measured_alone() {
    let folder = ScratchFolder::new();
    let args =
        ["--bar", "bar", "--stores", "--bytes", "4KiB", "--seconds", "0.01", "--rounds", "1", "--json"];
    let json = folder.succeed(&[&args[..], &["--kernel", "cached"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let stores = json["stores"].as_array().unwrap();
    assert_eq!((stores.len(), json["reads"].as_array().unwrap().len()), (4 * 7, 1));
    let quick = folder.succeed(&[&args[..], &["--kernel", "cached", "--quick"]].concat());
    let quick: Value = serde_json::from_str(&quick).unwrap();
    assert_eq!(quick["stores"].as_array().unwrap().len(), 4 * 2);
}

#[test]
fn what_could_do_harm_is_refused_in_one_sentence() {
    let folder = ScratchFolder::new();
    std::fs::write(folder.file("letters"), "dear reader ".repeat(1000)).unwrap();
    let refused = |args: &[&str]| folder.fail(1, &[args, &["--stores", "--seconds", "0.01"]].concat());
    for (args, expected) in [
        (&["--bar", "/dev/mem"][..], "beeline: /dev/mem is all of this machine's memory and is never opened"),
        (&["--bar", "/dev/zero"], "beeline: /dev/zero is a character device, not a BAR"),
        (&["--bar", "ffff:ff:1f.7"], "beeline: no PCI function has the address ffff:ff:1f.7"),
        (&["--bar", "letters", "--bytes", "4KiB"], "letters has 12000 bytes that this program did not write"),
        (
            &["--bar", "letters", "--bytes", "16KiB", "--may-overwrite"],
            "reach beyond letters, which has 12000",
        ),
        (&["--bar", "new", "--bytes", "5KiB"], "--bytes 5120 is no power of two"),
        (&["--bar", "new", "--region", "2"], "new is a plain file and has no regions"),
        (&["--bar", "none/new"], "none/new cannot be used: No such file"),
    ] {
        let message = refused(args);
        assert!(message.contains(expected), "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(!folder.file("new").exists());
    let kept = std::fs::read(folder.file("letters")).unwrap();
    let args = ["--bar", "letters", "--stores", "--seconds", "0.01", "--rounds", "1", "--may-overwrite"];
    folder.succeed(&args);
    assert_eq!(std::fs::read(folder.file("letters")).unwrap(), kept, "restored");
}

#[test]
fn options_of_a_bar_go_together_and_with_nothing_of_interfaces() {
    let folder = ScratchFolder::new();
    for args in [
        &["--bar", "bar"][..],
        &["--stores"],
        &["--region", "2"],
        &["--bar", "bar", "--stores", "--only", "rate"],
        &["--bar", "bar", "--stores", "--size", "64"],
        &["--bar", "bar", "--stores", "--seconds", "0"],
        &["--bar", "bar", "--stores", "--seconds", "nan"],
        &["--bar", "bar", "--stores", "--region", "6"],
    ] {
        folder.fail(2, args);
    }
    assert!(!folder.file("bar").exists());
}

/// The run is ended as soon as it has stored something, long before its time is over.
#[test]
fn signal_ends_the_run_with_the_bytes_restored() {
    let folder = ScratchFolder::new();
    folder.succeed(&["--bar", "bar", "--stores", "--bytes", "64KiB", "--seconds", "0.01", "--rounds", "1"]);
    let before = std::fs::read(folder.file("bar")).unwrap();
    let args = ["--bar", "bar", "--stores", "--bytes", "64KiB", "--seconds", "3600", "--rounds", "1000"];
    let running = folder.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while std::fs::read(folder.file("bar")).unwrap() == before {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = running.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{message}");
    assert!(message.contains("ended by a signal; the bytes that were there are there again"), "{message}");
    assert_eq!(std::fs::read(folder.file("bar")).unwrap(), before);
}
