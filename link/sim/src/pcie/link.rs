//! Two ends and the wire between them: the events of a link.

use std::collections::VecDeque;

use thiserror::Error;

use super::dllp::{Acknowledger, CreditReturn, Dllp};
use super::{
    Amount, Carried, Class, Credits, Kind, LinkSettings, PAGE_BYTES, Serializer, SettingsError, Tlp,
    TooManyCredits, TransmitQueue,
};
use crate::des::{Calendar, Picoseconds};

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Side {
    /// Towards the root complex.
    Upstream,
    /// Towards the device.
    Downstream,
}

impl Side {
    /// The end across.
    #[inline]
    pub const fn other(self) -> Side {
        match self {
            Side::Upstream => Side::Downstream,
            Side::Downstream => Side::Upstream,
        }
    }
}

/// What happens on a link. A model's event holds it, hands it to [`Link::happen`], and can be made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The wire that leaves this side is free.
    WireFree(Side),
    /// The next TLP on its way is at this side.
    TlpArrives(Side),
    /// The next DLLP on its way is at this side.
    DllpArrives(Side),
    /// It may be time for this side to acknowledge, or to give credits back.
    Answer(Side),
}

/// A packet that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where. Whoever takes the packet there calls [`Link::free`] when it has left the buffer.
    pub side: Side,
    /// The packet.
    pub tlp: Tlp,
}

/// A packet that this link does not carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It has more payload than the link permits.
    #[error(
        "{kind:?} at {address:#x}: {payload_bytes} bytes of payload, at most {most_bytes}; cut it with `requests`"
    )]
    Payload {
        /// Of the packet.
        kind: Kind,
        /// Of the packet.
        address: u64,
        /// In double words, as bytes.
        payload_bytes: u32,
        /// The maximum payload.
        most_bytes: u32,
    },
    /// It asks for more than the link permits.
    #[error(
        "a read at {address:#x} asks for {length_bytes} bytes, at most {most_bytes}; cut it with `requests`"
    )]
    Read {
        /// Of the packet.
        address: u64,
        /// In double words, as bytes.
        length_bytes: u32,
        /// The maximum read request.
        most_bytes: u32,
    },
    /// It crosses a multiple of 4 KiB.
    #[error(
        "{kind:?} at {address:#x}: {length_bytes} bytes cross a boundary of 4 KiB; cut it with `requests`"
    )]
    Page {
        /// Of the packet.
        kind: Kind,
        /// Of the packet.
        address: u64,
        /// Of the packet.
        length_bytes: u32,
    },
}

/// A link. It moves packets when its events happen; a model owns it beside its [`Calendar`].
///
/// A packet costs one event if it finds the wire free and two if it waited; acknowledgements and updates come to a few
/// events for many packets. Nothing is allocated once queues are as long as they get.
#[derive(Debug)]
pub struct Link {
    settings: LinkSettings,
    ends: [End; 2],
}

/// What belongs to one side: what leaves it, and the answers that it owes.
#[derive(Debug)]
struct End {
    queue: TransmitQueue,
    credits: Credits,
    wire: Serializer,
    /// Whether an event will come when the wire is free.
    awaits_wire: bool,
    tlps_on_their_way: VecDeque<Tlp>,
    dllps_on_their_way: VecDeque<Dllp>,
    dllps: VecDeque<Dllp>,
    acknowledger: Acknowledger,
    returns: [CreditReturn; 3],
}

impl Link {
    /// An idle link.
    ///
    /// # Errors
    /// If there is no such link, as [`LinkSettings::check`].
    pub fn new(settings: LinkSettings) -> Result<Link, SettingsError> {
        settings.check()?;
        let end = |side: Side| End {
            queue: TransmitQueue::new(settings.look_ahead),
            credits: Credits::new(settings.advertised[side.other() as usize]),
            wire: Serializer::new(settings.generation, settings.lanes, settings.ordered_sets),
            awaits_wire: false,
            tlps_on_their_way: VecDeque::new(),
            dllps_on_their_way: VecDeque::new(),
            dllps: VecDeque::new(),
            acknowledger: Acknowledger::new(settings.acknowledge),
            returns: Class::ALL.map(|class| {
                CreditReturn::new(settings.update, class, settings.advertised[side as usize][class as usize])
            }),
        };
        let ends = [end(Side::Upstream), end(Side::Downstream)];
        Ok(Link { settings, ends })
    }

