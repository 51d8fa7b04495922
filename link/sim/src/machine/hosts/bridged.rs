//! Packets that meet a bridge which is not transparent: which go on, which it answers, and what interrupts a host.

use super::ntb::{Met, Ntb, NtbCounts, NtbSettings, Register};
use super::topology::ntb_begins_at;
use super::{HostId, Hosts, HostsError, HostsEvent, HostsSettings, Joined};
use crate::pcie::{Class, Hop, Kind, Side, Tlp};

impl Hosts {
    /// Two hosts, at the ends of a row in whose middle hop a bridge is. Programs reach each other by its windows and its registers.
    ///
    /// # Errors
    /// There are no such hosts, or the row has no hop.
    pub fn with_ntb(settings: HostsSettings, ntb: NtbSettings, seed: u64) -> Result<Hosts, HostsError> {
        let has_hop = matches!(&settings.joined, Joined::Row(row) if !row.further.is_empty());
        if !has_hop || settings.engine.is_some() {
            return Err(HostsError::Bridge(
                "anything but two hosts in a row of several links, without engines",
            ));
        }
        ntb.check(settings.span_bytes())?;
        let begin_at = [HostId(0), HostId(1)].map(|host| ntb_begins_at(&settings, host));
        let mut hosts = Hosts::new(settings, seed)?;
        hosts.ntb = Some((hosts.hops.len() / 2, Ntb::new(ntb, begin_at, seed)));
        Ok(hosts)
    }

    fn bridge(&self) -> &Ntb {
        &self.ntb.as_ref().expect("hosts that were made with a bridge").1
    }

    /// Where a register of the bridge is, for a host.
    ///
    /// # Panics
    /// If the hosts were made without a bridge.
    pub fn ntb_register(&self, host: HostId, register: Register) -> u64 {
        self.bridge().register_address(host, register)
    }

    /// Where a window of the bridge begins, for a host; nothing, if it has no such window.
    ///
    /// # Panics
    /// If the hosts were made without a bridge.
    pub fn ntb_window(&self, host: HostId, window: u16) -> Option<u64> {
        self.bridge().window_address(host, window)
    }

    /// What the bridge has.
    ///
    /// # Panics
    /// If the hosts were made without a bridge.
    pub fn ntb_settings(&self) -> &NtbSettings {
        &self.bridge().settings
    }

    /// What a side of the bridge has counted.
    ///
    /// # Panics
    /// If the hosts were made without a bridge.
    pub fn ntb_counts(&self, host: HostId) -> NtbCounts {
        self.bridge().counts(host)
    }

    /// How often a host was interrupted by a bridge.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn interrupts(&self, host: HostId) -> u64 {
        self.host(host).interrupts
    }

    /// A packet has come by link `index` to a hop, and goes on, or ends there.
    pub(super) fn enters_hop(&mut self, index: usize, hop: u16, toward: Side, tlp: Tlp) {
        let hop = usize::from(hop);
        let from = HostId(if toward == Side::Downstream { 0 } else { 1 });
        let is_answer = tlp.kind.class() == Class::Completion;
        let is_bridge = self.ntb.as_ref().is_some_and(|(at, _)| *at == hop);
        if is_answer || !is_bridge {
            self.hops[hop].enter(toward, tlp, &mut self.calendar);
            return;
        }
        let data = if tlp.kind == Kind::MemoryWrite { self.data_of(&tlp) } else { Vec::new() };
        let Some((_, ntb)) = &mut self.ntb else { return };
        match ntb.meets(from, &tlp, &data) {
            Met::Crosses(tlp) => {
                let passes = if tlp.relaxed { ntb.passes() } else { 0 };
                self.hops[hop].enter_passing(toward, tlp, passes, &mut self.calendar);
            }
            Met::Rings => {
                // The write is the interrupt from here on; it has the same length, and the room that it holds.
                self.body_is_gone(&tlp);
                let interrupt = Tlp { kind: Kind::Message, ..tlp };
                self.hops[hop].enter(toward, interrupt, &mut self.calendar);
            }
            Met::Taken => {
                self.body_is_gone(&tlp);
                self.links[index].free(toward, &tlp, &mut self.calendar);
            }
            Met::Shows(value) => {
                self.links[index].free(toward, &tlp, &mut self.calendar);
                self.finds(&tlp, value.map(|value| value.to_le_bytes().to_vec()));
                let (kind, length) = match value {
                    Some(_) => (Kind::CompletionWithData, tlp.length_bytes),
                    None => (Kind::Completion, 0),
                };
                let answer = Tlp { kind, length_bytes: length, completer: from.0 << 8, ..tlp };
                let answer = Tlp { hold: Hop::ITS_OWN, relaxed: false, ..answer };
                self.hops[hop].enter(toward.other(), answer, &mut self.calendar);
            }
        }
        self.send_owed();
    }

    /// Sends interrupts that the bridge makes by itself.
    pub(super) fn send_owed(&mut self) {
        for (host, toward) in [(HostId(0), Side::Upstream), (HostId(1), Side::Downstream)] {
            let Some((hop, ntb)) = &mut self.ntb else { return };
            if ntb.take_owed(host) {
                let tlp = Tlp { requester: host.0 << 8, hold: Hop::ITS_OWN, ..Tlp::new(Kind::Message, 0, 8) };
                self.hops[*hop].enter(toward, tlp, &mut self.calendar);
            }
        }
    }

    /// The link of a host has gone down or has come up: the bridge tells both hosts, as far as it reaches them.
    pub(super) fn bridge_is_told_of_links(&mut self) {
        let is_trained = self.hosts.iter().all(|host| host.is_up);
        if let Some((_, ntb)) = &mut self.ntb {
            ntb.train(is_trained);
            self.send_owed();
        }
    }

    /// A root complex has seen an interrupt.
    pub(super) fn is_interrupted(&mut self, host: HostId) {
        if let Some((_, ntb)) = &self.ntb {
            self.calendar.schedule_in(ntb.settings.interrupt, HostsEvent::Interrupted(host));
        }
    }

    /// Whoever waits on a host for an interrupt has it.
    pub(super) fn handles_interrupt(&mut self, host: HostId) {
        self.host_mut(host).interrupts += 1;
        self.host_changed(host);
    }
}
