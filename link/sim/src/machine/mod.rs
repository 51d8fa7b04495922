//! A whole machine in virtual time: cores, root complex, links, a device or several behind a switch, memory.
//!
//! A program on a core is whoever calls [`Sim::advance`] and is told that it is its turn; it uses the link by
//! [`CoreLink`], as it would use any other link, and every store and load costs what the machine's parameters say. The
//! device is anything behind the trait of `contract/device`. Programs run as far as their own turn goes; what they stored is
//! on its way when the turn ends.
//!
//! A load of memory is done at once, when it is asked for, and a store to memory is visible at once: within a turn memory
//! does not change under a program. What the device writes is seen by the first turn after it is visible.

mod device_end;
mod device_side;
mod event;
mod host;
mod host_side;
pub mod hosts;
mod ids;
mod interconnect;
mod memory;
mod payloads;
mod peer_loads;
mod peers;
mod reads;
mod root_path;
mod run;
mod settings;
mod shared_lines;
mod state;
mod topology;
mod totals;

pub use event::Event;
pub use host::{CoreLink, SimDoorbell, SimMemory, SimWindow};
pub use ids::{CoreId, DeviceId};
pub use interconnect::Interconnect;
pub use reads::SimReads;
pub use run::Sim;
pub use settings::{Aperture, Branch, Further, MachineError, MachineSettings, SwitchSettings};
pub use state::{InFlight, Machine, Next, Pause};
pub use totals::Totals;
