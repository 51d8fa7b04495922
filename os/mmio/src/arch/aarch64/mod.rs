//! aarch64.

mod features;
mod group;
mod load;
mod order;
mod pieces;
mod store;
mod touch;

#[cfg(test)]
pub(crate) use features::all_kernels;
pub(crate) use features::{kernel, lacks};
pub(crate) use load::{LoadKernel, prefetch, prefetch_to_write};
pub(crate) use order::{
    flush_write_combining, order_dma_loads, order_dma_stores, order_stores, ticks, ticks_are_steady,
    ticks_per_second, unordered_ticks,
};
pub(crate) use store::{Kernel, KernelPort};
pub(crate) use touch::{TOUCHES, touch};

pub(crate) use crate::arch::PortableScan as ScanKernel;

/// The kernels as types, for the test that disassembles them.
#[cfg(test)]
pub(crate) mod kernels {
    pub(crate) use super::store::{Cached, St64b, Stnp};
}
