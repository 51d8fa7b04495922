//! What depends on the instruction set: stores, loads, copies, fences and the tick counter.
//!
//! Each folder offers the same names; this file picks one. The portable twin stands in for instruction sets without
//! one, and for Miri, which runs no asm. A pointer is checked where a handle is made of it.

use core::marker::PhantomData;

use beeline_contract_memory::Line;

use crate::LINE_BYTES;

#[cfg_attr(all(target_arch = "x86_64", not(miri)), path = "x86_64/mod.rs")]
#[cfg_attr(all(target_arch = "aarch64", not(miri)), path = "aarch64/mod.rs")]
#[cfg_attr(
    not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))),
    path = "portable/mod.rs"
)]
mod chosen;
pub(crate) mod pieces;
pub(crate) mod words;

pub(crate) use chosen::*;

/// A store kernel: one asm block for each form of source (words, bytes, one word), no fence, no lock.
///
/// # Safety
/// For every function: `line` is 64 mapped, writable bytes, aligned to 64, that are only accessed by atomics and asm;
/// `word` is 8 such bytes, aligned to 8; and the CPU has the instructions.
pub(crate) trait LineKernel {
    /// Stores words that were just computed: in registers, or in memory by 8-byte stores that a wider load would
    /// have to wait for. So it loads them in words.
    unsafe fn words(line: *mut u8, words: &Line);

    /// Stores 64 bytes of the caller's memory, at any alignment.
    unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]);

    unsafe fn word(word: *mut u8, value: u64);
}

/// The lines of a window as the kernel `K` stores to them: a [`StorePort`] without a mapping of its own.
pub(crate) struct KernelLines<K> {
    start: *mut u8,
    mask: u32,
    kernel: PhantomData<K>,
}

// SAFETY: whoever made it said that the lines may be accessed by any thread, with atomics and asm only (`new`).
unsafe impl<K> Send for KernelLines<K> {}
// SAFETY: as for `Send`; through a shared reference nothing is stored.
unsafe impl<K> Sync for KernelLines<K> {}

impl<K> KernelLines<K> {
    /// # Safety
    /// From `start`, aligned to 64, on there are `lines` lines, a power of two: mapped and writable as long as this
    /// exists, on every thread, and only accessed by atomics and asm. The CPU has the kernel's instructions.
    #[inline(always)]
    pub(crate) unsafe fn new(start: *mut u8, lines: u32) -> Self {
        KernelLines { start, mask: lines - 1, kernel: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn lines(&self) -> u32 {
        self.mask + 1
    }

    /// Where a line starts. Line numbers are taken modulo the number of lines, so that none reaches outside.
    #[inline(always)]
    pub(crate) fn line(&self, line: u32) -> *mut u8 {
        self.start.wrapping_add((line & self.mask) as usize * LINE_BYTES)
    }

    /// Where a word of a line starts.
    #[inline(always)]
    pub(crate) fn word(&self, line: u32, word: u32) -> *mut u8 {
        self.line(line).wrapping_add((word & 7) as usize * 8)
    }

    /// Splits a run of lines that starts at `first_line`. Panics when `bytes` are not whole lines or reach past the end.
    #[inline(always)]
    pub(crate) fn run<'a>(&self, first_line: u32, bytes: &'a [u8]) -> &'a [[u8; LINE_BYTES]] {
        let (run, rest) = bytes.as_chunks::<LINE_BYTES>();
        let first = first_line & self.mask;
        if !rest.is_empty() || run.len() > (self.lines() - first) as usize {
            refuse_run(bytes.len(), first, self.lines());
        }
        run
    }
}

/// By value: arguments that are formatted in place are stored to the stack for every line, and such a store takes a place
/// between the lines in the store buffer, so that half as many lines are on their way at a time.
#[cold]
#[inline(never)]
fn refuse_run(bytes: usize, first: u32, lines: u32) -> ! {
    panic!("{bytes} bytes from line {first} of a window of {lines} lines")
}

