//! `beeline sim`, `beeline trace` and `beeline platforms` as people use them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    fn run(&self, args: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
        command.args(args.split_whitespace()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn succeed(&self, args: &str) -> String {
        let output = self.run(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "beeline {args}: {}\n{out}{err}", output.status);
        out.into_owned()
    }

    /// Standard error of a command that ends with this code.
    fn fail(&self, code: i32, args: &str) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "beeline {args}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn json(&self, args: &str) -> serde_json::Value {
        serde_json::from_str(&self.succeed(args)).unwrap()
    }
}

/// A capture of frames of these sizes, each so many microseconds after the one before.
fn capture(path: &Path, frames: &[(usize, u32)]) {
    let mut bytes: Vec<u8> = Vec::new();
    let header: [u32; 6] = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65535, 1];
    header.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    let mut at_us = 0;
    for (size, gap_us) in frames {
        at_us += gap_us;
        let record = [7, at_us, *size as u32, *size as u32];
        record.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(vec![5; *size]);
    }
    std::fs::write(path, bytes).unwrap();
}

/// A small sweep with several of everything.
const SWEEP: &str = "sim --interface mmio,descriptor --sizes 64..256 --set core.wc_buffers=4,8 --frames 100 \
                     --arrivals one-by-one,poisson:1M";

#[test]
fn a_sweep_is_the_same_however_it_is_run() {
    let folder = TestFolder::new();
    let text = folder.succeed(&format!("{SWEEP} --jobs 1 --csv one.csv --json one.json --html one.html"));
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "too wide: {line}");
    }
    assert_eq!(folder.read("one.csv").lines().count(), 1 + 2 * 3 * 2 * 2);
    assert!(
        folder.read("one.csv").lines().skip(1).all(|line| line.starts_with("simulated,epyc-7543-cx6dx,"))
    );
    folder.succeed(&format!("{SWEEP} --jobs 3 --csv three.csv --json three.json"));
    assert_eq!(folder.read("one.csv"), folder.read("three.csv"));
    assert_eq!(folder.read("one.json"), folder.read("three.json"));
    let html = folder.read("one.html");
    assert!(html.contains("<svg") && html.contains("simulated"));
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!html.contains(outside), "the page loads something: {outside}");
    }
}

#[test]
fn shards_are_put_together_to_the_same_sweep() {
    let folder = TestFolder::new();
    folder.succeed(&format!("{SWEEP} --csv whole.csv --json whole.json"));
    for (number, file) in [(1, "--resume 1.jsonl"), (2, "--json 2.json"), (3, "--resume 3.jsonl")] {
        folder.succeed(&format!("{SWEEP} --shard {number}/3 {file}"));
    }
    folder.succeed("sim --merge 3.jsonl 1.jsonl 2.json --csv merged.csv --json merged.json");
    assert_eq!(folder.read("whole.csv"), folder.read("merged.csv"));
    assert_eq!(folder.read("whole.json"), folder.read("merged.json"));
    let error = folder.fail(1, "sim --merge 1.jsonl 3.jsonl");
    assert!(error.contains("8 of 24 points are missing: 2, 5, 8") && error.contains("shard"), "{error}");
    folder.succeed("sim --interface mmio --sizes 64 --frames 50 --resume other.jsonl");
    let error = folder.fail(1, "sim --merge 1.jsonl other.jsonl");
    assert!(error.contains("1.jsonl and other.jsonl are of different sweeps"), "{error}");
}

#[test]
fn a_sweep_that_was_interrupted_goes_on() {
    let folder = TestFolder::new();
    folder.succeed(&format!("{SWEEP} --resume all.jsonl --csv all.csv"));
    let whole = folder.read("all.jsonl");
    // Killed in the middle of a line.
    let lines: Vec<&str> = whole.lines().collect();
    std::fs::write(folder.file("cut.jsonl"), format!("{}\n{}", lines[..5].join("\n"), &lines[5][..40]))
        .unwrap();
    folder.succeed(&format!("{SWEEP} --resume cut.jsonl --csv cut.csv"));
    assert_eq!(folder.read("cut.csv"), folder.read("all.csv"));
    assert_eq!(folder.read("cut.jsonl").lines().count(), lines.len());
    assert!(folder.read("cut.jsonl").starts_with(&lines[..5].join("\n")), "what was finished stays");
    // A result that is in the file is not measured again: it is believed.
    let doctored = whole.replacen("\"p50_ps\":", "\"p50_ps\":1", 1);
    std::fs::write(folder.file("all.jsonl"), doctored).unwrap();
    folder.succeed(&format!("{SWEEP} --resume all.jsonl --csv again.csv"));
    assert_ne!(folder.read("again.csv"), folder.read("all.csv"));
    std::fs::write(folder.file("notes.txt"), "buy milk\n").unwrap();
    let error = folder.fail(1, &format!("{SWEEP} --resume notes.txt"));
    assert!(error.contains("line 1 of notes.txt is no result"), "{error}");
    assert_eq!(folder.read("notes.txt"), "buy milk\n");
}

