//! Copies between mapped memory and our own, of any size and alignment.
//!
//! Aligned words of the mapped side are copied whole, in pieces of 16 bytes where both ends allow it; the order of
//! the accesses is not defined. `copy_nonoverlapping` will not do: it promises the compiler that nobody else writes.

use crate::arch::{load_16, store_16, words};

/// What the widest load and store of every 64-bit CPU moves.
const PIECE_BYTES: usize = 16;

/// Copies `bytes` to mapped memory.
///
/// # Safety
/// `to` is `bytes.len()` mapped, writable bytes that are only accessed by atomics and asm.
#[inline]
pub(crate) unsafe fn copy_in(to: *mut u8, bytes: &[u8]) {
    let (from, length) = (bytes.as_ptr(), bytes.len());
    let head = length.min(to.addr().wrapping_neg() % PIECE_BYTES);
    // SAFETY: the first bytes of both sides; then, by `head`, the mapped side is aligned to a piece, or nothing is left.
    unsafe { small_in(to, from, head) };
    let pieces = (length - head) / PIECE_BYTES;
    for i in 0..pieces {
        let at = head + i * PIECE_BYTES;
        // SAFETY: at least a piece is left on both sides, and the mapped side is aligned.
        unsafe { store_16(to.wrapping_add(at), from.wrapping_add(at)) };
    }
    let at = head + pieces * PIECE_BYTES;
    // SAFETY: what is left on both sides.
    unsafe { small_in(to.wrapping_add(at), from.wrapping_add(at), length - at) };
}

/// Copies mapped memory to `bytes`.
///
/// # Safety
/// `from` is `bytes.len()` mapped bytes that are only accessed by atomics and asm.
#[inline]
pub(crate) unsafe fn copy_out(from: *const u8, bytes: &mut [u8]) {
    let (to, length) = (bytes.as_mut_ptr(), bytes.len());
    let head = length.min(from.addr().wrapping_neg() % PIECE_BYTES);
    // SAFETY: the first bytes of both sides; then, by `head`, the mapped side is aligned to a piece, or nothing is left.
    unsafe { small_out(from, to, head) };
    let pieces = (length - head) / PIECE_BYTES;
    for i in 0..pieces {
        let at = head + i * PIECE_BYTES;
        // SAFETY: at least a piece is left on both sides, and the mapped side is aligned.
        unsafe { load_16(from.wrapping_add(at), to.wrapping_add(at)) };
    }
    let at = head + pieces * PIECE_BYTES;
    // SAFETY: what is left on both sides.
    unsafe { small_out(from.wrapping_add(at), to.wrapping_add(at), length - at) };
}

/// Less than a piece: words where the mapped side is aligned, bytes around them.
///
/// # Safety
/// `count` bytes are mapped and writable at `to`, and readable at `from`.
#[inline]
unsafe fn small_in(to: *mut u8, from: *const u8, count: usize) {
    let mut at = 0;
    while at < count {
        let (place, source) = (to.wrapping_add(at), from.wrapping_add(at));
        if count - at >= 8 && place.addr().is_multiple_of(8) {
            // SAFETY: 8 bytes are left, and bytes need no alignment.
            let word = u64::from_le_bytes(unsafe { source.cast::<[u8; 8]>().read() });
            // SAFETY: 8 bytes are left, and the mapped side is aligned.
            unsafe { words::store_word(place, word) };
            at += 8;
        } else {
            // SAFETY: a byte is left.
            let byte = unsafe { source.read() };
            // SAFETY: a byte is left.
            unsafe { words::store_byte(place, byte) };
            at += 1;
        }
    }
}

/// Less than a piece: words where the mapped side is aligned, bytes around them.
///
/// # Safety
/// `count` bytes are mapped at `from`, and writable at `to`.
#[inline]
unsafe fn small_out(from: *const u8, to: *mut u8, count: usize) {
    let mut at = 0;
    while at < count {
        let (place, out) = (from.wrapping_add(at), to.wrapping_add(at));
        if count - at >= 8 && place.addr().is_multiple_of(8) {
            // SAFETY: 8 bytes are left, and the mapped side is aligned.
            let word = unsafe { words::load_word(place) };
            // SAFETY: 8 bytes are left, and bytes need no alignment.
            unsafe { out.cast::<[u8; 8]>().write(word.to_le_bytes()) };
            at += 8;
        } else {
            // SAFETY: a byte is left.
            let byte = unsafe { words::load_byte(place) };
            // SAFETY: a byte is left.
            unsafe { out.write(byte) };
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Region;

    #[test]
    fn copies_take_every_size_and_alignment_and_leave_neighbours_alone() {
        let region = Region::private(256);
        let source: Vec<u8> = (0..200).map(|i| i as u8 ^ 0x5a).collect();
        // Miri is thousands of times slower: there, strides that meet every case of the code.
        let stride = if cfg!(miri) { 7 } else { 1 };
        for offset in (0..24).step_by(stride) {
            for skip in (0..3).step_by(stride) {
                for count in (0..70).step_by(stride).chain([127, 130]) {
                    region.fill(0, 256, u64::MAX);
                    region.copy_in(offset, &source[skip..skip + count]);
                    let mut all = [0; 256];
                    region.copy_out(0, &mut all);
                    let mut expected = [0xff; 256];
                    expected[offset..offset + count].copy_from_slice(&source[skip..skip + count]);
                    assert_eq!(all, expected, "{count} bytes from +{skip} to {offset}");
                    let mut back = vec![0; count + skip];
                    region.copy_out(offset, &mut back[skip..]);
                    assert_eq!(&back[skip..], &source[skip..skip + count]);
                }
            }
        }
    }
}
