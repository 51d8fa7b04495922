//! Bells: rung by other processes and users, by strangers, full, gone, and beside sleeps that are announced by stores.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use beeline_domain::{Bell, BellAddress, Purpose, Ringer, Rung, descriptors};
use beeline_mmio::{MemoryOptions, Region, SharedMemory, membarrier};
use rustix::event::epoll;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

fn is_readable(bell: &Bell) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&now)).unwrap() == 1
}

/// Waits until a bell is rung, for a minute.
fn wait(bell: &Bell) {
    let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&minute)), Ok(1), "never rung");
}

fn in_child(part: impl FnOnce() -> bool) -> Pid {
    match fork::fork().unwrap() {
        fork::Fork::Child => beeline_mmio::end_child(i32::from(!part())),
        fork::Fork::Parent(child) => Pid::from_raw(child).unwrap(),
    }
}

fn exit_of(child: Pid) -> Option<i32> {
    waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap().1.exit_status()
}

/// A page that children share.
fn memory() -> Region {
    SharedMemory::create("beeline-test-bell", 4096, MemoryOptions::default()).unwrap().map().unwrap()
}

/// The name and the token, by the words in which they go to peers.
fn parts(address: BellAddress) -> (SocketAddr, [u8; 16]) {
    let [name_low, name_high, token_low, token_high] = address.to_words();
    let bytes = |low: u64, high: u64| {
        let all: Vec<u8> = low.to_le_bytes().into_iter().chain(high.to_le_bytes()).collect();
        <[u8; 16]>::try_from(all).unwrap()
    };
    let name = format!("beeline-bell-{:032x}", u128::from_be_bytes(bytes(name_low, name_high)));
    (SocketAddr::from_abstract_name(name).unwrap(), bytes(token_low, token_high))
}

/// The kernel counts packets that are unread for who sent them: a socket that has rung so many bells is full, and theirs are empty.
#[test]
fn ringer_rings_more_bells_than_its_socket_has_room_for() {
    const BELLS: usize = 600;
    let bells: Vec<Bell> = (0..BELLS).map(|_| Bell::new().unwrap()).collect();
    let ringer = Ringer::new().unwrap();
    for bell in &bells {
        assert_eq!(ringer.ring(&bell.address()), Rung::Rung);
        assert!(is_readable(bell));
    }
    assert!(bells.iter().all(|bell| bell.clear() && !is_readable(bell)));
}

#[test]
fn bell_is_readable_from_a_ring_until_it_is_cleared() {
    let (bell, ringer) = (Bell::new().unwrap(), Ringer::new().unwrap());
    assert!(!is_readable(&bell));
    for rings in [1, 3, 100] {
        for _ in 0..rings {
            assert_eq!(ringer.ring(&bell.address()), Rung::Rung);
        }
        assert!(is_readable(&bell));
        assert!(bell.clear() && !is_readable(&bell));
    }
}

#[test]
fn ring_wakes_a_set_once_by_its_edge_and_again_when_it_was_cleared() {
    let (bell, ringer) = (Bell::new().unwrap(), Ringer::new().unwrap());
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&set, &bell, epoll::EventData::new_u64(7), flags).unwrap();
    let events = || {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut room = [epoll::Event { flags, data: epoll::EventData::new_u64(0) }; 4];
        epoll::wait(&set, &mut room[..], Some(&now)).unwrap()
    };
    assert_eq!(events(), 0);
    for _ in 0..3 {
        // Until it is full, when a packet that is not kept makes no edge.
        (0..50).for_each(|_| assert_eq!(ringer.ring(&bell.address()), Rung::Rung));
        assert_eq!((events(), events()), (1, 0));
        assert!(bell.clear());
    }
}

