//! What is wrong with a file is refused with its place, its key, its value and what to do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;

use beeline_platforms::{Bounds, Platform, Row};
use proptest::prelude::*;
use tempfile::TempDir;

/// The text of a file that is right, without parts, so that a test can break a line of it.
fn whole(name: &str) -> String {
    let platform = Platform::named("epyc-7543-cx6dx").unwrap();
    let mut text = format!("[platform]\nname = \"{name}\"\nsummary = \"a test\"\nkind = \"nic\"\n");
    let mut section = String::new();
    for row in platform.rows().into_iter().filter(|row| row.source.is_some()) {
        let (of, parameter) = row.key.rsplit_once('.').unwrap();
        if of != section {
            section = of.to_owned();
            text.push_str(&format!("\n[{section}]\n"));
        }
        let source = row.source.unwrap().to_text().replace('"', "'");
        text.push_str(&format!("{parameter} = {{ value = {}, source = \"{source}\" }}\n", row.value));
    }
    text
}

/// A folder with one file of this text.
fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn refusal(text: &str) -> String {
    let (_folder, path) = file(text);
    Platform::read(&path).unwrap_err().to_string()
}

/// The whole file with a line in the place of the one that begins so.
fn changed(from: &str, to: &str) -> String {
    let text = whole("mine");
    assert!(text.lines().any(|line| line.starts_with(from)), "{from} is in the file");
    text.lines().map(|line| if line.starts_with(from) { to } else { line }.to_owned() + "\n").collect()
}

#[test]
fn a_whole_file_reads() {
    let (_folder, path) = file(&whole("mine"));
    let read = Platform::read(&path).unwrap();
    let built_in = Platform::named("epyc-7543-cx6dx").unwrap();
    let values = |rows: Vec<Row>| rows.into_iter().map(|row| (row.key, row.value)).collect::<Vec<_>>();
    assert_eq!(values(read.rows()), values(built_in.rows()));
    assert!(read.knobs().len() > built_in.knobs().len(), "what was shared is its own now");
}

