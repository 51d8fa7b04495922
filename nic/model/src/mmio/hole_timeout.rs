//! Holes and how long they may stand.
//!
//! A hole is a missing byte with data beyond it. Each missing byte at a frontier is a hole of its own, counted once,
//! and its time starts when it is first seen: a queue under steady disorder has many holes and no old one. A message
//! whose front has arrived and whose rest has not is not a hole; its sender may be slow. Comes from:
//! [`super::reorder_unit`]. Goes to: quarantine ([`super`]). docs/design.md, decision 4.

use beeline_contract_device::SimTime;

use crate::deadlines::Deadlines;

use super::reorder_unit::{ContextId, ReorderUnit};

/// No hole.
const NONE: u64 = u64::MAX;

/// The holes of all contexts.
#[derive(Debug)]
pub(crate) struct HoleTimeout {
    /// Position of the missing byte of each context.
    missing: Box<[u64]>,
    deadlines: Deadlines,
}

/// The missing byte of a context whose frontier is the line `frontier`, if data lies beyond it: its position in bytes.
#[inline]
fn hole(unit: &ReorderUnit, context: ContextId, frontier: u64) -> Option<u64> {
    let valid = unit.valid(context, frontier);
    let beyond_line = unit.lines_held(context) > u32::from(valid != 0);
    let beyond_byte = valid & valid.wrapping_add(1) != 0;
    (beyond_line || beyond_byte).then(|| frontier * 64 + u64::from(valid.trailing_ones()))
}

impl HoleTimeout {
    pub(crate) fn new(contexts: u32) -> Self {
        HoleTimeout {
            missing: vec![NONE; contexts as usize].into_boxed_slice(),
            deadlines: Deadlines::new(contexts as usize),
        }
    }

    /// Looks at a context after a write; `true` when there is a hole that was not there before. `timeout_ns` 0: it may
    /// stand for ever.
    #[inline]
    pub(crate) fn watch(
        &mut self,
        unit: &ReorderUnit,
        context: ContextId,
        frontier: u64,
        timeout_ns: u64,
        now: SimTime,
    ) -> bool {
        let found = hole(unit, context, frontier).unwrap_or(NONE);
        let missing = &mut self.missing[context.index()];
        if *missing == found {
            return false;
        }
        *missing = found;
        if found == NONE {
            self.deadlines.disarm(context.index());
            return false;
        }
        if timeout_ns != 0 {
            let at = now.0.saturating_add(SimTime::from_ns(timeout_ns).0);
            self.deadlines.arm(context.index(), SimTime(at));
        }
        true
    }

    /// A context was given back.
    #[inline]
    pub(crate) fn forget(&mut self, context: ContextId) {
        if self.missing[context.index()] != NONE {
            self.missing[context.index()] = NONE;
            self.deadlines.disarm(context.index());
        }
    }

    /// The index of a context whose hole has stood too long; each is given once.
    pub(crate) fn take_expired(&mut self, now: SimTime) -> Option<usize> {
        self.deadlines.take_due(now)
    }

    /// A time before which no hole is too old.
    #[inline]
    pub(crate) fn wake_at(&self) -> SimTime {
        self.deadlines.earliest()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bar_ingress::Piece;
    use super::super::buffer_pool::Account;
    use super::*;
    use beeline_contract_device::QueueId;

    #[test]
    fn a_hole_is_a_missing_byte_with_data_beyond() {
        let mut unit = ReorderUnit::new(1, 4);
        let context = unit.allocate(QueueId(0), Account::Shared).unwrap();
        let mut put = |position, valid, expected| {
            let _ = unit.place(context, position, &Piece { line: 0, valid, bytes: [0; 64] });
            assert_eq!(hole(&unit, context, 8), expected, "after {valid:#x} at {position}");
        };
        put(8, 0xff, None);
        put(8, 0xff << 16, Some(8 * 64 + 8));
        put(8, 0xff << 8, None);
        put(10, 1, Some(8 * 64 + 24));
    }

    #[test]
    fn time_runs_for_each_missing_byte_anew() {
        let (mut unit, mut holes) = (ReorderUnit::new(1, 4), HoleTimeout::new(1));
        let context = unit.allocate(QueueId(0), Account::Shared).unwrap();
        let _ = unit.place(context, 0, &Piece { line: 0, valid: 1 << 60, bytes: [0; 64] });
        assert!(holes.watch(&unit, context, 0, 10, SimTime::from_ns(0)));
        assert!(!holes.watch(&unit, context, 0, 10, SimTime::from_ns(5)));
        let _ = unit.place(context, 0, &Piece { line: 0, valid: 1, bytes: [0; 64] });
        assert!(holes.watch(&unit, context, 0, 10, SimTime::from_ns(6)));
        assert_eq!(holes.take_expired(SimTime::from_ns(15)), None);
        assert_eq!(holes.take_expired(SimTime::from_ns(16)), Some(0));
        assert_eq!(holes.take_expired(SimTime::from_ns(99)), None);
    }
}
