//! The two ends of a window and the credits that flow back.

use crate::Line;

/// Lines of a group, which a receiver in bulk looks at and makes free together ([`LoadPort::arrived_group`]).
pub const GROUP_LINES: u32 = 8;

/// Where a sender's stores go: the lines of a window, a BAR's or a peer's. Write-only by construction.
///
/// No method has a default body: a port that stands in front of another would silently slow down, or lose wake-ups, where it
/// forgot one. [`crate::store_port_default`] writes what a port does not care to do better, and
/// [`crate::forward_store_port`] hands calls to the port behind.
pub trait StorePort {
    /// Lines of the window, a power of two.
    fn lines(&self) -> u32;

    /// Stores a whole line. Each word is single-copy atomic; the line need not arrive whole or in order.
    fn store_line(&mut self, line: u32, words: &Line);

    /// Stores one word (`word < 8`) of a line.
    fn store_word(&mut self, line: u32, word: u32, value: u64);

    /// Stores consecutive whole lines from `bytes` (a multiple of 64, not past the end of the window): where it can, straight
    /// from the caller's memory.
    fn store_lines(&mut self, first_line: u32, bytes: &[u8]);

    /// Stores the first line of a message whole: `header`, at most 56 bytes of `payload`, zeros.
    ///
    /// Where it can, it makes the line in a vector register, straight from the caller's memory: eight words staged in memory
    /// and loaded as a vector cost more than the store itself.
    fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]);

    /// As [`StorePort::store_head_line`], unless a whole word of `payload` equals `blank`: then nothing is stored. Says
    /// whether the line was stored.
    ///
    /// A port may compare the line while it has it in a register. What is compared besides whole words of the payload (the
    /// header, padding) must not matter: `blank` has bit 63 set, those have it clear.
    fn store_head_line_unless(&mut self, line: u32, header: u64, payload: &[u8], blank: u64) -> bool;

    /// As [`StorePort::store_head_line_unless`] with one more word, `prefix`, between the header and at most 48 bytes of
    /// `payload`; `prefix` is compared too.
    fn store_prefixed_line_unless(
        &mut self,
        line: u32,
        header: u64,
        prefix: u64,
        payload: &[u8],
        blank: u64,
    ) -> bool;

    /// Stores the last line of a message whole: at most 64 `bytes`, zeros.
    fn store_padded_line(&mut self, line: u32, bytes: &[u8]);

    /// Runs `task` on the port that stores in the end, whose kind is known where the task is compiled: what a port in front,
    /// or one that is of several kinds, would decide for every line is decided once.
    fn run_stores<T: StoreTask>(&mut self, task: T) -> T::Output;

    /// Whether a whole word of `payload` equals `word`: asked before a payload of several lines is stored, whose header
    /// must say where it is escaped. For ports whose CPU has wider comparisons than the compiler may use.
    fn has_word(&self, payload: &[u8], word: u64) -> bool;

    /// How many lines in front of its stores a sender does well to call [`StorePort::prefetch`]; 0: it never should.
    fn prefetch_lines(&self) -> u32;

    /// Hints that a line will be stored soon. Only for lines that are free: the receiver does not look at those.
    fn prefetch(&mut self, line: u32);

    /// Makes every earlier store of this port visible before any later one. Only fence policies other than `none`
    /// call it; the principle is that nobody needs to.
    fn fence(&mut self);

    /// Wakes the receiver if it has announced that it sleeps; called after the last store of each message, and the only
    /// thing that wakes it. A receiver that polls needs none.
    ///
    /// While the receiver is awake it costs one load of memory that stays in this core's cache, and no fence: the sleeper
    /// pays for the order (docs/design.md, decision 5). Where one side has no membarrier it costs a fence besides. It is one
    /// system call when the receiver sleeps.
    fn wake_receiver(&mut self);

    /// Releases stores that the port holds back on purpose, and wakes the receiver for them; called whenever the sender
    /// waits. Only the ordering adversary holds stores back: other ports do nothing.
    fn progress(&mut self);
}

/// Stores that are made in one go ([`StorePort::run_stores`]).
pub trait StoreTask {
    /// What comes of it.
    type Output;

    /// Makes the stores. Nothing of the port is used but the methods that store, and [`StorePort::fence`]: a port in front
    /// of this one may have more to do for the others, as waking the receiver.
    fn run<P: StorePort + ?Sized>(self, port: &mut P) -> Self::Output;
}

/// The lines of a group where they lie, for a receiver in bulk: where that is was worked out once for all of them.
///
/// Numbers of lines (`ahead`, from the first line of the group on) and of words are taken modulo 8.
pub trait Group: Copy + core::fmt::Debug {
    /// Loads one word, as [`LoadPort::load_word`] does.
    fn word(self, ahead: u32, word: u32) -> u64;
}

/// A [`Group`] of a port that works out the place of each line anew.
pub struct LineByLine<'p, P> {
    port: &'p P,
    first_line: u32,
}

