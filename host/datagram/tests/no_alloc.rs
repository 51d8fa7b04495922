//! Once a connection is open, a message costs no allocation on either side, whether it comes in order or not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{Arc, Mutex};

use beeline_datagram::{Adversary, Chances, Config, Endpoint, Event, MacAddress, Sent};
use beeline_ethernet::{Accept, Traits, Uplink, UplinkError};

const SLOTS: usize = 256;

/// A ring of frames whose memory is there from the beginning.
struct Lane {
    slots: Vec<Vec<u8>>,
    head: usize,
    tail: usize,
}

struct End {
    out: Arc<Mutex<Lane>>,
    into: Arc<Mutex<Lane>>,
}

fn wire() -> [End; 2] {
    let lane = || {
        let slots = (0..SLOTS).map(|_| Vec::with_capacity(2048)).collect();
        Arc::new(Mutex::new(Lane { slots, head: 0, tail: 0 }))
    };
    let [one, other] = [lane(), lane()];
    [End { out: Arc::clone(&one), into: Arc::clone(&other) }, End { out: other, into: one }]
}

impl Uplink for End {
    fn name(&self) -> &str {
        "memory"
    }

    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: false, gives: true, waits: false, learns: true }
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        let mut lane = self.out.lock().unwrap();
        let tail = lane.tail;
        if tail - lane.head == SLOTS {
            return Ok(Accept::Refused);
        }
        lane.slots[tail % SLOTS].clear();
        lane.slots[tail % SLOTS].extend_from_slice(frame);
        lane.tail += 1;
        Ok(Accept::Taken)
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        let mut lane = self.into.lock().unwrap();
        if lane.head == lane.tail {
            return Ok(false);
        }
        frame.clear();
        frame.extend_from_slice(&lane.slots[lane.head % SLOTS]);
        lane.head += 1;
        Ok(true)
    }
}

#[test]
fn a_message_costs_no_allocation() {
    for chances in [Chances::default(), Chances { loss: 0.05, duplicate: 0.02, reorder: 0.05 }] {
        let macs = [1, 2].map(|last| MacAddress([2, 0, 0, 0, 0, last]));
        let [one, other] = wire();
        let mut client = Endpoint::new(Adversary::new(one, chances, 1), Config::client(macs[0])).unwrap();
        let mut server = Endpoint::new(Adversary::new(other, chances, 2), Config::server(macs[1])).unwrap();
        let id = client.connect(macs[1]).unwrap();
        let (mut sent, mut received) = (0_u64, 0_u64);
        let mut talk = |messages: u64| {
            while received < messages {
                // Every size, so that the adversary's buffers have grown before anything is counted.
                let bytes = [0; 1400];
                let part = &bytes[..(sent % 1400) as usize];
                if sent < messages && client.try_send(id, &sent.to_le_bytes(), part).unwrap() == Sent::Sent {
                    sent += 1;
                }
                assert!(!matches!(client.poll().unwrap(), Some(Event::Closed { .. })));
                if let Some(Event::Message { .. }) = server.poll().unwrap() {
                    assert_eq!(server.message()[..8], received.to_le_bytes());
                    received += 1;
                }
            }
        };
        talk(20_000);
        let counted = allocation_counter::measure(|| talk(25_000));
        // The adversary keeps buffers of its own, of which it may need one more than ever before.
        let allowed = if chances == Chances::default() { 0 } else { 8 };
        assert!(counted.count_total <= allowed, "{} allocations for 5000 messages", counted.count_total);
    }
}
