//! The order in which a mark is written and read beside what it stands for. No file is touched here.

use std::num::NonZeroU64;

/// The word of one port.
pub(super) trait MarkWord {
    type Error;
    fn read(&self) -> Result<Option<NonZeroU64>, Self::Error>;
    fn write(&self, mark: NonZeroU64) -> Result<(), Self::Error>;
    /// What this thread did before comes before what it does behind it.
    fn barrier(&self);
    /// A mark that nobody has had.
    fn draw(&self) -> Result<NonZeroU64, Self::Error>;
}

/// Gives the word another mark, behind a change that this thread has made.
pub(super) fn renew<W: MarkWord>(word: &W) -> Result<(), W::Error> {
    let mark = word.draw()?;
    // Pairs with that of `watch`: who reads the mark sees the change.
    word.barrier();
    word.write(mark)
}

/// Looks behind a mark, of its own where there is none: whoever changes something that the look has not seen writes another mark later.
pub(super) fn watch<W: MarkWord, T>(word: &W, look: impl FnOnce() -> T) -> Result<(NonZeroU64, T), W::Error> {
    let mark = match word.read()? {
        Some(mark) => mark,
        None => {
            let mark = word.draw()?;
            word.write(mark)?;
            mark
        }
    };
    // Pairs with that of `renew`.
    word.barrier();
    Ok((mark, look()))
}

#[cfg(loom)]
#[cfg(test)]
#[path = "mark_loom.rs"]
mod loom_models;
