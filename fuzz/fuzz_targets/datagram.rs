//! This target is a datagram endpoint with an open connection. Any station of the Ethernet controls every byte of a frame;
//! the other side of the connection knows its sessions and says what it likes with them. Nothing panics. No message is
//! shown twice, out of order, or if an attacker sent it. The room that this side tells never goes back. A connection that
//! an attacker cannot name lives on.
#![no_main]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use arbitrary::Arbitrary;
use beeline_datagram::{
    Clock, Config, ConnectionId, Endpoint, Event, HEAD_BYTES, MOST_WINDOW, MacAddress, Nanos,
};
use beeline_ethernet::{Accept, Traits, Uplink, UplinkError};
use beeline_spec::formats::{
    DATAGRAM_ETHERTYPE, DATAGRAM_VERSION, datagram_frame as f, datagram_kind as kind,
};
use libfuzzer_sys::fuzz_target;

const HERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const PEER_SESSION: u64 = 0x5555_0000_ffff_fff0;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    window: u8,
    operations: Vec<Operation<'a>>,
}

#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    /// Any bytes.
    Frame(&'a [u8]),
    /// A frame with a right Ethernet header, from somebody who knows no session but may try the peer's own.
    Attacker {
        last: u8,
        head: Fields,
        message: &'a [u8],
    },
    /// A frame of the peer, numbers near the truth.
    Peer {
        kind: u8,
        number: i8,
        acknowledged: i8,
        selective: u64,
        room: u8,
        flags: u8,
        message: &'a [u8],
    },
    /// A frame of the peer, numbers as they come.
    WildPeer(Fields, &'a [u8]),
    Send(u16),
    Pause(bool),
    Close,
    Wait(u32),
    Refuse(bool),
    Connect(u8),
}

#[derive(Arbitrary, Debug)]
struct Fields {
    kind: u8,
    number: u32,
    acknowledged: u32,
    selective: u64,
    from_session: u64,
    to_session: u64,
    room: u8,
    flags: u8,
    from_port: u16,
}

#[derive(Default)]
struct Wire {
    into: VecDeque<Vec<u8>>,
    out: Vec<Vec<u8>>,
    refuses: bool,
}

#[derive(Clone, Default)]
struct Plug(Arc<Mutex<Wire>>);

impl Uplink for Plug {
    fn name(&self) -> &str {
        "plug"
    }

    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: false, gives: true, waits: false, learns: true }
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        let mut wire = self.0.lock().expect("one thread");
        if wire.refuses {
            return Ok(Accept::Refused);
        }
        wire.out.push(frame.to_vec());
        Ok(Accept::Taken)
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        let next = self.0.lock().expect("one thread").into.pop_front();
        if let Some(next) = next {
            *frame = next;
            return Ok(true);
        }
        Ok(false)
    }
}

#[derive(Clone, Default)]
struct Time(Rc<RefCell<u64>>);

impl Clock for Time {
    fn now(&mut self) -> Nanos {
        Nanos(*self.0.borrow())
    }
}