impl<'p, P> LineByLine<'p, P> {
    /// The [`GROUP_LINES`] lines from `first_line` on. Nothing is checked: a line past the end shows when it is loaded.
    pub fn new(port: &'p P, first_line: u32) -> Self {
        LineByLine { port, first_line }
    }
}

impl<P> core::fmt::Debug for LineByLine<'_, P> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("LineByLine").field("first_line", &self.first_line).finish_non_exhaustive()
    }
}

impl<P> Clone for LineByLine<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for LineByLine<'_, P> {}

impl<P: LoadPort> Group for LineByLine<'_, P> {
    #[inline]
    fn word(self, ahead: u32, word: u32) -> u64 {
        self.port.load_word(self.first_line + ahead % GROUP_LINES, word % 8)
    }
}

/// Groups of lines that follow each other in a window, which a receiver in bulk tests, reads and makes free one after the other.
///
/// They are an own thing because their place is worked out once: what a receiver needs for each group is then in registers.
pub trait Groups<P: LoadPort + ?Sized> {
    /// As [`LoadPort::arrived_group`] of the lines of group `group`.
    ///
    /// # Panics
    /// May panic, as every method here, if there are not so many groups.
    fn arrived(&mut self, group: u32, blank: u64) -> bool;

    /// The lines of group `group`.
    fn group<'g>(&'g self, group: u32) -> P::Group<'g>
    where
        P: 'g;

    /// As [`LoadPort::prefetch`] of the lines of group `group`.
    fn prefetch(&mut self, group: u32);

    /// As [`LoadPort::blank_line`] of the line `ahead` lines into group `group`.
    fn blank_line(&mut self, group: u32, ahead: u32, blank: u64);

    /// As [`LoadPort::blank_group`] of group `group`.
    fn blank(&mut self, group: u32, blank: u64);
}

/// [`Groups`] of a port that works out the place of each line anew.
#[derive(Debug)]
pub struct GroupsLineByLine<'p, P> {
    port: &'p mut P,
    first_line: u32,
}

impl<'p, P: LoadPort> GroupsLineByLine<'p, P> {
    /// Nothing is checked, as by [`LineByLine::new`].
    pub fn new(port: &'p mut P, first_line: u32) -> Self {
        GroupsLineByLine { port, first_line }
    }

    fn line(&self, group: u32) -> u32 {
        self.first_line + group * GROUP_LINES
    }
}

impl<P: LoadPort> Groups<P> for GroupsLineByLine<'_, P> {
    fn arrived(&mut self, group: u32, blank: u64) -> bool {
        self.port.arrived_group(self.line(group), blank)
    }

    fn group<'g>(&'g self, group: u32) -> P::Group<'g>
    where
        P: 'g,
    {
        self.port.group(self.line(group))
    }

    fn prefetch(&mut self, group: u32) {
        let first = self.line(group);
        (0..GROUP_LINES).for_each(|ahead| self.port.prefetch(first + ahead));
    }

    fn blank_line(&mut self, group: u32, ahead: u32, blank: u64) {
        self.port.blank_line(self.line(group) + ahead, blank);
    }

    fn blank(&mut self, group: u32, blank: u64) {
        self.port.blank_group(self.line(group), blank);
    }
}

/// The receiver's side of a window in memory: it loads what has arrived and re-blanks what it frees.
pub trait LoadPort {
    /// What [`LoadPort::group`] gives; [`LineByLine`] where there is no faster way.
    type Group<'p>: Group
    where
        Self: 'p;

    /// What [`LoadPort::groups`] gives; [`GroupsLineByLine`] where there is no faster way.
    type Groups<'p>: Groups<Self>
    where
        Self: 'p;

    /// Lines of the window, a power of two.
    fn lines(&self) -> u32;

    /// Loads one word; single-copy atomic. Consecutive loads of a word may give different values if the peer is
    /// hostile: read once, check, use.
    fn load_word(&self, line: u32, word: u32) -> u64;

    /// Loads a line; each word is single-copy atomic, words are loaded in no particular order.
    fn load_line(&mut self, line: u32) -> Line;

    /// Loads a line and says which words differ from `blank`: bit i for word i.
    #[inline]
    fn arrived(&mut self, line: u32, blank: u64) -> (u8, Line) {
        let words = self.load_line(line);
        let mut mask = 0;
        for (i, word) in words.iter().enumerate() {
            mask |= u8::from(*word != blank) << i;
        }
        (mask, words)
    }

    /// As [`LoadPort::arrived`], with the line put into `words`: cheaper for a caller that hands the line on as it is.
    #[inline(always)]
    fn arrived_into(&mut self, line: u32, blank: u64, words: &mut Line) -> u8 {
        let (mask, found) = self.arrived(line, blank);
        *words = found;
        mask
    }

    /// As [`LoadPort::arrived`] for a caller that wants word 0 and no other yet: the mask, and the word as it was when
    /// the mask was made.
    #[inline(always)]
    fn arrived_head(&mut self, line: u32, blank: u64) -> (u8, u64) {
        let (mask, words) = self.arrived(line, blank);
        (mask, words[0])
    }

