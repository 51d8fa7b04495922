//! A place between two links where packets change from one to the other: a switch, or a bridge that is not transparent.

use std::collections::VecDeque;

use super::ordering::{MayPass, may_pass};
use super::{Link, LinkEvent, Side, Tlp};
use crate::des::{Calendar, Picoseconds};

/// A packet has crossed a hop and is to leave towards a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopEvent {
    /// Which hop of a model.
    pub hop: u16,
    /// The side to which the packet goes.
    pub toward: Side,
}

/// The ends of two links that meet: of the upper one its downstream end, of the lower one its upstream end.
///
/// A packet holds its room in the buffer of the link that it came by until the other link has taken it: a receiver that is
/// slow, or has few credits, is felt at the sender. The hop keeps the order of what comes; the queue of the link that follows
/// obeys the ordering table. It stores and forwards: `latency` is from the last byte on one link to the first on the other,
/// so that of a switch that cuts through it is less than what its maker states by the time of a packet.
#[derive(Debug)]
pub struct Hop {
    id: u16,
    latency: Picoseconds,
    /// By the side that they go to, with the time at which they are across. Only the first has an event.
    crossing: [VecDeque<(Picoseconds, Tlp)>; 2],
}

impl Hop {
    /// In [`Tlp::hold`] of a packet that the hop made by itself: it came by no link, and gives no room back.
    pub const ITS_OWN: u32 = u32::MAX;

    /// An empty hop, whose events carry `id`. It watches the ends that it joins.
    pub fn new(id: u16, latency: Picoseconds, upper: &mut Link, lower: &mut Link) -> Hop {
        upper.watch(Side::Downstream);
        lower.watch(Side::Upstream);
        Hop { id, latency, crossing: Default::default() }
    }

    /// A packet arrived at the hop and goes on toward a side. A bridge that translates has changed its address; its payload
    /// must not change, since its credits are counted by it.
    pub fn enter<E: From<HopEvent>>(&mut self, toward: Side, tlp: Tlp, calendar: &mut Calendar<E>) {
        let crossing = &mut self.crossing[toward as usize];
        let at = calendar.now() + self.latency;
        if crossing.is_empty() {
            calendar.schedule(at, HopEvent { hop: self.id, toward }.into());
        }
        crossing.push_back((at, tlp));
    }

    /// As [`Hop::enter`], but the packet takes the place of one of those in front, at most `most` of them, as far as the ordering table lets it
    /// pass them: the first of all that it may. When packets leave does not change, only which.
    pub fn enter_passing<E: From<HopEvent>>(
        &mut self,
        toward: Side,
        tlp: Tlp,
        most: usize,
        calendar: &mut Calendar<E>,
    ) {
        self.enter(toward, tlp, calendar);
        let crossing = &mut self.crossing[toward as usize];
        let last = crossing.len() - 1;
        for at in (last.saturating_sub(most)..last).rev() {
            if may_pass(&tlp, &crossing[at].1) == MayPass::No {
                return;
            }
            let first = crossing[at].1;
            crossing[at].1 = tlp;
            crossing[at + 1].1 = first;
        }
    }

    /// An event of this hop happens: a packet leaves by the link that is not the one it came by.
    ///
    /// # Panics
    /// If the event is not one that this hop scheduled, or the packet does not fit the link that follows: a switch does not
    /// cut packets, so the ends of both links must agree on the smaller maximum.
    pub fn happen<E: From<HopEvent> + From<LinkEvent>>(
        &mut self,
        event: HopEvent,
        upper: &mut Link,
        lower: &mut Link,
        calendar: &mut Calendar<E>,
    ) {
        let crossing = &mut self.crossing[event.toward as usize];
        let (_, tlp) = crossing.pop_front().expect("a packet crosses for each event that the hop scheduled");
        if let Some((at, _)) = crossing.front() {
            calendar.schedule(*at, event.into());
        }
        let sent = match event.toward {
            Side::Upstream => upper.send(Side::Downstream, tlp, calendar),
            Side::Downstream => lower.send(Side::Upstream, tlp, calendar),
        };
        sent.expect("both links of a hop agree on the sizes of packets");
        self.settle(upper, lower, calendar);
    }

    /// Gives back the room of packets that have left. Call it when an event of one of both links has happened.
    pub fn settle<E: From<LinkEvent>>(
        &mut self,
        upper: &mut Link,
        lower: &mut Link,
        calendar: &mut Calendar<E>,
    ) {
        // Room that is given back sends an update, on the wires on which others wait, and may let nothing else go: once
        // around both is enough.
        while let Some(tlp) = lower.next_departed(Side::Upstream) {
            if tlp.hold != Hop::ITS_OWN {
                upper.free(Side::Downstream, &tlp, calendar);
            }
        }
        while let Some(tlp) = upper.next_departed(Side::Downstream) {
            if tlp.hold != Hop::ITS_OWN {
                lower.free(Side::Upstream, &tlp, calendar);
            }
        }
    }
}
