//! What somebody asks of a member who takes no part: a question and its answer, in one line of the member's slot.
//!
//! Who asks takes the line by a ticket, stores the question, and says that it is there. The member looks with each beat, does what is asked
//! once, and answers with the ticket. Anybody may store anything there: a question that is none is refused, and an answer of another ticket is
//! none. As long as somebody asks, that one counts in the line: a line whose asker was killed counts no more, and is taken.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use beeline_fabric::{AdapterNumber, Call, MemberNumber, Name, NameKind, Nanos, Refusal};
use beeline_mmio::Words;

use crate::claim::swap_word;
use crate::shared::{Shared, State};
use crate::space::Space;

/// The words of the line. The first is who asks.
const ASKER: usize = 0;
const COUNT: usize = 1;
const QUESTION: usize = 2;
/// The ticket of the question that is there.
const POSTED: usize = 3;
const ANSWER: usize = 4;
/// The ticket of the question that was answered last.
const ANSWERED: usize = 5;
/// Which member is meant: another one may take the slot before the question is there.
const MEANT: usize = 6;

/// Between two looks of who asks.
const PAUSE: Duration = Duration::from_millis(5);
/// How long an asker that lives may not count.
const SILENCE: Duration = Duration::from_millis(500);
/// An answer for what was done.
const DONE: u64 = 0;

/// What a member can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// To take the link of the adapter up or down.
    SetLink { adapter: AdapterNumber, is_up: bool },
    /// To remove a segment or the member's part of a group, with `is_forced` from its users too.
    Remove { name: Name, is_forced: bool },
}

/// Why a member has not done what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarAskError {
    /// It has left, or another one has its slot.
    #[error("the member is gone")]
    Gone,
    /// It was killed or stands still, or its program is of a version that is not asked for anything. If it goes on it may do what it was asked for.
    #[error("the member has not answered in time")]
    NoAnswer,
    /// Another one asks it.
    #[error("somebody else asks the member for something")]
    Occupied,
    #[error("the member refuses: {0}")]
    Refused(Refusal),
    /// Its answer is none: it is of another version, or somebody else has stored it.
    #[error("the member's answer {0:#x} is none")]
    Unknown(u64),
    /// The kernel gives no random numbers.
    #[error("no random number: {0}")]
    Random(getrandom::Error),
}

impl Question {
    /// `which:8 | flag:8 | zero:16 | number:32`, from the highest bits on.
    fn word(self) -> u64 {
        let (which, flag, number): (u64, bool, u32) = match self {
            Question::SetLink { adapter, is_up } => (1, is_up, adapter.number()),
            Question::Remove { name, is_forced } if name.kind == NameKind::Group => {
                (3, is_forced, name.number)
            }
            Question::Remove { name, is_forced } => (2, is_forced, name.number),
        };
        which << 56 | u64::from(flag) << 48 | u64::from(number)
    }

    fn of(word: u64) -> Option<Self> {
        let (which, flag, number) = (word >> 56, word >> 32 & 0x00ff_ffff, word as u32);
        let flag = match flag {
            0 => false,
            0x1_0000 => true,
            _ => return None,
        };
        let remove = |kind| Question::Remove { name: Name { kind, number }, is_forced: flag };
        match which {
            1 => Some(Question::SetLink { adapter: AdapterNumber::new(number).ok()?, is_up: flag }),
            2 => Some(remove(NameKind::Segment)),
            3 => Some(remove(NameKind::Group)),
            _ => None,
        }
    }
}

impl Shared {
    /// Does what somebody asks of this member, once.
    pub(crate) fn answer(&self, state: &mut State, now: Nanos) {
        let words = self.space.asked(self.slot);
        let Some(ticket) =
            NonZeroU64::new(words.load_acquire(POSTED)).filter(|it| state.answered != Some(*it))
        else {
            return;
        };
        if words.load_acquire(MEANT) != self.number.0 {
            return;
        }
        // First: what is done here may look at everything once more.
        state.answered = Some(ticket);
        let question = Question::of(words.load_acquire(QUESTION));
        let done =
            question.ok_or(Refusal::NotSupported).and_then(|question| self.carry(state, question, now));
        tracing::info!(?question, ?done, "somebody who takes no part has asked for something");
        let code = done.err().map_or(DONE, |refusal| refusal as u32 as u64);
        store(&self.space, &words, ANSWER, code);
        store(&self.space, &words, ANSWERED, ticket.get());
    }

    fn carry(&self, state: &mut State, question: Question, now: Nanos) -> Result<(), Refusal> {
        match question {
            Question::SetLink { adapter, is_up } => {
                state.member.call(Call::SetLink(adapter, is_up), now).map(drop)
            }
            Question::Remove { name, is_forced } => {
                let local = state.member.segment_of(name).ok_or(Refusal::NoSuchSegment)?;
                state.member.call(Call::RemoveSegment { local, is_forced }, now)?;
                self.let_go_of(state, local);
                Ok(())
            }
        }
    }
}

/// Asks the member of a slot, and waits for its answer.
pub(crate) fn ask(
    space: &Space,
    (slot, number): (usize, MemberNumber),
    question: Question,
    patience: Duration,
) -> Result<(), BarAskError> {
    let until = Instant::now() + patience;
    let ticket = getrandom::u64().map_err(BarAskError::Random)? | 1;
    let words = space.asked(slot);
    take(space, slot, ticket, until)?;
    // Whoever asked before may have been killed when its question was there.
    store(space, &words, POSTED, 0);
    store(space, &words, QUESTION, question.word());
    store(space, &words, MEANT, number.0);
    store(space, &words, POSTED, ticket);
    let outcome = loop {
        if words.load_acquire(ANSWERED) == ticket {
            break answer_of(words.load_acquire(ANSWER));
        }
        if space.number(slot).load_acquire() != number.0 {
            break Err(BarAskError::Gone);
        }
        if Instant::now() >= until {
            break Err(BarAskError::NoAnswer);
        }
        std::thread::sleep(PAUSE);
        store(space, &words, COUNT, words.load_acquire(COUNT).wrapping_add(1));
    };
    if words.load_acquire(ASKER) == ticket {
        store(space, &words, POSTED, 0);
        store(space, &words, ASKER, 0);
    }
    outcome
}

