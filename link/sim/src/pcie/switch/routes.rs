//! Where packets go that come in by a port of a switch.

use std::ops::Range;

use thiserror::Error;

use crate::pcie::{Class, Kind, Tlp};

/// The number of a switch's port towards the root complex; those towards devices follow.
pub const UPSTREAM_PORT: u16 = 0;
/// The least bytes of a window that is copied (Base Specification, Multicast capability: an index position of 12).
const LEAST_GROUP_BYTES: u64 = 1 << 12;
const MOST_RECEIVERS: usize = u64::BITS as usize;

/// The addresses and IDs behind a downstream port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downstream {
    /// Addresses of it, as the bridge of a port has them in its base and limit.
    pub addresses: Range<u64>,
    /// Requester IDs of it: its bus numbers.
    pub requesters: Range<u16>,
}

/// A multicast group: addresses of which each posted write goes to every receiver but the one it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its addresses: a power of two of them, from a multiple of that on.
    pub addresses: Range<u64>,
    pub receivers: Vec<Receiver>,
}

/// A port that gets copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    pub port: u16,
    /// What is written there instead of the first address of the group (the capability's overlay).
    pub overlay: u64,
    /// The bytes of the group, less one.
    mask: u64,
    /// Whether it gets copies now (the capability's receive register).
    receives: bool,
}

impl Receiver {
    /// A port, and where in its addresses the group begins; a multiple of the bytes of the group.
    pub fn new(port: u16, overlay: u64) -> Receiver {
        Receiver { port, overlay, mask: 0, receives: true }
    }

    /// What an address of the group is for this receiver.
    pub(super) fn address(&self, address: u64) -> u64 {
        self.overlay | address & self.mask
    }
}

/// A switch that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SwitchError {
    /// Too few ports.
    #[error(
        "a switch of {ports} ports with {downstream} downstream cannot be; it has one upstream port and at least one more"
    )]
    Ports {
        /// Ends that were given.
        ports: usize,
        /// Downstream ports that were described.
        downstream: usize,
    },
    /// Two have the same addresses or requester IDs.
    #[error("{first} and {second} of a switch have the same {what}; give each its own")]
    Overlap { first: String, second: String, what: &'static str },
    /// Addresses that no group can have.
    #[error(
        "the addresses {from:#x} to {to:#x} of multicast group {group} are no power of two from {LEAST_GROUP_BYTES} bytes \
         on, at a multiple of their number"
    )]
    GroupAddresses {
        group: usize,
        /// The first address.
        from: u64,
        /// The one behind the last.
        to: u64,
    },
    /// Receivers that no group can have.
    #[error("receiver {port} of multicast group {group}: {why}")]
    GroupReceiver {
        group: usize,
        port: u16,
        /// What is wrong, and what to do.
        why: &'static str,
    },
    /// Links of different packets: a switch does not cut them.
    #[error(
        "port {port} of a switch has {what} = {found} and its upstream port {first}; use one size for all"
    )]
    Sizes {
        port: usize,
        /// Name of the setting that differs.
        what: &'static str,
        found: u32,
        /// Value of that setting at the upstream port.
        first: u32,
    },
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Port(u16),
    /// By ports of this group: those that received when the packet came in, a bit for each receiver.
    Group(u16, u64),
    Nowhere,
}

/// All that a switch knows of its surroundings.
#[derive(Debug)]
pub(super) struct Routes {
    downstream: Vec<Downstream>,
    groups: Vec<Group>,
}

impl Routes {
    pub(super) fn new(
        ports: usize,
        downstream: &[Downstream],
        groups: &[Group],
    ) -> Result<Routes, SwitchError> {
        if downstream.is_empty() || ports != downstream.len() + 1 {
            return Err(SwitchError::Ports { ports, downstream: downstream.len() });
        }
        check_overlaps(downstream, groups)?;
        let mut groups = groups.to_vec();
        for (number, group) in groups.iter_mut().enumerate() {
            check_group(number, group, ports)?;
            let mask = group.addresses.end - group.addresses.start - 1;
            group.receivers.iter_mut().for_each(|receiver| receiver.mask = mask);
        }
        Ok(Routes { downstream: downstream.to_vec(), groups })
    }

