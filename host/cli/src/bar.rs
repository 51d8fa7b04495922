//! The doctor's look at real BARs: which there are, and what kind of mapping one of them gives.

use std::path::Path;

use beeline_mmio::{BarKind, PciAddress, PciBar};

use crate::failure::Failure;

const SYSFS: &str = "/sys/bus/pci/devices";

/// Says what is known of BARs: whether any can be mapped write-combining, and, of the one that was asked for
/// (`0000:41:00.0/2`), whether it can be mapped. `say` gets a thing, whether it is well, and words.
pub fn look(asked: Option<&str>, say: &mut dyn FnMut(String, bool, String)) -> Result<(), Failure> {
    let Some(asked) = asked else {
        let count = write_combining_count(Path::new(SYSFS));
        let words = match count {
            0 => "no PCI resource here has a resourceN_wc file; the `bar` link needs one, `shm` does not"
                .to_owned(),
            n => format!(
                "{n} PCI resources can be mapped write-combining (root); look at one with --bar BDF/N"
            ),
        };
        say("write-combining BARs".to_owned(), count > 0, words);
        return Ok(());
    };
    let (address, index) = parse(asked)?;
    for (kind, what) in [(BarKind::WriteCombining, "write-combining"), (BarKind::Uncached, "uncached")] {
        match PciBar::open(address, index, kind) {
            Ok(bar) => say(
                format!("{asked} {what}"),
                true,
                format!("{} bytes mapped from {}", bar.region().bytes(), bar.path().display()),
            ),
            Err(e) => say(format!("{asked} {what}"), false, e.to_string()),
        }
    }
    Ok(())
}

fn parse(asked: &str) -> Result<(PciAddress, u8), Failure> {
    let wrong = || {
        Failure::new(format!("{asked} names no BAR"))
            .remedy("--bar 0000:41:00.0/2: PCI function, slash, resource number")
    };
    let (address, index) = asked.rsplit_once('/').ok_or_else(wrong)?;
    let address = address.parse().map_err(|e| wrong().because(e))?;
    let index = index.parse().ok().filter(|index| *index < 6).ok_or_else(wrong)?;
    Ok((address, index))
}

fn write_combining_count(sysfs: &Path) -> usize {
    let devices = std::fs::read_dir(sysfs).into_iter().flatten().flatten();
    let files = devices.flat_map(|device| std::fs::read_dir(device.path()).into_iter().flatten().flatten());
    files.filter(|file| file.file_name().to_string_lossy().ends_with("_wc")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_named_by_function_and_number() {
        assert!(parse("0000:41:00.0/2").is_ok());
        for wrong in ["0000:41:00.0", "0000:41:00.0/6", "0000:41:00.0/x", "41/0", ""] {
            let words = parse(wrong).unwrap_err().to_string();
            assert!(words.contains("try: --bar"), "{words}");
        }
    }

    #[test]
    fn write_combining_resources_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("0000:01:00.0");
        std::fs::create_dir(&device).unwrap();
        for name in ["resource0", "resource0_wc", "resource2_wc", "vendor"] {
            std::fs::write(device.join(name), "").unwrap();
        }
        assert_eq!(write_combining_count(folder.path()), 2);
        assert_eq!(write_combining_count(&folder.path().join("nowhere")), 0);
    }
}
