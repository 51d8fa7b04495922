//! Words of members in one thread, which miss a barrier.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use beeline_contract_adapter::{CountPort, PublishPort, Unconfirmed, ViewPort};
use beeline_fabric::BOARD_WORDS;

/// Words that one side stores and others load. The second is whether the member that has this value has published what none of its
/// loads may pass, and no barrier since.
#[derive(Clone, Debug, Default)]
pub struct Words(pub Rc<RefCell<BTreeMap<u32, u64>>>, Rc<Cell<bool>>, Kind);

/// Which stores must not be passed by loads, by whose they are.
#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    None,
    /// That an entry is not any more the segment that it was, and that a member listens.
    Board,
    /// All.
    Claims,
}

thread_local! {
    static LOADS: Cell<usize> = const { Cell::new(0) };
    static CHANGE: RefCell<Option<Change>> = const { RefCell::new(None) };
}

/// A store of another thread, before the load of this number.
struct Change(usize, Words, u32, u64);

/// Words that members of this thread have loaded so far.
pub fn loads() -> usize {
    LOADS.get()
}

/// Has a word of this value when members of this thread have loaded so many more words.
pub fn change_after(loads: usize, words: &Words, word: u32, value: u64) {
    CHANGE.replace(Some(Change(LOADS.get() + loads, words.clone(), word, value)));
}

/// Whether that has happened.
pub fn has_changed() -> bool {
    CHANGE.with_borrow(Option::is_none)
}

impl Words {
    /// The board of a member.
    pub fn board() -> Self {
        Words(Rc::default(), Rc::default(), Kind::Board)
    }

    /// Claims of the member whose board that is.
    pub fn claims(board: &Words) -> Self {
        Words(Rc::default(), board.1.clone(), Kind::Claims)
    }

    /// These words as the member sees them whose board that is.
    pub fn seen_by(&self, board: &Words) -> Self {
        Words(self.0.clone(), board.1.clone(), self.2)
    }

    fn must_come_before_loads(&self, word: u32, value: u64) -> bool {
        const LIFE: u32 = 2;
        const FIRST_ENTRY: u32 = 32;
        const OPEN: u16 = 1;
        let before = self.load_any(word);
        let segment = |state: u64| ((state >> 16) as u16 == OPEN).then_some(state >> 32);
        match self.2 {
            Kind::None => false,
            Kind::Claims => true,
            Kind::Board if word == LIFE => value & !before & 2 != 0,
            Kind::Board if word >= FIRST_ENTRY && word.is_multiple_of(8) => {
                segment(before).is_some() && segment(before) != segment(value)
            }
            Kind::Board => false,
        }
    }

    fn load_any(&self, word: u32) -> u64 {
        self.0.borrow().get(&word).copied().unwrap_or(0)
    }
}

impl PublishPort for Words {
    fn publish(&mut self, word: u32, value: u64) {
        assert!(word < BOARD_WORDS);
        if self.must_come_before_loads(word, value) {
            self.1.set(true);
        }
        self.0.borrow_mut().insert(word, value);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        self.1.set(false);
        Ok(())
    }
}

impl CountPort for Words {
    fn raise(&self, word: u32) {
        *self.0.borrow_mut().entry(word).or_default() += 1;
    }
}

impl ViewPort for Words {
    fn load(&self, word: u32) -> u64 {
        assert!(!self.1.get(), "a barrier is missing before word {word} is loaded");
        if let Some(Change(_, words, word, value)) =
            CHANGE.with_borrow_mut(|change| change.take_if(|change| change.0 <= LOADS.get()))
        {
            words.0.borrow_mut().insert(word, value);
        }
        LOADS.set(LOADS.get() + 1);
        self.load_any(word)
    }
}
