//! Two ends and the wire between them: the events of a link.

use std::collections::VecDeque;

use super::dllp::{Acknowledger, CreditReturn, Dllp};
use super::event::event;
use super::malformed::check;
use super::{
    Amount, Arrival, Carried, Class, Credits, LinkEvent, LinkId, LinkSettings, LinkStep, Malformed, Packet,
    Passed, Serializer, SettingsError, Side, Tlp, TooManyCredits, TransmitQueue,
};
use crate::des::{Calendar, Picoseconds};

/// A link. It moves packets when its events happen; a model owns it beside its [`Calendar`].
///
/// A packet costs one event if it finds the wire free and two if it waited; acknowledgements and updates come to a few
/// events for many packets. Nothing is allocated once queues are as long as they get.
#[derive(Debug)]
pub struct Link {
    id: LinkId,
    settings: LinkSettings,
    ends: [End; 2],
    /// What passed, if somebody wants to know.
    record: Option<Vec<Passed>>,
}

/// What belongs to one side: what leaves it, and the answers that it owes.
#[derive(Debug)]
struct End {
    queue: TransmitQueue,
    credits: Credits,
    wire: Serializer,
    /// Whether an event will come when the wire is free.
    awaits_wire: bool,
    /// What is between the ends, with the time at which it arrives. Only the first has an event, the next one gets its
    /// event when that has happened: the calendar stays small, however long the transit.
    tlps_on_their_way: VecDeque<(Picoseconds, Tlp)>,
    dllps_on_their_way: VecDeque<Dllp>,
    dllps: VecDeque<Dllp>,
    /// Packets that left, if somebody wants to know.
    departed: Option<VecDeque<Tlp>>,
    acknowledger: Acknowledger,
    returns: [CreditReturn; 3],
}

impl Link {
    /// An idle link, whose events carry `id`.
    ///
    /// # Errors
    /// If there is no such link, as [`LinkSettings::check`].
    pub fn new(id: LinkId, settings: LinkSettings) -> Result<Link, SettingsError> {
        settings.check()?;
        let end = |side: Side| End {
            queue: TransmitQueue::new(settings.look_ahead),
            credits: Credits::new(settings.advertised[side.other() as usize]),
            wire: Serializer::new(settings.generation, settings.lanes, settings.ordered_sets),
            awaits_wire: false,
            tlps_on_their_way: VecDeque::new(),
            dllps_on_their_way: VecDeque::new(),
            dllps: VecDeque::new(),
            departed: None,
            acknowledger: Acknowledger::new(settings.acknowledge),
            returns: Class::ALL.map(|class| {
                CreditReturn::new(settings.update, class, settings.advertised[side as usize][class as usize])
            }),
        };
        let ends = [end(Side::Upstream), end(Side::Downstream)];
        Ok(Link { id, settings, ends, record: None })
    }

