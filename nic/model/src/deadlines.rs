//! Deadlines of numbered things, kept so that the usual answer ("nothing is due") costs one comparison.
//!
//! Arming and disarming are O(1); a look at what is due walks the armed ones only when the earliest may be due. The
//! earliest is a lower bound: disarming does not move it, so it may be asked for once too often.

use beeline_contract_device::SimTime;

/// No deadline: later than all of them, so that what is asked for most often, whether something is due, is a comparison.
pub(crate) const NEVER: SimTime = SimTime(u64::MAX);

/// One optional deadline for each index.
#[derive(Debug)]
pub(crate) struct Deadlines {
    at: Box<[SimTime]>,
    armed: Box<[u64]>,
    earliest: SimTime,
}

impl Deadlines {
    /// Returns deadlines of which none is armed.
    pub(crate) fn new(count: usize) -> Self {
        Deadlines {
            at: vec![NEVER; count].into_boxed_slice(),
            armed: vec![0; count.div_ceil(64)].into_boxed_slice(),
            earliest: NEVER,
        }
    }

    /// Sets or moves the deadline of `index`.
    #[inline]
    pub(crate) fn arm(&mut self, index: usize, at: SimTime) {
        self.at[index] = at;
        self.armed[index / 64] |= 1 << (index % 64);
        self.earliest = self.earliest.min(at);
    }

    /// Takes the deadline of `index` away.
    #[inline]
    pub(crate) fn disarm(&mut self, index: usize) {
        self.armed[index / 64] &= !(1 << (index % 64));
    }

    /// A time before which nothing is due; [`NEVER`] if nothing is armed.
    #[inline]
    pub(crate) fn earliest(&self) -> SimTime {
        self.earliest
    }

    /// Whether something may be due.
    #[inline]
    pub(crate) fn may_be_due(&self, now: SimTime) -> bool {
        now >= self.earliest && self.earliest != NEVER
    }

    /// Disarms one index that is due and returns it; `None` when there is none. Call it until then: that makes
    /// [`Deadlines::earliest`] exact.
    pub(crate) fn take_due(&mut self, now: SimTime) -> Option<usize> {
        if !self.may_be_due(now) {
            return None;
        }
        let mut earliest = NEVER;
        for (group, bits) in self.armed.iter_mut().enumerate() {
            let mut left = *bits;
            while left != 0 {
                let index = group * 64 + left.trailing_zeros() as usize;
                if self.at[index] <= now {
                    *bits &= !(1 << (index % 64));
                    return Some(index);
                }
                earliest = earliest.min(self.at[index]);
                left &= left - 1;
            }
        }
        self.earliest = earliest;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_out_once_and_the_rest_stays() {
        let mut deadlines = Deadlines::new(200);
        assert_eq!((deadlines.earliest(), deadlines.take_due(SimTime(u64::MAX - 1))), (NEVER, None));
        for (index, at) in [(0, 30), (70, 10), (199, 20), (5, 20)] {
            deadlines.arm(index, SimTime(at));
        }
        deadlines.disarm(5);
        assert_eq!(deadlines.take_due(SimTime(9)), None);
        let mut due = Vec::new();
        while let Some(index) = deadlines.take_due(SimTime(20)) {
            due.push(index);
        }
        assert_eq!(due, [70, 199]);
        assert_eq!(deadlines.earliest(), SimTime(30));
        deadlines.arm(0, SimTime(40));
        assert_eq!(deadlines.take_due(SimTime(30)), None);
        assert_eq!(deadlines.earliest(), SimTime(40));
    }
}
