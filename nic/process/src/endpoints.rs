//! The ports and up-links of the switch, and the carrying out of its decisions.
//!
//! A frame is offered to its receivers where it lies, in its sender's device: no copy is made on the way unless a
//! receiver has no room. Then it is kept, its sender's wire is not ready until it has gone (lossless) or it is dropped
//! and counted. While a port's frames are carried its own slot is empty, so no frame can reach the port it came from;
//! looped-back ports get their frames back inside the link and are not part of the switch.

use beeline_domain::Peer;
use beeline_link_shm::{DevicePort, PortError, Wire, Wired};
use beeline_nic_contract::{Accept, QueueId, SimTime};
use beeline_nic_model::Nic;
use beeline_nic_uplink::{Traits, Uplink};

use crate::NicProcessConfig;
use crate::mac_table::Endpoint;
use crate::statistics::{RawPort, UplinkStatistics};
use crate::switch::{Decision, Switch};
use crate::uplinks::{Hold, UplinkSlot};

/// Frames taken from an up-link in one turn.
const UPLINK_BURST: u32 = 32;

/// A port of another process.
pub(crate) struct Port {
    pub(crate) peer: Peer,
    pub(crate) link: DevicePort<Nic>,
    is_loop_back: bool,
    hold: Hold,
}

/// Everything the switch joins.
pub(crate) struct Endpoints {
    /// By number. Boxed, so that a slot can be emptied while its port is driven without moving the device.
    ports: Vec<Option<Box<Port>>>,
    /// Numbers of the ports there are.
    live: Vec<u32>,
    uplinks: Vec<UplinkSlot>,
    has_mirrors: bool,
    pub(crate) switch: Switch,
    loop_back: bool,
    is_lossless: bool,
    /// Frames of up-links on their way in.
    incoming: Vec<u8>,
}

impl Endpoints {
    pub(crate) fn new(config: &NicProcessConfig, uplinks: Vec<Box<dyn Uplink>>) -> Self {
        let uplinks: Vec<UplinkSlot> = uplinks.into_iter().map(UplinkSlot::new).collect();
        Endpoints {
            ports: (0..config.max_ports).map(|_| None).collect(),
            live: Vec::with_capacity(config.max_ports as usize),
            has_mirrors: uplinks.iter().any(|uplink| uplink.traits.mirrors),
            uplinks,
            switch: Switch::new(&config.addresses),
            loop_back: config.loop_back,
            is_lossless: config.is_lossless,
            incoming: Vec::new(),
        }
    }

    /// Numbers of the ports there are.
    pub(crate) fn live(&self) -> &[u32] {
        &self.live
    }

    /// The port of this number.
    pub(crate) fn port(&self, number: u32) -> Option<&Port> {
        self.ports.get(number as usize)?.as_deref()
    }

    /// Adds a port under a free number.
    pub(crate) fn open(&mut self, number: u32, peer: Peer, mut link: DevicePort<Nic>) {
        link.set_lossless(self.is_lossless);
        let is_loop_back = self.loop_back || link.is_loop_back();
        self.ports[number as usize] =
            Some(Box::new(Port { peer, link, is_loop_back, hold: Hold::default() }));
        self.live.push(number);
    }

