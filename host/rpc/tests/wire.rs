//! Calls over a wire that loses, repeats and reorders frames, in virtual time: both sides in one thread, a seed decides.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use beeline_datagram::{Address, Adversary, Chances, Clock, Config, Endpoint, MacAddress, Nanos, Port};
use beeline_ethernet::{Accept, Traits, Uplink, UplinkError};
use beeline_rpc::wire::{WireServer, WireTransport};
use beeline_rpc::{CallError, Client, Loss, Method, Replied, Reply, Request, Started, WaitPolicy};
use support::{BUSY, ECHO, FAIL, FILL, PANIC, WRITE, filling, handle};

const CLIENT: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const SERVER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
/// What one poll of both sides takes.
const STEP_NS: u64 = 2_000;

type Frames = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// One end of a wire in memory.
#[derive(Clone, Debug, Default)]
struct Pipe {
    out: Frames,
    inward: Frames,
}

impl Uplink for Pipe {
    fn name(&self) -> &str {
        "pipe"
    }
    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: false, gives: true, waits: false, learns: true }
    }
    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        self.out.lock().unwrap().push_back(frame.to_vec());
        Ok(Accept::Taken)
    }
    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        let Some(next) = self.inward.lock().unwrap().pop_front() else { return Ok(false) };
        *frame = next;
        Ok(true)
    }
}

/// Time that the test moves.
#[derive(Clone, Debug, Default)]
struct Virtual(Rc<Cell<u64>>);

impl Clock for Virtual {
    fn now(&mut self) -> Nanos {
        Nanos(self.0.get())
    }
}

type Wire = WireTransport<Adversary<Pipe>, Virtual>;
type Server = WireServer<Adversary<Pipe>, Virtual>;

struct World {
    clock: Virtual,
    wire: Pipe,
    chances: Chances,
    seed: u64,
}

impl World {
    fn new(chances: Chances, seed: u64) -> Self {
        World { clock: Virtual::default(), wire: Pipe::default(), chances, seed }
    }

    fn endpoint(&self, config: Config, pipe: Pipe, key: u8) -> Endpoint<Adversary<Pipe>, Virtual> {
        let uplink = Adversary::new(pipe, self.chances, self.seed + u64::from(key));
        Endpoint::with_clock(uplink, config, self.clock.clone(), [key; 16]).unwrap()
    }

    fn server(&self, key: u8) -> Server {
        let pipe = Pipe { out: self.wire.inward.clone(), inward: self.wire.out.clone() };
        WireServer::on_endpoint(self.endpoint(Config::server(SERVER), pipe, key))
    }

    fn client(&self, outstanding: u32) -> Client<Wire> {
        let endpoint = self.endpoint(Config::client(CLIENT), self.wire.clone(), 77);
        let remote = Address { mac: SERVER, port: Port::default() };
        Client::<Wire>::on_endpoint(endpoint, remote, outstanding, WaitPolicy::SPIN).unwrap()
    }

    fn pass(&self) {
        self.clock.0.set(self.clock.0.get() + STEP_NS);
    }
}

fn seed() -> u64 {
    std::env::var("BEELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed)
}

/// Calls of many lengths, as many at a time as there may be: every one ends, with its own answer, and is executed once.
fn exchange(chances: Chances, calls: u64, seed: u64) {
    let world = World::new(chances, seed);
    let (mut server, mut client) = (world.server(1), world.client(16));
    let mut executed = HashSet::new();
    let mut once = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
        assert!(executed.insert(request.word(0)), "seed {seed}: executed twice");
        handle(request, reply)
    };
    let (mut begun, mut next, mut ended, mut steps) = (HashMap::new(), 0u64, 0, 0u64);
    while ended < calls {
        while next < calls {
            let mut asked: Vec<u8> =
                (0..[8, 40, 200, 1400, 9000][(next % 5) as usize]).map(filling).collect();
            asked[..8].copy_from_slice(&next.to_le_bytes());
            let Started::Call(id) = client.start(ECHO, &asked, None).unwrap() else { break };
            assert!(begun.insert(id, asked).is_none());
            next += 1;
        }
        server.poll(&mut once).unwrap();
        if let Some(completion) = client.poll() {
            let asked = begun.remove(&completion.id).expect("a call ends once");
            assert_eq!(completion.result.map(|mut body| body.to_vec()), Ok(asked), "seed {seed}");
            ended += 1;
        }
        world.pass();
        steps += 1;
        assert!(steps < 200_000 * calls, "seed {seed}: {ended} of {calls} calls ended");
    }
    assert_eq!(executed.len() as u64, calls);
    let lost = client.transport().endpoint().uplink().lost() + server.endpoint().uplink().lost();
    println!("seed {seed}: {calls} calls, {lost} frames lost, {steps} steps");
    assert_eq!(lost > 0, chances.loss > 0.0, "the adversary was at work");
}

