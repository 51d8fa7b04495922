//! What becomes of a call.

use rustix::io::Errno;

use crate::numbers::Pass;

/// What becomes of a call.
#[derive(Debug)]
#[must_use]
pub enum Turn {
    /// It is the kernel's: make it, say what it moved ([`Pass::moved`]), and drop this behind it.
    Kernel(Pass),
    /// It is done. `PIPE` without `MSG_NOSIGNAL` is a signal too.
    Done(Result<usize, Errno>),
}

/// What an endpoint makes of a call.
pub(crate) enum Step {
    Turn(Turn),
    /// The number is another thing now.
    Again,
}

impl Step {
    pub(crate) fn of(pass: Option<Pass>) -> Step {
        pass.map_or(Step::Again, |pass| Step::Turn(Turn::Kernel(pass)))
    }

    pub(crate) fn done_or_again(bytes: usize) -> Step {
        if bytes > 0 { Step::Turn(Turn::Done(Ok(bytes))) } else { Step::Again }
    }
}
