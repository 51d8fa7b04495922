//! Flags: those that a function knows, and those of them that this platform has.

use beeline_ffi::Outcome;

use crate::constants::SCI_FLAG_BROADCAST;
use crate::edge::failure;
use crate::errors;

/// What a function takes.
pub(crate) struct Flags {
    /// Those that do what they say.
    pub(crate) done: u32,
    /// Those that a program may give, and that this platform cannot do or does not do yet.
    pub(crate) not_done: u32,
}

impl Flags {
    /// Takes no flag.
    pub(crate) const NONE: Flags = Flags { done: 0, not_done: 0 };

    /// Checks what C gives.
    ///
    /// # Errors
    /// A flag that the function does not know, or one that is not done here.
    pub(crate) fn check(&self, given: u32) -> Outcome<()> {
        let unknown = given & !(self.done | self.not_done);
        if unknown != 0 {
            return Err(failure(
                errors::ILLEGAL_FLAG,
                format!("flags = {given:#x}; {unknown:#x} is none of this function"),
            ));
        }
        if given & self.not_done != 0 {
            let why =
                format!("flags = {given:#x}; {:#x} is not done on this platform", given & self.not_done);
            return Err(failure(errors::FLAG_NOT_IMPLEMENTED, why));
        }
        Ok(())
    }
}

/// Checks that the flag of groups is given for one alone. What is known of the flags is checked elsewhere.
///
/// # Errors
/// It is given for something else.
pub(crate) fn check_broadcast(flags: u32, is_group: bool) -> Outcome<()> {
    if flags & SCI_FLAG_BROADCAST == 0 || is_group {
        return Ok(());
    }
    let why = format!("flags = {flags:#x}; SCI_FLAG_BROADCAST is for groups");
    Err(failure(errors::ILLEGAL_OPERATION, why))
}
