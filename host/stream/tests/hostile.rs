//! A peer that writes anything anywhere: whatever it does, each call ends, and says bytes, nothing, or why the connection is to be reset.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::net::{TcpListener, TcpStream};

use beeline_ledger::Received;
use beeline_stream::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};
use support::*;

/// Connections that a hostile peer is tried on.
const RUNS: u64 = 300;
const STEPS: u32 = 400;

/// Stores something where a peer can: a word of either side's, of credits, or of a window.
fn scribble(memory: &Memory, random: &mut Xoshiro256PlusPlus) {
    let region = memory.region();
    let direction = random.random_range(0..2) * (region.bytes() / 2);
    let word = match random.random_range(0..6) {
        // Numbers that entries, counts and places are made of.
        0 => u64::from(random.random_range(0..64u32)),
        1 => u64::from(random.random_range(0..64u32)) << 2 | u64::from(random.random_range(0..4u32)),
        2 => 1 << 63 | u64::from(random.random_range(0..64u32)),
        3 => 3 << 62 | u64::from(random.random_range(0..8u32)),
        4 => u64::from(random.next_u32()),
        _ => random.next_u64(),
    };
    let at = match random.random_range(0..4) {
        0 => random.random_range(0..16) * 8,
        1 => 128 + random.random_range(0..16) * 8,
        2 => 384 + random.random_range(0..4) * 64,
        _ => (1 << 16) + random.random_range(0..2 * WINDOW_BYTES / 8) * 8,
    };
    region.word(direction + at).store(word);
}

/// What can be said of a call on a connection with such a peer.
fn goes_on<T>(outcome: Result<T, Failure<TcpError>>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(Failure::Reset(reset)) => {
            assert!(!reset.to_string().is_empty());
            false
        }
        Err(Failure::Socket(error)) => panic!("the socket is whole: {error}"),
    }
}

fn one_connection<W: Windows>(seed: u64) -> bool {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let memory = Memory::new();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut receiver = End::<W>::new(&memory, 1, listener.accept().unwrap().0, seed);
    let mut sender = End::<W>::new(&memory, 0, client, seed);
    let (mut out, mut sent) = (vec![0; 10_000], 0);
    for step in 0..STEPS {
        receiver.offer();
        sender.take_window();
        if random.random_range(0..4) == 0 {
            let _ = sender.outgoing.go_up(&mut sender.tcp);
        }
        if random.random_range(0..30) == 0 {
            sender.outgoing.go_down();
        }
        // Honest for a while, so that there is something to spoil.
        if step > 20 && random.random_range(0..3) == 0 {
            (0..random.random_range(1..4)).for_each(|_| scribble(&memory, &mut random));
            let _any = sender.outgoing.untaken_bytes();
        }
        let bytes = vec![step as u8; random.random_range(1..3000)];
        if !goes_on(sender.outgoing.send(&bytes, &mut sender.tcp)) {
            return true;
        }
        let room = random.random_range(1..out.len());
        let found = match random.random_range(0..4) {
            0 => receiver.incoming.peek(&mut out[..room], &mut receiver.tcp),
            1 => receiver.incoming.stop().map(|_| Received::Nothing),
            _ => receiver.incoming.receive(&mut out[..room], &mut receiver.tcp),
        };
        if let Ok(Received::Bytes(bytes)) = found {
            assert!((1..=room).contains(&bytes));
        }
        if !goes_on(found) {
            return true;
        }
        // What the program was told is on its way stays so: it is never asked for bytes again.
        assert!(sender.outgoing.sent_bytes() >= sent, "{sent} bytes were sent, and fewer are");
        sent = sender.outgoing.sent_bytes();
        assert!(
            sender.outgoing.kept_bytes() <= KEPT_BYTES && (W::KEEPS || sender.outgoing.kept_bytes() == 0)
        );
        if random.random_range(0..300) == 0 {
            let _left = goes_on(sender.outgoing.leave(&mut sender.tcp));
            return !goes_on(receiver.incoming.receive(&mut out, &mut receiver.tcp));
        }
    }
    false
}

#[test]
fn every_call_ends_whatever_the_peer_has_written() {
    let plain = (0..RUNS).filter(|seed| one_connection::<Plain>(*seed)).count();
    let checked = (0..RUNS).filter(|seed| one_connection::<Checked>(*seed)).count();
    assert!(plain > 100 && checked > 100, "{plain} and {checked} connections were found to be broken");
}

#[test]
fn message_of_any_length_without_its_checksum_loses_the_window_and_nothing_else() {
    for length in [0, 1, 7, 8, 9, 100, CHECKED_MESSAGE_BYTES + 8, CHECKED_MESSAGE_BYTES + 9, 8000] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let memory = Memory::new();
        let mut receiver = End::<Checked>::new(&memory, 1, listener.accept().unwrap().0, 1);
        let mut sender = End::<Checked>::new(&memory, 0, client, 1);
        receiver.offer();
        sender.take_window();
        assert!(sender.go_up());
        let (_, mut writer) = memory.direction(0).offered(0).unwrap();
        assert_eq!(writer.try_send(&vec![7; length]).unwrap(), beeline_window::Sent::Sent);
        let mut out = [0; 100];
        assert_eq!(receiver.incoming.receive(&mut out, &mut receiver.tcp).unwrap(), Received::Nothing);
        assert!(!receiver.incoming.has_window(), "{length} bytes");
        assert!(goes_on(sender.outgoing.send(&[1], &mut sender.tcp)));
        while receiver.incoming.receive(&mut out, &mut receiver.tcp).unwrap() != Received::Bytes(1) {}
    }
}
