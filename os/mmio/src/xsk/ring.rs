//! One ring shared with the kernel: two free-running 32-bit indices and a power of two of entries.
//!
//! Each index has one writer. The other side's index is checked against our own before it is used, and entries are
//! found by masking, so that no value the kernel, or whatever wrote over the ring, could leave there reaches outside.

use super::error::{XskError, XskRing};
use crate::Region;
use crate::span::Span;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Where in a mapping the parts of a ring are, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: u64,
    pub(super) consumer: u64,
    /// Missing before Linux 5.4.
    pub(super) flags: Option<u64>,
    pub(super) entries: u64,
}

/// What the kernel sets in a ring's flags when it wants to be told of new entries (`XDP_RING_NEED_WAKEUP`).
const NEED_WAKEUP: u32 = 1;

/// The parts of a ring that both halves have.
struct Ring {
    name: XskRing,
    producer: Span,
    consumer: Span,
    flags: Option<Span>,
    entries: Span,
    /// Words of 8 bytes of each entry.
    entry_words: usize,
    size: u32,
}

impl Ring {
    fn new(region: &Region, layout: Layout, name: XskRing, size: u32) -> Result<Self, XskError> {
        debug_assert!(size.is_power_of_two());
        let entry_words = entry_bytes(name) / 8;
        let part = |offset: u64, bytes: usize, alignment: usize| {
            let wrong = XskError::Layout { ring: name, offset, bytes: region.bytes() };
            let Ok(start) = usize::try_from(offset) else { return Err(wrong) };
            let fits = start.checked_add(bytes).is_some_and(|end| end <= region.bytes());
            match fits && start.is_multiple_of(alignment) {
                true => Ok(region.span(start, bytes, alignment)),
                false => Err(wrong),
            }
        };
        Ok(Ring {
            name,
            producer: part(layout.producer, 4, 4)?,
            consumer: part(layout.consumer, 4, 4)?,
            flags: layout.flags.map(|offset| part(offset, 4, 4)).transpose()?,
            entries: part(layout.entries, size as usize * entry_words * 8, 8)?,
            entry_words,
            size,
        })
    }

    /// The `word`th word of the entry that this index stands for.
    #[inline(always)]
    fn entry(&self, index: u32, word: usize) -> &AtomicU64 {
        let slot = (index & (self.size - 1)) as usize;
        let at = (slot * self.entry_words + word) * 8;
        debug_assert!(word < self.entry_words && at + 8 <= self.entries.bytes());
        // SAFETY: the slot is below `size` by the mask and the word below `entry_words` (both callers pass constants
        // that `entry_bytes` allows), `Ring::new` made the span `size * entry_words` words long and aligned to 8, and
        // the mapping lives as long as `self`. Both sides access it by aligned stores and loads only.
        unsafe { AtomicU64::from_ptr(self.entries.start().wrapping_add(at).cast()) }
    }

    #[cold]
    fn impossible(&self, producer: u32, consumer: u32) -> XskError {
        XskError::Index { ring: self.name, producer, consumer, entries: self.size }
    }

    #[inline]
    fn wants_wakeup(&self) -> bool {
        // Relaxed: a hint; a kernel that asked just now is asked for again at the next look.
        self.flags.as_ref().is_none_or(|flags| index(flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0)
    }
}

#[inline(always)]
fn index(span: &Span) -> &AtomicU32 {
    // SAFETY: `Ring::new` made these spans 4 bytes long and aligned to 4, and the mapping lives as long as the span.
    // Both sides access them by aligned stores and loads only.
    unsafe { AtomicU32::from_ptr(span.start().cast()) }
}

/// Bytes of an entry of this ring: an address, or an address with a length and flags.
pub(super) const fn entry_bytes(ring: XskRing) -> usize {
    match ring {
        XskRing::Fill | XskRing::Completion => 8,
        XskRing::Receive | XskRing::Transmit => 16,
    }
}

/// The half that gives entries to the kernel.
pub(super) struct Giver {
    ring: Ring,
    /// Entries written so far; the kernel has seen those up to the last publication.
    produced: u32,
    published: u32,
    /// The kernel's index as last seen.
    consumed: u32,
}

impl Giver {
    pub(super) fn new(region: &Region, layout: Layout, name: XskRing, size: u32) -> Result<Self, XskError> {
        let ring = Ring::new(region, layout, name, size)?;
        // Relaxed: nothing was given yet; a ring that the kernel made begins with both at the same value.
        let produced = index(&ring.producer).load(Ordering::Relaxed);
        Ok(Giver { ring, produced, published: produced, consumed: produced })
    }

    /// Whether there is room for an entry. Looks at the kernel's index only when there was none at the last look.
    #[inline]
    pub(super) fn has_room(&mut self) -> Result<bool, XskError> {
        if self.produced.wrapping_sub(self.consumed) < self.ring.size {
            return Ok(true);
        }
        Ok(self.outstanding()? < self.ring.size)
    }

