//! Every kernel by its machine code: the stores it is made of, their width and place, and nothing that orders them.
//!
//! The kernels are inlined into their callers, so each is given a function of its own here, with a name that `objdump`
//! finds in this test program.
#![cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::process::Command;

use beeline_contract_memory::Line;

use crate::arch::LineKernel;
use crate::arch::kernels;

/// What a kernel's function must contain.
struct Expected {
    symbol: &'static str,
    /// The function, so that the linker keeps it.
    address: usize,
    /// The instructions that store to the line, each at its offset: text before the address, bytes it stores.
    store: &'static str,
    width: usize,
}

/// For every function: name, kernel, call, type of what it stores, then the text and width of its stores.
macro_rules! kernel_functions {
    ($($symbol:ident: $kernel:ident $call:ident($source:ty), $store:literal, $width:literal;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $symbol(line: *mut u8, source: &$source) {
                // SAFETY: never called; it exists to be disassembled.
                unsafe { kernels::$kernel::$call(line, source) }
            }
        )*

        fn expected() -> Vec<Expected> {
            vec![$(Expected {
                symbol: stringify!($symbol),
                address: $symbol as *const () as usize,
                store: $store,
                width: $width,
            },)*]
        }
    };
}

// Calls that compile to the code of another are left out: the two would be merged, and one of the names lost.
#[cfg(target_arch = "x86_64")]
kernel_functions! {
    beeline_kernel_cached_bytes: Cached bytes([u8; 64]), "movdqa XMMWORD PTR", 16;
    beeline_kernel_cached_words: Cached words(Line), "mov QWORD PTR", 8;
    beeline_kernel_cached_avx2_bytes: CachedAvx2 bytes([u8; 64]), "vmovdqa YMMWORD PTR", 32;
    beeline_kernel_cached_avx512_bytes: CachedAvx512 bytes([u8; 64]), "vmovdqa64 ZMMWORD PTR", 64;
    beeline_kernel_cached_avx512_words: CachedAvx512 words(Line), "vmovdqa64 ZMMWORD PTR", 64;
    beeline_kernel_nt8_words: Nt8 words(Line), "movnti QWORD PTR", 8;
    beeline_kernel_nt_sse2_bytes: NtSse2 bytes([u8; 64]), "movntdq XMMWORD PTR", 16;
    beeline_kernel_nt_sse2_words: NtSse2 words(Line), "movntdq XMMWORD PTR", 16;
    beeline_kernel_nt_avx2_bytes: NtAvx2 bytes([u8; 64]), "vmovntdq YMMWORD PTR", 32;
    beeline_kernel_nt_avx2_words: NtAvx2 words(Line), "vmovntdq YMMWORD PTR", 32;
    beeline_kernel_nt_avx512_bytes: NtAvx512 bytes([u8; 64]), "vmovntdq ZMMWORD PTR", 64;
    beeline_kernel_nt_avx512_words: NtAvx512 words(Line), "vmovntdq ZMMWORD PTR", 64;
    beeline_kernel_movdir64b_bytes: Movdir64b bytes([u8; 64]), "movdir64b", 64;
    beeline_kernel_movdir64b_avx512_words: Movdir64bAvx512 words(Line), "movdir64b", 64;
}

#[cfg(target_arch = "aarch64")]
kernel_functions! {
    beeline_kernel_cached_bytes: Cached bytes([u8; 64]), "stp q", 32;
    beeline_kernel_cached_words: Cached words(Line), "stp x", 16;
    beeline_kernel_stnp_bytes: Stnp bytes([u8; 64]), "stnp q", 32;
    beeline_kernel_stnp_words: Stnp words(Line), "stnp x", 16;
    beeline_kernel_st64b_words: St64b words(Line), "st64b x", 64;
}

/// Instructions that order memory or lock it: none of them may be in a kernel.
const ORDERING: [&str; 12] =
    ["sfence", "mfence", "lfence", "lock", "xchg", "cpuid", "serialize", "dmb", "dsb", "isb", "stlr", "swp"];

#[cfg(target_arch = "x86_64")]
const OBJDUMPS: [&str; 2] = ["x86_64-linux-gnu-objdump", "objdump"];
#[cfg(target_arch = "aarch64")]
const OBJDUMPS: [&str; 2] = ["aarch64-linux-gnu-objdump", "objdump"];

