//! Reads of entries that are not there yet: held until a frame comes or their time is up.
//!
//! A device-wide table of bounded size. A processor gives up on a read that is never answered, so every read has a
//! deadline, and every way out of the table is an answer: the entry's word when its frame has come, zero when its time
//! is up or its queue stops. Reads of one entry are answered in the order in which they were asked, so a link may join
//! those of one wide load. A word is held only where the table has room for the rest of its line too: of a load that
//! were held in part, the other words would say zero where the frame that comes has bytes. There is no ordering against
//! other completions, which PCIe does not promise either.
//!
//! From: [`crate::rx`]. To: the answers that wait for the link. Flajslik & Rosenblum, ATC'13 (polling).

use beeline_contract_device::{QueueId, ReadTag, SimTime};
use beeline_spec::WORDS_PER_LINE;
use beeline_spec::formats::HELD_READS_MAX;

use crate::deadlines::NEVER;
use crate::engine::Shared;

/// A word that was asked for.
#[derive(Clone, Copy, Debug)]
struct Held {
    queue: QueueId,
    /// Absolute index of the entry.
    entry: u64,
    word: u32,
    tag: ReadTag,
    until: SimTime,
}

/// The table, oldest first.
#[derive(Debug)]
pub(crate) struct HeldReads {
    reads: Vec<Held>,
}

impl HeldReads {
    /// Starts with no read held.
    pub(crate) fn new() -> Self {
        HeldReads { reads: Vec::with_capacity(HELD_READS_MAX) }
    }

    /// Holds a read of a word of an entry until then. `false`: the table has no room for it and the words behind it in
    /// its line.
    #[must_use]
    pub(crate) fn hold(
        &mut self,
        queue: QueueId,
        (entry, word): (u64, u32),
        tag: ReadTag,
        until: SimTime,
    ) -> bool {
        let rest_of_line = WORDS_PER_LINE - word as usize % WORDS_PER_LINE;
        let has_room = self.reads.len() + rest_of_line <= HELD_READS_MAX;
        if has_room {
            self.reads.push(Held { queue, entry, word, tag, until });
        }
        has_room
    }

    /// The entry is there: answers its reads with `value` of the word.
    pub(crate) fn answer(
        &mut self,
        queue: QueueId,
        entry: u64,
        value: impl Fn(u32) -> u64,
        shared: &mut Shared,
    ) {
        self.reads.retain(|held| {
            let is_it = (held.queue, held.entry) == (queue, entry);
            if is_it {
                shared.answer(held.tag, value(held.word));
            }
            !is_it
        });
    }

    /// Answers those whose time is up.
    pub(crate) fn expire(&mut self, shared: &mut Shared) {
        self.reads.retain(|held| {
            let is_due = held.until <= shared.now;
            if is_due {
                shared.counters.held_read_timeouts += 1;
                shared.answer(held.tag, 0);
            }
            !is_due
        });
    }

    /// A queue stops: answers all of its reads.
    pub(crate) fn stop(&mut self, queue: QueueId, shared: &mut Shared) {
        self.reads.retain(|held| {
            if held.queue == queue {
                shared.answer(held.tag, 0);
            }
            held.queue != queue
        });
    }

    /// When the next read's time is up.
    #[inline]
    pub(crate) fn earliest(&self) -> SimTime {
        self.reads.iter().map(|held| held.until).min().unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(shared: &mut Shared) -> Vec<(u16, u64)> {
        std::iter::from_fn(|| shared.answers.take(&shared.dma)).map(|(tag, value)| (tag.0, value)).collect()
    }

    #[test]
    fn every_read_is_answered_once_and_in_order() {
        let mut shared = Shared::new(2);
        let mut held = HeldReads::new();
        for (tag, queue, entry) in [(0, 0, 5), (1, 1, 5), (2, 0, 5), (3, 0, 6), (4, 1, 7)] {
            let until = SimTime(100 * u64::from(tag) + 100);
            assert!(held.hold(QueueId(queue), (entry, u32::from(tag)), ReadTag(tag), until));
        }
        held.answer(QueueId(0), 5, |word| 70 + u64::from(word), &mut shared);
        assert_eq!(answers(&mut shared), [(0, 70), (2, 72)]);
        assert_eq!(held.earliest(), SimTime(200));
        shared.now = SimTime(400);
        held.expire(&mut shared);
        assert_eq!(answers(&mut shared), [(1, 0), (3, 0)]);
        held.stop(QueueId(1), &mut shared);
        assert_eq!((answers(&mut shared), held.earliest()), (vec![(4, 0)], NEVER));
        assert_eq!(shared.counters.held_read_timeouts, 2);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut held = HeldReads::new();
        for tag in 0..HELD_READS_MAX as u16 {
            assert!(held.hold(QueueId(0), (0, tag.into()), ReadTag(tag), SimTime(1)));
        }
        assert!(!held.hold(QueueId(0), (0, 7), ReadTag(0), SimTime(1)));
    }

    #[test]
    fn a_word_is_held_where_the_rest_of_its_line_has_room() {
        let mut held = HeldReads::new();
        for tag in 0..57 {
            assert!(held.hold(QueueId(0), (0, 7), ReadTag(tag), SimTime(1)));
        }
        assert!(!held.hold(QueueId(1), (0, 8), ReadTag(57), SimTime(1)), "room for seven words");
        assert!(held.hold(QueueId(1), (0, 9), ReadTag(58), SimTime(1)));
    }
}
