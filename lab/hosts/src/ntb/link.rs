//! Windows of `host/window` through a bridge: made by an offer, used by plain stores, and made anew with another epoch when the link was down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{HostId, Hosts, Region, Register};
use beeline_spec::escape::blank_from_random;
use beeline_window::{Receiver, SendError, Sent, WindowConfig, Writer};

use super::offer::{Limits, OFFER_WORDS, Offer, Unfit};
use super::port::NtbPort;
use crate::lines::{Loads, Stores};
use crate::programs::Core;
use crate::wiring::LINE_BYTES;

/// The doorbell that says: look at the scratchpads.
pub const NTB_DOORBELL: u64 = 1;
/// The window of the bridge that messages go by.
const WINDOW: u16 = 0;
/// Lines of the window that this side offers.
const LINES: u32 = 256;
const LIMITS: Limits = Limits { least_lines: 64, most_lines: LINES };
/// In front of the lines: a page with the count of lines that the other side has freed.
const HEAD_BYTES: usize = 4096;
const BYTES: usize = HEAD_BYTES + LINES as usize * LINE_BYTES;
/// From one look at the scratchpads to the next.
const LOOK: Picoseconds = Picoseconds::from_ns(5_000);

/// How long nothing comes until the count of free lines is stored once more: the last one may have been passed by the one before.
const REPEAT: Picoseconds = Picoseconds::from_ns(10_000);

/// What both sides have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    pub own: Offer,
    pub theirs: Offer,
}

/// Why there is no link, or none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NtbError {
    /// Until then; what the scratchpads had in them last.
    #[error("nobody made a link until then: {0}")]
    TimedOut(Unfit),
    /// The register that should have the address or length of the memory has this.
    #[error("the bridge cannot translate to this memory: it shows {0:#x}")]
    Translation(u64),
    /// The link was down, or the other side has begun anew.
    #[error("the link was down")]
    Down,
    /// What came is no message, or counts lines as free that were never sent.
    #[error("the other side breaks the protocol")]
    Broken,
    #[error("a message longer than the window takes")]
    TooLong,
}

/// Messages both ways through a bridge, while its link is up.
pub struct NtbLink {
    port: NtbPort,
    memory: Region,
    agreed: Agreed,
    writer: Writer<Stores, Freed>,
    receiver: Receiver<Loads, Free>,
    /// Where the other side looks for lines that are free, the last count, and when that is stored again.
    counts_at: u64,
    last: Arc<AtomicU64>,
    repeats_at: Picoseconds,
    /// Interrupts and losses of the own link that were looked at.
    interrupts: u64,
    downs: u64,
    is_down: bool,
    /// How often something in the scratchpads was no offer, but for nothing at all.
    unfit: u32,
}

impl NtbLink {
    /// Memory of a host for messages to it. It is the same for every epoch.
    pub fn memory(hosts: &mut Hosts, host: HostId) -> Region {
        hosts.add_memory(host, BYTES)
    }

    /// Makes a link with the other side, as soon as it does so too. `random` is one number that nobody has seen for each call.
    ///
    /// # Errors
    /// Nobody offers one until then, or the bridge cannot translate to the memory.
    pub fn open(core: &Core, memory: Region, random: u64, until: Picoseconds) -> Result<NtbLink, NtbError> {
        let port = NtbPort::new(core);
        // Nothing is stored to a bridge that does not answer: it would be lost.
        while port.read(Register::Link) == u64::MAX {
            if core.now() >= until {
                return Err(NtbError::TimedOut(Unfit::Gone));
            }
            core.sleep_until(core.now() + LOOK);
        }
        port.link_enable();
        port.db_unmask_only(NTB_DOORBELL | port.link_event());
        let downs = core.downs();
        let interrupts = port.interrupts();
        // Nobody stores into it from here on, and what was under way is in it.
        port.mw_clear_trans(WINDOW);
        let blank = blank_from_random(random);
        let own = Offer { epoch: (random >> 32) as u32 | 1, answers: 0, lines: LINES, blank };
        (0..HEAD_BYTES / 8).for_each(|word| core.store(memory, word * 8, 0));
        (HEAD_BYTES / 8..BYTES / 8).for_each(|word| core.store(memory, word * 8, blank));
        port.mw_set_trans(WINDOW, memory).map_err(NtbError::Translation)?;
        let (theirs, unfit) = agree(&port, own, until)?;
        let mut link = NtbLink::new(port, memory, Agreed { own, theirs }, unfit)?;
        (link.interrupts, link.downs) = (interrupts, downs);
        Ok(link)
    }

