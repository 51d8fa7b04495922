//! Bytes given to sockets of the kernel and taken from them are what the kernel counts, to the byte.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod connections;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use beeline_tcp::{CountError, Progress, State, given, progress, send, state, taken};
use connections::{End, FAMILIES, Family, pair, sleeps, to_itself, wait_until};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rustix::io::Errno;

const SEED: u64 = 71;

impl End {
    /// What it was given and what was taken from it, once its bytes are acknowledged.
    fn counts(&self) -> (u64, u64) {
        (settled(|| given(&self.stream, self.side)).unwrap(), taken(&self.stream).unwrap())
    }

    fn state(&self) -> State {
        state(&self.stream).unwrap()
    }

    /// Receives what has come, at most so many bytes.
    fn receive(&mut self, at_most: usize) -> u64 {
        self.stream.set_nonblocking(true).unwrap();
        let received = self.stream.read(&mut vec![0; at_most]);
        self.stream.set_nonblocking(false).unwrap();
        received.map_or(0, |bytes| bytes as u64)
    }

    fn receive_exactly(&mut self, bytes: u64) {
        self.stream.read_exact(&mut vec![0; usize::try_from(bytes).unwrap()]).unwrap();
    }
}

/// Asks again while acknowledgements are on their way.
fn settled(mut count: impl FnMut() -> Result<u64, CountError>) -> Result<u64, CountError> {
    loop {
        match count() {
            Err(CountError::Moving { .. }) => std::thread::yield_now(),
            result => return result,
        }
    }
}

/// Sends and receives at either end at random, and compares the counts behind each step.
fn random_steps(ends: &mut [End], random: &mut SmallRng, steps: usize) -> Vec<(u64, u64)> {
    let bytes = vec![7; 300_000];
    let mut expected = vec![(0, 0); ends.len()];
    for step in 0..steps {
        let at = random.random_range(0..ends.len());
        let most = if random.random_bool(0.2) { bytes.len() } else { 5_000 };
        let size = random.random_range(1..most);
        if random.random_bool(0.5) {
            expected[at].0 += send(&ends[at].stream, &bytes[..size]).unwrap() as u64;
        } else {
            expected[at].1 += ends[at].receive(size);
        }
        for (end, expected) in ends.iter().zip(&expected) {
            assert_eq!(end.counts(), *expected, "{:?} in step {step} of seed {SEED}", end.side);
        }
    }
    expected
}

#[test]
fn counts_are_exact_at_both_ends_after_each_random_step() {
    let mut random = SmallRng::seed_from_u64(SEED);
    for family in FAMILIES {
        let mut ends = pair(family);
        let counts = random_steps(&mut ends, &mut random, 400);
        assert!(counts.iter().all(|(given, taken)| *given > 100_000 && *taken > 100_000), "{counts:?}");
    }
}

#[test]
fn socket_that_is_connected_to_itself_is_counted() {
    let mut ends = [to_itself()];
    let counts = random_steps(&mut ends, &mut SmallRng::seed_from_u64(SEED), 400);
    assert!(counts[0].1 > 100_000, "{counts:?}");
}

#[test]
fn fin_is_no_byte_at_the_end_that_sends_it_and_at_the_end_that_gets_it() {
    for family in FAMILIES {
        for first in [0, 1] {
            let mut ends = pair(family);
            ends.rotate_left(first);
            let [closing, other] = &mut ends;
            assert_eq!(send(&closing.stream, &[1; 1000]), Ok(1000));
            closing.stream.shutdown(Shutdown::Write).unwrap();
            wait_until(|| closing.state() == State::FinWait2 && other.state() == State::CloseWait);
            assert_eq!((closing.counts(), other.counts()), ((1000, 0), (0, 0)), "{family:?}");
            other.receive_exactly(999);
            assert_eq!(other.counts(), (0, 999), "FIN behind one unread byte");
            other.receive_exactly(1);
            assert_eq!(other.counts(), (0, 1000), "FIN unread");
            assert_eq!(other.receive(1), 0);
            assert_eq!(other.counts(), (0, 1000), "FIN read");
            // The other direction goes on.
            assert_eq!(send(&other.stream, &[2; 500]), Ok(500));
            closing.receive_exactly(200);
            assert_eq!((closing.counts(), other.counts()), ((1000, 200), (500, 1000)), "{family:?}");
        }
    }
}