    /// Returns the parameters the link was made with.
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
        check(&tlp, &self.settings)?;
        let transit = self.transit(from);
        let end = &mut self.ends[from as usize];
        // Most packets find nothing in front of them: these need not be queued to be taken out again.
        if !end.has_something()
            && !end.awaits_wire
            && end.wire.free_at() <= calendar.now()
            && end.credits.take(&tlp)
        {
            end.send_tlp(&tlp, transit, &mut self.record, calendar);
            return Ok(());
        }
        end.queue.push(tlp);
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
        debug_assert_eq!(event.link, self.id, "an event of another link");
        let side = event.side;
        match event.what {
            LinkStep::WireFree => {
                self.ends[side as usize].awaits_wire = false;
                self.transmit(side, calendar);
            }
            LinkStep::TlpArrives => return Some(self.tlp_arrives(side, calendar)),
            LinkStep::DllpArrives => self.dllp_arrives(side, calendar),
            LinkStep::Answer => self.answer(side, calendar),
        }
        None
    }

    /// A packet that arrived at `side` has left its buffer: its credits go back, when the rule says.
    ///
    /// A packet must be freed once. Freeing one twice is found when its credits are back at the transmitter.
    pub fn free<E: From<LinkEvent>>(&mut self, side: Side, tlp: &Tlp, calendar: &mut Calendar<E>) {
        let now = calendar.now();
        let end = &mut self.ends[side as usize];
        let returns = &mut end.returns[tlp.kind.class() as usize];
        if let Some(at) = returns.freed(Amount::of(tlp), now) {
            calendar.schedule(at, event(self.id, side, LinkStep::Answer));
        }
        if let Some(update) = returns.take(now) {
            end.dllps.push_back(update);
            self.transmit(side, calendar);
        }
    }

    /// Packets of a class that wait at `side` for the wire or for credits.
    pub fn waiting(&self, side: Side, class: Class) -> usize {
        self.ends[side as usize].queue.len(class)
    }

    /// When the wire that leaves `side` is free of what is on it.
    #[inline]
    pub fn free_at(&self, side: Side) -> Picoseconds {
        self.ends[side as usize].wire.free_at()
    }

    /// Credits that `side` has left to send with.
    pub fn credits_left(&self, side: Side, class: Class) -> Amount {
        self.ends[side as usize].credits.left(class)
    }

    /// From now on [`Link::next_departed`] tells which packets leave `side`.
    pub fn watch(&mut self, side: Side) {
        self.ends[side as usize].departed.get_or_insert_default();
    }

    /// The next packet that has left the queue of `side` for the wire, each once, if [`Link::watch`] was asked to tell.
    ///
    /// Whoever holds something for a packet until it leaves (a buffer, credits of another link) lets go of it then. Ask
    /// after each call that may send: [`Link::send`], [`Link::happen`] and [`Link::free`].
    #[inline]
    pub fn next_departed(&mut self, side: Side) -> Option<Tlp> {
        self.ends[side as usize].departed.as_mut()?.pop_front()
    }

    /// From now on everything that is put on the wire is written down: what a protocol analyser would show.
    pub fn start_record(&mut self) {
        self.record.get_or_insert_default();
    }

    /// What was put on the wire since it was last asked, in the order in which it was, if [`Link::start_record`] was called.
    pub fn take_record(&mut self) -> Vec<Passed> {
        self.record.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What the wire that leaves `side` has carried.
    pub fn carried(&self, side: Side) -> &Carried {
        self.ends[side as usize].wire.carried()
    }

    /// Puts on the wire what may go now. What has to wait for the wire comes again by an event.
    #[inline]
    fn transmit<E: From<LinkEvent>>(&mut self, side: Side, calendar: &mut Calendar<E>) {
        let now = calendar.now();
        let transit = self.transit(side);
        let record = &mut self.record;
        let end = &mut self.ends[side as usize];
        // Where they have room of their own, answers do not wait.
        while end.wire.has_control_room() && !end.dllps.is_empty() {
            end.send_dllp(transit, record, calendar);
        }
        while end.has_something() && !end.awaits_wire {
            let free_at = end.wire.free_at();
            if free_at > now {
                end.awaits_wire = true;
                calendar.schedule(free_at, event(self.id, side, LinkStep::WireFree));
                return;
            }
            // Answers first: the specification recommends it, and the other side may be waiting for them.
            if !end.dllps.is_empty() {
                end.send_dllp(transit, record, calendar);
                continue;
            }
            let Some(tlp) = end.queue.take(&mut end.credits) else { return };
            end.send_tlp(&tlp, transit, record, calendar);
        }
    }

    #[inline]
    fn transit(&self, from: Side) -> Transit {
        Transit { link: self.id, from, flight: self.settings.flight }
    }

    #[inline]
    fn tlp_arrives<E: From<LinkEvent>>(&mut self, side: Side, calendar: &mut Calendar<E>) -> Arrival {
        let on_their_way = &mut self.ends[side.other() as usize].tlps_on_their_way;
        // Copied from where it lies: what `pop_front` returns is put together of its fields, and read as a whole at once, for
        // which a core waits until all of them are stored.
        let first = on_their_way.front();
        let (_, tlp) = *first.expect("a TLP is in flight for each arrival that the link scheduled");
        on_their_way.pop_front();
        if let Some((at, _)) = on_their_way.front() {
            calendar.schedule(*at, event(self.id, side, LinkStep::TlpArrives));
        }
        let end = &mut self.ends[side as usize];
        // Flits acknowledge each other in bytes of their own.
        if !end.wire.has_control_room() {
            if let Some(at) = end.acknowledger.arrived(calendar.now()) {
                calendar.schedule(at, event(self.id, side, LinkStep::Answer));
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
        match dllp.expect("a DLLP is in flight for each arrival that the link scheduled") {
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

/// Where packets of an end go.
#[derive(Clone, Copy)]
struct Transit {
    link: LinkId,
    from: Side,
    flight: Picoseconds,
}

impl End {
    fn has_something(&self) -> bool {
        !self.dllps.is_empty() || !self.queue.is_empty()
    }

    /// A packet whose credits were taken leaves now.
    #[inline]
    fn send_tlp<E: From<LinkEvent>>(
        &mut self,
        tlp: &Tlp,
        transit: Transit,
        record: &mut Option<Vec<Passed>>,
        calendar: &mut Calendar<E>,
    ) {
        let now = calendar.now();
        let ends_at = self.wire.send_tlp(tlp, now);
        let at = (ends_at + transit.flight).max(now);
        if let Some(record) = record {
            record.push(Passed { at: now, ends_at, from: transit.from, packet: Packet::Tlp(*tlp) });
        }
        if self.tlps_on_their_way.is_empty() {
            calendar.schedule(at, event(transit.link, transit.from.other(), LinkStep::TlpArrives));
        }
        self.tlps_on_their_way.push_back((at, *tlp));
        if let Some(departed) = &mut self.departed {
            departed.push_back(*tlp);
        }
    }

    fn send_dllp<E: From<LinkEvent>>(
        &mut self,
        transit: Transit,
        record: &mut Option<Vec<Passed>>,
        calendar: &mut Calendar<E>,
    ) {
        let Some(dllp) = self.dllps.pop_front() else { return };
        let ends_at = self.wire.send_dllp(calendar.now());
        let at = ends_at + transit.flight;
        if let Some(record) = record {
            record.push(Passed {
                at: calendar.now(),
                ends_at,
                from: transit.from,
                packet: Packet::Dllp(dllp),
            });
        }
        // An acknowledgement takes its time on the wire, and nothing waits for it: there is no replay.
        if dllp != Dllp::Acknowledge {
            self.dllps_on_their_way.push_back(dllp);
            let arrives = event(transit.link, transit.from.other(), LinkStep::DllpArrives);
            calendar.schedule(at.max(calendar.now()), arrives);
        }
    }
}
