//! Packets between hosts: what leaves a root complex, what crosses, and what arrives.

use super::topology::End;
use super::{HostId, Hosts, HostsEvent, LOST, Place};
use crate::cpu::FenceAck;
use crate::pcie::{Class, Entered, HopEvent, Kind, LinkEnd, LinkEvent, SwitchEvent, Tlp};
use crate::root::Outgoing;

impl Hosts {
    pub(super) fn link_happens(&mut self, event: LinkEvent) {
        let index = usize::from(event.link.0);
        if let Some(arrival) = self.links[index].happen(event, &mut self.calendar) {
            match self.ends[index][arrival.side as usize] {
                End::Root(host) => self.arrives(host, arrival.tlp),
                // It goes on the way that it came.
                End::Hop(hop) => self.enters_hop(index, hop, arrival.side, arrival.tlp),
                End::Port(port) => self.enters_switch(port, arrival.tlp),
            }
        }
        self.settle_ends(index);
    }

    pub(super) fn hop_happens(&mut self, event: HopEvent) {
        let upper = self.uppers[usize::from(event.hop)];
        let (uppers, lowers) = self.links.split_at_mut(upper + 1);
        self.hops[usize::from(event.hop)].happen(
            event,
            &mut uppers[upper],
            &mut lowers[0],
            &mut self.calendar,
        );
        self.settle_ends(upper);
        self.settle_ends(upper + 1);
    }

    pub(super) fn switch_happens(&mut self, event: SwitchEvent) {
        if let Some(switch) = &mut self.switch {
            switch.happen(event, &mut self.links, &mut self.calendar);
        }
    }

    /// What stands at the ends of a link lets go of what has left by it.
    fn settle_ends(&mut self, link: usize) {
        for end in self.ends[link] {
            match end {
                End::Root(host) => self.settle_root(host),
                End::Hop(hop) => {
                    let upper = self.uppers[usize::from(hop)];
                    let (uppers, lowers) = self.links.split_at_mut(upper + 1);
                    let hop = &mut self.hops[usize::from(hop)];
                    hop.settle(&mut uppers[upper], &mut lowers[0], &mut self.calendar);
                }
                End::Port(_) => {
                    if let Some(switch) = &mut self.switch {
                        switch.settle(&mut self.links, &mut self.calendar);
                    }
                }
            }
        }
    }

    fn enters_switch(&mut self, port: u16, tlp: Tlp) {
        let Some(switch) = &mut self.switch else { return };
        match switch.enter(port, tlp, &mut self.links, &mut self.calendar) {
            Entered::Copies(0) => self.body_is_gone(&tlp),
            Entered::Copies(copies) if copies > 1 => {
                let from = Place::of_requester(tlp.requester);
                let it = self.host_mut(from.host);
                if from.is_engine() {
                    it.blocks.copy(tlp.body, copies - 1);
                } else {
                    it.paths.lines.copy(tlp.body, copies - 1);
                }
            }
            Entered::Copies(_) => {}
            Entered::Refused if tlp.kind.class() == Class::NonPosted => self.finds(&tlp, None),
            Entered::Refused => self.body_is_gone(&tlp),
        }
    }

    pub(super) fn body_is_gone(&mut self, tlp: &Tlp) {
        if tlp.kind != Kind::MemoryWrite {
            return;
        }
        let from = Place::of_requester(tlp.requester);
        let it = self.host_mut(from.host);
        if from.is_engine() {
            it.blocks.remove(tlp.body);
        } else {
            it.paths.lines.remove(tlp.body);
        }
    }

    /// The bytes that a write carries.
    pub(super) fn data_of(&mut self, write: &Tlp) -> Vec<u8> {
        let from = Place::of_requester(write.requester);
        let it = &mut self.hosts[usize::from(from.host.0)];
        if from.is_engine() {
            it.blocks.of(write.body).clone()
        } else {
            it.paths.lines.of(write.body, &mut self.joined).to_vec()
        }
    }

    /// What a request finds where it comes to: nothing if that is no memory. It travels with the answer.
    pub(super) fn finds(&mut self, request: &Tlp, bytes: Option<Vec<u8>>) {
        let from = Place::of_requester(request.requester);
        if !from.is_engine() {
            let word = bytes.and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
            self.core(from).0.loaded = word.unwrap_or(LOST);
        } else if let (Some(engine), Some(bytes)) = (&mut self.host_mut(from.host).engine, bytes) {
            engine.reads.found(request, bytes);
        }
    }

    /// A packet is lost, because a link is down.
    fn lose(&mut self, tlp: &Tlp) {
        self.body_is_gone(tlp);
        if tlp.kind.class() != Class::Posted {
            let place = Place::of_requester(tlp.requester);
            let over = if place.is_engine() {
                HostsEvent::EngineTimesOut { host: place.host, id: tlp.body }
            } else {
                HostsEvent::LoadTimesOut(place)
            };
            self.calendar.schedule_in(self.settings.completion_timeout, over);
        }
    }

