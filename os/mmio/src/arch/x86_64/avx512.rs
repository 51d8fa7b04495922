//! The store kernels that make the line in one 64-byte register.
//!
//! A header and its payload are joined in registers (`vmovdqu8` under a mask, `valignq`), straight from the caller's
//! memory. The mask also keeps the load inside the caller's slice: bytes it leaves out are not accessed.

use core::arch::asm;

use beeline_contract_memory::Line;

use super::store::{movdir64b, movnti};
use crate::arch::{KernelLines, LineKernel, kernel_port, words};

/// The kernels that differ in the last instruction only: a line in `zmm16`, stored by `$store`.
macro_rules! avx512_kernel {
    ($name:ident, $store:literal, $word:path) => {
        pub(crate) struct $name;

        impl LineKernel for $name {
            #[inline(always)]
            unsafe fn words(line: *mut u8, words: &Line) {
                // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
                // (`KernelLines::new`); `features::kernel` chose it on a CPU with AVX-512.
                unsafe {
                    asm!(
                        "vmovq xmm16, qword ptr [{words}]", "vmovhps xmm16, xmm16, qword ptr [{words} + 8]",
                        "vmovq xmm17, qword ptr [{words} + 16]", "vmovhps xmm17, xmm17, qword ptr [{words} + 24]",
                        "vmovq xmm18, qword ptr [{words} + 32]", "vmovhps xmm18, xmm18, qword ptr [{words} + 40]",
                        "vmovq xmm19, qword ptr [{words} + 48]", "vmovhps xmm19, xmm19, qword ptr [{words} + 56]",
                        "vinserti32x4 ymm16, ymm16, xmm17, 1",
                        "vinserti32x4 ymm18, ymm18, xmm19, 1",
                        "vinserti64x4 zmm16, zmm16, ymm18, 1",
                        $store,
                        line = in(reg) line, words = in(reg) words.as_ptr(),
                        out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
                        options(nostack, preserves_flags),
                    );
                }
            }

            #[inline(always)]
            unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
                // SAFETY: `bytes` is a reference to 64 bytes, read without alignment; `line` is 64 mapped, writable
                // bytes, aligned to 64 and accessed by atomics and asm only (`KernelLines::new`); `features::kernel`
                // chose it on a CPU with AVX-512.
                unsafe {
                    asm!(
                        "vmovdqu64 zmm16, [{bytes}]",
                        $store,
                        line = in(reg) line, bytes = in(reg) bytes, out("xmm16") _,
                        options(nostack, preserves_flags),
                    );
                }
            }

            #[inline(always)]
            unsafe fn word(word: *mut u8, value: u64) {
                // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8 and accessed by atomics and asm only
                // (`KernelLines::word`).
                unsafe { $word(word, value) }
            }
        }

        kernel_port! {
            $name {
                #[inline(always)]
                fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]) {
                    let line = self.line(line);
                    // SAFETY: the mask lets no byte past `payload` be loaded; `line` is writable (`KernelLines::new`).
                    unsafe {
                        asm!(
                            "kmovq k1, {mask}",
                            "vmovdqu8 zmm16{{k1}}{{z}}, [{payload}]",
                            "vpbroadcastq zmm17, {header}",
                            "valignq zmm16, zmm16, zmm17, 7",
                            $store,
                            line = in(reg) line, header = in(reg) header,
                            payload = in(reg) payload.as_ptr(), mask = in(reg) byte_mask(payload.len(), 56),
                            out("xmm16") _, out("xmm17") _, out("k1") _,
                            options(nostack, preserves_flags),
                        );
                    }
                }

                #[inline(always)]
                fn store_head_line_unless(&mut self, line: u32, header: u64, payload: &[u8], blank: u64) -> bool {
                    let line = self.line(line);
                    // SAFETY: the mask lets no byte past `payload` be loaded; `line` is writable (`KernelLines::new`).
                    unsafe {
                        asm!(
                            "kmovq k1, {mask}",
                            "vmovdqu8 zmm16{{k1}}{{z}}, [{payload}]",
                            "vpbroadcastq zmm17, {header}",
                            "vpbroadcastq zmm18, {blank}",
                            "valignq zmm16, zmm16, zmm17, 7",
                            "vpcmpeqq k1, zmm16, zmm18",
                            "kortestw k1, k1",
                            "jnz {found}",
                            $store,
                            line = in(reg) line, header = in(reg) header, blank = in(reg) blank,
                            payload = in(reg) payload.as_ptr(), mask = in(reg) byte_mask(payload.len(), 56),
                            found = label { return false },
                            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("k1") _,
                            options(nostack),
                        );
                    }
                    true
                }

                #[inline(always)]
                fn store_prefixed_line_unless(
                    &mut self,
                    line: u32,
                    header: u64,
                    prefix: u64,
                    payload: &[u8],
                    blank: u64,
                ) -> bool {
                    let line = self.line(line);
                    // SAFETY: the mask lets no byte past `payload` be loaded; `line` is writable (`KernelLines::new`).
                    unsafe {
                        asm!(
                            "kmovq k1, {mask}",
                            "vmovdqu8 zmm16{{k1}}{{z}}, [{payload}]",
                            "vmovq xmm17, {header}",
                            "vmovq xmm18, {prefix}",
                            "vpunpcklqdq xmm17, xmm17, xmm18",
                            "vshufi64x2 zmm17, zmm17, zmm17, 0",
                            "vpbroadcastq zmm18, {blank}",
                            "valignq zmm16, zmm16, zmm17, 6",
                            "vpcmpeqq k1, zmm16, zmm18",
                            "kortestw k1, k1",
                            "jnz {found}",
                            $store,
                            line = in(reg) line, header = in(reg) header, prefix = in(reg) prefix,
                            blank = in(reg) blank, payload = in(reg) payload.as_ptr(),
                            mask = in(reg) byte_mask(payload.len(), 48), found = label { return false },
                            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("k1") _,
                            options(nostack),
                        );
                    }
                    true
                }

                #[inline(always)]
                fn store_padded_line(&mut self, line: u32, bytes: &[u8]) {
                    let line = self.line(line);
                    // SAFETY: the mask lets no byte past `bytes` be loaded; `line` is writable (`KernelLines::new`).
                    unsafe {
                        asm!(
                            "kmovq k1, {mask}",
                            "vmovdqu8 zmm16{{k1}}{{z}}, [{bytes}]",
                            $store,
                            line = in(reg) line, bytes = in(reg) bytes.as_ptr(), mask = in(reg) byte_mask(bytes.len(), 64),
                            out("xmm16") _, out("k1") _,
                            options(nostack, preserves_flags),
                        );
                    }
                }
            }
        }
    };
}

