//! Arrays of C that hold more than numbers: pieces of bytes to be read, and places for results.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::edge::{Failure, Outcome};

/// A start and a length, as `struct iovec` has them. A value that Rust can use comes from [`Pieces::read`], which has
/// looked at both.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece<'a> {
    start: *const u8,
    length: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl Piece<'_> {
    fn can_be(&self) -> bool {
        self.length == 0 || !self.start.is_null() && self.length <= isize::MAX as usize
    }
}

impl AsRef<[u8]> for Piece<'_> {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: not NULL and not longer than a slice may be (`Pieces::read`, which alone gives pieces); bytes that nobody
        // writes during the call, by the contract under which C passes `Pieces`.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }
}

/// The start of an array of pieces, or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Pieces<'a>(*const Piece<'a>, PhantomData<&'a [Piece<'a>]>);

impl<'a> Pieces<'a> {
    /// The pieces; C said how many. Looks at each, which costs two comparisons.
    ///
    /// # Errors
    /// NULL or not aligned, with a count; a piece that is NULL with a length, or a length that nothing has.
    pub fn read(self, count: usize, what: &str) -> Outcome<&'a [Piece<'a>]> {
        check_array(self.0, count, what)?;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: not NULL, aligned and not longer than a slice may be (`check_array`); `count` pieces that nobody writes
        // during the call, by the contract under which C passes `Pieces` with a count.
        let pieces = unsafe { core::slice::from_raw_parts(self.0, count) };
        match pieces.iter().position(|piece| !piece.can_be()) {
            Some(index) => Err(no_piece(index, pieces[index].length, what)),
            None => Ok(pieces),
        }
    }
}

#[cold]
fn no_piece(index: usize, bytes: usize, what: &str) -> Failure {
    Failure::invalid(format!("{what}[{index}] is NULL or too long, with a length of {bytes} bytes"))
}

/// The start of an array that is filled with results, or NULL.
#[derive(Debug)]
#[repr(transparent)]
pub struct Places<'a, T>(pub(crate) *mut T, pub(crate) PhantomData<&'a mut [T]>);

impl<'a, T: Copy> Places<'a, T> {
    /// The places, which C need not have set.
    ///
    /// # Errors
    /// NULL or not aligned, with a count; a count that nothing has.
    pub fn fill(self, count: usize, what: &str) -> Outcome<&'a mut [MaybeUninit<T>]> {
        check_array(self.0, count, what)?;
        if count == 0 {
            return Ok(&mut []);
        }
        // SAFETY: not NULL, aligned and not longer than a slice may be (`check_array`); this call's alone, by the contract
        // under which C passes `Places`. What C has not set is a `MaybeUninit`.
        Ok(unsafe { core::slice::from_raw_parts_mut(self.0.cast(), count) })
    }
}

fn check_array<T>(start: *const T, count: usize, what: &str) -> Outcome<()> {
    let is_there = count == 0 || !start.is_null() && start.is_aligned();
    if !is_there || count > isize::MAX as usize / size_of::<T>() {
        return Err(no_array(count, what));
    }
    Ok(())
}

#[cold]
fn no_array(count: usize, what: &str) -> Failure {
    Failure::invalid(format!("{what} has {count} elements, and is NULL, not aligned, or too long to be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: *const u8, length: usize) -> Piece<'static> {
        Piece { start, length, bytes: PhantomData }
    }

    fn read<'a>(pieces: &'a [Piece<'a>]) -> Outcome<&'a [Piece<'a>]> {
        Pieces(pieces.as_ptr(), PhantomData).read(pieces.len(), "messages")
    }

    #[test]
    fn pieces_are_bytes_or_refused_before_any_is_read() {
        let bytes = b"abc";
        let (whole, none) = (piece(bytes.as_ptr(), 3), piece(core::ptr::null(), 0));
        let both = [whole, none];
        let found: Vec<&[u8]> = read(&both).unwrap().iter().map(AsRef::as_ref).collect();
        assert_eq!(found, [&b"abc"[..], b""]);
        for wrong in [piece(core::ptr::null(), 1), piece(bytes.as_ptr(), usize::MAX)] {
            let why = read(&[whole, wrong]).unwrap_err().why.clone();
            assert!(why.starts_with("messages[1] is NULL or too long"), "{why}");
        }
    }

    #[test]
    fn arrays_that_cannot_be_are_refused() {
        let mut words = [0u64; 2];
        let fill =
            |start: *mut u64, count| Places(start, PhantomData).fill(count, "spans").map(|all| all.len());
        let start = words.as_mut_ptr();
        assert_eq!(fill(start, 2).unwrap(), 2);
        assert_eq!(fill(core::ptr::null_mut(), 0).unwrap(), 0);
        for (start, count) in
            [(core::ptr::null_mut(), 1), (start.cast::<u8>().wrapping_add(1).cast(), 1), (start, usize::MAX)]
        {
            assert!(fill(start, count).unwrap_err().why.starts_with("spans has"));
        }
        assert!(Pieces(core::ptr::null(), PhantomData).read(1, "messages").is_err());
    }
}
