//! The NIC process's half: one port of one device over memory that the host maps too.

mod account;
mod control;
mod counters;
mod device_layout;
mod host_side;
mod port;
mod port_config;
mod port_parts;
mod process_host;
mod queues;
mod regions;
pub(crate) mod registers;
mod scanner;

pub(crate) use registers::encode;

pub use account::MemoryAccount;
pub use control::PortControl;
pub use counters::PortCounters;
pub use device_layout::DeviceLayout;
pub use host_side::{Access, Closing, HostSide};
pub use port::{DevicePort, Wire, Wired, Work};
pub use port_config::PortConfig;
pub use process_host::ProcessHost;
pub use queues::Queues;
pub use regions::BusMemory;
