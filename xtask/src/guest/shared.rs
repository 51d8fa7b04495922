//! Memory that guests and this machine share: a file, which each guest that is given it has as BAR 2 of a function.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::folder::Folder;
use super::qemu::Device;
use crate::failure::{Context, Outcome};

/// The file, all zeros at first, removed with this.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    folder: Folder,
}

impl SharedMemory {
    /// Makes one of so many bytes, a power of two. It is in memory like that of guests: what two kernels write each millisecond is for no disk.
    pub fn make(bytes: u64) -> Outcome<Self> {
        let folder = Folder::make(0)?;
        let (mut options, doing) = (File::options(), "make a file for a BAR");
        let file = options.read(true).write(true).create_new(true).open(path(&folder)).while_doing(doing)?;
        file.set_len(bytes).while_doing(doing)?;
        Ok(SharedMemory { file, folder })
    }

    /// The function of a guest that has it.
    pub fn device(&self) -> Device {
        Device::IvshmemFile(path(&self.folder))
    }

    /// Stores a little-endian word.
    pub fn write(&self, at: u64, word: u64) -> Outcome {
        self.file.write_all_at(&word.to_le_bytes(), at).while_doing("write to the file of a BAR")
    }

    /// Loads a little-endian word.
    pub fn read(&self, at: u64) -> Outcome<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at).while_doing("read the file of a BAR")?;
        Ok(u64::from_le_bytes(bytes))
    }
}

fn path(folder: &Folder) -> PathBuf {
    folder.path("shared")
}
