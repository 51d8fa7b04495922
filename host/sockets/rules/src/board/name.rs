//! Names of boards in the file system.

use std::ffi::OsStr;

/// The folder of boards in the domain's.
pub(super) const FOLDER: &str = "sockets";

/// The process that a name of a board has, `7-0123456789abcdef`.
pub(super) fn pid_of(name: &OsStr) -> Option<u32> {
    let (pid, random) = name.to_str()?.split_once('-')?;
    let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    pid.parse().ok().filter(|_| is_random)
}
