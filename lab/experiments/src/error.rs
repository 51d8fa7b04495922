//! Why an experiment cannot be made.

use beeline_driver::{PortError, RxError, TxError};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::MachineError;
use beeline_nic_model::ConfigError;
use thiserror::Error;

/// What went wrong.
#[derive(Debug, Error)]
pub enum LabError {
    /// The parameters make no machine.
    #[error("no such machine: {0}")]
    Machine(#[from] MachineError),
    /// A platform whose link has a width that no link has.
    #[error("link.lanes = {count} is no width of a link; use 1, 2, 4, 8, 12, 16 or 32")]
    Lanes {
        /// Lanes that were asked for.
        count: u32,
    },
    /// An interface that is made of lines which change owner, on a platform that moves none.
    #[error("{platform} has no [coherent] section: nothing moves lines between its cores and its device")]
    NotCoherent { platform: String },
    /// Several devices on a platform without a switch to put them behind.
    #[error(
        "{platform} has no [switch] section, which {devices} devices need before them; give switch.latency_ns and switch.ports in \
         its file, or by --set switch.latency_ns=NS --set switch.ports={ports}", ports = devices + 1
    )]
    NoSwitch { platform: String, devices: u16 },
    /// More devices than a switch has ports for.
    #[error(
        "{devices} devices and the way to the host need {needed} ports, and the switch of {platform} has {ports}; ask for fewer \
         devices, or --set switch.ports={needed}", needed = devices + 1
    )]
    Ports {
        platform: String,
        devices: u16,
        /// Ports of the switch, that to the host included.
        ports: u32,
    },
    /// Data that lie where a platform does not say how long a read of them takes.
    #[error(
        "{platform} does not say what reads of {data} data take longer; give root_complex.{key}, in its file or by --set"
    )]
    NotSaid {
        platform: String,
        data: &'static str,
        /// The parameter.
        key: &'static str,
    },
    /// The file of a platform.
    #[error(transparent)]
    Platform(#[from] beeline_platforms::PlatformError),
    /// The sizes make no NIC.
    #[error("no such NIC: {0}")]
    Nic(#[from] ConfigError),
    /// The RTL cannot have these sizes, or failed.
    #[cfg(feature = "rtl")]
    #[error(transparent)]
    Rtl(#[from] beeline_nic_rtl::RtlError),
    /// The link does not do what an experiment asks of it.
    #[error("the link: {0}")]
    Link(#[from] beeline_contract_link::LinkError),
    /// The port or a queue of it did not come up.
    #[error("the port did not come up: {0}")]
    Port(#[from] PortError),
    /// A frame could not be sent.
    #[error("a frame could not be sent: {0}")]
    Send(#[from] TxError),
    /// A frame could not be received.
    #[error("a frame could not be received: {0}")]
    Receive(#[from] RxError),
    /// Nothing happens any more, or no frame leaves, and not everything was done.
    #[error("at {at} no frame leaves any more, and {done} of {wanted} frames have left")]
    Stuck {
        at: Picoseconds,
        /// Frames that left.
        done: u64,
        /// Frames that were to leave.
        wanted: u64,
    },
    /// As [`LabError::Stuck`], because the NIC has failed the queue: lines came further ahead of a missing one than it holds.
    #[error(
        "at {at} a write came {lines} lines ahead of a piece that was missing, the NIC holds {span_lines}, and the queue failed \
         with {done} of {wanted} frames: part of a line stays in its write-combining buffer until something evicts it; bound \
         that by --fences per-message, or by core.wc_timeout_ns"
    )]
    BeyondSpan {
        at: Picoseconds,
        /// Lines that the writes needed.
        lines: usize,
        /// Lines that the NIC holds.
        span_lines: u32,
        /// Frames that left.
        done: u64,
        /// Frames that were to leave.
        wanted: u64,
    },
    /// What left by the wire was not what was sent: disorder that the interface does not bear.
    #[error(
        "{changed} of {frames} frames left changed or in another order: it does not bear the disorder of this machine"
    )]
    Changed {
        /// Frames that were not what was sent.
        changed: u64,
        /// Frames that left.
        frames: u64,
    },
    /// A pcap or another input makes no traffic.
    #[error("{what}; {advice}")]
    Traffic {
        /// What is wrong with it.
        what: String,
        /// What the user can do.
        advice: &'static str,
    },
}
