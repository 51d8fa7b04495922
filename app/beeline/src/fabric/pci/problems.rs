//! What stands in the way of a fabric through a function, and what helps.

use super::function::{Function, Role, Window};

/// What is known of a function beside what is shown of it.
pub struct Facts {
    /// The driver for such ones, where its numbers are known.
    pub known_driver: Option<&'static str>,
    pub is_enabled: bool,
    /// `DMA`, `DMA-FQ`, `identity`, or nothing without an IOMMU.
    pub iommu_type: Option<String>,
    /// This user may open the files of all its windows.
    pub may_map: bool,
    /// The kernel maps no BAR for anybody.
    pub is_locked_down: bool,
}

/// The problems of a function that has a role.
pub fn of(function: &Function, facts: &Facts) -> Vec<String> {
    let Function { role, driver, link, link_at_most, windows, .. } = function;
    let is_port = *role == Some(Role::TransparentPort);
    let is_bridge = matches!(role, Some(Role::NonTransparentBridge | Role::OtherBridge));
    let mut problems = Vec::new();
    match (link, link_at_most) {
        (None, Some(most)) if is_port => problems.push(format!(
            "no link, {most} at most: nothing is plugged in below it, or what is there is off"
        )),
        (Some(link), Some(most)) if link != most => {
            problems.push(format!(
                "its link is {link}, and could be {most}: is the slot, or the other side, a lesser one?"
            ));
        }
        _ => {}
    }
    if is_port {
        return problems;
    }
    if let (Role::NonTransparentBridge, None, Some(known)) =
        (role.unwrap_or(Role::Endpoint), driver, facts.known_driver)
    {
        problems.push(format!("no driver has it: {known} sets its windows up"));
    }
    if windows.is_empty() {
        problems.push("it has no BAR of prefetchable memory: stores have no window to go through; a bridge gets one in the firmware's setup".to_owned());
        return problems;
    }
    if facts.is_locked_down {
        problems.push(
            "the kernel is locked down and maps no BAR: boot without `lockdown=`, or without secure boot"
                .to_owned(),
        );
    }
    if !facts.may_map {
        let files = windows.iter().map(Window::file).collect::<Vec<_>>().join(", ");
        problems.push(format!(
            "this user may not map it: run as root, or give the user {files} of its folder in sysfs"
        ));
    }
    if !facts.is_enabled {
        problems.push(
            "it is not enabled: write 1 to `enable` of its folder in sysfs, or bind its driver".to_owned(),
        );
    }
    for window in windows.iter().filter(|window| !window.is_write_combining) {
        problems.push(format!(
            "BAR {} is not mapped write-combining here: each store goes alone, which is many times slower",
            window.bar
        ));
    }
    match (&facts.iommu_type, function.iommu_group) {
        (Some(kind), Some(group)) if is_bridge && kind != "identity" => problems.push(format!(
            "an IOMMU translates what the other host stores (group {group}, {kind}): its driver has to map the memory, or boot with iommu=pt"
        )),
        _ => {}
    }
    problems
}
