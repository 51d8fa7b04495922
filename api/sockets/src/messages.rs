//! Memory that C points to as slices, with the errors that the kernel has for what is no such memory.

use core::ffi::{c_int, c_void};
use core::slice::{from_raw_parts, from_raw_parts_mut};
use std::io::{IoSlice, IoSliceMut};

use libc::{iovec, msghdr, size_t};
use rustix::io::Errno;
use smallvec::SmallVec;

/// As much as the kernel moves in one call (`MAX_RW_COUNT` with pages of 4 KiB); what is longer is cut.
pub const MOST_BYTES: usize = 0x7fff_f000;
/// As many pieces as one call may have (`UIO_MAXIOV`).
const MOST_PIECES: usize = 1024;

/// Pieces of one call; no memory is taken for a few of them.
pub type Pieces<'a> = SmallVec<[IoSlice<'a>; 8]>;
/// Pieces that are written to.
pub type Places<'a> = SmallVec<[IoSliceMut<'a>; 8]>;

/// Whether the address is null, or so near it that no program has memory there. Elsewhere only the kernel knows before it is touched.
fn is_nowhere(address: *const c_void) -> bool {
    const FIRST_PAGE_BYTES: usize = 4096;
    address.addr() < FIRST_PAGE_BYTES
}

/// Where a call puts bytes.
///
/// # Safety
/// `out` is null, or valid for writes of `bytes` bytes.
pub unsafe fn place<'a>(out: *mut c_void, bytes: size_t) -> Result<IoSliceMut<'a>, Errno> {
    if bytes == 0 {
        return Ok(IoSliceMut::new(&mut []));
    }
    if is_nowhere(out) {
        return Err(Errno::FAULT);
    }
    // SAFETY: not null, and valid for as many bytes by this function's contract. The program reads it only after the call.
    Ok(IoSliceMut::new(unsafe { from_raw_parts_mut(out.cast(), bytes.min(MOST_BYTES)) }))
}

/// What a call sends.
///
/// # Safety
/// `from` is null, or valid for reads of `bytes` bytes.
pub unsafe fn piece<'a>(from: *const c_void, bytes: size_t) -> Result<IoSlice<'a>, Errno> {
    if bytes == 0 {
        return Ok(IoSlice::new(&[]));
    }
    if is_nowhere(from) {
        return Err(Errno::FAULT);
    }
    // SAFETY: not null, and valid for as many bytes by this function's contract. A program that writes to it meanwhile sends either value, as it does by the kernel.
    Ok(IoSlice::new(unsafe { from_raw_parts(from.cast(), bytes.min(MOST_BYTES)) }))
}

/// Where a call puts bytes, in order.
///
/// # Safety
/// `vectors` is null or points to `count` vectors, each of which is null or valid for writes.
pub unsafe fn places<'a>(vectors: *const iovec, count: usize) -> Result<Places<'a>, Errno> {
    // SAFETY: by this function's contract.
    let vectors = unsafe { checked(vectors, count)? };
    cut(vectors)
        .map(|(base, bytes)| {
            // SAFETY: a vector is null or valid for writes, by this function's contract; it is not longer than it was.
            unsafe { place(base, bytes) }
        })
        .collect()
}

/// What a call sends, in order.
///
/// # Safety
/// `vectors` is null or points to `count` vectors, each of which is null or valid for reads.
pub unsafe fn pieces<'a>(vectors: *const iovec, count: usize) -> Result<Pieces<'a>, Errno> {
    // SAFETY: by this function's contract.
    let vectors = unsafe { checked(vectors, count)? };
    cut(vectors)
        .map(|(base, bytes)| {
            // SAFETY: a vector is null or valid for reads, by this function's contract; it is not longer than it was.
            unsafe { piece(base, bytes) }
        })
        .collect()
}

/// The vectors, if the kernel would take them.
///
/// # Safety
/// `vectors` is null or points to `count` vectors.
unsafe fn checked<'a>(vectors: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    if count > MOST_PIECES {
        return Err(Errno::INVAL);
    }
    if count == 0 {
        return Ok(&[]);
    }
    if vectors.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: not null, and `count` vectors by this function's contract.
    let vectors = unsafe { from_raw_parts(vectors, count) };
    let is_negative = |vector: &iovec| isize::try_from(vector.iov_len).is_err();
    if vectors.iter().any(is_negative) { Err(Errno::INVAL) } else { Ok(vectors) }
}

/// The vectors up to as many bytes as the kernel moves.
fn cut(vectors: &[iovec]) -> impl Iterator<Item = (*mut c_void, usize)> {
    let mut left = MOST_BYTES;
    vectors.iter().map(move |vector| {
        let bytes = vector.iov_len.min(left);
        left -= bytes;
        (vector.iov_base, bytes)
    })
}

/// The error of a message with too many pieces is not that of vectors.
pub fn check_message(message: &msghdr) -> Result<(), Errno> {
    if message.msg_iovlen > MOST_PIECES { Err(Errno::MSGSIZE) } else { Ok(()) }
}

/// Leaves the header of a received message as TCP does: no address, nothing beside the bytes.
pub fn finish(message: &mut msghdr, flags: c_int) {
    if !message.msg_name.is_null() {
        message.msg_namelen = 0;
    }
    message.msg_controllen = 0;
    message.msg_flags = flags & libc::MSG_CMSG_CLOEXEC;
}