    /// Where a packet goes that came in by `port`.
    pub(super) fn route(&self, port: u16, tlp: &Tlp) -> Route {
        let found = match tlp.kind.class() {
            Class::Completion => {
                self.downstream.iter().position(|behind| behind.requesters.contains(&tlp.requester))
            }
            _ if tlp.kind == Kind::Message => None,
            _ => {
                let is_in = |group: &Group| group.addresses.contains(&tlp.address);
                if let Some(group) = self.groups.iter().position(is_in) {
                    // Base Specification, Multicast: of other requests nobody could answer for all.
                    let is_write = tlp.kind == Kind::MemoryWrite;
                    let receivers = self.receiving(group, port);
                    return if is_write { Route::Group(group as u16, receivers) } else { Route::Nowhere };
                }
                self.downstream.iter().position(|behind| behind.addresses.contains(&tlp.address))
            }
        };
        let to = found.map_or(UPSTREAM_PORT, |index| index as u16 + 1);
        // What would go back to where it came from has nobody there.
        if to == port { Route::Nowhere } else { Route::Port(to) }
    }

    pub(super) fn copies(route: Route) -> u16 {
        match route {
            Route::Port(_) => 1,
            Route::Group(_, receivers) => receivers.count_ones() as u16,
            Route::Nowhere => 0,
        }
    }

    /// Who gets copies of what comes in by `port` now.
    fn receiving(&self, group: usize, port: u16) -> u64 {
        let receivers = self.groups[group].receivers.iter().zip(0..);
        let gets = receivers.filter(|(receiver, _)| receiver.receives && receiver.port != port);
        gets.fold(0, |bits, (_, at)| bits | 1_u64 << at)
    }

    pub(super) fn receivers(&self, group: u16, receivers: u64) -> impl Iterator<Item = &Receiver> {
        let all = self.groups[usize::from(group)].receivers.iter().zip(0..);
        all.filter(move |(_, at)| receivers & 1_u64 << at != 0).map(|(receiver, _)| receiver)
    }

    /// Whether a port is one of a group, which gets copies from here on or does not.
    pub(super) fn set_receives(&mut self, group: u16, port: u16, receives: bool) -> bool {
        let group = self.groups.get_mut(usize::from(group));
        let receiver = group.and_then(|group| group.receivers.iter_mut().find(|it| it.port == port));
        receiver.map(|receiver| receiver.receives = receives).is_some()
    }
}

fn check_overlaps(downstream: &[Downstream], groups: &[Group]) -> Result<(), SwitchError> {
    let ports = downstream.iter().zip(1..).map(|(behind, port): (_, u32)| (format!("port {port}"), behind));
    let ports: Vec<_> = ports.collect();
    let named = ports.iter().map(|(name, behind)| (name.clone(), &behind.addresses));
    let copied =
        groups.iter().enumerate().map(|(n, group)| (format!("multicast group {n}"), &group.addresses));
    check_apart("addresses", &named.chain(copied).collect::<Vec<_>>())?;
    let ids: Vec<_> = ports.iter().map(|(name, behind)| (name.clone(), &behind.requesters)).collect();
    check_apart("requester IDs", &ids)
}

fn check_apart<T: Ord>(what: &'static str, ranges: &[(String, &Range<T>)]) -> Result<(), SwitchError> {
    for (index, (second, range)) in ranges.iter().enumerate() {
        for (first, other) in &ranges[..index] {
            if range.start < other.end && other.start < range.end {
                return Err(SwitchError::Overlap { first: first.clone(), second: second.clone(), what });
            }
        }
    }
    Ok(())
}

fn check_group(number: usize, group: &Group, ports: usize) -> Result<(), SwitchError> {
    let Range { start: from, end: to } = group.addresses;
    let bytes = to.saturating_sub(from);
    if !bytes.is_power_of_two() || bytes < LEAST_GROUP_BYTES || !from.is_multiple_of(bytes) {
        return Err(SwitchError::GroupAddresses { group: number, from, to });
    }
    let wrong = |port, why| Err(SwitchError::GroupReceiver { group: number, port, why });
    if group.receivers.is_empty() {
        return wrong(UPSTREAM_PORT, "there is none at all; name at least one port");
    }
    if group.receivers.len() > MOST_RECEIVERS {
        return wrong(group.receivers[MOST_RECEIVERS].port, "it is one of more than 64; name fewer ports");
    }
    for (index, receiver) in group.receivers.iter().enumerate() {
        let port = receiver.port;
        if usize::from(port) >= ports {
            return wrong(port, "there is no such port");
        }
        if group.receivers[..index].iter().any(|other| other.port == port) {
            return wrong(port, "it is named twice; a port gets one copy");
        }
        if !receiver.overlay.is_multiple_of(bytes) {
            return wrong(port, "its overlay is no multiple of the bytes of the group");
        }
    }
    Ok(())
}