#[test]
fn fin_behind_bytes_that_the_other_side_has_no_room_for_is_no_byte() {
    for family in FAMILIES {
        let [mut closing, mut other] = pair(family);
        let mut expected = 0;
        loop {
            match send(&closing.stream, &[3; 65_536]).unwrap() {
                0 => break,
                bytes => expected += bytes as u64,
            }
        }
        assert_eq!(closing.counts(), (expected, 0), "{family:?}");
        closing.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!((closing.state(), closing.counts()), (State::FinWait1, (expected, 0)), "{family:?}");
        // Both FINs are on their way, and both are behind bytes.
        assert_eq!(send(&other.stream, &[4; 10]), Ok(10));
        other.stream.shutdown(Shutdown::Write).unwrap();
        wait_until(|| closing.state() == State::Closing);
        wait_until(|| other.state() == State::FinWait2);
        // Too few to make room for all that is on its way.
        other.receive_exactly(1000);
        assert_eq!(other.counts(), (10, 1000), "{family:?}");
        closing.receive_exactly(10);
        assert_eq!(closing.counts(), (expected, 10), "{family:?}");
    }
}

#[test]
fn last_ack_counts_neither_fin() {
    for family in FAMILIES {
        let [mut first, last] = pair(family);
        first.stream.shutdown(Shutdown::Write).unwrap();
        wait_until(|| last.state() == State::CloseWait);
        let mut expected = 0;
        loop {
            match send(&last.stream, &[5; 65_536]).unwrap() {
                0 => break,
                bytes => expected += bytes as u64,
            }
        }
        last.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!((last.state(), last.counts()), (State::LastAck, (expected, 0)), "{family:?}");
        first.receive_exactly(expected - 1);
        let at_the_end = || [state(&first.stream), state(&last.stream)];
        wait_until(|| at_the_end() == [Ok(State::Closed); 2]);
        // Either side is at its end, and whether its bytes were ended by a FIN or a RST is not told.
        for end in [&first, &last] {
            assert_eq!(given(&end.stream, end.side), Err(CountError::NotOpen(State::Closed)), "{family:?}");
            assert_eq!(taken(&end.stream), Err(CountError::NotOpen(State::Closed)), "{family:?}");
        }
        first.receive_exactly(1);
    }
}

#[test]
fn send_that_has_not_returned_is_counted_as_far_as_the_kernel_has_it() {
    for family in FAMILIES {
        for at in [0, 1] {
            let mut ends = pair(family);
            ends.rotate_left(at);
            let [sender, mut receiver] = ends;
            let (stream, (ids, id)) = (sender.stream.try_clone().unwrap(), channel());
            let sending = std::thread::spawn(move || {
                ids.send(rustix::thread::gettid()).unwrap();
                rustix::net::send(&stream, &vec![6; 20 << 20], rustix::net::SendFlags::NOSIGNAL)
            });
            let id = id.recv().unwrap();
            let mut in_flight = 0;
            wait_until(|| {
                let before = settled(|| given(&sender.stream, sender.side)).unwrap();
                let is_asleep = sleeps(id);
                in_flight = settled(|| given(&sender.stream, sender.side)).unwrap();
                is_asleep && before == in_flight && in_flight > 100_000
            });
            assert!(!sending.is_finished());
            // The sender is woken and told how many bytes it gave.
            sender.stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(sending.join().unwrap(), Ok(usize::try_from(in_flight).unwrap()), "{family:?}");
            assert_eq!(sender.counts(), (in_flight, 0), "{family:?}");
            assert_eq!(receiver.stream.read_to_end(&mut Vec::new()).unwrap() as u64, in_flight);
        }
    }
}

#[test]
fn counts_never_go_back_while_other_threads_send_and_receive() {
    const BYTES: usize = 30 << 20;
    let [sender, receiver] = pair(Family::Ipv4);
    let (mut sending, mut receiving) =
        (sender.stream.try_clone().unwrap(), receiver.stream.try_clone().unwrap());
    let is_over = AtomicBool::new(false);
    let mut last = (0, 0);
    let mut look = || {
        let taken = settled(|| taken(&receiver.stream)).unwrap();
        let given = settled(|| given(&sender.stream, sender.side)).unwrap();
        assert!(taken >= last.1 && given >= last.0 && given >= taken, "{last:?}, then {:?}", (given, taken));
        last = (given, taken);
    };
    std::thread::scope(|threads| {
        threads.spawn(|| {
            (0..BYTES / 1000).for_each(|_| sending.write_all(&[8; 1000]).unwrap());
        });
        threads.spawn(|| {
            (0..BYTES / 1000).for_each(|_| receiving.read_exact(&mut [0; 1000]).unwrap());
            is_over.store(true, Ordering::Release);
        });
        while !is_over.load(Ordering::Acquire) {
            look();
        }
    });
    look();
    assert_eq!(last, ((BYTES / 1000 * 1000) as u64, (BYTES / 1000 * 1000) as u64));
}

