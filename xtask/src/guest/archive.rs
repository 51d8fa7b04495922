//! An archive of files as the kernel unpacks it at its start: cpio, format newc.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use cpio::newc;

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// Where an archive may begin that follows another one.
const ALIGNMENT: usize = 512;

/// Files, folders and links, by paths without a first slash.
#[derive(Debug, Default)]
pub struct Archive {
    /// Sorted, so that each folder comes before what is in it.
    entries: BTreeMap<String, (u32, Vec<u8>)>,
}

impl Archive {
    /// Adds a file, and the folders that it is in.
    pub fn file(&mut self, path: &str, bytes: Vec<u8>, is_program: bool) {
        let rights = if is_program { 0o755 } else { 0o644 };
        self.add(path, FILE | rights, bytes);
    }

    /// Adds a link to `target`.
    pub fn link(&mut self, path: &str, target: &str) {
        self.add(path, LINK | 0o777, target.into());
    }

    /// Adds an empty folder.
    pub fn folder(&mut self, path: &str) {
        self.add(path, FOLDER | 0o755, Vec::new());
    }

    /// Whether something is there under this path.
    pub fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    fn add(&mut self, path: &str, mode: u32, bytes: Vec<u8>) {
        for parent in Path::new(path).ancestors().skip(1) {
            let parent = parent.to_string_lossy();
            if !parent.is_empty() && !self.has(&parent) {
                self.entries.insert(parent.into_owned(), (FOLDER | 0o755, Vec::new()));
            }
        }
        self.entries.insert(path.to_owned(), (mode, bytes));
    }

    /// The archive, which another one may follow.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        for (inode, (path, (mode, content))) in (1..).zip(&self.entries) {
            let size = u32::try_from(content.len()).map_err(io::Error::other)?;
            let links = if mode & FOLDER == FOLDER { 2 } else { 1 };
            let mut entry = newc::Builder::new(path).ino(inode).mode(*mode).nlink(links).write(out, size);
            entry.write_all(content)?;
            out = entry.finish()?;
        }
        out = newc::trailer(out)?;
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Path, mode and content of each entry.
    fn entries(archive: &Archive) -> Vec<(String, u32, Vec<u8>)> {
        let bytes = archive.bytes().unwrap();
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        loop {
            let mut reader = newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return found;
            }
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut content = Vec::new();
            reader.read_to_end(&mut content).unwrap();
            found.push((name, mode, content));
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn folders_come_before_what_is_in_them() {
        let mut archive = Archive::default();
        archive.file("usr/bin/ip", b"odd".to_vec(), true);
        archive.file("usr/a", b"text".to_vec(), false);
        archive.link("bin", "usr/bin");
        archive.folder("proc");
        let found = entries(&archive);
        let names: Vec<&str> = found.iter().map(|(name, ..)| &**name).collect();
        assert_eq!(names, ["bin", "proc", "usr", "usr/a", "usr/bin", "usr/bin/ip"]);
        let modes: Vec<u32> = found.iter().map(|(_, mode, _)| *mode).collect();
        assert_eq!(modes, [0o120_777, 0o040_755, 0o040_755, 0o100_644, 0o040_755, 0o100_755]);
        assert_eq!(found[0].2, b"usr/bin");
        assert_eq!(found[5].2, b"odd");
    }

    #[test]
    fn later_file_replaces_an_earlier_one() {
        let mut archive = Archive::default();
        archive.file("a", b"1".to_vec(), false);
        archive.file("a", b"22".to_vec(), false);
        assert_eq!(entries(&archive), [("a".to_owned(), 0o100_644, b"22".to_vec())]);
        assert!(archive.has("a") && !archive.has("b"));
    }
}
