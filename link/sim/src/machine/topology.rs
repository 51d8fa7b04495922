//! What is joined to what in a machine: a row of links from the root complex, and at its end a device, or a switch with a row
//! of links to each of several.

use super::device_end::DeviceEnd;
use super::{DeviceId, Further, MachineError, MachineSettings, SwitchSettings};
use crate::cpu::FenceAck;
use crate::des::Picoseconds;
use crate::pcie::{
    Downstream, Group, Header, Hop, Link, LinkEnd, LinkId, LinkSettings, Receiver, Side, Switch,
};

/// Where devices begin that are reached by requests with the long header, and by the short one.
const BASES: [u64; 2] = [1 << 40, 0xc000_0000];
/// Where memory begins, in the same order.
const MEMORY_BASES: [u64; 2] = [1 << 33, 1 << 20];
/// Where devices below 4 GiB end: interrupts are written behind.
const LOW_END: u64 = 0xfee0_0000;
/// The fewest bytes of a device.
const LEAST_SPAN_BYTES: u64 = 1 << 20;

/// What the upper end of a link is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Above {
    Root,
    Hop(u16),
    /// A port of the switch.
    Port(u16),
}

/// What the lower end of a link is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    Device(DeviceId),
    Hop(u16),
    Switch,
}

/// Both ends of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkEnds {
    pub above: Above,
    pub below: Below,
}

/// A machine without its cores, memory and logic.
pub(super) struct Topology {
    pub links: Vec<Link>,
    pub hops: Vec<Hop>,
    pub uppers: Vec<usize>,
    pub switch: Option<Switch>,
    pub link_ends: Vec<LinkEnds>,
    pub ends: Vec<DeviceEnd>,
    pub base: u64,
    pub span_bytes: u64,
    pub memory_base: u64,
}

impl Topology {
    pub(super) fn new(settings: &MachineSettings) -> Result<Topology, MachineError> {
        let is_low = usize::from(settings.header != Header::FourDw);
        let (base, memory_base) = (BASES[is_low], MEMORY_BASES[is_low]);
        let mut topology = Topology {
            links: Vec::new(),
            hops: Vec::new(),
            uppers: Vec::new(),
            switch: None,
            link_ends: Vec::new(),
            ends: Vec::new(),
            base,
            span_bytes: span_bytes(settings),
            memory_base,
        };
        let below = if settings.switch.is_some() { Below::Switch } else { Below::Device(DeviceId(0)) };
        let mut return_time = settings.root.write_latency;
        return_time += topology.row(Above::Root, &settings.link, &settings.further, below)?;
        topology.links[0].watch(Side::Upstream);
        match &settings.switch {
            None => topology.end(settings, base, return_time),
            Some(switch) => topology.branch_out(settings, switch, return_time)?,
        }
        Ok(topology)
    }

    /// A row of links. Returns what an acknowledgement takes through it.
    fn row(
        &mut self,
        above: Above,
        first: &LinkSettings,
        further: &[Further],
        below: Below,
    ) -> Result<Picoseconds, MachineError> {
        let mut transit = first.flight;
        self.link(LinkEnds { above, below }, first)?;
        for next in further {
            let upper = self.links.len() - 1;
            let hop = self.hops.len() as u16;
            self.link_ends[upper].below = Below::Hop(hop);
            self.link(LinkEnds { above: Above::Hop(hop), below }, &next.link)?;
            let (uppers, lowers) = self.links.split_at_mut(upper + 1);
            self.hops.push(Hop::new(hop, next.latency, &mut uppers[upper], &mut lowers[0]));
            self.uppers.push(upper);
            transit += next.latency + next.link.flight;
        }
        Ok(transit)
    }

    fn link(&mut self, place: LinkEnds, settings: &LinkSettings) -> Result<(), MachineError> {
        let id = LinkId(self.links.len() as u16);
        self.links.push(Link::new(id, settings.clone())?);
        self.link_ends.push(place);
        Ok(())
    }

    /// The end of the row that was added last.
    fn end(&mut self, settings: &MachineSettings, base: u64, return_time: Picoseconds) {
        let device = DeviceId(self.ends.len() as u16);
        self.ends.push(DeviceEnd::new(device, self.links.len() - 1, base, return_time, settings));
    }

    fn branch_out(
        &mut self,
        settings: &MachineSettings,
        switch: &SwitchSettings,
        return_time: Picoseconds,
    ) -> Result<(), MachineError> {
        check(settings, switch, self.base, self.span_bytes)?;
        let (base, span_bytes) = (self.base, self.span_bytes);
        let mut ends = vec![LinkEnd { link: self.links.len() - 1, side: Side::Downstream }];
        let mut downstream = Vec::new();
        for (number, branch) in (0u16..).zip(&switch.branches) {
            ends.push(LinkEnd { link: self.links.len(), side: Side::Upstream });
            let device = DeviceId(number);
            let transit =
                self.row(Above::Port(number + 1), &branch.link, &branch.further, Below::Device(device))?;
            let from = base + u64::from(number) * span_bytes;
            self.end(settings, from, return_time + switch.latency + transit);
            let requester = device.requester();
            downstream.push(Downstream {
                addresses: from..from + span_bytes,
                requesters: requester..requester + 256,
            });
        }
        let devices = downstream.len() as u64;
        let receiver = |device: &u16| Receiver::new(device + 1, base + u64::from(*device) * span_bytes);
        let groups: Vec<Group> = (devices..)
            .zip(&switch.groups)
            .map(|(place, group)| Group {
                addresses: base + place * span_bytes..base + (place + 1) * span_bytes,
                receivers: group.iter().map(receiver).collect(),
            })
            .collect();
        self.switch = Some(Switch::new(switch.latency, &ends, &downstream, &groups, &mut self.links)?);
        Ok(())
    }
}

/// From one device to the next: as many bytes as a device has registers and windows, in whole powers of two.
fn span_bytes(settings: &MachineSettings) -> u64 {
    let aperture = &settings.aperture;
    let bytes = aperture.offset_bytes + u64::from(aperture.queues) * aperture.stride_bytes;
    bytes.next_power_of_two().max(LEAST_SPAN_BYTES)
}

fn check(
    settings: &MachineSettings,
    switch: &SwitchSettings,
    base: u64,
    span_bytes: u64,
) -> Result<(), MachineError> {
    let found = switch.branches.len();
    if !(1..=DeviceId::MOST).contains(&found) {
        let most = DeviceId::MOST;
        return Err(MachineError::Count { what: "branches of a switch", found, least: 1, most });
    }
    if settings.interconnect.is_some() {
        let advice = "leave out the switch, or the interconnect";
        return Err(MachineError::OneDevice { what: "an interconnect that moves lines", advice });
    }
    if settings.core.fence_ack == FenceAck::Device && !switch.groups.is_empty() {
        let advice = "let fences wait for the root complex where writes are copied";
        return Err(MachineError::OneDevice { what: "a fence that waits for the device", advice });
    }
    let found_bytes = span_bytes * (found + switch.groups.len()) as u64;
    if settings.header != Header::FourDw && base + found_bytes > LOW_END {
        return Err(MachineError::Addresses { found_bytes });
    }
    Ok(())
}
