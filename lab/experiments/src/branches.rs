//! Several devices behind the switch of a platform.

use beeline_link_sim::machine::{Branch, MachineError, MachineSettings, SwitchSettings};
use beeline_platforms::{CentralSwitch, Platform};

use crate::LabError;
use crate::assembly::{link, ps};

/// Whether the platform's switch has ports for so many devices and the way to the host.
///
/// # Errors
/// The platform has no switch, or one of too few ports.
pub fn check_devices(platform: &Platform, devices: u16) -> Result<(), LabError> {
    switch_for(platform, devices).map(|_| ())
}

fn switch_for(platform: &Platform, devices: u16) -> Result<&CentralSwitch, LabError> {
    let name = || platform.name.clone();
    let switch = platform.switch.as_ref().ok_or_else(|| LabError::NoSwitch { platform: name(), devices })?;
    let ports = switch.ports.value;
    if u32::from(devices) >= ports {
        return Err(LabError::Ports { platform: name(), devices, ports });
    }
    Ok(switch)
}

/// Puts so many devices behind the platform's switch, in a machine that has none yet.
///
/// The switch stands after the first half of the hops; the others follow behind each of its ports, once for each device. The
/// links at its ports are like the one that leads to it.
///
/// # Errors
/// The platform has no switch, or one of too few ports: one leads to the host. The machine moves lines between caches, which
/// one device alone takes part in.
pub(crate) fn branch_out(
    platform: &Platform,
    settings: &mut MachineSettings,
    devices: u16,
) -> Result<(), LabError> {
    if settings.interconnect.is_some() {
        let what = "an interconnect that moves lines";
        return Err(MachineError::OneDevice { what, advice: "ask for one device" }.into());
    }
    let switch = switch_for(platform, devices)?;
    let own = platform.hops.len().div_ceil(2);
    let further = settings.further.split_off(own);
    let before = own.checked_sub(1).map_or(&platform.link, |last| &platform.hops[last].link);
    let branch = Branch { link: link(before)?, further };
    settings.switch = Some(SwitchSettings {
        latency: ps(switch.latency_ns.value),
        branches: vec![branch; usize::from(devices)],
        groups: Vec::new(),
    });
    Ok(())
}
