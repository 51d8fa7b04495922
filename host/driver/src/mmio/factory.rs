//! Makes the host half of an `mmio` queue.

use beeline_contract_link::Link;
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::Interface;
use beeline_spec::formats::feature;
use beeline_window::WindowConfig;

use crate::error::PortError;
use crate::mmio::settings::MmioConfig;
use crate::mmio::transmit::TxMmio;
use crate::port::Port;
use crate::port::half::Stopped;
use crate::port::queues::resolve;

impl<L: Link> Port<L> {
    /// The host half of an `mmio` queue.
    ///
    /// # Errors
    /// The port is not ready, there is no such queue or interface, its window is taken, or a setting is out of range.
    pub fn mmio(
        &mut self,
        queue: u32,
        config: MmioConfig,
    ) -> Result<Stopped<TxMmio<L::Window, L::Memory>>, PortError> {
        self.mmio_behind(queue, config, |window, _| window)
    }

    /// As [`Port::mmio`], with `wrap` between the writer and the window: the ordering adversary, told what the
    /// interface bears.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, its window is taken, or a setting is out of range.
    pub fn mmio_behind<P: StorePort>(
        &mut self,
        queue: u32,
        config: MmioConfig,
        wrap: impl FnOnce(L::Window, Tolerance) -> P,
    ) -> Result<Stopped<TxMmio<P, L::Memory>>, PortError> {
        let identity = self.transmit(queue, Interface::Mmio, config.queue)?;
        if config.cut_through_lines != 0 && !self.has_feature(feature::CUT_THROUGH) {
            return Err(PortError::NoFeature { feature: "begin a frame before its message is there" });
        }
        let (window, credits) = self.window(queue)?;
        let lines = window.lines();
        let span_lines = self.caps.reorder_span_lines.unwrap_or(1).clamp(1, lines);
        let port = wrap(window, Tolerance { span_lines, split_lines: true });
        let window_config = WindowConfig {
            blank: self.blank(config.random),
            epoch: identity.config.epoch,
            fence_policy: config.fence_policy,
        };
        let config = MmioConfig { credits: resolve(config.credits, lines), ..config };
        let max_frame_bytes = self.max_frame_bytes();
        Ok(Stopped(TxMmio::new(port, credits, identity, window_config, config, span_lines, max_frame_bytes)))
    }
}
