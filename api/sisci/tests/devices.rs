//! Segments that are memory of a device, with a folder that looks like sysfs in place of the machine's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "calls functions of C")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Fabric, Program, play};

const FUNCTION: &str = "bus/pci/devices/0000:3b:00.1";
/// A BAR whose stores are not combined, ports, and a BAR of 64 bits whose stores may be.
const BARS: &str = "0x00000000fe000000 0x00000000fe003fff 0x0000000000040200
0x000000000000c000 0x000000000000c07f 0x0000000000040101
0x0000004000000000 0x000000400000ffff 0x000000000014220c
";

/// A fabric whose programs find devices in a folder.
struct Devices {
    fabric: Fabric,
    sysfs: tempfile::TempDir,
}

impl Devices {
    fn new() -> Self {
        let (fabric, sysfs) = (Fabric::new(), tempfile::tempdir().unwrap());
        let function = sysfs.path().join(FUNCTION);
        fs::create_dir_all(&function).unwrap();
        fs::write(function.join("resource"), BARS).unwrap();
        for (name, bytes) in [("resource0", 16384), ("resource2", 65536), ("resource2_wc", 65536)] {
            fs::write(function.join(name), vec![0; bytes]).unwrap();
        }
        fabric.configure(&format!("sysfs = {:?}\n", sysfs.path()));
        Devices { fabric, sysfs }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.sysfs.path().join(FUNCTION).join(name)
    }

    fn text(&self, name: &str, offset: usize, bytes: usize) -> String {
        String::from_utf8(fs::read(self.file(name)).unwrap()[offset..offset + bytes].to_vec()).unwrap()
    }
}

/// Has it make an available segment of a device, from 0x4000001010 on.
fn offer(owner: &mut Program) {
    owner.run(&["create sd s 7 0 EMPTY", "attach s 4000001010 8192", "prepare s 0", "available s 0"]);
}

fn connect(user: &mut Program) {
    user.run(&["connect sd r 4 7 0 1000"]);
}

#[test]
fn role() {
    play();
}

#[test]
fn another_process_stores_into_a_device_that_a_segment_is_made_of() {
    let devices = Devices::new();
    let (mut owner, mut user) = (devices.fabric.opened("4"), devices.fabric.opened("8"));
    offer(&mut owner);
    owner.expect("size s", "8192");
    connect(&mut user);
    user.expect("remote_size r", "8192");
    user.expect("map_remote r m 0 8193", "OUT_OF_RANGE");
    user.run(&["map_remote r m 0 8192", "store m 5 theirs", "sequence m q"]);
    assert_eq!(devices.text("resource2_wc", 0x1015, 6), "theirs");
    user.expect("start q", "OK");
    user.run(&["copy q m 8184 atTheEnd ERROR_CHECK"]);
    assert_eq!(devices.text("resource2_wc", 0x1010 + 8184, 8), "atTheEnd");
    owner.run(&["map s o 4 100", "store o 100 beyondTheMap"]);
    owner.expect("load o 1 6", "theirs");
    user.run(&["unsequence q", "unmap m", "disconnect r"]);
    owner.run(&["unmap o", "remove s"]);
}

#[test]
fn map_that_is_not_cached_is_of_the_file_that_combines_no_stores() {
    let devices = Devices::new();
    let (mut owner, mut user) = (devices.fabric.opened("4"), devices.fabric.opened("8"));
    offer(&mut owner);
    connect(&mut user);
    user.run(&["map_remote r m 0 64 IO_MAP_IOSPACE", "store m 0 uncached"]);
    owner.run(&["map s o 64 64 IO_MAP_IOSPACE", "store o 0 itself"]);
    assert_eq!(devices.text("resource2", 0x1010, 8), "uncached");
    assert_eq!(devices.text("resource2", 0x1050, 6), "itself");
    assert_eq!(fs::read(devices.file("resource2_wc")).unwrap(), vec![0; 65536]);
    for flag in ["LOCK_OPERATION", "WRITE_BACK_CACHE_MAP"] {
        user.expect(&format!("map_remote r n 0 64 {flag}"), "FLAG_NOT_IMPLEMENTED");
        owner.expect(&format!("map s n 0 64 {flag}"), "FLAG_NOT_IMPLEMENTED");
        assert!(owner.call("why").contains("the segment is of a device"));
    }
    // Those that failed count as no maps.
    user.run(&["unmap m", "disconnect r"]);
    owner.run(&["unmap o", "remove s"]);
}

