//! Pointers as C passes them.
//!
//! The types have the layout of a pointer and no safe constructor: a value comes from C, whose header says that it is NULL
//! or memory that is there during the call. The lifetime is the call's.

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;

use crate::edge::{Failure, Outcome, null};

/// A string of C, or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    /// Whether C passed NULL.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The text; NULL and what is not UTF-8 are failures that name `what`.
    ///
    /// # Errors
    /// It is NULL or not UTF-8.
    pub fn read(self, what: &str) -> Outcome<&'a str> {
        if self.0.is_null() {
            return Err(null(what));
        }
        // SAFETY: not NULL (checked above), so a string with a zero byte at its end that nobody writes during the call:
        // the contract under which C passes a `Text`.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|error| Failure::invalid(format!("{what} is not UTF-8: {error}")))
    }
}

/// The start of bytes that C gives to be read, or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Bytes<'a>(pub(crate) *const u8, pub(crate) PhantomData<&'a [u8]>);

impl<'a> Bytes<'a> {
    /// The bytes; C said how many.
    ///
    /// # Errors
    /// NULL with a length, or a length that nothing has.
    #[inline(always)]
    pub fn read(self, length: usize, what: &str) -> Outcome<&'a [u8]> {
        check_length(self.0, length, what)?;
        if length == 0 {
            return Ok(&[]);
        }
        // SAFETY: not NULL and not longer than a slice may be (`check_length`); `length` bytes that nobody writes during the
        // call, by the contract under which C passes `Bytes` with a length.
        Ok(unsafe { core::slice::from_raw_parts(self.0, length) })
    }
}

/// The start of memory that C gives to be filled, or NULL.
#[derive(Debug)]
#[repr(transparent)]
pub struct Memory<'a>(*mut u8, PhantomData<&'a mut [u8]>);

impl<'a> Memory<'a> {
    /// The memory, to be written only: C need not have set it.
    ///
    /// # Errors
    /// NULL with a length, or a length that nothing has.
    #[inline(always)]
    pub fn fill(self, length: usize, what: &str) -> Outcome<&'a mut [u8]> {
        check_length(self.0, length, what)?;
        if length == 0 {
            return Ok(&mut []);
        }
        settle(self.0, length);
        // SAFETY: not NULL and not longer than a slice may be (`check_length`); this call's alone, by the contract under
        // which C passes `Memory`. Bytes that C has not set have a value since `settle`, and any value is a `u8`.
        Ok(unsafe { core::slice::from_raw_parts_mut(self.0, length) })
    }
}

/// Gives memory that C may not have set bytes of some value, which a slice must have. Costs nothing: the bytes stay as they
/// are in the machine, and the compiler is told that they may have been written.
#[inline(always)]
fn settle(start: *mut u8, length: usize) {
    if cfg!(miri) {
        // Which sees what the machine does not have: bytes without a value. SAFETY: `length` bytes of this call's (`Memory`).
        unsafe { start.write_bytes(0, length) };
        return;
    }
    // SAFETY: the block is empty, so it changes nothing that a program can see. As it is declared it may write the memory that it
    // is given, and what it does is what writing each byte with the value that the machine has there would do.
    unsafe {
        core::arch::asm!("/* {0} {1} */", in(reg) start, in(reg) length, options(nostack, preserves_flags))
    };
}

#[inline(always)]
fn check_length(start: *const u8, bytes: usize, what: &str) -> Outcome<()> {
    if start.is_null() && bytes > 0 {
        return Err(null_with_length(bytes, what));
    }
    if bytes > isize::MAX as usize {
        return Err(too_long(bytes, what));
    }
    Ok(())
}

#[cold]
fn null_with_length(bytes: usize, what: &str) -> Failure {
    Failure::invalid(format!("{what} is NULL, with a length of {bytes} bytes"))
}

#[cold]
fn too_long(bytes: usize, what: &str) -> Failure {
    Failure::invalid(format!("{what} has {bytes} bytes; nothing is that long"))
}

/// The start of an array of C, or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Array<'a, T>(pub(crate) *const T, pub(crate) PhantomData<&'a [T]>);

impl<'a, T: Copy> Array<'a, T> {
    /// The elements; C said how many.
    ///
    /// # Errors
    /// More than `most`; NULL or not aligned, with a length.
    pub fn read(self, count: usize, most: usize, what: &str) -> Outcome<&'a [T]> {
        if count > most || count > 0 && (self.0.is_null() || !self.0.is_aligned()) {
            let why = format!("{what} has {count} elements; {most} at most, and its start must not be NULL");
            return Err(Failure::invalid(why));
        }
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: not NULL and aligned (checked above); `count` elements that nobody writes during the call, by the contract
        // under which C passes an `Array` with a length.
        Ok(unsafe { core::slice::from_raw_parts(self.0, count) })
    }
}

/// Where C wants a result, or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a mut T>);

