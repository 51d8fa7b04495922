//! The program as people use it: real processes, real files, exit codes and messages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use beeline_mmio::StoreKernel;

/// A folder that everything of one test lives in, rendezvous included.
struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    fn new() -> Self {
        TestFolder { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn beeline(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
        let folder = self.folder.path();
        command.args(args).env("BEELINE_ROOT", folder).env("XDG_CACHE_HOME", folder).current_dir(folder);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.beeline(args).stdin(Stdio::null()).output().unwrap()
    }

    fn succeed(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "beeline {args:?}: {}\n{out}{err}", output.status);
        out.into_owned()
    }

    /// Standard error of a command line that is not one.
    fn refuse(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "beeline {args:?} should have been refused");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn fail(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "beeline {args:?} should have failed with 1");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

/// A classic pcap file of `sizes.len()` Ethernet frames.
fn capture(path: &Path, sizes: &[usize]) {
    let mut file = std::fs::File::create(path).unwrap();
    let header: [u32; 6] = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65535, 1];
    header.iter().for_each(|word| file.write_all(&word.to_le_bytes()).unwrap());
    for (number, size) in sizes.iter().enumerate() {
        let record = [number as u32, 0, *size as u32, *size as u32];
        record.iter().for_each(|word| file.write_all(&word.to_le_bytes()).unwrap());
        let mut frame: Vec<u8> = (0..*size).map(|i| (i * 7 + number) as u8).collect();
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8]);
        file.write_all(&frame).unwrap();
    }
}

/// A child that is ended with the test, however the test ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_capture_goes_through_every_interface_unchanged() {
    let folder = TestFolder::new();
    let sizes: Vec<usize> = (0..400).map(|i| [14, 60, 64, 1514, 9000, 200][i % 6] + i % 8).collect();
    capture(&folder.file("in.pcap"), &sizes);
    for interface in ["mmio", "kpio", "descriptor", "coherent"] {
        let args =
            ["send", "in.pcap", "--out", "out.pcap", "--interface", interface, "--adversary", "11", "--json"];
        let received: serde_json::Value = serde_json::from_str(&folder.succeed(&args)).unwrap();
        assert_eq!(received["frames"], 400, "{interface}");
        assert_eq!(received["result"], "complete, in order, unchanged");
    }
}

/// Kernels that can store to another process's memory here.
fn kernels() -> Vec<&'static str> {
    let usable = StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory());
    usable.map(StoreKernel::name).collect()
}

#[test]
fn a_kernel_is_taken_by_its_name_or_refused_with_those_there_are() {
    let folder = TestFolder::new();
    capture(&folder.file("in.pcap"), &[14, 64, 1000, 9000]);
    for kernel in kernels() {
        for (interface, named) in [("mmio", kernel), ("kpio", "cached"), ("descriptor", "-")] {
            let args = ["send", "in.pcap", "-o", "out.pcap", "--interface", interface, "--kernel", kernel];
            let text = folder.succeed(&[&args[..], &["--json"]].concat());
            let received: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(received["kernel"], named, "{received}");
            assert_eq!((&received["frames"], &received["fences"]), (&4.into(), &"none".into()), "{received}");
        }
    }
    std::fs::remove_file(folder.file("out.pcap")).unwrap();
    let foreign = if cfg!(target_arch = "aarch64") { "movdir64b" } else { "stnp" };
    for (name, why) in [("fastest", "there is no such store kernel"), (foreign, "lacks"), ("st64b", "st64b")]
    {
        for command in [&["send", "in.pcap", "-o", "out.pcap"][..], &["ping"], &["compare"]] {
            let message = folder.refuse(&[command, &["--kernel", name]].concat());
            let listed = format!("this machine has {}", kernels().join(", "));
            assert!(message.contains(why) && message.contains(&listed), "{message}");
        }
    }
    assert!(!folder.file("out.pcap").exists() && !folder.file("report.html").exists());
}

