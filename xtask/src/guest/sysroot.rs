//! A folder with packages unpacked in it: its files as a system that is started there finds them, and its programs run here.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// Where Debian has programs.
const PROGRAMS: [&str; 4] = ["usr/sbin", "usr/bin", "sbin", "bin"];
/// Where Debian's dynamic linker looks for libraries.
const LIBRARIES: [&str; 2] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
/// A folder of libraries that only some of those above need.
const LIBRARIES_OF_SOUND: &str = "usr/lib/x86_64-linux-gnu/pulseaudio";
const LINKERS: [&str; 2] = ["lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"];
/// Links in the way to a file, after which they are taken for a circle.
const LINKS: u32 = 40;

/// A file of a system root: where that system has it, and where it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Without the first slash.
    pub path: String,
    pub here: PathBuf,
}

/// A system root.
#[derive(Debug, Clone)]
pub struct Sysroot(PathBuf);

impl Sysroot {
    pub fn new(folder: PathBuf) -> Self {
        Sysroot(folder)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The file at a path of that system. Links are followed as they lead there, not as they lead here.
    pub fn find(&self, path: &str) -> Option<Found> {
        let here = self.resolve(Path::new(path), LINKS)?;
        Some(Found { path: path.trim_start_matches('/').to_owned(), here })
    }

    pub fn program(&self, name: &str) -> Outcome<Found> {
        let found = PROGRAMS.iter().find_map(|folder| self.find(&format!("{folder}/{name}")));
        found.ok_or_else(|| Failure::new(format!("{} has no program {name}", self.0.display())))
    }

    pub fn library(&self, name: &str) -> Option<Found> {
        LIBRARIES.iter().find_map(|folder| self.find(&format!("{folder}/{name}")))
    }

    /// The words that run a program of that system here: its dynamic linker, its libraries, and the program.
    pub fn command(&self, name: &str) -> Outcome<Vec<OsString>> {
        let linker = LINKERS.iter().find_map(|path| self.find(path));
        let no_linker = || Failure::new(format!("{} has no dynamic linker", self.0.display()));
        let folders = LIBRARIES.iter().chain([&LIBRARIES_OF_SOUND]).map(|folder| self.0.join(folder));
        let path = folders.map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":");
        Ok(vec![
            linker.ok_or_else(no_linker)?.here.into(),
            "--argv0".into(),
            name.into(),
            "--library-path".into(),
            path.into(),
            self.program(name)?.here.into(),
        ])
    }

    fn resolve(&self, path: &Path, links: u32) -> Option<PathBuf> {
        let links = links.checked_sub(1)?;
        let mut inside = PathBuf::new();
        let mut parts = path.components();
        while let Some(part) = parts.next() {
            match part {
                Component::ParentDir => drop(inside.pop()),
                Component::Normal(name) => {
                    let next = inside.join(name);
                    let here = self.0.join(&next);
                    if fs::symlink_metadata(&here).ok()?.is_symlink() {
                        // An absolute target replaces what it is joined to.
                        let target = inside.join(fs::read_link(here).ok()?);
                        return self.resolve(&target.join(parts.as_path()), links);
                    }
                    inside = next;
                }
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Some(self.0.join(inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_inside() {
        let root = tempfile::tempdir().unwrap();
        let sysroot = Sysroot::new(root.path().to_owned());
        for folder in ["usr/bin", "lib/x86_64-linux-gnu"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("usr/bin/kmod"), "").unwrap();
        fs::write(root.path().join("lib/x86_64-linux-gnu/ld.so"), "").unwrap();
        symlink("/usr/bin", root.path().join("bin")).unwrap();
        symlink("kmod", root.path().join("usr/bin/insmod")).unwrap();
        symlink("../../../lib/x86_64-linux-gnu/ld.so", root.path().join("usr/bin/linker")).unwrap();
        symlink("circle", root.path().join("usr/bin/circle")).unwrap();

        let found = sysroot.find("/bin/insmod").unwrap();
        assert_eq!((&*found.path, found.here), ("bin/insmod", root.path().join("usr/bin/kmod")));
        let linker = sysroot.program("linker").unwrap();
        assert_eq!(linker.here, root.path().join("lib/x86_64-linux-gnu/ld.so"));
        assert_eq!(sysroot.find("usr/bin/circle"), None);
        assert!(sysroot.program("none").unwrap_err().to_string().contains("no program none"));
    }
}
