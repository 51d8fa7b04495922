//! A capture through the NIC's RTL, as a person would send it: the same frames come out, whatever the adversary does.
//! Without the feature `rtl` the program says how to get it.

use std::path::Path;
use std::process::{Command, Output};

use beeline_ethernet::{Accept, PcapOut, Uplink};
use beeline_spec::Interface;

fn send(folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
    command.arg("send").arg(folder.join("in.pcap")).arg("--out").arg(folder.join("out.pcap"));
    command.args(["--device", "rtl"]).args(more).output().expect("the program starts")
}

/// Frames of every length up to the longest that fits an Ethernet, and a few long ones.
fn write_capture(path: &Path) -> usize {
    let mut capture = PcapOut::create(path).expect("the folder is there");
    let lengths: Vec<usize> = (14..1519).step_by(7).chain([4000, 9000, 9216]).collect();
    for (number, length) in lengths.iter().enumerate() {
        let frame: Vec<u8> = (0..*length).map(|i| (i * 31 + number) as u8).collect();
        assert_eq!(capture.send(&frame).expect("the file takes it"), Accept::Taken);
    }
    capture.flush().expect("the file takes it");
    lengths.len()
}

/// All but the one whose lines an interconnect keeps coherent.
fn interfaces_of_rtl() -> impl Iterator<Item = &'static str> {
    Interface::ALL.into_iter().filter(|interface| *interface != Interface::Coherent).map(Interface::name)
}

#[test]
fn capture_passes_the_rtl_unchanged_or_error_says_how_to_get_it() {
    let folder = tempfile::tempdir().expect("a folder for the captures");
    let frames = write_capture(&folder.path().join("in.pcap"));
    for interface in interfaces_of_rtl() {
        for more in [&[][..], &["--adversary", "1", "--json"]] {
            let output = send(folder.path(), &[&["--interface", interface], more].concat());
            let (said, wrong) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            if cfg!(feature = "rtl") {
                assert!(output.status.success(), "{interface} {more:?}: {wrong}");
                assert!(
                    said.contains("complete, in order, unchanged") && said.contains(&frames.to_string()),
                    "{interface} {more:?}: {said}"
                );
            } else {
                assert!(!output.status.success() && wrong.contains("make rtl-tools"), "{wrong}");
            }
        }
    }
}

/// The RTL has no cache that an interconnect keeps coherent.
#[test]
fn an_interface_that_the_rtl_lacks_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder for the captures");
    write_capture(&folder.path().join("in.pcap"));
    let output = send(folder.path(), &["--interface", "coherent"]);
    let wrong = String::from_utf8_lossy(&output.stderr);
    let expected =
        if cfg!(feature = "rtl") { "the device has no `coherent` interface" } else { "make rtl-tools" };
    assert!(!output.status.success() && wrong.contains(expected), "{wrong}");
}

/// Frames that begin early come out as others do, those that were aborted and sent again too.
#[test]
fn a_capture_that_cuts_through_goes_unchanged() {
    let folder = tempfile::tempdir().expect("a folder for the captures");
    write_capture(&folder.path().join("in.pcap"));
    for more in [&["--cut-through-lines", "8"][..], &["--cut-through-lines", "3", "--adversary", "5"]] {
        let output = send(folder.path(), more);
        let (said, wrong) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if cfg!(feature = "rtl") {
            assert!(said.contains("complete, in order, unchanged"), "{more:?}: {said} {wrong}");
        } else {
            assert!(wrong.contains("make rtl-tools"), "{wrong}");
        }
    }
    let output = send(folder.path(), &["--interface", "kpio", "--cut-through-lines", "8"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("only mmio through the RTL"));
}

/// Waves are written where the program has them, and where it has not, it says how to get them.
#[test]
fn waves_are_written_or_the_program_says_how_to_get_them() {
    let folder = tempfile::tempdir().expect("a folder for the captures");
    write_capture(&folder.path().join("in.pcap"));
    for capture in ["in.pcap", "out.pcap"] {
        let path = folder.path().join(capture);
        let output = send(folder.path(), &["--waves", path.to_str().expect("a plain name")]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("one of the captures"), "{capture}");
    }
    let file = folder.path().join("out.vcd");
    let waves = ["--waves", file.to_str().expect("a temporary folder has a plain name")];
    let output = send(folder.path(), &waves);
    let wrong = String::from_utf8_lossy(&output.stderr);
    if cfg!(feature = "waves") {
        assert!(output.status.success(), "{wrong}");
        let dump = std::fs::read(&file).expect("the dump is there");
        assert!(dump.starts_with(b"$") && dump.len() > 100_000, "{} bytes", dump.len());
    } else {
        assert!(!output.status.success() && wrong.contains("cargo build"), "{wrong}");
    }
}

/// Every interface is counted, and no frame takes less than its own beats.
#[test]
fn cycles_of_the_rtl_are_counted_by_interface() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
    command.args(["compare", "--device", "rtl", "--quick", "--size", "64,1500", "--json"]);
    command.args(["--interface", &interfaces_of_rtl().collect::<Vec<_>>().join(",")]);
    let output = command.output().expect("the program starts");
    if !cfg!(feature = "rtl") {
        assert!(String::from_utf8_lossy(&output.stderr).contains("make rtl-tools"));
        return;
    }
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 6 * 2 * 2, "interfaces, sizes, singly and in bursts");
    for row in rows {
        let (bytes, cycles) =
            (row["frame_bytes"].as_f64().unwrap(), row["cycles_per_frame"].as_f64().unwrap());
        assert!(cycles >= (bytes / 64.0).floor() && cycles < 400.0, "{row}");
    }
}

/// The same device in virtual time: a few frames by `sim`, and one packet by packet by `trace`.
#[test]
fn virtual_time_has_the_rtl_or_the_program_says_how_to_get_it() {
    for (command, words) in [
        ("sim --device rtl --interface mmio --sizes 256 --frames 20 --arrivals one-by-one", "rtl at 250 MHz"),
        ("trace --device rtl --clock-mhz 500 --size 104", "with the RTL at 500 MHz"),
    ] {
        let mut beeline = Command::new(env!("CARGO_BIN_EXE_beeline"));
        let output = beeline.args(command.split(' ')).output().expect("the program starts");
        let (said, wrong) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if cfg!(feature = "rtl") {
            assert!(output.status.success() && said.contains(words), "{command}: {said} {wrong}");
        } else {
            assert!(!output.status.success() && wrong.contains("make rtl-tools"), "{command}: {wrong}");
        }
    }
}
