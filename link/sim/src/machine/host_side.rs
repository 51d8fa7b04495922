//! Events at the host's end: packets of cores that leave, completions, what the device writes and answers.

use super::state::Around;
use super::topology::{Above, Below, LinkEnds};
use super::{DeviceId, Event};
use crate::cpu::FenceAck;
use crate::pcie::{Arrival, Class, HopEvent, Kind, LinkEvent, Side, Tlp, UPSTREAM_PORT};
use crate::root::Outgoing;

/// Where a device writes to interrupt the host.
pub(super) const INTERRUPT_ADDRESS: u64 = 0xfee0_0000;
/// The body of an interrupt, which has none.
pub(super) const NO_BLOCK: u32 = u32::MAX;

impl Around {
    /// Something happens on a link.
    #[inline]
    pub(super) fn link_happens(&mut self, event: LinkEvent) {
        let index = usize::from(event.link.0);
        let arrival = self.links[index].happen(event, &mut self.calendar);
        if let Some(arrival) = arrival {
            self.arrives(index, arrival);
        }
        if self.links.len() > 1 {
            self.settle_ends(index);
        }
        // What happens at the other end lets nothing leave the root complex.
        if index == 0 && event.side == Side::Upstream {
            self.settle_root();
        }
    }

    pub(super) fn hop_happens(&mut self, event: HopEvent) {
        let upper = self.uppers[usize::from(event.hop)];
        let (uppers, lowers) = self.links.split_at_mut(upper + 1);
        let hop = &mut self.hops[usize::from(event.hop)];
        hop.happen(event, &mut uppers[upper], &mut lowers[0], &mut self.calendar);
        if upper == 0 {
            self.settle_root();
        }
    }

    /// What stands at the ends of a link lets go of what has left by it.
    fn settle_ends(&mut self, link: usize) {
        let LinkEnds { above, below } = self.link_ends[link];
        if let Above::Hop(hop) = above {
            self.settle_hop(hop);
        }
        if let Below::Hop(hop) = below {
            self.settle_hop(hop);
        }
        if (matches!(above, Above::Port(_)) || below == Below::Switch)
            && let Some(switch) = &mut self.switch
        {
            switch.settle(&mut self.links, &mut self.calendar);
        }
    }

    fn settle_hop(&mut self, hop: u16) {
        let upper = self.uppers[usize::from(hop)];
        let (uppers, lowers) = self.links.split_at_mut(upper + 1);
        self.hops[usize::from(hop)].settle(&mut uppers[upper], &mut lowers[0], &mut self.calendar);
    }

    #[inline]
    fn arrives(&mut self, index: usize, arrival: Arrival) {
        let Arrival { side, tlp } = arrival;
        let LinkEnds { above, below } = self.link_ends[index];
        match (side, above, below) {
            (Side::Downstream, _, Below::Device(device)) => self.arrives_at_device(device, tlp),
            (Side::Downstream, _, Below::Hop(hop)) => {
                self.hops[usize::from(hop)].enter(Side::Downstream, tlp, &mut self.calendar);
            }
            (Side::Downstream, _, Below::Switch) => self.enters_switch(UPSTREAM_PORT, tlp),
            (Side::Upstream, Above::Root, _) => self.arrives_at_root(tlp),
            (Side::Upstream, Above::Hop(hop), _) => {
                self.hops[usize::from(hop)].enter(Side::Upstream, tlp, &mut self.calendar);
            }
            (Side::Upstream, Above::Port(port), _) => self.enters_switch(port, tlp),
        }
    }

    fn arrives_at_root(&mut self, tlp: Tlp) {
        let now = self.calendar.now();
        if tlp.kind != Kind::MemoryRead {
            let goes_to_memory = tlp.kind == Kind::MemoryWrite && tlp.body != NO_BLOCK;
            let bandwidth = goes_to_memory.then_some(&mut self.bandwidth);
            if let Some(at) = self.inbound.arrive(now, tlp, &self.settings.root, bandwidth) {
                self.calendar.schedule(at, Event::HostSees);
            }
            return;
        }
        self.links[0].free(Side::Upstream, &tlp, &mut self.calendar);
        let end = &mut self.ends[DeviceId::of_requester(tlp.requester)];
        let read = &end.reads[tlp.body as usize];
        let (root, link) = (&self.settings.root, &self.settings.link);
        let at = (tlp.address - read.address) as usize;
        let into = &mut self.blocks.of(read.block)[at..at + tlp.length_bytes as usize];
        let first = if self.memory.read(tlp.address, into) {
            // Writes in front of it that programs do not see yet: a read passes none of them.
            for write in self.inbound.writes().filter(|write| write.body != NO_BLOCK) {
                let range = at..at + tlp.length_bytes as usize;
                self.blocks.overlay((write.body, write.address), (read.block, read.address), range);
            }
            self.inbound.read(now, &tlp, root, link, &mut self.bandwidth)
        } else {
            end.totals.faults += 1;
            self.inbound.refuse(now, &tlp, root)
        };
        if let Some(at) = first {
            self.calendar.schedule(at, Event::RootAnswers);
        }
    }

