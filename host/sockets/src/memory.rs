//! What the two ends of a connection have in common: words, bells and windows, in the memory of a pair of processes.
//!
//! The memory is as large as all connections of a pair could need, and sparse: what nobody touches is not there. In it are, for each of the two
//! sides, addresses of bells; then, for each slot, 1,152 bytes of words, half of them for each direction; then two places for windows for each slot.
//! Every word may have been written by a peer that means harm: it is loaded once and checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use beeline_domain::{BellAddress, Ringer};
use beeline_ledger::{RECEIVER_WORDS, SENDER_WORDS};
use beeline_mmio::{
    LoadWindow, MemoryOptions, Region, SharedMemory, StoreKernel, StoreWindow, Unpaced, Word, Words,
};
use beeline_spec::escape::{blank_from_random, is_blank_value};
use beeline_window::{Receiver, WindowConfig, Writer};

use crate::returns::{RETURN_WORDS, Returns};
use crate::words::{Credits, Shared};

/// Bells of a side.
pub(crate) const SLEEPERS: u16 = 1024;
const SLEEPER_BYTES: usize = 64;
/// Sleepers of a word of those that could not be rung, a bit for each.
const BITS: u16 = 64;
const SIDE_BYTES: usize = SLEEPERS as usize * SLEEPER_BYTES;
const CONTROL_AT: usize = 2 * SIDE_BYTES;
/// Words of a slot.
const CONTROL_BYTES: usize = 1152;
const DIRECTION_BYTES: usize = CONTROL_BYTES / 2;
/// As much as a window can have.
pub(crate) const WINDOW_PLACE_BYTES: usize = 128 << 10;
const LINE_BYTES: usize = 64;
const MOST_LINES: u64 = (WINDOW_PLACE_BYTES / LINE_BYTES) as u64;
const LEAST_LINES: u64 = 16;

// Of a direction: the ledger, the receiver's words for it, the count of freed lines, more words of the receiver, more words of the sender,
// what the receiver says of windows, and words of both for bytes that go back.
const RECEIVER_AT: usize = 128;
const CREDITS_AT: usize = 256;
const RECEIVER_SAYS_AT: usize = 320;
const SENDER_SAYS_AT: usize = 384;
/// What the receiver says of windows.
const OF_WINDOWS_AT: usize = 448;
const RETURNS_AT: usize = 512;

/// Receiver: up to four bells that are rung when bytes are in the window, 16 bits each, 0 for none.
const RUNG: usize = 0;
/// Receiver: lines of the window that the sender may use; 0 for none yet.
const LINES: usize = 1;
/// Receiver: what stands in a line of the window that has no message.
const BLANK: usize = 2;
/// Receiver: which process of a family has this end, as [`Slot::claim`] counts it.
const HOLDER: usize = 3;
/// Receiver, of windows: whether the sender is to leave them alone.
const DOWN: usize = 0;
/// Receiver: not 0 once it takes no more datagrams, and sends none.
const ENDED: usize = 4;
/// Receiver: the number of the rest in which the sender of datagrams is to use the kernel; 0 for none.
const REST: usize = 5;
/// Receiver: the last question of the sender ([`ASKED`]) behind which the kernel had nothing for it.
const ANSWERED: usize = 6;
/// Sender: the cookie of its socket, once all its words are in order.
const OPEN: usize = 0;
/// Sender: a count that changes behind what it sent by the window, while a bell is to be rung.
const SENT: usize = 1;
/// Sender: the last rest that it has begun.
const RESTED: usize = 2;
/// Sender: one of [`KINDS`].
const KIND: usize = 3;
/// Sender: how often it has asked whether the kernel has nothing more for the receiver.
const ASKED: usize = 4;
/// Sender: the last beginning of the window behind which it sends by the kernel again.
const ENDED_BEGIN: usize = 5;

/// Whether the rules of a process have copies kept of its connections: no, and yes. Nothing that is written over either becomes the other one.
const KINDS: [u64; 2] = [0x6b5c_93d1_0f2e_47a8, 0x2d6e_f1a4_983b_c05f];

