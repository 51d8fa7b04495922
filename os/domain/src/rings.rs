//! Sleeping until a peer rings or goes, on a word of this process.

use beeline_mmio::Flag;

use crate::peer::Peer;

/// Has the domain's thread wake who sleeps on a flag, until this is dropped ([`Peer::watch_rings`]).
#[derive(Debug)]
#[must_use = "nobody is woken once it is dropped"]
pub struct RingWatch {
    peer: Peer,
    number: u64,
}

impl Peer {
    /// Has the domain's thread take all bits of `flag` and wake who sleeps on it whenever the peer rings ([`Peer::ring`]), and when it
    /// goes; at once if it has gone. Several peers may have the same flag, which nobody but this process should be able to write.
    ///
    /// Who sleeps sets a bit, passes a full fence (`fence(SeqCst)`), looks at everything that a peer may have changed before it rang, and
    /// sleeps while the flag is as it was set ([`Flag::wait`]). So no ring is missed: one that came before the bit was set has its
    /// changes seen, and a later one takes the bit. Rings that nobody waits for are one.
    ///
    /// In a forked child nobody is woken for its parent's peer.
    pub fn watch_rings(&self, flag: &Flag) -> RingWatch {
        RingWatch { peer: self.clone(), number: self.watch_rung(flag) }
    }
}

impl Drop for RingWatch {
    fn drop(&mut self) {
        self.peer.unwatch(self.number);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::OwnedFd;
    use std::sync::atomic::{AtomicU32, Ordering, fence};
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use beeline_mmio::Region;

    use super::*;
    use crate::peer::tests::peer_with_socket;
    use crate::{Answer, Connection, Departure, Domain, DomainConfig, Offer, Refusal, Reply, Service};

    /// A bit that says that somebody sleeps; any will do.
    const ASLEEP: u32 = 4;
    /// More than any test takes; a sleep that is not woken fails by it.
    const LONG: Duration = Duration::from_secs(100);

    struct Ringing(Sender<Peer>);

    impl Service for Ringing {
        fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            let _ = self.0.send(peer.clone());
            Ok(Reply::default().into())
        }

        fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            Ok(Reply::default().into())
        }

        fn departed(&mut self, _: &Peer) {}
    }

    /// Both ends of a connection between two domains, each with a thread of its own.
    fn pair() -> (tempfile::TempDir, Connection, Peer, Offer) {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let root = Some(dir.path().to_owned());
            Domain::open(&DomainConfig { root, name: "d".to_owned() }).unwrap()
        };
        let (sender, peers) = channel();
        let offer = open().offer("name", Box::new(Ringing(sender))).unwrap();
        let (connection, _) = open().connect("name", b"", &[]).unwrap();
        (dir, connection, peers.recv().unwrap(), offer)
    }

    /// Whether a sleep ends because somebody took the bit.
    fn is_woken(flag: &Flag) -> bool {
        flag.wait(ASLEEP, LONG);
        flag.load() == 0
    }

    #[test]
    fn ring_of_either_side_and_its_end_wake_who_sleeps_on_the_flag() {
        let (_dir, connection, client, offer) = pair();
        let region = Region::private(128);
        let flags = [region.flag(0), region.flag(64)];
        let _watches = [connection.peer().watch_rings(&flags[0]), client.watch_rings(&flags[1])];
        for _ in 0..100 {
            flags.iter().for_each(|flag| flag.set(ASLEEP));
            client.ring();
            assert!(is_woken(&flags[0]));
            assert_eq!(flags[1].load(), ASLEEP, "it was not rung for");
            connection.peer().ring();
            assert!(is_woken(&flags[1]));
        }
        flags[0].set(ASLEEP);
        drop(offer);
        assert!(is_woken(&flags[0]));
        assert_eq!(connection.peer().departure(), Some(Departure::Closed));
        flags[0].set(ASLEEP);
        let _late = connection.peer().watch_rings(&flags[0]);
        assert!(is_woken(&flags[0]), "it has gone");
    }

    #[test]
    fn who_sleeps_as_told_misses_no_ring() {
        let (_dir, connection, client, _offer) = pair();
        let flag = Region::private(64).flag(0);
        let _watch = connection.peer().watch_rings(&flag);
        let (rung, seen) = (AtomicU32::new(0), AtomicU32::new(0));
        const RINGS: u32 = 2000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=RINGS {
                    rung.store(round, Ordering::Relaxed);
                    client.ring();
                    while seen.load(Ordering::Acquire) != round {
                        std::hint::spin_loop();
                    }
                }
            });
            let mut last = 0;
            while last != RINGS {
                flag.set(ASLEEP);
                fence(Ordering::SeqCst);
                if rung.load(Ordering::Relaxed) == last {
                    assert!(is_woken(&flag), "ring {last} was missed");
                }
                last = rung.load(Ordering::Relaxed);
                seen.store(last, Ordering::Release);
            }
        });
    }

    #[test]
    fn flag_is_left_alone_once_its_watch_is_dropped() {
        let (peer, _socket) = peer_with_socket();
        let region = Region::private(128);
        let (flag, other) = (region.flag(0), region.flag(64));
        let (watch, _kept) = (peer.watch_rings(&flag), peer.watch_rings(&other));
        [&flag, &other].into_iter().for_each(|flag| flag.set(ASLEEP));
        drop(watch);
        peer.signal_listeners(crate::peer::Signalled::Taken);
        assert_eq!((flag.load(), other.load()), (ASLEEP, ASLEEP), "nobody rang");
        peer.signal_listeners(crate::peer::Signalled::All);
        assert_eq!((flag.load(), other.load()), (ASLEEP, 0));
        peer.depart(Departure::Died);
        assert_eq!(flag.load(), ASLEEP);
    }
}
