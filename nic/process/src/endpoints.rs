//! The ports and up-links of the switch, and the carrying out of its decisions.
//!
//! A frame is offered to its receivers where it lies, in its sender's device: no copy is made on the way unless a
//! receiver has no room. Then it is kept, its sender's wire is not ready until it has gone (lossless) or it is dropped
//! and counted. While a port's frames are carried its own slot is empty, so no frame can reach the port it came from;
//! looped-back ports get their frames back inside the link and are not part of the switch.

use std::path::{Path, PathBuf};

use beeline_contract_device::{Accept, QueueId, SimTime};
use beeline_domain::{Disposer, Peer, PeerId, process_name};
use beeline_ethernet::{Traits, Uplink};
use beeline_link_shm::{PortError, Wire, Wired};

use crate::NicProcessConfig;
use crate::mac_table::Endpoint;
use crate::port_link::PortLink;
use crate::statistics::{RawPort, UplinkStatistics};
use crate::switch::{Decision, Switch};
use crate::uplinks::{Hold, UplinkSlot};

/// Frames taken from an up-link in one turn.
const UPLINK_BURST: u32 = 32;

/// Whose a port is.
pub(crate) enum Host {
    /// A process, for as long as it stays.
    Process(Peer),
    /// Whoever connects to the socket of a PCI function: it is there as long as the NIC.
    Function(PathBuf),
}

impl Host {
    /// The process; `None` for a function.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        if let Host::Process(peer) = self { Some(peer) } else { None }
    }

    /// The socket; `None` for a process.
    pub(crate) fn function(&self) -> Option<&Path> {
        if let Host::Function(path) = self { Some(path) } else { None }
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Host::Process(peer) => process_name(peer.pid()),
            Host::Function(path) => format!("the function at {}", path.display()),
        }
    }
}

/// A port of another process, or of a guest.
pub(crate) struct Port {
    pub(crate) host: Host,
    pub(crate) link: PortLink,
    is_loop_back: bool,
    /// Its host is gone: it only sends.
    is_leaving: bool,
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
    has_functions: bool,
    /// Frames of up-links on their way in.
    incoming: Vec<u8>,
    /// Takes ports, and memory of theirs: dropping it takes time.
    disposer: Disposer,
}

impl Endpoints {
    pub(crate) fn new(config: &NicProcessConfig, uplinks: Vec<Box<dyn Uplink>>, disposer: Disposer) -> Self {
        let uplinks: Vec<UplinkSlot> = uplinks.into_iter().map(UplinkSlot::new).collect();
        Endpoints {
            ports: (0..config.max_ports).map(|_| None).collect(),
            live: Vec::with_capacity(config.max_ports as usize),
            has_mirrors: uplinks.iter().any(|uplink| uplink.traits.mirrors),
            uplinks,
            switch: Switch::new(&config.addresses, config.nic.mac, config.max_ports),
            loop_back: config.loop_back,
            is_lossless: config.is_lossless,
            has_functions: false,
            incoming: Vec::new(),
            disposer,
        }
    }

    /// Numbers of the ports there are.
    pub(crate) fn live(&self) -> &[u32] {
        &self.live
    }

    pub(crate) fn port(&self, number: u32) -> Option<&Port> {
        self.ports.get(number as usize)?.as_deref()
    }

    pub(crate) fn port_mut(&mut self, number: u32) -> Option<&mut Port> {
        self.ports.get_mut(number as usize)?.as_deref_mut()
    }

    /// Adds a port under a free number.
    pub(crate) fn open(&mut self, number: u32, host: Host, mut link: PortLink) {
        self.has_functions |= matches!(host, Host::Function(_));
        link.set_lossless(self.is_lossless);
        link.dispose_with(self.disposer.clone());
        let is_loop_back = self.loop_back || link.is_loop_back();
        self.ports[number as usize] =
            Some(Box::new(Port { host, link, is_loop_back, is_leaving: false, hold: Hold::default() }));
        self.live.push(number);
        self.switch.opened(number);
    }

    /// Whether there are ports whose hosts wake nobody when they store something.
    pub(crate) fn has_functions(&self) -> bool {
        self.has_functions
    }

