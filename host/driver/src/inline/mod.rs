//! `inline`: entries in a ring, of which single ones are pushed as well (HotOS'25 §2.4, BlueFlame).

mod factory;
pub(crate) mod settings;
pub(crate) mod transmit;