/// Numbers that are passed with a message (`SCM_RIGHTS`), those of several lists after each other.
///
/// # Safety
/// The control bytes of the message are null or valid for reads.
pub unsafe fn passed(message: &msghdr) -> impl Iterator<Item = c_int> {
    let is_there = !message.msg_control.is_null() && message.msg_controllen >= size_of::<libc::cmsghdr>();
    let bytes: &[u8] = if is_there {
        // SAFETY: not null, and as many bytes by this function's contract; the kernel is to read them, too.
        unsafe { from_raw_parts(message.msg_control.cast(), message.msg_controllen) }
    } else {
        &[]
    };
    let rights = Headers(bytes).filter(|header| header.is_rights);
    rights.flat_map(|header| header.data.as_chunks().0).map(|number| c_int::from_ne_bytes(*number))
}

/// Headers in the control bytes of a message.
struct Headers<'a>(&'a [u8]);

struct Header<'a> {
    is_rights: bool,
    data: &'a [u8],
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        const HEAD: usize = size_of::<libc::cmsghdr>();
        let (length, rest) = self.0.split_first_chunk::<{ size_of::<usize>() }>()?;
        let length = usize::from_ne_bytes(*length);
        let (level, rest) = rest.split_first_chunk::<{ size_of::<c_int>() }>()?;
        let (kind, _) = rest.split_first_chunk::<{ size_of::<c_int>() }>()?;
        if length < HEAD || length > self.0.len() {
            return None;
        }
        let is_rights =
            (i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind)) == (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        let data = &self.0[HEAD..length];
        self.0 = self.0.get(length.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
        Some(Header { is_rights, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(lengths: &[usize]) -> Vec<iovec> {
        // Behind the first page, where nothing is.
        let base = core::ptr::without_provenance_mut::<c_void>(0x10_0000);
        lengths.iter().map(|length| iovec { iov_base: base, iov_len: *length }).collect()
    }

    fn lengths(lengths: &[usize]) -> Result<Vec<usize>, Errno> {
        let vectors = vectors(lengths);
        // SAFETY: nothing is read of what the vectors point to.
        let pieces = unsafe { pieces(vectors.as_ptr(), vectors.len()) };
        pieces.map(|pieces| pieces.iter().map(|piece| piece.len()).collect())
    }

    #[test]
    fn vectors_are_cut_where_the_kernel_cuts_them() {
        assert_eq!(lengths(&[1, 0, 3]), Ok(vec![1, 0, 3]));
        assert_eq!(lengths(&[MOST_BYTES - 1, 5, 7]), Ok(vec![MOST_BYTES - 1, 1, 0]));
    }

    #[test]
    fn vectors_that_the_kernel_refuses_have_its_errors() {
        assert_eq!(lengths(&[1, usize::MAX]), Err(Errno::INVAL));
        assert_eq!(lengths(&vec![1; MOST_PIECES]).map(|each| each.len()), Ok(MOST_PIECES));
        assert_eq!(lengths(&vec![1; MOST_PIECES + 1]), Err(Errno::INVAL));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { pieces(core::ptr::null(), 1) }.err(), Some(Errno::FAULT));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { pieces(core::ptr::null(), 0) }.map(|pieces| pieces.len()), Ok(0));
    }

    #[test]
    fn memory_at_null_is_a_fault_unless_it_has_no_bytes() {
        let null = core::ptr::null_mut();
        // SAFETY: null is allowed.
        assert_eq!(unsafe { place(null, 1) }.err(), Some(Errno::FAULT));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { place(null, 0) }.map(|place| place.len()), Ok(0));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { piece(null, 1) }.err(), Some(Errno::FAULT));
        let near = core::ptr::without_provenance_mut(8);
        // SAFETY: nothing is written there.
        assert_eq!(unsafe { place(near, 1) }.err(), Some(Errno::FAULT));
    }

    fn passed_by(control: &mut [u8]) -> Vec<c_int> {
        // SAFETY: zero is a value of every field.
        let mut message: msghdr = unsafe { core::mem::zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control.len();
        // SAFETY: the control bytes are those of the slice.
        unsafe { passed(&message) }.collect()
    }

    fn control(length: usize, kind: c_int, numbers: &[c_int]) -> Vec<u8> {
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(libc::SOL_SOCKET.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn numbers_that_are_passed_are_found_in_every_list() {
        let mut both = control(16 + 12, libc::SCM_RIGHTS, &[3, 4, 5]);
        both.extend(control(16 + 12, libc::SCM_CREDENTIALS, &[6, 7, 8]));
        both.extend(control(16 + 4, libc::SCM_RIGHTS, &[9]));
        assert_eq!(passed_by(&mut both), [3, 4, 5, 9]);
    }

    #[test]
    fn control_bytes_that_end_early_or_lie_about_their_length_pass_nothing() {
        for length in [0, 1, 15, 16 + 9, usize::MAX] {
            let passed = passed_by(&mut control(length, libc::SCM_RIGHTS, &[3, 4]));
            assert!(passed.is_empty(), "length {length}: {passed:?}");
        }
        assert!(passed_by(&mut control(20, libc::SCM_RIGHTS, &[3])[..12]).is_empty());
        assert!(passed_by(&mut []).is_empty());
    }
}
