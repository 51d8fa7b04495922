//! Why a port of a NIC cannot be opened, and why frames cannot be sent or received.

use std::time::Duration;

use beeline_contract_link::LinkError;
use beeline_driver::{RxError, TxError};
use beeline_spec::Interface;

use super::cause::Cause;
use super::{ConnectError, Target};

/// The NIC process has ended or closed the port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NicGone;

/// Why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The NIC cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The NIC process has ended or closed the port.
    #[error("the NIC is gone")]
    NicGone,
    /// The NIC did not come up, or did not open the port's queues.
    #[error("waited {} ms for the NIC to come up", waited.as_millis())]
    TimedOut {
        /// The time that was given.
        waited: Duration,
    },
    /// The NIC does not have this interface.
    #[error("the NIC has no `{interface}` interface")]
    NoInterface {
        /// The interface asked for.
        interface: Interface,
    },
    /// The system gives no random numbers, without which a window has no blank.
    #[error("the system gives no random numbers")]
    NoRandom {
        /// What the system said.
        source: Cause,
    },
    /// The NIC refused, or is not sound.
    #[error("cannot open a port")]
    Failed {
        /// What the NIC refused, or what is not sound about it.
        source: Cause,
    },
}

impl PortError {
    pub(crate) fn connect(nic: &str, error: beeline_link_shm::ConnectError, waited: Duration) -> Self {
        match error {
            beeline_link_shm::ConnectError::Rendezvous { source, .. } => {
                ConnectError::new(Target::Nic(nic.to_owned()), source).after(waited).into()
            }
            other => PortError::Failed { source: other.into() },
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            PortError::Connect(error) => error.remedy(),
            PortError::NicGone => "start the NIC again, then open the port again",
            PortError::TimedOut { .. } => {
                "give the NIC process a core of its own; `beeline stat` shows whether it still counts"
            }
            PortError::NoInterface { .. } => "open the port with another interface",
            PortError::NoRandom { .. } => "see that getrandom(2) or /dev/urandom is there",
            PortError::Failed { .. } => {
                "use a NIC and a program of one release; `beeline doctor` says what is missing"
            }
        }
    }
}

impl From<NicGone> for PortError {
    fn from(_: NicGone) -> Self {
        PortError::NicGone
    }
}

impl From<beeline_driver::PortError> for PortError {
    fn from(error: beeline_driver::PortError) -> Self {
        use beeline_driver::PortError as Below;
        match error {
            Below::Link(LinkError::DeviceGone) => PortError::NicGone,
            Below::NoInterface { interface, .. } => PortError::NoInterface { interface },
            Below::NoAnswer { waited_ns, .. } => {
                PortError::TimedOut { waited: Duration::from_nanos(waited_ns) }
            }
            other => PortError::Failed { source: other.into() },
        }
    }
}

/// Why a frame cannot be sent, now or ever.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortSendError {
    /// No frame of this length is carried.
    #[error("cannot send a frame of {bytes} bytes: this port carries {min_bytes} to {max_bytes}")]
    Length {
        /// Bytes of the frame.
        bytes: usize,
        /// Bytes of the shortest one.
        min_bytes: usize,
        /// Bytes of the longest one.
        max_bytes: usize,
    },
    /// The port's interface cannot carry these bytes.
    #[error("the port's interface cannot carry the frame")]
    Content {
        /// Which bytes, and what can.
        source: Cause,
    },
    /// The NIC process has ended or closed the port.
    #[error("the NIC is gone")]
    NicGone,
    /// The NIC wrote what no sound one writes.
    #[error("the NIC is faulty")]
    NicFaulty {
        /// The value that the device wrote, and what was possible.
        source: Cause,
    },
}

impl PortSendError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            PortSendError::Length { .. } => "send a frame of a length that the port carries",
            PortSendError::Content { .. } => "open the port with another interface",
            PortSendError::NicGone => "start the NIC again, then open the port again",
            PortSendError::NicFaulty { .. } => {
                "open the port again; see `beeline stat` for the queue's state"
            }
        }
    }
}

impl From<NicGone> for PortSendError {
    fn from(_: NicGone) -> Self {
        PortSendError::NicGone
    }
}

impl From<TxError> for PortSendError {
    #[cold]
    fn from(error: TxError) -> Self {
        match error {
            TxError::Length { bytes, min_bytes, max_bytes } => {
                PortSendError::Length { bytes, min_bytes, max_bytes }
            }
            TxError::HoldsMark { .. } => PortSendError::Content { source: error.into() },
            TxError::Window(_) | TxError::WildCount { .. } | TxError::BadReturn { .. } => {
                PortSendError::NicFaulty { source: error.into() }
            }
        }
    }
}

/// Why no frame can be received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortRecvError {
    /// The NIC process has ended or closed the port.
    #[error("the NIC is gone")]
    NicGone,
    /// What the NIC wrote is no frame.
    #[error("the NIC is faulty")]
    NicFaulty {
        /// The value that the device wrote, and what was possible.
        source: Cause,
    },
}

impl PortRecvError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            PortRecvError::NicGone => "start the NIC again, then open the port again",
            PortRecvError::NicFaulty { .. } => {
                "open the port again; see `beeline stat` for the queue's state"
            }
        }
    }
}

impl From<NicGone> for PortRecvError {
    fn from(_: NicGone) -> Self {
        PortRecvError::NicGone
    }
}

impl From<RxError> for PortRecvError {
    #[cold]
    fn from(error: RxError) -> Self {
        PortRecvError::NicFaulty { source: error.into() }
    }
}
