//! The doctor's list of BARs that could be windows: which there are, and what each of the others lacks.
//!
//! It reads what sysfs says (`link/bar`) and maps nothing. HotOS'25 §2.1 needs a BAR that is prefetchable and mapped write-combining.

use std::path::Path;

use beeline_link_bar::{BarRegion, Function, Obstacle};
use bytesize::ByteSize;
use serde_json::{Value, json};

use super::finding::{Finding, State};

/// Registers that are named before the rest is counted.
const NAMED_REGISTERS: usize = 8;

/// Says of each prefetchable BAR whether it could be a window, and of all others that they are registers. Where no BAR can be mapped at
/// all, one sentence says so.
pub fn look(section: &'static str, sysfs: &Path) -> Vec<Finding> {
    const ALL: &str = "BARs for windows";
    let scanned = match Function::scan(sysfs) {
        Ok(scanned) => scanned,
        Err(error) => return vec![Finding::new(section, ALL, State::Limited, error.to_string())],
    };
    let mut findings = Vec::new();
    let mut functions = Vec::new();
    for function in scanned {
        match function {
            Ok(function) => functions.push(function),
            Err(error) => {
                let words = format!("{error}; nothing is known of this function");
                findings.push(Finding::new(section, "PCI function", State::Fact, words));
            }
        }
    }
    let bars: Vec<(&Function, &BarRegion)> =
        functions.iter().flat_map(|it| it.regions.iter().map(move |region| (it, region))).collect();
    if bars.iter().all(|(_, region)| region.file.is_none() && region.combining_file.is_none()) {
        let measured = Value::Array(bars.iter().map(|(function, region)| facts(function, region)).collect());
        let words = none_can_be_mapped(&functions, bars.len());
        findings.push(Finding { measured: Some(measured), ..Finding::new(section, ALL, State::Fact, words) });
        return findings;
    }
    let (windows, registers): (Vec<_>, Vec<_>) =
        bars.into_iter().partition(|(_, region)| region.is_prefetchable);
    if windows.is_empty() {
        let words = "none: no PCI function has a prefetchable memory BAR; shared memory needs none";
        findings.push(Finding::new(section, ALL, State::Fact, words));
    }
    findings.extend(windows.into_iter().map(|(function, region)| of_bar(section, function, region)));
    findings.extend(of_registers(section, &registers));
    findings
}

fn none_can_be_mapped(functions: &[Function], bars: usize) -> String {
    match (functions.len(), bars) {
        (0, _) => "none: there is no PCI function; shared memory needs none".to_owned(),
        (functions, 0) => {
            format!("none: no memory BAR among {functions} PCI functions; shared memory needs none")
        }
        (functions, bars) => format!(
            "none: the kernel has made no resourceN file for any of the {bars} memory BARs of {functions} PCI functions, so no program can \
             map one; shared memory needs none"
        ),
    }
}

fn of_bar(section: &'static str, function: &Function, region: &BarRegion) -> Finding {
    let obstacles = function.obstacles(region);
    let address = function.address;
    let what = format!("{address} BAR {}", region.index);
    let is = format!(
        "{:04x}:{:04x} {}, {}, prefetchable, {}, {}",
        function.vendor,
        function.device,
        function.class_name(),
        ByteSize(region.bytes).display().iec(),
        function.driver.as_ref().map_or("no driver".to_owned(), |driver| format!("driver {driver}")),
        function
            .iommu_group
            .map_or("no IOMMU group (VFIO needs one, its file does not)".to_owned(), |group| {
                format!("IOMMU group {group}")
            }),
    );
    let (state, words) = if obstacles.is_empty() {
        let command = format!("beeline compare --bar {address} --region {} --stores", region.index);
        (State::Good, format!("{is}; it could be a window: `{command}` measures it by scratching it"))
    } else {
        let missing: Vec<String> = obstacles.iter().map(Obstacle::to_string).collect();
        (State::Fact, format!("{is}; no window: {}", missing.join("; ")))
    };
    Finding { measured: Some(facts(function, region)), ..Finding::new(section, what, state, words) }
}

/// One finding for all BARs that are not prefetchable; none if there are none.
fn of_registers(section: &'static str, registers: &[(&Function, &BarRegion)]) -> Option<Finding> {
    let count = registers.len();
    let name =
        |(function, region): &(&Function, &BarRegion)| format!("{} BAR {}", function.address, region.index);
    let mut named: Vec<String> = registers.iter().take(NAMED_REGISTERS).map(name).collect();
    if count > NAMED_REGISTERS {
        named.push(format!("{} more", count - NAMED_REGISTERS));
    }
    let words = format!("{count}, which are no windows: {}", named.join(", "));
    let measured = Value::Array(registers.iter().map(|(function, region)| facts(function, region)).collect());
    let finding = Finding::new(section, "not prefetchable", State::Fact, words);
    (count > 0).then_some(Finding { measured: Some(measured), ..finding })
}