#[test]
fn stranger_who_knows_the_name_wakes_nobody_and_keeps_nobody_from_ringing() {
    let (bell, ringer) = (Bell::new().unwrap(), Ringer::new().unwrap());
    let (name, token) = parts(bell.address());
    let listed = std::fs::read_to_string("/proc/net/unix").unwrap();
    let shown = String::from_utf8(name.as_abstract_name().unwrap().to_vec()).unwrap();
    assert!(listed.contains(&shown), "its name is everybody's");
    let stranger = UnixDatagram::unbound().unwrap();
    stranger.set_nonblocking(true).unwrap();
    for at in 0..16 {
        let mut wrong = token;
        wrong[at] ^= 1;
        for _ in 0..20 {
            assert_eq!(stranger.send_to_addr(&wrong, &name).unwrap(), 16);
        }
    }
    for other in [&[][..], &token[..15], &[token.as_slice(), &[0]].concat()] {
        stranger.send_to_addr(other, &name).unwrap();
    }
    assert!(!is_readable(&bell));
    assert_eq!(ringer.ring(&bell.address()), Rung::Rung);
    assert!(is_readable(&bell));
    stranger.send_to_addr(&token, &name).unwrap();
    assert!(bell.clear() && !is_readable(&bell));
}

#[test]
fn bell_that_is_gone_or_never_was_is_nobodys() {
    let ringer = Ringer::new().unwrap();
    let bell = Bell::new().unwrap();
    let address = bell.address();
    let child = in_child(|| {
        let own = Bell::new().unwrap();
        ringer.ring(&own.address()) == Rung::Rung && is_readable(&own) && !bell.clear()
    });
    assert_eq!(exit_of(child), Some(0), "a child has its own, and leaves its parent's alone");
    drop(bell);
    // Children that other tests have forked have the socket, too, until they end.
    let started = Instant::now();
    while ringer.ring(&address) != Rung::Nobody {
        assert!(started.elapsed() < Duration::from_secs(60), "its owner has gone");
        std::thread::yield_now();
    }
    for words in [[0; 4], [u64::MAX; 4], [1, 2, 3, 4]] {
        assert_eq!(ringer.ring(&BellAddress::from_words(words)), Rung::Nobody);
    }
}

#[test]
fn who_rings_a_sleeper_that_is_stopped_waits_for_nothing() {
    let memory = memory();
    let word = |at: usize| memory.word(at * 8);
    let child = in_child(|| {
        let bell = Bell::new().unwrap();
        for (at, part) in bell.address().to_words().into_iter().enumerate() {
            word(at).store(part);
        }
        word(4).store_release(1);
        wait(&bell);
        bell.clear()
    });
    while word(4).load_acquire() == 0 {
        std::thread::yield_now();
    }
    kill_process(child, Signal::STOP).unwrap();
    let address = BellAddress::from_words(std::array::from_fn(|at| word(at).load()));
    let ringer = Ringer::new().unwrap();
    (0..1000).for_each(|_| assert_eq!(ringer.ring(&address), Rung::Rung));
    kill_process(child, Signal::CONT).unwrap();
    assert_eq!(exit_of(child), Some(0));
    assert_eq!(ringer.ring(&address), Rung::Nobody);
}

#[test]
fn another_user_rings() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let bell = Bell::new().unwrap();
    let child = in_child(|| {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_533)).unwrap();
        Ringer::new().unwrap().ring(&bell.address()) == Rung::Rung
    });
    assert_eq!(exit_of(child), Some(0));
    assert!(is_readable(&bell));
}

#[test]
fn file_that_took_the_number_of_a_bell_is_not_read() {
    // In a child, where no other thread opens anything.
    let child = in_child(|| {
        let bell = Bell::new().unwrap();
        let number = bell.as_fd().as_raw_fd();
        let is_listed = descriptors().contains(&(number, Purpose::Bell));
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        nix::unistd::close(number).unwrap();
        let taken = UnixDatagram::from(rustix::io::fcntl_dupfd_cloexec(&ours, number).unwrap());
        theirs.send(b"for the program").unwrap();
        let is_cleared = bell.clear();
        drop(bell);
        let mut found = [0; 20];
        is_listed && taken.as_raw_fd() == number && !is_cleared && taken.recv(&mut found).unwrap() == 15
    });
    assert_eq!(exit_of(child), Some(0));
}

