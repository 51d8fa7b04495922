//! The doctor's look at real BARs: what kind of mapping one of them gives; without a name, which there are (`windows`).
//!
//! Mapping a BAR does nothing to its device; a store may do anything. So nothing is measured until the person has said
//! which bytes of the BAR mean nothing (`--scratch`).

use std::path::{Path, PathBuf};

use beeline_link_bar::{BarFile, SYSFS};
use beeline_mmio::selftest::MemoryType;
use beeline_mmio::{BarKind, PciAddress, PciBar};

use super::args::DoctorArgs;
use super::finding::{Finding, State};
use super::mapping::{self, SCRATCH_BYTES};
use super::windows;
use crate::failure::Failure;

const SECTION: &str = "Real BARs";
/// Where functions are listed, below the root of sysfs.
const FUNCTIONS: &str = "bus/pci/devices";

/// Says what is known of BARs: without `--bar` which could be windows; with it, whether that one can
/// be mapped; with `--scratch` too, what the CPU makes of the mapping.
pub fn look(args: &DoctorArgs) -> Result<Vec<Finding>, Failure> {
    let Some(asked) = &args.bar else { return Ok(windows::look(SECTION, Path::new(SYSFS))) };
    let asked = Asked::parse(asked)?;
    let mut findings = Vec::new();
    for kind in &asked.kinds {
        match PciBar::open_under(&asked.sysfs, asked.address, asked.index, *kind) {
            Ok(bar) => findings.extend(mapped(&bar, args.scratch)?),
            Err(e) => findings.push(Finding::new(
                SECTION,
                format!("{}/{} {}", asked.address, asked.index, memory_type(*kind)),
                State::Limited,
                e.to_string(),
            )),
        }
    }
    Ok(findings)
}

/// What is to be said of a BAR that could be mapped.
fn mapped(bar: &PciBar, scratch: Option<usize>) -> Result<Vec<Finding>, Failure> {
    let name = bar.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = bar.region().bytes();
    let facts = format!("{bytes} bytes, mapped from {}", bar.path().display());
    let mut findings = vec![Finding::new(SECTION, name.clone(), State::Good, facts)];
    let Some(offset) = scratch else {
        findings.push(Finding::new(
            SECTION,
            format!("{name} measured"),
            State::Fact,
            format!(
                "no, because a store to a device may do anything; if {SCRATCH_BYTES} bytes of this BAR mean nothing to \
                 it, say where they start with --scratch OFFSET, and they are overwritten"
            ),
        ));
        return Ok(findings);
    };
    let fits = offset.checked_add(SCRATCH_BYTES).is_some_and(|end| end <= bytes);
    if !fits || !offset.is_multiple_of(beeline_mmio::LINE_BYTES) {
        let what =
            format!("--scratch {offset} gives no {SCRATCH_BYTES} aligned bytes of {name}, which has {bytes}");
        let last = bytes.saturating_sub(SCRATCH_BYTES);
        return Err(
            Failure::new(what).remedy(format!("a multiple of {} up to {last}", beeline_mmio::LINE_BYTES))
        );
    }
    findings.extend(mapping::look(SECTION, &name, bar.region(), offset, memory_type(bar.kind())));
    Ok(findings)
}

fn memory_type(kind: BarKind) -> MemoryType {
    match kind {
        BarKind::Uncached => MemoryType::Uncached,
        BarKind::WriteCombining => MemoryType::WriteCombining,
    }
}

/// A BAR as it was named.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    sysfs: PathBuf,
    address: PciAddress,
    index: u8,
    kinds: Vec<BarKind>,
}

impl Asked {
    /// Takes a resource file, which says how it is mapped, or `BDF/N`, which leaves both ways open.
    fn parse(text: &str) -> Result<Self, Failure> {
        Self::parts(text).ok_or_else(|| {
            Failure::new(format!("{text} names no BAR")).remedy(
                "--bar /sys/bus/pci/devices/0000:41:00.0/resource2_wc, or --bar 0000:41:00.0/2 \
                 (`lspci -D` lists functions)",
            )
        })
    }