    /// Entries that the kernel has not taken yet.
    #[inline]
    pub(super) fn outstanding(&mut self) -> Result<u32, XskError> {
        // Acquire: pairs with the kernel's release of its consumer index (`__xskq_cons_release`); it has read the
        // entries that we may now write over.
        let seen = index(&self.ring.consumer).load(Ordering::Acquire);
        // What is outstanding can only become less, and never less than what the kernel was not shown yet.
        let outstanding = self.produced.wrapping_sub(seen);
        let most = self.produced.wrapping_sub(self.consumed);
        if outstanding > most || outstanding < self.unpublished() {
            return Err(self.ring.impossible(self.produced, seen));
        }
        self.consumed = seen;
        Ok(outstanding)
    }

    /// Writes an entry. There must be room: see [`Giver::has_room`]. The kernel sees it at the next publication.
    #[inline]
    pub(super) fn put(&mut self, address: u64, length: Option<u32>) {
        debug_assert!(self.produced.wrapping_sub(self.consumed) < self.ring.size);
        // Relaxed: ordered by `publish`.
        self.ring.entry(self.produced, 0).store(address, Ordering::Relaxed);
        if self.ring.entry_words == 2 {
            self.ring.entry(self.produced, 1).store(join(length.unwrap_or(0), 0), Ordering::Relaxed);
        }
        self.produced = self.produced.wrapping_add(1);
    }

    /// Shows the kernel everything that was put.
    #[inline]
    pub(super) fn publish(&mut self) {
        if self.published != self.produced {
            // Release: pairs with the kernel's acquire of the producer index (`__xskq_cons_peek`); the entries above,
            // and the bytes of their frames, are seen before it.
            index(&self.ring.producer).store(self.produced, Ordering::Release);
            self.published = self.produced;
        }
    }

    /// Entries that were put and not published.
    #[inline]
    pub(super) fn unpublished(&self) -> u32 {
        self.produced.wrapping_sub(self.published)
    }

    #[inline]
    pub(super) fn wants_wakeup(&self) -> bool {
        self.ring.wants_wakeup()
    }
}

/// The half that takes entries from the kernel.
pub(super) struct Taker {
    ring: Ring,
    consumed: u32,
    /// The kernel's index as last seen.
    produced: u32,
}

impl Taker {
    pub(super) fn new(region: &Region, layout: Layout, name: XskRing, size: u32) -> Result<Self, XskError> {
        let ring = Ring::new(region, layout, name, size)?;
        // Relaxed: what the kernel has given since is found by the acquire in `is_there`.
        let consumed = index(&ring.consumer).load(Ordering::Relaxed);
        Ok(Taker { ring, consumed, produced: consumed })
    }

    /// The entry that was given longest ago: its address, length and options; `None` when there is none.
    #[inline]
    pub(super) fn first(&mut self) -> Result<Option<(u64, u32, u32)>, XskError> {
        if self.consumed == self.produced && !self.look()? {
            return Ok(None);
        }
        // Relaxed: ordered by the acquire in `look`. Each word is read once.
        let address = self.ring.entry(self.consumed, 0).load(Ordering::Relaxed);
        let (length, options) = match self.ring.entry_words {
            2 => split(self.ring.entry(self.consumed, 1).load(Ordering::Relaxed)),
            _ => (0, 0),
        };
        Ok(Some((address, length, options)))
    }

    /// Looks at the kernel's index; whether there is an entry.
    #[inline]
    fn look(&mut self) -> Result<bool, XskError> {
        // Acquire: pairs with the kernel's release of its producer index (`xskq_prod_submit`); entries and frames were
        // written before it.
        let seen = index(&self.ring.producer).load(Ordering::Acquire);
        if seen.wrapping_sub(self.consumed) > self.ring.size {
            return Err(self.ring.impossible(seen, self.consumed));
        }
        self.produced = seen;
        Ok(seen != self.consumed)
    }

    /// Gives the slot of the entry that [`Taker::first`] gave back to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        debug_assert!(self.consumed != self.produced);
        self.consumed = self.consumed.wrapping_add(1);
        // Release: pairs with the kernel's control dependency on this index (`xskq_prod_nb_free`); our loads of the
        // entry are over before it may be written over.
        index(&self.ring.consumer).store(self.consumed, Ordering::Release);
    }
}

/// The second word of an entry, as the kernel lays it out: length, then options.
#[inline(always)]
pub(super) fn join(length: u32, options: u32) -> u64 {
    let [a, b, c, d] = length.to_ne_bytes();
    let [e, f, g, h] = options.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Length and options of an entry's second word.
#[inline(always)]
pub(super) fn split(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}