impl Out<'_, usize> {
    /// Puts what `body` has counted, whether it fails or not, unless C passed NULL because it does not want it.
    #[inline(always)]
    pub fn counted<R>(self, body: impl FnOnce(&mut usize) -> R) -> R {
        // First, for a body that panics.
        self.put_if_wanted(0);
        let mut count = 0;
        let result = body(&mut count);
        self.put_if_wanted(count);
        result
    }
}

impl<T: Copy> Out<'_, T> {
    /// Fails where C passed NULL.
    ///
    /// # Errors
    /// It is NULL.
    #[inline(always)]
    pub fn check(self, what: &str) -> Outcome<()> {
        if self.0.is_null() { Err(null(what)) } else { Ok(()) }
    }

    /// Puts a result; NULL is a failure that names `what`.
    ///
    /// # Errors
    /// It is NULL.
    #[inline(always)]
    pub fn put(self, value: T, what: &str) -> Outcome<()> {
        self.check(what)?;
        self.put_if_wanted(value);
        Ok(())
    }

    /// Puts a result, unless C passed NULL because it does not want it.
    #[inline(always)]
    pub fn put_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL (checked above), so memory of one `T` that this call alone uses: the contract under which C
            // passes an `Out`. `T` is `Copy`, so what the memory held needs no drop.
            unsafe { self.0.write(value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_impossible_lengths_are_refused_and_nothing_is_followed() {
        let (null, mut memory) = (core::ptr::null(), [7u8; 4]);
        let bytes = |start, length| Bytes(start, PhantomData).read(length, "request");
        assert_eq!(bytes(null, 3).unwrap_err().why, "request is NULL, with a length of 3 bytes");
        assert_eq!(bytes(null, 0).unwrap(), b"");
        assert_eq!(bytes(memory.as_ptr(), 4).unwrap(), [7; 4]);
        assert!(bytes(memory.as_ptr(), usize::MAX).is_err());
        let fill = |start, length| Memory(start, PhantomData).fill(length, "out").map(|out| out.len());
        assert_eq!(fill(core::ptr::null_mut(), 1).unwrap_err().why, "out is NULL, with a length of 1 bytes");
        assert_eq!(fill(memory.as_mut_ptr(), 4).unwrap(), 4);
    }

    /// Of Miri; elsewhere nobody sees the difference.
    #[test]
    fn memory_that_c_has_not_set_has_bytes_of_some_value() {
        let mut unset = Box::<[u8]>::new_uninit_slice(16);
        let out = Memory(unset.as_mut_ptr().cast(), PhantomData).fill(16, "out").unwrap();
        out[..8].fill(3);
        assert!(out.iter().map(|byte| u32::from(*byte)).sum::<u32>() >= 24);
    }

    #[test]
    fn a_text_is_utf8_or_refused() {
        let text = |start| Text(start, PhantomData).read("name");
        assert_eq!(text(core::ptr::null()).unwrap_err().why, "name is NULL");
        assert_eq!(text(c"abc".as_ptr()).unwrap(), "abc");
        assert!(text(c"\xff".as_ptr()).unwrap_err().why.contains("not UTF-8"));
    }

    #[test]
    fn an_array_is_aligned_and_bounded_or_refused() {
        let words = [1u32, 2, 3];
        let array = |start, count| Array::<u32>(start, PhantomData).read(count, 3, "uids");
        assert_eq!(array(words.as_ptr(), 3).unwrap(), words);
        assert!(array(words.as_ptr(), 4).is_err());
        assert!(array(core::ptr::null(), 1).is_err());
        assert!(array(words.as_ptr().cast::<u8>().wrapping_add(1).cast(), 1).is_err());
        assert_eq!(array(core::ptr::null(), 0).unwrap(), []);
    }

    #[test]
    fn a_result_goes_where_it_is_wanted() {
        let mut place = 1u64;
        Out(&raw mut place, PhantomData).put(2, "call").unwrap();
        assert_eq!(place, 2);
        let nowhere = Out::<u64>(core::ptr::null_mut(), PhantomData);
        assert_eq!(nowhere.put(3, "call").unwrap_err().why, "call is NULL");
        nowhere.put_if_wanted(3);
    }

    #[test]
    fn count_is_put_also_of_what_fails_or_panics() {
        let mut place = 7usize;
        let out = Out(&raw mut place, PhantomData);
        let failed = out.counted(|count| {
            *count = 2;
            Outcome::<()>::Err(Failure::invalid("the third"))
        });
        assert!(failed.is_err());
        // SAFETY: memory of this test, whose pointer `out` has.
        assert_eq!(unsafe { out.0.read() }, 2);
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            out.counted(|count| {
                *count = 3;
                panic!("as asked")
            })
        }));
        assert!(panicked.is_err());
        // SAFETY: as above.
        assert_eq!(unsafe { out.0.read() }, 0);
        assert_eq!(Out::<usize>(core::ptr::null_mut(), PhantomData).counted(|_| 5), 5);
    }
}
