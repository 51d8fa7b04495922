//! Exact modes for what this crate makes in the rendezvous folder, whatever the umask takes from them.
//!
//! The umask is the process's, and others of its threads make files too, so it is left alone. What it took is given back
//! through a descriptor that is a mere path: a folder or file that its owner may not open can still be had that way, and a
//! link put in its place in the meantime is not followed.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Gives what lies at `relative` in `parent` this mode if it has less of it and nothing else, and is this user's.
///
/// A mode with a right that `mode` does not have stays: whoever opens the file or folder judges it.
pub(crate) fn complete(parent: impl AsFd, relative: &Path, mode: u32) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(parent, relative, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&found)?;
    let is_link = FileType::from_raw_mode(stat.st_mode).is_symlink();
    if is_link || stat.st_uid != rustix::process::geteuid().as_raw() || !lacks(stat.st_mode & 0o777, mode) {
        return Ok(());
    }
    // `fchmod` refuses a mere path; its name in /proc leads to the same file and nowhere else.
    let name = format!("/proc/self/fd/{}", found.as_fd().as_raw_fd());
    rustix::fs::chmodat(CWD, name, Mode::from_raw_mode(mode), rustix::fs::AtFlags::empty())
}

/// Opens a file, or makes it, and gives it this mode if it has less of it ([`complete`]). A umask may have taken rights from it: from
/// one that is made here, which is open all the same, or from one that is there.
pub(crate) fn open(parent: impl AsFd, relative: &Path, flags: OFlags, mode: u32) -> Result<OwnedFd, Errno> {
    let parent = parent.as_fd();
    let open = || rustix::fs::openat(parent, relative, flags | OFlags::CREATE, Mode::from_raw_mode(mode));
    let opened = match open() {
        Err(Errno::ACCESS) => complete(parent, relative, mode).and_then(|()| open()),
        opened => opened,
    }?;
    match complete(parent, relative, mode) {
        // Somebody has removed it meanwhile.
        Ok(()) | Err(Errno::NOENT) => Ok(opened),
        Err(errno) => Err(errno),
    }
}

/// Whether a mode is a part of the wanted one, and not all of it.
fn lacks(found: u32, wanted: u32) -> bool {
    found != wanted && found & !wanted == 0
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode_after(before: u32, wanted: u32) -> u32 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(before)).unwrap();
        complete(CWD, &path, wanted).unwrap();
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_a_umask_took_is_given_back() {
        for before in [0o000, 0o400, 0o200, 0o600] {
            assert_eq!(mode_after(before, 0o600), 0o600, "{before:o}");
        }
    }

    #[test]
    fn file_that_is_opened_has_its_mode_whatever_a_umask_took_and_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let open = |path: &Path| open(CWD, path, OFlags::RDWR | OFlags::NOFOLLOW, 0o600);
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        for before in [None, Some(0o000), Some(0o400), Some(0o200), Some(0o600)] {
            if let Some(before) = before {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(before)).unwrap();
            }
            open(&path).unwrap();
            assert_eq!(mode(), 0o600, "{before:?}");
        }
        symlink(&path, dir.path().join("link")).unwrap();
        assert_eq!(open(&dir.path().join("link")).err(), Some(Errno::LOOP));
    }

    #[test]
    fn mode_with_a_right_that_is_not_wanted_stays() {
        for before in [0o644, 0o100, 0o020, 0o777] {
            assert_eq!(mode_after(before, 0o600), before, "{before:o}");
        }
    }

    #[test]
    fn link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
        symlink(&file, &link).unwrap();
        complete(CWD, &link, 0o600).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o400);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(complete(CWD, &dir.path().join("none"), 0o600), Err(Errno::NOENT));
    }
}
