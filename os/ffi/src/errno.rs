//! The `errno` of C, for functions whose callers look there.

/// The number of an argument that means nothing.
pub const EINVAL: i32 = libc::EINVAL;

/// Sets the `errno` of this thread.
pub fn set_errno(number: i32) {
    // SAFETY: has no precondition.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the address of this thread's `errno`, which nobody else stores into.
    unsafe { place.write(number) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_that_is_set_is_the_one_that_is_read() {
        for number in [EINVAL, libc::ENOENT] {
            set_errno(number);
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(number));
        }
    }
}
