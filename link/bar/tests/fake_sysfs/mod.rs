//! A sysfs in a folder: functions whose BARs are ordinary files.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A function that has everything a window needs: `0000:3b:00.0`, whose BAR 2 is prefetchable and has 64 KiB.
pub const GOOD: &str = "0000:3b:00.0";
pub const GOOD_BYTES: usize = 64 << 10;
/// BAR 0 of 4 KiB registers, BAR 2 prefetchable, the others none.
pub const GOOD_RESOURCE: &str = "\
0x00000000fe000000 0x00000000fe000fff 0x0000000000040200
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000004000000000 0x000000400000ffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x000000000000c000 0x000000000000c01f 0x0000000000040101
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000000000000000 0x0000000000000000 0x0000000000000000
";

pub struct FakeSysfs(tempfile::TempDir);

impl FakeSysfs {
    pub fn new() -> Self {
        let sysfs = FakeSysfs(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(sysfs.root().join("bus/pci/devices")).unwrap();
        sysfs
    }

    pub fn with_good() -> Self {
        let sysfs = Self::new();
        sysfs.add(GOOD, GOOD_RESOURCE);
        sysfs
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn folder(&self, address: &str) -> PathBuf {
        self.root().join("bus/pci/devices").join(address)
    }

    /// A function without a driver whose memory is on; each memory BAR has its files, of bytes that are not zero.
    pub fn add(&self, address: &str, resource: &str) {
        let folder = self.folder(address);
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &[u8]| std::fs::write(folder.join(name), text).unwrap();
        write("class", b"0x020000\n");
        write("vendor", b"0x1d0f\n");
        write("device", b"0xefa1\n");
        write("enable", b"1\n");
        write("config", &[0x0f, 0x1d, 0xa1, 0xef, 0x06, 0, 0x10, 0]);
        write("resource", resource.as_bytes());
        symlink("../../../kernel/iommu_groups/17", folder.join("iommu_group")).unwrap();
        for (index, line) in resource.lines().take(6).enumerate() {
            let number = |at: usize| {
                let field = line.split(' ').nth(at).unwrap_or_default();
                u64::from_str_radix(field.trim_start_matches("0x"), 16).unwrap_or(0)
            };
            let (first, last, flags) = (number(0), number(1), number(2));
            if flags & 0x200 == 0 || last - first >= 1 << 20 {
                continue;
            }
            let bytes: Vec<u8> = (0..=last - first).map(|at| (at % 251) as u8).collect();
            write(&format!("resource{index}"), &bytes);
            if flags & 0x2000 != 0 {
                write(&format!("resource{index}_wc"), &bytes);
            }
        }
    }

    pub fn bind(&self, address: &str, driver: &str) {
        let link = self.folder(address).join("driver");
        let _ = std::fs::remove_file(&link);
        symlink(format!("../../../bus/pci/drivers/{driver}"), link).unwrap();
    }
}
