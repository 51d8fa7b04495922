//! Bytes with descriptors: as C hands them over, and memory of C for those that come.

use core::ffi::c_int;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};

use crate::argument::{Array, Bytes};
use crate::arrays::Places;
use crate::edge::{Failure, Outcome, null};

/// Most descriptors of a parcel.
pub const MAX_FDS: usize = 32;

/// Bytes and descriptors that one side hands to the other for the time of a call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Parcel<'a> {
    bytes: Bytes<'a>,
    length: usize,
    fds: Array<'a, c_int>,
    fd_count: usize,
}

impl<'a> Parcel<'a> {
    /// What a callback of C is shown.
    pub fn of(bytes: &'a [u8], fds: &'a [c_int]) -> Self {
        Parcel {
            bytes: Bytes(bytes.as_ptr(), PhantomData),
            length: bytes.len(),
            fds: Array(fds.as_ptr(), PhantomData),
            fd_count: fds.len(),
        }
    }
}

/// A parcel that C hands over, or NULL, which is one with nothing in it.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct ParcelPointer<'a>(*const Parcel<'a>);

impl<'a> ParcelPointer<'a> {
    /// The bytes, and descriptors of our own of the same files.
    ///
    /// # Errors
    /// NULL with a length, a length that nothing has; more than [`MAX_FDS`] descriptors, one that is none, or no room for more.
    pub fn read(self, what: &str) -> Outcome<(&'a [u8], Vec<OwnedFd>)> {
        if self.0.is_null() {
            return Ok((&[], Vec::new()));
        }
        if !self.0.is_aligned() {
            return Err(Failure::invalid(format!("{what} is not aligned")));
        }
        // SAFETY: not NULL and aligned (checked above), so a struct that C has set and nobody writes during the call: the contract
        // under which C passes a parcel. Any value is one of integers and pointers.
        let parcel = unsafe { *self.0 };
        let bytes = parcel.bytes.read(parcel.length, "bytes").map_err(|failure| failure.in_struct(what))?;
        let fds = parcel.fds.read(parcel.fd_count, MAX_FDS, "fds");
        let fds = fds.map_err(|failure| failure.in_struct(what))?;
        Ok((bytes, duplicate_all(fds, what)?))
    }
}

/// A descriptor of our own of the file that `number` is of.
///
/// # Errors
/// There is no such descriptor, or the process has no room for another.
pub fn duplicate(number: c_int) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is negative"));
    }
    // SAFETY: not -1 (checked above). If it is no open descriptor, the kernel says so to the one call that is made of it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned()
}

/// Descriptors of our own of the files that those of the parcel `what` are of.
///
/// # Errors
/// As [`duplicate`], of any of them.
pub fn duplicate_all(numbers: &[c_int], what: &str) -> Outcome<Vec<OwnedFd>> {
    let duplicate_one = |&number| {
        duplicate(number)
            .map_err(|error| Failure::invalid(format!("{what}->fds has the descriptor {number}: {error}")))
    };
    numbers.iter().map(duplicate_one).collect()
}

/// Memory for bytes and descriptors that come, and how many did.
#[derive(Debug)]
#[repr(C)]
pub struct Space<'a> {
    bytes: Places<'a, u8>,
    capacity: usize,
    length: usize,
    fds: Places<'a, c_int>,
    fd_capacity: usize,
    fd_count: usize,
}

impl<'a> Space<'a> {
    /// Memory of ours that a callback of C may fill.
    pub fn over(bytes: &'a mut [u8], fds: &'a mut [c_int]) -> Self {
        let (capacity, fd_capacity) = (bytes.len(), fds.len());
        let (bytes, fds) = (Places(bytes.as_mut_ptr(), PhantomData), Places(fds.as_mut_ptr(), PhantomData));
        Space { bytes, capacity, length: 0, fds, fd_capacity, fd_count: 0 }
    }

    /// How many bytes and descriptors the callback says that it has put in.
    pub fn filled(&self) -> (usize, usize) {
        (self.length, self.fd_count)
    }
}

/// Memory that C gives for what comes, or NULL.
#[derive(Debug)]
#[repr(transparent)]
pub struct SpacePointer<'a>(*mut Space<'a>, PhantomData<&'a mut Space<'a>>);

impl<'a> SpacePointer<'a> {
    /// The memory, after C was told that nothing has come yet.
    ///
    /// # Errors
    /// It is NULL or not aligned; NULL with a capacity.
    pub fn empty(self, what: &str) -> Outcome<EmptySpace<'a>> {
        if self.0.is_null() {
            return Err(null(what));
        }
        if !self.0.is_aligned() {
            return Err(Failure::invalid(format!("{what} is not aligned")));
        }
        // SAFETY: not NULL and aligned (checked above), so a struct that C has set and that this call alone uses: the contract
        // under which C passes a space. Any value is one of integers and pointers.
        let Space { bytes, capacity, length, fds, fd_capacity, fd_count } = unsafe { &mut *self.0 };
        (*length, *fd_count) = (0, 0);
        let bytes = Places(bytes.0, PhantomData).fill(*capacity, "bytes");
        let fds = Places(fds.0, PhantomData).fill(*fd_capacity, "fds");
        Ok(EmptySpace {
            bytes: bytes.map_err(|failure| failure.in_struct(what))?,
            fds: fds.map_err(|failure| failure.in_struct(what))?,
            length,
            fd_count,
        })
    }
}

