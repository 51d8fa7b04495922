//! The rendezvous folder: owner-only, checked on the descriptor, and used only through it.
//!
//! A path is looked at once, without following a symbolic link in its last component; owner and mode are then read
//! from the open descriptor, and every later access goes through that descriptor. The root, which holds the domains,
//! must be the owner's and writable by nobody else; the domain's own folder must be private. So a folder that is
//! swapped, linked or chowned between check and use cannot lead elsewhere, and sockets, reached as
//! `/proc/self/fd/<n>/<name>.sock`, do not run into the 108 bytes of a socket address.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::descriptor::{Descriptor, Held};
use crate::in_use;
use crate::modes;
use crate::name::Name;
use crate::numbers::Purpose;
use crate::uid;

/// How long a folder may be locked by a sweep, or vanish again and again, before opening it fails.
const MAX_MARK_WAIT: Duration = Duration::from_secs(5);
/// How long another process may take to give a root that it made the rights that its umask took.
const MAX_HALF_MADE: Duration = Duration::from_millis(200);
/// Time between two attempts.
const MARK_RETRY: Duration = Duration::from_millis(1);
/// Mode of a folder that only its owner may use.
const PRIVATE: u32 = 0o700;
/// Write permission of others: who has it could put another folder in a folder's place.
const OTHERS_WRITE: u32 = 0o022;
/// Search permission of others.
const OTHERS_SEARCH: u32 = 0o011;
/// What helps a user whom a domain's folder, or the folder of the domains, keeps out.
const OWNER_OPENS: &str =
    "its owner opens it by offering something to this user (`--allow-uid`, `allowed_uids`)";
/// Mode of a folder whose sockets other users may reach if they know the name; nobody but the owner lists or changes.
const SEARCHABLE: u32 = PRIVATE | OTHERS_SEARCH;

/// Why a folder cannot be used for rendezvous.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder cannot be made or opened.
    #[error("cannot {action} the folder {}: {errno}; {remedy}", path.display())]
    System { action: &'static str, path: PathBuf, errno: Errno, remedy: &'static str },
    /// It is a symbolic link, which somebody may point elsewhere.
    #[error("{} is a symbolic link; remove it or choose another root: a link can be pointed elsewhere", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    #[error("{} is not a folder; remove it or choose another root", path.display())]
    NotFolder { path: PathBuf },
    /// Another user owns the folder.
    #[error(
        "the folder {} belongs to uid {found}, expected {expected}; choose another root (BEELINE_ROOT or an option); to reach \
         what its owner offers there, name the owner: `--owner {found}`, `open_foreign`",
        path.display()
    )]
    Owner {
        path: PathBuf,
        found: u32,
        /// Uid that was expected.
        expected: u32,
    },
    /// Another user is said to have the folder, and it is not there.
    #[error(
        "uid {owner_uid} has no folder {}; its owner must start what is to be reached, and uid, domain and root (BEELINE_ROOT \
         or an option) must be the owner's",
        path.display()
    )]
    ForeignAbsent {
        path: PathBuf,
        /// Uid that was said to own it.
        owner_uid: u32,
    },
    /// A folder of another user does not let this one through to the domain.
    #[error("uid {uid} may not enter the folder {}; {remedy}", path.display())]
    ForeignClosed {
        /// The first folder on the way that is closed.
        path: PathBuf,
        /// This process's user.
        uid: u32,
        remedy: &'static str,
    },
    /// Its owner has no uid in this process's user namespace, as where two containers do not map the same users.
    #[error(
        "the folder {} belongs to a user whom this user namespace does not map (uid {uid} stands for all of them); give this \
         container the same user mapping as the folder's owner, or choose another root (BEELINE_ROOT or an option)",
        path.display()
    )]
    Unmapped {
        path: PathBuf,
        /// Uid by which the namespace shows every user that it does not map.
        uid: u32,
    },
    /// The environment names it relative to the working folder, which other processes do not share.
    #[error("BEELINE_ROOT is {}, which is no absolute path: every working folder would have its own domains", path.display())]
    Relative { path: PathBuf },
    /// Users other than the owner may list or change the folder.
    #[error("the folder {} has mode {mode:04o}, others could use it; run: chmod 700 {}", path.display(), path.display())]
    Permissions {
        path: PathBuf,
        /// Permission bits of the folder.
        mode: u32,
    },
    /// The owner's own rights in the folder are missing, as after `chmod`, or after a umask of an earlier version's run.
    #[error("the folder {} has mode {mode:04o}, which keeps its owner out; run: chmod 700 {}", path.display(), path.display())]
    Closed {
        path: PathBuf,
        /// Permission bits of the folder.
        mode: u32,
    },
}

