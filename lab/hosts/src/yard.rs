//! Windows for the messages of data interrupts: a few that each host has in the memory of each other one.
//!
//! What is in a window is `host/window`'s: messages of unfenced stores, and lines that are counted as free. A word for each window says which
//! interrupt it is for. Who sends makes the window blank and says the word behind that. When it takes the window away it says that, and
//! gives it to nobody until the other side has answered that it looks at it no more: so no line is made blank by both.

use beeline_contract_adapter::{PublishPort, ViewPort};
use beeline_contract_memory::{CreditSink, CreditSource, StorePort};
use beeline_fabric::{MAX_MESSAGE_BYTES, Place, Refusal};
use beeline_link_sim::machine::hosts::Region;
use beeline_spec::escape::blank_from_random;
use beeline_window::{Receiver, SendError, Sent, WindowConfig, Writer};

use crate::lines::{Loads, Stores};
use crate::programs::Core;
use crate::session::Losses;
use crate::wiring::{LINE_BYTES, WINDOW_LINES as LINES, WINDOWS, YARD_WORDS};
use crate::words::{Published, View};

/// Words that a host says to another: of each window to it, of each window from it, and how many lines of those are free again.
const SAID: u32 = 0;
const LEFT: u32 = WINDOWS;
const FREED: u32 = 2 * WINDOWS;
const _: () = assert!(YARD_WORDS == 3 * WINDOWS);

/// Set while a window is an interrupt's.
const VALID: u64 = 1 << 63;
/// From this bit on, how often the window was given.
const TIMES_LSB: u32 = 48;

/// Windows to and from another host.
pub(crate) struct Yard {
    core: Core,
    /// Words that this host publishes to the other one.
    own: Published,
    /// Words that the other host has published to this one.
    theirs: View,
    /// The address of the first window to the other host.
    to: u64,
    /// Memory of the windows from the other host.
    here: Region,
    outlets: Vec<Outlet>,
    inlets: Vec<Option<Inlet>>,
}

/// A window to another host.
#[derive(Default)]
struct Outlet {
    said: u64,
    given: Option<Given>,
}

struct Given {
    place: Place,
    writer: Writer<Stores, Freed>,
    connections: u32,
    /// What links had lost before its first message.
    losses: Losses,
}

/// A window from another host, for as long as its word is the same.
struct Inlet {
    word: u64,
    /// `None` once something came that is no message: nothing behind it is taken.
    receiver: Option<Receiver<Loads, Free>>,
}

/// A window that was given to an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowId {
    at: usize,
    word: u64,
}

fn word_of(place: Place, times: u64) -> u64 {
    VALID | times << TIMES_LSB & !VALID | u64::from(place.slot.0) << 32 | u64::from(place.incarnation)
}

fn is_of(word: u64, place: Place) -> bool {
    let times = !VALID >> TIMES_LSB << TIMES_LSB;
    word & !times == word_of(place, 0)
}

/// The configuration of a window, which both ends make from its word.
fn config(word: u64) -> WindowConfig {
    let random = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    WindowConfig::blank(blank_from_random(random ^ random >> 32), (word >> TIMES_LSB) as u8)
}

impl Yard {
    pub(crate) fn new(core: Core, own: Published, theirs: Region, to: Region, here: Region) -> Self {
        let theirs = View::new(core.clone(), theirs);
        let outlets = (0..WINDOWS).map(|_| Outlet::default()).collect();
        let inlets = (0..WINDOWS).map(|_| None).collect();
        Yard { core, own, theirs, to: to.address, here, outlets, inlets }
    }

    pub(crate) fn words(&self) -> &Published {
        &self.own
    }

    /// A window for an interrupt of the other host.
    ///
    /// # Errors
    /// [`Refusal::Nospc`]: all are in use.
    pub(crate) fn give(&mut self, place: Place, losses: Losses) -> Result<WindowId, Refusal> {
        let has_it = |outlet: &Outlet| outlet.given.as_ref().is_some_and(|given| given.place == place);
        if let Some(at) = self.outlets.iter().position(has_it) {
            let outlet = &mut self.outlets[at];
            outlet.given.iter_mut().for_each(|given| given.connections += 1);
            return Ok(WindowId { at, word: outlet.said });
        }
        let is_free = |at: &usize| {
            let outlet = &self.outlets[*at];
            outlet.given.is_none() && self.theirs.load(LEFT + *at as u32) == outlet.said
        };
        let at = (0..self.outlets.len()).find(is_free).ok_or(Refusal::Nospc)?;
        let times = (self.outlets[at].said & !VALID) >> TIMES_LSB;
        let word = word_of(place, times + 1);
        let config = config(word);
        let mut stores = Stores {
            core: self.core.clone(),
            address: self.to + at as u64 * u64::from(LINES) * LINE_BYTES as u64,
            lines: LINES,
        };
        (0..LINES).for_each(|line| stores.store_line(line, &[config.blank; 8]));
        let writer =
            Writer::new(stores, Freed { theirs: self.theirs.clone(), word: FREED + at as u32 }, config);
        let given = Some(Given { place, writer, connections: 1, losses });
        self.outlets[at] = Outlet { said: word, given };
        // Behind the blanks, as every published word is behind all stores of its core; and messages are behind it.
        self.own.publish(SAID + at as u32, word);
        Ok(WindowId { at, word })
    }