#[test]
fn segment_of_a_device_says_where_it_is_on_the_bus_and_memory_of_the_host_does_not() {
    let devices = Devices::new();
    let (mut owner, mut user) = (devices.fabric.opened("4"), devices.fabric.opened("8"));
    offer(&mut owner);
    connect(&mut user);
    for query in ["query 8 s 0x301", "query 8 s 0x302"] {
        owner.expect(query, "OK 4000001010");
    }
    // Before it is mapped, and after.
    user.expect("query 9 r 0x401", "OK 4000001010");
    user.run(&["map_remote r m 24 64"]);
    for query in ["query 10 m 0x501", "query 10 m 0x502"] {
        user.expect(query, "OK 4000001028");
    }
    user.expect("physical m", "4000001028");
    user.expect("query 9 r 0x401", "OK 4000001010");
    owner.run(&["create sd t 8 4096", "map t u 0 4096"]);
    for query in ["query 8 t 0x301", "query 8 t 0x302", "query 10 u 0x501", "query 10 u 0x502"] {
        owner.expect(query, "NOT_SUPPORTED");
        assert!(owner.call("why").contains("memory of the host"));
    }
    owner.expect("physical u", "0");
    owner.run(&["create sd v 9 0 EMPTY"]);
    owner.expect("query 8 v 0x301", "NOT_SUPPORTED");
}

#[test]
fn what_is_no_memory_of_a_device_is_refused_with_what_to_do() {
    let devices = Devices::new();
    let mut owner = devices.fabric.opened("4");
    owner.run(&["create sd s 7 8192 EMPTY"]);
    for (call, code, why) in [
        // Memory of the host, ports, and what reaches beyond its BAR.
        ("attach s 1000 4096", "ILLEGAL_ADDRESS", "in no memory BAR"),
        ("attach s c000 16", "ILLEGAL_ADDRESS", "in no memory BAR"),
        ("attach s fe003000 8192", "ILLEGAL_ADDRESS", "in no memory BAR"),
        ("attach s 4000001011 64", "ILLEGAL_ADDRESS", "begin the memory at a word"),
        ("attach s 4000001000 0", "SIZE_ALIGNMENT", "at least one byte"),
        ("attach s 4000001000 8193", "OUT_OF_RANGE", "is made for 8192"),
        ("attach s 4000001000 64 CUDA_BUFFER", "NOT_SUPPORTED", "of a GPU"),
        ("attach s 4000001000 64 0x1000", "ILLEGAL_FLAG", "none of this function"),
        ("register s 1000 4096 PHYSICAL", "ILLEGAL_ADDRESS", "in no memory BAR"),
    ] {
        owner.expect(call, code);
        let said = owner.call("why");
        assert!(said.contains(why), "{call}: {said}");
    }
    fs::remove_file(devices.file("resource0")).unwrap();
    owner.expect("attach s fe000000 64", "SYSTEM");
    assert!(owner.call("why").contains("the function has no such BAR"));
    // Nothing of it has made the segment one that has memory.
    owner.expect("prepare s 0", "ILLEGAL_OPERATION");
    owner.run(&["register s 4000001000 8192 PHYSICAL|LOCK_USER_MEM", "prepare s 0"]);
    owner.expect("attach s 4000001000 64", "ILLEGAL_OPERATION");
    owner.run(&["create sd t 8 64"]);
    owner.expect("attach t 4000001000 64", "ILLEGAL_OPERATION");
    owner.expect("attach x 4000001000 64", "ILLEGAL_PARAMETER");
}

/// Root may open every file but one that is for reading by whoever it is: so this takes what sysfs of a locked-down kernel does, and
/// a file system that is mounted for reading.
#[test]
fn device_that_this_process_may_not_open_is_refused_as_an_access() {
    let devices = Devices::new();
    let mut owner = devices.fabric.opened("4");
    owner.run(&["create sd s 7 0 EMPTY"]);
    if !make_immutable(&devices.file("resource0"), true) {
        eprintln!("not looked at: this file system has no files that nobody may change, or this is not root");
        return;
    }
    owner.expect("attach s fe000000 64", "ACCESS");
    let said = owner.call("why");
    make_immutable(&devices.file("resource0"), false);
    assert!(said.contains("not permitted") && said.contains("resource0"), "{said}");
    owner.run(&["attach s fe000000 64"]);
}

/// `chattr +i`: root is refused, too.
fn make_immutable(file: &Path, is_so: bool) -> bool {
    let flag = if is_so { "+i" } else { "-i" };
    let done = std::process::Command::new("chattr").arg(flag).arg(file).output();
    done.is_ok_and(|output| output.status.success())
}

#[test]
fn descriptors_of_a_folder_that_the_other_process_was_not_told_of_are_not_taken() {
    let devices = Devices::new();
    let mut owner = devices.fabric.opened("4");
    offer(&mut owner);
    // It has a BAR of the same name, at the same place.
    let other = Devices::new();
    devices.fabric.configure(&format!("sysfs = {:?}\n", other.sysfs.path()));
    let mut user = devices.fabric.opened("8");
    connect(&mut user);
    user.expect("map_remote r m 0 8192", "NODE_NOT_RESPONDING");
    user.expect("query 9 r 0x401", "NODE_NOT_RESPONDING");
    user.run(&["disconnect r"]);
    owner.run(&["remove s"]);
}
