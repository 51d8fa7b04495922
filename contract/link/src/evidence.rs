//! How one side of a link learns that the other side is gone, and what the two tell each other where no kernel can.

use core::time::Duration;

use beeline_contract_memory::Line;

/// A kind of link, which says how the end of a peer is recognised on it.
pub trait LinkKind {
    /// How one side learns that the other is gone.
    const EVIDENCE: Evidence;
}

/// What shows that the other side of a link is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Both sides are in one process and end together.
    OneProcess,
    /// One kernel runs both and tells: a pidfd, a record lock. Silence means nothing.
    Kernel,
    /// No kernel sees both: two guests, two hosts. Whoever is silent past a declared bound is down.
    Heartbeat(Heartbeat),
}

/// How often a side shows that it runs, and how long a silence means that it does not. Part of the link's contract: both sides
/// have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    period_ms: u16,
    bound_ms: u16,
}

impl Heartbeat {
    /// A beat in every period, and a bound of two periods at least. Whole milliseconds, because no scheduler keeps less.
    ///
    /// # Panics
    /// If the period is 0 or the bound less than two periods; in a constant, when it is compiled.
    pub const fn from_millis(period_ms: u16, bound_ms: u16) -> Self {
        assert!(period_ms > 0, "a heartbeat without a pause: give a period of 1 ms at least");
        assert!(
            bound_ms as u32 >= 2 * period_ms as u32,
            "a bound below two periods declares down who beats in time"
        );
        Heartbeat { period_ms, bound_ms }
    }

    /// What the kind of link `K` declares. A kind on which a kernel can tell has none, and code that asks for it does not compile:
    ///
    /// ```compile_fail,E0080
    /// # use beeline_contract_link::{Evidence, Heartbeat, LinkKind};
    /// struct Shared;
    /// impl LinkKind for Shared {
    ///     const EVIDENCE: Evidence = Evidence::Kernel;
    /// }
    /// let bound = Heartbeat::of::<Shared>().bound();
    /// ```
    /// ```
    /// # use beeline_contract_link::{Evidence, Heartbeat, LinkKind};
    /// struct Bridge;
    /// impl LinkKind for Bridge {
    ///     const EVIDENCE: Evidence = Evidence::Heartbeat(Heartbeat::from_millis(10, 100));
    /// }
    /// assert_eq!(Heartbeat::of::<Bridge>().bound().as_millis(), 100);
    /// ```
    pub fn of<K: LinkKind>() -> Self {
        const {
            match K::EVIDENCE {
                Evidence::Heartbeat(declared) => declared,
                Evidence::OneProcess | Evidence::Kernel => {
                    panic!("nobody is declared down for silence where a kernel can tell")
                }
            }
        }
    }

    /// Whoever runs beats once in it at least.
    pub const fn period(self) -> Duration {
        Duration::from_millis(self.period_ms as u64)
    }

    /// Nobody is declared down for a silence that is shorter.
    pub const fn bound(self) -> Duration {
        Duration::from_millis(self.bound_ms as u64)
    }

    /// Both in milliseconds, as they stand in a line: the period in bits 0 to 15, the bound above it.
    pub const fn to_bits(self) -> u32 {
        (self.bound_ms as u32) << 16 | self.period_ms as u32
    }
}

/// The lines by which two sides without a common kernel tell each other how they stand (`link_side` of `spec/formats.toml`), as one
/// side sees them. Nothing is read across the link, where a load may take a microsecond and, once the other side is gone, for ever:
/// a side pushes its own line and looks at what the other has pushed into memory of this side.
pub trait StatePort {
    /// Stores this side's line where the other loads it. Word 0 becomes visible after the other seven.
    fn push(&mut self, line: &Line);

    /// Loads what the other side has pushed: word 0 first, and the others no older than that. Whoever pushed it is not trusted.
    fn look(&mut self) -> Line;

    /// Loads what stands where this side pushes to; `None` where that would read across the link. Another line than the last one
    /// pushed is of somebody who has taken this side.
    fn pushed(&mut self) -> Option<Line> {
        None
    }
}