/// The memory that two processes have in common, as one side sees it.
#[derive(Clone, Debug)]
pub(crate) struct PairMemory {
    /// Which it is: no two of a process have the same.
    id: u64,
    region: Region,
    slots: u32,
    side: usize,
    /// The announcement of each of the other side's sleepers for which this process has rung last.
    rung: Arc<[AtomicU64]>,
    /// Which of them could not be rung, a bit for each.
    to_ring: Arc<[AtomicU64]>,
    /// What rings the other side's bells, where they are in another network namespace. It keeps that namespace for as long as it is there.
    ringer: Arc<ArcSwapOption<Ringer>>,
}

/// Where one connection is in the memory.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    memory: PairMemory,
    slot: u32,
    /// Of the direction in which this side sends.
    sender_says: Words,
    receiver_says: Words,
    /// Of the one in which it receives.
    own_receiver_says: Words,
    /// Of windows, what the other side says and this one.
    of_windows: Words,
    own_of_windows: Words,
}

/// A sleeper of the other side.
#[derive(Clone, Debug)]
pub(crate) struct OtherSleeper {
    sleeper: u16,
    words: Words,
}

/// What a sleeper that is to be rung has announced.
#[derive(Debug)]
pub(crate) struct ToRing {
    announcement: u64,
}

/// The other side's count of what it sent, while a bell is to be rung.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals(Words);

/// Bytes of memory for connections in so many slots.
pub(crate) const fn memory_bytes(slots: u32) -> usize {
    CONTROL_AT + slots as usize * (CONTROL_BYTES + 2 * WINDOW_PLACE_BYTES)
}

/// What the words of a connection are claimed with first. A slot is used again, and a child that has a connection of its parent's from before claims none that came behind it.
pub(crate) const fn first_claim(cookie: u64) -> u64 {
    /// More than there are processes of a family that claim one behind the other.
    const CLAIMS_BITS: u32 = 20;
    cookie << CLAIMS_BITS
}

/// Memory of a connection of which this process has both ends. A child that has one of them asks its parent by it, as by that of two processes.
pub(crate) fn memory_here() -> Region {
    let memory = SharedMemory::create("beeline-here", memory_bytes(1), MemoryOptions::default());
    memory.and_then(|memory| memory.map_sparse()).unwrap_or_else(|error| {
        tracing::debug!(%error, "a child cannot give bytes back to its parent");
        Region::private(memory_bytes(1))
    })
}

impl PairMemory {
    /// `side` is 0 for one of the two and 1 for the other.
    pub(crate) fn new(region: Region, slots: u32, side: usize) -> Self {
        assert!(region.bytes() >= memory_bytes(slots) && side < 2, "the memory is as large as it has to be");
        static IDS: AtomicU64 = AtomicU64::new(1);
        let rung = (0..SLEEPERS).map(|_| AtomicU64::new(0)).collect();
        let to_ring = (0..SLEEPERS / BITS).map(|_| AtomicU64::new(0)).collect();
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        PairMemory { id, region, slots, side, rung, to_ring, ringer: Arc::default() }
    }

    /// With what rings the other side's bells; none where any ringer of this process does.
    pub(crate) fn rung_by(self, ringer: Option<Arc<Ringer>>) -> Self {
        self.ringer.store(ringer);
        self
    }

    pub(crate) fn ringer(&self) -> Option<Arc<Ringer>> {
        self.ringer.load_full()
    }

    /// The other process has gone, and nobody is rung there.
    pub(crate) fn forget_ringer(&self) {
        self.ringer.store(None);
    }

    /// A sleeper could not be rung, and is to be rung again.
    pub(crate) fn ring_later(&self, sleeper: &OtherSleeper) {
        let (word, bit) = (sleeper.sleeper / BITS, sleeper.sleeper % BITS);
        self.to_ring[usize::from(word)].fetch_or(1 << bit, Ordering::AcqRel);
    }