    fn new(port: NtbPort, memory: Region, agreed: Agreed, unfit: u32) -> Result<NtbLink, NtbError> {
        let core = port.core().clone();
        let to = port.peer_mw_get_addr(WINDOW).ok_or(NtbError::Down)?;
        let config = |offer: Offer| WindowConfig::blank(offer.blank, offer.epoch as u8);
        let lines = agreed.theirs.lines;
        let stores = Stores { core: core.clone(), address: to + HEAD_BYTES as u64, lines };
        let writer =
            Writer::new(stores, Freed { core: core.clone(), memory, most: 0 }, config(agreed.theirs));
        let loads = Loads { core: core.clone(), region: memory, offset: HEAD_BYTES, lines: agreed.own.lines };
        let last = Arc::new(AtomicU64::new(0));
        let free = Free { core: core.clone(), to, last: Arc::clone(&last) };
        let receiver = Receiver::new(loads, free, config(agreed.own));
        let (interrupts, downs, is_down) = (0, 0, false);
        let repeats_at = core.now() + REPEAT;
        let counts_at = to;
        Ok(NtbLink {
            port,
            memory,
            agreed,
            writer,
            receiver,
            counts_at,
            last,
            repeats_at,
            interrupts,
            downs,
            is_down,
            unfit,
        })
    }

    /// What both sides have agreed on.
    pub fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// How often the scratchpads had something in them that is no offer, while the link was made.
    pub fn unfit(&self) -> u32 {
        self.unfit
    }

    /// The side of the bridge.
    pub fn port(&self) -> &NtbPort {
        &self.port
    }

    /// The memory that the other side stores into.
    pub fn own_memory(&self) -> Region {
        self.memory
    }

    /// Stores a message; `false` if there is no room yet.
    ///
    /// # Errors
    /// The link was down, or the message never goes by it.
    pub fn send(&mut self, message: &[u8]) -> Result<bool, NtbError> {
        self.check()?;
        match self.writer.try_send(message) {
            Ok(Sent::Sent) => Ok(true),
            Ok(Sent::Full) => Ok(false),
            Err(SendError::TooLong { .. }) => Err(NtbError::TooLong),
            Err(SendError::Credits(_) | SendError::ReceiverGone) => Err(NtbError::Broken),
        }
    }

    /// The next message, if it is whole.
    ///
    /// # Errors
    /// The link was down, or what is there is no message.
    pub fn receive(&mut self) -> Result<Option<Vec<u8>>, NtbError> {
        self.check()?;
        let taken = match self.receiver.poll() {
            Ok(None) => None,
            Ok(Some(mut message)) => {
                let mut taken = vec![0; message.len()];
                message.copy_out(&mut taken);
                Some(taken)
            }
            Err(_) => return Err(NtbError::Broken),
        };
        if taken.is_none() {
            self.repeats();
            return Ok(None);
        }
        self.receiver.push_credits();
        self.repeats_at = self.port.core().now() + REPEAT;
        Ok(taken)
    }

    /// The next message, as soon as there is one.
    ///
    /// # Errors
    /// As [`NtbLink::receive`].
    pub fn wait(&mut self) -> Result<Vec<u8>, NtbError> {
        let core = self.port.core().clone();
        loop {
            if let Some(message) = self.receive()? {
                core.work(core.hosts(|hosts, _| hosts.poll_time()));
                return Ok(message);
            }
            core.wait(Next::Poll, core.now() + REPEAT);
        }
    }

