//! Trees of sysfs that are made up, and what is said of the functions in them.

use super::*;

/// A sysfs with one function, of these files.
fn sysfs(functions: &[(&str, &[(&str, &str)])]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (address, files) in functions {
        let folder = root.path().join(FUNCTIONS).join(address);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in *files {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
    root
}

const NIC: &[(&str, &str)] = &[
    ("vendor", "0x15b3\n"),
    ("device", "0x1021\n"),
    ("class", "0x020000\n"),
    ("current_link_speed", "16.0 GT/s PCIe\n"),
    ("current_link_width", "16\n"),
    (
        "resource",
        "0x00000000f0000000 0x00000000f1ffffff 0x000000000014220c\n\
         0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
         0x00000000f2000000 0x00000000f2000fff 0x0000000000040200\n",
    ),
    ("resource0_wc", ""),
];
const PORT: &[(&str, &str)] = &[
    ("vendor", "0x8086\n"),
    ("device", "0x09a2\n"),
    ("class", "0x060400\n"),
    ("current_link_speed", "8.0 GT/s PCIe\n"),
    ("current_link_width", "4\n"),
];

#[test]
fn endpoints_ports_and_bridges_are_told_apart() {
    let empty = [("current_link_speed", "Unknown\n"), ("current_link_width", "0\n")];
    let idle = [&PORT[..3], &empty].concat();
    let bridge = [&PORT[..2], &[("class", "0x068000\n")]].concat();
    let root = sysfs(&[
        ("0000:3b:00.0", NIC),
        ("0000:00:1c.0", PORT),
        ("0000:00:1d.0", &idle),
        ("0000:05:00.0", &bridge),
        ("0000:06:00.0", &bridge),
    ]);
    std::fs::create_dir_all(root.path().join(BRIDGES).join("0000:06:00.0")).unwrap();
    let found = functions(root.path(), |_| true).unwrap();
    let roles: Vec<_> = found.iter().map(|it| (it.address.as_str(), it.role)).collect();
    assert_eq!(
        roles,
        [
            ("0000:00:1c.0", Some(Role::TransparentPort)),
            ("0000:00:1d.0", Some(Role::TransparentPort)),
            ("0000:05:00.0", Some(Role::OtherBridge)),
            ("0000:06:00.0", Some(Role::NonTransparentBridge)),
            ("0000:3b:00.0", Some(Role::Endpoint)),
        ]
    );
    let nic = &found[4];
    assert_eq!((nic.vendor, nic.device), (0x15b3, 0x1021));
    assert_eq!(nic.link.as_deref(), Some("16.0 GT/s PCIe x16"));
    assert_eq!(nic.windows, [Window { bar: 0, bytes: 32 << 20, is_write_combining: true }]);
    assert_eq!(nic.windows[0].to_string(), "BAR 0: 33554432 bytes");
}

#[test]
fn what_is_no_function_or_says_nonsense_is_left_out() {
    // The seventh line is no BAR's.
    let nonsense = "0x10 0x8 0x2200\n0xffffffffffffffff zero 0x2200\n0x1 0xffffffffffffffff 0x2200\n\n\
                    0x0 0xfff 0x2200\n0x1000 0x1fff 0x200\n0x2000 0x2fff 0x2200\n";
    let odd = [&NIC[..5], &[("resource", nonsense)]].concat();
    let root =
        sysfs(&[("0000:3b:00.0", &odd), ("../x", NIC), ("nonsense", NIC), ("0000:3c:00.0", &NIC[..2])]);
    let found = functions(root.path(), |_| true).unwrap();
    assert_eq!(found.iter().map(|it| it.address.as_str()).collect::<Vec<_>>(), ["0000:3b:00.0"]);
    assert_eq!(found[0].windows, [Window { bar: 2, bytes: u64::MAX, is_write_combining: false }]);
    assert!(functions(&root.path().join("none"), |_| true).is_err());
}

/// The problems of the only function of a tree.
fn problems(files: &[&[(&str, &str)]], may_open: bool) -> Vec<String> {
    let root = sysfs(&[("0000:3b:00.0", &files.concat())]);
    functions(root.path(), |_| may_open).unwrap().remove(0).problems
}

#[test]
fn function_that_could_carry_a_fabric_as_it_is_has_no_problems() {
    let most = [("max_link_speed", "16.0 GT/s PCIe\n"), ("max_link_width", "16\n"), ("enable", "1\n")];
    assert_eq!(problems(&[NIC, &most], true), [""; 0]);
}

#[test]
fn each_thing_that_stands_in_the_way_is_said_with_what_helps() {
    let said = |files: &[(&str, &str)], may_open, words: [&str; 2]| {
        let problems = problems(&[NIC, files], may_open);
        let is_it = |problem: &String| words.iter().all(|word| problem.contains(word));
        assert!(problems.len() == 1 && problems.iter().all(is_it), "{words:?}: {problems:?}");
    };
    said(&[], false, ["may not map it: run as root", "resource0_wc"]);
    said(&[("enable", "0\n")], true, ["not enabled", "write 1 to `enable`"]);
    let lesser = [("max_link_speed", "32.0 GT/s PCIe\n"), ("max_link_width", "16\n")];
    said(&lesser, true, ["16.0 GT/s PCIe x16", "could be 32.0 GT/s PCIe x16"]);
    let not_combining = problems(&[&NIC[..6]], true);
    assert!(
        not_combining.len() == 1 && not_combining[0].contains("BAR 0 is not mapped write-combining"),
        "{not_combining:?}"
    );
}

#[test]
fn locked_down_kernel_is_said_to_map_nothing() {
    let root = sysfs(&[("0000:3b:00.0", NIC)]);
    let folder = root.path().join("kernel/security");
    std::fs::create_dir_all(&folder).unwrap();
    for (text, count) in
        [("[none] integrity confidentiality\n", 0), ("none [integrity] confidentiality\n", 1)]
    {
        std::fs::write(folder.join("lockdown"), text).unwrap();
        let found = functions(root.path(), |_| true).unwrap();
        assert_eq!(found[0].problems.len(), count, "{found:?}");
    }
}

#[test]
fn port_of_unknown_speed_or_of_no_width_has_no_link() {
    for (speed, width) in [("Unknown\n", "4\n"), ("8.0 GT/s PCIe\n", "0\n"), ("8.0 GT/s PCIe\n", "255\n")] {
        let link = [("current_link_speed", speed), ("current_link_width", width)];
        let root = sysfs(&[("0000:00:1d.0", &[&PORT[..3], &link].concat())]);
        assert_eq!(functions(root.path(), |_| true).unwrap()[0].link, None, "{speed}{width}");
    }
}

#[test]
fn port_without_a_link_says_what_it_could_have_and_its_buses() {
    let most = [
        ("current_link_speed", "Unknown\n"),
        ("current_link_width", "0\n"),
        ("max_link_speed", "8.0 GT/s PCIe\n"),
        ("max_link_width", "4\n"),
        ("secondary_bus_number", "59\n"),
        ("subordinate_bus_number", "61\n"),
        // What a window needs is nothing to a port.
        ("enable", "0\n"),
    ];
    let root = sysfs(&[("0000:00:1d.0", &[&PORT[..3], &most].concat())]);
    let port = functions(root.path(), |_| true).unwrap().remove(0);
    assert_eq!((port.link, port.buses.as_deref()), (None, Some("3b-3d")));
    assert!(port.problems.len() == 1 && port.problems[0].starts_with("no link, 8.0 GT/s PCIe x4 at most"));
}

#[test]
fn bridges_between_hosts_and_shared_memory_are_known_by_their_numbers() {
    let class = |class: &'static str| ("class", class);
    for (vendor, device, class, role) in [
        ("0x8086\n", "0x347e\n", class("0x068000\n"), Role::NonTransparentBridge),
        ("0x1022\n", "0x148b\n", class("0x068000\n"), Role::NonTransparentBridge),
        ("0x111d\n", "0x8091\n", class("0x068000\n"), Role::NonTransparentBridge),
        ("0x11f8\n", "0x8535\n", class("0x068000\n"), Role::NonTransparentBridge),
        // The same switch's management endpoint and port are none.
        ("0x11f8\n", "0x8535\n", class("0x058000\n"), Role::Endpoint),
        ("0x111d\n", "0x8091\n", class("0x060400\n"), Role::TransparentPort),
        ("0x1af4\n", "0x1110\n", class("0x050000\n"), Role::SharedMemory),
        ("0x8086\n", "0x0001\n", class("0x068000\n"), Role::OtherBridge),
    ] {
        let files = [&[("vendor", vendor), ("device", device), class], &NIC[3..]].concat();
        let root = sysfs(&[("0000:3b:00.0", &files)]);
        assert_eq!(functions(root.path(), |_| true).unwrap()[0].role, Some(role), "{vendor}{device}");
    }
}

#[test]
fn bridge_behind_an_iommu_and_without_its_driver_says_so() {
    let root =
        sysfs(&[("0000:3b:00.0", &[&[("vendor", "0x8086\n"), ("device", "0x201c\n")], &NIC[2..]].concat())]);
    let group = root.path().join("kernel/iommu_groups/12");
    std::fs::create_dir_all(&group).unwrap();
    let folder = root.path().join(FUNCTIONS).join("0000:3b:00.0");
    std::os::unix::fs::symlink(&group, folder.join("iommu_group")).unwrap();
    let problems = || functions(root.path(), |_| true).unwrap().remove(0).problems;
    std::fs::write(group.join("type"), "DMA-FQ\n").unwrap();
    let [driver, iommu] = problems().try_into().unwrap();
    assert!(driver.contains("no driver has it: ntb_hw_intel"), "{driver}");
    assert!(iommu.contains("(group 12, DMA-FQ)") && iommu.contains("iommu=pt"), "{iommu}");
    std::fs::write(group.join("type"), "identity\n").unwrap();
    std::os::unix::fs::symlink("../../drivers/ntb_hw_intel", folder.join("driver")).unwrap();
    assert_eq!(problems(), [""; 0]);
    assert_eq!(functions(root.path(), |_| true).unwrap()[0].driver.as_deref(), Some("ntb_hw_intel"));
}

#[test]
fn bridge_without_a_window_says_that_and_nothing_of_windows() {
    let root =
        sysfs(&[("0000:05:00.0", &[&PORT[..2], &[("class", "0x068000\n"), ("enable", "0\n")]].concat())]);
    let problems = functions(root.path(), |_| false).unwrap().remove(0).problems;
    assert!(problems.len() == 1 && problems[0].contains("no BAR of prefetchable memory"), "{problems:?}");
}
