//! `descriptor`: a ring in host memory and a doorbell (HotOS'25, figure 1), in both directions.

mod factory;
pub(crate) mod receive;
pub(crate) mod settings;
pub(crate) mod transmit;
