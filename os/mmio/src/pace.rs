//! Long work on memory, done in pieces of a bounded size.
//!
//! Bringing pages in, filling them and unmapping them takes time in proportion to their number, and the kernel holds a lock
//! of the whole address space meanwhile, which every other thread that maps or unmaps something waits for. So each call of
//! ours is about one piece, and whoever has several such works under way says with a [`Pace`] whose piece is next.

use std::time::Duration;

/// Bytes that are brought in, filled or locked in one piece.
pub const PIECE_BYTES: usize = 256 << 10;
/// Bytes that are unmapped in one piece; unmapping a page takes a tenth of the time of bringing one in.
pub(crate) const UNMAP_PIECE_BYTES: usize = 2 << 20;
/// The same behind pieces of which few pages were there.
pub(crate) const UNMAP_SPARSE_BYTES: usize = 16 << 20;
/// What unmapping a piece takes at most of which few pages were there.
pub(crate) const UNMAP_SPARSE_TIME: Duration = Duration::from_micros(20);

/// Decides when the next piece of a long work is done.
pub trait Pace {
    /// Calls `work` once, when its time has come. It takes as long as [`PIECE_BYTES`] of memory take.
    fn piece(&self, work: &mut dyn FnMut());
}

/// One piece after the other, without waiting for anybody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpaced;

impl Pace for Unpaced {
    fn piece(&self, work: &mut dyn FnMut()) {
        work();
    }
}

/// Calls `work` with offset and size of every piece of `bytes` bytes, until one fails.
pub(crate) fn in_pieces<E>(
    bytes: usize,
    pace: &dyn Pace,
    mut work: impl FnMut(usize, usize) -> Result<(), E>,
) -> Result<(), E> {
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        let mut result = Ok(());
        pace.piece(&mut || result = work(offset, PIECE_BYTES.min(bytes - offset)));
        result?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn pieces_cover_everything_once_and_a_failure_ends_them() {
        let calls = Cell::new(0);
        struct Counting<'a>(&'a Cell<u32>);
        impl Pace for Counting<'_> {
            fn piece(&self, work: &mut dyn FnMut()) {
                self.0.set(self.0.get() + 1);
                work();
            }
        }
        let mut next = 0;
        let whole = 2 * PIECE_BYTES + 5;
        let done: Result<(), ()> = in_pieces(whole, &Counting(&calls), |offset, bytes| {
            assert_eq!(offset, next);
            assert!(bytes <= PIECE_BYTES);
            next += bytes;
            Ok(())
        });
        assert_eq!((done, next, calls.get()), (Ok(()), whole, 3));
        assert_eq!(in_pieces(whole, &Counting(&calls), |offset, _| Err(offset)), Err(0));
        assert_eq!(calls.get(), 4);
    }
}
