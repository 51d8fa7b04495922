//! A window to store into.

use beeline_contract_memory::{StorePort, forward_store_port};

use crate::arch::{Kernel, KernelPort, ScanKernel};
use crate::span::Span;
use crate::{LINE_BYTES, StoreKernel};

/// The lines of a window, write-only, stored with one kernel. Not `Clone`: a window has one writer.
///
/// Line numbers are taken modulo the number of lines, so that no number reaches outside the window and none is
/// checked. Costs of one line are in `bench/`; the kernels themselves in `arch/`.
pub struct StoreWindow {
    port: KernelPort,
    scan: ScanKernel,
    kernel: StoreKernel,
    /// Keeps the lines of `port` mapped.
    span: Span,
}

impl StoreWindow {
    #[track_caller]
    pub(crate) fn new(span: Span, name: StoreKernel) -> Self {
        let Some(kernel) = crate::arch::kernel(name) else {
            let lacks = crate::arch::lacks(name).unwrap_or("another CPU");
            panic!("store kernel {name} cannot run here: it needs {lacks}");
        };
        Self::with_kernel(span, name, kernel)
    }

    /// `kernel` is one that [`crate::arch`] gave, so that the CPU has it.
    pub(crate) fn with_kernel(span: Span, name: StoreKernel, kernel: Kernel) -> Self {
        let lines = u32::try_from(span.bytes() / LINE_BYTES).expect("made of a u32 number of lines");
        assert!(lines.is_power_of_two() && span.start().addr().is_multiple_of(LINE_BYTES));
        // SAFETY: the span is `lines` aligned lines, as just checked, which stay mapped as long as it is kept beside
        // the port; they are shared with peers, so this crate accesses them by atomics and asm only. The CPU has the
        // kernel.
        let port = unsafe { kernel.port(span.start(), lines) };
        StoreWindow { port, scan: ScanKernel::best(), kernel: name, span }
    }

    /// Stores with another kernel from now on. Lines that were stored with the last one stay as they are: a line is stored again
    /// only after its receiver has seen every word of it, so that no order between two kernels matters.
    ///
    /// # Panics
    /// If this machine lacks the kernel's instructions, as making the window with it does.
    #[track_caller]
    pub fn set_kernel(&mut self, name: StoreKernel) {
        if name != self.kernel {
            *self = Self::new(self.span.clone(), name);
        }
    }

    /// The kernel that stores its lines.
    pub fn kernel(&self) -> StoreKernel {
        self.kernel
    }
}

impl std::fmt::Debug for StoreWindow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("StoreWindow").field("span", &self.span).field("kernel", &self.kernel).finish()
    }
}

impl StorePort for StoreWindow {
    forward_store_port! { |this| this.port; lines, stores, prefetch, fence, wake_receiver, progress }

    #[inline(always)]
    fn has_word(&self, payload: &[u8], word: u64) -> bool {
        self.scan.has_word(payload, word)
    }

    /// Lines of a cached window lie in the receiver's cache. Stores that come with others in between, as messages do,
    /// fetch them one after the other (25 ns each in a window of 64 KiB); asked for in time, they come together (7 ns).
    /// Further ahead is better up to 32 lines, but in a small window that is where the receiver still works (a quarter
    /// of the rate with 32 lines ahead of 512).
    #[inline]
    fn prefetch_lines(&self) -> u32 {
        if self.kernel == StoreKernel::Cached { (self.lines() / 64).clamp(8, 32) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Region;

    #[test]
    fn line_numbers_wrap() {
        let region = Region::private(4096);
        let mut window = region.store_window(0, 4, StoreKernel::Cached);
        window.store_line(7, &[3; 8]);
        window.store_word(u32::MAX, 8, 9);
        assert_eq!((region.word(192).load(), region.word(200).load()), (9, 3));
    }

    #[test]
    #[should_panic(expected = "128 bytes from line 3 of a window of 4 lines")]
    fn lines_past_the_end_are_refused() {
        Region::private(4096).store_window(0, 4, StoreKernel::Cached).store_lines(3, &[0; 128]);
    }

    #[test]
    #[should_panic(expected = "the number must be a power of two")]
    fn a_window_is_a_power_of_two() {
        Region::private(4096).store_window(0, 3, StoreKernel::Cached);
    }

    #[test]
    fn a_window_outlives_its_region() {
        let region = Region::private(4096);
        let load = region.load_window(0, 4);
        let mut store = region.store_window(0, 4, StoreKernel::Cached);
        drop(region);
        store.store_head_line(1, 5, b"payload");
        drop(store);
        use beeline_contract_memory::LoadPort;
        assert_eq!(load.load_word(1, 0), 5);
    }
}
