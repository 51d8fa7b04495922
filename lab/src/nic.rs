//! The NIC of an experiment, and where its windows lie.

use beeline_link_sim::machine::Aperture;
use beeline_nic_model::{ConfigError, Nic, NicConfig};

/// A NIC, and what a link must know of it.
#[derive(Clone, Debug)]
pub struct NicShape {
    /// Its sizes.
    pub config: NicConfig,
}

impl NicShape {
    /// A NIC with as many queues as there are cores, and windows of 256 KiB (HotOS'25, section 2.1).
    pub fn for_cores(cores: u16) -> NicShape {
        let queues = u32::from(cores).max(1);
        let window_lines = 4096;
        let config = NicConfig {
            queues,
            window_lines,
            span_lines: 64,
            contexts: queues,
            pool_lines: (2 * queues * window_lines).min(1 << 24),
            ..NicConfig::default()
        };
        NicShape { config }
    }

    /// Where its windows lie.
    pub fn aperture(&self) -> Aperture {
        Aperture {
            offset_bytes: self.config.aperture_bytes(),
            stride_bytes: self.config.window_stride_bytes(),
            window_lines: self.config.window_lines,
            queues: self.config.queues,
        }
    }
}

/// The behavioural NIC of a shape.
///
/// # Errors
/// The sizes make no sense.
pub fn model_nic(shape: &NicShape) -> Result<Nic, ConfigError> {
    Nic::new(shape.config.clone())
}
