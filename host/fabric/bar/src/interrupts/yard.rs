//! Windows for the messages that one member sends another, a few for each pair.
//!
//! A word for each window says which interrupt it is for, by its entry and incarnation, and how often the window was given to one. Who sends
//! makes the window blank before it stores that word. Who receives takes a window for as long as its word is the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_fabric::{MemberNumber, Place, Refusal, Trigger};
pub(crate) use beeline_fabric_transfer::{Inlet, Sender};
use beeline_spec::escape::blank_from_random;
use beeline_window::{Receiver, WindowConfig, Writer};

use crate::space::Space;
use crate::words::OneMemory;

/// A sender that all threads and connections of this process have for one interrupt.
pub(crate) type SharedSender = Arc<Mutex<Sender>>;

/// Windows to one other member.
#[derive(Debug)]
pub(crate) struct Yard {
    space: Arc<Space>,
    pair: (usize, usize),
    windows: Mutex<Vec<Window>>,
}

#[derive(Debug, Default)]
struct Window {
    /// How often it was given to an interrupt.
    times: u64,
    given: Option<Given>,
}

#[derive(Debug)]
struct Given {
    word: u64,
    sender: SharedSender,
    interrupt: Trigger<OneMemory>,
}

const VALID: u64 = 1 << 63;
const TIMES_LSB: u32 = 48;

/// What a window's word says while it is an interrupt's, but for how often it was given.
fn word_of(place: Place) -> u64 {
    VALID | u64::from(place.slot.0) << 32 | u64::from(place.incarnation)
}

fn without_times(word: u64) -> u64 {
    word & (VALID | ((1 << TIMES_LSB) - 1))
}

/// Whether a word says that its window is this interrupt's.
pub(crate) fn is_of(word: u64, place: Place) -> bool {
    without_times(word) == word_of(place)
}

impl Yard {
    pub(crate) fn new(space: &Arc<Space>, pair: (usize, usize)) -> Self {
        let windows = (0..space.layout.windows()).map(|_| Window::default()).collect();
        Yard { space: Arc::clone(space), pair, windows: Mutex::new(windows) }
    }

    /// The sender for an interrupt of a member: one that there is, or one through a window that nobody uses any more and in which nothing is
    /// left, or whose interrupt was removed: what is left there is lost. `None` if there is no such window.
    pub(crate) fn sender(&self, owner: MemberNumber, interrupt: &Trigger<OneMemory>) -> Option<SharedSender> {
        let place = interrupt.place();
        let mut windows = self.lock();
        let has_it = |given: &&Given| is_of(given.word, place);
        if let Some(found) = windows.iter().filter_map(|window| window.given.as_ref()).find(has_it) {
            return Some(Arc::clone(&found.sender));
        }
        let is_free = |window: &Window| window.given.as_ref().is_none_or(Given::is_over);
        let at = windows.iter().position(is_free)?;
        let window = &mut windows[at];
        window.times = window.times.wrapping_add(1);
        let word = word_of(place) | (window.times << TIMES_LSB) & !VALID;
        let config = config(owner, word);
        let (lines, credits) = self.space.blank_window(self.pair, at, config.blank);
        let sender = Arc::new(Mutex::new(Writer::new(lines, credits, config)));
        self.say(at, word);
        window.given = Some(Given { word, sender: Arc::clone(&sender), interrupt: interrupt.clone() });
        Some(sender)
    }

    /// Takes every window back: the other member is gone, and begins anew if it comes again.
    pub(crate) fn clear(&self) {
        for (at, window) in self.lock().iter_mut().enumerate() {
            if window.given.take().is_some() {
                self.say(at, 0);
            }
        }
    }

    fn say(&self, at: usize, word: u64) {
        self.space.ordered(|| self.space.window_word(self.pair, at).store_release(word));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Given {
    /// Nobody is connected, and everything was taken or nobody will take it.
    fn is_over(&self) -> bool {
        if Arc::strong_count(&self.sender) != 1 {
            return false;
        }
        // Nobody counts lines of an interrupt that is removed as free.
        if self.interrupt.check() == Err(Refusal::NotConnected) {
            return true;
        }
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        // Who counts lines as free that were never sent gets no more.
        sender.refresh().is_err() || sender.free_lines() == sender.lines()
    }
}

/// The end of the interrupt's member, of a window whose word is this.
pub(crate) fn inlet(
    space: &Space,
    pair: (usize, usize),
    at: usize,
    (owner, word): (MemberNumber, u64),
) -> Inlet {
    let (lines, credits) = space.window(pair, at);
    Receiver::new(lines, credits, config(owner, word))
}

/// What both ends know: random numbers of members make a random blank, another for each time that a window is given.
fn config(owner: MemberNumber, word: u64) -> WindowConfig {
    let random = (owner.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    WindowConfig::blank(blank_from_random(random ^ random >> 32), (word >> TIMES_LSB) as u8)
}
