//! What the fabric asks of an adapter: words that one side alone stores and other sides load.
//!
//! Members of a fabric publish what they are, and what they use of each other, in such words (`host/fabric`). Over memory that
//! several processes map they are that memory; across a link that only carries stores they are copies that are pushed.
#![no_std]
#![forbid(unsafe_code)]

/// Whether another side has what was published is not known: it does not answer, or a link was down in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unconfirmed;

/// Words of this side, which it alone stores.
pub trait PublishPort {
    /// Stores a word. Who loads it, through a [`ViewPort`], sees everything that this side published before.
    fn publish(&mut self, word: u32, value: u64);

    /// Orders this side's stores before its loads of other sides' words, as every side sees them: of two sides that each
    /// publish, pass a barrier and load, at least one sees what the other one has published.
    ///
    /// # Errors
    /// [`Unconfirmed`]: nothing is ordered. Memory that both sides map is always there.
    fn barrier(&mut self) -> Result<(), Unconfirmed>;
}

/// Words of this side, of which several threads raise some as counts.
pub trait CountPort: PublishPort {
    /// Raises a word by one, and no other thread's raise of it is lost. Who loads it sees everything that this thread stored before.
    fn raise(&self, word: u32);
}

/// Words of another side.
pub trait ViewPort {
    /// Loads a word, and sees everything that was published before its value.
    fn load(&self, word: u32) -> u64;
}

/// The memories of one kind of adapter.
pub trait Adapter {
    /// The board of this side.
    type Board: PublishPort;
    /// What this side claims of one other side, and its counts of triggers there. Clones are the same words.
    type Claims: CountPort + Clone;
    /// A board or claims of another side. Clones are the same words.
    type View: ViewPort + Clone;
}
