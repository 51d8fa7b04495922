use beeline_spec::{Header, Kind};

use super::*;

const GOOD: &str = r#"{
  "name": "one", "why": "It is there.", "source": "HotOS'25 §3.1",
  "device": { "interface": "mmio", "window": "observed", "window_lines": 4, "span_lines": 2, "epoch": 3 },
  "events": [
    { "note": "A frame.", "write": { "at": 0, "bytes": "w:000c40000000000e 10..1d 00*42" },
      "then": { "next_start": 1, "frames": ["10..1d"] } },
    { "time_ns": 5 }
  ],
  "expect": { "status": { "active": true, "quarantined": false, "cause": "none" }, "freed_lines": 1,
              "counters": { "tx_writes": 1, "refused_writes": ">=0" } }
}"#;

fn load_text(name: &str, text: &str) -> Result<Case, String> {
    static FOLDERS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    // Relaxed: the counter only has to give each call another number.
    let number = FOLDERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("beeline-vectors-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.json")), text).unwrap();
    let cases = load_folder(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    cases.map(|mut cases| cases.remove(0)).map_err(|error| error.to_string())
}

/// What is said about [`GOOD`] after `from` in it became `to`.
fn expect(from: &str, to: &str, said: &str) {
    assert!(GOOD.contains(from), "the good case does not contain: {from}");
    let found = load_text("one", &GOOD.replacen(from, to, 1)).unwrap_err();
    assert!(found.contains(said), "expected `{said}` in: {found}");
}

#[test]
fn the_project_s_cases_are_right() {
    let cases = load().unwrap_or_else(|error| panic!("{error}"));
    let windows =
        |blank| cases.iter().filter(|case| (case.device.window != WindowKind::Observed) == blank).count();
    assert!(windows(true) > 0 && windows(false) > 0);
    assert!(
        Interface::ALL
            .iter()
            .filter(|i| **i != Interface::Descriptor)
            .all(|i| cases.iter().any(|c| c.device.interface == *i))
    );
}

#[test]
fn the_readme_s_header_word_is_the_spec_s() {
    let header = Header { escape_last: 12, ..Header::new(Kind::Batch, 96, 3) };
    assert_eq!(header.encode(), 96 | 12 << 24 | 3 << 46 | 3 << 50);
}

#[test]
fn a_good_case_is_read() {
    let case = load_text("one", GOOD).unwrap();
    assert_eq!(case.device.pool_lines, 4);
    assert_eq!(case.frames().map(<[u8]>::len).collect::<Vec<_>>(), [14]);
    let counters = case.counters();
    assert_eq!(counters["tx_frame_bytes"], Count::Exactly(14));
    assert_eq!(counters["overruns"], Count::Exactly(0));
    assert_eq!(counters["refused_writes"], Count::AtLeast(0));
    assert_eq!(case.events[1].action, Action::Time(5));
}

#[test]
fn a_file_that_is_no_case_is_refused() {
    expect("\"time_ns\": 5", "\"time_ns\": 5,", "one.json");
    expect("\"time_ns\"", "\"time\"", "unknown field `time`");
    expect("\"events\": [", "\"event\": [", "unknown field `event`");
    assert!(load_text("two", GOOD).unwrap_err().contains("called `one`, its file `two`"));
    assert!(load_folder(Path::new("/no/such/folder")).unwrap_err().to_string().contains("cannot read"));
}

#[test]
fn an_event_that_is_none_is_refused() {
    expect("\"time_ns\": 5", "\"note\": \"nothing\"", "event 1: one of write");
    expect("\"time_ns\": 5", "\"time_ns\": 5, \"wire_ready\": true", "event 1: one of write");
    expect(
        "\"time_ns\": 5",
        "\"time_ns\": 5, \"then\": { \"refused\": true }",
        "only a write or a frame can be refused",
    );
    expect("10..1d 00*42", "1d..10", "event 0: bytes: `1d..10`");
    expect("\"at\": 0", "\"at\": 193", "64 bytes at 193 are no write to a window of 256 bytes");
    expect("w:000c40000000000e 10..1d 00*42", "", "0 bytes at 0 are no write");
    expect("\"at\": 0,", "\"at\": 0, \"enables\": \"0000000000000000\",", "do not fit");
    expect("\"at\": 0,", "\"at\": 0, \"enables\": \"7f\",", "enables: `7f` is not a word");
    expect("[\"10..1d\"]", "[\"10..1c\"]", "no frame of 13 bytes leaves this device");
}

