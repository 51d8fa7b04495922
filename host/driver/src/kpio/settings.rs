//! Settings of `kpio` queues.

use crate::transmit::settings::CreditCoalescing;
use crate::transmit::settings::TxQueueConfig;

/// A queue fed by whole lines in order, frames ended by EOP words (kPIO+WC §III.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KpioConfig {
    /// Settings common to all transmit queues.
    pub queue: TxQueueConfig,
    /// 64 random bits; as in [`crate::MmioConfig`].
    pub random: u64,
    /// The 8-byte end-of-packet signature.
    pub eop: u64,
    /// How many lines the device frees before it pushes a credit.
    pub credits: CreditCoalescing,
}

impl Default for KpioConfig {
    fn default() -> Self {
        KpioConfig {
            queue: TxQueueConfig::default(),
            random: 0,
            eop: beeline_spec::formats::KPIO_EOP_DEFAULT,
            credits: CreditCoalescing::default(),
        }
    }
}
