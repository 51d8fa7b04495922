//! Bytes with descriptors: as C hands them over, and memory of C for those that come.

use core::ffi::c_int;
use core::marker::PhantomData;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};

use crate::edge::{Failure, Outcome, null};

/// Most descriptors of a parcel.
pub const MAX_FDS: usize = 32;

/// Bytes and descriptors that one side hands to the other for the time of a call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Parcel<'a> {
    bytes: *const u8,
    length: usize,
    fds: *const c_int,
    fd_count: usize,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Parcel<'a> {
    /// What a callback of C is shown.
    pub fn of(bytes: &'a [u8], fds: &'a [c_int]) -> Self {
        Parcel {
            bytes: bytes.as_ptr(),
            length: bytes.len(),
            fds: fds.as_ptr(),
            fd_count: fds.len(),
            lifetime: PhantomData,
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
        let is_there = parcel.length == 0 || !parcel.bytes.is_null() && parcel.length <= isize::MAX as usize;
        if !is_there {
            let length = parcel.length;
            return Err(Failure::invalid(format!(
                "{what}->bytes is NULL or too long, with a length of {length} bytes"
            )));
        }
        let bytes = if parcel.length == 0 {
            &[][..]
        } else {
            // SAFETY: not NULL and not longer than a slice may be (checked above); bytes that nobody writes during the call.
            unsafe { core::slice::from_raw_parts(parcel.bytes, parcel.length) }
        };
        Ok((bytes, fds(parcel.fds, parcel.fd_count, what)?))
    }
}