/// Makes [`KernelLines`] of a kernel a [`StorePort`]: `kernel_port! { Kernel { own methods } other, methods }`, where
/// the other methods are those that the kernel has no better code for than
/// [`store_port_default`](beeline_contract_memory::store_port_default).
macro_rules! kernel_port {
    ($kernel:ty { $($own:tt)* } $($default:ident),*) => {
        impl beeline_contract_memory::StorePort for $crate::arch::KernelLines<$kernel> {
            #[inline(always)]
            fn lines(&self) -> u32 {
                self.lines()
            }

            #[inline(always)]
            fn store_line(&mut self, line: u32, words: &Line) {
                // SAFETY: `line` masks into the lines; what they are was promised to `KernelLines::new`.
                unsafe { <$kernel as $crate::arch::LineKernel>::words(self.line(line), words) }
            }

            #[inline(always)]
            fn store_word(&mut self, line: u32, word: u32, value: u64) {
                // SAFETY: inside the line and aligned, as `KernelLines::word` makes it; the rest as for `store_line`.
                unsafe { <$kernel as $crate::arch::LineKernel>::word(self.word(line, word), value) }
            }

            #[inline(always)]
            fn store_lines(&mut self, first_line: u32, bytes: &[u8]) {
                let run = self.run(first_line, bytes);
                let first = self.line(first_line);
                for (i, bytes) in run.iter().enumerate() {
                    let line = first.wrapping_add(i * $crate::LINE_BYTES);
                    // SAFETY: `run` checked that the line is not past the end; the rest as for `store_line`.
                    unsafe { <$kernel as $crate::arch::LineKernel>::bytes(line, bytes) }
                }
            }

            $($own)*

            #[inline(always)]
            fn prefetch(&mut self, line: u32) {
                $crate::arch::prefetch_to_write(self.line(line));
            }

            #[inline]
            fn fence(&mut self) {
                $crate::fence::order_stores();
            }

            // A function for each kernel: the loops of all of them in one are more than the compiler keeps in registers.
            #[inline(never)]
            fn run_stores<T: beeline_contract_memory::StoreTask>(&mut self, task: T) -> T::Output {
                task.run(self)
            }

            beeline_contract_memory::store_port_default! {
                has_word, prefetch_lines, wake_receiver, progress $(, $default)*
            }
        }
    };
    // A kernel that has nothing better for any of them.
    ($kernel:ty) => {
        $crate::arch::kernel_port! {
            $kernel {} store_head_line, store_head_line_unless, store_prefixed_line_unless, store_padded_line
        }
    };
}
pub(crate) use kernel_port;

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

/// Defines the store kernels of an instruction set as values: `Kernel` names one, `KernelPort` is the lines of a window
/// as one of them stores to them. The match is one well predicted branch a line, which costs less than a call through a
/// pointer.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident => $kernel:ty,)*) => {
        /// A store kernel of this instruction set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kernel {
            $($(#[$doc])* $name,)*
        }

        impl Kernel {
            /// # Safety
            /// As for [`KernelLines::new`](crate::arch::KernelLines::new).
            pub(crate) unsafe fn port(self, start: *mut u8, lines: u32) -> KernelPort {
                match self {
                    // SAFETY: `start` and `lines` are of a run of lines as `KernelLines::new` asks for, this function's
                    // own contract; `StoreWindow` cuts it from a span, and a `Kernel` is only made on a CPU that has
                    // its instructions.
                    $(Kernel::$name => KernelPort::$name(unsafe { $crate::arch::KernelLines::new(start, lines) }),)*
                }
            }
        }

        /// The lines of a window, with the kernel that stores to them.
        pub(crate) enum KernelPort {
            $($name($crate::arch::KernelLines<$kernel>),)*
        }

        impl beeline_contract_memory::StorePort for KernelPort {
            beeline_contract_memory::forward_store_port! {
                |this| match this { $(KernelPort::$name(lines) => lines),* };
                lines, stores, hints, fence, wake_receiver, progress
            }
        }
    };
}
pub(crate) use kernels;