    fn parts(text: &str) -> Option<Self> {
        let path = Path::new(text);
        let (folder, last) = (path.parent()?, path.file_name()?.to_str()?);
        if let Some(BarFile { address, index, kind }) = BarFile::of_path(path) {
            let parent = folder.parent()?;
            // `/sys/devices/…` holds the same folders, by where they are plugged in.
            let sysfs =
                if parent.ends_with(FUNCTIONS) { parent.ancestors().nth(3)? } else { Path::new(SYSFS) };
            let sysfs = parent.starts_with(sysfs).then(|| sysfs.to_owned())?;
            return Some(Asked { sysfs, address, index, kinds: vec![kind] });
        }
        let address = folder.to_str()?.parse().ok()?;
        let index = last.parse().ok().filter(|index| *index < 6)?;
        let kinds = vec![BarKind::WriteCombining, BarKind::Uncached];
        Some(Asked { sysfs: Path::new(SYSFS).to_owned(), address, index, kinds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BDF: &str = "0000:41:00.0";

    /// A sysfs with one function that has BAR 2, by ordinary files.
    fn sysfs() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let function = root.path().join(FUNCTIONS).join(BDF);
        std::fs::create_dir_all(&function).unwrap();
        for name in ["resource2", "resource2_wc"] {
            std::fs::write(function.join(name), [0; 8192]).unwrap();
        }
        std::fs::write(function.join("vendor"), "").unwrap();
        root
    }

    fn args(root: &tempfile::TempDir, file: &str, scratch: Option<usize>) -> DoctorArgs {
        let path = root.path().join(FUNCTIONS).join(BDF).join(file);
        DoctorArgs { bar: Some(path.to_str().unwrap().to_owned()), scratch, tune: false, json: false }
    }

    #[test]
    fn a_bar_is_named_by_function_and_number_or_by_its_file() {
        let both = Asked::parse("0000:41:00.0/2").unwrap();
        assert_eq!((both.sysfs.as_path(), both.index, both.kinds.len()), (Path::new("/sys"), 2, 2));
        for (file, kind) in [("resource2", BarKind::Uncached), ("resource2_wc", BarKind::WriteCombining)] {
            for folder in ["/sys/bus/pci/devices", "/sys/devices/pci0000:40/0000:40:01.0"] {
                let asked = Asked::parse(&format!("{folder}/{BDF}/{file}")).unwrap();
                assert_eq!((asked.sysfs.as_path(), asked.kinds), (Path::new("/sys"), vec![kind]));
            }
        }
        for wrong in [
            "0000:41:00.0",
            "0000:41:00.0/6",
            "0000:41:00.0/x",
            "41/0",
            "",
            "/sys/bus/pci/devices/0000:41:00.0/resource6",
            "/sys/bus/pci/devices/0000:41:00.0/config",
            "/home/0000:41:00.0/resource2",
        ] {
            let words = Asked::parse(wrong).unwrap_err().to_string();
            assert!(words.contains("names no BAR") && words.contains("try: --bar"), "{words}");
        }
    }

    #[test]
    fn nothing_is_stored_to_a_bar_unless_scratch_bytes_are_named() {
        let root = sysfs();
        let file = root.path().join(FUNCTIONS).join(BDF).join("resource2_wc");
        let findings = look(&args(&root, "resource2_wc", None)).unwrap();
        assert!(findings[0].words.starts_with("8192 bytes, mapped from"), "{findings:?}");
        assert!(findings[1].words.contains("--scratch"), "{findings:?}");
        assert_eq!(std::fs::read(&file).unwrap(), [0; 8192]);
        look(&args(&root, "resource2_wc", Some(1024))).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert!(bytes[1024..2048].iter().any(|byte| *byte != 0), "nothing was measured");
        assert!(bytes[..1024].iter().chain(&bytes[2048..]).all(|byte| *byte == 0), "too much was stored");
    }

    #[test]
    fn a_mapping_is_measured_against_what_its_file_promises() {
        let root = sysfs();
        // An ordinary file is cached, whatever its name says; that is what a broken BAR mapping looks like.
        let findings = look(&args(&root, "resource2_wc", Some(0))).unwrap();
        let measured = findings.iter().find_map(|finding| finding.measured.as_ref()).unwrap();
        assert_eq!(
            (&measured["memory_type"], &measured["expected"]),
            (&"cached".into(), &"write-combining".into())
        );
        assert!(
            findings
                .iter()
                .any(|f| f.state == State::Limited && f.words.contains("should be write-combining"))
        );
    }

    #[test]
    fn scratch_bytes_outside_the_bar_are_refused_with_what_would_do() {
        let root = sysfs();
        for offset in [7232, 100, usize::MAX - 63] {
            let words = look(&args(&root, "resource2", Some(offset))).unwrap_err().to_string();
            assert!(words.contains("8192") && words.contains("a multiple of 64 up to 7168"), "{words}");
        }
    }

    #[test]
    fn a_bar_that_cannot_be_mapped_is_a_finding_and_not_a_failure() {
        let root = sysfs();
        let findings = look(&args(&root, "resource0", None)).unwrap();
        assert_eq!(findings[0].state, State::Limited);
        assert!(findings[0].words.contains("lspci"), "{findings:?}");
    }
}
