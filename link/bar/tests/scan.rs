//! What is read of a sysfs: honest, incomplete and hostile ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fake_sysfs;

use std::path::Path;

use beeline_link_bar::{BarRegion, BarRights, Function, Obstacle};
use fake_sysfs::{FakeSysfs, GOOD, GOOD_BYTES, GOOD_RESOURCE};
use proptest::prelude::*;

fn read(sysfs: &FakeSysfs, address: &str) -> Result<Function, String> {
    Function::read(sysfs.root(), address.parse().unwrap()).map_err(|error| error.to_string())
}

fn obstacles(sysfs: &FakeSysfs, index: u8) -> Vec<String> {
    let function = read(sysfs, GOOD).unwrap();
    function.obstacles(function.region(index).unwrap()).iter().map(Obstacle::to_string).collect()
}

#[test]
fn function_is_read_with_its_memory_bars_and_no_others() {
    let sysfs = FakeSysfs::with_good();
    sysfs.bind(GOOD, "vfio-pci");
    let function = read(&sysfs, GOOD).unwrap();
    assert_eq!((function.class, function.vendor, function.device), (0x02_0000, 0x1d0f, 0xefa1));
    assert_eq!((function.driver.as_deref(), function.iommu_group), (Some("vfio-pci"), Some(17)));
    assert_eq!((function.decodes_memory, function.class_name()), (Some(true), "network"));
    let facts: Vec<_> = function
        .regions
        .iter()
        .map(|it| (it.index, it.bytes, it.is_prefetchable, it.file.is_some(), it.combining_file.is_some()))
        .collect();
    assert_eq!(
        facts,
        [(0, 4096, false, true, false), (2, GOOD_BYTES as u64, true, true, true)],
        "ports are none"
    );
}

#[test]
fn functions_are_listed_by_address_and_a_hostile_one_spoils_no_other() {
    let sysfs = FakeSysfs::with_good();
    sysfs.add("0000:03:00.0", GOOD_RESOURCE);
    sysfs.add("0001:00:1f.7", "nonsense\n");
    std::fs::create_dir(sysfs.folder("no\u{1b}[31maddress")).unwrap();
    let found = Function::scan(sysfs.root()).unwrap();
    let words: Vec<String> = found
        .iter()
        .map(|one| one.as_ref().map_or_else(ToString::to_string, |function| function.address.to_string()))
        .collect();
    assert!(words[0].ends_with("`no\\u{1b}[31maddress` is no PCI address"), "{words:?}");
    assert_eq!(words[1..3], ["0000:03:00.0", GOOD]);
    assert!(
        words[3].ends_with("0001:00:1f.7/resource, line 1: `nonsense` is not three numbers, as 0xfe000000")
    );
    assert!(Function::scan(Path::new("/nowhere")).unwrap().is_empty(), "a machine without PCI");
}

#[test]
fn region_that_could_be_a_window_has_no_obstacle_and_each_other_names_its_own() {
    let sysfs = FakeSysfs::with_good();
    assert!(obstacles(&sysfs, 2).is_empty());
    assert!(obstacles(&sysfs, 0)[0].contains("not prefetchable"));
    for driver in ["vfio-pci", "mlx5_vfio_pci", "uio_pci_generic", "igb_uio", "pci-stub"] {
        sysfs.bind(GOOD, driver);
        assert!(obstacles(&sysfs, 2).is_empty(), "{driver} leaves the BARs to programs");
    }
    for driver in ["liquidio", "virtio-pci", "nvme"] {
        sysfs.bind(GOOD, driver);
        let found = obstacles(&sysfs, 2);
        assert!(
            found[0].starts_with(&format!("the kernel's driver {driver} uses the function")),
            "{found:?}"
        );
    }
    std::fs::remove_file(sysfs.folder(GOOD).join("driver")).unwrap();

    std::fs::remove_file(sysfs.folder(GOOD).join("resource2_wc")).unwrap();
    let found = obstacles(&sysfs, 2);
    assert!(found[0].contains("resource2_wc, so the kernel maps it uncached only"), "{found:?}");
    std::fs::remove_file(sysfs.folder(GOOD).join("resource2")).unwrap();
    assert!(obstacles(&sysfs, 2)[0].starts_with("the kernel has made no file "));

    std::fs::write(sysfs.folder(GOOD).join("config"), [0, 0, 0, 0, 0x04, 0]).unwrap();
    let found = obstacles(&sysfs, 2);
    assert!(found[0].contains("memory decoding is off") && found[0].contains("enable` as root"), "{found:?}");
    std::fs::remove_file(sysfs.folder(GOOD).join("config")).unwrap();
    assert_eq!(obstacles(&sysfs, 2).len(), 1, "a register that is not shown is no obstacle");
    std::fs::write(sysfs.folder(GOOD).join("enable"), "0\n").unwrap();
    let found = obstacles(&sysfs, 2);
    assert!(found[0].starts_with("the function is not enabled (`echo 1 > /"), "{found:?}");
}