    fn given(&mut self, id: WindowId) -> Option<&mut Given> {
        let outlet = &mut self.outlets[id.at];
        outlet.given.as_mut().filter(|_| outlet.said == id.word)
    }

    /// Stores a message into a window, if it has room.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: the window was taken away. [`Refusal::TransferFailed`]: a link was down since the window was given, so that
    /// messages may be lost, and it is of no more use. [`Refusal::Nospc`]: too many are not taken yet.
    pub(crate) fn send(&mut self, id: WindowId, losses: Losses, message: &[u8]) -> Result<(), Refusal> {
        let given = self.given(id).ok_or(Refusal::NotConnected)?;
        if given.losses != losses {
            return Err(Refusal::TransferFailed);
        }
        match given.writer.try_send(message) {
            Ok(Sent::Sent) => Ok(()),
            Ok(Sent::Full) => Err(Refusal::Nospc),
            // It counts lines as free that were never sent.
            Err(SendError::Credits(_) | SendError::ReceiverGone) => Err(Refusal::NotConnected),
            Err(SendError::TooLong { .. }) => Err(Refusal::IllegalParameter),
        }
    }

    /// Ends a connection by a window. It is taken away when all messages are taken.
    pub(crate) fn let_go(&mut self, id: WindowId) {
        if let Some(given) = self.given(id) {
            given.connections -= 1;
        }
    }

    /// Takes a window away: what is left in it is lost.
    pub(crate) fn end(&mut self, id: WindowId) {
        if self.given(id).is_some() {
            self.take_away(id.at);
        }
    }

    /// Takes every window away.
    pub(crate) fn end_all(&mut self) {
        for at in 0..self.outlets.len() {
            self.take_away(at);
        }
    }

    fn take_away(&mut self, at: usize) {
        let outlet = &mut self.outlets[at];
        if outlet.given.take().is_some() {
            outlet.said &= !VALID;
            self.own.publish(SAID + at as u32, outlet.said);
        }
    }

    /// Takes windows away that nobody uses, and answers the other host that has taken away its own.
    pub(crate) fn tend(&mut self) {
        for at in 0..self.outlets.len() {
            let is_over = |given: &mut Given| {
                let writer = &mut given.writer;
                // Who counts lines as free that were never sent gets no more.
                given.connections == 0 && (writer.refresh().is_err() || writer.free_lines() == writer.lines())
            };
            if self.outlets[at].given.as_mut().is_some_and(is_over) {
                self.take_away(at);
            }
        }
        for at in 0..WINDOWS {
            let word = self.theirs.load(SAID + at);
            let inlet = &mut self.inlets[at as usize];
            if inlet.as_ref().is_some_and(|inlet| inlet.word != word) {
                *inlet = None;
            }
            if word & VALID == 0 && self.own.load(LEFT + at) != word {
                self.own.publish(FREED + at, 0);
                self.own.publish(LEFT + at, word);
            }
        }
    }

    /// The next message of the other host for an interrupt of this one.
    pub(crate) fn receive(&mut self, place: Place) -> Option<Vec<u8>> {
        let of_place = |at: &u32| is_of(self.theirs.load(SAID + at), place);
        let at = (0..WINDOWS).find(of_place)?;
        let word = self.theirs.load(SAID + at);
        let offset = (at * LINES) as usize * LINE_BYTES;
        let inlet = &mut self.inlets[at as usize];
        if inlet.as_ref().is_none_or(|inlet| inlet.word != word) {
            let loads = Loads { core: self.core.clone(), region: self.here, offset, lines: LINES };
            let free = Free { own: self.own.clone(), word: FREED + at };
            *inlet = Some(Inlet { word, receiver: Some(Receiver::new(loads, free, config(word))) });
        }
        let inlet = inlet.as_mut()?;
        let receiver = inlet.receiver.as_mut()?;
        let taken = match receiver.poll() {
            Ok(None) => return None,
            Ok(Some(mut message)) if message.len() <= MAX_MESSAGE_BYTES => {
                let mut taken = vec![0; message.len()];
                message.copy_out(&mut taken);
                Some(taken)
            }
            Ok(Some(_)) | Err(_) => None,
        };
        // At once: the next trigger finds the room.
        receiver.push_credits();
        if taken.is_none() {
            inlet.receiver = None;
        }
        taken
    }
}

/// How many lines the other host has counted as free.
struct Freed {
    theirs: View,
    word: u32,
}

impl CreditSource for Freed {
    fn freed_lines(&mut self) -> u64 {
        self.theirs.load(self.word)
    }
}

/// Where this host counts lines as free.
struct Free {
    own: Published,
    word: u32,
}

impl CreditSink for Free {
    fn publish(&mut self, freed_lines: u64) {
        self.own.publish(self.word, freed_lines);
    }
}
