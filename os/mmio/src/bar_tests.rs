//! BARs, with a folder that looks like sysfs and ordinary files in the place of registers.
#![cfg(not(miri))]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use beeline_contract_memory::StorePort;
use tempfile::TempDir;

use super::*;
use crate::StoreKernel;

const ADDRESS: &str = "0000:3b:00.1";

/// A sysfs with one function: its folder is a link, as in the real one.
fn sysfs() -> (TempDir, PathBuf) {
    let root = TempDir::new().unwrap();
    let function = root.path().join("devices/pci0000:3a").join(ADDRESS);
    fs::create_dir_all(&function).unwrap();
    let devices = root.path().join("bus/pci/devices");
    fs::create_dir_all(&devices).unwrap();
    symlink(&function, devices.join(ADDRESS)).unwrap();
    (root, function)
}

fn file_of(path: &Path, bytes: usize) {
    fs::write(path, vec![0u8; bytes]).unwrap();
}

fn open(root: &TempDir, index: u8, kind: BarKind) -> Result<PciBar, MapError> {
    PciBar::open_under(root.path(), ADDRESS.parse().unwrap(), index, kind)
}

fn refusal(root: &TempDir, index: u8, kind: BarKind) -> String {
    let error = open(root, index, kind).unwrap_err();
    assert!(matches!(error, MapError::Bar { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn registers_and_windows_of_a_bar_reach_its_file() {
    let (root, function) = sysfs();
    file_of(&function.join("resource2"), 16 << 10);
    file_of(&function.join("resource2_wc"), 16 << 10);
    fs::write(function.join("enable"), "1\n").unwrap();
    let registers = open(&root, 2, BarKind::Uncached).unwrap();
    registers.region().word(0x40).store(0x1122);
    assert_eq!(fs::read(function.join("resource2")).unwrap()[0x40..0x42], [0x22, 0x11]);
    let windows = open(&root, 2, BarKind::WriteCombining).unwrap();
    assert_eq!((windows.region().bytes(), windows.kind()), (16 << 10, BarKind::WriteCombining));
    assert!(windows.region().is_device() && windows.path().ends_with("resource2_wc"));
    let mut window = windows.region().store_window(4096, 64, StoreKernel::Cached);
    drop(windows);
    window.store_line(3, &[7; 8]);
    assert_eq!(
        fs::read(function.join("resource2_wc")).unwrap()[4096 + 192..][..64],
        [7, 0, 0, 0, 0, 0, 0, 0].repeat(8)
    );
}

#[test]
fn what_is_not_there_is_named_with_a_remedy() {
    let (root, function) = sysfs();
    assert!(refusal(&root, 6, BarKind::Uncached).contains("no BAR 6"));
    let text = refusal(&root, 0, BarKind::Uncached);
    assert!(text.contains("resource0: the function has no such BAR; `lspci -vv`"), "{text}");
    file_of(&function.join("resource0"), 4096);
    let text = refusal(&root, 0, BarKind::WriteCombining);
    assert!(text.contains("resource0_wc") && text.contains("prefetchable"), "{text}");
    let error =
        PciBar::open_under(root.path(), "00:00.0".parse().unwrap(), 0, BarKind::Uncached).unwrap_err();
    assert!(error.to_string().contains("0000:00:00.0/resource0: there is no such PCI function"), "{error}");
}

#[test]
fn a_size_that_is_no_bars_is_refused() {
    let (root, function) = sysfs();
    for bytes in [0, 8, 4097] {
        file_of(&function.join("resource1"), bytes);
        let text = refusal(&root, 1, BarKind::Uncached);
        assert!(text.contains(&format!("{bytes} bytes is not the size of a BAR")), "{text}");
    }
}

#[test]
fn a_link_in_the_place_of_the_file_is_not_followed() {
    let (root, function) = sysfs();
    file_of(&root.path().join("elsewhere"), 4096);
    symlink(root.path().join("elsewhere"), function.join("resource0")).unwrap();
    assert!(refusal(&root, 0, BarKind::Uncached).contains("it is a symbolic link"));
}

#[test]
fn a_function_that_is_switched_off_is_named() {
    let (root, function) = sysfs();
    file_of(&function.join("resource0"), 4096);
    fs::write(function.join("enable"), "0\n").unwrap();
    let text = refusal(&root, 0, BarKind::Uncached);
    assert!(text.contains("switched off") && text.contains("echo 1 >"), "{text}");
}

/// Root may open every file, so that this thread gives the right up; capabilities belong to threads.
#[test]
fn a_missing_permission_is_named_with_file_and_remedy() {
    std::thread::spawn(|| {
        let (root, function) = sysfs();
        let file = function.join("resource0");
        file_of(&file, 4096);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
        let mut capabilities = rustix::thread::capabilities(None).unwrap();
        capabilities.effective.remove(rustix::thread::CapabilitySet::DAC_OVERRIDE);
        rustix::thread::set_capabilities(None, capabilities).unwrap();
        let text = refusal(&root, 0, BarKind::Uncached);
        assert!(text.contains("resource0: permission denied; run as root, or"), "{text}");
    })
    .join()
    .unwrap();
}

#[test]
fn what_cannot_be_mapped_is_explained() {
    let address = ADDRESS.parse().unwrap();
    let (why, remedy) = explain_map(Errno::INVAL, address);
    assert!(why.contains("I/O port") && remedy.contains(ADDRESS), "{why}; {remedy}");
    assert!(explain_map(Errno::PERM, address).1.contains("lockdown"));
    assert!(explain_open(Errno::PERM, Path::new("/"), BarKind::Uncached).1.contains("lockdown"));
}
