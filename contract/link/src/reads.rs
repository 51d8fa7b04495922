//! Reading a window: uncached loads across the link, whose answers come later.
//!
//! Only interfaces that receive by reading the device use it (a polling read that the device may hold). Nothing that
//! sends does: an answer costs a round trip of the link at least.

use beeline_contract_memory::Line;

/// An outstanding read of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowRead(pub u16);

/// Reads of one queue's window. Nothing here blocks or allocates; a read that is outstanding is a state of the caller.
///
/// A read is one load of up to a line, as one PCIe read request carries it: its words are asked for in ascending order,
/// one behind the other, after the stores and doorbells of the same link that came before it. Answers to different
/// reads come in any order. A link whose loads stall the core (a mapped BAR) loads when it is asked for the answer.
pub trait ReadPort {
    /// Lines of the window, a power of two.
    fn lines(&self) -> u32;

    /// Starts a read of `words` (1 to 8) consecutive words of line `line`, from `first_word` on; they lie in the line.
    /// `None` while as many reads are outstanding as the link bears; it bears one at least.
    fn start_read(&mut self, line: u32, first_word: u32, words: u32) -> Option<WindowRead>;

    /// Puts what was read into the first words of `into` once it is there, which ends the read; the other words are left
    /// alone. `false`: it is not there yet. What a device that is gone gives is all ones, or nothing for ever.
    ///
    /// Whoever answers is not trusted, and the words may be of different times: check, then use.
    fn poll_read(&mut self, read: WindowRead, into: &mut Line) -> bool;

    /// Gives every outstanding read up: what comes for it is thrown away.
    fn abandon(&mut self);
}

/// The port of a link that cannot read windows ([`crate::LinkError::NotExpressible`]): there is none.
#[derive(Clone, Copy, Debug)]
pub enum NoReads {}

impl ReadPort for NoReads {
    fn lines(&self) -> u32 {
        match *self {}
    }
    fn start_read(&mut self, _line: u32, _first_word: u32, _words: u32) -> Option<WindowRead> {
        match *self {}
    }
    fn poll_read(&mut self, _read: WindowRead, _into: &mut Line) -> bool {
        match *self {}
    }
    fn abandon(&mut self) {
        match *self {}
    }
}