    pub(super) fn root_sends(&mut self) {
        self.root_paths.outbound.woken(self.calendar.now());
        self.settle_root();
    }

    /// Packets of cores leave as far as they may, and places of those that have left are free.
    #[inline]
    pub(super) fn settle_root(&mut self) {
        loop {
            let was_full = !self.root_paths.outbound.has_room();
            self.note_departures();
            if was_full && self.root_paths.outbound.has_room() {
                self.room_returned();
            }
            if self.links[0].waiting(Side::Upstream, Class::Posted) > 0 || !self.send_one() {
                return;
            }
        }
    }

    /// The next packet of a core has an event.
    #[inline]
    pub(super) fn schedule_send(&mut self) {
        let wire_free_at = self.links[0].free_at(Side::Upstream);
        let at = self.root_paths.outbound.to_schedule(self.calendar.now(), wire_free_at);
        if let Some(at) = at {
            self.calendar.schedule(at, Event::RootSends);
        }
    }

    /// Sends the next packet if one is ready.
    fn send_one(&mut self) -> bool {
        match self.root_paths.outbound.take(self.calendar.now(), &self.settings.root) {
            Outgoing::Packet(second) => {
                let tlp = self.root_paths.outbound.pop();
                if let Some(second) = second {
                    self.root_paths.lines.join(tlp.body, second);
                }
                let sent = self.links[0].send(Side::Upstream, tlp, &mut self.calendar);
                sent.expect("a line is never longer than the least maximum of a payload");
                true
            }
            Outgoing::Later(_) => {
                self.schedule_send();
                false
            }
            Outgoing::Nothing => false,
        }
    }

    #[inline]
    fn note_departures(&mut self) {
        while let Some(tlp) = self.links[0].next_departed(Side::Upstream) {
            if tlp.kind.class() == Class::Completion {
                continue;
            }
            self.root_paths.outbound.left(self.calendar.now(), &tlp);
            if self.fence_ack == FenceAck::RootComplex && tlp.kind == Kind::MemoryWrite {
                let back = self.settings.root.write_latency;
                self.acknowledge(&tlp, back);
            }
        }
    }

    /// Word that a write has come as far as fences want is back at its core after `back`.
    pub(super) fn acknowledge(&mut self, tlp: &Tlp, back: crate::des::Picoseconds) {
        let at = self.calendar.now() + back;
        // Two lines that were merged were two packets to the core.
        let packets = if tlp.length_bytes > 64 { 2 } else { 1 };
        let core = usize::from(tlp.requester);
        let mut resumes = false;
        for _ in 0..packets {
            let (state, mut path) = self.state(core);
            resumes |= state.core.acknowledged(at, &mut path);
        }
        if resumes {
            self.settle_core(core);
        }
    }

    /// Cores take turns at being first: with few places the same ones would have them all otherwise.
    fn room_returned(&mut self) {
        let now = self.calendar.now();
        let cores = self.core_states.len();
        let first = self.served_next;
        self.served_next = (first + 1) % cores;
        for nth in 0..cores {
            let core = (first + nth) % cores;
            let (state, mut path) = self.state(core);
            state.core.room_returned(now, &mut path);
            self.settle_core(core);
        }
    }

    pub(super) fn root_answers(&mut self) {
        // Packets of cores that were ready before are in front.
        self.settle_root();
        let now = self.calendar.now();
        while let Some((tlp, next)) = self.inbound.next_answer(now) {
            let sent = self.links[0].send(Side::Upstream, tlp, &mut self.calendar);
            sent.expect("completions are cut to fit");
            if let Some(at) = next.filter(|at| *at > now) {
                self.calendar.schedule(at, Event::RootAnswers);
            }
        }
        self.settle_root();
    }

    pub(super) fn host_sees(&mut self) {
        let Some((tlp, next)) = self.inbound.next_seen() else { return };
        if let Some(at) = next {
            self.calendar.schedule(at, Event::HostSees);
        }
        self.links[0].free(Side::Upstream, &tlp, &mut self.calendar);
        match tlp.kind {
            Kind::MemoryWrite if tlp.body == NO_BLOCK => {
                self.ends[DeviceId::of_requester(tlp.requester)].totals.interrupts += 1;
                self.host_changed();
            }
            Kind::MemoryWrite => {
                if !self.memory.write(tlp.address, self.blocks.of(tlp.body)) {
                    self.ends[DeviceId::of_requester(tlp.requester)].totals.faults += 1;
                }
                self.blocks.remove(tlp.body);
                self.host_changed();
            }
            _ => self.load_answered(&tlp),
        }
        self.settle_root();
    }

    fn load_answered(&mut self, tlp: &Tlp) {
        let now = self.calendar.now();
        let core = usize::from(tlp.tag);
        let (state, mut path) = self.state(core);
        state.keep_answer(tlp.body as u16);
        state.core.answered(now, &mut path);
        self.settle_core(core);
    }
}
