//! Strict priority between classes, weighted fairness inside a class.
//!
//! A class is served only while every class before it is empty. Inside a class, queues take turns by deficit round
//! robin on bytes (Shreedhar and Varghese, SIGCOMM'95): in its turn a queue sends frames while their bytes fit its
//! deficit, which grows by its quantum (weight times [`QUANTUM_BYTES`]) once a round. Over any time in which two queues
//! of a class both have frames, their bytes divided by their weights differ by at most one round's quantum and one
//! frame each.
//!
//! Choosing is O(1): ready queues of a class are a linked ring, ready classes a bit mask; a queue without a frame is
//! found out when its turn comes. A frame longer than the quantum costs its queue several turns. Not here: frames.

use beeline_contract_device::QueueId;

/// Classes of strict priority, 0 first.
pub(crate) const CLASSES: usize = 16;
/// Bytes a queue of weight 1 may send in a round.
pub(crate) const QUANTUM_BYTES: u32 = 2048;

const NONE: u16 = u16::MAX;

#[derive(Clone, Debug)]
struct Turn {
    class: u8,
    /// The class in whose ring the queue stands; NONE as u8 when in none.
    ring: u8,
    quantum: u32,
    deficit: u32,
    next: u16,
}

const NO_RING: u8 = u8::MAX;

#[derive(Clone, Copy, Debug)]
struct Ring {
    head: u16,
    tail: u16,
}

/// The arbiter's state: who is ready, in which order, and what each may still send.
#[derive(Debug)]
pub(crate) struct Scheduler {
    turns: Box<[Turn]>,
    rings: [Ring; CLASSES],
    /// Bit i: ring i is not empty.
    ready_classes: u32,
    /// The last look found no frame, and none has become ready since.
    is_quiet: bool,
}

impl Scheduler {
    /// Every queue in class 0 with weight 1, none ready.
    pub(crate) fn new(queues: u32) -> Self {
        let turn = Turn { class: 0, ring: NO_RING, quantum: QUANTUM_BYTES, deficit: 0, next: NONE };
        Scheduler {
            turns: vec![turn; queues as usize].into_boxed_slice(),
            rings: [Ring { head: NONE, tail: NONE }; CLASSES],
            ready_classes: 0,
            is_quiet: true,
        }
    }

    /// Sets a queue's class (taken modulo 16) and weight (0 counts as 1). A queue that is ready moves to its new class
    /// when its turn in the old one comes.
    pub(crate) fn set_priority(&mut self, queue: QueueId, class: u8, weight: u8) {
        let turn = &mut self.turns[usize::from(queue.0)];
        turn.class = class % CLASSES as u8;
        turn.quantum = u32::from(weight.max(1)) * QUANTUM_BYTES;
    }

    /// The queue has at least one frame.
    #[inline]
    pub(crate) fn frame_ready(&mut self, queue: QueueId) {
        self.is_quiet = false;
        let turn = &mut self.turns[usize::from(queue.0)];
        if turn.ring == NO_RING {
            turn.deficit = turn.quantum;
            self.join(queue.0);
        }
    }

    /// The only queue that may have a frame, if there is just one; no turn is charged, since nobody else waits.
    #[inline]
    pub(crate) fn only_one(&self) -> Option<QueueId> {
        if self.is_quiet || !self.ready_classes.is_power_of_two() {
            return None;
        }
        let ring = self.rings[self.ready_classes.trailing_zeros() as usize % CLASSES];
        (ring.head == ring.tail).then_some(QueueId(ring.head))
    }

    /// A look at every queue that may have a frame found none.
    #[inline]
    pub(crate) fn found_nothing(&mut self) {
        self.is_quiet = true;
    }

    /// The queue whose frame goes next, and its bytes; `None` when no queue has one. `bytes_of` gives the bytes of the
    /// frame at a queue's head. The deficit is charged: the caller lets the frame go.
    #[inline]
    pub(crate) fn next(
        &mut self,
        mut bytes_of: impl FnMut(QueueId) -> Option<u32>,
    ) -> Option<(QueueId, u32)> {
        if self.is_quiet {
            return None;
        }
        while self.ready_classes != 0 {
            let class = self.ready_classes.trailing_zeros() as usize;
            let queue = self.rings[class].head;
            let turn = &mut self.turns[usize::from(queue)];
            let Some(bytes) = bytes_of(QueueId(queue)) else {
                // The only queue of all stays in its ring: it costs nothing there and is spared coming back.
                if turn.next == NONE && self.ready_classes.is_power_of_two() {
                    break;
                }
                self.leave(class);
                continue;
            };
            if usize::from(turn.class) != class {
                self.leave(class);
                self.frame_ready(QueueId(queue));
                continue;
            }
            if turn.next == NONE {
                // Alone in its class: whatever it sends, nobody of the class waits.
                return Some((QueueId(queue), bytes));
            }
            if let Some(left) = turn.deficit.checked_sub(bytes) {
                turn.deficit = left;
                return Some((QueueId(queue), bytes));
            }
            // The next turn's quantum is added now, when the queue goes to the end of the ring.
            turn.deficit += turn.quantum;
            self.leave(class);
            self.join(queue);
        }
        self.is_quiet = true;
        None
    }

