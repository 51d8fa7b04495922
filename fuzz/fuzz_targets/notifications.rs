//! This target is notifications. An owner controls number, payload and descriptors of each; a client controls what it says to
//! have taken, and never reads. Neither makes the other hold more than the bounds say, and an honest side is never stopped.
#![no_main]

use arbitrary::Arbitrary;
use beeline_domain::fuzzing::{Received, Sent};
use beeline_domain::{
    MAX_NOTIFICATION_BYTES, MAX_NOTIFICATION_FDS, MAX_UNTAKEN_FDS, MAX_UNTAKEN_NOTIFICATIONS,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    /// An owner sends the notification that is due, and others.
    Due {
        bytes: u16,
        descriptors: u8,
    },
    Other {
        serial: u32,
        bytes: u16,
        descriptors: u8,
    },
    /// The client's program takes so many.
    Take(u8),
    /// The owner's program notifies so many times.
    Notify {
        times: u8,
        bytes: u16,
    },
    /// A client says that it took so many more than it said before.
    Took(u32),
}

/// What a client must hold, worked out beside it.
#[derive(Default)]
struct Client {
    received: Received,
    waiting: std::collections::VecDeque<(usize, usize)>,
    last: u32,
    taken: u32,
    told: u32,
}

impl Client {
    fn receive(&mut self, serial: u32, bytes: u16, descriptors: u8) {
        let (bytes, fds) = (usize::from(bytes), usize::from(descriptors % 8));
        let waiting_fds: usize = self.waiting.iter().map(|(_, fds)| fds).sum();
        let fits = bytes <= MAX_NOTIFICATION_BYTES
            && fds <= MAX_NOTIFICATION_FDS
            && self.waiting.len() < MAX_UNTAKEN_NOTIFICATIONS
            && waiting_fds + fds <= MAX_UNTAKEN_FDS;
        let is_due = serial == self.last.wrapping_add(1);
        assert_eq!(self.received.receive(serial, &vec![7; bytes], fds as u8), fits && is_due);
        if fits && is_due {
            self.waiting.push_back((bytes, fds));
            self.last = serial;
        }
    }

    fn take(&mut self) {
        let expected = self.waiting.pop_front();
        let found = self.received.take();
        assert_eq!(found.map(|(bytes, fds, _)| (bytes, fds)), expected);
        let Some((_, _, tell)) = found else { return };
        self.taken += 1;
        if let Some(told) = tell {
            assert_eq!(told, self.taken);
            self.told = told;
        }
        let untold = (self.taken - self.told) as usize;
        assert!(untold < MAX_UNTAKEN_NOTIFICATIONS, "the owner would wait for ever");
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut client = Client::default();
    let Some(owner) = Sent::new() else { return };
    let (mut accepted, mut taken) = (0_u32, 0_u32);
    for step in steps {
        match step {
            Step::Due { bytes, descriptors } => {
                client.receive(client.last.wrapping_add(1), bytes, descriptors)
            }
            Step::Other { serial, bytes, descriptors } => client.receive(serial, bytes, descriptors),
            Step::Take(count) => (0..count).for_each(|_| client.take()),
            Step::Notify { times, bytes } => {
                let payload = vec![7; usize::from(bytes) % (MAX_NOTIFICATION_BYTES + 1)];
                accepted += (0..times).filter(|_| owner.notify(&payload)).count() as u32;
                assert!((accepted - taken) as usize <= MAX_UNTAKEN_NOTIFICATIONS);
            }
            Step::Took(more) => {
                let said = taken.wrapping_add(more);
                if owner.client_took(said) {
                    assert!(more > 0 && said <= accepted, "it took what it was not sent");
                    taken = said;
                }
            }
        }
    }
});