    /// Takes a port out, and with it what was learned of it, what waits for it and what of it waits for others.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<Port>> {
        self.stop_receiving(number);
        let mut port = self.ports.get_mut(number as usize)?.take()?;
        self.drop_held(&mut port);
        Some(port)
    }

    /// Drops a port that was taken out, elsewhere: its mappings and its device are as large as they are.
    pub(crate) fn dispose(&self, port: Box<Port>) {
        self.disposer.dispose(port);
    }

    /// The host of a port is gone. It is not live any more: nothing is learned of it or sent to it; but its slot is
    /// taken, and turns bring on what its host had stored, until it is removed. `false` if it is another's port.
    pub(crate) fn begin_leaving(&mut self, number: u32, id: PeerId) -> bool {
        let port = self.ports.get_mut(number as usize).and_then(Option::as_deref_mut);
        let Some(port) = port.filter(|port| port.host.peer().is_some_and(|peer| peer.id() == id)) else {
            return false;
        };
        port.is_leaving = true;
        self.stop_receiving(number);
        true
    }

    fn stop_receiving(&mut self, number: u32) {
        self.live.retain(|other| *other != number);
        self.switch.forget(number);
        let ports = self.ports.iter_mut().flatten().map(|port| &mut port.hold);
        for hold in ports.chain(self.uplinks.iter_mut().map(|slot| &mut slot.hold)) {
            let before = hold.targets.len();
            hold.targets.retain(|target| *target != number);
            self.switch.counters.dropped_receiver_left += (before - hold.targets.len()) as u64;
        }
    }

    /// Whether a frame of a port waits for a receiver.
    pub(crate) fn is_held(&self, number: u32) -> bool {
        self.port(number).is_some_and(|port| port.hold.is_waiting)
    }

    /// Tells the device of one port the time.
    pub(crate) fn port_time_passed(&mut self, number: u32, now: SimTime) {
        if let Some(port) = self.ports.get_mut(number as usize).and_then(Option::as_deref_mut) {
            port.link.time_passed(now);
        }
    }

    /// Clears the event of a port, which was readable.
    pub(crate) fn clear_event(&mut self, number: u32) {
        if let Some(port) = self.ports.get_mut(number as usize).and_then(Option::as_deref_mut) {
            port.link.clear_event();
        }
    }

    /// A turn of a port whose frames have nowhere to go any more: each is counted and dropped; whether it did anything. Only
    /// if it `polls`, what its host stored goes in.
    pub(crate) fn discard_turn(&mut self, number: u32, polls: bool) -> bool {
        let Some(mut port) = self.ports.get_mut(number as usize).and_then(Option::take) else { return false };
        self.drop_held(&mut port);
        let polled = polls && port.link.poll().unwrap_or(false);
        let any = self.discard(&mut port);
        self.ports[number as usize] = Some(port);
        polled | any
    }

    /// Drops and counts what the device of a port wants to send; whether it wanted anything.
    fn discard(&mut self, port: &mut Port) -> bool {
        let mut nowhere = Nowhere { frames: 0 };
        let any = port.link.drive(&mut nowhere).wants > 0;
        if !port.is_loop_back {
            // Those of a looped-back port were for nobody but its host.
            self.switch.counters.dropped_sender_left += nowhere.frames;
        }
        any
    }

    /// Drops and counts the frame of a port that waits.
    fn drop_held(&mut self, port: &mut Port) {
        if port.hold.is_waiting {
            self.switch.counters.dropped_sender_left += port.hold.targets.len() as u64;
            port.hold = Hold::default();
            port.link.set_wire_ready(true);
        }
    }

    /// One turn of a port: what its host stored goes in, what its device wants is done.
    ///
    /// # Errors
    /// The host broke the protocol.
    #[inline]
    pub(crate) fn turn(&mut self, number: u32) -> Result<bool, PortError> {
        let Some(mut port) = self.ports[number as usize].take() else { return Ok(false) };
        let Port { link, hold, is_loop_back, is_leaving, .. } = &mut *port;
        let mut any = false;
        if hold.is_waiting {
            any |= self.retry(hold);
            if !hold.is_waiting {
                link.set_wire_ready(true);
            }
        }
        let polled = link.poll();
        let (is_loop_back, learns) = (*is_loop_back, !*is_leaving);
        let mut wire = PortWire { endpoints: self, number, hold, is_loop_back, learns };
        any |= link.drive(&mut wire).wants > 0;
        self.ports[number as usize] = Some(port);
        Ok(polled? | any)
    }

    /// Tells every device and the switch the time.
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
            Decision::Drop | Decision::Forged => {}
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
            Some(port) if !port.is_loop_back && !port.is_leaving => {
                port.link.frame_arrived(frame) == Accept::Taken
            }
            // It is gone, or not part of the switch.
            _ => true,
        }
    }

    #[cold]
    fn no_room(&mut self, target: Endpoint, frame: &[u8], waits: bool, hold: &mut Hold) {
        // A guest that is paused is not seen to be gone: nobody waits for it.
        if !waits || self.port(target).is_some_and(|port| port.host.function().is_some()) {
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
    pub(crate) fn poll_uplinks(&mut self, by_system_call: bool) -> bool {
        let mut any = false;
        for index in 0..self.uplinks.len() {
            let slot = &self.uplinks[index];
            let is_turn = slot.uplink.looks_by_system_call() == by_system_call;
            if slot.traits.gives && slot.failure.is_none() && is_turn {
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
                pid: port.host.peer().map_or(0, Peer::pid),
                uid: port.host.peer().map_or(0, Peer::uid),
                function: port.host.function().map(Path::to_owned),
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
    /// Whether the switch learns from what it sends.
    learns: bool,
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
        endpoints.forward(self.number, self.learns, frame, endpoints.is_lossless, self.hold);
        if self.hold.is_waiting { Wired::Full } else { Wired::Taken }
    }
}

/// Where frames of a port go that have waited too long: nowhere, and they are counted.
struct Nowhere {
    frames: u64,
}

impl Wire for Nowhere {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        self.frames += 1;
        Wired::Taken
    }
}
