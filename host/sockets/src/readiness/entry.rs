//! What a list of `poll` is made of.

use std::os::fd::RawFd;

/// `struct pollfd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PollEntry {
    pub number: RawFd,
    pub asked: i16,
    pub told: i16,
}
