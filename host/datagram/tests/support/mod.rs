//! A network in virtual time with an adversary in it, and two endpoints that talk across it.
//!
//! Nothing here waits or reads a clock: time stands still until both endpoints have nothing more to do, and then goes to
//! the next moment at which something happens. A run follows from its seed alone.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use beeline_datagram::{Clock, Config, ConnectionId, Down, Endpoint, Event, MacAddress, Nanos, Sent};
use beeline_ethernet::{Accept, Traits, Uplink, UplinkError};

/// What the network does to frames of one direction, in parts of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairments {
    pub loss: u32,
    pub duplicate: u32,
    /// A frame takes up to [`Impairments::late_ns`] longer than the others.
    pub late: u32,
    pub late_ns: u64,
    pub delay_ns: u64,
    /// After a loss the next frames are lost, too, so many at most.
    pub burst: u32,
    /// The up-link has no room for a frame.
    pub refuse: u32,
    /// An attacker's frame comes along, made of this one with a few bits changed.
    pub garbage: u32,
}

impl Impairments {
    /// A network that only takes time.
    pub const UNIMPAIRED: Impairments = Impairments {
        loss: 0,
        duplicate: 0,
        late: 0,
        late_ns: 0,
        delay_ns: 5_000,
        burst: 0,
        refuse: 0,
        garbage: 0,
    };
}

/// What becomes of one frame, as a script says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Lose,
    Delay(u64),
}

type Script = Box<dyn FnMut(usize, &[u8]) -> Fate + Send>;

/// The network between two stations.
pub struct Net {
    pub now: u64,
    random: u64,
    impairments: [Impairments; 2],
    burst_left: [u32; 2],
    script: Option<Script>,
    /// Frames under way by arrival: (when, in which order they left), (station they go to, bytes).
    under_way: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    count: u64,
    /// Frames that each station sent, and every one of them if they are kept.
    pub sent: [u64; 2],
    pub log: Option<Vec<(usize, Vec<u8>)>>,
    pub flushes: u64,
}

pub type Shared = Arc<Mutex<Net>>;

impl Net {
    pub fn new(seed: u64, impairments: [Impairments; 2]) -> Shared {
        Arc::new(Mutex::new(Net {
            now: 1_000_000,
            random: seed,
            impairments,
            burst_left: [0; 2],
            script: None,
            under_way: BTreeMap::new(),
            count: 0,
            sent: [0; 2],
            log: None,
            flushes: 0,
        }))
    }

    pub fn script(&mut self, script: impl FnMut(usize, &[u8]) -> Fate + Send + 'static) {
        self.script = Some(Box::new(script));
    }

    pub fn impair(&mut self, impairments: [Impairments; 2]) {
        self.impairments = impairments;
    }

    /// SplitMix64.
    pub fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn happens(&mut self, thousandths: u32) -> bool {
        thousandths > 0 && self.random() % 1000 < u64::from(thousandths)
    }

    /// Puts a frame on the wire to `to`, to arrive after `delay_ns`.
    pub fn inject(&mut self, to: usize, frame: &[u8], delay_ns: u64) {
        self.count += 1;
        self.under_way.insert((self.now + delay_ns, self.count), (to, frame.to_vec()));
    }

    fn send(&mut self, from: usize, frame: &[u8]) -> Accept {
        let impairments = self.impairments[from];
        if self.happens(impairments.refuse) {
            return Accept::Refused;
        }
        self.sent[from] += 1;
        if let Some(log) = &mut self.log {
            log.push((from, frame.to_vec()));
        }
        let mut delay = impairments.delay_ns;
        if let Some(script) = &mut self.script {
            match script(from, frame) {
                Fate::Pass => {}
                Fate::Lose => return Accept::Taken,
                Fate::Delay(ns) => delay += ns,
            }
        }
        if self.burst_left[from] > 0 {
            self.burst_left[from] -= 1;
            return Accept::Taken;
        }
        if self.happens(impairments.loss) {
            if impairments.burst > 0 {
                self.burst_left[from] = (self.random() % u64::from(impairments.burst + 1)) as u32;
            }
            return Accept::Taken;
        }
        if self.happens(impairments.late) {
            delay += self.random() % impairments.late_ns.max(1);
        }
        if self.happens(impairments.duplicate) {
            let later = delay + self.random() % (impairments.late_ns + 1000);
            self.inject(1 - from, frame, later);
        }
        if self.happens(impairments.garbage) {
            let garbage = self.garble(frame);
            self.inject(1 - from, &garbage, delay);
        }
        self.inject(1 - from, frame, delay);
        Accept::Taken
    }