#[test]
fn errors_say_where_what_and_what_to_do() {
    let line = |text: &str, start: &str| text.lines().position(|line| line.starts_with(start)).unwrap() + 1;
    let text = changed("wc_buffers", "wc_buffers = { value = 65, source = \"assumed\" }");
    let at = format!("mine.toml:{}: core.wc_buffers = 65 is out of bounds", line(&text, "wc_buffers"));
    let error = refusal(&text);
    assert!(error.contains(&at) && error.ends_with("give a whole number from 1 to 64"), "{error}");

    let text = changed("wc_buffers", "wc_bufers = { value = 6, source = \"assumed\" }");
    let error = refusal(&text);
    let at = format!("mine.toml:{}: ", line(&text, "wc_bufers"));
    assert!(error.contains(&at) && error.ends_with("did you mean \"core.wc_buffers\"?"), "{error}");

    let text = changed("wc_buffers", "wc_bufers = 6");
    assert!(refusal(&text).ends_with("did you mean \"core.wc_buffers\"?"), "a form came before the key");

    let error = refusal(&changed("wc_buffers", ""));
    assert!(error.contains("mine.toml: core.wc_buffers is missing; give a whole number from 1"), "{error}");
    for (line, why) in [
        ("wc_buffers = 6", "core.wc_buffers is an integer; write { value = ..., source = \"...\" }"),
        ("wc_buffers = { value = 6 }", "core.wc_buffers is without a source"),
        ("wc_buffers = { source = \"r0003\" }", "core.wc_buffers is without a value"),
        ("wc_buffers = { value = 6, source = \"\" }", "the source of core.wc_buffers is empty"),
        ("wc_buffers = { value = 6, source = \"fitted\" }", "a fit without its rows"),
        ("wc_buffers = { value = 6, sauce = \"r0003\" }", "did you mean \"core.wc_buffers.source\"?"),
        ("wc_buffers = { value = [6], source = \"r0003\" }", "core.wc_buffers.value is an array"),
        (
            "wc_buffers = { value = \"six\", source = \"r0003\" }",
            "core.wc_buffers = \"six\" is out of bounds",
        ),
        ("wc_buffers = { value = 6.5, source = \"r0003\" }", "core.wc_buffers = 6.5 is out of bounds"),
        ("wc_buffers = { value = 6, source = \"r0003\"", ": not TOML: missing comma"),
        ("read_tags = { value = 6, source = \"r0003\" }", "did you mean \"device.read_tags\"?"),
    ] {
        let error = refusal(&changed("wc_buffers", line));
        assert!(error.contains(why), "{line}: {error}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let text = whole("mine") + "\n[[hop]]\nkind = { value = \"switch\", source = \"assumed\" }\n";
    assert!(refusal(&text).contains("hop.0.latency_ns is missing"), "{}", refusal(&text));
    let text = changed("max_payload_bytes", "max_payload_bytes = { value = 512, source = \"r1025\" }")
        .replace("[link]\n", "[link]\nposted_data_units = { value = 31, source = \"assumed\" }\n");
    let error = refusal(&text);
    assert!(error.contains("link.posted_data_units = 31") && error.contains("give 0 or 32"), "{error}");
    let error = refusal(&whole("other"));
    assert!(error.contains("platform.name = \"other\": not the file's name"), "{error}");
    let error = refusal(&whole("mine").replace("kind = \"nic\"", "kind = \"nik\""));
    assert!(error.contains("platform.kind = \"nik\" is out of bounds"), "{error}");
    let error = refusal(&(whole("mine") + "[devise]\n"));
    assert!(error.contains("no parameter is called \"devise\"; did you mean \"device\"?"), "{error}");
}

#[test]
fn parts_are_found_downwards_only_and_give_a_key_once() {
    let includes = |path: &str| format!("includes = [\"{path}\"]\n{}", whole("mine"));
    for path in ["../parts/amd-server.toml", "/parts/amd-server.toml", ""] {
        let error = refusal(&includes(path));
        assert!(error.contains("mine.toml:1: cannot include") && error.contains("downwards"), "{error}");
    }
    let error = refusal(&includes("parts/nowhere.toml"));
    assert!(error.contains("no such file, and built in are only: amd-server"), "{error}");
    let error = refusal(&includes("parts/amd-server.toml"));
    assert!(error.contains("is given at parts/amd-server.toml:") && error.contains("leave one"), "{error}");

    let (folder, path) = file(&includes("near.toml").replace("wc_buffers", "#"));
    let part = folder.path().join("near.toml");
    std::fs::write(&part, "[core]\nwc_buffers = { value = 6, source = \"assumed\" }\n").unwrap();
    let platform = Platform::read(&path).unwrap();
    assert_eq!((platform.core.wc_buffers.value, platform.core.wc_buffers.shared), (6, true));
    std::fs::write(&part, "includes = [\"further.toml\"]\n").unwrap();
    let error = Platform::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("near.toml:1: no parameter is called \"includes\""),
        "parts include nothing: {error}"
    );
}

#[test]
fn a_hop_has_the_rest_of_the_first_link() {
    let hop = "\n[[hop]]\nkind = { value = \"ntb\", source = \"assumed\" }\n\
        latency_ns = { value = 40, source = \"r1013\" }\n\
        generation = { value = 2, source = \"assumed\" }\nlanes = { value = 4, source = \"assumed\" }\n";
    let (_folder, path) = file(&(whole("mine") + hop));
    let platform = Platform::read(&path).unwrap();
    let link = &platform.hops[0].link;
    assert_eq!((link.generation.value, link.lanes.value), (2, 4));
    assert_eq!(link.max_payload_bytes.value, platform.link.max_payload_bytes.value);
    let wider = platform.with("hop.0.lanes", "8").unwrap();
    assert_eq!(wider.hops[0].link.lanes.value, 8);
    let error = platform.with("hop.0.max_payload_bytes", "128").unwrap_err().to_string();
    assert!(error.contains("a switch cuts no packets; give 512"), "{error}");
    let alone = Platform::named("epyc-7543-cx6dx").unwrap();
    assert!(alone.with("hop.0.lanes", "8").is_err(), "there is no hop");
}

#[test]
fn an_override_is_checked_and_counts_as_assumed() {
    let platform = Platform::named("epyc-7543-cx6dx").unwrap();
    let changed = platform.with("core.wc_release", "fifo").unwrap().with("core.wc_buffers", "12").unwrap();
    assert_eq!((changed.core.wc_buffers.value, changed.core.wc_release.value.word()), (12, "fifo"));
    assert!(changed.knobs().iter().any(|row| row.key == "core.wc_buffers"));
    let error = platform.with("core.wc_buffers", "0").unwrap_err().to_string();
    assert!(error.starts_with("core.wc_buffers=0: core.wc_buffers = 0 is out of bounds"), "{error}");
    let error = platform.with("core.wc_buffers", "many").unwrap_err().to_string();
    assert!(error.contains("core.wc_buffers = \"many\" is out of bounds"), "{error}");
    assert!(platform.with("core", "1").is_err());
    // A section that the file does not have is there once all that it needs is given.
    let switch = [("switch.latency_ns", "100"), ("switch.ports", "5")];
    let added = platform.with_all(switch).unwrap().switch.unwrap();
    assert_eq!((added.latency_ns.value.picoseconds(), added.ports.value), (100_000, 5));
    let error = platform.with_all(switch.into_iter().take(1)).unwrap_err().to_string();
    assert!(error.contains("switch.ports is missing"), "{error}");
    assert_eq!(
        Platform::named("epic-7543-cx6dx").unwrap_err().to_string().matches("did you mean").count(),
        1
    );
}

#[test]
fn a_platform_is_written_as_json_with_its_sources() {
    let platform = Platform::named("epyc-7543-cx6dx").unwrap();
    let json = serde_json::to_value(&platform).unwrap();
    assert_eq!(json["device"]["wire_gbps"]["value"], 100.0);
    assert_eq!(json["device"]["wire_gbps"]["source"]["text"], "r0049");
    assert_eq!(json["root_complex"]["cache_miss_ns"]["source"], serde_json::Value::Null);
    assert_eq!(json["core"]["wc_release"]["value"], "oldest-random");
}

/// A value outside the bounds, next to them or far away.
fn outside(bounds: Bounds) -> BoxedStrategy<String> {
    match bounds {
        Bounds::Between(least, most) => {
            let near = (0.001..1e9_f64).prop_flat_map(move |d| prop_oneof![Just(least - d), Just(most + d)]);
            prop_oneof![near.prop_map(|n| n.to_string()), Just("nan".to_owned()), Just("\"no\"".to_owned())]
                .boxed()
        }
        Bounds::ZeroOr(least, most) => {
            let less = (least / 1e300..least * 0.999).prop_map(|n| n.to_string());
            let more = (0.001..1e9_f64).prop_map(move |d| (most + d).to_string());
            let below = (1e-300..1e9_f64).prop_map(|d| (-d).to_string());
            prop_oneof![less, more, below].boxed()
        }
        Bounds::Whole(least, most) => {
            let (least, most) = (i64::from(least), i64::from(most));
            let apart = (1..1_i64 << 40).prop_flat_map(move |d| prop_oneof![Just(least - d), Just(most + d)]);
            let broken = (least..=most).prop_map(|n| format!("{n}.5"));
            prop_oneof![apart.prop_map(|n| n.to_string()), broken].boxed()
        }
        Bounds::OneOf(numbers) => any::<i32>()
            .prop_filter("one of them", move |n| {
                u32::try_from(*n).is_ok_and(|n| numbers.contains(&n)).eq(&false)
            })
            .prop_map(|n| n.to_string())
            .boxed(),
        Bounds::Words(words) => "[a-z-]{0,20}"
            .prop_filter("one of them", move |word| !words.contains(&word.as_str()))
            .prop_map(|word| format!("\"{word}\""))
            .boxed(),
    }
}

proptest! {
    /// Every parameter, with every kind of value that its bounds forbid.
    #[test]
    fn what_is_out_of_bounds_is_refused_with_its_key(
        (row, value) in {
            let rows = Platform::named("epyc-7543-cx6dx").unwrap().rows();
            proptest::sample::select(rows).prop_flat_map(|row| {
                let value = outside(row.parameter.bounds);
                (Just(row), value)
            })
        }
    ) {
        let platform = Platform::named("epyc-7543-cx6dx").unwrap();
        let by_caller = platform.with(&row.key, &value).unwrap_err().to_string();
        prop_assert!(by_caller.contains(&row.key) && by_caller.contains("is out of bounds"), "{}", by_caller);
        let (section, name) = row.key.rsplit_once('.').unwrap();
        let text = whole("mine");
        let (before, after) = text.split_once(&format!("[{section}]\n")).unwrap();
        let rest: String = {
            let (own, others) = after.split_once("\n[").unwrap_or((after, ""));
            let own = own.lines().filter(|line| line.split(' ').next() != Some(name));
            let own: String = own.map(|line| format!("{line}\n")).collect();
            if others.is_empty() { own } else { format!("{own}\n[{others}") }
        };
        let error = refusal(&format!("{before}[{section}]\n{name} = {{ value = {value}, source = \"assumed\" }}\n{rest}"));
        prop_assert!(error.contains("mine.toml:") && error.contains(&row.key), "{}", error);
        prop_assert!(error.contains("is out of bounds"), "{}", error);
    }

    /// No text makes the reader panic: neither noise nor a file that somebody damaged.
    #[test]
    fn no_text_panics(noise in "\\PC*", at in any::<prop::sample::Index>(), drop in 0usize..80) {
        let (_folder, path) = file(&noise);
        prop_assert!(Platform::read(&path).is_err());
        let text = whole("mine");
        let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).collect();
        let start = starts[at.index(starts.len())];
        let end = text.char_indices().map(|(i, _)| i).find(|i| *i >= start + drop).unwrap_or(text.len());
        let damaged = format!("{}{noise}{}", &text[..start], &text[end..]);
        let (_folder, path) = file(&damaged);
        let _ = Platform::read(&path);
        let platform = Platform::named("epyc-7543-cx6dx").unwrap();
        let _ = platform.with(&noise, &noise);
        let _ = platform.with("core.store_ns", &noise);
    }
}

#[test]
fn a_central_switch_is_checked() {
    let with = |lines: &str| format!("{}\n[switch]\n{lines}\n", whole("mine"));
    let latency = "latency_ns = { value = 50, source = \"assumed\" }\n";
    let missing = refusal(&with(latency));
    assert!(missing.contains("switch.ports"), "{missing}");
    let too_many = refusal(&with(&format!("{latency}ports = {{ value = 65, source = \"assumed\" }}")));
    assert!(too_many.contains("switch.ports") && too_many.contains("65"), "{too_many}");
    let (_folder, path) = file(&with(&format!("{latency}ports = {{ value = 8, source = \"assumed\" }}")));
    assert_eq!(Platform::read(&path).unwrap().switch.map(|switch| switch.ports.value), Some(8));
}