#[test]
fn a_capture_gives_sizes_and_gaps() {
    let folder = TestFolder::new();
    capture(&folder.file("in.pcap"), &[(64, 0), (1500, 3), (200, 5)]);
    let found = folder.json("sim --interface mmio --pcap in.pcap --frames 300 --json -");
    let row = &found["rows"][0];
    assert_eq!(row["arrivals"], "recorded");
    assert_eq!(row["frame_bytes"], 588.0);
    let figures = &row["figures"];
    // 8 microseconds for two gaps, and the mean of 4 before the first: 12 for three frames.
    let per_frame_ps = figures["elapsed_ps"].as_f64().unwrap() / figures["frames"].as_f64().unwrap();
    assert!((per_frame_ps / 4e6 - 1.0).abs() < 0.02, "{per_frame_ps}");
    let error = folder.fail(1, "sim --arrivals recorded");
    assert!(error.contains("--pcap FILE"), "{error}");
    let error = folder.fail(2, "sim --pcap in.pcap --sizes 64");
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn what_cannot_be_is_na_with_the_reason() {
    let folder = TestFolder::new();
    let args = "sim --interface kpio,mmio --sizes 1500 --frames 500 --set root_complex.write_jitter_ns=100";
    let text = folder.succeed(args);
    let kpio = text.lines().find(|line| line.contains("kpio")).unwrap();
    assert!(kpio.contains("n/a") && text.contains("n/a: kpio, 1500 B: "), "{text}");
    let error = folder.fail(1, &args.replace("kpio,mmio", "kpio"));
    assert!(error.contains("no point could be measured"), "{error}");
}

#[test]
fn reads_of_data_that_lie_far_take_longer() {
    let folder = TestFolder::new();
    let sweep = "sim --interface descriptor --sizes 64 --frames 50 --arrivals one-by-one --json -";
    let set =
        "--set root_complex.cache_miss_ns=70 --set root_complex.numa_ns=100 --set root_complex.iommu_ns=330";
    let p50_ps = |data: &str| {
        let found = folder.json(&format!("{sweep} {set} {data}"));
        found["rows"][0]["figures"]["p50_ps"].as_u64().unwrap()
    };
    let warm = p50_ps("");
    assert_eq!(p50_ps("--data warm"), warm);
    // A descriptor, and the frame that it names: two reads one after the other. Percentiles have three digits.
    for (data, more_ps) in [
        ("--data cold", 70_000),
        ("--data remote --data translated", 430_000),
        ("--data cold,remote,translated", 500_000),
    ] {
        let (found, expected) = (p50_ps(data), warm + 2 * more_ps);
        assert!(found.abs_diff(expected) <= expected / 1000, "{data}: {found} and not {expected}");
    }
    let error = folder.fail(1, &format!("{sweep} --data translated"));
    assert!(error.contains("epyc-7543-cx6dx does not say") && error.contains("iommu_ns"), "{error}");
    let error = folder.fail(1, &format!("{sweep} {set} --data warm,cold"));
    assert!(error.contains("one of them"), "{error}");
}

/// Frames by several devices, on a platform that says no switch.
const SEVERAL: &str = "sim --interface mmio,descriptor --sizes 512 --frames 300 --arrivals always \
                       --set device.wire_gbps=10 --set switch.latency_ns=100 --set switch.ports=5";

#[test]
fn several_devices_carry_more_and_each_is_told() {
    let folder = TestFolder::new();
    let text = folder.succeed(&format!("{SEVERAL} --devices 1,2,4 --cores 1,2 --csv a.csv --json a.json"));
    for line in text.lines() {
        assert!(line.chars().count() <= 100 || line.contains(" with "), "too wide: {line}");
    }
    assert!(text.contains("2 cores, 2 devices") && text.contains("a device, Gbit/s"), "{text}");
    let found: serde_json::Value = serde_json::from_str(&folder.read("a.json")).unwrap();
    let rows = found["rows"].as_array().unwrap();
    // Cores that were fewer than devices are as many, and the same point is not done twice.
    let device_and_core_counts: Vec<[u64; 2]> = rows
        .iter()
        .filter(|row| row["interface"] == "mmio")
        .map(|row| [&row["devices"], &row["cores"]].map(|number| number.as_u64().unwrap()))
        .collect();
    assert_eq!(device_and_core_counts, [[1, 1], [1, 2], [2, 2], [4, 4]]);
    let gbps = |figures: &serde_json::Value| {
        figures["bytes"].as_f64().unwrap() * 8000.0 / figures["elapsed_ps"].as_f64().unwrap()
    };
    for row in rows {
        let (devices, figures) = (row["devices"].as_f64().unwrap(), &row["figures"]);
        let wires = gbps(figures) / (10.0 * devices);
        assert!((0.9..1.0).contains(&wires), "{row}");
        let shares = figures["of_devices"].as_array().map_or(&[][..], |shares| shares);
        assert_eq!(shares.len() as f64, if devices > 1.0 { devices } else { 0.0 }, "{row}");
        assert!(shares.iter().all(|share| (9.0..10.0).contains(&gbps(share))), "{row}");
        assert_eq!(row["key"].as_str().unwrap().contains(&format!("devices={devices}")), devices > 1.0);
    }
    let csv = folder.read("a.csv");
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name| header.iter().position(|column| *column == name).unwrap();
    for cells in lines {
        let devices: usize = cells[column("devices")].parse().unwrap();
        let each = cells[column("gbps_of_devices")].split_whitespace().count();
        assert_eq!((cells.len(), each), (header.len(), if devices > 1 { devices } else { 0 }));
    }
}

/// A sweep that had one device goes on with several, and what was measured before there could be several still counts.
#[test]
fn a_sweep_of_one_device_goes_on_with_several() {
    let folder = TestFolder::new();
    folder.succeed(&format!("{SEVERAL} --resume one.jsonl --json unsaid.json"));
    folder.succeed(&format!("{SEVERAL} --devices 1 --json said.json"));
    assert_eq!(folder.read("unsaid.json"), folder.read("said.json"));
    let one = folder.read("one.jsonl");
    let old = one.replace("\"devices\":1,", "");
    assert_ne!(old, one);
    std::fs::write(folder.file("old.jsonl"), old.replacen("\"p50_ps\":", "\"p50_ps\":1", 1)).unwrap();
    folder.succeed(&format!("{SEVERAL} --devices 1,2 --resume old.jsonl --csv both.csv"));
    folder.succeed(&format!("{SEVERAL} --devices 1,2 --csv fresh.csv"));
    let (both, fresh) = (folder.read("both.csv"), folder.read("fresh.csv"));
    let differ = both.lines().zip(fresh.lines()).filter(|(one, other)| one != other).count();
    assert_eq!((both.lines().count(), differ), (5, 1), "one point was doctored, the others are the same");
}

#[test]
fn mistakes_are_named_with_what_to_do() {
    let folder = TestFolder::new();
    for (code, args, words) in [
        (1, "sim --platform epyc-7543", "did you mean \"epyc-7543-cx6dx\""),
        (1, "sim --set core.wc_bufers=4", "did you mean \"core.wc_buffers\""),
        (1, "sim --set core.wc_buffers=400", "a whole number from 1 to 64"),
        (1, "sim --set device.wire_gbps=1e-9", "0 or a number from 0.001 to 100000"),
        (1, "sim --set device.dma_gbps=1e-308", "0 or a number from 0.001 to 100000"),
        (2, "sim --set core.wc_buffers", "KEY=VALUE"),
        (2, "sim --sizes 5", "14 to 9216"),
        (2, "sim --arrivals poisson", "poisson:RATE"),
        (2, "sim --shard 5/4", "1/4"),
        (2, "sim --merge a --frames 100", "cannot be used with"),
        (2, "sim --merge a --devices 2", "cannot be used with"),
        (2, "sim --devices 17", "1..=16"),
        (
            1,
            "sim --devices 2 --interface mmio --sizes 64 --frames 10",
            "epyc-7543-cx6dx has no [switch] section",
        ),
        (1, "sim --devices 2 --set switch.latency_ns=100", "switch.ports is missing"),
        (
            1,
            "sim --devices 2 --interface mmio --sizes 64 --frames 10 --set switch.latency_ns=9 --set switch.ports=2",
            "need 3 ports",
        ),
        (1, "sim --merge nowhere", "cannot read nowhere"),
        (1, "sim --sizes 64 --frames 10 --interface mmio --csv nowhere/a.csv", "name a file you may write"),
        (1, "trace --link 3", "there is no link 3"),
        (1, "trace --set core.wc_buffers=4,8", "`beeline sim` sweeps"),
        (1, "trace --interface kpio --fences per-line", "no place for a fence"),
        (1, "platforms nowhere", "no platform is called \"nowhere\""),
        (1, "platforms epic-7543", "did you mean \"epyc-7543-cx6dx\"?\n"),
        (1, "sim --devices 2", "has no [switch] section"),
        (1, "sim --data remote", "give root_complex.numa_ns"),
        (1, "platforms --check nowhere.toml", "cannot read nowhere.toml"),
    ] {
        let error = folder.fail(code, args);
        assert!(error.contains(words), "beeline {args}: {error}");
    }
}

#[test]
fn a_trace_shows_the_packets_of_a_frame() {
    let folder = TestFolder::new();
    let text =
        folder.succeed("trace --interface kpio --size 104 --set core.wc_release=fifo --perfetto trace.json");
    // kPIO+WC, figure 5: two writes of a line each, acknowledged by the device.
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("to device")).collect();
    assert!(lines[0].contains("MWr(64)") && lines[0].contains(" 64 ") && lines[0].contains(" 0.0"), "{text}");
    assert!(lines[1].contains("MWr(64)") && text.contains("ACK"), "{text}");
    let events: serde_json::Value = serde_json::from_str(&folder.read("trace.json")).unwrap();
    let names: Vec<&str> = events["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    for track in ["core 0", "root complex", "link up", "link down", "device"] {
        assert!(names.iter().any(|name| name.starts_with(track)), "{track} is no track of {names:?}");
    }
    let packets =
        folder.json("trace --interface descriptor --size 104 --json - --csv d.csv")["packets"].clone();
    let packets = packets.as_array().unwrap();
    // Figure 6: a doorbell, then a descriptor and a payload that are read, each acknowledged.
    let of = |kind: &str, direction: &str| {
        packets
            .iter()
            .filter(|packet| {
                packet["type"].as_str().unwrap().starts_with(kind) && packet["direction"] == direction
            })
            .count()
    };
    assert_eq!((of("MRd", "to host"), of("CplD", "to device")), (2, 2), "{packets:?}");
    // The first answers for what opened the queue, before T0.
    for packet in packets.iter().filter(|packet| packet["acknowledges"].is_u64()) {
        let number = packet["acknowledges"].as_u64().unwrap() as usize;
        assert_ne!(packets[number - 1]["direction"], packet["direction"]);
        assert!(packets[number - 1]["tag"].is_null() || packets[number - 1]["type"] != "ACK");
    }
    assert_eq!(folder.read("d.csv").lines().count(), packets.len() + 1);
}

#[test]
fn platforms_are_listed_described_and_checked() {
    let folder = TestFolder::new();
    assert!(folder.succeed("platforms").contains("epyc-7543-cx6dx"));
    let text = folder.succeed("platforms epyc-7543-cx6dx");
    assert!(text.contains("core.wc_buffers") && text.contains("assumed"), "{text}");
    std::fs::write(
        folder.file("mine.toml"),
        "[platform]\nname = \"mine\"\nsummary = \"x\"\nkind = \"nic\"\n",
    )
    .unwrap();
    let error = folder.fail(1, "platforms --check mine.toml");
    assert!(error.contains("mine.toml") && error.contains("is missing"), "{error}");
}
