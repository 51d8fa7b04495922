//! Searching a payload for a word, before it is stored.

use core::arch::asm;

use super::features::{has_avx2, has_avx512};

/// How a payload is searched; chosen once a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanKernel {
    /// As the compiler makes it for every x86-64.
    Portable,
    /// As the compiler makes it for CPUs with AVX2; the baseline has no comparison of words in vectors.
    Avx2,
    /// 64 bytes a comparison.
    Avx512,
}

impl ScanKernel {
    /// The widest this CPU has.
    pub(crate) fn best() -> Self {
        match () {
            () if has_avx512() => ScanKernel::Avx512,
            () if has_avx2() => ScanKernel::Avx2,
            () => ScanKernel::Portable,
        }
    }

    /// Every kernel this CPU can run.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let mut kernels = vec![ScanKernel::Portable];
        kernels.extend(has_avx2().then_some(ScanKernel::Avx2));
        kernels.extend(has_avx512().then_some(ScanKernel::Avx512));
        kernels
    }

    /// Whether a whole word of `bytes`, counted from their start, equals `word`.
    #[inline(always)]
    pub(crate) fn has_word(self, bytes: &[u8], word: u64) -> bool {
        if bytes.len() <= 64 && self != ScanKernel::Avx512 {
            // Word by word: so short a payload was probably just written, and in words (`narrow.rs`).
            return bytes.as_chunks::<8>().0.iter().any(|found| u64::from_le_bytes(*found) == word);
        }
        if self == ScanKernel::Portable {
            return beeline_contract_memory::has_word(bytes, word);
        }
        if self == ScanKernel::Avx2 {
            // SAFETY: a `ScanKernel` is only made for a CPU that has it.
            return unsafe { has_word_avx2(bytes, word) };
        }
        let (lines, rest) = bytes.as_chunks::<64>();
        // A line that has the word ends the search.
        // SAFETY: a `ScanKernel` is only made for a CPU that has it.
        lines.iter().any(|line| unsafe { has_word_avx512(line, word) })
            || (rest.len() >= 8 && unsafe { has_word_avx512(rest, word) })
    }
}

#[target_feature(enable = "avx2")]
fn has_word_avx2(bytes: &[u8], word: u64) -> bool {
    beeline_contract_memory::has_word(bytes, word)
}

/// Searches the whole words of at most 64 bytes. The mask keeps the load inside `bytes`: what it leaves out is not
/// accessed.
///
/// # Safety
/// The CPU has AVX-512 (F and BW).
#[inline(always)]
unsafe fn has_word_avx512(bytes: &[u8], word: u64) -> bool {
    let words = (1u32 << (bytes.len() / 8).min(8)) - 1;
    let found: u32;
    // SAFETY: the mask has a bit for each whole word of `bytes` and no other; `ScanKernel::best` and `all` give the
    // AVX-512 kernel only on a CPU that has it.
    unsafe {
        asm!(
            "kmovw k1, {words:e}",
            "vpbroadcastq zmm16, {word}",
            "vpcmpeqq k2{{k1}}, zmm16, [{bytes}]",
            "kmovw {found:e}, k2",
            words = in(reg) words, word = in(reg) word, bytes = in(reg) bytes.as_ptr(), found = lateout(reg) found,
            out("xmm16") _, out("k1") _, out("k2") _,
            options(nostack, preserves_flags, readonly, pure),
        );
    }
    found != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_where_it_stands_and_nowhere_else() {
        let word = 0x8123_4567_89ab_cdefu64;
        for kernel in ScanKernel::all() {
            for count in 0..200usize {
                let mut bytes = vec![0x5a; count];
                assert!(!kernel.has_word(&bytes, word), "{kernel:?}, {count} bytes");
                for at in 0..count.saturating_sub(7) {
                    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                    // Only aligned to the payload's start is it a word of the message.
                    let is_word = at % 8 == 0;
                    assert_eq!(
                        kernel.has_word(&bytes, word),
                        is_word,
                        "{kernel:?}, {count} bytes, word at {at}"
                    );
                    bytes[at..at + 8].fill(0x5a);
                }
            }
        }
    }
}
