//! The file or the BAR, found by its path and mapped.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use beeline_link_bar::BarFile;
use beeline_mmio::{BarKind, HugePages, MappedSegment, OnLoss, PciAddress, SegmentError, SegmentOptions};

use crate::error::OpenError;
use crate::layout::Layout;

const PAGE_BYTES: u64 = 4096;
/// `TMPFS_MAGIC` and `HUGETLBFS_MAGIC` of Linux's `magic.h`.
const TMPFS: u64 = 0x0102_1994;
const HUGETLBFS: u64 = 0x9584_58f6;

/// The memory that members share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BarMemory {
    /// A file that is there, on tmpfs or hugetlbfs.
    File(PathBuf),
    /// A BAR of a PCI function, as that of ivshmem in a guest.
    Bar { address: PciAddress, index: u8, kind: BarKind },
}

impl BarMemory {
    /// What a path names: `/sys/bus/pci/devices/0000:00:05.0/resource2` or `resource2_wc` is a BAR, everything else a file.
    pub fn of_path(path: &Path) -> Self {
        bar_of(path).unwrap_or_else(|| BarMemory::File(path.to_owned()))
    }

    /// Makes the file of a path for so many members, all zero, unless there is one. Of several processes that do so at the same time one has
    /// made it. Nothing is left of a file that cannot be used.
    ///
    /// # Errors
    /// The file is not there, and cannot be made or mapped; it would be too small, larger than what is free, or no memory.
    pub fn make_file(path: &Path, bytes: u64, members: usize) -> Result<(), OpenError> {
        if path.exists() {
            return Ok(());
        }
        if Layout::new(bytes, members).is_none() {
            return Err(OpenError::too_small(bytes, members));
        }
        let failed = |error| OpenError::NotMade { path: path.to_owned(), bytes, error };
        let random = getrandom::u64().map_err(OpenError::Random)?;
        // Under a name of its own until it has its size: whoever opens it before would find it too small.
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{random:016x}"));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&name).map_err(failed)?;
        // Before it has its own name: from then on others may use it.
        let made =
            prepare(&file, path, (bytes, members)).and_then(|()| match std::fs::hard_link(&name, path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                linked => linked.map_err(failed),
            });
        std::fs::remove_file(&name).map_err(failed)?;
        made
    }

    /// Opens it, for loads and stores.
    pub(crate) fn open(&self) -> Result<Source, OpenError> {
        match self {
            BarMemory::Bar { address, index, kind } => {
                let sysfs = Path::new("/sys");
                Ok(Source::Bar { sysfs: sysfs.to_owned(), address: *address, index: *index, kind: *kind })
            }
            BarMemory::File(path) => {
                let failed = |error| OpenError::File { path: path.clone(), error };
                let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
                check_file_system(&file, path)?;
                if file.metadata().map_err(failed)?.len() == 0 {
                    return Err(OpenError::Empty { path: path.clone() });
                }
                let is_named = file.metadata().map_err(failed)?.nlink() != 0;
                // The program may change its working directory.
                let path = is_named.then(|| std::path::absolute(path)).transpose().map_err(failed)?;
                Ok(Source::File { file, path })
            }
        }
    }
}

/// Gives a file its size, and looks whether it can be mapped.
fn prepare(file: &File, path: &Path, (bytes, members): (u64, usize)) -> Result<(), OpenError> {
    let failed = |error| OpenError::NotMade { path: path.to_owned(), bytes, error };
    let found = check_file_system(file, path)?;
    let room = rustix::fs::fstatvfs(file).map_err(|errno| failed(errno.into()))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    // A tmpfs without a limit says that it has no blocks. Huge pages are reserved by a map.
    if found == TMPFS && room.f_blocks != 0 && bytes > free {
        let needed = Layout::least_bytes(members).unwrap_or(0);
        return Err(OpenError::NoRoom { path: path.to_owned(), bytes, free, members, needed });
    }
    file.set_len(bytes).map_err(failed)?;
    map_file(file, SegmentOptions { on_loss: OnLoss::Fatal, ..SegmentOptions::default() })?;
    Ok(())
}

/// What file system a file is on, which is tmpfs or hugetlbfs: the pages of others are written to a disk, and other kernels do not see them.
fn check_file_system(file: &File, path: &Path) -> Result<u64, OpenError> {
    let stat = rustix::fs::fstatfs(file);
    let stat = stat.map_err(|errno| OpenError::File { path: path.to_owned(), error: errno.into() })?;
    match stat.f_type as u64 {
        found @ (TMPFS | HUGETLBFS) => Ok(found),
        found => Err(OpenError::NoMemory { path: path.to_owned(), found }),
    }
}

