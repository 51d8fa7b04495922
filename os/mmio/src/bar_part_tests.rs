//! Parts of BARs, with a folder that looks like sysfs.
#![cfg(not(miri))]

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::OnLoss;

/// A sysfs with functions, each with its lines of BARs and files of them.
fn sysfs(functions: &[(&str, &str, &[(&str, usize)])]) -> TempDir {
    let root = TempDir::new().unwrap();
    for (function, lines, files) in functions {
        let folder = root.path().join("bus/pci/devices").join(function);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("resource"), lines).unwrap();
        for (name, bytes) in *files {
            fs::write(folder.join(name), vec![0u8; *bytes]).unwrap();
        }
    }
    root
}

const TWO: &str = "0x00000000fe000000 0x00000000fe003fff 0x0000000000040200
0x000000000000c000 0x000000000000c07f 0x0000000000040101
0x0000004000000000 0x000000400000ffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x00000000e0000000 0x00000000e0003fff 0x0000000000042200
";

fn host() -> TempDir {
    sysfs(&[
        ("0000:00:01.0", "", &[]),
        (
            "0000:3b:00.1",
            TWO,
            &[("resource0", 16384), ("resource1", 128), ("resource2", 65536), ("resource2_wc", 65536)],
        ),
    ])
}

fn why(found: Result<BarPart, BarPartError>) -> String {
    found.unwrap_err().to_string()
}

#[test]
fn part_is_found_in_its_bar_and_mapped_where_it_is() {
    let host = host();
    let part = BarPart::find(host.path(), 0x40_0000_1010, 0x100).unwrap();
    assert_eq!((part.bus_address(), part.offset_bytes(), part.bytes()), (0x40_0000_1010, 0x1010, 0x100));
    assert!(part.to_string().contains("resource2"), "{part}");
    let options = SegmentOptions {
        on_loss: OnLoss::Fatal,
        offset_bytes: 4096,
        bytes: Some(0x110),
        ..SegmentOptions::default()
    };
    let segment = part.map(BarKind::WriteCombining, &options).unwrap();
    segment.copy_in(0x10, &[7]).unwrap();
    let file = host.path().join("bus/pci/devices/0000:3b:00.1/resource2_wc");
    assert_eq!(fs::read(file).unwrap()[0x1010], 7);
    let beyond =
        part.map(BarKind::WriteCombining, &SegmentOptions { bytes: Some(0x111), ..options }).unwrap_err();
    assert!(matches!(beyond, SegmentError::Outside { .. }), "{beyond}");
    let default = part
        .map(BarKind::WriteCombining, &SegmentOptions { on_loss: OnLoss::Refused, ..options })
        .unwrap_err();
    assert!(matches!(default, SegmentError::CanBeLost { .. }), "{default}");
    // The last bytes, and a BAR without a file for combined stores.
    assert_eq!(BarPart::find(host.path(), 0xfe00_3ff0, 16).unwrap().offset_bytes(), 0x3ff0);
}

#[test]
fn what_is_in_no_memory_bar_as_a_whole_is_not_found() {
    let host = host();
    let roms_first = 0xe000_0000;
    for (address, bytes) in [
        (0xfe00_3ff0, 17),
        (0xfdff_ffff, 2),
        (0xc000, 16),
        (0x1000, 4096),
        (roms_first, 16),
        (0xfe00_0000, 0),
        (u64::MAX, 2),
    ] {
        let refused = BarPart::find(host.path(), address, bytes).unwrap_err();
        assert!(matches!(refused, BarPartError::NotABar { .. }), "{address:#x}: {refused:?}");
    }
    assert!(why(BarPart::find(host.path(), 0x1000, 1)).contains("the host's own memory"));
    let nothing = TempDir::new().unwrap();
    assert!(matches!(BarPart::find(nothing.path(), 0xfe00_0000, 1), Err(BarPartError::NotABar { .. })));
}

#[test]
fn bar_whose_file_is_not_there_or_too_small_is_refused() {
    let host = sysfs(&[("0000:3b:00.1", TWO, &[("resource2", 4096)])]);
    assert!(matches!(BarPart::find(host.path(), 0xfe00_0000, 1), Err(BarPartError::Bar(_))));
    let small = BarPart::find(host.path(), 0x40_0000_1000, 1).unwrap_err();
    assert!(matches!(small, BarPartError::Outside { whole: 4096, .. }), "{small:?}");
}