#[test]
fn memory_reads_and_rings_that_cannot_be_are_refused() {
    let memory =
        |area: &str, at: u32| format!(r#""memory": {{ "area": "{area}", "at": {at}, "bytes": "00" }}"#);
    expect("\"time_ns\": 5", &memory("attic", 0), "`attic` is no area of the host's memory");
    expect("\"time_ns\": 5", &memory("head", 0x1000), "1 bytes at 4096 do not lie in an area of 4096");
    expect("\"time_ns\": 5", "\"read\": { \"at\": 256, \"words\": 1 }", "are no read of a window of 256");
    expect("\"time_ns\": 5", "\"read\": { \"at\": 0, \"words\": 0 }", "0 words at 0 are no read");
    expect("\"time_ns\": 5", "\"doorbell\": { \"gong\": 1 }", "unknown variant `gong`");
    expect("\"time_ns\": 5", "\"dma_ready\": true, \"then\": { \"answers\": [\"12\"] }", "answer: `12`");
    expect(
        "\"epoch\": 3",
        "\"epoch\": 3, \"host\": { \"rx_mode\": \"radio\" }",
        "`radio` is no receive mode",
    );
}

#[test]
fn a_device_that_cannot_be_is_refused() {
    expect("\"mmio\"", "\"descriptor\"", "do not come by a window");
    expect("\"mmio\"", "\"smoke\"", "unknown interface");
    expect("\"window_lines\": 4", "\"window_lines\": 5", "window_lines = 5 is not a power of two");
    expect("\"span_lines\": 2", "\"span_lines\": 8", "span_lines = 8 is more");
    expect("\"epoch\": 3", "\"epoch\": 300", "one.json");
    expect("\"epoch\": 3", "\"epoch\": 3, \"contexts\": 0", "at least one context");
    expect("\"epoch\": 3", "\"epoch\": 3, \"max_frame_bytes\": 10000", "max_frame_bytes = 10000");
    expect("\"epoch\": 3", "\"epoch\": 3, \"blank\": \"8000000000000000\"", "observed window has no blank");
    expect("\"observed\"", "\"blank\"", "needs its blank");
    expect("\"observed\"", "\"blank\", \"blank\": \"7000000000000000\"", "bit 63 is clear");
}

#[test]
fn a_write_that_no_blank_window_sees_is_refused() {
    let blank = GOOD.replace("\"observed\"", "\"blank\", \"blank\": \"8000000000000001\"");
    assert!(load_text("one", &blank).is_ok());
    let refused = |from: &str, to: &str| load_text("one", &blank.replacen(from, to, 1)).unwrap_err();
    for (from, to) in [
        ("00*42", "00*41"),
        ("\"at\": 0", "\"at\": 4"),
        ("\"at\": 0,", "\"at\": 0, \"enables\": \"ffffffffffffffff\","),
    ] {
        assert!(refused(from, to).contains("only whole aligned words"), "{to}");
    }
    assert!(refused("00*42", "00*34 w:8000000000000001").contains("never stores the blank"));
}

#[test]
fn expectations_that_cannot_be_are_refused() {
    expect("\"tx_writes\": 1", "\"tx_wirtes\": 1", "`tx_wirtes` is no counter");
    expect("\"tx_writes\": 1", "\"tlp_bytes_histogram[8]\": 1", "is no counter");
    expect("\"tx_writes\": 1", "\"tlp_bytes_histogram\": 1", "is no counter");
    expect("\"tx_writes\": 1", "\"tx_writes[0]\": 1", "is no counter");
    expect("\"tx_writes\": 1", "\"tx_writes\": 2", "are 2 + 0 of 1 writes");
    let huge = "\"tx_writes\": 18446744073709551615, \"quarantined_writes\": 1";
    expect("\"tx_writes\": 1", huge, "are 18446744073709551615 + 1 of 1 writes");
    expect("\"tx_writes\": 1", "\"tx_frames\": 2", "not the 1 frames");
    expect("\">=0\"", "\"0\"", "is not like");
    expect("\"cause\": \"none\"", "\"cause\": \"fate\"", "`fate` is no cause");
    expect("It is there.", " ", "says why it is there");
}