#[test]
fn what_either_end_tells_fits_to_the_other_one_while_bytes_move_and_to_no_other_connection() {
    let [a, b] = pair(Family::Ipv4);
    let told = |end: &End| progress(&end.stream, end.side);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for end in [&a, &b] {
            let is_over = &is_over;
            let (mut from, mut to) = (&end.stream, &end.stream);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    from.write_all(&[7; 3000]).unwrap();
                }
                end.stream.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || while to.read(&mut [0; 5000]).unwrap() > 0 {});
        }
        let mut compared = 0;
        while compared < 2000 {
            for (one, other) in [(&a, &b), (&b, &a)] {
                let (first, second) = (told(one).unwrap(), told(other).unwrap());
                assert!(second.may_be_the_other_end_of(&first), "{first:?} {second:?}");
                compared += 1;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Equal at rest, so that one byte more or less is found at either end.
    let [c, d] = pair(Family::Ipv4);
    (&c.stream).write_all(&[1; 10]).unwrap();
    (&d.stream).read_exact(&mut [0; 4]).unwrap();
    wait_until(|| told(&c).unwrap().acknowledged == 10);
    let (at_c, at_d) = (told(&c).unwrap(), told(&d).unwrap());
    assert_eq!(at_c, Progress { given: 10, acknowledged: 10, received: 0, taken: 0 });
    assert_eq!(at_d, Progress { given: 0, acknowledged: 0, received: 10, taken: 4 });
    let less = Progress { received: 9, ..at_d };
    assert!(at_d.may_be_the_other_end_of(&at_c) && !less.may_be_the_other_end_of(&at_c));
    let more = Progress { taken: 11, ..at_d };
    assert!(at_c.may_be_the_other_end_of(&at_d) && !at_c.may_be_the_other_end_of(&more));
    c.stream.shutdown(Shutdown::Write).unwrap();
    wait_until(|| matches!(told(&d), Err(CountError::NotOpen(State::CloseWait))));
}

#[test]
fn bytes_of_another_descriptor_of_the_socket_count() {
    for family in FAMILIES {
        let ends = pair(family);
        for end in &ends {
            let mut other = end.stream.try_clone().unwrap();
            other.write_all(&[9; 77]).unwrap();
            assert_eq!(end.counts(), (77, 0), "{family:?}");
        }
    }
}

#[test]
fn socket_without_a_connection_has_no_counts() {
    for family in FAMILIES {
        let listener = family.listener();
        assert_eq!(taken(&listener), Err(CountError::NotOpen(State::Listening)));
        let [end, other] = pair(family);
        beeline_tcp::reset(&end.stream).unwrap();
        wait_until(|| other.state() == State::Closed);
        for end in [end, other] {
            assert_eq!(given(&end.stream, end.side), Err(CountError::NotOpen(State::Closed)));
            assert_eq!(taken(&end.stream), Err(CountError::NotOpen(State::Closed)));
        }
    }
}

#[test]
fn end_that_did_not_connect_is_not_taken_for_one_that_did() {
    let [connected, accepted] = pair(Family::Ipv4);
    let said = given(&accepted.stream, connected.side);
    assert_eq!(said, Err(CountError::Contradiction { whole: 0, part: 1 }));
}

#[test]
fn what_is_no_socket_of_tcp_has_no_counts() {
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (unix, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    let error = taken(&udp).unwrap_err();
    assert!(matches!(error, CountError::System(Errno::NOPROTOOPT | Errno::OPNOTSUPP)), "{error}");
    assert_eq!(taken(&unix), Err(CountError::System(Errno::OPNOTSUPP)));
    assert_eq!(taken(&file), Err(CountError::System(Errno::NOTSOCK)));
}