    /// Puts a queue that is in no ring at the end of its class's.
    fn join(&mut self, queue: u16) {
        let class = self.turns[usize::from(queue)].class;
        let ring = &mut self.rings[usize::from(class)];
        let last = core::mem::replace(&mut ring.tail, queue);
        match last {
            NONE => ring.head = queue,
            last => self.turns[usize::from(last)].next = queue,
        }
        let turn = &mut self.turns[usize::from(queue)];
        (turn.ring, turn.next) = (class, NONE);
        self.ready_classes |= 1 << class;
    }

    /// Takes the first queue of a ring out.
    fn leave(&mut self, class: usize) {
        let ring = &mut self.rings[class];
        let turn = &mut self.turns[usize::from(ring.head)];
        ring.head = turn.next;
        (turn.ring, turn.next) = (NO_RING, NONE);
        if ring.head == NONE {
            ring.tail = NONE;
            self.ready_classes &= !(1 << class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues that always have frames of these sizes (0: none); counts what each sent.
    fn send(scheduler: &mut Scheduler, sizes: &[u32], frames: usize) -> Vec<u64> {
        for (queue, _) in sizes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            scheduler.frame_ready(QueueId(queue as u16));
        }
        let mut sent = vec![0; sizes.len()];
        for _ in 0..frames {
            let (queue, bytes) = scheduler
                .next(|queue| Some(sizes[usize::from(queue.0)]).filter(|bytes| *bytes > 0))
                .expect("frames are ready");
            sent[usize::from(queue.0)] += u64::from(bytes);
        }
        sent
    }

    #[test]
    fn a_class_waits_for_those_before_it() {
        let mut scheduler = Scheduler::new(3);
        for (queue, class) in [(0, 9), (1, 2), (2, 3)] {
            scheduler.set_priority(QueueId(queue), class, 255);
        }
        assert_eq!(send(&mut scheduler, &[64, 64, 64], 100), [0, 6400, 0]);
        assert_eq!(send(&mut scheduler, &[64, 0, 64], 100), [0, 0, 6400]);
        assert_eq!(send(&mut scheduler, &[64, 0, 0], 1), [64, 0, 0]);
        assert_eq!(scheduler.next(|_| None), None);
    }

    #[test]
    fn bytes_are_shared_by_weight_whatever_the_frame_size() {
        let mut scheduler = Scheduler::new(4);
        let weights = [1, 2, 4, 1];
        for (queue, weight) in weights.iter().enumerate() {
            scheduler.set_priority(QueueId(queue as u16), 5, *weight);
        }
        let sizes = [64, 1514, 9000, 777];
        let sent = send(&mut scheduler, &sizes, 20_000);
        let shares: Vec<f64> =
            sent.iter().zip(weights).map(|(sent, weight)| *sent as f64 / f64::from(weight)).collect();
        let bound = f64::from(QUANTUM_BYTES) + 2.0 * 9000.0;
        for a in &shares {
            for b in &shares {
                assert!((a - b).abs() <= bound, "{shares:?}");
            }
        }
        // Several rounds went by, so that the bound means something.
        assert!(shares[0] > 20.0 * bound, "{shares:?}");
    }

    #[test]
    fn a_queue_that_comes_late_gets_its_share_at_once() {
        let mut scheduler = Scheduler::new(2);
        assert_eq!(send(&mut scheduler, &[1000, 0], 1000)[1], 0);
        let sent = send(&mut scheduler, &[1000, 1000], 20);
        assert!(sent[1] >= 8000, "{sent:?}");
    }

    #[test]
    fn a_queue_moves_to_its_new_class() {
        let mut scheduler = Scheduler::new(2);
        send(&mut scheduler, &[100, 100], 4);
        scheduler.set_priority(QueueId(0), 1, 1);
        let sent = send(&mut scheduler, &[100, 100], 50);
        assert!(sent[0] <= u64::from(QUANTUM_BYTES) && sent[1] >= 2000, "{sent:?}");
        assert_eq!(send(&mut scheduler, &[100, 0], 5), [500, 0]);
    }
}
