//! Ports whose host is gone, and whose last frames are still on their way.
//!
//! What a host had stored completely was sent, as far as it knows, so a lossless switch carries it on: the port takes its
//! turns like any other, but nothing is learned of it or sent to it, until its device wants nothing and none of its
//! frames waits. A receiver that is alive and never reads must not keep it for ever: past a bound of time whatever is
//! left is dropped, copy by copy and counted (`SwitchCounters::dropped_sender_left`). Only then is the port's number free
//! again, so that ports that leave are among the ports there may be, and so is their memory.
//!
//! A port that was expelled leaves too, but only to have its frames counted; its number is free when its host has gone.
//!
//! The bound is the configuration's and counts from the departure. Counting ends, too, a second after it: a descriptor
//! ring that a hostile host left can have no end.

use std::sync::mpsc::Sender;
use std::time::Duration;

use beeline_contract_device::SimTime;
use beeline_domain::{Departure, Peer, PeerId};

use crate::endpoints::Endpoints;
use crate::statistics::LoopCounters;

/// How long frames that nobody waits for any more are counted.
const COUNTING_LIMIT: Duration = Duration::from_secs(1);

/// A port that leaves.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    number: u32,
    /// When its frames stop to wait.
    until: SimTime,
    phase: Phase,
    expulsion: Expulsion,
}

/// Whether the port was expelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expulsion {
    None,
    HostStays,
    HostLeft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its frames go to their receivers, as room comes.
    Sending,
    /// The queue is stopped; its frames are dropped and counted.
    Counting,
    /// It is removed in the next round.
    Over,
}

/// The ports that leave.
pub(crate) struct Departures {
    leaving: Vec<Leaving>,
    limit: Duration,
    /// Takes the numbers of ports that have left.
    left: Sender<u32>,
}

impl Departures {
    /// None yet; each may take `limit`, and its number goes to `left`.
    pub(crate) fn new(limit: Duration, left: Sender<u32>) -> Self {
        Departures { leaving: Vec::new(), limit, left }
    }

    /// Whether no port leaves.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }

    /// Ports whose host is gone and that leave.
    pub(crate) fn count(&self) -> u64 {
        self.leaving.iter().filter(|leaving| leaving.expulsion == Expulsion::None).count() as u64
    }

    /// The host of a port is gone, and all its stores are there. The port may have been expelled before.
    pub(crate) fn begin(
        &mut self,
        number: u32,
        id: PeerId,
        now: SimTime,
        endpoints: &mut Endpoints,
        counters: &mut LoopCounters,
    ) {
        if let Some(expelled) = self.leaving.iter_mut().find(|leaving| leaving.number == number) {
            expelled.expulsion = Expulsion::HostLeft;
            return;
        }
        if !endpoints.begin_leaving(number, id) {
            self.give_back(number);
            return;
        }
        counters.ports_departed += 1;
        let (until, phase, expulsion) = (after(now, self.limit), Phase::Sending, Expulsion::None);
        self.leaving.push(Leaving { number, until, phase, expulsion });
    }

    /// A port is expelled, and its host may still be there.
    pub(crate) fn expel(&mut self, number: u32, id: PeerId, now: SimTime, endpoints: &mut Endpoints) {
        if endpoints.begin_leaving(number, id) {
            let (until, phase) = (after(now, COUNTING_LIMIT), Phase::Counting);
            self.leaving.push(Leaving { number, until, phase, expulsion: Expulsion::HostStays });
        }
    }

    /// One turn of each; whether anything was done.
    pub(crate) fn round(&mut self, endpoints: &mut Endpoints, counters: &mut LoopCounters) -> bool {
        let mut any = false;
        for index in (0..self.leaving.len()).rev() {
            let Leaving { number, phase, expulsion, .. } = self.leaving[index];
            let worked = match phase {
                Phase::Sending => endpoints.turn(number).unwrap_or_else(|_| {
                    // Its host left garbage behind: what came before that is counted.
                    self.leaving[index].phase = Phase::Counting;
                    true
                }),
                Phase::Counting => endpoints.discard_turn(number, expulsion == Expulsion::None),
                Phase::Over => false,
            };
            any |= worked;
            if !worked && (phase == Phase::Over || !endpoints.is_held(number)) {
                let leaving = self.leaving.swap_remove(index);
                self.remove(leaving, endpoints, counters);
                any = true;
            }
        }
        any
    }

    /// Tells their devices the time, and ends the waiting of those whose time has come.
    pub(crate) fn time_passed(&mut self, now: SimTime, endpoints: &mut Endpoints) {
        for leaving in &mut self.leaving {
            endpoints.port_time_passed(leaving.number, now);
            if now >= leaving.until {
                leaving.phase = if leaving.phase == Phase::Sending { Phase::Counting } else { Phase::Over };
                leaving.until = after(now, COUNTING_LIMIT);
            }
        }
    }

    /// When the next of them wants to be looked at, whatever happens.
    pub(crate) fn wake_at(&self, endpoints: &Endpoints) -> Option<SimTime> {
        let due = |leaving: &Leaving| {
            let device = endpoints.port(leaving.number).and_then(|port| port.link.wake_at());
            device.map_or(leaving.until, |at| at.min(leaving.until))
        };
        self.leaving.iter().map(due).min()
    }

    /// The NIC stops: none of them waits any longer.
    pub(crate) fn cut_short(&mut self, endpoints: &mut Endpoints, counters: &mut LoopCounters) {
        while let Some(leaving) = self.leaving.pop() {
            self.remove(leaving, endpoints, counters);
        }
    }

    fn remove(&self, leaving: Leaving, endpoints: &mut Endpoints, counters: &mut LoopCounters) {
        let Leaving { number, expulsion, .. } = leaving;
        let Some(port) = endpoints.remove(number) else { return };
        if expulsion != Expulsion::None {
            endpoints.dispose(port);
            if expulsion == Expulsion::HostLeft {
                self.give_back(number);
            }
            return;
        }
        let torn = port.link.torn_queues();
        counters.torn_messages += torn.len() as u64;
        match port.host.peer().and_then(Peer::departure) {
            Some(Departure::Died) => {
                tracing::warn!(
                    "{} of port {number} died; queues with a torn message: {torn:?}",
                    port.host.name()
                );
            }
            _ => tracing::info!("port {number} closed by {}", port.host.name()),
        }
        endpoints.dispose(port);
        self.give_back(number);
    }

    fn give_back(&self, number: u32) {
        // When the service is gone, no port will be opened.
        let _ = self.left.send(number);
    }
}

fn after(now: SimTime, duration: Duration) -> SimTime {
    let picoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
    SimTime(now.0.saturating_add(picoseconds))
}