/// Who this process is when it opens a file.
pub(crate) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// By what this process knows a name in a folder, however often it has the folder open: device and inode of the folder, and the name.
pub(crate) type NameKey = (u64, u64, String);

/// An open and checked folder of one domain.
#[derive(Debug)]
pub(crate) struct Folder {
    root: Descriptor,
    fd: Descriptor,
    path: PathBuf,
    owner_uid: u32,
}

impl Folder {
    pub(crate) fn key(&self, name: &Name) -> Result<NameKey, Errno> {
        let stat = rustix::fs::fstat(self.fd())?;
        Ok((stat.st_dev, stat.st_ino, name.as_str().to_owned()))
    }

    /// Opens the folder of this user's domain, making it and its root if they are not there.
    pub(crate) fn open_own(root_path: &Path, name: &Name) -> Result<Self, FolderError> {
        let owner_uid = own_uid();
        let root = open_root(root_path, owner_uid)?;
        let path = root_path.join(name.as_str());
        // Whoever cleans the temporary folder by age leaves a locked folder alone; nobody of ours wants it exclusively.
        let _ = in_use::mark(root.as_fd());
        let fd = open_marked(root.as_fd(), name, &path, owner_uid)?;
        let (root, fd) = (Descriptor::new(root, Purpose::Folder), Descriptor::new(fd, Purpose::Folder));
        Ok(Folder { root, fd, path, owner_uid })
    }

    /// Opens the folder of a domain that belongs to `owner_uid`, to connect only. It is not made.
    pub(crate) fn open_foreign(root_path: &Path, name: &Name, owner_uid: u32) -> Result<Self, FolderError> {
        // Others may search the folder but not read it, which is all that O_PATH needs.
        let root = open(CWD, root_path, root_path, OFlags::PATH, owner_uid)
            .map_err(|error| explain_foreign(error, root_path, owner_uid))?;
        root.check(|mode| mode & OTHERS_WRITE == 0)?;
        let path = root_path.join(name.as_str());
        let root = root.fd;
        let fd = open(root.as_fd(), Path::new(name.as_str()), &path, OFlags::PATH, owner_uid)
            .map_err(|error| explain_foreign(error, root_path, owner_uid))?;
        fd.check(|mode| mode == PRIVATE || mode == SEARCHABLE)?;
        // Opening a mere path needs no permission on the folder itself; its first entry tells whether this user may search it.
        if matches!(rustix::fs::statat(&fd.fd, ".", AtFlags::empty()), Err(Errno::ACCESS)) {
            return Err(FolderError::ForeignClosed { path, uid: own_uid(), remedy: OWNER_OPENS });
        }
        let (root, fd) = (Descriptor::new(root, Purpose::Folder), Descriptor::new(fd.fd, Purpose::Folder));
        Ok(Folder { root, fd, path, owner_uid })
    }

    pub(crate) fn fd(&self) -> Held {
        self.fd.hold()
    }

    /// Whether the folder's descriptors still are those that were checked.
    pub(crate) fn is_ours(&self) -> bool {
        self.root.is_ours() && self.fd.is_ours()
    }

