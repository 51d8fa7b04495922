//! What this CPU can run, and which kernel that makes of a name.

use core::arch::asm;

use super::store::Kernel;
use crate::StoreKernel;

/// Why a kernel cannot be run here: what the CPU lacks, or the instruction set it belongs to.
pub(crate) fn lacks(kernel: StoreKernel) -> Option<&'static str> {
    match kernel {
        StoreKernel::Cached | StoreKernel::Stnp => None,
        StoreKernel::St64b => (!has_ls64()).then_some("FEAT_LS64"),
        _ => Some("the x86-64 instruction set"),
    }
}

/// The kernel behind a name, on this CPU.
pub(crate) fn kernel(name: StoreKernel) -> Option<Kernel> {
    if lacks(name).is_some() {
        return None;
    }
    match name {
        StoreKernel::Cached => Some(Kernel::Cached),
        StoreKernel::Stnp => Some(Kernel::Stnp),
        StoreKernel::St64b => Some(Kernel::St64b),
        _ => None,
    }
}

/// Every kernel that this CPU can run on memory.
#[cfg(test)]
pub(crate) fn all_kernels() -> Vec<Kernel> {
    vec![Kernel::Cached, Kernel::Stnp]
}

/// Whether user space may issue `st64b`: ID_AA64ISAR1_EL1.LS64, which Linux shows only when it lets user space use it.
fn has_ls64() -> bool {
    /// Linux emulates reads of the identification registers (`Documentation/arch/arm64/cpu-feature-registers.rst`).
    const HWCAP_CPUID: u64 = 1 << 11;
    const LS64_SHIFT: u32 = 60;
    let (hwcap, _) = rustix::param::linux_hwcap();
    if hwcap as u64 & HWCAP_CPUID == 0 {
        return false;
    }
    let isar1: u64;
    // SAFETY: HWCAP_CPUID says that this read is emulated and does not trap.
    unsafe {
        asm!("mrs {isar1}, ID_AA64ISAR1_EL1", isar1 = out(reg) isar1, options(nomem, nostack, preserves_flags))
    };
    isar1 >> LS64_SHIFT != 0
}