avx512_kernel!(CachedAvx512, "vmovdqa64 [{line}], zmm16", words::store_word);
avx512_kernel!(NtAvx512, "vmovntdq [{line}], zmm16", movnti);

/// One bit for each of the first `bytes` bytes. Panics when there are more than `limit`, at most 64.
#[inline(always)]
fn byte_mask(bytes: usize, limit: usize) -> u64 {
    if bytes > limit {
        too_long(bytes, limit);
    }
    if bytes == 64 { u64::MAX } else { (1 << bytes) - 1 }
}

#[cold]
#[inline(never)]
fn too_long(bytes: usize, limit: usize) -> ! {
    panic!("{bytes} bytes in a line that has room for {limit}")
}

/// Where a line is put together for `movdir64b`: in one piece, so that it can be forwarded from the store buffer.
#[repr(align(64))]
struct Stage(core::mem::MaybeUninit<[u8; 64]>);

impl Stage {
    #[inline(always)]
    fn new() -> Self {
        Stage(core::mem::MaybeUninit::uninit())
    }

    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// The stage as a window of one line.
    #[inline(always)]
    fn port(&mut self) -> KernelLines<CachedAvx512> {
        // SAFETY: the stage is 64 aligned bytes of our own, and outlives the port, which is used at once; a kernel that
        // stages with AVX-512 is only chosen on a CPU that has it.
        unsafe { KernelLines::new(self.start(), 1) }
    }
}

/// One `movdir64b`, its source staged by one 64-byte store.
pub(crate) struct Movdir64bAvx512;

impl LineKernel for Movdir64bAvx512 {
    #[inline(always)]
    unsafe fn words(line: *mut u8, words: &Line) {
        let mut stage = Stage::new();
        // SAFETY: the stage is 64 aligned bytes of our own.
        unsafe { CachedAvx512::words(stage.start(), words) };
        // SAFETY: the stage was written whole by the line above; `line` is 64 mapped, writable bytes, aligned to 64 and
        // accessed by atomics and asm only (`KernelLines::new`); `features::kernel` chose it on a CPU with MOVDIR64B
        // and AVX-512.
        unsafe { movdir64b(line, stage.start()) }
    }

    #[inline(always)]
    unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
        // SAFETY: `bytes` is a reference to 64 bytes; `line` is 64 mapped, writable bytes, aligned to 64 and accessed
        // by atomics and asm only (`KernelLines::new`); `features::kernel` chose it on a CPU with MOVDIR64B and
        // AVX-512.
        unsafe { movdir64b(line, bytes.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn word(word: *mut u8, value: u64) {
        // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8 and accessed by atomics and asm only
        // (`KernelLines::word`).
        unsafe { movnti(word, value) }
    }
}

kernel_port! {
    Movdir64bAvx512 {
        #[inline(always)]
        fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]) {
            let mut stage = Stage::new();
            stage.port().store_head_line(0, header, payload);
            // SAFETY: `line` is a line of the window (`KernelLines::line`); the stage was just written whole.
            unsafe { movdir64b(self.line(line), stage.start()) }
        }

        #[inline(always)]
        fn store_padded_line(&mut self, line: u32, bytes: &[u8]) {
            let mut stage = Stage::new();
            stage.port().store_padded_line(0, bytes);
            // SAFETY: `line` is a line of the window (`KernelLines::line`); the stage was just written whole.
            unsafe { movdir64b(self.line(line), stage.start()) }
        }
    }
    store_head_line_unless, store_prefixed_line_unless
}
