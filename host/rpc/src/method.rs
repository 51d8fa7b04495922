//! What a request asks for.

/// The number of a method. Servers and clients of one service agree on them; the library gives none a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Method(pub u16);

impl core::fmt::Display for Method {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "method {}", self.0)
    }
}
