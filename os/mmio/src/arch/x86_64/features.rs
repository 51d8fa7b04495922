//! What this CPU can run, and which kernel that makes of a name.

use std::arch::is_x86_feature_detected;

use super::store::Kernel;
use crate::StoreKernel;

/// Why a kernel cannot be run here: what the CPU lacks, or the instruction set it belongs to.
pub(crate) fn lacks(kernel: StoreKernel) -> Option<&'static str> {
    match kernel {
        StoreKernel::Cached | StoreKernel::Nt8 | StoreKernel::NtSse2 => None,
        StoreKernel::NtAvx2 => (!has_avx2()).then_some("AVX2"),
        StoreKernel::NtAvx512 => (!has_avx512()).then_some("AVX-512 (F, BW, VL)"),
        StoreKernel::Movdir64b => (!has_movdir64b()).then_some("MOVDIR64B"),
        StoreKernel::Stnp | StoreKernel::St64b => Some("the aarch64 instruction set"),
    }
}

/// The kernel behind a name, on this CPU.
pub(crate) fn kernel(name: StoreKernel) -> Option<Kernel> {
    if lacks(name).is_some() {
        return None;
    }
    match name {
        StoreKernel::Cached if has_avx512() => Some(Kernel::CachedAvx512),
        StoreKernel::Cached if has_avx2() => Some(Kernel::CachedAvx2),
        StoreKernel::Cached => Some(Kernel::Cached),
        StoreKernel::Nt8 => Some(Kernel::Nt8),
        StoreKernel::NtSse2 => Some(Kernel::NtSse2),
        StoreKernel::NtAvx2 => Some(Kernel::NtAvx2),
        StoreKernel::NtAvx512 => Some(Kernel::NtAvx512),
        StoreKernel::Movdir64b if has_avx512() => Some(Kernel::Movdir64bAvx512),
        StoreKernel::Movdir64b => Some(Kernel::Movdir64b),
        StoreKernel::Stnp | StoreKernel::St64b => None,
    }
}

/// Every kernel that this CPU can run, those included that it has better ones for.
#[cfg(test)]
pub(crate) fn all_kernels() -> Vec<Kernel> {
    let mut kernels = vec![Kernel::Cached, Kernel::Nt8, Kernel::NtSse2];
    if has_avx2() {
        kernels.extend([Kernel::CachedAvx2, Kernel::NtAvx2]);
    }
    kernels.extend(has_movdir64b().then_some(Kernel::Movdir64b));
    if has_avx512() {
        kernels.extend([Kernel::CachedAvx512, Kernel::NtAvx512]);
        kernels.extend(has_movdir64b().then_some(Kernel::Movdir64bAvx512));
    }
    kernels
}

/// Whether the CPU and the kernel of the operating system let 32-byte registers be used for integers.
pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Whether the CPU and the kernel of the operating system let 64-byte registers be used (F for the registers, BW for
/// byte masks, VL for the short forms of registers 16 and up).
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

/// CPUID leaf 7, ECX bit 28.
fn has_movdir64b() -> bool {
    const LEAF: u32 = 7;
    core::arch::x86_64::__cpuid(0).eax >= LEAF
        && core::arch::x86_64::__cpuid_count(LEAF, 0).ecx >> 28 & 1 == 1
}