    /// Its parameters.
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// A packet leaves `from`, now or when the wire, its credits and the ordering table let it.
    ///
    /// # Errors
    /// If the link does not carry such a packet; it is not queued then.
    #[inline]
    pub fn send<E: From<LinkEvent>>(
        &mut self,
        from: Side,
        tlp: Tlp,
        calendar: &mut Calendar<E>,
    ) -> Result<(), Malformed> {
        self.check(&tlp)?;
        self.ends[from as usize].queue.push(tlp);
        self.transmit(from, calendar);
        Ok(())
    }

    /// An event of this link happens; returns the packet that arrived, if that is what it was.
    ///
    /// # Panics
    /// If the event is not one that this link scheduled.
    #[inline]
    pub fn happen<E: From<LinkEvent>>(
        &mut self,
        event: LinkEvent,
        calendar: &mut Calendar<E>,
    ) -> Option<Arrival> {
        match event {
            LinkEvent::WireFree(side) => {
                self.ends[side as usize].awaits_wire = false;
                self.transmit(side, calendar);
                None
            }
            LinkEvent::TlpArrives(side) => Some(self.tlp_arrives(side, calendar)),
            LinkEvent::DllpArrives(side) => {
                self.dllp_arrives(side, calendar);
                None
            }
            LinkEvent::Answer(side) => {
                self.answer(side, calendar);
                None
            }
        }
    }

    /// A packet that arrived at `side` has left its buffer: its credits go back, when the rule says.
    ///
    /// A packet must be freed once. Freeing one twice is found when its credits are back at the transmitter.
    pub fn free<E: From<LinkEvent>>(&mut self, side: Side, tlp: &Tlp, calendar: &mut Calendar<E>) {
        let returns = &mut self.ends[side as usize].returns[tlp.kind.class() as usize];
        if let Some(at) = returns.freed(Amount::of(tlp), calendar.now()) {
            calendar.schedule(at, LinkEvent::Answer(side).into());
        }
        self.answer(side, calendar);
    }

    /// Packets of a class that wait at `side` for the wire or for credits.
    pub fn waiting(&self, side: Side, class: Class) -> usize {
        self.ends[side as usize].queue.len(class)
    }

    /// Credits that `side` has left to send with.
    pub fn credits_left(&self, side: Side, class: Class) -> Amount {
        self.ends[side as usize].credits.left(class)
    }

    /// What the wire that leaves `side` has carried.
    pub fn carried(&self, side: Side) -> &Carried {
        self.ends[side as usize].wire.carried()
    }

    #[inline]
    fn check(&self, tlp: &Tlp) -> Result<(), Malformed> {
        let Tlp { kind, address, length_bytes, .. } = *tlp;
        let payload_bytes = tlp.payload_bytes();
        if payload_bytes > self.settings.max_payload_bytes {
            let most_bytes = self.settings.max_payload_bytes;
            return Err(Malformed::Payload { kind, address, payload_bytes, most_bytes });
        }
        let most_bytes = self.settings.max_read_request_bytes;
        if kind == Kind::MemoryRead && tlp.length_dw() * 4 > most_bytes {
            return Err(Malformed::Read { address, length_bytes: tlp.length_dw() * 4, most_bytes });
        }
        if address % PAGE_BYTES + u64::from(length_bytes) > PAGE_BYTES {
            return Err(Malformed::Page { kind, address, length_bytes });
        }
        Ok(())
    }