#[test]
fn fences_are_placed_by_mmio_and_refused_for_other_interfaces() {
    let folder = TestFolder::new();
    let sizes: Vec<usize> = (0..300).map(|i| 60 + i * 5).collect();
    capture(&folder.file("in.pcap"), &sizes);
    let send = ["send", "in.pcap", "-o", "out.pcap"];
    for policy in ["none", "per-wrap", "per-message", "per-line"] {
        let args = [&send[..], &["--fences", policy, "--adversary", "5", "--json"]].concat();
        let received: serde_json::Value = serde_json::from_str(&folder.succeed(&args)).unwrap();
        assert_eq!((&received["fences"], &received["frames"]), (&policy.into(), &300.into()), "{received}");
    }
    let words = folder.succeed(&[&send[..], &["--fences", "per-line", "--kernel", "cached"]].concat());
    assert!(words.contains("lines stored with cached, fences: per-line"), "{words}");
    std::fs::remove_file(folder.file("out.pcap")).unwrap();
    for interface in ["kpio", "descriptor"] {
        for command in [&send[..], &["ping"]] {
            let fences = ["--fences", "per-line", "--interface", interface];
            let message = folder.fail(&[command, &fences].concat());
            let expected = format!("--fences per-line means nothing to {interface}");
            assert!(message.contains(&expected) && message.contains("try: --interface mmio"), "{message}");
        }
    }
    assert!(!folder.file("out.pcap").exists(), "frames were sent although their fences are refused");
    assert!(
        folder.refuse(&["ping", "--fences", "sometimes"]).contains("none, per-wrap, per-message, per-line")
    );
}

