//! x86-64.

mod avx2;
mod avx512;
mod features;
mod group;
mod load;
mod narrow;
mod order;
mod pieces;
mod scan;
mod store;
mod sums;
mod tops;
mod touch;

#[cfg(test)]
pub(crate) use features::all_kernels;
pub(crate) use features::{kernel, lacks};
pub(crate) use load::{LoadKernel, prefetch, prefetch_to_write};
pub(crate) use order::{
    flush_write_combining, order_dma_loads, order_dma_stores, order_stores, ticks, ticks_are_steady,
    ticks_per_second, unordered_ticks,
};
pub(crate) use scan::ScanKernel;
pub(crate) use store::{Kernel, KernelPort};
pub(crate) use touch::{TOUCHES, touch};

/// The kernels as types, for the test that disassembles them.
#[cfg(test)]
pub(crate) mod kernels {
    pub(crate) use super::avx2::{CachedAvx2, NtAvx2};
    pub(crate) use super::avx512::{CachedAvx512, Movdir64bAvx512, NtAvx512};
    pub(crate) use super::store::{Cached, Movdir64b, Nt8, NtSse2};
}