#[test]
fn every_call_is_answered_once_over_a_good_wire() {
    exchange(Chances::default(), 500, seed());
}

#[test]
fn every_call_is_answered_once_at_5_percent_loss_and_reorder() {
    for seed in seed()..seed() + 4 {
        exchange(Chances { loss: 0.05, duplicate: 0.05, reorder: 0.05 }, 1500, seed);
    }
}

#[test]
fn every_call_is_answered_once_at_33_percent_loss_and_reorder() {
    exchange(Chances { loss: 0.33, duplicate: 0.33, reorder: 0.33 }, 200, seed());
}

/// One call and its end.
fn ask(
    world: &World,
    server: &mut Server,
    client: &mut Client<Wire>,
    method: Method,
    request: &[u8],
) -> Result<Vec<u8>, CallError> {
    let mut begun = None;
    for _ in 0..2_000_000 {
        if begun.is_none()
            && let Started::Call(id) = client.start(method, request, None).unwrap()
        {
            begun = Some(id);
        }
        server.poll(&mut handle).unwrap();
        if let Some(completion) = client.poll() {
            assert_eq!(Some(completion.id), begun);
            return completion.result.map(|mut body| body.to_vec());
        }
        world.pass();
    }
    panic!("the call does not end")
}

#[test]
fn errors_are_values_and_long_answers_come_in_parts() {
    let world = World::new(Chances { loss: 0.02, ..Chances::default() }, seed());
    let (mut server, mut client) = (world.server(1), world.client(4));
    let mut ask = |method, request: &[u8]| ask(&world, &mut server, &mut client, method, request);
    assert_eq!(ask(FAIL, b"why"), Err(CallError::Failed { code: 7, detail: Box::from(*b"why") }));
    assert_eq!(ask(BUSY, b""), Err(CallError::Overloaded));
    assert_eq!(ask(Method(99), b""), Err(CallError::UnknownMethod));
    assert_eq!(ask(PANIC, b""), Err(CallError::Crashed));
    for bytes in [0, 100, 1500, 100_000, 1 << 20] {
        let expected: Vec<u8> = (0..bytes).map(filling).collect();
        for method in [FILL, WRITE] {
            assert_eq!(ask(method, &(bytes as u64).to_le_bytes()), Ok(expected.clone()), "{bytes}");
        }
    }
    assert_eq!(ask(FILL, &((1 << 20) + 1u64).to_le_bytes()), Err(CallError::TooLong));
}

#[test]
fn a_server_started_again_ends_every_call_and_is_found() {
    let world = World::new(Chances { loss: 0.05, duplicate: 0.05, reorder: 0.05 }, seed());
    let (mut server, mut client) = (world.server(1), world.client(16));
    for round in 0..6u8 {
        assert_eq!(ask(&world, &mut server, &mut client, ECHO, &[round]), Ok(vec![round]));
        let mut begun = HashSet::new();
        while let Started::Call(id) = client.start(ECHO, &[round; 3000], None).unwrap() {
            begun.insert(id);
        }
        for _ in 0..20 * u32::from(round) {
            server.poll(&mut handle).unwrap();
            world.pass();
        }
        // As after a kill: another session, nothing remembered.
        server = world.server(10 + round);
        let mut steps = 0u64;
        while !begun.is_empty() || client.loss().is_some() {
            server.poll(&mut handle).unwrap();
            if let Some(completion) = client.poll() {
                assert!(begun.remove(&completion.id), "a call ends once");
                match completion.result {
                    Ok(mut body) => assert_eq!(body.to_vec(), [round; 3000]),
                    Err(CallError::ServerGone { loss: Loss::Down { .. }, .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            world.pass();
            steps += 1;
            assert!(steps < 20_000_000, "{} calls do not end", begun.len());
        }
    }
}

#[test]
fn client_that_sends_garbage_is_disconnected() {
    let world = World::new(Chances::default(), seed());
    let mut server = world.server(1);
    let mut endpoint = world.endpoint(Config::client(CLIENT), world.wire.clone(), 9);
    for garbage in support::hostile::GARBAGE {
        let id = endpoint.connect(Address { mac: SERVER, port: Port::default() }).unwrap();
        let (mut sent, mut ended) = (false, false);
        for _ in 0..100_000 {
            server.poll(&mut handle).unwrap();
            match endpoint.poll().unwrap() {
                Some(beeline_datagram::Event::Opened { .. }) => {
                    sent = endpoint.try_send(id, garbage, &[]).unwrap() == beeline_datagram::Sent::Sent;
                }
                Some(beeline_datagram::Event::Closed { .. }) => {
                    ended = true;
                    break;
                }
                _ => {}
            }
            world.pass();
        }
        assert!(sent && ended, "{garbage:?} is taken for a request");
        assert_eq!(server.clients(), 0);
    }
}
