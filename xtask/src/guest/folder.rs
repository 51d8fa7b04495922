//! The folder of a guest that runs: its memory, its console, its sockets. Nobody else may enter it.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Context, Failure, Outcome};

/// Where folders are made, the first that has room: in memory, so that a guest's own memory, which is a file, takes what the guest
/// has touched. Containers often have 64 MiB there.
const PLACES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];
const PREFIX: &str = "beeline-guest-";
/// Room for files beside the guest's memory: 20 MB of first files, and what is added to them.
const BESIDE_MIB: u64 = 128;

/// The folder of one guest, removed when it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Locked as long as the guest is there.
    _lock: File,
}

impl Folder {
    /// Makes one where there is room for so much memory, and removes those that were left behind.
    pub fn make(memory_mib: u32) -> Outcome<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        PLACES.iter().for_each(|place| remove_left_behind(Path::new(place)));
        let needed_mib = u64::from(memory_mib) + BESIDE_MIB;
        let place = PLACES.map(Path::new).into_iter().find(|place| free_mib(place) >= needed_mib);
        let no_room =
            || Failure::new(format!("a guest needs {needed_mib} MiB in one of {}", PLACES.join(", ")));
        // A counter and nothing else: no order with other memory is needed.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Folder::make_in(place.ok_or_else(no_room)?, &format!("{PREFIX}{}-{number}", std::process::id()))
    }

    fn make_in(place: &Path, name: &str) -> Outcome<Self> {
        let (path, unlocked) = (place.join(name), place.join(format!("new-{name}")));
        let doing = || format!("make {}", path.display());
        DirBuilder::new().mode(0o700).create(&unlocked).while_doing(doing())?;
        let lock = File::create(unlocked.join("lock")).while_doing(doing())?;
        lock.try_lock().while_doing(doing())?;
        // Under its name it is locked, so that nobody takes it for one that was left behind.
        fs::rename(&unlocked, &path).while_doing(doing())?;
        Ok(Folder { path, _lock: lock })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn free_mib(place: &Path) -> u64 {
    rustix::fs::statvfs(place).map_or(0, |found| (found.f_bavail * found.f_frsize) >> 20)
}

/// Removes folders of guests whose program was killed: nobody holds their locks. Those of other users cannot be opened.
fn remove_left_behind(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && File::open(entry.path().join("lock")).is_ok_and(|lock| lock.try_lock().is_ok())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folder_is_its_owners_and_goes_with_the_guest() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::make_in(place.path(), "beeline-guest-1-0").unwrap();
        let path = folder.path("x").parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folder_that_was_left_is_removed_and_one_in_use_is_not() {
        let place = tempfile::tempdir().unwrap();
        let used = Folder::make_in(place.path(), "beeline-guest-1-0").unwrap();
        let left = place.path().join("beeline-guest-2-0");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("lock"), "").unwrap();
        let other = place.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("lock"), "").unwrap();
        remove_left_behind(place.path());
        assert!(!left.exists() && other.exists() && used.path("lock").exists());
    }

    #[test]
    fn place_without_room_is_told() {
        let message = Folder::make(u32::MAX).unwrap_err().to_string();
        assert!(message.starts_with("a guest needs 4294967423 MiB"), "{message}");
    }
}
