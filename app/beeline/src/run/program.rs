//! The command: where it is, and whether the loader will preload a library into it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use rustix::fs::{Access, access};

/// Where programs are looked for if `PATH` does not say.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What is read of a file: its program headers are there, or it is an odd one.
const LOOKED_AT_BYTES: u64 = 64 << 10;
/// Bits of a mode by which a program gets the rights of its file's owner or group.
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// Why a command is not executed, and the exit code that says so, as that of shells.
#[derive(Debug, PartialEq, Eq)]
pub struct NotFound {
    pub why: &'static str,
    pub code: u8,
}

/// Finds a command as a shell does: by its path, or in the folders of `PATH`.
///
/// # Errors
/// It is not there, or may not be executed.
pub fn find(command: &OsStr) -> Result<PathBuf, NotFound> {
    let folders = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    find_in(command, &folders)
}

fn find_in(command: &OsStr, folders: &OsStr) -> Result<PathBuf, NotFound> {
    if command.as_bytes().contains(&b'/') {
        return check(Path::new(command)).map(|()| command.into());
    }
    let mut worst = NotFound { why: "no such command in the folders of PATH", code: 127 };
    // A name that is empty would be each folder itself.
    let folders = std::env::split_paths(folders).filter(|_| !command.is_empty());
    for folder in folders {
        let path = folder.join(command);
        match check(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.code == 126 => worst = error,
            _ => {}
        }
    }
    Err(worst)
}

fn check(path: &Path) -> Result<(), NotFound> {
    let failed = |why, code| Err(NotFound { why, code });
    match path.metadata() {
        Err(_) => failed("no such file", 127),
        Ok(data) if data.is_dir() => failed("it is a folder", 126),
        Ok(_) if access(path, Access::EXEC_OK).is_err() => failed("this user may not execute it", 126),
        Ok(_) => Ok(()),
    }
}

/// What a file is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    machine: u16,
    is_64_bit: bool,
    is_little_endian: bool,
    /// Whether it names a loader.
    has_loader: bool,
}

impl Build {
    /// What an executable or a library is made for; `None` if it is no ELF file.
    pub fn of(path: &Path) -> Option<Self> {
        Self::parse(&beginning(path)?)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        Self::with::<FileHeader64<Endianness>>(bytes)
            .or_else(|| Self::with::<FileHeader32<Endianness>>(bytes))
    }

    fn with<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<Self> {
        let header = H::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let parts = header.program_headers(endian, bytes).ok()?;
        Some(Build {
            machine: header.e_machine(endian),
            is_64_bit: header.is_class_64(),
            is_little_endian: endian == Endianness::Little,
            has_loader: parts.iter().any(|part| part.p_type(endian) == PT_INTERP),
        })
    }

    fn is_for_the_same_machine(self, other: Build) -> bool {
        let machine = |build: Build| (build.machine, build.is_64_bit, build.is_little_endian);
        machine(self) == machine(other)
    }
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LOOKED_AT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Why the loader will not preload the library into a command, which then runs as if it had not been asked to.
pub fn doubt(command: &Path, library: Build) -> Option<String> {
    let bytes = beginning(command)?;
    match interpreter(&bytes) {
        // The kernel takes no rights from a script's file.
        Some(interpreter) => doubt_of_program(&interpreter, &beginning(&interpreter)?, library),
        None => doubt_of_program(command, &bytes, library),
    }
}

fn doubt_of_program(path: &Path, bytes: &[u8], library: Build) -> Option<String> {
    let name = path.display();
    if gets_rights(path) {
        return Some(format!(
            "{name} runs with the rights of its file's owner or group (setuid, setgid or capabilities): the loader ignores LD_PRELOAD \
             there"
        ));
    }
    match Build::parse(bytes) {
        None => None,
        Some(build) if !build.is_for_the_same_machine(library) => {
            Some(format!("{name} is for another machine than the library, or not of as many bits"))
        }
        Some(build) if !build.has_loader => Some(format!(
            "{name} is linked statically (as most programs of Go are): no loader preloads anything"
        )),
        Some(_) => None,
    }
}

fn gets_rights(path: &Path) -> bool {
    let Ok(data) = path.metadata() else { return false };
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let is_other_user = data.mode() & SETUID != 0 && data.uid() != uid;
    let is_other_group = data.mode() & SETGID != 0 && data.gid() != gid;
    // Root has all capabilities anyway.
    let has_capabilities =
        uid != 0 && rustix::fs::getxattr(path, "security.capability", &mut [0u8; 64]).is_ok();
    is_other_user || is_other_group || has_capabilities
}

/// `#!/bin/sh -e`: the program that runs a script.
fn interpreter(bytes: &[u8]) -> Option<PathBuf> {
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = line.split(|byte| byte.is_ascii_whitespace());
    let first = words.into_iter().find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(first)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn command_is_found_as_a_shell_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let [good, bad, folder] = ["good", "bad", "folder"].map(|name| dir.path().join(name));
        for (path, mode) in [(&good, 0o755), (&bad, 0o644)] {
            std::fs::write(path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(&folder).unwrap();
        let folders = std::env::join_paths([Path::new("/no such folder"), dir.path()]).unwrap();
        let find = |name: &str| find_in(OsStr::new(name), &folders).map_err(|error| error.code);
        assert_eq!(find("good"), Ok(good.clone()));
        assert_eq!(find(good.to_str().unwrap()), Ok(good));
        assert_eq!(["none", "", "/none"].map(find), [Err(127), Err(127), Err(127)]);
        assert_eq!(
            ["folder", bad.to_str().unwrap(), folder.to_str().unwrap()].map(find),
            [Err(126), Err(126), Err(126)]
        );
    }

    #[test]
    fn static_program_of_the_same_machine_is_told_from_one_of_another() {
        let own = Build::of(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.has_loader);
        let own_bytes = beginning(&std::env::current_exe().unwrap()).unwrap();
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = own_bytes.clone();
            change(&mut bytes);
            doubt_of_program(Path::new("/P"), &bytes, own)
        };
        assert_eq!(with(&|_| {}), None);
        let other_machine = with(&|bytes| bytes[18] ^= 1).unwrap();
        assert!(other_machine.contains("another machine"), "{other_machine}");
        // Each program header of type 3 (PT_INTERP) becomes one of type 0, which is ignored.
        let is_static = with(&|bytes| {
            for at in (64..64 + 56 * usize::from(bytes[56])).step_by(56) {
                if bytes[at] == 3 {
                    bytes[at] = 0;
                }
            }
        });
        assert!(is_static.unwrap().contains("statically"));
        assert_eq!(with(&|bytes| bytes.truncate(30)), None);
        assert_eq!(with(&|bytes| bytes[0] = 0), None);
    }

    #[test]
    fn script_is_judged_by_what_runs_it() {
        assert_eq!(interpreter(b"#! /bin/sh -e\nx"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"\x7fELF"), None);
    }
}
