use std::fs;

use beeline_floor::rounds::{Round, Rounds};
use beeline_session::{Rated, new_times};
use tempfile::TempDir;

use super::*;
use crate::compare::results::sample;
use crate::compare::rows::{NicSample, Sent, StoreSample, Taken};
use crate::compare::{report, summary, table};

/// A round of a part, with values that need all their digits.
fn round<S>((placement, number): (Placement, u32), samples: Vec<S>) -> Round<Taken<S>> {
    let taken = Taken { bare_copy_ns: 500.0 / 7.0, samples };
    Round { placement, line_ns: 400.0 / f64::from(number), taken }
}

/// Placements of three rounds, and their numbers from one.
const ROUNDS_TAKEN: [(Placement, u32); 3] = [(Placement::Near, 1), (Placement::Far, 2), (Placement::Near, 3)];

fn store_samples(number: u32) -> Vec<StoreSample> {
    let sample = |(policy, receiver)| StoreSample {
        policy,
        receiver,
        kernel: "cached",
        message_bytes: 64,
        messages_per_s: 1e9 / 3.0 / f64::from(number),
    };
    [("none", false), ("per-line", true)].map(sample).into()
}

fn nic_samples(number: u32, is_there_and_back: bool) -> Vec<NicSample> {
    let mut samples = Vec::new();
    for (interface, delay) in [(Interface::Mmio, 0), (Interface::Kpio, 100), (Interface::Descriptor, 200)] {
        let sent = Sent { interface, kernel: "-", frame_bytes: 64 };
        let mut times = new_times();
        times.record_n(u64::from(200 + 100 * number) + delay, 100).unwrap();
        let seconds = f64::from(number) / 7.0;
        samples.push(NicSample::Rate(sent, Rated { frames: 1000, seconds, host_ns_per_frame: 5.0 / 3.0 }));
        if is_there_and_back {
            samples.extend(LATENCY_KINDS.map(|kind| NicSample::Latency(sent, kind, times.clone())));
        }
    }
    samples
}

/// A run of three rounds a part, near and far.
fn run() -> Results {
    let mut results = Results { floors: Vec::new(), dropped: Vec::new(), ..sample::sample() };
    (results.stores, results.latencies, results.rates, results.transmits) = Default::default();
    "kept by \"hand\", at 1/3\nover two lines".clone_into(&mut results.kernels[0].method);
    let kept = ROUNDS_TAKEN.map(|taken| round(taken, store_samples(taken.1)));
    results.add_stores(&Rounds { kept: kept.into(), dropped: 2 });
    let nic = |is_there_and_back| {
        let kept = ROUNDS_TAKEN.map(|taken| round(taken, nic_samples(taken.1, is_there_and_back)));
        Rounds { kept: kept.into(), dropped: 0 }
    };
    results.add_there_and_back(&nic(true));
    results.add_transmits(&nic(false));
    results
}

fn keep(results: &Results) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in results.csv() {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Reads a kept run after a file of it was changed, and gives the error.
fn error_after(file: &str, change: impl Fn(&str) -> String) -> String {
    let folder = keep(&run());
    let path = folder.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed, "{file} was to be changed");
    fs::write(&path, changed).unwrap();
    let error = read(folder.path()).expect_err("a changed file is refused").to_string();
    assert!(error.contains("\n  try: name a folder as this version's"), "{error}");
    error.replace(folder.path().to_str().unwrap(), "DIR")
}

#[test]
fn kept_run_gives_the_same_tables_words_page_and_json() {
    let results = run();
    let read = read(keep(&results).path()).unwrap();
    assert_eq!(table::render(&read), table::render(&results));
    assert_eq!(summary::render(&read), summary::render(&results));
    assert!(summary::render(&read).contains("One way, near: mmio first"), "{}", summary::render(&read));
    assert_eq!(report::render(&read), report::render(&results));
    assert_eq!(serde_json::to_string(&read).unwrap(), serde_json::to_string(&results).unwrap());
}

#[test]
fn run_of_one_part_is_read_back() {
    let mut results = sample::empty();
    let only = run();
    (results.floors, results.dropped) = (only.floors, only.dropped);
    assert!(read(keep(&results).path()).unwrap().latencies.is_empty());
}

