//! A word for each number of a descriptor, made by pieces as numbers are used.

use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

const PIECE: usize = 4096;
const PIECES: usize = 256;

/// Words for numbers below a million; above them there is none.
#[derive(Debug)]
pub(crate) struct Numbers {
    pieces: Box<[OnceLock<Box<[AtomicU32]>>]>,
}

impl Numbers {
    pub(crate) fn new() -> Self {
        Numbers { pieces: (0..PIECES).map(|_| OnceLock::new()).collect() }
    }

    /// The word of a number that was made before.
    pub(crate) fn get(&self, number: RawFd) -> Option<&AtomicU32> {
        let number = usize::try_from(number).ok()?;
        self.pieces.get(number / PIECE)?.get()?.get(number % PIECE)
    }

    /// The word of a number; a new one is 0.
    pub(crate) fn make(&self, number: RawFd) -> Option<&AtomicU32> {
        let number = usize::try_from(number).ok()?;
        let piece = self.pieces.get(number / PIECE)?;
        piece.get_or_init(|| (0..PIECE).map(|_| AtomicU32::new(0)).collect()).get(number % PIECE)
    }
}