/// The memory as it was opened, to be mapped in parts: a path may be another file's by then.
#[derive(Debug)]
pub(crate) enum Source {
    /// `path` is where others find it; `None`: nowhere, as a file without a name that was passed on.
    File { file: File, path: Option<PathBuf> },
    /// `sysfs` is `/sys` but in tests.
    Bar { sysfs: PathBuf, address: PciAddress, index: u8, kind: BarKind },
}

impl Source {
    pub(crate) fn map(&self, options: SegmentOptions) -> Result<MappedSegment, SegmentError> {
        match self {
            Source::Bar { sysfs, address, index, kind } => {
                MappedSegment::bar_under(sysfs, *address, *index, *kind, &options)
            }
            Source::File { file, .. } => map_file(file, options),
        }
    }

    /// What a part begins at a multiple of.
    pub(crate) fn page_bytes(&self) -> io::Result<u64> {
        match self {
            // The blocks of a file of huge pages are those pages.
            Source::File { file, .. } => Ok(file.metadata()?.blksize().max(PAGE_BYTES)),
            Source::Bar { .. } => Ok(PAGE_BYTES),
        }
    }

    /// The path at which others do not find this file any more: it has no name, or another file has its. What cannot be seen is no evidence,
    /// as of a program that has changed its root.
    pub(crate) fn lost_path(&self) -> Option<&Path> {
        let Source::File { file, path: Some(path) } = self else { return None };
        let own = file.metadata().ok()?;
        let is_replaced =
            || path.metadata().is_ok_and(|found| (found.dev(), found.ino()) != (own.dev(), own.ino()));
        (own.nlink() == 0 || is_replaced()).then_some(path)
    }

    /// Where others find it, if it is a file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Source::File { path, .. } => path.as_deref(),
            Source::Bar { .. } => None,
        }
    }

    /// Whether maps of it are not cached, so that each load and store is one of the device's bus.
    pub(crate) fn is_uncached(&self) -> bool {
        matches!(self, Source::Bar { kind: BarKind::Uncached, .. })
    }
}

/// A file of huge pages is mapped by those, any other by ordinary ones: huge ones would take much more than is used.
fn map_file(file: &File, options: SegmentOptions) -> Result<MappedSegment, SegmentError> {
    match MappedSegment::file(file.as_fd(), &options) {
        Err(SegmentError::Pages { .. }) => {
            let huge = SegmentOptions { huge_pages: HugePages::Required, ..options };
            MappedSegment::file(file.as_fd(), &huge)
        }
        mapped => mapped,
    }
}

fn bar_of(path: &Path) -> Option<BarMemory> {
    let BarFile { address, index, kind } = BarFile::of_path(path)?;
    // Elsewhere such a name is any file's.
    path.starts_with("/sys").then_some(BarMemory::Bar { address, index, kind })
}