    /// Those that could not be rung so far, for whoever rings them now.
    pub(crate) fn take_to_ring(&self) -> Vec<OtherSleeper> {
        let words = (0..).zip(self.to_ring.iter()).filter(|(_, word)| word.load(Ordering::Relaxed) != 0);
        let taken = words.map(|(at, word)| (at, word.swap(0, Ordering::AcqRel)));
        let each = |(at, bits): (u16, u64)| {
            (0..BITS).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| at * BITS + bit)
        };
        taken.flat_map(each).map(|sleeper| self.other_sleeper(sleeper)).collect()
    }

    pub(crate) fn is(&self, other: &PairMemory) -> bool {
        self.id == other.id
    }

    /// The words of a connection; `None` above the last.
    pub(crate) fn slot(&self, slot: u32) -> Option<Slot> {
        (slot < self.slots).then(|| {
            let says = |direction, at| self.region.words(self.direction_at(slot, direction) + at, 8);
            let (sends, receives) = (self.side, 1 - self.side);
            Slot {
                memory: self.clone(),
                slot,
                sender_says: says(sends, SENDER_SAYS_AT),
                receiver_says: says(sends, RECEIVER_SAYS_AT),
                own_receiver_says: says(receives, RECEIVER_SAYS_AT),
                of_windows: says(sends, OF_WINDOWS_AT),
                own_of_windows: says(receives, OF_WINDOWS_AT),
            }
        })
    }

    /// Gives back the pages of both windows of a slot that no connection has.
    pub(crate) fn empty_windows(region: &Region, slots: u32, slot: u32) {
        let at = CONTROL_AT + slots as usize * CONTROL_BYTES + 2 * slot as usize * WINDOW_PLACE_BYTES;
        if let Err(errno) = region.remove_pages(at, 2 * WINDOW_PLACE_BYTES, &Unpaced) {
            tracing::debug!(%errno, "the memory of a connection that has ended stays");
        }
    }

    fn direction_at(&self, slot: u32, direction: usize) -> usize {
        CONTROL_AT + slot as usize * CONTROL_BYTES + direction * DIRECTION_BYTES
    }

    fn window_at(&self, slot: u32, direction: usize) -> usize {
        let places = CONTROL_AT + self.slots as usize * CONTROL_BYTES;
        places + (2 * slot as usize + direction) * WINDOW_PLACE_BYTES
    }

    fn sleeper_words(&self, side: usize, sleeper: u16) -> Words {
        let sleeper = usize::from(sleeper % SLEEPERS);
        self.region.words(side * SIDE_BYTES + sleeper * SLEEPER_BYTES, 8)
    }

    /// Says where one of this side's bells is.
    pub(crate) fn tell_address(&self, sleeper: u16, address: BellAddress) {
        let words = self.sleeper_words(self.side, sleeper);
        for (word, at) in address.to_words().into_iter().zip(1..) {
            words.store(at, word);
        }
    }

    /// Says that one of this side's sleepers sleeps, for the `announcement`th time; 0: it is awake. A barrier has to follow.
    pub(crate) fn announce(&self, sleeper: u16, announcement: u64) {
        self.sleeper_words(self.side, sleeper).store_release(0, announcement);
    }

    /// Where this side's thread in the background is rung.
    pub(crate) fn own_address(&self) -> BellAddress {
        let words = self.sleeper_words(self.side, 0);
        BellAddress::from_words(std::array::from_fn(|at| words.load(at + 1)))
    }

    /// One of the other side's sleepers.
    pub(crate) fn other_sleeper(&self, sleeper: u16) -> OtherSleeper {
        OtherSleeper { sleeper: sleeper % SLEEPERS, words: self.sleeper_words(1 - self.side, sleeper) }
    }
}

impl Arrivals {
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.0.load_acquire(SENT)
    }

    #[cfg(test)]
    pub(crate) fn of(words: Words) -> Self {
        Arrivals(words)
    }

    #[cfg(test)]
    pub(crate) fn add(&self) {
        self.0.store_release(SENT, self.0.load(SENT) + 1);
    }
}