/// The instructions of a function, each as `mnemonic operands` with single spaces.
fn disassemble(symbol: &str) -> Vec<String> {
    let program = std::env::current_exe().expect("the path of this program");
    for objdump in OBJDUMPS {
        let mut command = Command::new(objdump);
        command.args(["--no-show-raw-insn", "--no-addresses"]).arg(format!("--disassemble={symbol}"));
        if cfg!(target_arch = "x86_64") {
            command.args(["-M", "intel"]);
        }
        let Ok(output) = command.arg(&program).output() else { continue };
        assert!(output.status.success(), "{objdump}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        let body = text.split_once(&format!("<{symbol}>:")).expect("the symbol is in this program").1;
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        return body.lines().map(words).filter(|line| !line.is_empty()).collect();
    }
    panic!(
        "none of {OBJDUMPS:?} is installed, and without it the kernels cannot be checked: install binutils \
         (`apt-get install binutils`; for a cross build also binutils-aarch64-linux-gnu)"
    );
}

/// The instructions that store to memory that is not the function's own: its stack, and what `movdir64b` loads.
#[cfg(target_arch = "x86_64")]
fn stores(code: &[String]) -> Vec<&String> {
    let mut own = vec!["[rsp", "[rbp"];
    let source = code.iter().find_map(|instruction| instruction.strip_prefix("movdir64b ")?.split_once('['));
    own.extend(source.map(|(_, source)| source.trim_end_matches(']')));
    let is_store = |instruction: &&String| {
        let (mnemonic, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let first = operands.split(',').next().unwrap_or("");
        let no_store = ["cmp", "test", "call", "jmp", "push", "nop", "cs", "data16"].contains(&mnemonic);
        let to_own = own.iter().any(|register| first.contains(register));
        mnemonic == "movdir64b" || (first.contains('[') && !to_own && !no_store)
    };
    code.iter().filter(is_store).collect()
}

/// The instructions that store to memory that is not the function's own stack.
#[cfg(target_arch = "aarch64")]
fn stores(code: &[String]) -> Vec<&String> {
    let own = |instruction: &str| instruction.contains("[sp") || instruction.contains("[x29");
    code.iter().filter(|instruction| instruction.starts_with("st") && !own(instruction)).collect()
}

/// Base and offset of the address in an instruction.
fn address(instruction: &str) -> (String, usize) {
    if let Some(operands) = instruction.strip_prefix("movdir64b ") {
        // The destination is the register itself; the address in brackets is the source.
        return (operands.split(',').next().expect("two operands").to_owned(), 0);
    }
    let inside =
        instruction.split_once('[').and_then(|(_, rest)| rest.split_once(']')).expect("an address").0;
    let (base, offset) = inside.split_once(['+', ',']).unwrap_or((inside, "0"));
    let offset = offset.trim().trim_start_matches('#');
    let offset = match offset.strip_prefix("0x") {
        Some(hex) => usize::from_str_radix(hex, 16),
        None => offset.parse(),
    };
    (base.to_owned(), offset.expect("a number"))
}

#[test]
fn store_kernels_contain_their_stores_and_no_fence() {
    for Expected { symbol, address: function, store, width } in expected() {
        assert_ne!(function, 0);
        let code = disassemble(symbol);
        assert!(code.len() > 1, "{symbol}: {code:#?}");
        let stored = stores(&code);
        let places: Vec<(String, usize)> = stored.iter().map(|instruction| address(instruction)).collect();
        let base = &places.first().unwrap_or_else(|| panic!("{symbol} stores nothing: {code:#?}")).0;
        let expected: Vec<(String, usize)> = (0..64).step_by(width).map(|at| (base.clone(), at)).collect();
        assert!(stored.iter().all(|instruction| instruction.starts_with(store)), "{symbol}: {code:#?}");
        assert_eq!(places, expected, "{symbol}: {code:#?}");
        for instruction in &code {
            let mnemonic = instruction.split(' ').next().unwrap_or_default();
            assert!(!ORDERING.iter().any(|order| mnemonic.starts_with(order)), "{symbol}: {instruction}");
            assert!(!["call", "bl", "blr"].contains(&mnemonic), "{symbol} calls: {instruction}");
        }
    }
}