#[test]
fn error_names_file_line_and_column() {
    let second = |text: &str, from: &str, to: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[2] = lines[2].replace(from, to);
        lines.join("\n") + "\n"
    };
    let error = error_after("latency.csv", |text| second(text, ",round trip,", ",there,"));
    assert!(
        error.starts_with("DIR/latency.csv, line 3: column way: \"there\" is not one of one-way, round trip"),
        "{error}"
    );
    let error = error_after("latency.csv", |text| second(text, "near", "here"));
    assert!(error.contains("line 3: column placement: \"here\" is not one of near, far, shared"), "{error}");
    let error = error_after("floor.csv", |text| second(text, ",200,", ",-200,"));
    assert!(error.contains("line 3: column bare_line_ns: \"-200\" is not a number, zero or more"), "{error}");
    let error = error_after("rounds.csv", |text| second(text, ",64,", ",NaN,"));
    assert!(error.contains("rounds.csv, line 3: column bytes: \"NaN\" is not a whole number"), "{error}");
    let error = error_after("rounds.csv", |text| second(text, "messages/s", "MB/s"));
    assert!(error.contains("line 3: column unit: \"MB/s\" is not one of"), "{error}");
    let error = error_after("check.csv", |text| second(text, "measured", "simulated"));
    assert!(
        error.contains("check.csv, line 3: column kind: \"simulated\" is not one of measured"),
        "{error}"
    );
    let error = error_after("run.csv", |text| text.replace("cores,0 1", "cores,0 and 1"));
    assert!(error.contains("column value: \"0 and 1\" is not numbers of cores"), "{error}");
    let error = error_after("run.csv", |text| text.replace("machine,cpus,2\n", ""));
    assert!(error.contains("run.csv, line ") && error.contains("without a row machine,cpus"), "{error}");
}

#[test]
fn lost_rows_columns_and_halves_of_files_are_found() {
    let error = error_after("rounds.csv", |text| {
        text.lines().filter(|line| !line.contains(",64,3")).fold(String::new(), |all, line| all + line + "\n")
    });
    assert!(error.contains("rounds.csv, line ") && error.contains(" rows, and run.csv says "), "{error}");
    let error = error_after("stores.csv", |text| text.replacen(",64,", ",", 1));
    assert!(error.contains("stores.csv, line 2: 8 columns where the first line has 9"), "{error}");
    let error = error_after("rate.csv", |text| text.replacen("frames_per_s", "fps", 1));
    assert!(error.contains("rate.csv, line 1: the columns are kind,placement"), "{error}");
    let error = error_after("transmit.csv", |text| text[..text.len() - 3].to_owned());
    assert!(error.contains("transmit.csv, line 7: the file ends in the middle of a line"), "{error}");
    for empty in ["", "\n"] {
        let error = error_after("floor.csv", |_| empty.to_owned());
        assert!(error.contains("floor.csv, line 1: "), "{error}");
    }
}

#[test]
fn files_of_two_runs_are_refused() {
    let error = error_after("rate.csv", |text| text.replacen(",1000,", ",1000,1", 1));
    assert!(error.contains("rate.csv, line 5: column frames_per_s: "), "{error}");
    assert!(error.contains("is not the middle of the rounds in rounds.csv, "), "{error}");
    let error = error_after("stores.csv", |text| text.replacen(",64,", ",128,", 1));
    assert!(error.contains("stores.csv, line 2: column messages_per_s: "), "{error}");
    assert!(error.contains("rounds.csv has no round of it"), "{error}");
    let error = error_after("latency.csv", |text| text.replacen(",200,500,", ",200,501,", 1));
    assert!(error.contains("latency.csv, line 2: column p50_ns: \"501\" is not the middle"), "{error}");
}

#[test]
fn folder_of_something_else_is_refused_with_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(folder.path()).expect_err("nothing is there").to_string();
    assert!(error.contains("cannot read") && error.contains("run.csv") && error.contains("try: "), "{error}");
    fs::write(folder.path().join("run.csv"), b"\x7fELF\x02\x01\xff\xfe\n").unwrap();
    let error = read(folder.path()).expect_err("a program is no run").to_string();
    assert!(error.contains("run.csv, line 1: column 1 is no text (UTF-8)"), "{error}");
}

/// Every file with one byte changed or cut off anywhere: an error that names a file, or a run whose page can be made.
#[test]
fn damage_anywhere_is_an_error_or_a_run_that_can_be_shown() {
    let folder = keep(&run());
    let mut refused = 0;
    for (file, text) in run().csv() {
        let path = folder.path().join(file);
        for at in (0..text.len()).step_by(7) {
            let mut bytes = text.clone().into_bytes();
            match at % 3 {
                0 => bytes.truncate(at),
                1 => bytes[at] = b"9,\n\"-e\xff\0"[at / 7 % 8],
                _ => bytes.insert(at, b"0,\n\"-E\xfe "[at / 7 % 8]),
            }
            fs::write(&path, bytes).unwrap();
            match read(folder.path()) {
                Err(failure) => {
                    refused += 1;
                    assert!(failure.to_string().contains(".csv"), "{failure}");
                }
                Ok(results) => {
                    let shown = table::render(&results) + &summary::render(&results);
                    assert!(!shown.is_empty() && report::render(&results).contains("</html>"));
                }
            }
        }
        fs::write(&path, text).unwrap();
    }
    assert!(refused > 100, "{refused}");
}
