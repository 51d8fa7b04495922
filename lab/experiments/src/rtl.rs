//! The RTL as the NIC of an experiment. Only in builds with the feature `rtl`, which bring `nic/rtl` and its simulator.

use beeline_link_sim::machine::Aperture;
use beeline_nic_rtl::{ClockPeriod, ClockedNic, QUEUES, RtlConfig, RtlError};

use crate::{LabError, Station, Watched};

/// The RTL on a clock, and where its windows lie. It has the sizes that were built, whatever cores there are.
///
/// # Errors
/// There are more cores than queues.
pub fn rtl_nic(clock: ClockPeriod, cores: u16) -> Result<(ClockedNic, Aperture), RtlError> {
    let found = u32::from(cores);
    if !(1..=QUEUES).contains(&found) {
        return Err(RtlError::OutOfRange { what: "cores", found, least: 1, most: QUEUES });
    }
    let config = RtlConfig::default();
    let (offset_bytes, stride_bytes) = config.aperture();
    let aperture = Aperture { offset_bytes, stride_bytes, window_lines: config.window_lines, queues: QUEUES };
    Ok((ClockedNic::new(&config, clock)?, aperture))
}

/// Whether the RTL that was used may be believed: a failed assertion explains whatever else went wrong.
pub(crate) fn check(station: &Station<Watched<ClockedNic>>) -> Result<(), LabError> {
    let has_failed =
        station.sim.with(|machine| machine.devices().iter().any(|device| device.device().has_failed()));
    if has_failed { Err(RtlError::Assertion.into()) } else { Ok(()) }
}
