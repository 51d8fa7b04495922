//! `errno` of the calling thread: what the C library would leave there.

use rustix::io::Errno;

/// What a function of C gives for a result of ours: the count, or -1 with `errno`.
pub fn answer(result: Result<usize, Errno>) -> isize {
    match result {
        Ok(count) => count.cast_signed(),
        Err(errno) => fail(errno),
    }
}

/// Sets `errno`, and gives what a function of C gives then.
#[cold]
pub fn fail(errno: Errno) -> isize {
    beeline_ffi::set_errno(errno.raw_os_error());
    -1
}

/// Runs `body`, and leaves `errno` as it was before.
pub fn preserved<T>(body: impl FnOnce() -> T) -> T {
    let before = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let value = body();
    beeline_ffi::set_errno(before);
    value
}
