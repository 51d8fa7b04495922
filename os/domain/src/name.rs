//! Names of domains and offers: what may stand in a file name of the rendezvous folder.

use std::fmt;

/// Longest name in bytes.
pub const MAX_NAME_BYTES: usize = 48;
/// Longest name in bytes of a domain in a network namespace, whose sockets have all of their name in 107 bytes.
pub const MAX_NAMESPACE_NAME_BYTES: usize = 39;

/// Why a string is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The string is empty.
    #[error("a name must have at least one character")]
    Empty,
    /// The string is too long.
    #[error("a name of {bytes} bytes; at most {MAX_NAME_BYTES} are allowed")]
    TooLong { bytes: usize },
    /// The string is too long for a domain in a network namespace.
    #[error("a name of {bytes} bytes; a domain in a network namespace may have {MAX_NAMESPACE_NAME_BYTES}")]
    TooLongForNamespace { bytes: usize },
    /// A character that names may not have, or not at that place.
    #[error(
        "`{}` at position {position} of a name: names are [a-z0-9] followed by [a-z0-9._-]",
        character.escape_default()
    )]
    Character {
        character: char,
        /// Byte position of the character in the name.
        position: usize,
    },
}

/// A checked name: `[a-z0-9][a-z0-9._-]{0,47}`. It can be neither a path nor hidden nor `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(String);

impl Name {
    pub(crate) fn new(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(NameError::TooLong { bytes: text.len() });
        }
        for (position, character) in text.char_indices() {
            let first = matches!(character, 'a'..='z' | '0'..='9');
            if !(first || position > 0 && matches!(character, '.' | '_' | '-')) {
                return Err(NameError::Character { character, position });
            }
        }
        Ok(Name(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// File name of the offer's socket.
    pub(crate) fn socket_file(&self) -> String {
        format!("{}{SOCKET_SUFFIX}", self.0)
    }

    /// File name of the offer's record lock.
    pub(crate) fn lock_file(&self) -> String {
        format!("{}{LOCK_SUFFIX}", self.0)
    }
}

/// What the file name of every socket ends with.
pub(crate) const SOCKET_SUFFIX: &str = ".sock";
/// What the file name of every record lock ends with.
pub(crate) const LOCK_SUFFIX: &str = ".lock";

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_taken() {
        for name in ["a", "0", "nic0", "port-1.tx_2", &"x".repeat(48)] {
            assert_eq!(Name::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_could_be_paths_or_hidden_are_refused() {
        assert_eq!(Name::new(""), Err(NameError::Empty));
        assert_eq!(Name::new(&"x".repeat(49)), Err(NameError::TooLong { bytes: 49 }));
        for (name, character, position) in
            [("..", '.', 0), (".a", '.', 0), ("-a", '-', 0), ("a/b", '/', 1), ("A", 'A', 0), ("a\0", '\0', 1)]
        {
            assert_eq!(Name::new(name), Err(NameError::Character { character, position }));
        }
        assert!(Name::new("ä").is_err());
    }

    #[test]
    fn a_refusal_does_not_print_control_characters() {
        let text = Name::new("a\u{1b}[31m").unwrap_err().to_string();
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
