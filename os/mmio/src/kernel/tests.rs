//! Every kernel by its result on memory: what is stored stands where it should, and nothing else changes.

use beeline_contract_memory::StorePort;
use proptest::prelude::*;

use crate::arch::{Kernel, all_kernels};
use crate::{LINE_BYTES, Region, StoreKernel, StoreWindow};

const LINES: u32 = 8;
const BYTES: usize = LINES as usize * LINE_BYTES;
/// What memory holds before a store: bytes that no test stores.
const BEFORE: u8 = 0xc3;

/// All of a region as the window of one store kernel; kernels that this CPU has better ones for are tested too.
fn window(region: &Region, kernel: Kernel) -> StoreWindow {
    StoreWindow::with_kernel(region.span(0, BYTES, LINE_BYTES), StoreKernel::Cached, kernel)
}

/// Lets `store` store with every kernel, and compares all of memory with `expected`.
fn check(expected: &[u8; BYTES], store: impl Fn(&mut StoreWindow)) {
    for kernel in all_kernels() {
        let region = Region::private(BYTES);
        region.fill(0, BYTES, u64::from_ne_bytes([BEFORE; 8]));
        let mut window = window(&region, kernel);
        store(&mut window);
        window.fence();
        let mut found = [0; BYTES];
        region.copy_out(0, &mut found);
        assert_eq!(found, *expected, "{kernel:?}");
    }
}

fn memory_with(at: usize, bytes: &[u8]) -> [u8; BYTES] {
    let mut memory = [BEFORE; BYTES];
    memory[at..at + bytes.len()].copy_from_slice(bytes);
    memory
}

/// Bytes that differ from their neighbours, none of them 0 as padding is.
fn source<const N: usize>(seed: u64) -> [u8; N] {
    core::array::from_fn(|i| {
        (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32 * 7) as u8).wrapping_add(i as u8) | 1
    })
}

fn config() -> ProptestConfig {
    // Miri cannot keep files of failures, and is slow; the failing input is printed.
    let cases = if cfg!(miri) { 2 } else { 256 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_line_of_words_lands_whole(line in 0..LINES, words: [u64; 8]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        check(&memory_with(line as usize * 64, &bytes), |window| window.store_line(line, &words));
    }

    #[test]
    fn lines_land_from_any_alignment(
        line in 0..LINES, count in 0..=LINES, skip in 0usize..64, seed: u64,
    ) {
        let (count, source) = (count.min(LINES - line) as usize, source::<{ BYTES + 64 }>(seed));
        let bytes = &source[skip..skip + count * 64];
        check(&memory_with(line as usize * 64, bytes), |window| window.store_lines(line, bytes));
    }

    #[test]
    fn a_head_line_is_header_payload_and_zeros(
        line in 0..LINES, header: u64, length in 0usize..=56, skip in 0usize..64, seed: u64,
    ) {
        let source = source::<128>(seed);
        let payload = &source[skip..skip + length];
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&header.to_le_bytes());
        bytes[8..8 + length].copy_from_slice(payload);
        check(&memory_with(line as usize * 64, &bytes), |window| window.store_head_line(line, header, payload));
    }

    #[test]
    fn a_head_line_with_a_blank_is_not_stored(
        line in 0..LINES, header in 0..1u64 << 63, payload in prop::collection::vec(any::<u8>(), 0..=56), at in 0usize..9,
        blank in 1u64 << 63..,
    ) {
        let mut payload = payload;
        let words = payload.len() / 8;
        if at < words {
            payload[at * 8..][..8].copy_from_slice(&blank.to_le_bytes());
        }
        let stores = !payload.as_chunks::<8>().0.contains(&blank.to_le_bytes());
        prop_assert_eq!(stores, at >= words);
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&header.to_le_bytes());
        bytes[8..8 + payload.len()].copy_from_slice(&payload);
        let expected = if stores { memory_with(line as usize * 64, &bytes) } else { memory_with(0, &[]) };
        check(&expected, |window| {
            assert_eq!(window.store_head_line_unless(line, header, &payload, blank), stores);
        });
    }

    #[test]
    fn a_prefixed_line_with_a_blank_is_not_stored(
        line in 0..LINES, header in 0..1u64 << 63, prefix in 0..1u64 << 63,
        payload in prop::collection::vec(any::<u8>(), 0..=48), at in 0usize..9, blank in 1u64 << 63..,
    ) {
        let (mut payload, mut prefix) = (payload, prefix);
        let words = payload.len() / 8;
        match at {
            0 => prefix = blank,
            at if at <= words => payload[(at - 1) * 8..][..8].copy_from_slice(&blank.to_le_bytes()),
            _ => {}
        }
        let stores = prefix != blank && !payload.as_chunks::<8>().0.contains(&blank.to_le_bytes());
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&header.to_le_bytes());
        bytes[8..16].copy_from_slice(&prefix.to_le_bytes());
        bytes[16..16 + payload.len()].copy_from_slice(&payload);
        let expected = if stores { memory_with(line as usize * 64, &bytes) } else { memory_with(0, &[]) };
        check(&expected, |window| {
            assert_eq!(window.store_prefixed_line_unless(line, header, prefix, &payload, blank), stores);
        });
    }

    #[test]
    fn a_padded_line_ends_in_zeros(
        line in 0..LINES, length in 0usize..=64, skip in 0usize..64, seed: u64,
    ) {
        let source = source::<128>(seed);
        let mut bytes = [0; 64];
        bytes[..length].copy_from_slice(&source[skip..skip + length]);
        check(&memory_with(line as usize * 64, &bytes), |window| {
            window.store_padded_line(line, &source[skip..skip + length]);
        });
    }

    #[test]
    fn a_word_leaves_the_rest_of_its_line(line in 0..LINES, word in 0u32..8, value: u64) {
        let at = line as usize * 64 + word as usize * 8;
        check(&memory_with(at, &value.to_le_bytes()), |window| window.store_word(line, word, value));
    }
}

