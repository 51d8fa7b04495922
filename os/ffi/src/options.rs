//! Options as C gives them: structs that begin with their own size, so that a program of an older header fits a newer
//! library, and a program of a newer one is told what an older library does not know.

use core::marker::PhantomData;

use crate::edge::{Failure, Outcome};

/// A struct of C that begins with its size and may be all zero.
///
/// # Safety
/// `#[repr(C)]`, of integers and pointers only, the first field a `usize` that is the struct's size.
pub unsafe trait OptionsOfC: Copy {
    /// Bytes in the first header that had the struct: no program has less.
    const FIRST_BYTES: usize;
}

/// Options that C passes, or NULL.
#[derive(Debug)]
#[repr(transparent)]
pub struct Options<'a, T>(*const T, PhantomData<&'a T>);

impl<T: OptionsOfC> Options<'_, T> {
    /// Reads options of whatever size they say they have; `None` for NULL. What the program does not have is zero.
    ///
    /// # Errors
    /// Their size cannot be, or they set something that this library does not know.
    pub fn read(&self) -> Outcome<Option<T>> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: not NULL (checked above), so memory that begins with a `size_t`: the contract under which C passes options.
        let size = unsafe { self.0.cast::<usize>().read_unaligned() };
        if size < T::FIRST_BYTES || size > 4096 {
            let least = T::FIRST_BYTES;
            return Err(Failure::invalid(format!(
                "options.size = {size}; set it with the initializer of the header, to at least {least}"
            )));
        }
        // SAFETY: as many bytes as `size` says, which nobody writes during the call, by the same contract; 4096 at most.
        let bytes = unsafe { core::slice::from_raw_parts(self.0.cast::<u8>(), size) };
        let (known, unknown) = bytes.split_at(size.min(size_of::<T>()));
        if unknown.iter().any(|byte| *byte != 0) {
            let ours = size_of::<T>();
            return Err(Failure::invalid(format!(
                "options of {size} bytes set something that this library does not know, which has {ours}; upgrade it"
            )));
        }
        let mut read = core::mem::MaybeUninit::<T>::zeroed();
        // SAFETY: `known` is not longer than a `T` (`split_at` above), and `read` is a local: the two do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(known.as_ptr(), read.as_mut_ptr().cast(), known.len()) };
        // SAFETY: zeroed, then overwritten by what C set; every pattern is one of integers and pointers (`OptionsOfC`).
        Ok(Some(unsafe { read.assume_init() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Known {
        size: usize,
        first: u64,
        added: u64,
    }

    // SAFETY: `#[repr(C)]`, integers only, the first the size.
    unsafe impl OptionsOfC for Known {
        const FIRST_BYTES: usize = 16;
    }

    fn read(words: &[u64]) -> Outcome<Option<Known>> {
        Options(words.as_ptr().cast::<Known>(), PhantomData).read()
    }

    #[test]
    fn programs_of_older_and_newer_headers_are_understood() {
        assert_eq!(Options::<Known>(core::ptr::null(), PhantomData).read().unwrap(), None);
        assert_eq!(read(&[16, 5]).unwrap(), Some(Known { size: 16, first: 5, added: 0 }));
        assert_eq!(read(&[24, 5, 6]).unwrap(), Some(Known { size: 24, first: 5, added: 6 }));
        assert_eq!(read(&[32, 5, 6, 0]).unwrap(), Some(Known { size: 32, first: 5, added: 6 }));
        assert!(read(&[32, 5, 6, 1]).unwrap_err().why.contains("upgrade"));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for size in [0, 15, 4097, u64::MAX] {
            assert!(read(&[size, 0, 0]).unwrap_err().why.contains("options.size"), "{size}");
        }
    }
}