    fn arrives(&mut self, host: HostId, tlp: Tlp) {
        let now = self.calendar.now();
        let is_answer = tlp.kind.class() == Class::Completion;
        let from =
            if is_answer { HostId(tlp.completer >> 8) } else { Place::of_requester(tlp.requester).host };
        let LinkEnd { link, side } = self.host(host).root;
        if !self.host(host).is_up || !self.host(from).is_up {
            self.links[link].free(side, &tlp, &mut self.calendar);
            self.lose(&tlp);
            return;
        }
        if !is_answer && self.host(host).refused.contains(&from) {
            self.links[link].free(side, &tlp, &mut self.calendar);
            self.host_mut(host).faults += 1;
            self.lose(&tlp);
            return;
        }
        if tlp.kind == Kind::MemoryRead {
            self.links[link].free(side, &tlp, &mut self.calendar);
            self.is_read(host, &tlp);
            return;
        }
        if is_answer && Place::of_requester(tlp.requester).is_engine() {
            self.links[link].free(side, &tlp, &mut self.calendar);
            self.engine_answered(host, &tlp);
            return;
        }
        let home = host.home(&self.settings);
        // Ports of a host share its memory.
        let mut bandwidth = std::mem::take(&mut self.host_mut(home).bandwidth);
        let memory = (tlp.kind == Kind::MemoryWrite).then_some(&mut bandwidth);
        let it = &mut self.hosts[usize::from(host.0)];
        let seen = it.inbound.arrive(now, tlp, &self.settings.root, memory);
        self.host_mut(home).bandwidth = bandwidth;
        if let Some(at) = seen {
            self.calendar.schedule(at, HostsEvent::HostSees(host));
        }
    }

    /// A host's memory is read, behind the writes that came before.
    fn is_read(&mut self, host: HostId, tlp: &Tlp) {
        let now = self.calendar.now();
        let home = host.home(&self.settings);
        let mut bytes = vec![0; tlp.length_bytes as usize];
        let is_memory = self.host_mut(home).memory.read(tlp.address, &mut bytes);
        let mut bandwidth = std::mem::take(&mut self.host_mut(home).bandwidth);
        let it = &mut self.hosts[usize::from(host.0)];
        let link = self.links[it.root.link].settings();
        let first = if is_memory {
            it.inbound.read(now, tlp, &self.settings.root, link, &mut bandwidth)
        } else {
            it.faults += 1;
            it.inbound.refuse(now, tlp, &self.settings.root)
        };
        self.host_mut(home).bandwidth = bandwidth;
        if let Some(at) = first {
            self.calendar.schedule(at, HostsEvent::RootAnswers(host));
        }
        // Writes in front of it that programs do not see yet.
        let waiting: Vec<Tlp> = self.host(host).inbound.writes().copied().collect();
        for write in waiting {
            for (address, byte) in (write.address..).zip(self.data_of(&write)) {
                if let Some(at) = address.checked_sub(tlp.address)
                    && let Some(into) = bytes.get_mut(at as usize)
                {
                    *into = byte;
                }
            }
        }
        self.finds(tlp, is_memory.then_some(bytes));
    }

    pub(super) fn root_sends(&mut self, host: HostId) {
        let now = self.calendar.now();
        self.host_mut(host).paths.outbound.woken(now);
        self.settle_root(host);
    }

    /// The next packet of a host's cores has an event.
    pub(super) fn schedule_send(&mut self, host: HostId) {
        let LinkEnd { link, side } = self.host(host).root;
        let (now, wire_free_at) = (self.calendar.now(), self.links[link].free_at(side));
        if let Some(at) = self.host_mut(host).paths.outbound.to_schedule(now, wire_free_at) {
            self.calendar.schedule(at, HostsEvent::RootSends(host));
        }
    }

    pub(super) fn engine_sends(&mut self, host: HostId) {
        self.engine_woken(host);
        self.settle_root(host);
    }

    /// Packets of cores and of the engine leave as far as they may, and places of those that have left are free.
    fn settle_root(&mut self, host: HostId) {
        let LinkEnd { link, side } = self.host(host).root;
        loop {
            self.free_places(host, |hosts| {
                while let Some(tlp) = hosts.links[link].next_departed(side) {
                    hosts.departed(host, &tlp);
                }
            });
            if self.links[link].waiting(side, Class::Posted) > 0 {
                return;
            }
            // What is lost where the link is down has left.
            if !self.send_next(host) {
                return;
            }
        }
    }

    /// Sends a packet of the engine or of the cores, of each in turn where both have one.
    fn send_next(&mut self, host: HostId) -> bool {
        let is_first = self.host(host).engine.as_ref().is_some_and(|engine| engine.is_its_turn);
        if is_first && self.send_of_engine(host) {
            return true;
        }
        let has_sent = self.free_places(host, |hosts| hosts.send_one(host));
        if let (true, Some(engine)) = (has_sent, &mut self.host_mut(host).engine) {
            engine.is_its_turn = true;
        }
        has_sent || self.send_of_engine(host)
    }