/// Takes the line of a slot.
fn take(space: &Space, slot: usize, ticket: u64, until: Instant) -> Result<(), BarAskError> {
    let (words, asker) = (space.asked(slot), space.asker(slot));
    let look = || (words.load_acquire(ASKER), words.load_acquire(COUNT));
    let (mut seen, mut since) = (look(), Instant::now());
    loop {
        let now = look();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        let is_nobodys = seen.0 == 0 || since.elapsed() >= SILENCE;
        if is_nobodys && swap_word(space, &asker, (seen.0, ticket)) {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(BarAskError::Occupied);
        }
        std::thread::sleep(PAUSE);
    }
}

fn answer_of(code: u64) -> Result<(), BarAskError> {
    if code == DONE {
        return Ok(());
    }
    let refusal = REFUSALS.into_iter().find(|refusal| u64::from(*refusal as u32) == code);
    Err(refusal.map_or(BarAskError::Unknown(code), BarAskError::Refused))
}

/// What a member that lives may answer.
const REFUSALS: [Refusal; 6] = [
    Refusal::Busy,
    Refusal::NoSuchAdapterno,
    Refusal::NoSuchSegment,
    Refusal::IllegalParameter,
    Refusal::System,
    Refusal::NotSupported,
];

fn store(space: &Space, words: &Words, at: usize, value: u64) {
    space.ordered(|| words.store_release(at, value));
}

#[cfg(test)]
mod tests {
    use beeline_fabric::{NodeId, SegmentId};
    use beeline_mmio::OnLoss;

    use super::*;
    use crate::test_members::{member, memory};

    #[test]
    fn line_whose_asker_counts_no_more_is_taken_and_that_of_another_one_is_not() {
        let (_dir, memory) = memory(4 << 20);
        let space = Space::open(&memory, 2, OnLoss::Fatal).unwrap();
        let words = space.asked(1);
        words.store_release(ASKER, 7);
        let long = || Instant::now() + Duration::from_secs(20);
        assert_eq!(take(&space, 1, 9, Instant::now()), Err(BarAskError::Occupied));
        assert_eq!(take(&space, 1, 9, long()), Ok(()));
        assert_eq!(words.load_acquire(ASKER), 9);
        words.store_release(ASKER, 0);
        assert_eq!(take(&space, 1, 11, Instant::now()), Ok(()));
        // Of a member that has never answered, and is gone.
        words.store_release(ASKER, 0);
        let adapter = AdapterNumber::new(0).unwrap();
        let question = Question::SetLink { adapter, is_up: true };
        let number = MemberNumber::new(NodeId(4), 1 << 16);
        assert_eq!(ask(&space, (1, number), question, Duration::from_secs(3600)), Err(BarAskError::Gone));
        assert_eq!([ASKER, POSTED].map(|at| words.load_acquire(at)), [0, 0]);
    }

    #[test]
    fn question_that_stays_is_answered_once_by_whom_it_means() {
        let (_dir, memory) = memory(4 << 20);
        let member = member(&memory, Some(0));
        let (id, is_auto, is_private, is_empty, has_callback) = (SegmentId(7), false, false, false, false);
        let create = Call::CreateSegment { id, is_auto, bytes: 64, is_private, is_empty, has_callback };
        member.call(create).unwrap();
        let space = &member.shared.space;
        let words = space.asked(0);
        let name = Name::segment_of(NodeId(4), id);
        let await_beats = || {
            let beats = space.beat(0).load();
            while space.beat(0).load() < beats + 3 {
                std::thread::yield_now();
            }
        };
        words.store_release(QUESTION, Question::Remove { name, is_forced: false }.word());
        words.store_release(MEANT, member.number().0 ^ 1);
        words.store_release(POSTED, 3);
        await_beats();
        assert_eq!((member.call(create), words.load_acquire(ANSWERED)), (Err(Refusal::SegmentidUsed), 0));
        words.store_release(MEANT, member.number().0);
        words.store_release(POSTED, 5);
        while words.load_acquire(ANSWERED) != 5 {
            std::thread::yield_now();
        }
        member.call(create).unwrap();
        await_beats();
        assert_eq!(member.call(create), Err(Refusal::SegmentidUsed));
    }

    #[test]
    fn question_is_what_its_word_says_and_other_words_are_none() {
        let adapter = AdapterNumber::new(3).unwrap();
        let (segment, group) = (NodeId(4), NodeId::GROUPS);
        let name = |node| Name::segment_of(node, SegmentId(u32::MAX));
        for flag in [false, true] {
            for question in [
                Question::SetLink { adapter, is_up: flag },
                Question::Remove { name: name(segment), is_forced: flag },
                Question::Remove { name: name(group), is_forced: flag },
            ] {
                assert_eq!(Question::of(question.word()), Some(question));
            }
        }
        for word in [0, 1, u64::MAX, 4 << 56, 1 << 56 | 16, 2 << 56 | 2 << 48, 2 << 56 | 1 << 32] {
            assert_eq!(Question::of(word), None, "{word:#x}");
        }
        assert_eq!(answer_of(7), Err(BarAskError::Unknown(7)));
        assert_eq!(answer_of(u64::from(Refusal::Busy as u32)), Err(BarAskError::Refused(Refusal::Busy)));
    }
}
