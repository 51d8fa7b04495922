//! The NIC as a process: ports of other processes, up-links, and the Ethernet switch between them.
//!
//! One thread plays all devices: it goes round the ports, brings what their hosts stored to the device of each
//! (`link/shm`), carries out what the devices want, and forwards their frames ([`NicProcess::run`]). Nothing on that
//! way allocates, locks or calls the system while frames are there. Ports come and go through a second thread, the
//! domain's, which makes their memory and tells the loop about it.
//!
//! It knows no interface: how a host hands frames over is between driver and device. Frames come from `link/shm` and
//! `os/ethernet` and go there. The looped-back port is the arrangement kPIO+WC measures in §IV.
#![forbid(unsafe_code)]

mod clock;
mod config;
mod departures;
mod endpoints;
mod engine;
mod error;
mod mac_table;
mod port_link;
mod process;
mod service;
mod statistics;
mod switch;
mod uplinks;

pub use config::{MacTableConfig, NicProcessConfig, UplinkConfig};
pub use error::{NicProcessError, StatisticsError};
pub use process::NicProcess;
pub use statistics::{LoopCounters, PortStatistics, Statistics, StatisticsFeed, UplinkStatistics};
pub use switch::SwitchCounters;