/// A payload that ends where mapped memory ends, or starts where it starts, is not read past its ends.
#[test]
#[cfg(not(miri))]
fn nothing_outside_the_callers_slice_is_read() {
    let page = rustix::param::page_size();
    let flags = rustix::mm::MapFlags::PRIVATE;
    let protection = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
    // SAFETY: a fresh range chosen by the kernel.
    let start =
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), 3 * page, protection, flags) }.unwrap();
    for around in [0, 2] {
        // SAFETY: a page of the range that was just mapped, which nobody uses.
        unsafe { rustix::mm::munmap(start.wrapping_byte_add(around * page), page) }.unwrap();
    }
    let first = start.cast::<u8>().wrapping_add(page);
    for length in 0..=64 {
        for from in [first, first.wrapping_add(page - length)] {
            // SAFETY: the first or the last bytes of the second page, which stays mapped to the end of the test.
            let payload = unsafe { std::slice::from_raw_parts(from, length) };
            for kernel in all_kernels() {
                let region = Region::private(BYTES);
                let mut window = window(&region, kernel);
                let (blank, head) = (1 << 63, &payload[..length.min(56)]);
                window.store_padded_line(1, payload);
                window.store_head_line(2, u64::MAX, head);
                assert!(window.store_head_line_unless(3, 7, head, blank), "{kernel:?}");
                assert!(window.store_prefixed_line_unless(4, 8, 9, &payload[..length.min(48)], blank));
                window.fence();
                let words = [64, 128, 192, 256].map(|at| region.word(at).load());
                assert_eq!(words, [0, u64::MAX, 7, 8], "{kernel:?}");
            }
        }
    }
    // SAFETY: the page that is left, which nobody uses any more.
    unsafe { rustix::mm::munmap(first.cast(), page) }.unwrap();
}

#[test]
fn more_than_a_line_is_refused() {
    for kernel in all_kernels() {
        let region = Region::private(BYTES);
        for (length, head) in [(65, false), (57, true)] {
            let attempt = std::panic::AssertUnwindSafe(|| {
                let mut window = window(&region, kernel);
                if head {
                    window.store_head_line(0, 1, &[1; 65][..length]);
                } else {
                    window.store_padded_line(0, &[1; 65][..length]);
                }
            });
            assert!(std::panic::catch_unwind(attempt).is_err(), "{kernel:?} took {length} bytes");
        }
        assert_eq!(region.word(0).load(), 0, "{kernel:?} stored something");
    }
}

#[test]
fn names_are_read_back() {
    for kernel in StoreKernel::ALL {
        assert_eq!(kernel.name().parse(), Ok(kernel));
        assert_eq!(kernel.name().to_uppercase().parse(), Ok(kernel));
    }
    let error = "sse".parse::<StoreKernel>().unwrap_err();
    assert!(error.to_string().contains("nt-sse2"), "{error}");
}

#[test]
#[should_panic(expected = "cannot run here: it needs the")]
fn a_kernel_of_another_cpu_is_refused() {
    let foreign = if cfg!(target_arch = "aarch64") { StoreKernel::Nt8 } else { StoreKernel::Stnp };
    Region::private(64).store_window(0, 1, foreign);
}

/// Words of vector stores arrive whole: two threads, and words whose halves agree.
#[test]
fn words_of_a_line_are_single_copy_atomic() {
    use beeline_contract_memory::LoadPort;
    let rounds: u64 = if cfg!(miri) { 20 } else { 20_000 };
    for kernel in all_kernels() {
        let region = Region::private(BYTES);
        std::thread::scope(|scope| {
            let mut window = window(&region, kernel);
            scope.spawn(move || {
                for i in 0..rounds {
                    window.store_line(0, &[i << 32 | i; 8]);
                }
            });
            let mut window = region.load_window(0, 1);
            for _ in 0..rounds {
                for word in window.load_line(0) {
                    assert_eq!(word >> 32, word & 0xffff_ffff, "{kernel:?}: torn word {word:#x}");
                }
            }
        });
    }
}
