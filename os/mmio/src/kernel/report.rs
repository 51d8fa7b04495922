//! What this machine can do with each kernel, in words: for `doctor`.

use core::fmt;

use beeline_contract_memory::{Line, StorePort};

use super::StoreKernel;
use crate::{LINE_BYTES, Region};

/// What is known about a kernel here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelState {
    /// It was run just now, and every byte arrived where it should, and no other changed.
    RunHere,
    /// It was run just now, and memory holds something else.
    Wrong,
    /// It is in this program, and the CPU has it, but it stores to devices only and there was none to store to.
    DeviceOnly,
    /// It is in this program; the CPU lacks what is named.
    NotRunHere(&'static str),
    /// It belongs to another instruction set: this program has been built without it.
    NotBuilt(&'static str),
}

impl fmt::Display for KernelState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelState::RunHere => out.write_str("run here: ok"),
            KernelState::Wrong => out.write_str("run here: WRONG BYTES; do not use it, and report this CPU"),
            KernelState::DeviceOnly => out.write_str("built, not run here (it stores to devices only)"),
            KernelState::NotRunHere(lacks) => write!(out, "built, not run here (CPU lacks {lacks})"),
            KernelState::NotBuilt(set) => write!(out, "not built for this machine (belongs to {set})"),
        }
    }
}

/// Runs every kernel that can be run, and says what is known about each.
pub fn kernel_report() -> Vec<(StoreKernel, KernelState)> {
    StoreKernel::ALL.into_iter().map(|kernel| (kernel, state(kernel))).collect()
}

fn state(kernel: StoreKernel) -> KernelState {
    match crate::arch::lacks(kernel) {
        Some(set) if set.contains("instruction set") => KernelState::NotBuilt(set),
        Some(feature) => KernelState::NotRunHere(feature),
        None if !kernel.is_for_memory() => KernelState::DeviceOnly,
        None if stores_rightly(kernel) => KernelState::RunHere,
        None => KernelState::Wrong,
    }
}

/// Stores a line by each of a port's calls, and looks at it and its neighbours.
fn stores_rightly(kernel: StoreKernel) -> bool {
    const LINES: u32 = 16;
    let region = Region::private(LINES as usize * LINE_BYTES);
    let mut window = region.store_window(0, LINES, kernel);
    let bytes: [u8; LINE_BYTES] = core::array::from_fn(|i| i as u8 ^ 0xa5);
    let words: Line =
        core::array::from_fn(|i| u64::from_le_bytes(core::array::from_fn(|j| bytes[i * 8 + j])));
    window.store_line(1, &words);
    window.store_lines(3, &bytes);
    window.store_head_line(5, words[0], &bytes[8..]);
    window.store_padded_line(7, &bytes);
    for word in 0..8 {
        window.store_word(9, word, words[word as usize]);
    }
    window.fence();
    (0..LINES as usize).all(|line| {
        let mut found = [0; LINE_BYTES];
        region.copy_out(line * LINE_BYTES, &mut found);
        let stored = line % 2 == 1 && line < 10;
        found == if stored { bytes } else { [0; LINE_BYTES] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_reported_as_the_cpu_has_it() {
        let report = kernel_report();
        assert_eq!(report.len(), StoreKernel::ALL.len());
        for (kernel, state) in report {
            assert_ne!(state, KernelState::Wrong, "{kernel}");
            assert_eq!(
                state == KernelState::RunHere,
                kernel.is_available() && kernel.is_for_memory(),
                "{kernel}"
            );
        }
    }

    #[test]
    fn states_are_told_in_words() {
        assert_eq!(
            KernelState::NotRunHere("MOVDIR64B").to_string(),
            "built, not run here (CPU lacks MOVDIR64B)"
        );
        assert!(KernelState::NotBuilt("the aarch64 instruction set").to_string().contains("aarch64"));
    }
}