    fn send_of_engine(&mut self, host: HostId) -> bool {
        let Some(tlp) = self.engine_packet(host) else { return false };
        if let Some(engine) = &mut self.host_mut(host).engine {
            engine.is_its_turn = false;
        }
        self.leave(host, tlp);
        true
    }

    /// A packet goes on the link, or is lost because that is down.
    fn leave(&mut self, host: HostId, tlp: Tlp) {
        if !self.host(host).is_up {
            self.departed(host, &tlp);
            self.lose(&tlp);
            return;
        }
        let LinkEnd { link, side } = self.host(host).root;
        let sent = self.links[link].send(side, tlp, &mut self.calendar);
        sent.expect("cores and engines make no packet that is longer than a link carries");
    }

    /// Does what may free places of a full root complex, and gives those to cores that wait.
    fn free_places<T>(&mut self, host: HostId, free: impl FnOnce(&mut Self) -> T) -> T {
        let was_full = !self.host(host).paths.outbound.has_room();
        let outcome = free(self);
        if was_full && self.host(host).paths.outbound.has_room() {
            self.room_returned(host);
        }
        outcome
    }

    fn departed(&mut self, host: HostId, tlp: &Tlp) {
        let now = self.calendar.now();
        if tlp.kind.class() == Class::Completion {
            return;
        }
        if Place::of_requester(tlp.requester).is_engine() {
            self.engine_departed(host, tlp);
            return;
        }
        self.host_mut(host).paths.outbound.left(now, tlp);
        if self.settings.core.fence_ack == FenceAck::RootComplex && tlp.kind == Kind::MemoryWrite {
            self.acknowledge(tlp);
        }
    }

    /// Word that a write is on the link is back at its core.
    fn acknowledge(&mut self, tlp: &Tlp) {
        let at = self.calendar.now() + self.settings.root.write_latency;
        // Two lines that were merged were two packets to the core.
        let packets = if tlp.length_bytes > 64 { 2 } else { 1 };
        let place = Place::of_requester(tlp.requester);
        let mut resumes = false;
        for _ in 0..packets {
            let (state, mut path) = self.core(place);
            resumes |= state.core.acknowledged(at, &mut path);
        }
        if resumes {
            self.settle_core(place);
        }
    }

    fn room_returned(&mut self, host: HostId) {
        let now = self.calendar.now();
        let cores = usize::from(self.settings.cores);
        let it = self.host_mut(host);
        let first = it.served_next;
        it.served_next = (first + 1) % cores;
        for nth in 0..cores {
            let place = Place { host, core: ((first + nth) % cores) as u16 };
            let (state, mut path) = self.core(place);
            state.core.room_returned(now, &mut path);
            self.settle_core(place);
        }
    }

    /// Sends the next packet of the cores if one is ready.
    fn send_one(&mut self, host: HostId) -> bool {
        let now = self.calendar.now();
        let it = &mut self.hosts[usize::from(host.0)];
        match it.paths.outbound.take(now, &self.settings.root) {
            Outgoing::Packet(second) => {
                let tlp = it.paths.outbound.pop();
                if let Some(second) = second {
                    it.paths.lines.join(tlp.body, second);
                }
                self.leave(host, tlp);
                true
            }
            Outgoing::Later(_) => {
                self.schedule_send(host);
                false
            }
            Outgoing::Nothing => false,
        }
    }

    pub(super) fn root_answers(&mut self, host: HostId) {
        // Packets of cores that were ready before are in front.
        self.settle_root(host);
        let now = self.calendar.now();
        let LinkEnd { link, side } = self.host(host).root;
        while let Some((tlp, next)) = self.host_mut(host).inbound.next_answer(now) {
            let tlp = Tlp { completer: host.0 << 8, ..tlp };
            self.links[link].send(side, tlp, &mut self.calendar).expect("answers are cut to fit");
            if let Some(at) = next.filter(|at| *at > now) {
                self.calendar.schedule(at, HostsEvent::RootAnswers(host));
            }
        }
        self.settle_root(host);
    }

    pub(super) fn host_sees(&mut self, host: HostId) {
        let it = &mut self.hosts[usize::from(host.0)];
        let Some((tlp, next)) = it.inbound.next_seen() else { return };
        if let Some(at) = next {
            self.calendar.schedule(at, HostsEvent::HostSees(host));
        }
        self.links[it.root.link].free(it.root.side, &tlp, &mut self.calendar);
        let from = Place::of_requester(tlp.requester);
        if tlp.kind == Kind::MemoryWrite {
            let data = self.data_of(&tlp);
            let home = host.home(&self.settings);
            let is_memory = self.host_mut(home).memory.write(tlp.address, &data);
            self.host_mut(host).faults += u64::from(!is_memory);
            self.body_is_gone(&tlp);
            self.host_changed(home);
        } else if tlp.kind == Kind::Message {
            self.is_interrupted(host);
        } else {
            self.load_answered(from, None);
        }
        self.settle_root(host);
    }
}