/// Descriptors of our own of the files that those of C are of.
fn fds(start: *const c_int, count: usize, what: &str) -> Outcome<Vec<OwnedFd>> {
    if count > MAX_FDS || count > 0 && (start.is_null() || !start.is_aligned()) {
        return Err(Failure::invalid(format!(
            "{what}->fds has {count} elements; {MAX_FDS} at most, and its start must not be NULL"
        )));
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: not NULL and aligned (checked above); as many numbers as C says, which nobody writes during the call.
    let numbers = unsafe { core::slice::from_raw_parts(start, count) };
    numbers.iter().map(|number| duplicate(*number, what)).collect()
}

/// A descriptor of our own of the file that `number` is of.
///
/// # Errors
/// There is no such descriptor, or the process has no room for another.
pub fn duplicate(number: c_int, what: &str) -> Outcome<OwnedFd> {
    let refused = |why: &dyn core::fmt::Display| {
        Failure::invalid(format!("{what}->fds has the descriptor {number}: {why}"))
    };
    if number < 0 {
        return Err(refused(&"it is negative"));
    }
    // SAFETY: not -1 (checked above). If it is no open descriptor, the kernel says so to the one call that is made of it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned().map_err(|error| refused(&error))
}

/// Memory for bytes and descriptors that come, and how many did.
#[derive(Debug)]
#[repr(C)]
pub struct Space {
    bytes: *mut u8,
    capacity: usize,
    length: usize,
    fds: *mut c_int,
    fd_capacity: usize,
    fd_count: usize,
}

impl Space {
    /// Memory of ours that a callback of C may fill.
    pub fn over(bytes: &mut [u8], fds: &mut [c_int]) -> Self {
        let (capacity, fd_capacity) = (bytes.len(), fds.len());
        let (bytes, fds) = (bytes.as_mut_ptr(), fds.as_mut_ptr());
        Space { bytes, capacity, length: 0, fds, fd_capacity, fd_count: 0 }
    }

    /// How many bytes and descriptors the callback says that it has put in.
    pub fn filled(&self) -> (usize, usize) {
        (self.length, self.fd_count)
    }
}

/// Memory that C gives for what comes, or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct SpacePointer<'a>(*mut Space, PhantomData<&'a mut Space>);

impl SpacePointer<'_> {
    /// Says that nothing has come yet.
    ///
    /// # Errors
    /// It is NULL or not aligned; NULL with a capacity.
    pub fn clear(self, what: &str) -> Outcome<()> {
        if self.0.is_null() {
            return Err(null(what));
        }
        if !self.0.is_aligned() {
            return Err(Failure::invalid(format!("{what} is not aligned")));
        }
        // SAFETY: not NULL and aligned (checked above), so a struct that C has set and that this call alone uses: the contract
        // under which C passes a space. Any value is one of integers and pointers.
        let space = unsafe { &mut *self.0 };
        (space.length, space.fd_count) = (0, 0);
        let bytes_are_there =
            space.capacity == 0 || !space.bytes.is_null() && space.capacity <= isize::MAX as usize;
        let fds_are_there = space.fd_capacity == 0
            || !space.fds.is_null()
                && space.fds.is_aligned()
                && space.fd_capacity <= isize::MAX as usize / size_of::<c_int>();
        if bytes_are_there && fds_are_there {
            return Ok(());
        }
        Err(Failure::invalid(format!("{what} has NULL, not aligned, or too long memory")))
    }

    /// Puts what has come, whose descriptors are C's then; gives it back if there is no room for all, and tells C how much there
    /// would have to be. [`SpacePointer::clear`] has checked the memory.
    ///
    /// # Errors
    /// What has come, where there is no room for it.
    pub fn put(self, bytes: &[u8], fds: Vec<OwnedFd>) -> Result<(), Vec<OwnedFd>> {
        if self.0.is_null() {
            return Err(fds);
        }
        // SAFETY: as in `clear`, which has checked it.
        let space = unsafe { &mut *self.0 };
        (space.length, space.fd_count) = (bytes.len(), fds.len());
        if bytes.len() > space.capacity || fds.len() > space.fd_capacity {
            return Err(fds);
        }
        if !bytes.is_empty() {
            // SAFETY: `capacity` bytes of C's, as many as there are at least, which this call alone uses (`clear`).
            let to = unsafe { core::slice::from_raw_parts_mut(space.bytes, bytes.len()) };
            to.copy_from_slice(bytes);
        }
        for (index, fd) in fds.into_iter().enumerate() {
            // SAFETY: in `fd_capacity` numbers of C's (compared above).
            unsafe { space.fds.wrapping_add(index).write(fd.into_raw_fd()) };
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(miri))]
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
        assert!(read(&Parcel { bytes: core::ptr::null(), ..good }).is_err());
        assert!(read(&Parcel { length: usize::MAX, ..good }).is_err());
        assert!(read(&Parcel { fds: core::ptr::null(), ..good }).is_err());
        let held = std::fs::File::open("/dev/null").unwrap();
        let many = [held.as_raw_fd(); MAX_FDS + 1];
        let refused = read(&Parcel::of(b"", &many)).unwrap_err().why.clone();
        assert!(refused.contains("33 elements"), "{refused}");
        assert_eq!(read(&Parcel::of(b"", &many[1..])).unwrap().1.len(), MAX_FDS);
    }

    #[test]
    fn space_takes_all_or_nothing() {
        let (mut bytes, mut fds) = ([0u8; 4], [-1; 1]);
        let mut space = Space::over(&mut bytes, &mut fds);
        let pointer = SpacePointer(&raw mut space, PhantomData);
        pointer.clear("told").unwrap();
        let fd = || OwnedFd::from(std::io::pipe().unwrap().1);
        assert_eq!(pointer.put(b"12345", vec![fd()]).unwrap_err().len(), 1);
        assert_eq!(space.filled(), (5, 1));
        let pointer = SpacePointer(&raw mut space, PhantomData);
        assert_eq!(pointer.put(b"1234", vec![fd(), fd()]).unwrap_err().len(), 2);
        pointer.put(b"123", vec![fd()]).unwrap();
        assert_eq!((space.filled(), bytes), ((3, 1), *b"123\0"));
        // SAFETY: a descriptor that `put` gave away, to this test alone.
        drop(unsafe { OwnedFd::from_raw_fd(fds[0]) });
        assert!(SpacePointer(core::ptr::null_mut(), PhantomData).clear("told").is_err());
        let mut none = Space { bytes: core::ptr::null_mut(), capacity: 1, ..space };
        assert!(SpacePointer(&raw mut none, PhantomData).clear("told").is_err());
    }
}
