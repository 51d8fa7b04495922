//! What depends on the instruction set: stores, loads, copies, fences and the tick counter.
//!
//! Each folder offers the same names; this file picks one. The portable twin stands in for instruction sets without
//! one, and for Miri, which runs no asm. Nothing here checks bounds: handles do that when they are made.

use beeline_contract_memory::{Line, fill_words};

#[cfg_attr(all(target_arch = "x86_64", not(miri)), path = "x86_64/mod.rs")]
#[cfg_attr(all(target_arch = "aarch64", not(miri)), path = "aarch64/mod.rs")]
#[cfg_attr(
    not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))),
    path = "portable/mod.rs"
)]
mod chosen;
pub(crate) mod words;

pub(crate) use chosen::*;

/// One way to store a line. Implementors are the store kernels: one asm block each, no fence, no lock.
///
/// # Safety
/// For every function: `line` is 64 mapped, writable bytes, aligned to 64, that are only accessed by atomics and asm;
/// `word` is 8 such bytes, aligned to 8; and the CPU has the instructions.
pub(crate) trait LineStore {
    /// Stores words that were just computed: in registers, or in memory by 8-byte stores that a wider load would
    /// have to wait for. So it loads them in words.
    unsafe fn words(line: *mut u8, words: &Line);

    /// Stores 64 bytes of the caller's memory, at any alignment.
    unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]);

    /// Stores a header and at most 56 bytes, padded with zeros.
    #[inline]
    unsafe fn head(line: *mut u8, header: u64, payload: &[u8]) {
        let mut words = [header, 0, 0, 0, 0, 0, 0, 0];
        fill_words(&mut words[1..], payload);
        // SAFETY: the caller's promise about `line`.
        unsafe { Self::words(line, &words) }
    }

    /// Stores a header and at most 56 bytes, padded with zeros, unless one of their words is `blank`, which has bit 63
    /// set where header and padding have it clear. Says whether it did.
    #[inline(always)]
    unsafe fn head_unless(line: *mut u8, header: u64, payload: &[u8], blank: u64) -> bool {
        let found = payload.as_chunks::<8>().0.iter().any(|word| u64::from_le_bytes(*word) == blank);
        if !found {
            // SAFETY: the caller's promise about `line`.
            unsafe { Self::head(line, header, payload) }
        }
        !found
    }

    /// As [`LineStore::head_unless`] with one more word, `prefix`, before at most 48 bytes.
    #[inline(always)]
    unsafe fn prefixed_unless(line: *mut u8, header: u64, prefix: u64, payload: &[u8], blank: u64) -> bool {
        let mut words = [header, prefix, 0, 0, 0, 0, 0, 0];
        fill_words(&mut words[2..], payload);
        let found = words.contains(&blank);
        if !found {
            // SAFETY: the caller's promise about `line`.
            unsafe { Self::words(line, &words) }
        }
        !found
    }

    /// Stores at most 64 bytes, padded with zeros.
    #[inline]
    unsafe fn padded(line: *mut u8, bytes: &[u8]) {
        let mut words = [0; 8];
        fill_words(&mut words, bytes);
        // SAFETY: the caller's promise about `line`.
        unsafe { Self::words(line, &words) }
    }

    unsafe fn word(word: *mut u8, value: u64);
}

/// Searching a payload for a word where the compiler's own code is as good as any.
#[cfg(any(not(target_arch = "x86_64"), miri))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortableScan;

#[cfg(any(not(target_arch = "x86_64"), miri))]
impl PortableScan {
    /// The only one there is.
    pub(crate) fn best() -> Self {
        PortableScan
    }

    /// Whether a whole word of `bytes`, counted from their start, equals `word`.
    #[inline(always)]
    pub(crate) fn has_word(self, bytes: &[u8], word: u64) -> bool {
        beeline_contract_memory::has_word(bytes, word)
    }
}

/// Defines `Way`, the store kernels of an instruction set as values: a window holds one and calls through it. The
/// match is one well predicted branch a line, which costs less than a call through a pointer.
macro_rules! ways {
    ($($(#[$doc:meta])* $name:ident => $kernel:ty,)*) => {
        /// A store kernel of this instruction set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Way {
            $($(#[$doc])* $name,)*
        }

        impl Way {
            /// # Safety
            /// As for [`LineStore`].
            #[inline(always)]
            pub(crate) unsafe fn words(self, line: *mut u8, words: &Line) {
                match self {
                    // SAFETY: the caller's promise; a `Way` is only made for a CPU that has it.
                    $(Way::$name => unsafe { <$kernel>::words(line, words) },)*
                }
            }

            /// # Safety
            /// As for [`LineStore`], for `lines.len()` lines from `line` on.
            #[inline(always)]
            pub(crate) unsafe fn lines(self, line: *mut u8, lines: &[[u8; 64]]) {
                match self {
                    $(Way::$name => {
                        for (i, bytes) in lines.iter().enumerate() {
                            let line = line.wrapping_add(i * 64);
                            // SAFETY: the caller's promise; a `Way` is only made for a CPU that has it.
                            unsafe { <$kernel>::bytes(line, bytes) }
                        }
                    })*
                }
            }

            /// # Safety
            /// As for [`LineStore`].
            #[inline(always)]
            pub(crate) unsafe fn head(self, line: *mut u8, header: u64, payload: &[u8]) {
                match self {
                    // SAFETY: the caller's promise; a `Way` is only made for a CPU that has it.
                    $(Way::$name => unsafe { <$kernel>::head(line, header, payload) },)*
                }
            }

            /// # Safety
            /// As for [`LineStore`].
            #[inline(always)]
            pub(crate) unsafe fn head_unless(self, line: *mut u8, header: u64, payload: &[u8], blank: u64) -> bool {
                match self {
                    // SAFETY: the caller's promise; a `Way` is only made for a CPU that has it.
                    $(Way::$name => unsafe { <$kernel>::head_unless(line, header, payload, blank) },)*
                }
            }

            /// # Safety
            /// As for [`LineStore`].
            #[inline(always)]
            pub(crate) unsafe fn prefixed_unless(
                self,
                line: *mut u8,
                header: u64,
                prefix: u64,
                payload: &[u8],
                blank: u64,
            ) -> bool {
                match self {
                    // SAFETY: the caller's promise; a `Way` is only made for a CPU that has it.
                    $(Way::$name => unsafe {
                        <$kernel>::prefixed_unless(line, header, prefix, payload, blank)
                    },)*
                }
            }

            /// # Safety
            /// As for [`LineStore`].
            #[inline(always)]
            pub(crate) unsafe fn padded(self, line: *mut u8, bytes: &[u8]) {
                match self {
                    // SAFETY: the caller's promise; a `Way` is only made for a CPU that has it.
                    $(Way::$name => unsafe { <$kernel>::padded(line, bytes) },)*
                }
            }

            /// # Safety
            /// As for [`LineStore`].
            #[inline(always)]
            pub(crate) unsafe fn word(self, word: *mut u8, value: u64) {
                match self {
                    // SAFETY: the caller's promise; a `Way` is only made for a CPU that has it.
                    $(Way::$name => unsafe { <$kernel>::word(word, value) },)*
                }
            }
        }
    };
}
pub(crate) use ways;