#[test]
fn descriptor_of_anything_else_is_no_bar() {
    let host = host();
    let open = |path: &Path, flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let from = |fd: OwnedFd| BarPart::from_fds(Path::new(SYSFS), &[fd.as_fd()], 0, 1);
    let bar = host.path().join("bus/pci/devices/0000:3b:00.1/resource0");
    // Its name is a BAR's, and its file system is not the kernel's.
    assert!(why(from(open(&bar, OFlags::RDWR))).contains("its file system is not"));
    for flags in [OFlags::RDONLY, OFlags::WRONLY, OFlags::PATH] {
        assert!(why(from(open(&bar, flags))).contains("not open for loads and stores"));
    }
    let other = host.path().join("resource0");
    fs::write(&other, [0; 64]).unwrap();
    assert!(why(from(open(&other, OFlags::RDWR))).contains("is another file"));
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    assert!(matches!(from(pipe), Err(BarPartError::NotPassed { .. })));
    // The kernel's own file systems are known by their mounts.
    let flags = OFlags::RDONLY;
    assert!(is_of_sysfs(open(Path::new("/sys/bus"), flags).as_raw_fd()));
    assert!(!is_of_sysfs(open(Path::new("/proc/self/maps"), flags).as_raw_fd()));
    let mounts = "25 30 0:23 / /sys rw,nosuid - sysfs sysfs rw\n26 25 0:9 / /x rw shared:2 - fuse sysfs rw\n";
    assert!(is_sysfs_mount(mounts, "25") && !is_sysfs_mount(mounts, "26") && !is_sysfs_mount(mounts, "2"));
}

#[test]
fn both_files_of_a_bar_are_passed_and_each_kind_maps_its_own() {
    let host = host();
    let part = BarPart::find(host.path(), 0x40_0000_1010, 0x100).unwrap();
    let folder = host.path().join("bus/pci/devices/0000:3b:00.1");
    let passed = |fds: &[BorrowedFd<'_>]| BarPart::from_fds(host.path(), fds, 0x1010, 0x100);
    let fds: Vec<_> = part.fds().collect();
    let there = passed(&fds).unwrap();
    assert_eq!((there.bus_address(), there.bytes(), there.fds().count()), (0x40_0000_1010, 0x100, 2));
    let options = SegmentOptions { on_loss: OnLoss::Fatal, bytes: Some(8), ..SegmentOptions::default() };
    for (kind, name) in [(BarKind::Uncached, "resource2"), (BarKind::WriteCombining, "resource2_wc")] {
        there.map(kind, &options).unwrap().copy_in(0, name.as_bytes().first_chunk::<8>().unwrap()).unwrap();
        assert_eq!(fs::read(folder.join(name)).unwrap()[..8], name.as_bytes()[..8]);
        fs::write(folder.join(name), [0; 65536]).unwrap();
    }
    // A BAR has an uncached file, and no more than two.
    for fds in [&[][..], &fds[1..], &[fds[0], fds[0]], &[fds[0], fds[1], fds[1]]] {
        assert!(matches!(passed(fds), Err(BarPartError::NotPassed { .. })), "{fds:?}");
    }
    assert!(matches!(BarPart::from_fds(host.path(), &fds, 65536, 1), Err(BarPartError::Outside { .. })));
    // Of a folder that this process was not told of.
    let other = TempDir::new().unwrap();
    assert!(why(BarPart::from_fds(other.path(), &fds, 0, 1)).contains("its file system is not"));
    // A BAR whose stores may not be combined has one file, whatever is asked.
    let plain = BarPart::find(host.path(), 0xfe00_0000, 16).unwrap();
    assert_eq!(plain.fds().count(), 1);
    plain.map(BarKind::WriteCombining, &options).unwrap();
}

#[test]
fn memory_that_begins_inside_a_word_is_refused() {
    let host = host();
    for address in [0x40_0000_1001, 0x40_0000_1004] {
        let refused = BarPart::find(host.path(), address, 8).unwrap_err();
        assert!(matches!(refused, BarPartError::Unaligned { .. }), "{refused:?}");
    }
}

#[test]
fn names_of_bars_are_told_from_others() {
    let of = |name: &str| named(Path::new(name)).is_some();
    let path = "/sys/devices/pci0000:3a/0000:3b:00.1/resource3_wc";
    let (function, index, combines) = named(Path::new(path)).unwrap();
    assert_eq!((function.to_string().as_str(), index, combines), ("0000:3b:00.1", 3, true));
    let folder = "/sys/devices/pci0000:3a/0000:3b:00.1";
    assert!(of(&format!("{folder}/resource0")) && of(&format!("{folder}/resource5_wc")));
    for name in
        ["resource6", "resource", "resource0_wc_wc", "resource00", "rom", "config", "resource0 (deleted)"]
    {
        assert!(!of(&format!("{folder}/{name}")), "{name}");
    }
    assert!(!of("/sys/devices/x/resource0") && !of("resource0"));
}

/// A BAR of this machine, if it has one that can be mapped.
#[test]
fn bar_of_this_machine_is_found_by_its_address() {
    let mut looked_at = 0;
    let sysfs = Path::new(SYSFS);
    for bar in bars(sysfs) {
        let Ok(part) = BarPart::find(sysfs, bar.first, 16) else { continue };
        looked_at += 1;
        assert_eq!((part.bus_address(), part.offset_bytes()), (bar.first, 0));
        let passed = BarPart::from_fds(sysfs, &part.fds().collect::<Vec<_>>(), 0, 16).unwrap();
        assert_eq!((passed.bytes(), passed.bus_address()), (16, bar.first));
    }
    if looked_at == 0 {
        println!("left out: no BAR of this machine can be opened");
    }
}
