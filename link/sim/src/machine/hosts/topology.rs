//! What is joined to what among hosts.

use super::{GROUP_BYTES, HostId, HostsError, HostsSettings, Joined, Row};
use crate::pcie::{Downstream, Group, Hop, Link, LinkEnd, LinkId, LinkSettings, Receiver, Side, Switch};

/// What an end of a link is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Root(HostId),
    Hop(u16),
    /// A port of the switch.
    Port(u16),
}

/// Links, and what stands between them.
#[derive(Default)]
pub(super) struct Topology {
    pub links: Vec<Link>,
    pub hops: Vec<Hop>,
    /// Of each hop, the link above it; the one below is the next.
    pub uppers: Vec<usize>,
    pub switch: Option<Switch>,
    /// What is at both ends of each link, by side.
    pub ends: Vec<[End; 2]>,
    /// Where each host's root complex is.
    pub roots: Vec<LinkEnd>,
}

impl Topology {
    /// `overlays` are the addresses of the memory of each host, by group, that the groups are copied to.
    pub(super) fn new(settings: &HostsSettings, overlays: &[Vec<u64>]) -> Result<Topology, HostsError> {
        let mut topology = Topology::default();
        match &settings.joined {
            Joined::Row(row) => {
                topology.row(End::Root(HostId(0)), row, End::Root(HostId(1)))?;
                let last = topology.links.len() - 1;
                let end = |link, side| LinkEnd { link, side };
                topology.roots = vec![end(0, Side::Upstream), end(last, Side::Downstream)];
            }
            Joined::Rows(rows) => {
                for (port, row) in (0..).step_by(2).zip(rows) {
                    let first = topology.links.len();
                    topology.row(End::Root(HostId(port)), row, End::Root(HostId(port + 1)))?;
                    let last = topology.links.len() - 1;
                    topology.roots.push(LinkEnd { link: first, side: Side::Upstream });
                    topology.roots.push(LinkEnd { link: last, side: Side::Downstream });
                }
            }
            Joined::Switch { latency, rows, groups } => {
                let mut ports = Vec::new();
                for (host, row) in (0..).zip(rows) {
                    topology.roots.push(LinkEnd { link: topology.links.len(), side: Side::Upstream });
                    topology.row(End::Root(HostId(host)), row, End::Port(host))?;
                    ports.push(LinkEnd { link: topology.links.len() - 1, side: Side::Downstream });
                }
                let behind = downstream(settings);
                let groups = copied(settings, groups, overlays);
                topology.switch = Some(Switch::new(*latency, &ports, &behind, &groups, &mut topology.links)?);
            }
        }
        for LinkEnd { link, side } in &topology.roots {
            topology.links[*link].watch(*side);
        }
        Ok(topology)
    }

    fn row(&mut self, above: End, row: &Row, below: End) -> Result<(), HostsError> {
        self.link([above, below], &row.first)?;
        for next in &row.further {
            let upper = self.links.len() - 1;
            let hop = self.hops.len() as u16;
            self.ends[upper][Side::Downstream as usize] = End::Hop(hop);
            self.link([End::Hop(hop), below], &next.link)?;
            let (uppers, lowers) = self.links.split_at_mut(upper + 1);
            self.hops.push(Hop::new(hop, next.latency, &mut uppers[upper], &mut lowers[0]));
            self.uppers.push(upper);
        }
        Ok(())
    }

    fn link(&mut self, ends: [End; 2], settings: &LinkSettings) -> Result<(), HostsError> {
        let id = LinkId(self.links.len() as u16);
        self.links.push(Link::new(id, settings.clone())?);
        self.ends.push(ends);
        Ok(())
    }
}

/// What is behind the ports of the switch, but of the first: what nobody else has goes there.
fn downstream(settings: &HostsSettings) -> Vec<Downstream> {
    let hosts = (1..settings.hosts() as u16).map(HostId);
    hosts
        .map(|host| {
            let from = host.begins_at(settings);
            Downstream {
                addresses: from..from + settings.span_bytes(),
                requesters: host.0 << 8..(host.0 + 1) << 8,
            }
        })
        .collect()
}

fn copied(settings: &HostsSettings, groups: &[Vec<u16>], overlays: &[Vec<u64>]) -> Vec<Group> {
    (0..)
        .zip(groups)
        .map(|(number, hosts)| {
            let from = group_begins_at(settings, number);
            let receiver = |host: &u16| Receiver::new(*host, overlays[usize::from(*host)][number]);
            Group { addresses: from..from + GROUP_BYTES, receivers: hosts.iter().map(receiver).collect() }
        })
        .collect()
}

/// Where the window of a group begins.
pub(super) fn group_begins_at(settings: &HostsSettings, group: usize) -> u64 {
    (settings.hosts() + 1 + group) as u64 * settings.span_bytes()
}

/// Where the function of a bridge begins that is a device, for a host: behind its memory.
pub(super) fn ntb_begins_at(settings: &HostsSettings, host: HostId) -> u64 {
    host.begins_at(settings) + settings.span_bytes() / 2
}
