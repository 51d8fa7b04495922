//! A copy of a test that runs as another user.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A user who owns nothing. Not 65534: in a container that leaves users out, that number is nobody in particular.
pub const OTHER_UID: u32 = 65_533;

/// The program that runs the test `name` alone as another user, a copy in `folder`; `None` where this process cannot become one.
pub fn as_other_user(folder: &Path, name: &str) -> Option<Command> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return None;
    }
    // Where nobody else may enter the build's folder, a copy of the program is run.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711)).unwrap();
    let program = folder.join("program");
    // A process of its own copies it: a descriptor of this one, open for writing, would be inherited by whatever another test
    // starts meanwhile, and a program that somebody has open for writing cannot be executed (ETXTBSY).
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    let mut other = Command::new(&program);
    other.args(["--exact", name, "--nocapture"]).uid(OTHER_UID).gid(OTHER_UID);
    Some(other)
}