    fn repeats(&mut self) {
        let (core, last) = (self.port.core(), self.last.load(Relaxed));
        if last > 0 && core.now() >= self.repeats_at {
            core.store_in_order(self.counts_at, last);
            self.repeats_at = core.now() + REPEAT;
        }
    }

    /// Whether it is still the link that it was. It asks the bridge only behind an interrupt: a load of its registers is a round trip.
    ///
    /// # Errors
    /// The link was down, or the other side has begun anew.
    pub fn check(&mut self) -> Result<(), NtbError> {
        self.is_down |= self.port.core().downs() != self.downs;
        let interrupts = self.port.interrupts();
        if !self.is_down && interrupts != self.interrupts {
            self.interrupts = interrupts;
            self.looks();
        }
        if self.is_down { Err(NtbError::Down) } else { Ok(()) }
    }

    fn looks(&mut self) {
        let rung = self.port.db_read();
        self.port.db_clear(rung);
        let epoch = self.port.spad_read(1);
        self.is_down = !self.port.link_is_up() || epoch != self.agreed.theirs.epoch;
    }
}

/// Stores an offer into the other side's scratchpads: nothing is one until its first word is there.
fn offers(port: &NtbPort, offer: Offer) {
    port.peer_spad_write(0, 0);
    for (nth, word) in (0..OFFER_WORDS).zip(offer.words()).rev() {
        port.peer_spad_write(nth, word);
    }
    port.peer_db_set(NTB_DOORBELL);
}

/// Offers, and looks for the other side's offer, until each has answered the other's epoch.
fn agree(port: &NtbPort, own: Offer, until: Picoseconds) -> Result<(Offer, u32), NtbError> {
    let core = port.core();
    let (mut answered, mut unfit, mut last) = (None, 0, Unfit::Nothing);
    let mut is_offered = false;
    loop {
        let is_up = port.link_is_up();
        if !is_up {
            (is_offered, answered) = (false, None);
        } else if !is_offered {
            offers(port, own);
            is_offered = true;
        }
        let read = |nth: u16| port.spad_read(nth);
        let words = std::array::from_fn(|nth| read(nth as u16));
        match Offer::read(words, LIMITS) {
            Ok(theirs) if is_up => {
                if answered != Some(theirs.epoch) {
                    port.peer_spad_write(Offer::ANSWERS, theirs.epoch);
                    answered = Some(theirs.epoch);
                }
                if theirs.answers == own.epoch {
                    // What rang until here was this.
                    port.db_clear(NTB_DOORBELL | port.link_event());
                    port.read(Register::Doorbells);
                    return Ok((theirs, unfit));
                }
                last = Unfit::Nothing;
            }
            Ok(_) => {}
            Err(why) => {
                unfit += u32::from(why != Unfit::Nothing);
                last = why;
            }
        }
        if core.now() >= until {
            return Err(NtbError::TimedOut(last));
        }
        core.sleep_until(core.now() + LOOK);
    }
}

/// Lines that the other side has counted as free, in the own memory. Where the bridge lets writes pass each other, an older count may come
/// behind a newer one: the largest that was seen is the count.
struct Freed {
    core: Core,
    memory: Region,
    most: u64,
}

impl CreditSource for Freed {
    fn freed_lines(&mut self) -> u64 {
        self.most = self.most.max(self.core.load(self.memory, 0));
        self.most
    }
}

/// Where this side counts lines as free: in the other side's memory.
struct Free {
    core: Core,
    to: u64,
    last: Arc<AtomicU64>,
}

impl CreditSink for Free {
    fn publish(&mut self, freed_lines: u64) {
        self.last.store(freed_lines, Relaxed);
        self.core.store_in_order(self.to, freed_lines);
    }
}
