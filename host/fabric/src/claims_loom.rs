//! Members that connect against one that removes or takes by force, in all orders. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p beeline-fabric --release --target-dir target/loom --lib loom`.

use beeline_contract_adapter::{PublishPort, Unconfirmed, ViewPort};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use crate::board::layout::{Claim, EntryState, LIFE, Life, Phase, entry_state};
use crate::claims::{Unclaimed, claim, close, force, freed};
use crate::ids::Slot;
use crate::link::{LinkWord, Paths};
use crate::sequence::{Connected, ConnectionView, SequenceStatus};

const SLOT: Slot = Slot(0);
const OPEN: EntryState = EntryState { incarnation: 3, phase: Phase::Open, available: 1, notices: 0 };

/// One word of a board or of claims.
#[derive(Clone)]
struct Word(u32, Arc<AtomicU64>);

/// The board of a member whose links stay up, with one entry.
struct Board(Word);

impl ViewPort for Board {
    fn load(&self, word: u32) -> u64 {
        match word {
            _ if word == self.0.0 => self.0.load(word),
            LIFE => Life { is_open: true, is_listening: false }.word(),
            _ => LinkWord { epoch: 1, is_up: true }.word(),
        }
    }
}

impl Word {
    fn board() -> Self {
        Word(entry_state(SLOT), Arc::new(AtomicU64::new(OPEN.word())))
    }

    fn claims() -> Self {
        Word(0, Arc::new(AtomicU64::new(0)))
    }

    fn state(&self) -> EntryState {
        EntryState::of(self.load(self.0))
    }
}

impl PublishPort for Word {
    fn publish(&mut self, word: u32, value: u64) {
        assert_eq!(word, self.0);
        self.1.store(value, Ordering::Release);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        fence(Ordering::SeqCst);
        Ok(())
    }
}

impl ViewPort for Word {
    fn load(&self, word: u32) -> u64 {
        assert_eq!(word, self.0);
        self.1.load(Ordering::Acquire)
    }
}

/// Connects once; the entry was seen open before.
fn connects(board: &Word, mut claims: Word) -> Result<(), Unclaimed> {
    let new = Claim { incarnation: OPEN.incarnation, count: 1, ..Claim::default() };
    claim(board, &mut claims, SLOT, OPEN, (Claim::default(), new))
}

#[test]
fn segment_is_not_removed_and_connected_to() {
    loom::model(|| {
        let (board, claims) = (Word::board(), Word::claims());
        let (view, own) = (board.clone(), claims.clone());
        let connecting = thread::spawn(move || connects(&view, own));
        let is_removed = close(&mut board.clone(), core::iter::once(&claims), SLOT, OPEN);
        let connected = connecting.join().unwrap();
        assert!(!(is_removed && connected.is_ok()), "removed under a connection");
        // What is left says the same.
        assert_eq!(board.state().phase == Phase::Free, is_removed);
        assert_eq!(Claim::of(claims.load(0)).is_of(OPEN.incarnation), connected.is_ok());
    });
}

#[test]
fn one_of_two_members_that_connect_keeps_a_segment() {
    loom::model(|| {
        let board = Word::board();
        let claims = [Word::claims(), Word::claims()];
        let connecting = claims.clone().map(|own| {
            let view = board.clone();
            thread::spawn(move || connects(&view, own))
        });
        let is_removed = close(&mut board.clone(), claims.iter(), SLOT, OPEN);
        let connected = connecting.map(|member| member.join().unwrap().is_ok());
        assert!(!(is_removed && connected.contains(&true)), "removed under a connection");
    });
}

#[test]
fn member_that_disconnects_leaves_a_segment_that_can_be_removed() {
    loom::model(|| {
        let (board, claims) = (Word::board(), Word::claims());
        let (view, mut own) = (board.clone(), claims.clone());
        let member = thread::spawn(move || {
            connects(&view, own.clone())
                .map(|()| own.publish(0, Claim { incarnation: 3, ended: 1, ..Claim::default() }.word()))
        });
        let first = close(&mut board.clone(), core::iter::once(&claims), SLOT, OPEN);
        let _ = member.join().unwrap();
        let second = first || close(&mut board.clone(), core::iter::once(&claims), SLOT, OPEN);
        assert!(second, "nobody is connected any more");
    });
}

/// Whoever is connected when a segment is taken by force is rung, and keeps the entry from being used again.
fn user_of_a_segment_that_is_taken_is_known(after: EntryState) {
    loom::model(move || {
        let (board, claims) = (Word::board(), Word::claims());
        let (view, own) = (board.clone(), claims.clone());
        let connecting = thread::spawn(move || connects(&view, own));
        let members = core::iter::once(((), &claims));
        let rung = force(&mut board.clone(), members, SLOT, (OPEN.incarnation, after));
        let keeps_entry = Claim::of(claims.load(0)).keeps_entry();
        if connecting.join().unwrap().is_ok() {
            assert_eq!(rung, [()], "nobody tells who is connected");
            assert!(keeps_entry, "the entry is used again under a connection");
        }
        assert_eq!(board.state(), after);
    });
}

#[test]
fn user_of_a_segment_that_is_removed_by_force_is_known() {
    user_of_a_segment_that_is_taken_is_known(freed(OPEN));
}

#[test]
fn user_of_a_segment_that_is_made_unavailable_by_force_is_known() {
    let incarnation = OPEN.incarnation + 1;
    user_of_a_segment_that_is_taken_is_known(EntryState { incarnation, available: 0, ..OPEN });
}

/// What a program has stored before a check that finds nothing, whoever takes the segment from it afterwards has.
#[test]
fn check_of_a_sequence_finds_nothing_only_if_the_stores_come_before_the_end() {
    loom::model(|| {
        let (mut board, content) = (Word::board(), Arc::new(AtomicU64::new(0)));
        let (view, segment) = (board.clone(), Arc::clone(&content));
        let program = thread::spawn(move || {
            let connected = Connected { slot: SLOT, incarnation: 3, paths: Paths::of(1) };
            let view = ConnectionView { own: Board(view.clone()), theirs: Board(view), connected };
            let (_, Some(start)) = view.start() else { return SequenceStatus::NotRetriable };
            segment.store(1, Ordering::Relaxed);
            // The barrier that the program passes.
            fence(Ordering::SeqCst);
            view.check(start)
        });
        let members = core::iter::empty::<((), &Word)>();
        force(&mut board, members, SLOT, (OPEN.incarnation, freed(OPEN)));
        let found = content.load(Ordering::Relaxed);
        let status = program.join().unwrap();
        assert!(
            status != SequenceStatus::Ok || found == 1,
            "stored behind the end, and the check says nothing"
        );
    });
}