/// Memory of C that was looked at and that nothing was put into yet.
#[derive(Debug)]
pub struct EmptySpace<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
    fds: &'a mut [MaybeUninit<c_int>],
    length: &'a mut usize,
    fd_count: &'a mut usize,
}

impl EmptySpace<'_> {
    /// Puts what has come, whose descriptors are C's then, and tells C how much it is; where there is no room for all, puts
    /// nothing.
    ///
    /// # Errors
    /// The descriptors that have come, where there is no room.
    pub fn put(self, bytes: &[u8], fds: Vec<OwnedFd>) -> Result<(), Vec<OwnedFd>> {
        (*self.length, *self.fd_count) = (bytes.len(), fds.len());
        let (Some(of_bytes), Some(of_fds)) =
            (self.bytes.get_mut(..bytes.len()), self.fds.get_mut(..fds.len()))
        else {
            return Err(fds);
        };
        of_bytes.write_copy_of_slice(bytes);
        for (place, fd) in of_fds.iter_mut().zip(fds) {
            place.write(fd.into_raw_fd());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, FromRawFd};

    use super::*;

    fn read<'a>(parcel: &'a Parcel<'a>) -> Outcome<(&'a [u8], Vec<OwnedFd>)> {
        ParcelPointer(parcel).read("request")
    }

    #[test]
    fn parcel_is_bytes_and_descriptors_of_our_own_or_refused() {
        assert_eq!(ParcelPointer(core::ptr::null()).read("request").unwrap().0, b"");
        let (mut reader, writer) = std::io::pipe().unwrap();
        let numbers = [writer.as_raw_fd()];
        let parcel = Parcel::of(b"abc", &numbers);
        let (bytes, mut fds) = read(&parcel).unwrap();
        assert_eq!(bytes, b"abc");
        drop(writer);
        std::fs::File::from(fds.pop().unwrap()).write_all(b"through it").unwrap();
        let mut found = String::new();
        reader.read_to_string(&mut found).unwrap();
        assert_eq!(found, "through it");
        for numbers in [[-1], [i32::MAX]] {
            let why = read(&Parcel::of(b"", &numbers)).unwrap_err().why.clone();
            assert!(why.contains(&format!("the descriptor {}", numbers[0])), "{why}");
        }
        let good = Parcel::of(b"abc", &numbers);
        assert!(read(&Parcel { bytes: Bytes(core::ptr::null(), PhantomData), ..good }).is_err());
        assert!(read(&Parcel { length: usize::MAX, ..good }).is_err());
        assert!(read(&Parcel { fds: Array(core::ptr::null(), PhantomData), ..good }).is_err());
        let held = std::fs::File::open("/dev/null").unwrap();
        let many = [held.as_raw_fd(); MAX_FDS + 1];
        let refused = read(&Parcel::of(b"", &many)).unwrap_err().why.clone();
        assert!(refused.contains("33 elements"), "{refused}");
        assert_eq!(read(&Parcel::of(b"", &many[1..])).unwrap().1.len(), MAX_FDS);
    }

    #[test]
    fn space_takes_all_or_nothing() {
        let (mut bytes, mut fds) = ([7u8; 4], [-1; 1]);
        let mut space = Space::over(&mut bytes, &mut fds);
        let space = &raw mut space;
        let empty = || SpacePointer(space, PhantomData).empty("told").unwrap();
        // SAFETY: the struct above, which nobody else uses meanwhile.
        let filled = || unsafe { (*space).filled() };
        let fd = || OwnedFd::from(std::io::pipe().unwrap().1);
        assert_eq!(empty().put(b"12345", vec![fd()]).unwrap_err().len(), 1);
        assert_eq!(filled(), (5, 1));
        assert_eq!(empty().put(b"1234", vec![fd(), fd()]).unwrap_err().len(), 2);
        assert_eq!(filled(), (4, 2));
        let _nothing = empty();
        assert_eq!(filled(), (0, 0));
        empty().put(b"123", vec![fd()]).unwrap();
        assert_eq!(filled(), (3, 1));
        assert_eq!(bytes, *b"123\x07", "what did not fit has left no trace");
        // SAFETY: a descriptor that `put` gave away, to this test alone.
        drop(unsafe { OwnedFd::from_raw_fd(fds[0]) });
    }

    #[test]
    fn space_that_cannot_be_is_refused() {
        let refused =
            |space: *mut Space<'_>| SpacePointer(space, PhantomData).empty("told").unwrap_err().why.clone();
        assert_eq!(refused(core::ptr::null_mut()), "told is NULL");
        let mut none = Space::over(&mut [], &mut []);
        none.bytes = Places(core::ptr::null_mut(), PhantomData);
        none.capacity = 1;
        assert!(refused(&raw mut none).starts_with("told->bytes has 1 elements"));
        assert!(refused((&raw mut none).wrapping_byte_add(1)).contains("not aligned"));
        (none.capacity, none.fd_capacity) = (0, usize::MAX);
        assert!(refused(&raw mut none).starts_with("told->fds has"));
        none.fd_capacity = 0;
        assert!(SpacePointer(&raw mut none, PhantomData).empty("told").is_ok());
    }
}