    /// Puts on the wire what may go now. What has to wait for the wire comes again by an event.
    #[inline]
    fn transmit<E: From<LinkEvent>>(&mut self, side: Side, calendar: &mut Calendar<E>) {
        let now = calendar.now();
        let flight = self.settings.flight;
        let end = &mut self.ends[side as usize];
        if end.awaits_wire {
            // Where they have room of their own, answers do not wait.
            if end.wire.has_control_room() {
                end.send_dllps(side, flight, calendar);
            }
            return;
        }
        loop {
            if end.wire.has_control_room() {
                end.send_dllps(side, flight, calendar);
            }
            if end.dllps.is_empty() && end.queue.is_empty() {
                return;
            }
            let free_at = end.wire.free_at();
            if free_at > now {
                end.awaits_wire = true;
                calendar.schedule(free_at, LinkEvent::WireFree(side).into());
                return;
            }
            // Answers first: the specification recommends it, and the other side may be waiting for them.
            if !end.dllps.is_empty() {
                end.send_dllp(side, flight, calendar);
                continue;
            }
            let Some(tlp) = end.queue.take(&mut end.credits) else { return };
            let at = end.wire.send_tlp(&tlp, now) + flight;
            end.tlps_on_their_way.push_back(tlp);
            calendar.schedule(at.max(now), LinkEvent::TlpArrives(side.other()).into());
        }
    }

    #[inline]
    fn tlp_arrives<E: From<LinkEvent>>(&mut self, side: Side, calendar: &mut Calendar<E>) -> Arrival {
        let tlp = self.ends[side.other() as usize].tlps_on_their_way.pop_front();
        let tlp = tlp.expect("a TLP is on its way for each arrival that the link scheduled");
        let end = &mut self.ends[side as usize];
        // Flits acknowledge each other in bytes of their own.
        if !end.wire.has_control_room() {
            if let Some(at) = end.acknowledger.arrived(calendar.now()) {
                calendar.schedule(at, LinkEvent::Answer(side).into());
            }
            if let Some(dllp) = end.acknowledger.take(calendar.now()) {
                end.dllps.push_back(dllp);
                self.transmit(side, calendar);
            }
        }
        Arrival { side, tlp }
    }

    fn dllp_arrives<E: From<LinkEvent>>(&mut self, side: Side, calendar: &mut Calendar<E>) {
        let dllp = self.ends[side.other() as usize].dllps_on_their_way.pop_front();
        match dllp.expect("a DLLP is on its way for each arrival that the link scheduled") {
            Dllp::Acknowledge => {}
            Dllp::UpdateCredits { class, given } => {
                let back: Result<(), TooManyCredits> = self.ends[side as usize].credits.give(class, given);
                back.expect("each packet is freed once");
                self.transmit(side, calendar);
            }
        }
    }

    /// Sends the answers that `side` owes, as far as it is time for them.
    fn answer<E: From<LinkEvent>>(&mut self, side: Side, calendar: &mut Calendar<E>) {
        let now = calendar.now();
        let end = &mut self.ends[side as usize];
        let before = end.dllps.len();
        end.dllps.extend(end.acknowledger.take(now));
        for returns in &mut end.returns {
            end.dllps.extend(returns.take(now));
        }
        if end.dllps.len() > before {
            self.transmit(side, calendar);
        }
    }
}

impl End {
    fn send_dllps<E: From<LinkEvent>>(
        &mut self,
        side: Side,
        flight: Picoseconds,
        calendar: &mut Calendar<E>,
    ) {
        while !self.dllps.is_empty() {
            self.send_dllp(side, flight, calendar);
        }
    }

    fn send_dllp<E: From<LinkEvent>>(&mut self, side: Side, flight: Picoseconds, calendar: &mut Calendar<E>) {
        let Some(dllp) = self.dllps.pop_front() else { return };
        let at = self.wire.send_dllp(calendar.now()) + flight;
        // An acknowledgement takes its time on the wire, and nothing waits for it: there is no replay.
        if dllp != Dllp::Acknowledge {
            self.dllps_on_their_way.push_back(dllp);
            calendar.schedule(at.max(calendar.now()), LinkEvent::DllpArrives(side.other()).into());
        }
    }
}
