//! What one station may have of an endpoint's connections, and how soon what it gives up is free.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::num::NonZeroU16;

use beeline_datagram::{Config, ConnectionId, Down, Event, MacAddress, Port};
use support::{Impairments, Net, Shared, TestEndpoint, endpoint, mac};

const UNIMPAIRED: [Impairments; 2] = [Impairments::UNIMPAIRED; 2];
const SECOND: u64 = 1_000_000_000;
/// What a server has if nothing else is said, and what of it one station has.
const MOST: u16 = 64;
const SHARE: u16 = 60;

/// A server, and programs of stations on the other side of the wire, of which one speaks at a time.
struct Crowd {
    net: Shared,
    server: TestEndpoint,
    /// Programs so far: each has sessions of its own.
    programs: u8,
}

impl Crowd {
    fn new(config: impl FnOnce(Config) -> Config) -> Self {
        let net = Net::new(1, UNIMPAIRED);
        let server = endpoint(&net, 1, 99, config);
        Crowd { net, server, programs: 0 }
    }

    /// A program at a port of a station that asks for a connection, and what became of it.
    fn open(&mut self, station: u8, port: u16) -> (TestEndpoint, ConnectionId, Result<(), Down>) {
        let at = |config| Config { local: MacAddress([2, 0, 0, 0, 1, station]), port: Port(port), ..config };
        self.programs = self.programs.wrapping_add(1);
        let mut client = endpoint(&self.net, 0, self.programs, at);
        let id = client.connect(mac(1)).unwrap();
        let events =
            self.talk(&mut client, |event| matches!(event, Event::Opened { .. } | Event::Closed { .. }));
        let outcome = match events.last().unwrap() {
            Event::Closed { why, .. } => Err(*why),
            _ => Ok(()),
        };
        // The server has heard that its welcome arrived, and the client that this was heard.
        self.rest(&mut client);
        (client, id, outcome)
    }

    /// Polls both until the client is told something of this kind.
    fn talk(&mut self, client: &mut TestEndpoint, is_wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        while !events.iter().any(&is_wanted) {
            self.step();
            events.extend(client.poll().unwrap());
        }
        events
    }

    /// Polls both until nothing more is said.
    fn rest(&mut self, client: &mut TestEndpoint) {
        for _ in 0..200 {
            self.step();
            client.poll().unwrap();
        }
    }

    fn step(&mut self) {
        self.net.lock().unwrap().now += 1000;
        self.server.poll().unwrap();
    }

    /// A station that takes what it can get, a connection a port.
    fn hog(&mut self, station: u8) -> Vec<(TestEndpoint, ConnectionId)> {
        let mut held = Vec::new();
        for port in 0..MOST {
            let (client, id, outcome) = self.open(station, port);
            match outcome {
                Ok(()) => held.push((client, id)),
                Err(why) => assert_eq!(why, Down::StationShare, "port {port}"),
            }
        }
        held
    }
}

#[test]
fn station_that_takes_all_it_can_leaves_a_sixteenth_to_others() {
    let mut crowd = Crowd::new(|config| config);
    let held = crowd.hog(1);
    assert_eq!(held.len(), usize::from(SHARE));
    assert_eq!(crowd.server.endpoint_stats().refused, u64::from(MOST - SHARE));
    let mut others = Vec::new();
    for station in 2..6 {
        let (client, _, outcome) = crowd.open(station, 0);
        assert_eq!(outcome, Ok(()), "station {station}");
        others.push(client);
    }
    // All are taken now: whoever comes is told that, and not that its own station has too many.
    assert_eq!(crowd.open(6, 0).2, Err(Down::Refused));
}

#[test]
fn connection_that_is_closed_or_aborted_is_free_at_once() {
    let mut crowd = Crowd::new(|config| config);
    let mut held = crowd.hog(1);
    for (port, is_closed) in [(100, true), (101, false)] {
        let (mut client, id) = held.pop().unwrap();
        let began = crowd.net.lock().unwrap().now;
        if is_closed {
            client.close(id);
        } else {
            client.abort(id);
        }
        crowd.talk(&mut client, |event| matches!(event, Event::Closed { why: Down::Closed, .. }));
        let (client, id, outcome) = crowd.open(1, port);
        assert_eq!(outcome, Ok(()), "closed in order: {is_closed}");
        assert!(crowd.net.lock().unwrap().now - began < SECOND / 10);
        held.push((client, id));
        assert_eq!(crowd.open(1, 200).2, Err(Down::StationShare));
    }
}

#[test]
fn program_that_comes_back_to_its_port_takes_the_place_that_it_had() {
    let mut crowd = Crowd::new(|config| config);
    let held = crowd.hog(1);
    for port in 0..SHARE {
        assert_eq!(crowd.open(1, port).2, Ok(()), "port {port}");
    }
    assert_eq!(crowd.open(1, 200).2, Err(Down::StationShare));
    drop(held);
}

#[test]
fn station_that_falls_silent_gives_back_its_share() {
    let mut crowd = Crowd::new(|config| config);
    drop(crowd.hog(1));
    let until = crowd.net.lock().unwrap().now + 4 * SECOND;
    let mut ended = 0;
    while crowd.net.lock().unwrap().now < until {
        crowd.net.lock().unwrap().now += 1_000_000;
        while let Some(event) = crowd.server.poll().unwrap() {
            ended += usize::from(matches!(event, Event::Closed { why: Down::Silent { .. }, .. }));
        }
    }
    assert_eq!(ended, usize::from(SHARE));
    assert_eq!(crowd.hog(1).len(), usize::from(SHARE));
}

#[test]
fn share_can_be_set_and_does_not_bind_who_begins_connections_itself() {
    let mut crowd = Crowd::new(|config| Config { station_share: NonZeroU16::new(2), ..config });
    assert_eq!(crowd.hog(1).len(), 2);
    assert_eq!(crowd.hog(2).len(), 2);
    let station = MacAddress([2, 0, 0, 0, 1, 3]);
    for port in 0..4 {
        crowd.server.connect(beeline_datagram::Address { mac: station, port: Port(port) }).unwrap();
    }
    assert_eq!(crowd.open(3, 9).2, Err(Down::StationShare), "the station has as many as it may begin");
}
