//! What an endpoint keeps in order between frames: who has something to tell, who wants to send, whose time has come.

use beeline_ethernet::Uplink;

use super::{Endpoint, EndpointWire, Event, FRAMES_A_LOOK, Lies};
use crate::connection::Connection;
use crate::ended::Ended;
use crate::{Clock, Down, Nanos};

/// Idle polls between two looks at the clock: as many as fit between these bounds, in nanoseconds.
const LOOK_EVERY_NS: std::ops::Range<u64> = 500..2000;
const MOST_POLLS_A_LOOK: u32 = 64;

impl<U: Uplink, C: Clock> Endpoint<U, C> {
    /// Tells of the next connection that has something to tell.
    pub(super) fn tell(&mut self) -> Option<Event> {
        while let Some(&index) = self.ready.front() {
            let id = self.connections.id(index);
            let Some(connection) = self.connections.at(index) else {
                self.ready.pop_front();
                continue;
            };
            if connection.announce() {
                return Some(Event::Opened { id, remote: connection.remote() });
            }
            if let Some((slot, bytes)) = connection.deliver() {
                self.lies = Lies::Held { id, slot, bytes };
                // The others come first, before its next one.
                self.ready.rotate_left(1);
                self.settle(index);
                return Some(Event::Message { id, bytes });
            }
            self.ready.pop_front();
            connection.is_listed_as_ready = false;
            if let Some(why) = connection.end() {
                return Some(self.finish(index, why));
            }
        }
        None
    }

    /// Frees a connection that ended.
    fn finish(&mut self, index: u32, why: Down) -> Event {
        let id = self.connections.id(index);
        self.touch(index, |connection, wire| connection.send_last_ack(wire));
        self.detach(index);
        let unacknowledged = self.connections.at(index).map_or(0, |connection| connection.unacknowledged());
        self.connections.remove(index);
        Event::Closed { id, why, unacknowledged }
    }

    /// Detaches a connection from its address and records its sessions as ended, so that no late frame brings it back.
    pub(super) fn detach(&mut self, index: u32) {
        if !self.connections.is_attached(index) {
            return;
        }
        self.connections.detach(index);
        let Some(connection) = self.connections.at(index) else { return };
        let (remote, (ours, theirs)) = (connection.remote(), connection.sessions());
        let (arrived, is_complete) = (connection.arrived(), connection.is_closed_by_peer());
        let ended = Ended { remote, ours, theirs, arrived, is_complete, at: self.now };
        if self.ended.add(ended) {
            self.sessions.withdraw_offers();
        }
    }

    /// Calls `what` with a connection and the sink of its frames.
    pub(super) fn touch(&mut self, index: u32, what: impl FnOnce(&mut Connection, &mut EndpointWire<'_, U>)) {
        let Some(connection) = self.connections.at(index) else { return };
        what(connection, &mut EndpointWire { uplink: &mut self.uplink, outlet: &mut self.outlet });
        self.settle(index);
    }

    /// Puts a connection that was touched on the lists it belongs to.
    #[inline]
    pub(super) fn settle(&mut self, index: u32) {
        let Some(connection) = self.connections.at(index) else { return };
        self.deadline = self.deadline.min(connection.deadline());
        if connection.needs_work() && !connection.is_listed_for_work {
            connection.is_listed_for_work = true;
            self.work.push(index);
        }
        if connection.is_ready() && !connection.is_listed_as_ready {
            connection.is_listed_as_ready = true;
            self.ready.push_back(index);
        }
    }

    /// Sends for every connection that wants to.
    pub(super) fn do_work(&mut self) {
        let mut work = std::mem::replace(&mut self.work, std::mem::take(&mut self.spare_work));
        for index in work.drain(..) {
            let now = self.now;
            self.touch(index, |connection, wire| {
                connection.is_listed_for_work = false;
                connection.work(now, wire);
            });
        }
        self.spare_work = work;
    }

    /// Nothing came: looks at the clock now and then.
    #[inline]
    pub(super) fn idle(&mut self) {
        self.idle_polls += 1;
        if self.idle_polls >= self.idle_polls_a_look {
            self.look_at_clock();
        }
    }

    fn look_at_clock(&mut self) {
        let before = self.now;
        self.now = self.clock.now();
        let elapsed_ns = self.now.since(before);
        // A poll may take a nanosecond or, in a system call, many thousand.
        if elapsed_ns >= LOOK_EVERY_NS.end {
            self.idle_polls_a_look = (self.idle_polls_a_look / 2).max(1);
        } else if elapsed_ns > 0 && elapsed_ns < LOOK_EVERY_NS.start {
            self.idle_polls_a_look = (self.idle_polls_a_look * 2).min(MOST_POLLS_A_LOOK);
        }
        self.idle_polls = 0;
        self.frames_until_look = FRAMES_A_LOOK;
        self.look_at_timers();
    }

    /// Calls every connection whose time has come.
    pub(super) fn look_at_timers(&mut self) {
        if self.now < self.deadline {
            return;
        }
        let now = self.now;
        self.deadline = Nanos::NEVER;
        for index in 0..self.connections.slots() {
            self.touch(index, |connection, wire| {
                if connection.deadline() <= now {
                    connection.on_time(now, wire);
                }
            });
        }
    }
}