/// Root, as whom tests may run, may open any file: so the rights are told, not made.
#[test]
fn file_that_this_user_may_not_open_is_an_obstacle_with_its_mode_and_what_to_do() {
    let sysfs = FakeSysfs::with_good();
    let function = read(&sysfs, GOOD).unwrap();
    let mut region = function.region(2).unwrap().clone();
    let rights = region.combining_file.unwrap();
    assert!(rights.may_open && rights.mode & 0o600 == 0o600, "{rights:?}");
    let words = |region: &BarRegion| function.obstacles(region)[0].to_string();
    region.combining_file = Some(BarRights { may_open: false, mode: 0o600, uid: 0, gid: 36 });
    let found = words(&region);
    assert!(
        found.contains("resource2_wc has mode 0600, owner 0 and group 36: run as that owner, or"),
        "{found}"
    );
    assert!(found.contains("`chown $USER /") && !found.contains("join group"), "{found}");
    region.combining_file = Some(BarRights { may_open: false, mode: 0o660, uid: 0, gid: 36 });
    assert!(words(&region).contains("run as that owner, join group 36, or give this user the file"));
}

#[test]
fn region_without_an_address_is_none() {
    let sysfs = FakeSysfs::new();
    sysfs.add(GOOD, &GOOD_RESOURCE.replace("0x000000000014220c", "0x000000002014220c"));
    assert!(obstacles(&sysfs, 2)[0].contains("no address on the bus"));
}

/// A text of each file that the kernel never writes, and what is said of it.
#[test]
fn hostile_text_is_refused_with_file_and_line() {
    let long = "0x1\n".repeat(2000);
    let many = GOOD_RESOURCE.to_owned() + &"\n".repeat(70);
    let reversed = GOOD_RESOURCE.replace("0x00000000fe000fff", "0x00000000fd000fff");
    let whole = GOOD_RESOURCE
        .replace("0x0000004000000000 0x000000400000ffff", "0x0000000000000000 0xffffffffffffffff");
    let short = GOOD_RESOURCE.lines().take(3).collect::<Vec<_>>().join("\n");
    let cases: [(&str, &[u8], &str); 16] = [
        ("enable", b"on\n", "enable, line 1: `on\\n` is no count"),
        ("class", b"", "class, line 1: `` is no number from 0x0 to 0xffffff"),
        ("class", b"0x1000000\n", "class, line 1: `0x1000000` is no number"),
        ("class", b"020000\n", "class, line 1: `020000` is no number"),
        ("vendor", b"0x+1\n", "vendor, line 1: `0x+1` is no number from 0x0 to 0xffff"),
        ("vendor", b"0x1d0f\n0x2\n", "vendor, line 2: more than the one line"),
        ("device", b"0x1\0\n", "device, line 1: `0x1\\u{0}` is no number"),
        ("device", b"\xff\n", "device, line 1: it is not text"),
        ("vendor", long.as_bytes(), "vendor, line 1025: the text goes on behind 4096 bytes"),
        ("config", b"\x01\x02\x03\x04", "config, line 1: 4 bytes have no command register"),
        ("resource", b"", "resource, line 1: the line of this BAR is missing"),
        ("resource", short.as_bytes(), "resource, line 4: the line of this BAR is missing"),
        ("resource", b"0x1 0x2\n", "resource, line 1: `0x1 0x2` is not three numbers"),
        ("resource", reversed.as_bytes(), "resource, line 1: 0xfe000000 to 0xfd000fff is no range"),
        ("resource", whole.as_bytes(), "resource, line 3: 0x0 to 0xffffffffffffffff is no range"),
        ("resource", many.as_bytes(), "resource, line 65: no function has as many resources"),
    ];
    for (name, text, expected) in cases {
        let sysfs = FakeSysfs::with_good();
        std::fs::write(sysfs.folder(GOOD).join(name), text).unwrap();
        let error = read(&sysfs, GOOD).unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn links_that_lead_to_no_name_of_the_kernels_and_files_that_are_none_are_refused() {
    for (name, target, expected) in [
        ("driver", "/", "driver, line 1: the link leads to what is no name"),
        ("driver", "x/a b", "driver, line 1: the link leads to what is no name"),
        ("iommu_group", "x/-3", "iommu_group, line 1: it leads to `-3`, which is no group"),
        ("iommu_group", "x/99999999999", "iommu_group, line 1: it leads to `99999999999`"),
    ] {
        let sysfs = FakeSysfs::with_good();
        let link = sysfs.folder(GOOD).join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(target, link).unwrap();
        let error = read(&sysfs, GOOD).unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
    let sysfs = FakeSysfs::with_good();
    let file = sysfs.folder(GOOD).join("vendor");
    std::fs::remove_file(&file).unwrap();
    assert!(read(&sysfs, GOOD).unwrap_err().contains("vendor, line 1: the file is missing"));
    std::fs::create_dir(&file).unwrap();
    assert!(read(&sysfs, GOOD).unwrap_err().contains("vendor cannot be read: it is not a regular file"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_in_any_file_give_a_function_or_an_error(
        name in prop::sample::select(&["class", "vendor", "device", "config", "enable", "resource"][..]),
        text in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..5000),
            "(0x[0-9a-f]{1,17}[ \n]){0,40}".prop_map(String::into_bytes),
        ],
    ) {
        let sysfs = FakeSysfs::with_good();
        std::fs::write(sysfs.folder(GOOD).join(name), &text).unwrap();
        match read(&sysfs, GOOD) {
            Ok(function) => {
                for region in &function.regions {
                    prop_assert!(region.index < 6 && region.bytes > 0);
                    function.obstacles(region).iter().for_each(|it| assert!(!it.to_string().is_empty()));
                }
            }
            Err(error) => prop_assert!(error.contains(&format!("/{name}, line ")), "{error}"),
        }
    }
}
