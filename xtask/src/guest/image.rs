//! The files that a guest starts with: an archive that all guests have, and one of what a guest is given beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::archive::Archive;
use super::elf::{self, Needs};
use super::modules::Modules;
use super::sysroot::{Found, Sysroot};
use crate::failure::{Context, Failure, Outcome};

const INIT: &str = include_str!("init.sh");
/// Programs of each guest. Those that are names of one program, as `insmod` is of `kmod`, are links in the packages.
const PROGRAMS: [&str; 15] = [
    "busybox", "dash", "ip", "ss", "tc", "bridge", "ethtool", "iperf3", "ping", "lspci", "setpci", "kmod",
    "insmod", "rmmod", "modprobe",
];
/// Folder of the guest for added files, first in its path.
pub const ADDED: &str = "beeline";
/// What `modprobe` goes by.
const INDEXES: [&str; 7] = [
    "modules.dep.bin",
    "modules.alias.bin",
    "modules.symbols.bin",
    "modules.builtin.bin",
    "modules.builtin.alias.bin",
    "modules.builtin.modinfo",
    "modules.softdep",
];

/// A file of this machine that a guest is given: `FILE` or `FILE:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedFile {
    pub from: PathBuf,
    /// Where the guest has it, without the first slash.
    pub to: String,
}

impl AddedFile {
    /// A file that the guest has under its name in `/beeline`, which is in its path.
    pub fn of(from: impl Into<PathBuf>) -> Self {
        let from = from.into();
        let name = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
        AddedFile { from, to: format!("{ADDED}/{name}") }
    }
}

impl FromStr for AddedFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None => Ok(AddedFile::of(text)),
            Some((from, to)) if to.starts_with('/') && !to.ends_with('/') => {
                Ok(AddedFile { from: from.into(), to: to[1..].to_owned() })
            }
            Some((_, to)) => Err(format!(
                "{to} is not where a guest can have a file: name a path from / on, as in /usr/bin/x"
            )),
        }
    }
}

/// The files of all guests.
pub fn base(guest: &Sysroot, kernel: &str) -> Outcome<Vec<u8>> {
    let mut archive = Archive::default();
    archive.file("init", INIT.into(), true);
    for folder in ["proc", "sys", "dev", "run", "tmp", "root", ADDED] {
        archive.folder(folder);
    }
    for name in PROGRAMS {
        let program = guest.program(name)?;
        add_with_libraries(&mut archive, &program, guest)?;
    }
    archive.link("bin/sh", "dash");
    let modules = format!("lib/modules/{kernel}");
    for index in INDEXES {
        if let Some(found) = guest.find(&format!("{modules}/{index}")) {
            archive.file(&found.path, read(&found.here)?, false);
        }
    }
    archive.bytes().while_doing("make an archive of the guest's files")
}

/// Added files and modules, with what they need.
pub fn additions(files: &[AddedFile], modules: &[String], guest: &Sysroot, kernel: &str) -> Outcome<Vec<u8>> {
    let mut archive = Archive::default();
    let mut wanted = modules.to_vec();
    for file in files {
        let found = Found { path: file.to.clone(), here: file.from.clone() };
        if file.from.extension().is_some_and(|extension| extension == "ko") {
            let bytes = read(&file.from)?;
            wanted.extend(elf::module_needs(&bytes)?);
            archive.file(&found.path, bytes, false);
        } else {
            add_with_libraries(&mut archive, &found, guest)?;
        }
    }
    if !wanted.is_empty() {
        let folder = format!("lib/modules/{kernel}");
        let known = Modules::read(&guest.folder().join(&folder))?;
        for module in &wanted {
            for file in known.files(module)? {
                let path = format!("{folder}/{file}");
                let bytes = read(&guest.folder().join(&path))?;
                archive.file(&path, bytes, false);
            }
        }
    }
    archive.bytes().while_doing("make an archive of the added files")
}

/// Adds a file, and the libraries without which it does not start: those of the guest, or of this machine where the guest has none.
fn add_with_libraries(archive: &mut Archive, file: &Found, guest: &Sysroot) -> Outcome {
    let mut waiting = vec![file.clone()];
    while let Some(next) = waiting.pop() {
        if archive.has(&next.path) {
            continue;
        }
        let bytes = read(&next.here)?;
        let Needs { interpreter, libraries } = elf::needs(&bytes)?;
        if let Some(path) = interpreter {
            let found = guest.find(&path);
            waiting.push(found.ok_or_else(|| missing(&next, &path))?);
        }
        for name in libraries {
            let found = guest.library(&name).or_else(|| library_here(&name, &file.here));
            waiting.push(found.ok_or_else(|| missing(&next, &name))?);
        }
        archive.file(&next.path, bytes, is_program(&next.here));
    }
    Ok(())
}

fn missing(file: &Found, what: &str) -> Failure {
    Failure::new(format!("{} needs {what}, which the guest has not", file.here.display()))
}

/// A library that is beside the program, or where Debian has libraries.
fn library_here(name: &str, program: &Path) -> Option<Found> {
    let beside = program.parent().map(Path::to_owned);
    let folders =
        beside.into_iter().chain(["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from));
    let here = folders.map(|folder| folder.join(name)).find(|path| path.is_file())?;
    Some(Found { path: format!("lib/x86_64-linux-gnu/{name}"), here })
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o111 != 0)
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).while_doing(format!("read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_file_is_read_from_the_command_line() {
        let plain: AddedFile = "target/x/nic.ko".parse().unwrap();
        assert_eq!(plain, AddedFile { from: "target/x/nic.ko".into(), to: "beeline/nic.ko".to_owned() });
        let placed: AddedFile = "a:/usr/bin/b".parse().unwrap();
        assert_eq!(placed, AddedFile { from: "a".into(), to: "usr/bin/b".to_owned() });
        assert!("a:b".parse::<AddedFile>().is_err());
        assert!("a:/usr/".parse::<AddedFile>().is_err());
    }

    #[test]
    fn program_comes_with_its_libraries_and_says_which_it_lacks() {
        let empty = tempfile::tempdir().unwrap();
        let guest = Sysroot::new(empty.path().to_owned());
        let own = AddedFile { from: "/proc/self/exe".into(), to: "beeline/own".to_owned() };
        let failure = additions(&[own], &[], &guest, "6.1").unwrap_err();
        assert!(failure.to_string().contains("which the guest has not"), "{failure}");
        let script = tempfile::NamedTempFile::new().unwrap();
        let added = additions(&[AddedFile::of(script.path())], &[], &guest, "6.1").unwrap();
        assert_eq!(&added[..6], b"070701");
    }
}