    /// Gives its descriptors numbers of at least `lowest`.
    pub(crate) fn move_above(&self, lowest: RawFd) -> Result<(), Errno> {
        self.root.move_above(lowest, None)?;
        self.fd.move_above(lowest, None)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Who owns the folder, and so every offer in it.
    pub(crate) fn owner_uid(&self) -> u32 {
        self.owner_uid
    }

    /// A path to a file in this folder that leads through the descriptor, for as long as that is held.
    pub(crate) fn through_descriptor(&self, file: &str) -> (PathBuf, Held) {
        let fd = self.fd.hold();
        (PathBuf::from(format!("/proc/self/fd/{}/{file}", fd.as_fd().as_raw_fd())), fd)
    }

    /// Lets other users reach sockets in this folder whose own mode lets them connect.
    pub(crate) fn make_searchable(&self) -> Result<(), FolderError> {
        for (fd, path) in [(&self.root, self.path.parent().unwrap_or(&self.path)), (&self.fd, &*self.path)] {
            let fd = fd.hold();
            let widened = rustix::fs::fstat(&fd).and_then(|stat| {
                rustix::fs::fchmod(&fd, Mode::from_raw_mode(stat.st_mode & 0o777 | OTHERS_SEARCH))
            });
            widened.map_err(|errno| FolderError::System {
                action: "let other users search",
                path: path.to_owned(),
                errno,
                remedy: "only its owner may",
            })?;
        }
        Ok(())
    }

    /// File names in the folder.
    pub(crate) fn files(&self) -> Result<Vec<String>, FolderError> {
        let failed = |errno| FolderError::System {
            action: "list",
            path: self.path.clone(),
            errno,
            remedy: "only its owner may list it",
        };
        let entries = rustix::fs::Dir::read_from(self.fd.hold()).map_err(failed)?;
        let mut files = Vec::new();
        for entry in entries {
            files.extend(entry.map_err(failed)?.file_name().to_str().map(str::to_owned));
        }
        Ok(files)
    }
}

/// Opens the root, making it if it is not there. One that was there may be any folder of the user's, so its mode stays as it is.
fn open_root(path: &Path, owner_uid: u32) -> Result<OwnedFd, FolderError> {
    if make(CWD, path, path)? {
        complete(CWD, path, path)?;
    }
    let deadline = Instant::now() + MAX_HALF_MADE;
    loop {
        let opened = open(CWD, path, path, OFlags::RDONLY, owner_uid);
        let opened = opened.and_then(|root| {
            root.check(|mode| mode & OTHERS_WRITE == 0)?;
            Ok(root.fd)
        });
        match opened {
            // Another process made it just now, under a umask that took the owner's rights, and has not given them back yet.
            Err(FolderError::Closed { .. }) if Instant::now() < deadline => std::thread::sleep(MARK_RETRY),
            opened => return opened,
        }
    }
}

/// Opens a domain's own folder, makes it if it is not there, and marks it as in use.
fn open_marked(
    root: BorrowedFd<'_>,
    name: &Name,
    path: &Path,
    owner_uid: u32,
) -> Result<OwnedFd, FolderError> {
    let relative = Path::new(name.as_str());
    let deadline = Instant::now() + MAX_MARK_WAIT;
    loop {
        make(root, relative, path)?;
        // Whoever made it, and whenever: all that is in it is the library's.
        complete(root, relative, path)?;
        let opened = match open(root, relative, path, OFlags::RDONLY, owner_uid) {
            // A sweep removed it since, taking it for left over.
            Err(FolderError::System { errno: Errno::NOENT, .. }) if Instant::now() < deadline => continue,
            opened => opened?,
        };
        opened.check(|mode| mode == PRIVATE || mode == SEARCHABLE)?;
        let marked = in_use::mark(opened.fd.as_fd());
        if marked && in_use::has_name(root, relative, opened.fd.as_fd()) {
            return Ok(opened.fd);
        }
        if Instant::now() >= deadline {
            return Err(FolderError::System {
                action: "keep",
                path: path.to_owned(),
                errno: Errno::AGAIN,
                remedy: "another process keeps removing or locking it",
            });
        }
        std::thread::sleep(MARK_RETRY);
    }
}

/// Gives a folder what a umask took from its mode. What is there and is no folder of this user's is left to whoever opens it.
fn complete(parent: BorrowedFd<'_>, relative: &Path, path: &Path) -> Result<(), FolderError> {
    match modes::complete(parent, relative, PRIVATE) {
        // A sweep removed it since.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(FolderError::System {
            action: "set the mode of",
            path: path.to_owned(),
            errno,
            remedy: "is /proc there? or choose another root",
        }),
    }
}