/// One side of two that wake each other in turn: a store that nobody orders, and a ring where a word says that the other one sleeps.
fn take_turns(region: &Region, number: usize, rounds: u64) -> u64 {
    membarrier::register().unwrap();
    let (bell, ringer) = (Bell::new().unwrap(), Ringer::new().unwrap());
    let at = |side: usize, word: usize| region.word(1024 * (side + 1) + 8 * word);
    bell.address().to_words().into_iter().enumerate().for_each(|(word, part)| at(number, word).store(part));
    at(number, 4).store_release(1);
    while at(1 - number, 4).load_acquire() == 0 {
        std::thread::yield_now();
    }
    let other = BellAddress::from_words(std::array::from_fn(|word| at(1 - number, word).load()));
    let (turn, own_sleep, other_sleep) = (region.word(0), at(number, 64), at(1 - number, 64));
    let mut sleeps = 0;
    for round in 0..rounds {
        if round % 2 == number as u64 {
            turn.store_release(round + 1);
            if other_sleep.load() != 0 {
                assert_eq!(ringer.ring(&other), Rung::Rung);
            }
            continue;
        }
        while turn.load_acquire() <= round {
            own_sleep.store(1);
            membarrier::global_expedited().unwrap();
            if turn.load_acquire() <= round {
                sleeps += 1;
                wait(&bell);
            }
            own_sleep.store(0);
            assert!(bell.clear());
        }
    }
    sleeps
}

#[test]
fn no_wake_up_is_lost_between_a_store_and_a_sleep() {
    const ROUNDS: u64 = 40_000;
    let memory = memory();
    let child = in_child(|| take_turns(&memory, 1, ROUNDS) > 0);
    let sleeps = take_turns(&memory, 0, ROUNDS);
    assert_eq!(exit_of(child), Some(0));
    assert!(sleeps > 100, "{sleeps} sleeps");
}

#[test]
fn bell_of_another_network_namespace_is_rung_by_what_was_made_there() {
    // A thread of its own: it stays there.
    let made_there = std::thread::spawn(|| {
        if nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).is_err() {
            return None;
        }
        let here = Ringer::handed_out(Ringer::to_hand_out().unwrap()).unwrap();
        assert!(!here.is_of_another_namespace());
        Some((Bell::new().unwrap(), Ringer::to_hand_out().unwrap()))
    });
    let Some((bell, socket)) = made_there.join().unwrap() else {
        eprintln!("skipped: only root can make network namespaces");
        return;
    };
    assert_eq!(Ringer::new().unwrap().ring(&bell.address()), Rung::Nobody);
    let ringer = Ringer::handed_out(socket).unwrap();
    assert!(ringer.is_of_another_namespace());
    assert_eq!(ringer.ring(&bell.address()), Rung::Rung);
    assert!(is_readable(&bell));
    // Once the bell is full nobody can tell whether it is that or the socket, and it is said.
    let rings = std::iter::repeat_with(|| ringer.ring(&bell.address()));
    assert!(rings.take(10_000).any(|rung| matches!(rung, Rung::Failed(_))));
    assert!(bell.clear() && !is_readable(&bell));
    assert_eq!(ringer.ring(&bell.address()), Rung::Rung);
    drop(bell);
}

#[test]
fn what_is_no_socket_of_a_ringer_comes_back() {
    let others: [std::os::fd::OwnedFd; 3] = [
        std::fs::File::open("/dev/null").unwrap().into(),
        std::os::unix::net::UnixStream::pair().unwrap().0.into(),
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into(),
    ];
    for other in others {
        let number = other.as_raw_fd();
        assert_eq!(Ringer::handed_out(other).unwrap_err().as_raw_fd(), number);
    }
}
