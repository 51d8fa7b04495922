//! Several hosts in virtual time, whose memories are joined by PCI Express: bridges that are not transparent, or a switch.
//!
//! Each host has cores, a root complex and memory of its own. A store to an address of another host is a posted write that crosses the
//! links, keeps the order of its source, and is seen by the loads of that host when its root complex has made it visible; a load across is
//! answered by that root complex. A write to the window of a group is copied by the switch into the memory of each host of the group but the one that
//! it came from. The bytes are real: they travel with the packets.
//!
//! Addresses are of the fabric: what a bridge's translation makes of a window of its host is the other host's memory, and costs what the
//! platform says of the hop. A link that is down loses what is on its way to and from its host; a load that is lost is answered with ones,
//! after a time-out. A port may have a DMA engine, which has what it reads and writes leave by the same link.
//!
//! Or a bridge is a device of its own (`ntb`), with windows that programs have to make it translate, and interrupts.
//!
//! From: whoever runs programs on the cores, told by [`Hosts::advance`] whose turn it is. Not here: what the words mean, devices, errors
//! of single packets.

mod bridged;
mod cores;
mod engine;
mod engines;
mod event;
mod host;
mod ids;
mod ntb;
mod operations;
mod roots;
mod settings;
mod topology;

pub use engine::{EngineSettings, Outcome, Transfer, Way};
pub use event::HostsEvent;
pub use host::Hosts;
pub use ids::{HostId, LOST, Place, Region};
pub use ntb::{NtbCounts, NtbSettings, Register};
pub use settings::{GROUP_BYTES, HostsError, HostsSettings, Joined, Row};