    /// As [`LoadPort::arrived`] for a caller that does not want the words yet.
    #[inline(always)]
    fn arrived_words(&mut self, line: u32, blank: u64) -> u8 {
        self.arrived(line, blank).0
    }

    /// Copies consecutive whole lines, as bytes in memory order, into `bytes` (a multiple of 64).
    #[inline]
    fn load_lines(&mut self, first_line: u32, bytes: &mut [u8]) {
        for (line, chunk) in (first_line..).zip(bytes.chunks_exact_mut(64)) {
            let words = self.load_line(line);
            for (word, bytes) in words.iter().zip(chunk.as_chunks_mut::<8>().0) {
                *bytes = word.to_le_bytes();
            }
        }
    }

    /// Whether each of the [`GROUP_LINES`] lines from `first_line` on has arrived whole: no word of them equals `blank`. The
    /// last line is looked at first, for the reason that receivers look at the last line of a message first.
    ///
    /// For a receiver in bulk: one branch for all of them, and their loads do not wait for each other, so that as many
    /// lines come over from the sender's cache at a time. What it says of a word stays true until the line is blanked,
    /// because a later load of a word sees no older value of it.
    #[inline]
    fn arrived_group(&mut self, first_line: u32, blank: u64) -> bool {
        (0..GROUP_LINES).rev().all(|ahead| self.arrived_words(first_line.wrapping_add(ahead), blank) == 0xff)
    }

    /// The [`GROUP_LINES`] lines from `first_line` on, none of which is past the end of the window.
    ///
    /// # Panics
    /// May panic, now or when they are loaded, if one is.
    fn group(&self, first_line: u32) -> Self::Group<'_>;

    /// So many groups from `first_line` on, none of whose lines is past the end of the window.
    ///
    /// # Panics
    /// As [`LoadPort::group`].
    fn groups(&mut self, first_line: u32, groups: u32) -> Self::Groups<'_>;

    /// Overwrites a whole line with `blank`, ordered after this side's loads of it and before a later
    /// [`CreditSink::publish`].
    fn blank_line(&mut self, line: u32, blank: u64);

    /// As [`LoadPort::blank_line`] for each of the [`GROUP_LINES`] lines from `first_line` on.
    #[inline]
    fn blank_group(&mut self, first_line: u32, blank: u64) {
        (0..GROUP_LINES).for_each(|ahead| self.blank_line(first_line.wrapping_add(ahead), blank));
    }

    /// Hints that a line will be loaded soon.
    #[inline]
    fn prefetch(&mut self, _line: u32) {}
}

/// Loads the first words of a window's lines: what a look at an idle window needs, and nothing else, so that those of many windows
/// lie side by side.
pub trait HeaderPort {
    /// Loads word 0 of a line, as [`LoadPort::load_word`] does.
    fn load_header(&self, line: u32) -> u64;
}

/// A [`LoadPort`] whose lines can be looked at from a second place.
pub trait SplitHeaders: LoadPort {
    /// What looks at them; it keeps the memory, not the port.
    type Headers: HeaderPort;

    /// Returns a handle on the same lines.
    fn headers(&self) -> Self::Headers;
}

/// The receiver's side of a window that its receiver only loads from: its mapping may be read-only, and other receivers may
/// load from the same memory.
///
/// It has no way to make a line free, so a receiver that re-blanks ([`LoadPort::blank_line`]) cannot be made of it, whatever
/// the mapping allows. The memory need not be coherent with the sender's: it is enough that a store becomes visible at some
/// time, whole in each aligned word, and that a later load of a word gives no older value of it.
pub trait ReadOnlyPort {
    /// Lines of the window, a power of two.
    fn lines(&self) -> u32;

    /// As [`LoadPort::load_word`].
    fn load_word(&self, line: u32, word: u32) -> u64;

    /// Loads a line, each word single-copy atomic and in no particular order: bit 63 of its words, bit i for word i, and word
    /// 0 as it was when the bits were taken.
    fn load_tops(&mut self, line: u32) -> (u8, u64);

    /// Hints that a line will be loaded soon.
    #[inline]
    fn prefetch(&mut self, _line: u32) {}
}

/// The sender's end of the credits: a word in memory local to the sender, pushed by the receiver.
pub trait CreditSource {
    /// Lines freed since the window was made, as last pushed. Acquire: pairs with [`CreditSink::publish`], so that a
    /// store made after this call cannot be overtaken by the receiver's re-blanking. The receiver is not trusted: the
    /// caller checks that the count neither runs backwards nor ahead of what was sent.
    fn freed_lines(&mut self) -> u64;
}

/// The receiver's end of the credits.
pub trait CreditSink {
    /// Pushes the absolute count of freed lines. Release: pairs with [`CreditSource::freed_lines`]. Wakes a sender
    /// that said that it sleeps.
    fn publish(&mut self, freed_lines: u64);
}
