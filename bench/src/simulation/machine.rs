//! The machine that is simulated: that of HotOS'25, a core of an EPYC 7543 and a NIC behind Gen4 x16.

use beeline_experiments::{Data, NicShape, machine};
use beeline_link_sim::machine::MachineSettings;
use beeline_link_sim::pcie::LinkSettings;
use beeline_platforms::Platform;

use crate::BenchError;

/// One core, and a NIC of this shape.
pub fn settings(shape: &NicShape) -> Result<MachineSettings, BenchError> {
    let failed = |why: String| BenchError::Simulation(why);
    let platform = Platform::named("epyc-7543-cx6dx").map_err(|error| failed(error.to_string()))?;
    machine(&platform, 1, shape.aperture(), Data::default()).map_err(|error| failed(error.to_string()))
}

pub fn link() -> Result<LinkSettings, BenchError> {
    settings(&NicShape::for_cores(1)).map(|settings| settings.link)
}