    /// A frame that an attacker could send: he knows the protocol and the addresses, but no session.
    fn garble(&mut self, frame: &[u8]) -> Vec<u8> {
        use beeline_spec::formats::datagram_frame as f;
        let mut frame = frame.to_vec();
        for at in [f::TO_SESSION_OFFSET, f::FROM_SESSION_OFFSET] {
            let value = self.random();
            frame[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for _ in 0..self.random() % 4 {
            let at = f::VERSION_OFFSET + (self.random() % (frame.len() - f::VERSION_OFFSET) as u64) as usize;
            frame[at] ^= 1 << (self.random() % 8);
        }
        if self.happens(200) {
            let length = (self.random() % (frame.len() as u64 + 1)) as usize;
            frame.truncate(length);
        }
        frame
    }

    fn receive(&mut self, station: usize, frame: &mut Vec<u8>) -> bool {
        let due = self.under_way.iter().find(|((at, _), (to, _))| *at <= self.now && *to == station);
        let Some((&key, _)) = due else { return false };
        let (_, bytes) = self.under_way.remove(&key).unwrap();
        frame.clear();
        frame.extend_from_slice(&bytes);
        true
    }

    /// Frames for a station that is not there any more, or not yet.
    fn drop_unreceived(&mut self, is_there: impl Fn(usize) -> bool) {
        let now = self.now;
        self.under_way.retain(|(at, _), (to, _)| is_there(*to) || *at > now);
    }

    fn next_arrival(&self) -> Option<u64> {
        self.under_way.keys().next().map(|key| key.0)
    }
}

/// One station's way onto the network.
#[derive(Clone)]
pub struct Plug {
    pub net: Shared,
    station: usize,
}

impl Plug {
    pub fn new(net: &Shared, station: usize) -> Self {
        Plug { net: Arc::clone(net), station }
    }
}

impl std::fmt::Debug for Plug {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "station {}", self.station)
    }
}

impl Uplink for Plug {
    fn name(&self) -> &str {
        "plug"
    }

    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: false, gives: true, waits: false, learns: true }
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        Ok(self.net.lock().unwrap().send(self.station, frame))
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        Ok(self.net.lock().unwrap().receive(self.station, frame))
    }

    fn flush(&mut self) -> Result<(), UplinkError> {
        self.net.lock().unwrap().flushes += 1;
        Ok(())
    }
}

impl Clock for Plug {
    fn now(&mut self) -> Nanos {
        Nanos(self.net.lock().unwrap().now)
    }
}

pub type TestEndpoint = Endpoint<Plug, Plug>;

pub fn mac(station: usize) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, station as u8 + 1])
}

/// An endpoint at a station; `key` differs from start to start.
pub fn endpoint(
    net: &Shared,
    station: usize,
    key: u8,
    config: impl FnOnce(Config) -> Config,
) -> TestEndpoint {
    let plug = Plug::new(net, station);
    let config = config(Config::server(mac(station)));
    Endpoint::with_clock(plug.clone(), config, plug, [key; 16]).unwrap()
}

/// Bytes of message `index` of a stream: every one differs from the others in content and mostly in length.
pub fn message(stream: u64, index: u64, most_bytes: usize) -> Vec<u8> {
    let length = match index % 7 {
        0 => most_bytes,
        1 => 0,
        n => ((index * 31 + n * 17) as usize) % (most_bytes + 1),
    };
    let mut bytes = vec![stream as u8 ^ 0x5a; length];
    let label = (stream << 32 | index).to_le_bytes();
    let labelled = length.min(8);
    bytes[..labelled].copy_from_slice(&label[..labelled]);
    bytes
}

/// One side of a conversation in which both send numbered messages as fast as they may.
pub struct Side {
    pub endpoint: TestEndpoint,
    pub id: Option<ConnectionId>,
    pub to_send: u64,
    pub sent: u64,
    pub received: u64,
    pub down: Option<(Down, u32)>,
    pub opened: u32,
    /// A connection that was told of after the end of this one. Nothing is polled until somebody takes it.
    pub next: Option<ConnectionId>,
    /// Stream that this side sends and the one that it expects.
    pub streams: [u64; 2],
    pub most_bytes: usize,
}

impl Side {
    pub fn new(endpoint: TestEndpoint, streams: [u64; 2], to_send: u64) -> Self {
        let most_bytes = endpoint.max_message_bytes();
        Side {
            endpoint,
            id: None,
            to_send,
            sent: 0,
            received: 0,
            down: None,
            opened: 0,
            next: None,
            streams,
            most_bytes,
        }
    }