impl OtherSleeper {
    /// What it has announced, if it sleeps and this process has not rung it since it said so, by whichever connection: it looks at all of them.
    #[inline]
    pub(crate) fn to_ring(&self, memory: &PairMemory) -> Option<ToRing> {
        let announcement = self.words.load_acquire(0);
        // Relaxed: threads that come at once ring twice.
        if announcement == 0 || memory.rung[usize::from(self.sleeper)].load(Ordering::Relaxed) == announcement
        {
            return None;
        }
        Some(ToRing { announcement })
    }

    /// This process has rung it, and does not again for the same announcement. Called behind the ring, so that whoever sends next makes one that failed.
    pub(crate) fn rang(&self, memory: &PairMemory, rung: &ToRing) {
        memory.rung[usize::from(self.sleeper)].store(rung.announcement, Ordering::Relaxed);
    }

    fn is_asleep(&self) -> bool {
        self.words.load_acquire(0) != 0
    }

    pub(crate) fn address(&self) -> BellAddress {
        BellAddress::from_words(std::array::from_fn(|at| self.words.load(at + 1)))
    }
}

impl Slot {
    pub(crate) fn memory(&self) -> &PairMemory {
        &self.memory
    }

    fn words(&self, direction: usize, at: usize, words: u32) -> Shared {
        let start = self.memory.direction_at(self.slot, direction) + at;
        Shared(self.memory.region.words(start, words as usize))
    }

    fn credit_word(&self, direction: usize) -> Word {
        self.memory.region.word(self.memory.direction_at(self.slot, direction) + CREDITS_AT)
    }

    /// Makes this side's words what they are in the beginning, and says so with the cookie of its socket. `wants_copies`: so do its rules.
    pub(crate) fn open(&self, cookie: u64, wants_copies: bool) {
        let (sends, receives) = (self.memory.side, 1 - self.memory.side);
        for (direction, at) in [(sends, 0), (receives, RECEIVER_AT)] {
            let words = self.words(direction, at, SENDER_WORDS.max(RECEIVER_WORDS));
            (0..words.0.count()).for_each(|word| words.0.store(word, 0));
        }
        for words in [&self.own_receiver_says, &self.own_of_windows] {
            (0..8).for_each(|word| words.store(word, 0));
        }
        self.own_receiver_says.store(HOLDER, first_claim(cookie));
        self.credit_word(receives).store(0);
        self.sent_returns().open_sender();
        self.received_returns().open_receiver();
        [RESTED, ASKED, ENDED_BEGIN].into_iter().for_each(|word| self.sender_says.store(word, 0));
        self.sender_says.store(KIND, KINDS[usize::from(wants_copies)]);
        self.sender_says.store_release(OPEN, cookie);
    }

    /// Whether the other side's words are in order, for the socket with this cookie.
    pub(crate) fn is_open(&self, other_cookie: u64) -> bool {
        let receives = 1 - self.memory.side;
        self.words(receives, SENDER_SAYS_AT, 8).0.load_acquire(OPEN) == other_cookie
    }

    /// Whether the other side wants copies kept, once its words are in order. `None`: it says neither.
    pub(crate) fn other_wants_copies(&self) -> Option<bool> {
        let receives = 1 - self.memory.side;
        let kind = self.words(receives, SENDER_SAYS_AT, 8).0.load(KIND);
        KINDS.iter().position(|known| *known == kind).map(|at| at == 1)
    }

    /// What the sender's half of a ledger publishes, and what it sees of the receiver's.
    pub(crate) fn sender_ends(&self) -> (Shared, Shared) {
        let sends = self.memory.side;
        (self.words(sends, 0, SENDER_WORDS), self.words(sends, RECEIVER_AT, RECEIVER_WORDS))
    }