#[cfg(test)]
impl Source {
    /// A BAR that combines stores, which an ordinary file under `sysfs` stands for.
    pub(crate) fn of_test_bar(sysfs: &Path, bytes: usize) -> Self {
        let function = sysfs.join("bus/pci/devices/0000:3b:00.1");
        let resource = function.join("resource2_wc");
        if !resource.exists() {
            std::fs::create_dir_all(function).unwrap();
            std::fs::write(resource, vec![0; bytes]).unwrap();
        }
        let (sysfs, address) = (sysfs.to_owned(), "0000:3b:00.1".parse().unwrap());
        Source::Bar { sysfs, address, index: 2, kind: BarKind::WriteCombining }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_bar_is_told_from_that_of_a_file() {
        let bar = |path: &str| match BarMemory::of_path(Path::new(path)) {
            BarMemory::Bar { address, index, kind } => Some((address.to_string(), index, kind)),
            BarMemory::File(_) => None,
        };
        let function = "/sys/bus/pci/devices/0000:00:05.0";
        let address = "0000:00:05.0".to_owned();
        assert_eq!(bar(&format!("{function}/resource2")), Some((address.clone(), 2, BarKind::Uncached)));
        assert_eq!(bar(&format!("{function}/resource0_wc")), Some((address, 0, BarKind::WriteCombining)));
        for file in ["resource", "resource6", "resource2_wb", "resource+2", "resource_wc", "config"] {
            assert_eq!(bar(&format!("{function}/{file}")), None, "{file}");
        }
        assert_eq!(bar("/tmp/0000:00:05.0/resource2"), None);
        assert_eq!(bar("/dev/shm/beeline"), None);
    }

    #[test]
    fn file_that_several_make_at_once_has_its_size_and_nothing_else_is_left() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        let sizes = [1 << 20, 2 << 20];
        std::thread::scope(|scope| {
            let make = |bytes| {
                BarMemory::make_file(&path, bytes, 2).unwrap();
                path.metadata().unwrap().len()
            };
            let makers: Vec<_> = (0..8).map(|at| scope.spawn(move || make(sizes[at % 2]))).collect();
            let found: Vec<_> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
            assert!(found.iter().all(|bytes| *bytes == found[0] && sizes.contains(bytes)), "{found:?}");
        });
        let names: Vec<_> = dir.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["bar"]);
        assert!(BarMemory::make_file(&dir.path().join("none/bar"), 1 << 20, 2).is_err());
    }

    #[test]
    fn file_that_is_there_is_left_as_it_is() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        std::fs::write(&path, "kept").unwrap();
        BarMemory::make_file(&path, 1 << 20, 2).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn nothing_is_left_of_a_file_that_is_too_small_or_too_large() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        let make = |bytes, members| BarMemory::make_file(&path, bytes, members).unwrap_err().to_string();
        let needed = Layout::least_bytes(4).unwrap();
        let small = make(4096, 4);
        assert!(small.contains(&format!("4 members, who need {needed} bytes")), "{small}");
        assert_eq!(make(1 << 20, 17), "a memory has 2 to 16 members, and not 17");
        for bytes in [1 << 60, u64::MAX] {
            let large = make(bytes, 4);
            assert!(large.contains(&bytes.to_string()) && large.contains(&needed.to_string()), "{large}");
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn file_that_is_empty_is_named_and_refused() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        File::create(&path).unwrap();
        let refused = BarMemory::File(path.clone()).open().unwrap_err().to_string();
        assert!(refused.starts_with(&format!("{} is empty", path.display())), "{refused}");
    }

    #[test]
    fn file_is_lost_that_is_deleted_or_replaced_and_not_one_that_is_out_of_sight() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path_of = |name: &str| dir.path().join(name);
        let open = |name: &str| {
            BarMemory::make_file(&path_of(name), 1 << 20, 2).unwrap();
            BarMemory::File(path_of(name)).open().unwrap()
        };
        let [deleted, replaced, moved] = ["deleted", "replaced", "moved"].map(open);
        assert!([&deleted, &replaced, &moved].iter().all(|source| source.lost_path().is_none()));
        std::fs::remove_file(path_of("deleted")).unwrap();
        std::fs::rename(path_of("moved"), path_of("elsewhere")).unwrap();
        std::fs::hard_link(path_of("replaced"), path_of("kept")).unwrap();
        std::fs::remove_file(path_of("replaced")).unwrap();
        assert_eq!((replaced.lost_path(), moved.lost_path()), (None, None));
        std::fs::write(path_of("replaced"), "another").unwrap();
        assert_eq!(deleted.lost_path(), Some(path_of("deleted").as_path()));
        assert_eq!(replaced.lost_path(), Some(path_of("replaced").as_path()));
        let BarMemory::File(unnamed) = BarMemory::of_path(Path::new("/proc/self/fd")) else { unreachable!() };
        let Source::File { file, .. } = &deleted else { unreachable!() };
        let fd = std::os::fd::AsRawFd::as_raw_fd(file).to_string();
        let unnamed = BarMemory::File(unnamed.join(fd)).open().unwrap();
        assert_eq!(unnamed.lost_path(), None, "it never had a path");
    }

    /// `/proc` is no memory, nor are the sources of this crate where they are on a disk.
    #[test]
    fn file_that_is_no_memory_is_refused() {
        let path = PathBuf::from("/proc/self/comm");
        let refused = BarMemory::File(path).open();
        assert!(matches!(refused, Err(OpenError::NoMemory { .. })), "{refused:?}");
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("bar");
        let is_memory = matches!(rustix::fs::statfs(folder.path()).unwrap().f_type as u64, TMPFS | HUGETLBFS);
        if !is_memory {
            let refused = BarMemory::make_file(&path, 1 << 20, 2);
            assert!(matches!(refused, Err(OpenError::NoMemory { .. })), "{refused:?}");
            assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        }
    }
}
