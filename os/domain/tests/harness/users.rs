//! Helper processes of other users, which only root can start.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Helper, Watchdog, watchdog};

/// Users who own nothing. Not 65534: in a container that leaves users out, that number is nobody in particular.
pub const LISTED: u32 = 65_533;
pub const UNLISTED: u32 = 65_532;

/// A folder with a copy of this test program that every user may run.
pub struct Users {
    folder: tempfile::TempDir,
    _watchdog: Watchdog,
}

impl Users {
    /// `None`, and a word about it, where this process cannot become other users.
    pub fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can start a process of another user");
            return None;
        }
        let users = Users { folder: tempfile::tempdir().unwrap(), _watchdog: watchdog() };
        std::fs::set_permissions(users.folder.path(), PermissionsExt::from_mode(0o711)).unwrap();
        // A process of its own copies it: a descriptor of this one, open for writing, would be inherited by whatever another
        // test starts meanwhile, and a program that somebody has open for writing cannot be executed (ETXTBSY).
        let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(users.program()).status();
        assert!(copied.unwrap().success());
        std::fs::set_permissions(users.program(), PermissionsExt::from_mode(0o755)).unwrap();
        if users.command(UNLISTED).arg("--list").output().is_err() {
            eprintln!("skipped: this user namespace has no uid {UNLISTED}");
            return None;
        }
        Some(users)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn command(&self, uid: u32) -> Command {
        let mut command = Command::new(self.program());
        command.uid(uid).gid(uid).current_dir("/");
        command
    }

    /// A helper that is a process of `uid`.
    pub fn helper(&self, uid: u32, role: &str, argument: &str) -> Helper {
        let mut command = self.command(uid);
        command.args(["--exact", "role", "--nocapture", "--test-threads=1"]);
        Helper::run(&mut command, role, self.folder.path(), argument)
    }
}
