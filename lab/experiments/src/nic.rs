//! The NIC of an experiment: which one, of which sizes, and where its windows lie.

use beeline_link_sim::machine::Aperture;
use beeline_nic_model::{ConfigError, Nic, NicConfig};
#[cfg(feature = "rtl")]
use beeline_nic_rtl::ClockPeriod;

/// The two devices that can stand behind a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NicKind {
    /// The behavioural one (`nic/model`): what it does takes no time but what the platform gives its device.
    #[default]
    Model,
    /// The RTL (`nic/rtl`), which takes the cycles of its clock beside that.
    #[cfg(feature = "rtl")]
    Rtl { clock: ClockPeriod },
}

/// A NIC, and what a link must know of it.
#[derive(Clone, Debug)]
pub struct NicShape {
    /// Sizes of the NIC.
    pub config: NicConfig,
}

impl NicShape {
    /// Lines ahead of the first that is missing that it holds.
    pub const SPAN_LINES: u32 = 64;

    /// A NIC with as many queues as there are cores, and windows of 256 KiB (HotOS'25, section 2.1).
    pub fn for_cores(cores: u16) -> NicShape {
        let queues = u32::from(cores).max(1);
        let window_lines = 4096;
        let config = NicConfig {
            queues,
            window_lines,
            span_lines: NicShape::SPAN_LINES,
            contexts: queues,
            pool_lines: (2 * queues * window_lines).min(1 << 24),
            ..NicConfig::default()
        };
        NicShape { config }
    }

    /// Returns where the windows of the NIC lie.
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