fn facts(function: &Function, region: &BarRegion) -> Value {
    let missing: Vec<String> = function.obstacles(region).iter().map(Obstacle::to_string).collect();
    json!({
        "address": function.address.to_string(),
        "vendor": format!("{:04x}", function.vendor),
        "device": format!("{:04x}", function.device),
        "class": format!("{:06x}", function.class),
        "region": region.index,
        "bytes": region.bytes,
        "is_prefetchable": region.is_prefetchable,
        "has_file": region.file.is_some(),
        "has_write_combining_file": region.combining_file.is_some(),
        "driver": function.driver,
        "iommu_group": function.iommu_group,
        "missing": missing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTION: &str = "Real BARs";
    const NONE: &str = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    const REGISTERS: &str = "0x00000000fe000000 0x00000000fe000fff 0x0000000000040200\n";
    const WINDOW: &str = "0x0000004000000000 0x000000400000ffff 0x000000000014220c\n";

    /// A sysfs of functions, each with registers in BAR 0 and, if it is so asked, a prefetchable BAR 2.
    fn sysfs(functions: &[(&str, bool)], with_files: bool) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (address, has_window) in functions {
            let folder = root.path().join("bus/pci/devices").join(address);
            std::fs::create_dir_all(&folder).unwrap();
            let window = if *has_window { WINDOW } else { NONE };
            let resource = format!("{REGISTERS}{NONE}{window}{}", NONE.repeat(4));
            let texts = [("class", "0x020000\n"), ("vendor", "0x1d0f\n"), ("device", "0xefa1\n")];
            for (name, text) in texts.into_iter().chain([("resource", &*resource)]) {
                std::fs::write(folder.join(name), text).unwrap();
            }
            let files: &[&str] = match (with_files, has_window) {
                (false, _) => &[],
                (true, false) => &["resource0"],
                (true, true) => &["resource0", "resource2", "resource2_wc"],
            };
            for name in files {
                std::fs::write(folder.join(name), [0; 4096]).unwrap();
            }
        }
        root
    }

    #[test]
    fn machine_without_resource_files_is_told_so_in_one_sentence() {
        let root = sysfs(&[("0000:00:01.0", false), ("0000:00:02.0", true)], false);
        let findings = look(SECTION, root.path());
        assert_eq!(findings.len(), 1, "{findings:?}");
        let words = "none: the kernel has made no resourceN file for any of the 3 memory BARs of 2 PCI functions, so no program can map \
                     one; shared memory needs none";
        assert_eq!((findings[0].state, &*findings[0].words), (State::Fact, words));
        assert_eq!(findings[0].measured.as_ref().unwrap().as_array().unwrap().len(), 3);
        assert!(look(SECTION, Path::new("/nowhere"))[0].words.starts_with("none: there is no PCI function"));
    }

    #[test]
    fn bar_that_could_be_a_window_is_told_from_one_whose_driver_is_bound() {
        let root = sysfs(&[("0000:00:01.0", true), ("0000:00:02.0", true), ("0000:00:03.0", false)], true);
        let folder = root.path().join("bus/pci/devices/0000:00:02.0");
        std::os::unix::fs::symlink("../drivers/nvme", folder.join("driver")).unwrap();
        std::os::unix::fs::symlink("../iommu_groups/4", folder.join("iommu_group")).unwrap();
        std::fs::create_dir_all(root.path().join("bus/pci/devices/0000:00:04.0")).unwrap();
        let findings = look(SECTION, root.path());
        let words: Vec<String> = findings.iter().map(|it| format!("{}: {}", it.what, it.words)).collect();
        assert!(
            words[0].contains("0000:00:04.0/class, line 1: the file is missing; nothing is known"),
            "{words:?}"
        );
        assert_eq!(
            words[1],
            "0000:00:01.0 BAR 2: 1d0f:efa1 network, 64.0 KiB, prefetchable, no driver, no IOMMU group (VFIO needs one, its file does \
             not); it could be a window: `beeline compare --bar 0000:00:01.0 --region 2 --stores` measures it by scratching it"
        );
        assert_eq!(findings[1].state, State::Good);
        assert!(
            words[2].contains("driver nvme, IOMMU group 4; no window: the kernel's driver nvme uses"),
            "{words:?}"
        );
        assert_eq!(findings[2].state, State::Fact);
        assert_eq!(findings[2].measured.as_ref().unwrap()["missing"].as_array().unwrap().len(), 1);
        assert_eq!(
            words[3],
            "not prefetchable: 3, which are no windows: 0000:00:01.0 BAR 0, 0000:00:02.0 BAR 0, 0000:00:03.0 BAR 0"
        );
        assert_eq!(findings.len(), 4);
    }

    #[test]
    fn registers_are_named_up_to_a_number_and_counted_beyond_it() {
        let addresses: Vec<String> = (0..10).map(|at| format!("0000:00:{at:02x}.0")).collect();
        let functions: Vec<(&str, bool)> = addresses.iter().map(|address| (&**address, false)).collect();
        let root = sysfs(&functions, true);
        let findings = look(SECTION, root.path());
        assert!(findings[0].words.starts_with("none: no PCI function has a prefetchable"), "{findings:?}");
        assert!(findings[1].words.ends_with("0000:00:07.0 BAR 0, 2 more"), "{findings:?}");
    }
}