/// Makes a folder; `false` when one is there already.
fn make(parent: BorrowedFd<'_>, relative: &Path, path: &Path) -> Result<bool, FolderError> {
    match rustix::fs::mkdirat(parent, relative, Mode::from_raw_mode(PRIVATE)) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(errno) => Err(FolderError::System {
            action: "create",
            path: path.to_owned(),
            errno,
            remedy: "its parent must exist and let you write; or choose another root",
        }),
    }
}

/// A folder whose owner is the right one.
struct Opened<'a> {
    fd: OwnedFd,
    mode: u32,
    path: &'a Path,
}

impl Opened<'_> {
    fn check(&self, is_good: impl FnOnce(u32) -> bool) -> Result<(), FolderError> {
        if keeps_owner_out(self.mode) {
            return Err(FolderError::Closed { path: self.path.to_owned(), mode: self.mode });
        }
        if is_good(self.mode) {
            return Ok(());
        }
        Err(FolderError::Permissions { path: self.path.to_owned(), mode: self.mode })
    }
}

fn open<'a>(
    parent: BorrowedFd<'_>,
    relative: &Path,
    path: &'a Path,
    access: OFlags,
    owner_uid: u32,
) -> Result<Opened<'a>, FolderError> {
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, relative, flags, Mode::empty())
        .map_err(|errno| explain_open(parent, relative, path, errno, owner_uid))?;
    let stat = rustix::fs::fstat(&fd).map_err(|errno| FolderError::System {
        action: "examine",
        path: path.to_owned(),
        errno,
        remedy: "choose another root",
    })?;
    let mode = stat.st_mode & 0o777;
    if stat.st_uid != owner_uid {
        return Err(belongs_to_another(path, stat.st_uid, owner_uid));
    }
    // Two users may have this number; the folder's is the right one if it is this process's own.
    if !uid::names_one_user(owner_uid) && !is_own(&fd) {
        return Err(FolderError::Unmapped { path: path.to_owned(), uid: owner_uid });
    }
    Ok(Opened { fd, mode, path })
}

/// Whether this process's user owns the open folder, by the users themselves and not by their numbers: only a file's owner
/// may set this flag. It changes nothing for a folder, and a descriptor that is a mere path cannot have it.
fn is_own(folder: &OwnedFd) -> bool {
    rustix::fs::fcntl_getfl(folder)
        .and_then(|flags| rustix::fs::fcntl_setfl(folder, flags | OFlags::NOATIME))
        .is_ok()
}

fn belongs_to_another(path: &Path, found: u32, expected: u32) -> FolderError {
    let path = path.to_owned();
    if uid::names_one_user(found) {
        FolderError::Owner { path, found, expected }
    } else {
        FolderError::Unmapped { path, uid: found }
    }
}

/// Says in words why a folder cannot be opened. Only the wording rests on this second look, not the refusal.
fn explain_open(
    parent: BorrowedFd<'_>,
    relative: &Path,
    path: &Path,
    errno: Errno,
    owner_uid: u32,
) -> FolderError {
    let path = path.to_owned();
    match rustix::fs::statat(parent, relative, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink() => {
            FolderError::Symlink { path }
        }
        Ok(stat) if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() => {
            FolderError::NotFolder { path }
        }
        Ok(stat) if errno == Errno::ACCESS && stat.st_uid != owner_uid => {
            belongs_to_another(&path, stat.st_uid, owner_uid)
        }
        Ok(stat) if errno == Errno::ACCESS && keeps_owner_out(stat.st_mode) => {
            FolderError::Closed { path, mode: stat.st_mode & 0o777 }
        }
        _ => FolderError::System {
            action: "open",
            path,
            errno,
            remedy: "is the domain's owner running, and may you enter its folder?",
        },
    }
}

