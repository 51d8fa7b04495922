//! Makes the host half of a `kpio` queue.

use beeline_contract_link::Link;
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::Interface;

use crate::error::PortError;
use crate::kpio::settings::KpioConfig;
use crate::kpio::transmit::{self, TxKpio};
use crate::port::Port;
use crate::port::half::Stopped;
use crate::port::queues::resolve;

impl<L: Link> Port<L> {
    /// The host half of a `kpio` queue.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, its window is taken, or a setting is out of range.
    pub fn kpio(
        &mut self,
        queue: u32,
        config: KpioConfig,
    ) -> Result<Stopped<TxKpio<L::Window, L::Memory>>, PortError> {
        self.kpio_behind(queue, config, |window, _| window)
    }

    /// As [`Port::kpio`], with `wrap` between the interface and the window.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, its window is taken, or a setting is out of range.
    pub fn kpio_behind<P: StorePort>(
        &mut self,
        queue: u32,
        config: KpioConfig,
        wrap: impl FnOnce(L::Window, Tolerance) -> P,
    ) -> Result<Stopped<TxKpio<P, L::Memory>>, PortError> {
        let identity = self.transmit(queue, Interface::Kpio, config.queue)?;
        let (window, credits) = self.window(queue)?;
        let config = KpioConfig { credits: resolve(config.credits, window.lines()), ..config };
        let port = wrap(window, transmit::TOLERANCE);
        let (blank, max_frame_bytes) = (self.blank(config.random), self.max_frame_bytes());
        Ok(Stopped(TxKpio::new(port, credits, identity, blank, config, max_frame_bytes)))
    }
}