    /// What the receiver's half of a ledger publishes, and what it sees of the sender's.
    pub(crate) fn receiver_ends(&self) -> (Shared, Shared) {
        let receives = 1 - self.memory.side;
        (self.words(receives, RECEIVER_AT, RECEIVER_WORDS), self.words(receives, 0, SENDER_WORDS))
    }

    /// Makes the window that this side receives by, and lets the other one know.
    pub(crate) fn offer_window(&self, lines: u32, random: u64) -> Receiver<LoadWindow, Credits> {
        let receives = 1 - self.memory.side;
        let (at, blank) = (self.memory.window_at(self.slot, receives), blank_from_random(random));
        self.memory.region.fill(at, lines as usize * LINE_BYTES, blank);
        self.own_receiver_says.store(BLANK, blank);
        self.own_receiver_says.store_release(LINES, u64::from(lines));
        let port = self.memory.region.load_window(at, lines);
        Receiver::new(port, Credits(self.credit_word(receives)), WindowConfig::blank(blank, 0))
    }

    /// The window that the other side has offered, if it has, and it can be one.
    pub(crate) fn offered_window(&self) -> Option<Writer<StoreWindow, Credits>> {
        let lines = self.receiver_says.load_acquire(LINES);
        let blank = self.receiver_says.load(BLANK);
        let is_one = lines.is_power_of_two() && (LEAST_LINES..=MOST_LINES).contains(&lines);
        if !is_one || !is_blank_value(blank) {
            return None;
        }
        let at = self.memory.window_at(self.slot, self.memory.side);
        let port = self.memory.region.store_window(at, lines as u32, StoreKernel::Cached);
        Some(Writer::new(port, Credits(self.credit_word(self.memory.side)), WindowConfig::blank(blank, 0)))
    }

    /// Asks the other side to send by the socket, or no longer. Its thread has to be rung.
    pub(crate) fn ask_down(&self, is_down: bool) {
        self.own_of_windows.store_release(DOWN, is_down.into());
    }

    /// Whether the other side asks this one to send by the socket.
    pub(crate) fn is_asked_down(&self) -> bool {
        self.of_windows.load_acquire(DOWN) != 0
    }

    /// Says that this side takes no more datagrams by its window, and sends none.
    pub(crate) fn end_datagrams(&self) {
        self.own_receiver_says.store_release(ENDED, 1);
    }

    /// Whether the other side takes no more datagrams, and sends none.
    #[inline]
    pub(crate) fn has_ended_datagrams(&self) -> bool {
        self.receiver_says.load_acquire(ENDED) != 0
    }

    /// By what bytes come back that this side has sent.
    pub(crate) fn sent_returns(&self) -> Returns {
        self.returns(self.memory.side)
    }

    /// By what this side gives bytes back.
    pub(crate) fn received_returns(&self) -> Returns {
        self.returns(1 - self.memory.side)
    }

    fn returns(&self, direction: usize) -> Returns {
        let words = self.words(direction, RETURNS_AT, RETURN_WORDS as u32).0;
        let place_at = self.memory.window_at(self.slot, direction);
        Returns::new(words, self.memory.region.clone(), place_at, WINDOW_PLACE_BYTES)
    }

    /// Asks the other side to send datagrams by the kernel in a rest with this number; 0: no longer.
    pub(crate) fn ask_for_rest(&self, rest: u64) {
        self.own_receiver_says.store_release(REST, rest);
    }

    /// The rest that the other side asks for.
    #[inline]
    pub(crate) fn rest_asked_for(&self) -> u64 {
        self.receiver_says.load_acquire(REST)
    }

    /// Says, behind all that was stored in the window, that nothing more is until another rest is asked for, or none. Pairs with [`Slot::has_rested`].
    pub(crate) fn begin_rest(&self, rest: u64) {
        self.sender_says.store_release(RESTED, rest);
    }

    /// Whether the other side has begun this rest.
    pub(crate) fn has_rested(&self, rest: u64) -> bool {
        let receives = 1 - self.memory.side;
        self.words(receives, SENDER_SAYS_AT, 8).0.load_acquire(RESTED) == rest
    }

