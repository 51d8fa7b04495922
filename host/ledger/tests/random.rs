//! The stream arrives whole and in order, whatever the sender does in the middle of what the receiver does.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use std::rc::Rc;

use beeline_ledger::*;
use world::*;

const RUNS: u64 = 20_000;
const BYTES: usize = 60;

/// Numbers that are the same for the same seed (xorshift).
struct Random(u64);

impl Random {
    fn of(seed: u64) -> Self {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u8) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % u64::from(end)) as u8
    }

    fn act(&mut self, runs: Runs) -> Act {
        match self.below(30) {
            0..6 => Act::Send(1 + self.below(5)),
            6..9 => Act::Up,
            9..12 => Act::Down,
            12..16 => Act::Land(1 + self.below(8)),
            16 => Act::Give,
            17..19 => Act::Return,
            19..21 => Act::Resume,
            21 if runs.scribbles => Act::Scribble,
            22 if runs.leaves => Act::Leave,
            _ => Act::Wait,
        }
    }
}

/// What a sender meets, and does, in the runs of a test.
#[derive(Clone, Copy, Debug)]
struct Runs {
    scribbles: bool,
    leaves: bool,
}

/// Receives all of it: the stream is whole, and the last read its end.
fn receives_all(seed: u64, runs: Runs) -> Rc<World> {
    let mut random = Random::of(seed);
    let acts = (0..random.below(120)).map(|_| random.act(runs)).collect();
    let world = World::new(BYTES, acts);
    let mut receiver = world.receiver();
    let (mut kernel, mut window) = (Socket(Rc::clone(&world)), Window(Rc::clone(&world)));
    let mut got = Vec::new();
    for turn in 0.. {
        assert!(turn < 10_000, "run {seed} stays at byte {}", got.len());
        let mut out = [0; 8];
        let out = &mut out[..1 + usize::from(random.below(8))];
        if random.below(4) == 0
            && let Ok(Received::Bytes(bytes)) = receiver.peek(out, &mut kernel, &mut window)
        {
            assert_eq!(got.len() as u64, receiver.taken_bytes());
            assert!(
                world.stream()[got.len()..].starts_with(&out[..bytes]),
                "run {seed}: a peek shows another byte"
            );
        }
        match receiver.receive(out, &mut kernel, &mut window) {
            Ok(Received::Bytes(bytes)) => got.extend(&out[..bytes]),
            Ok(Received::Nothing) => {
                world.turn();
                world.finish();
            }
            Ok(Received::End) => break,
            Err(refused) => panic!("run {seed}, behind byte {}: {refused:?}", got.len()),
        }
        assert_eq!(got.len() as u64, receiver.taken_bytes());
        assert!(world.stream().starts_with(&got), "run {seed}: byte {} is another one", got.len());
    }
    assert_eq!(got, world.stream(), "run {seed}");
    world
}

#[test]
fn stream_is_whole_while_its_path_changes() {
    let ups: u64 =
        (0..RUNS).map(|seed| receives_all(seed, Runs { scribbles: false, leaves: false }).ups.get()).sum();
    assert!(ups > RUNS, "{ups} times a stream left the socket");
}

#[test]
fn stream_is_whole_though_windows_are_scribbled_over() {
    let runs = Runs { scribbles: true, leaves: false };
    let scribbles: u64 = (0..RUNS).map(|seed| receives_all(seed, runs).scribbles.get()).sum();
    assert!(scribbles > RUNS, "{scribbles} scribbles");
}

#[test]
fn stream_is_whole_though_its_sender_leaves_a_window_that_is_scribbled_over_for_ever() {
    for scribbles in [false, true] {
        let runs = Runs { scribbles, leaves: true };
        let again: u64 = (0..RUNS).map(|seed| receives_all(seed, runs).again.get()).sum();
        assert!(again > RUNS, "{again} bytes were sent once more");
    }
}

#[test]
fn lost_window_ends_the_stream_only_where_the_sender_said_that_it_went_down() {
    for (landed, is_whole) in [(2, false), (5, true)] {
        let world = World::new(6, vec![Act::Up, Act::Send(5), Act::Land(landed)]);
        let mut receiver = world.receiver();
        let (mut kernel, mut window) = (Socket(Rc::clone(&world)), Window(Rc::clone(&world)));
        let mut out = [0; 8];
        let mut receive = || receiver.receive(&mut out, &mut kernel, &mut window);
        assert_eq!(receive(), Ok(Received::Bytes(landed.into())));
        world.act(Act::Scribble);
        assert_eq!(receive(), Ok(Received::Nothing));
        world.act(Act::Down);
        world.ends_anyway.set(true);
        let last = if is_whole { Ok(Received::End) } else { Err(Refused::Lost) };
        assert_eq!(receive(), last, "{landed} bytes had come");
    }
}