    /// Polls until nothing happens, checks each message, and sends what there is room for. Whether anything happened.
    pub fn run(&mut self) -> bool {
        let mut is_news = false;
        while self.next.is_none() {
            let Some(event) = self.endpoint.poll().unwrap() else { break };
            is_news = true;
            match event {
                Event::Opened { id, .. } if self.down.is_some() => self.next = Some(id),
                Event::Opened { id, .. } => {
                    assert!(self.id.is_none_or(|own| own == id), "one connection at a time");
                    self.id = Some(id);
                    self.opened += 1;
                }
                Event::Message { id, bytes } => {
                    assert_eq!(self.id, Some(id));
                    assert!(self.down.is_none(), "no message after the end was reported");
                    let expected = message(self.streams[1], self.received, self.most_bytes);
                    assert_eq!(bytes, expected.len(), "length of message {}", self.received);
                    assert_eq!(self.endpoint.message(), expected, "message {}", self.received);
                    self.received += 1;
                }
                Event::Closed { id, why, unacknowledged } => {
                    assert!(self.id.is_none_or(|own| own == id));
                    assert!(self.down.is_none(), "an end is reported once");
                    assert!(u64::from(unacknowledged) <= self.sent);
                    self.down = Some((why, unacknowledged));
                }
            }
        }
        is_news | self.send_what_fits()
    }

    fn send_what_fits(&mut self) -> bool {
        let before = self.sent;
        if let (Some(id), None) = (self.id, self.down) {
            while self.sent < self.to_send {
                let bytes = message(self.streams[0], self.sent, self.most_bytes);
                let (head, rest) = bytes.split_at(bytes.len() / 3);
                match self.endpoint.try_send(id, head, rest) {
                    Ok(Sent::Sent) => self.sent += 1,
                    Ok(Sent::Full) | Err(_) => break,
                }
            }
        }
        self.sent != before
    }

    pub fn deadline(&self) -> u64 {
        if self.next.is_some() {
            return u64::MAX;
        }
        self.endpoint.next_deadline().0
    }

    /// Messages of this side that are known to have arrived.
    pub fn acknowledged(&self) -> u64 {
        let left = match (self.down, self.id.and_then(|id| self.endpoint.stats(id))) {
            (Some((_, left)), _) => left,
            (None, stats) => stats.map_or(0, |stats| stats.unacknowledged),
        };
        self.sent - u64::from(left)
    }
}

/// Lets time pass until `done`, or until `until_ns`; gives whether it was done.
pub fn run_until(
    net: &Shared,
    sides: &mut [&mut Side],
    until_ns: u64,
    mut done: impl FnMut(&[&mut Side]) -> bool,
) -> bool {
    let mut polls_at_one_time = 0;
    loop {
        let mut is_news = false;
        for side in sides.iter_mut() {
            is_news |= side.run();
        }
        if done(sides) {
            return true;
        }
        let mut shared = net.lock().unwrap();
        let deadline = sides.iter().map(|side| side.deadline()).min().unwrap_or(u64::MAX);
        if is_news {
            continue;
        }
        shared.drop_unreceived(|station| sides.get(station).is_some_and(|side| side.next.is_none()));
        let next = shared.next_arrival().unwrap_or(u64::MAX).min(deadline);
        if next <= shared.now {
            // An endpoint looks at its clock now and then only, and an up-link may refuse for a while.
            polls_at_one_time += 1;
            assert!(
                polls_at_one_time < 10_000,
                "time stands still at {} ns: {:#?}",
                shared.now,
                sides[0].endpoint
            );
            continue;
        }
        polls_at_one_time = 0;
        if next > until_ns {
            shared.now = until_ns;
            return false;
        }
        shared.now = next;
    }
}

/// Two sides with a connection that is open on both.
pub fn pair(net: &Shared, config: impl Fn(Config) -> Config) -> (Side, Side) {
    let mut client = Side::new(endpoint(net, 0, 1, &config), [1, 2], 0);
    let mut server = Side::new(endpoint(net, 1, 2, &config), [2, 1], 0);
    client.id = Some(client.endpoint.connect(mac(1)).unwrap());
    let now = net.lock().unwrap().now;
    let is_open = run_until(net, &mut [&mut client, &mut server], now + 60_000_000_000, |sides| {
        sides.iter().all(|side| side.opened == 1)
    });
    assert!(is_open, "{:?} {:?}", client.down, server.down);
    (client, server)
}

/// The seed of a test: from the environment, to repeat what failed.
pub fn seed(default: u64) -> u64 {
    let seed = std::env::var("BEELINE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    println!("BEELINE_SEED={seed}");
    seed
}