    /// Asks the other side to say when the kernel has nothing more for it, behind all that this side has sent by the kernel so far.
    pub(crate) fn ask_whether_taken(&self, question: u64) {
        self.sender_says.store_release(ASKED, question);
    }

    /// Whether the other side has answered this question. Pairs with [`Slot::answer`].
    pub(crate) fn is_taken(&self, question: u64) -> bool {
        self.receiver_says.load_acquire(ANSWERED) == question
    }

    /// The last question of the other side that has no answer.
    #[inline]
    pub(crate) fn question(&self) -> Option<u64> {
        let asked = self.other_sender_says().load_acquire(ASKED);
        (asked != self.own_receiver_says.load(ANSWERED)).then_some(asked)
    }

    /// Answers a question that was loaded before the kernel was found to have nothing.
    pub(crate) fn answer(&self, question: u64) {
        self.own_receiver_says.store_release(ANSWERED, question);
    }

    /// Says, before this side sends by the kernel, that what is in the window comes before that, though the receiver has not come to this beginning yet.
    pub(crate) fn end_begin(&self, begin: u64) {
        self.sender_says.store_release(ENDED_BEGIN, begin);
    }

    /// Whether the other side has ended this beginning.
    pub(crate) fn has_ended_begin(&self, begin: u64) -> bool {
        self.other_sender_says().load_acquire(ENDED_BEGIN) >= begin
    }

    fn other_sender_says(&self) -> Words {
        self.words(1 - self.memory.side, SENDER_SAYS_AT, 8).0
    }

    /// Bells that the other side wants to be rung.
    #[inline]
    pub(crate) fn wants_rung(&self) -> u64 {
        self.receiver_says.load_acquire(RUNG)
    }

    /// Whether somebody sleeps at the other side who wants to be rung.
    pub(crate) fn is_other_asleep(&self) -> bool {
        let wants = self.wants_rung();
        let ids = (0..4).map(|place| (wants >> (16 * place)) as u16).filter(|id| *id != 0);
        ids.into_iter().any(|id| self.memory.other_sleeper(id).is_asleep())
    }

    /// Says that something was sent; one thread at a time.
    #[inline]
    pub(crate) fn count_sent(&self) {
        self.sender_says.store_release(SENT, self.sender_says.load(SENT).wrapping_add(1));
    }

    /// The other side's count of what it sent.
    pub(crate) fn arrivals(&self) -> Arrivals {
        let receives = 1 - self.memory.side;
        Arrivals(self.words(receives, SENDER_SAYS_AT, 8).0)
    }

    /// Takes this end for the calling process, if none of its family has since `last`; returns what to give the next time.
    pub(crate) fn claim(&self, last: u64) -> Option<u64> {
        let receives = 1 - self.memory.side;
        let word = self
            .memory
            .region
            .word(self.memory.direction_at(self.slot, receives) + RECEIVER_SAYS_AT + 8 * HOLDER);
        let next = last.wrapping_add(1);
        word.compare_exchange(last, next).ok().map(|()| next)
    }

    /// Bells that this side wants to be rung; one thread at a time.
    pub(crate) fn own_rung(&self) -> u64 {
        self.own_receiver_says.load(RUNG)
    }

    pub(crate) fn set_own_rung(&self, bells: u64) {
        self.own_receiver_says.store_release(RUNG, bells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_connection_from_before_claims_none_that_is_in_its_slot_now() {
        let memory = PairMemory::new(Region::private(memory_bytes(1)), 1, 0);
        let slot = memory.slot(0).unwrap();
        slot.open(7, false);
        // A child of fork has this number, too.
        let of_child = first_claim(7);
        assert_eq!(slot.claim(of_child), Some(of_child + 1));
        assert_eq!(slot.claim(of_child), None, "its parent has used it since");
        slot.open(8, false);
        assert_eq!((slot.claim(of_child), slot.claim(of_child + 1)), (None, None));
        assert_eq!(slot.claim(first_claim(8)), Some(first_claim(8) + 1));
    }
}
