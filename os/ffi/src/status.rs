//! Codes that every C library of this repository gives with the same meaning. Zero and positive codes are no errors.

use core::ffi::c_int;

/// It was done.
pub const OK: c_int = 0;
/// An argument is not what it must be.
pub const INVALID: c_int = -40;
/// The handle belongs to another thread.
pub const WRONG_THREAD: c_int = -41;
/// The handle is in use further up in this thread: a handler called.
pub const BUSY: c_int = -42;
/// The system or the other side refuses.
pub const REFUSED: c_int = -60;
/// A defect in the library.
pub const INTERNAL: c_int = -99;
