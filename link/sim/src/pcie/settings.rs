//! What a link is: rate, sizes, credits, and the rules of its two ends.

use thiserror::Error;

use super::dllp::latency_limit;
use super::{AckRule, Advertised, Class, Generation, Lanes, Limit, UpdateRule};
use crate::des::Picoseconds;

/// The parameters of a link. Sizes are those that software has set, not those that the ends could do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Generation that the link runs at.
    pub generation: Generation,
    /// Width that it has.
    pub lanes: Lanes,
    /// Maximum payload of a TLP, in bytes (MPS): a power of two from 128 to 4096.
    pub max_payload_bytes: u32,
    /// Maximum size of a read request, in bytes (MRRS): a power of two from 128 to 4096.
    pub max_read_request_bytes: u32,
    /// Read completion boundary, in bytes (RCB): 64 or 128.
    pub completion_boundary_bytes: u32,
    /// What each end advertises, by [`Side`](super::Side) and then by class.
    pub advertised: [[Advertised; 3]; 2],
    /// From the last byte on the wire to the packet in the other end's transaction layer: the way, and both ends' pipelines.
    pub flight: Picoseconds,
    /// When a packet is acknowledged. Without effect at generation 6, whose flits acknowledge each other in their own bytes.
    pub acknowledge: AckRule,
    /// When credits go back.
    pub update: UpdateRule,
    /// Whether SKP ordered sets take time.
    pub ordered_sets: bool,
    /// How far behind the first packet of a class a transmitter looks for one that may pass. 0: classes keep their order.
    pub look_ahead: usize,
}

impl LinkSettings {
    /// A link as systems come up with it: payloads of 256 bytes, reads of 512, a boundary of 64; credits without end; the
    /// limits of the specification for acknowledgements and updates; ordered sets.
    pub fn new(generation: Generation, lanes: Lanes) -> LinkSettings {
        let limit = latency_limit(generation, lanes, 256);
        LinkSettings {
            generation,
            lanes,
            max_payload_bytes: 256,
            max_read_request_bytes: 512,
            completion_boundary_bytes: 64,
            advertised: [[Advertised::INFINITE; 3]; 2],
            flight: Picoseconds::ZERO,
            acknowledge: AckRule { after: limit, packets: u32::MAX },
            update: UpdateRule { after: limit, one_in: 2 },
            ordered_sets: true,
            look_ahead: 0,
        }
    }

    /// Whether such a link can exist, and cannot come to a stand.
    ///
    /// # Errors
    /// Names the parameter that is out of bounds.
    pub fn check(&self) -> Result<(), SettingsError> {
        for (name, bytes) in [
            ("max_payload_bytes", self.max_payload_bytes),
            ("max_read_request_bytes", self.max_read_request_bytes),
        ] {
            if !bytes.is_power_of_two() || !(128..=4096).contains(&bytes) {
                return Err(SettingsError::Size { name, bytes });
            }
        }
        if ![64, 128].contains(&self.completion_boundary_bytes) {
            return Err(SettingsError::Boundary { bytes: self.completion_boundary_bytes });
        }
        if self.update.one_in == 0 || self.acknowledge.packets == 0 {
            return Err(SettingsError::Rule);
        }
        self.check_credits()
    }

    fn check_credits(&self) -> Result<(), SettingsError> {
        for (side, classes) in self.advertised.iter().enumerate() {
            for class in Class::ALL {
                // A class must be able to hold its largest packet (Base Specification, table of minimum advertisements);
                // of what is answered, that is an atomic operation with two operands of 16 bytes.
                let units = match class {
                    Class::Posted | Class::Completion => self.max_payload_bytes / 16,
                    Class::NonPosted => 2,
                };
                let too_few =
                    |limit, least| matches!(limit, Limit::Finite(count) if count < least).then_some(least);
                let Advertised { headers, data_units } = classes[class as usize];
                let wanted = too_few(headers, 1).map(|least| ("headers", least));
                let wanted = wanted.or(too_few(data_units, units).map(|least| ("data_units", least)));
                if let Some((name, least)) = wanted {
                    return Err(SettingsError::Credits { side, class, name, least });
                }
            }
        }
        Ok(())
    }
}

/// A parameter that no link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A maximum of a packet.
    #[error("{name} = {bytes} is no size of PCI Express; use a power of two from 128 to 4096")]
    Size {
        /// The parameter.
        name: &'static str,
        bytes: u32,
    },
    /// The read completion boundary.
    #[error("completion_boundary_bytes = {bytes} is no read completion boundary; use 64 or 128")]
    Boundary { bytes: u32 },
    /// A rule that is always true.
    #[error("update.one_in and acknowledge.packets count from 1; use 1 for the earliest answer")]
    Rule,
    /// Credits with which the largest packet would wait for ever.
    #[error(
        "advertised[{side}]: {name} of {class:?} are too few for the largest packet; use {least} or more"
    )]
    Credits {
        /// The end that advertises.
        side: usize,
        class: Class,
        name: &'static str,
        /// The smallest value of that credit.
        least: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> LinkSettings {
        LinkSettings::new(Generation::Gen3, Lanes::new(8).unwrap())
    }

    fn error(change: impl FnOnce(&mut LinkSettings)) -> String {
        let mut settings = settings();
        change(&mut settings);
        settings.check().unwrap_err().to_string()
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        assert_eq!(settings().check(), Ok(()));
        assert!(error(|s| s.max_payload_bytes = 96).starts_with("max_payload_bytes = 96"));
        assert!(error(|s| s.max_read_request_bytes = 8192).starts_with("max_read_request_bytes = 8192"));
        assert!(error(|s| s.completion_boundary_bytes = 32).starts_with("completion_boundary_bytes = 32"));
        assert!(error(|s| s.update.one_in = 0).starts_with("update.one_in"));
        let text = error(|s| s.advertised[1][0] = Advertised::finite(4, 15));
        assert!(
            text.starts_with("advertised[1]: data_units of Posted") && text.ends_with("16 or more"),
            "{text}"
        );
        let text = error(|s| s.advertised[0][1] = Advertised::finite(0, 2));
        assert!(text.starts_with("advertised[0]: headers of NonPosted"), "{text}");
    }
}
