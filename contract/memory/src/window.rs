//! The two ends of a window and the credits that flow back.

use crate::Line;

/// Where a sender's stores go: the lines of a window, a BAR's or a peer's. Write-only by construction.
pub trait StorePort {
    /// Lines of the window, a power of two.
    fn lines(&self) -> u32;

    /// Stores a whole line. Each word is single-copy atomic; the line need not arrive whole or in order.
    fn store_line(&mut self, line: u32, words: &Line);

    /// Stores one word (`word < 8`) of a line.
    fn store_word(&mut self, line: u32, word: u32, value: u64);

    /// Stores consecutive whole lines from `bytes` (a multiple of 64, not past the end of the window).
    ///
    /// Implementors override it to store straight from the caller's memory.
    #[inline]
    fn store_lines(&mut self, first_line: u32, bytes: &[u8]) {
        for (line, chunk) in (first_line..).zip(bytes.chunks_exact(64)) {
            let mut words = [0; 8];
            for (word, bytes) in words.iter_mut().zip(chunk.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            self.store_line(line, &words);
        }
    }

    /// Stores the first line of a message whole: `header`, at most 56 bytes of `payload`, zeros.
    ///
    /// Implementors override it to make the line in a vector register, straight from the caller's memory: eight
    /// words staged in memory and loaded as a vector cost more than the store itself.
    #[inline]
    fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]) {
        let mut words = [header, 0, 0, 0, 0, 0, 0, 0];
        crate::fill_words(&mut words[1..], payload);
        self.store_line(line, &words);
    }

    /// As [`StorePort::store_head_line`], unless a whole word of `payload` equals `blank`: then nothing is stored. Says
    /// whether the line was stored.
    ///
    /// Implementors override it to compare the line while they have it in a register. What is compared besides whole
    /// words of the payload (the header, padding) must not matter: `blank` has bit 63 set, those have it clear.
    #[inline(always)]
    fn store_head_line_unless(&mut self, line: u32, header: u64, payload: &[u8], blank: u64) -> bool {
        let found = payload.as_chunks::<8>().0.iter().any(|word| u64::from_le_bytes(*word) == blank);
        if !found {
            self.store_head_line(line, header, payload);
        }
        !found
    }

    /// As [`StorePort::store_head_line_unless`] with one more word, `prefix`, between the header and at most 48 bytes of
    /// `payload`; `prefix` is compared too. Overridden for the same reason.
    #[inline(always)]
    fn store_prefixed_line_unless(
        &mut self,
        line: u32,
        header: u64,
        prefix: u64,
        payload: &[u8],
        blank: u64,
    ) -> bool {
        let mut words = [header, prefix, 0, 0, 0, 0, 0, 0];
        crate::fill_words(&mut words[2..], payload);
        let found = words.contains(&blank);
        if !found {
            self.store_line(line, &words);
        }
        !found
    }

    /// Stores the last line of a message whole: at most 64 `bytes`, zeros. Overridden for the same reason.
    #[inline]
    fn store_padded_line(&mut self, line: u32, bytes: &[u8]) {
        let mut words = [0; 8];
        crate::fill_words(&mut words, bytes);
        self.store_line(line, &words);
    }

    /// Whether a whole word of `payload` equals `word`: asked before a payload of several lines is stored, whose header
    /// must say where it is escaped. Overridden where the CPU has wider comparisons than the compiler may use.
    #[inline]
    fn has_word(&self, payload: &[u8], word: u64) -> bool {
        crate::has_word(payload, word)
    }

    /// How many lines in front of its stores a sender does well to call [`StorePort::prefetch`]; 0: it never should.
    #[inline]
    fn prefetch_lines(&self) -> u32 {
        0
    }

    /// Hints that a line will be stored soon. Only for lines that are free: the receiver does not look at those.
    #[inline]
    fn prefetch(&mut self, _line: u32) {}

    /// Makes every earlier store of this port visible before any later one. Only fence policies other than `none`
    /// call it; the principle is that nobody needs to.
    fn fence(&mut self);

    /// Lets a port that holds stores back on purpose (the ordering adversary) release them; called once a message
    /// and whenever the sender waits. Real ports do nothing.
    #[inline]
    fn progress(&mut self) {}
}

/// The receiver's side of a window in memory: it loads what has arrived and re-blanks what it frees.
pub trait LoadPort {
    /// Lines of the window, a power of two.
    fn lines(&self) -> u32;

    /// Loads one word; single-copy atomic. Consecutive loads of a word may give different values if the peer is
    /// hostile: read once, check, use.
    fn load_word(&mut self, line: u32, word: u32) -> u64;

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

    /// Overwrites a whole line with `blank`, ordered after this side's loads of it and before a later
    /// [`CreditSink::publish`].
    fn blank_line(&mut self, line: u32, blank: u64);

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

    /// Called after a message's last store: wakes the receiver if it said that it sleeps.
    #[inline]
    fn message_stored(&mut self) {}
}

/// The receiver's end of the credits.
pub trait CreditSink {
    /// Pushes the absolute count of freed lines. Release: pairs with [`CreditSource::freed_lines`]. Wakes a sender
    /// that said that it sleeps.
    fn publish(&mut self, freed_lines: u64);
}
