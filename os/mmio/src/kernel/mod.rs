//! The ways a line can leave the core, by name.
//!
//! What they are made of is in `arch/`; which one is best depends on the CPU and the traffic, and is timed
//! ([`Choice`]). kPIO+WC §III.A is [`StoreKernel::NtSse2`]; HotOS'25 figure 2 any of the non-temporal ones.

mod choose;
mod report;
mod store_kernel;
mod timing;

pub use choose::{Choice, KERNEL_VARIABLE, NotChosen, Reason, kernel_from_environment};
pub use report::{KernelState, kernel_report};
pub use store_kernel::{StoreKernel, Traffic, UnknownKernel};
pub use timing::KernelTiming;

#[cfg(test)]
mod disassembly;

#[cfg(test)]
mod tests;