fn put(frame: &mut [u8], at: usize, value: u64, bytes: usize) {
    frame[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

fn get(frame: &[u8], at: usize, bytes: usize) -> u64 {
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(&frame[at..at + bytes]);
    u64::from_le_bytes(value)
}

fn frame(from: MacAddress, fields: &Fields, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; HEAD_BYTES];
    frame[..6].copy_from_slice(&HERE.0);
    frame[6..12].copy_from_slice(&from.0);
    let ethertype = (DATAGRAM_ETHERTYPE as u16).to_be_bytes();
    frame[f::ETHERTYPE_OFFSET..f::ETHERTYPE_OFFSET + 2].copy_from_slice(&ethertype);
    frame[f::VERSION_OFFSET] = DATAGRAM_VERSION as u8;
    frame[f::KIND_OFFSET] = fields.kind % 8;
    put(&mut frame, f::TO_SESSION_OFFSET, fields.to_session, 8);
    put(&mut frame, f::FROM_SESSION_OFFSET, fields.from_session, 8);
    put(&mut frame, f::NUMBER_OFFSET, fields.number.into(), 4);
    put(&mut frame, f::ACKNOWLEDGED_OFFSET, fields.acknowledged.into(), 4);
    put(&mut frame, f::SELECTIVE_OFFSET, fields.selective, 8);
    let message = if fields.kind % 8 == kind::DATA { &message[..message.len().min(2000)] } else { &[] };
    put(&mut frame, f::LENGTH_BYTES_OFFSET, message.len() as u64, 2);
    put(&mut frame, f::FROM_PORT_OFFSET, fields.from_port.into(), 2);
    frame[f::ROOM_OFFSET] = fields.room;
    frame[f::FLAGS_OFFSET] = fields.flags;
    frame.extend_from_slice(message);
    frame
}

/// The endpoint, what it is known to have said, and what may be expected of it.
struct Watched {
    endpoint: Endpoint<Plug, Time>,
    plug: Plug,
    time: Time,
    id: ConnectionId,
    our_session: u64,
    /// Messages of the peer that were shown, and messages sent to it.
    shown: u32,
    sent: u32,
    /// The edge of the room that was told.
    edge: Option<u32>,
    /// The peer has said something; only that, or silence, may end the connection.
    may_end: bool,
    is_over: bool,
}

impl Watched {
    /// An endpoint that a peer has just connected to, by the book.
    fn open(input: &Input<'_>) -> Watched {
        let (plug, time) = (Plug::default(), Time::default());
        let window = input.window % MOST_WINDOW + 1;
        let mut config = Config::server(HERE);
        (config.send_window, config.receive_window) = (window, window);
        config.max_connections = 4;
        let mut endpoint =
            Endpoint::with_clock(plug.clone(), config, time.clone(), [9; 16]).expect("a good configuration");
        let mut fields = Fields {
            kind: kind::OPEN,
            number: endpoint.max_message_bytes() as u32,
            acknowledged: 0,
            selective: 0,
            from_session: PEER_SESSION,
            to_session: 0,
            room: 64,
            flags: 0,
            from_port: 0,
        };
        plug.0.lock().expect("one thread").into.push_back(frame(PEER, &fields, &[]));
        assert_eq!(endpoint.poll().expect("a good up-link"), None);
        let welcome = plug.0.lock().expect("one thread").out.pop().expect("an answer");
        fields.to_session = get(&welcome, f::FROM_SESSION_OFFSET, 8);
        (fields.kind, fields.acknowledged) = (kind::ACK, fields.to_session as u32);
        plug.0.lock().expect("one thread").into.push_back(frame(PEER, &fields, &[]));
        let Ok(Some(Event::Opened { id, .. })) = endpoint.poll() else { panic!("it opens") };
        let our_session = fields.to_session;
        Watched {
            endpoint,
            plug,
            time,
            id,
            our_session,
            shown: 0,
            sent: 0,
            edge: None,
            may_end: false,
            is_over: false,
        }
    }

    fn give(&mut self, frame: Vec<u8>) {
        self.plug.0.lock().expect("one thread").into.push_back(frame);
    }

    /// Polls a little, and checks what is told and what leaves.
    fn poll(&mut self) {
        for _ in 0..8 {
            match self.endpoint.poll().expect("a good up-link") {
                Some(Event::Message { id, bytes }) => {
                    assert_eq!(self.endpoint.message().len(), bytes);
                    if id == self.id {
                        assert!(!self.is_over, "a message after the end");
                        self.shown += 1;
                    }
                }
                Some(Event::Closed { id, unacknowledged, .. }) if id == self.id => {
                    assert!(!self.is_over, "an end is told once");
                    assert!(self.may_end, "an attacker ended the connection");
                    assert!(unacknowledged <= self.sent);
                    self.is_over = true;
                }
                _ => {}
            }
        }
        let out = std::mem::take(&mut self.plug.0.lock().expect("one thread").out);
        for frame in &out {
            self.check(frame);
        }
    }

    fn check(&mut self, frame: &[u8]) {
        let is_ours = get(frame, f::FROM_SESSION_OFFSET, 8) == self.our_session
            && get(frame, f::TO_SESSION_OFFSET, 8) == PEER_SESSION
            && [kind::DATA, kind::ACK, kind::CLOSE].contains(&frame[f::KIND_OFFSET]);
        if !is_ours || self.is_over {
            return;
        }
        let acknowledged = get(frame, f::ACKNOWLEDGED_OFFSET, 4) as u32;
        let edge = acknowledged.wrapping_add(frame[f::ROOM_OFFSET].into());
        let before = self.edge.replace(edge).unwrap_or(edge);
        assert!(edge.wrapping_sub(before) < 1 << 31, "room that was told is taken back");
        assert!(acknowledged.wrapping_sub(PEER_SESSION as u32) < 1 << 31, "less than nothing arrived");
        let held = get(frame, f::SELECTIVE_OFFSET, 8);
        assert!(64 - held.leading_zeros() < u32::from(frame[f::ROOM_OFFSET]).max(1), "beyond the room");
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        match operation {
            Operation::Frame(bytes) => self.give(bytes.to_vec()),
            Operation::Attacker { last, head, message } => {
                // An attacker guesses small sessions: the real ones, and those offered to others, he cannot know.
                let to_session = head.to_session & 0xffff;
                let from_session = if head.flags & 2 == 0 { PEER_SESSION } else { head.from_session };
                let head = Fields { to_session, from_session, flags: head.flags & 1, ..*head };
                self.give(frame(MacAddress([2, 0, 0, 0, 0, *last]), &head, message));
            }
            Operation::Peer { kind, number, acknowledged, selective, room, flags, message } => {
                self.may_end = true;
                let fields = Fields {
                    kind: *kind,
                    number: (PEER_SESSION as u32)
                        .wrapping_add(self.shown)
                        .wrapping_add_signed((*number).into()),
                    acknowledged: (self.our_session as u32)
                        .wrapping_add(self.sent)
                        .wrapping_add_signed((*acknowledged).into()),
                    selective: *selective,
                    from_session: PEER_SESSION,
                    to_session: self.our_session,
                    room: *room,
                    flags: flags & 1,
                    from_port: 0,
                };
                self.give(frame(PEER, &fields, message));
            }
            Operation::WildPeer(fields, message) => {
                self.may_end = true;
                let sessions = Fields {
                    to_session: self.our_session,
                    from_session: PEER_SESSION,
                    from_port: 0,
                    ..*fields
                };
                self.give(frame(PEER, &sessions, message));
            }
            Operation::Send(bytes) => {
                let message = vec![1; usize::from(*bytes) % 1600];
                if self.endpoint.try_send(self.id, &message, &[]) == Ok(beeline_datagram::Sent::Sent) {
                    self.sent += 1;
                }
            }
            Operation::Pause(true) => self.endpoint.pause(self.id),
            Operation::Pause(false) => self.endpoint.resume(self.id),
            Operation::Close => {
                self.may_end = true;
                self.endpoint.close(self.id);
            }
            Operation::Wait(ns) => {
                let after = self.time.0.borrow().saturating_add(u64::from(*ns));
                *self.time.0.borrow_mut() = after;
                // The peer of this target answers nothing, so that in the end it is silent.
                self.may_end |= after > 1_500_000_000;
            }
            Operation::Refuse(refuses) => self.plug.0.lock().expect("one thread").refuses = *refuses,
            Operation::Connect(last) => {
                let _ = self.endpoint.connect(MacAddress([2, 0, 0, 0, 0, *last]));
            }
        }
    }
}

fuzz_target!(|input: Input<'_>| {
    let mut watched = Watched::open(&input);
    for operation in &input.operations {
        watched.operation(operation);
        watched.poll();
    }
});
