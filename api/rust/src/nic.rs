//! Ports of a NIC, as a domain opens them.

use std::time::Duration;

use beeline_link_shm::{ShmLink, ShmOptions};

use crate::port::Opening;
use crate::port_options::PortOptions;
use crate::{Domain, NicPort, PortError};

impl Domain {
    /// Opens a port of the NIC called `nic`, ready to send and receive.
    ///
    /// # Errors
    /// There is no such NIC, or it cannot be used.
    pub fn port(&self, nic: &str) -> Result<NicPort, PortError> {
        self.port_with(nic, PortOptions::new())
    }

    /// Opens a port of a NIC that may not be there yet: waits until it is there and has come up, for at most `timeout`.
    ///
    /// # Errors
    /// No such NIC came in time, or it cannot be used.
    pub fn port_timeout(&self, nic: &str, timeout: Duration) -> Result<NicPort, PortError> {
        self.port_with(nic, PortOptions::new().timeout(timeout))
    }

    /// Opens a port with options, as [`Domain::port`] does with the default ones.
    ///
    /// # Errors
    /// There is no such NIC, or it cannot be used; an option is out of bounds.
    pub fn port_with(&self, nic: &str, options: PortOptions) -> Result<NicPort, PortError> {
        let shm = ShmOptions {
            service: nic.to_owned(),
            kernel: options.store_kernel(),
            loop_back: options.loop_back,
            ..ShmOptions::default()
        };
        let opening = Opening::begin(options.opening_timeout());
        let link = self
            .inner
            .retry_until_offered(options.timeout, |_| {
                ShmLink::connect_within(&self.inner, &shm, opening.left())
            })
            .map_err(|error| PortError::connect(nic, error, options.timeout))?;
        NicPort::bring_up(link, options, opening)
    }
}
