//! The marks of ports of the domain, as this process has them open: again behind each time that the program has closed the library's number.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use beeline_domain::{DomainConfig, MisuseError, PortMarks, RegistryError};

use crate::forks::OfProcess;
use crate::lock::is_any_held_here;
use crate::prepared::place_descriptors_high;

/// A program that has closed the number so often closes all that it does not know.
const MOST: usize = 8;

/// No lock is taken to look at them, since a handler's `bind` does.
pub(crate) struct Marks(OfProcess<Opened>);

#[derive(Default)]
struct Opened {
    /// None where they cannot be opened.
    all: [OnceLock<Option<PortMarks>>; MOST],
    last: AtomicUsize,
}

impl Opened {
    fn last(&self) -> &OnceLock<Option<PortMarks>> {
        &self.all[self.last.load(Ordering::Acquire)]
    }

    fn marks(&self) -> Option<&PortMarks> {
        self.last().get()?.as_ref()
    }
}

impl Marks {
    pub(crate) const fn new() -> Self {
        Marks(OfProcess::new())
    }

    /// Opens them with the first use.
    pub(crate) fn get(&self, domain: &DomainConfig) -> Option<&PortMarks> {
        let open = || {
            place_descriptors_high();
            let opened = PortMarks::open(domain);
            opened.inspect_err(|error| tracing::warn!(%error, "groups stay with the kernel")).ok()
        };
        self.0.get_or_init(Opened::default)?.last().get_or_init(open).as_ref()
    }

    /// Those that are open; a child of fork that has opened none goes on with its parent's.
    fn opened(&self) -> Option<&PortMarks> {
        let own = self.0.get().and_then(Opened::marks);
        own.or_else(|| self.0.of_parent().and_then(Opened::marks))
    }

    /// Opens them again, in place of those whose descriptor was lost.
    pub(crate) fn reopen(&self, lost: &PortMarks, domain: &DomainConfig) -> Option<&PortMarks> {
        let opened = self.0.get_or_init(Opened::default)?;
        let at = opened.last.load(Ordering::Acquire);
        let is_last =
            opened.all[at].get().and_then(Option::as_ref).is_some_and(|last| std::ptr::eq(last, lost));
        if is_last && at + 1 < MOST {
            // Another thread may have been first.
            let _ = opened.last.compare_exchange(at, at + 1, Ordering::AcqRel, Ordering::Relaxed);
        }
        self.get(domain).filter(|marks| !std::ptr::eq(*marks, lost))
    }

    /// Gives a port another mark. In a handler nothing is opened: what it has interrupted may be about to.
    ///
    /// # Errors
    /// As [`PortMarks::mark`].
    pub(crate) fn mark(&self, port: u16, domain: &DomainConfig) -> Result<(), RegistryError> {
        let is_handler = is_any_held_here();
        let Some(marks) = (if is_handler { self.opened() } else { self.get(domain) }) else { return Ok(()) };
        match marks.mark(port) {
            Err(error) if is_lost(&error) && !is_handler => match self.reopen(marks, domain) {
                Some(marks) => marks.mark(port),
                None => Err(error),
            },
            marked => marked,
        }
    }
}

/// Whether the program has closed the number, or has another file there.
pub(crate) fn is_lost(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Misuse(MisuseError::DescriptorLost))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use beeline_domain::{Purpose, descriptors};

    use super::*;
    use crate::forks::test_in_child;
    use crate::lock::locked;

    fn numbers() -> BTreeSet<i32> {
        let ours = descriptors().into_iter().filter(|(_, purpose)| *purpose == Purpose::PortMarks);
        ours.map(|(number, _)| number).collect()
    }

    #[test]
    fn marks_are_opened_again_behind_a_program_that_closes_their_number() {
        let root = tempfile::tempdir().unwrap();
        let domain = DomainConfig { root: Some(root.path().to_owned()), name: "marks".to_owned() };
        test_in_child(|| {
            let (marks, other) = (Marks::new(), PortMarks::open(&domain).unwrap());
            let others = numbers();
            let mut seen = None;
            for _ in 0..3 {
                marks.mark(9, &domain).unwrap();
                let mark = other.read(9).unwrap();
                assert_ne!(mark, seen);
                seen = mark;
                // Some of them were lost before.
                numbers().difference(&others).for_each(|number| _ = nix::unistd::close(*number));
            }
        });
    }

    #[test]
    fn handler_writes_into_what_is_open_and_opens_nothing() {
        let root = tempfile::tempdir().unwrap();
        let domain = DomainConfig { root: Some(root.path().to_owned()), name: "marks".to_owned() };
        test_in_child(|| {
            let (marks, other, lock) = (Marks::new(), PortMarks::open(&domain).unwrap(), Mutex::new(()));
            let before = numbers();
            let interrupted = locked(&lock);
            marks.mark(9, &domain).unwrap();
            assert_eq!((numbers(), other.read(9).unwrap()), (before, None));
            drop(interrupted);
            marks.get(&domain).unwrap();
            let _interrupted = locked(&lock);
            marks.mark(9, &domain).unwrap();
            assert!(other.read(9).unwrap().is_some());
        });
    }
}