    /// Takes a port out, and with it what was learned of it and what waits for it.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<Port>> {
        let port = self.ports.get_mut(number as usize)?.take()?;
        self.live.retain(|other| *other != number);
        self.switch.forget(number);
        let ports = self.ports.iter_mut().flatten().map(|port| &mut port.hold);
        for hold in ports.chain(self.uplinks.iter_mut().map(|slot| &mut slot.hold)) {
            hold.targets.retain(|target| *target != number);
        }
        Some(port)
    }

    /// One turn of a port: what its host stored goes in, what its device wants is done.
    ///
    /// # Errors
    /// The host broke the protocol.
    #[inline]
    pub(crate) fn turn(&mut self, number: u32) -> Result<bool, PortError> {
        let Some(mut port) = self.ports[number as usize].take() else { return Ok(false) };
        let Port { link, hold, is_loop_back, .. } = &mut *port;
        let mut any = false;
        if hold.is_waiting {
            any |= self.retry(hold);
            if !hold.is_waiting {
                link.set_wire_ready(true);
            }
        }
        let polled = link.poll();
        let mut wire = PortWire { endpoints: self, number, hold, is_loop_back: *is_loop_back };
        any |= link.drive(&mut wire).wants > 0;
        self.ports[number as usize] = Some(port);
        Ok(polled? | any)
    }

    /// Tells every device and the switch the time, and takes over what hosts opened.
    pub(crate) fn time_passed(&mut self, now: SimTime) {
        self.switch.time_passed((now.as_ns() / 1_000_000_000) as u32);
        for number in &self.live {
            if let Some(port) = &mut self.ports[*number as usize] {
                port.link.time_passed(now);
            }
        }
    }

    /// Takes over what hosts opened and closed.
    pub(crate) fn apply_updates(&mut self) {
        for number in &self.live {
            if let Some(port) = &mut self.ports[*number as usize] {
                port.link.apply_updates();
            }
        }
    }

    /// The earliest time at which a device wants to be told the time.
    pub(crate) fn wake_at(&self) -> Option<SimTime> {
        self.live.iter().filter_map(|number| self.port(*number)?.link.wake_at()).min()
    }

    /// Carries a frame from `source` to where the switch decides. Frames that find no room stay in `hold` if `waits`.
    #[inline]
    fn forward(&mut self, source: Endpoint, learns: bool, frame: &[u8], waits: bool, hold: &mut Hold) {
        if self.has_mirrors {
            self.mirror(source, frame);
        }
        match self.switch.decide(source, learns, frame) {
            Decision::Drop => {}
            Decision::To(target) => {
                if !self.offer(target, frame) {
                    self.no_room(target, frame, waits, hold);
                }
            }
            Decision::Flood => self.flood(source, frame, waits, hold),
        }
    }

    fn flood(&mut self, source: Endpoint, frame: &[u8], waits: bool, hold: &mut Hold) {
        for index in 0..self.live.len() {
            let target = self.live[index];
            if target != source && !self.offer(target, frame) {
                self.no_room(target, frame, waits, hold);
            }
        }
        for index in 0..self.uplinks.len() {
            let target = self.uplink_endpoint(index);
            let Traits { takes, mirrors, .. } = self.uplinks[index].traits;
            if takes && !mirrors && target != source && !self.offer(target, frame) {
                self.no_room(target, frame, waits, hold);
            }
        }
    }

    /// Offers a frame to an endpoint; `false` when it has no room now.
    #[inline]
    fn offer(&mut self, target: Endpoint, frame: &[u8]) -> bool {
        let Some(slot) = self.ports.get_mut(target as usize) else {
            let index = target as usize - self.ports.len();
            return self.uplinks.get_mut(index).is_none_or(|slot| slot.send(frame));
        };
        match slot {
            Some(port) if !port.is_loop_back => port.link.frame_arrived(frame) == Accept::Taken,
            // It is gone, or not part of the switch.
            _ => true,
        }
    }

    #[cold]
    fn no_room(&mut self, target: Endpoint, frame: &[u8], waits: bool, hold: &mut Hold) {
        if !waits {
            self.switch.counters.dropped_full += 1;
            return;
        }
        if !hold.is_waiting {
            self.switch.counters.held += 1;
            hold.is_waiting = true;
            hold.frame.clear();
            hold.frame.extend_from_slice(frame);
        }
        hold.targets.push(target);
    }

    /// Offers a kept frame again; whether a receiver took it, or nobody is left to wait for.
    fn retry(&mut self, hold: &mut Hold) -> bool {
        let before = hold.targets.len();
        let Hold { frame, targets, is_waiting } = hold;
        targets.retain(|target| !self.offer(*target, frame));
        *is_waiting = !targets.is_empty();
        targets.len() < before || !*is_waiting
    }

    fn mirror(&mut self, source: Endpoint, frame: &[u8]) {
        for index in 0..self.uplinks.len() {
            if self.uplinks[index].traits.mirrors && self.uplink_endpoint(index) != source {
                // A capture takes every frame or fails, and its failure is kept.
                let _ = self.uplinks[index].send(frame);
            }
        }
    }

    fn uplink_endpoint(&self, index: usize) -> Endpoint {
        (self.ports.len() + index) as Endpoint
    }

    /// Whether a frame that comes in would reach anybody: a capture that is played waits for that.
    fn has_receiver(&self) -> bool {
        let ports = self.live.iter().filter_map(|number| self.port(*number));
        let mut receiving = ports.filter(|port| !port.is_loop_back && port.link.receives());
        let takes = |slot: &UplinkSlot| slot.traits.takes && !slot.traits.mirrors;
        receiving.next().is_some() || self.uplinks.iter().any(takes)
    }

    /// Takes frames from the up-links that cost no system call, or from those that do.
    pub(crate) fn poll_uplinks(&mut self, with_descriptors: bool) -> bool {
        let mut any = false;
        for index in 0..self.uplinks.len() {
            let slot = &self.uplinks[index];
            let has_descriptor = slot.uplink.descriptor().is_some();
            if slot.traits.gives && slot.failure.is_none() && has_descriptor == with_descriptors {
                any |= self.poll_uplink(index);
            }
        }
        any
    }

    fn poll_uplink(&mut self, index: usize) -> bool {
        let mut hold = std::mem::take(&mut self.uplinks[index].hold);
        let Traits { waits, learns, .. } = self.uplinks[index].traits;
        let mut any = hold.is_waiting && self.retry(&mut hold);
        let mut incoming = std::mem::take(&mut self.incoming);
        // A capture would be played to nobody before the first receiver is there.
        let may_poll = !waits || self.has_receiver();
        for _ in 0..UPLINK_BURST {
            if !may_poll || hold.is_waiting || !self.uplinks[index].receive(&mut incoming) {
                break;
            }
            any = true;
            self.forward(self.uplink_endpoint(index), learns, &incoming, waits, &mut hold);
        }
        self.incoming = incoming;
        self.uplinks[index].hold = hold;
        any
    }

    /// Brings captured frames to their files.
    pub(crate) fn flush_uplinks(&mut self) {
        self.uplinks.iter_mut().for_each(UplinkSlot::flush);
    }

    /// The up-links that have a descriptor to wait for.
    pub(crate) fn uplinks(&self) -> impl Iterator<Item = &dyn Uplink> {
        self.uplinks.iter().filter(|slot| slot.failure.is_none()).map(|slot| &*slot.uplink)
    }

    /// Every port's counters.
    pub(crate) fn port_statistics(&self) -> Vec<RawPort> {
        let raw = |number: &u32| {
            let port = self.port(*number)?;
            Some(RawPort {
                port: *number,
                pid: port.peer.pid(),
                uid: port.peer.uid(),
                is_loop_back: port.is_loop_back,
                is_held: port.hold.is_waiting,
                link: *port.link.counters(),
                device: port.link.device().counters(),
            })
        };
        let mut ports: Vec<RawPort> = self.live.iter().filter_map(raw).collect();
        ports.sort_by_key(|port| port.port);
        ports
    }

    /// Every up-link's counters.
    pub(crate) fn uplink_statistics(&self) -> Vec<UplinkStatistics> {
        self.uplinks.iter().map(UplinkSlot::statistics).collect()
    }
}

/// The wire of one port while it is driven.
struct PortWire<'a> {
    endpoints: &'a mut Endpoints,
    number: u32,
    hold: &'a mut Hold,
    is_loop_back: bool,
}

impl Wire for PortWire<'_> {
    #[inline]
    fn transmit(&mut self, _queue: QueueId, frame: &[u8]) -> Wired {
        let endpoints = &mut *self.endpoints;
        if self.is_loop_back {
            if endpoints.has_mirrors {
                endpoints.mirror(self.number, frame);
            }
            endpoints.switch.counters.looped_back += 1;
            return Wired::Back;
        }
        endpoints.forward(self.number, true, frame, endpoints.is_lossless, self.hold);
        if self.hold.is_waiting { Wired::Full } else { Wired::Taken }
    }
}
