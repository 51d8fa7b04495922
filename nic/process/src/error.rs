//! Why a NIC process cannot start, go on, or be asked.

use std::io;
use std::time::Duration;

use beeline_domain::{Absence, MayArrive};

/// Why a NIC process cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum NicProcessError {
    /// A value of the configuration is outside its range.
    #[error("a NIC process with {what} = {found} cannot be started: choose {least} to {most}")]
    OutOfRange {
        /// Field of the configuration.
        what: &'static str,
        found: u32,
        /// Least value it may have.
        least: u32,
        /// Greatest value it may have.
        most: u32,
    },
    /// Addresses would be forgotten at once.
    #[error("addresses cannot age in {0:?}: choose at least 1 s")]
    Ageing(Duration),
    /// A sleep would be too short or too long.
    #[error("the loop cannot sleep for {0:?} at a time: choose 1 ms to 1 s")]
    Sleep(Duration),
    /// The ports of hosts that are gone would stay too long.
    #[error("frames of a host that is gone cannot wait for {0:?}: choose at most 60 s")]
    Departure(Duration),
    /// There are more functions than ports.
    #[error("{functions} PCI functions of a NIC of {ports} ports: each is a port; give it more (`--ports`)")]
    Functions {
        /// Sockets that were named.
        functions: usize,
        ports: u32,
    },
    /// A function cannot be served.
    #[error(transparent)]
    Function(#[from] beeline_link_vfio_user::FunctionError),
    /// A thread cannot be had.
    #[error("cannot start the thread of a PCI function: {0}")]
    Thread(io::Error),
    /// Two up-links would hand frames to each other for ever.
    #[error("a loop-back beside another up-link that takes frames is a loop: leave one out")]
    Loop,
    /// The device cannot be made.
    #[error(transparent)]
    Device(#[from] beeline_nic_model::ConfigError),
    /// The domain cannot be opened.
    #[error(transparent)]
    Domain(#[from] beeline_domain::DomainError),
    /// The ports cannot be offered.
    #[error(transparent)]
    Offer(#[from] beeline_domain::OfferError),
    /// An up-link cannot be opened.
    #[error(transparent)]
    Uplink(#[from] beeline_ethernet::UplinkError),
    /// The core cannot be had.
    #[error("cannot run on core {core}: {error}; see `taskset -p $$` for the cores this program may use")]
    Core {
        /// The core asked for.
        core: usize,
        error: io::Error,
    },
    /// A descriptor cannot be had.
    #[error("cannot make an event: {0}; raise the limit of open files (`ulimit -n`)")]
    Event(io::Error),
}

/// Why a NIC process cannot be asked how it is.
#[derive(Debug, thiserror::Error)]
pub enum StatisticsError {
    /// The NIC process is not there or refused.
    #[error("cannot ask NIC `{service}`: {error}")]
    Connect {
        /// The name it would have.
        service: String,
        error: beeline_domain::ConnectError,
    },
    /// The answer of the NIC process makes no sense.
    #[error("NIC `{service}` answered what is no statistics ({reason}); is it another version of Beeline?")]
    Answer { service: String, reason: String },
}

impl MayArrive for StatisticsError {
    fn absence(&self) -> Option<Absence> {
        if let StatisticsError::Connect { error, .. } = self { error.absence() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn chain_of_an_error_has_each_reason_once() {
        let absent = beeline_domain::ConnectError::Absent { path: "/run/nic.sock".into() };
        let reason = absent.to_string();
        let error = StatisticsError::Connect { service: "nic".to_owned(), error: absent };
        assert!(error.to_string().contains(&reason) && error.source().is_none(), "{error}");
        let reason = io::Error::from_raw_os_error(22);
        let error = NicProcessError::Core { core: 9, error: io::Error::from_raw_os_error(22) };
        assert!(error.to_string().contains(&reason.to_string()) && error.source().is_none(), "{error}");
    }
}
