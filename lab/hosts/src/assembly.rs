//! Hosts from a platform file.

use beeline_experiments::{Data, LabError, machine};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::DeviceSettings;
use beeline_link_sim::machine::hosts::{EngineSettings, HostsSettings, Joined, Row};
use beeline_link_sim::machine::{Aperture, Further};
use beeline_platforms::{Kind, Platform};

/// How long a lost answer is waited for: the default range of Device Control 2 is 50 us to 50 ms.
const COMPLETION_TIMEOUT: Picoseconds = Picoseconds::from_ns(50_000);
/// Packets of data that an engine holds: assumed, enough for the time that memory takes at the rate of any of these links.
const BUFFERS: usize = 32;
/// Requests of an engine: assumed, so that those of 512 bytes cover the way there and back on links of four lanes. No figure is of reads across.
const TAGS: u16 = 8;
/// Devices are at the switch, and have no windows.
const NO_WINDOWS: Aperture = Aperture { offset_bytes: 64, stride_bytes: 64, window_lines: 1, queues: 1 };

/// How hosts are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Two, by the hops of the platform.
    Pair,
    /// Two with so many adapters each, every one of which is joined to that of its number by hops of its own.
    Adapters(u16),
    /// So many, by the central switch of the platform, which stands after the first half of the hops.
    Switch {
        hosts: u16,
        /// Devices at ports of their own, by a link like that of the last port.
        devices: u16,
        /// Reflective memory: the hosts of each group.
        groups: Vec<Vec<u16>>,
    },
}

/// Hosts of a platform, all alike, with one core each.
///
/// # Errors
/// The platform is no bridge to another host, or has no central switch of so many ports.
pub fn hosts(platform: &Platform, shape: &Shape) -> Result<HostsSettings, LabError> {
    if !matches!(platform.kind, Kind::Ntb | Kind::Dma) {
        let what = format!("{} joins no hosts", platform.name);
        return Err(LabError::Traffic { what, advice: "use a platform whose kind is \"ntb\" or \"dma\"" });
    }
    let one = machine(platform, 1, NO_WINDOWS, Data::default())?;
    let row = Row { first: one.link.clone(), further: one.further.clone() };
    let joined = match shape {
        Shape::Pair => Joined::Row(row),
        Shape::Adapters(count) => Joined::Rows(vec![row; usize::from(*count)]),
        Shape::Switch { hosts, devices, groups } => {
            let ports = platform.switch.as_ref().map_or(0, |switch| switch.ports.value);
            let (Some(switch), true) = (&platform.switch, u32::from(*hosts) + u32::from(*devices) <= ports)
            else {
                let what = format!(
                    "{hosts} hosts and {devices} devices at a central switch of {ports} ports ({})",
                    platform.name
                );
                return Err(LabError::Traffic { what, advice: "ask for as many as its [switch] has ports" });
            };
            let (near, far) = halves(&row);
            let port = far.further.last().map_or(&far.first, |last| &last.link).clone();
            let device = Row { first: port, further: Vec::new() };
            let rows = (0..*hosts).map(|host| if host == 0 { near.clone() } else { far.clone() });
            let rows = rows.chain((0..*devices).map(|_| device.clone()));
            Joined::Switch {
                latency: Picoseconds(switch.latency_ns.value.picoseconds()),
                rows: rows.collect(),
                groups: groups.clone(),
            }
        }
    };
    Ok(HostsSettings {
        core: one.core,
        cores: 1,
        root: one.root,
        joined,
        header: one.header,
        completion_timeout: COMPLETION_TIMEOUT,
        engine: engine(platform, &one.device),
    })
}

/// The engine of each port, of platforms whose data an engine moves. Reads and writes begin alike.
fn engine(platform: &Platform, device: &DeviceSettings) -> Option<EngineSettings> {
    (platform.kind == Kind::Dma).then_some(EngineSettings {
        start: device.write_start,
        interval: device.write_interval,
        rate: device.data_rate,
        buffers: BUFFERS,
        tags: TAGS,
    })
}

/// The row of a platform, cut where a central switch stands: from the root complex at each end to it. The link at the port of the far end
/// is as the one that leads to the switch.
fn halves(row: &Row) -> (Row, Row) {
    let (near, far) = row.further.split_at(row.further.len().div_ceil(2));
    let at_port = near.last().map_or(&row.first, |last| &last.link);
    let links: Vec<_> = std::iter::once(at_port).chain(far.iter().map(|hop| &hop.link)).collect();
    let further = far.iter().rev().zip(links.iter().rev().skip(1));
    let further = further.map(|(hop, link)| Further { latency: hop.latency, link: (*link).clone() });
    let first = (*links.last().unwrap_or(&at_port)).clone();
    (Row { first: row.first.clone(), further: near.to_vec() }, Row { first, further: further.collect() })
}