/// Whether a mode lacks a right of its owner's, without which nobody but root can use the folder.
fn keeps_owner_out(mode: u32) -> bool {
    mode & PRIVATE != PRIVATE
}

/// Says in words why another user's folder cannot be opened: it is not there, or which folder on the way is closed.
fn explain_foreign(error: FolderError, root_path: &Path, owner_uid: u32) -> FolderError {
    let FolderError::System { path, errno, .. } = &error else { return error };
    match *errno {
        Errno::NOENT => FolderError::ForeignAbsent { path: path.clone(), owner_uid },
        Errno::ACCESS => {
            // What can be looked at lies in a folder that lets this user through: the lowest such is the one that does not.
            let closed = path.ancestors().skip(1).find(|above| above.metadata().is_ok()).unwrap_or(root_path);
            let remedy = if closed.starts_with(root_path) {
                OWNER_OPENS
            } else {
                "whoever owns it lets others through it (chmod o+x), or the domain's owner chooses another root"
            };
            FolderError::ForeignClosed { path: closed.to_owned(), uid: own_uid(), remedy }
        }
        _ => error,
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn name() -> Name {
        Name::new("d").unwrap()
    }

    #[test]
    fn a_folder_is_made_private_and_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        for _ in 0..2 {
            let folder = Folder::open_own(&root, &name()).unwrap();
            for path in [&root, folder.path()] {
                assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o7777, PRIVATE);
            }
        }
    }

    #[test]
    fn a_folder_that_others_can_use_is_refused_with_the_remedy() {
        for (mode, is_bad_root) in
            [(0o755, false), (0o710, false), (0o770, true), (0o777, true), (0o722, true)]
        {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("root");
            drop(Folder::open_own(&root, &name()).unwrap());
            for path in [root.join("d"), root.clone()] {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
                let opened = Folder::open_own(&root, &name());
                if path == root && !is_bad_root {
                    assert!(opened.is_ok());
                    continue;
                }
                let error = opened.unwrap_err();
                assert!(matches!(&error, FolderError::Permissions { mode: m, .. } if *m == mode), "{error}");
                let text = error.to_string();
                assert!(text.contains(&format!("chmod 700 {}", path.display())), "{text}");
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            }
        }
    }

    #[test]
    fn a_symbolic_link_in_the_place_of_a_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        drop(Folder::open_own(&real, &name()).unwrap());
        let link = dir.path().join("link");
        symlink(&real, &link).unwrap();
        assert!(
            matches!(Folder::open_own(&link, &name()), Err(FolderError::Symlink { path }) if path == link)
        );
        symlink(real.join("d"), real.join("e")).unwrap();
        let inner = Folder::open_own(&real, &Name::new("e").unwrap());
        assert!(matches!(inner, Err(FolderError::Symlink { path }) if path == real.join("e")));
    }

    #[test]
    fn a_file_or_a_missing_parent_is_refused_in_words() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(Folder::open_own(&file, &name()), Err(FolderError::NotFolder { .. })));
        let error = Folder::open_own(&dir.path().join("no/root"), &name()).unwrap_err().to_string();
        assert!(error.contains("no/root") && error.contains("parent must exist"), "{error}");
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        drop(Folder::open_own(dir.path(), &name()).unwrap());
        let error = Folder::open_foreign(dir.path(), &name(), own + 1).unwrap_err();
        assert!(
            matches!(error, FolderError::Owner { found, expected, .. } if (found, expected) == (own, own + 1))
        );
        assert!(Folder::open_foreign(dir.path(), &name(), own).is_ok());
        let absent = Folder::open_foreign(dir.path(), &Name::new("e").unwrap(), own).unwrap_err();
        assert!(
            matches!(&absent, FolderError::ForeignAbsent { path, owner_uid } if path.ends_with("e") && *owner_uid == own),
            "{absent}"
        );
    }

    #[test]
    fn a_searchable_folder_stays_usable() {
        let dir = tempfile::tempdir().unwrap();
        Folder::open_own(dir.path(), &name()).unwrap().make_searchable().unwrap();
        assert!(Folder::open_own(dir.path(), &name()).is_ok());
    }
}
