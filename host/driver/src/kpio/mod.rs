//! `kpio`: whole lines in order, frames ended by EOP words (kPIO+WC §III), alone or beside descriptors.

mod factory;
pub(crate) mod mux;
pub(crate) mod settings;
pub(crate) mod transmit;