#[test]
fn what_is_measured_names_its_kernel_and_its_fences() {
    let [host, nic, ..] = *beeline_mmio::cpu::allowed_cores() else { return };
    let (folder, cores) = (TestFolder::new(), format!("{host},{nic}"));
    // Not every kernel is the fastest, so a name that is not followed shows.
    for kernel in kernels() {
        let args = ["ping", "--size", "10", "--count", "10", "--kernel", kernel, "--fences", "per-message"];
        let rows = folder.succeed(&[&args[..], &["--cores", &cores, "--json", "--csv", "csv"]].concat());
        let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
        assert_eq!((&rows[0]["kernel"], &rows[0]["fences"]), (&kernel.into(), &"per-message".into()));
        let csv = std::fs::read_to_string(folder.file("csv/ping.csv")).unwrap();
        assert!(csv.contains(&format!("\nmeasured,mmio,{kernel},per-message,10,")), "{csv}");
        let args = ["compare", "--only", "transmit,check", "--quick", "--size", "64", "--kernel", kernel];
        let once = ["--rounds", "1", "--any-placement", "--cores", &cores, "--no-report", "--json"];
        let results = folder.succeed(&[&args[..], &once].concat());
        let results: serde_json::Value = serde_json::from_str(&results).unwrap();
        let rows = results["transmits"].as_array().unwrap();
        let found: Vec<_> = rows.iter().map(|row| row["kernel"].as_str().unwrap()).collect();
        assert_eq!(found, [kernel, "cached", "-"]);
        assert_eq!(results["checks"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn a_bad_capture_is_refused_by_name_before_anything_is_sent() {
    let folder = TestFolder::new();
    capture(&folder.file("whole.pcap"), &[100, 100, 100]);
    let whole = std::fs::read(folder.file("whole.pcap")).unwrap();
    std::fs::write(folder.file("cut.pcap"), &whole[..whole.len() - 7]).unwrap();
    std::fs::write(folder.file("alien.pcap"), b"this is no capture, it is a sentence").unwrap();
    capture(&folder.file("long.pcap"), &[100, 60_000]);
    capture(&folder.file("empty.pcap"), &[]);
    for name in ["cut.pcap", "alien.pcap", "long.pcap", "empty.pcap", "missing.pcap"] {
        let message = folder.fail(&["send", name, "--out", "out.pcap"]);
        assert!(message.contains(name), "{name}: {message}");
        assert!(!folder.file("out.pcap").exists(), "{name} was sent although it is bad");
    }
    let message = folder.fail(&["send", "whole.pcap", "--out", "whole.pcap"]);
    assert!(message.contains("same file"), "{message}");
    // Another name of the same file is the same file.
    std::fs::hard_link(folder.file("whole.pcap"), folder.file("link.pcap")).unwrap();
    let message = folder.fail(&["send", "whole.pcap", "--out", "link.pcap"]);
    assert!(message.contains("same file"), "{message}");
    assert_eq!(std::fs::read(folder.file("whole.pcap")).unwrap(), whole);
}

#[test]
fn a_pipe_is_refused_at_once_and_not_waited_for() {
    let folder = TestFolder::new();
    let pipe = folder.file("in.pcap");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let err = folder.fail(&["send", "--out", "out.pcap", "in.pcap"]);
    assert!(err.contains("in.pcap: not a regular file") && err.contains("try: "), "{err}");
}

#[test]
fn three_processes_move_frames_in_order_and_complete() {
    let folder = TestFolder::new();
    let args = ["compare", "--only", "check", "--quick", "--no-report", "--json"];
    let results: serde_json::Value = serde_json::from_str(&folder.succeed(&args)).unwrap();
    let checks = results["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 3);
    for check in checks {
        assert_eq!(check["result"], "complete, in order, unchanged", "{check}");
    }
}

#[test]
fn a_running_nic_answers_stat_and_ends_with_its_standard_input() {
    let folder = TestFolder::new();
    let mut command = folder.beeline(&["nic", "--name", "lab", "--idle", "sleep", "--until-stdin-closes"]);
    let mut nic = Ended(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(nic.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let snapshot: serde_json::Value =
        serde_json::from_str(&folder.succeed(&["stat", "--name", "lab", "--once", "--json"])).unwrap();
    assert_eq!(snapshot["service"], "lab");
    assert_eq!(snapshot["pid"], nic.0.id());
    assert!(folder.succeed(&["stat", "--name", "lab", "--once", "--all"]).contains("rounds"));
    drop(nic.0.stdin.take());
    assert!(nic.0.wait().unwrap().success());
    let message = folder.fail(&["stat", "--name", "lab", "--once"]);
    assert!(message.contains("lab") && message.contains("try: beeline nic --name lab"), "{message}");
}

#[test]
fn doctor_and_generate_say_what_they_should() {
    let folder = TestFolder::new();
    let words = folder.succeed(&["doctor"]);
    for section in ["Machine", "Store kernels", "Tuning", "Memory", "Processes", "Network", "Real BARs"] {
        assert!(words.contains(section), "doctor is silent about {section}:\n{words}");
    }
    assert!(words.lines().all(|line| line.chars().count() <= 100), "wider than 100 columns:\n{words}");
    assert!(words.contains("this mapping is cached"), "doctor did not measure shared memory:\n{words}");
    assert!(words.lines().last().unwrap().starts_with("Beeline "), "doctor comes to no conclusion:\n{words}");
    let message = folder.fail(&["doctor", "--bar", "nonsense"]);
    assert!(message.contains("nonsense") && message.contains("try:"), "{message}");
    folder.succeed(&["generate", "man", "--out", "man"]);
    assert!(folder.file("man/beeline-send.1").is_file());
    let completions = folder.succeed(&["generate", "completions", "bash"]);
    assert!(completions.contains("_beeline") && completions.contains("nt-avx512 movdir64b"), "{completions}");
    // The pages name what there is anywhere, not what this CPU has.
    for (page, options) in [("ping", 2), ("send", 2), ("compare", 1)] {
        let text = std::fs::read_to_string(folder.file(&format!("man/beeline-{page}.1"))).unwrap();
        let text = text.replace('\\', "");
        let found = ["--kernel", "--fences"].into_iter().filter(|option| text.contains(option)).count();
        assert!(found == options && text.contains("stnp"), "{page}: {text}");
        assert!(text.contains(&format!("beeline {page}")), "{page} has no examples");
    }
}

/// What doctor's JSON says of the tuning.
fn tuning(folder: &TestFolder, args: &[&str]) -> serde_json::Value {
    let findings: serde_json::Value = serde_json::from_str(&folder.succeed(args)).unwrap();
    let of_tuning = findings.as_array().unwrap().iter().find(|finding| finding["section"] == "Tuning");
    of_tuning.unwrap()["measured"].clone()
}

/// Whether anything can be timed is the machine's business; whatever was, is kept, and whatever is in the file stops nothing.
#[test]
fn doctor_keeps_what_it_timed_and_outlives_any_file_in_its_place() {
    let folder = TestFolder::new();
    let file = folder.file("beeline/tuning.json");
    for garbage in [None, Some("{}"), Some("\0\0"), Some("[[[[[[[[")] {
        if let Some(garbage) = garbage {
            std::fs::create_dir_all(folder.file("beeline")).unwrap();
            std::fs::write(&file, garbage).unwrap();
        }
        let timed = tuning(&folder, &["doctor", "--json"]);
        if timed["basis"] != "timed" {
            assert_eq!((&timed["basis"], &timed["found_unix_s"]), (&"untimed".into(), &().into()), "{timed}");
            continue;
        }
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(kept.contains("\"machine\"") && !timed["timings"].as_array().unwrap().is_empty(), "{kept}");
        let again = tuning(&folder, &["doctor", "--json"]);
        if again["basis"] == "kept" {
            assert_eq!(again["timings"], timed["timings"]);
        }
        std::fs::remove_file(&file).unwrap();
    }
    let named = folder.beeline(&["doctor"]).env("BEELINE_TUNING", "prefetch=sideways").output().unwrap();
    assert!(String::from_utf8_lossy(&named.stdout).contains("`sideways` is no way to prefetch"), "{named:?}");
}

/// A file in the place of a BAR: it is mapped, but nothing is stored to it until its scratch bytes are named.
#[test]
fn doctor_measures_a_bar_only_where_it_may() {
    let folder = TestFolder::new();
    let function = folder.file("sys/bus/pci/devices/0000:41:00.0");
    std::fs::create_dir_all(&function).unwrap();
    let bar = function.join("resource2_wc");
    std::fs::write(&bar, [0; 8192]).unwrap();
    let name = bar.to_str().unwrap();
    let findings = |args: &[&str]| -> Vec<serde_json::Value> {
        let args = [&["doctor", "--json", "--bar", name], args].concat();
        let all: Vec<serde_json::Value> = serde_json::from_str(&folder.succeed(&args)).unwrap();
        all.into_iter().filter(|finding| finding["section"] == "Real BARs").collect()
    };
    let mapped = findings(&[]);
    assert!(mapped.iter().all(|finding| finding["measured"].is_null()), "{mapped:?}");
    assert_eq!(std::fs::read(&bar).unwrap(), [0; 8192]);
    let measured = findings(&["--scratch", "4096"]);
    // A file is cached, so it is not the write-combining mapping that its name promises.
    let report = measured.iter().find(|finding| !finding["measured"].is_null()).unwrap();
    assert_eq!(report["measured"]["memory_type"], "cached");
    assert_eq!(report["state"], "limited", "{report}");
    let message = folder.fail(&["doctor", "--bar", name, "--scratch", "8192"]);
    assert!(message.contains("a multiple of 64 up to 7168"), "{message}");
}

#[test]
fn the_wire_is_measured_in_every_form_of_result() {
    // The NIC and the measuring thread each want a core.
    let [host, nic, ..] = *beeline_mmio::cpu::allowed_cores() else { return };
    let (folder, cores) = (TestFolder::new(), format!("{host},{nic}"));
    let mut args = vec!["compare", "--only", "transmit", "--quick", "--size", "64", "--json", "--csv", "csv"];
    args.extend(["--rounds", "2", "--any-placement", "--cores", &cores]);
    let results: serde_json::Value = serde_json::from_str(&folder.succeed(&args)).unwrap();
    // Tests run beside each other, so the two rounds may have found two placements.
    let rows = results["transmits"].as_array().unwrap();
    let count = |row: &serde_json::Value| row["frames"].as_u64().unwrap();
    assert_eq!(rows.iter().map(count).sum::<u64>(), 3 * 2 * 78_125, "{results}");
    assert!(rows.iter().all(|row| row["frames_per_s"].as_f64().unwrap() > 0.0), "{results}");
    let csv = std::fs::read_to_string(folder.file("csv/transmit.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + rows.len(), "{csv}");
    let csv = std::fs::read_to_string(folder.file("csv/rounds.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 3 * 2, "{csv}");
    let report = std::fs::read_to_string(folder.file("report.html")).unwrap();
    assert!(report.contains("Onto the wire") && report.contains("<svg"));
    // The run that was kept, shown again: the same page and the same results.
    let again = folder.succeed(&["compare", "--read", "csv", "--json", "--report", "again.html"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&again).unwrap(), results);
    assert_eq!(std::fs::read_to_string(folder.file("again.html")).unwrap(), report);
    let usage = folder.beeline(&["compare", "--read", "csv", "--quick"]).output().unwrap();
    assert_eq!(usage.status.code(), Some(2), "nothing is measured, so nothing says how");
    std::fs::write(folder.file("csv/rounds.csv"), csv.replacen("frames/s", "frames/h", 1)).unwrap();
    let message = folder.fail(&["compare", "--read", "csv", "--no-report"]);
    assert!(message.contains("csv/rounds.csv, line 2: column unit: \"frames/h\" is not one of"), "{message}");
}
