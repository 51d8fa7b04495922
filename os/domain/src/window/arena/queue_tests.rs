//! What is held while clients are told to send packets, and for whom.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{OnceLock, Weak};

use super::*;
use crate::event::tests::is_readable;
use crate::peer::tests::peer_with_socket;

/// More than any of this takes.
const LONG: Duration = Duration::from_secs(20);
/// Less than another thread is kept from going on.
const SHORT: Duration = Duration::from_millis(100);

type Opened = u32;

/// A client whose flag is looked at by whoever is about to have it send packets.
struct Fake {
    sleeper: MemorySleeper,
    told: AtomicU32,
    queue: OnceLock<Weak<Queue<Opened, Fake>>>,
    /// Looks at the flag while the queue could not be locked.
    looks_with_lock: AtomicU32,
    /// The next who looks says so, and goes on when it may.
    next_look: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Client for Fake {
    fn has_told(&self) -> bool {
        self.told.load(Ordering::Relaxed) != 0
    }

    fn hear_some(this: &Arc<Self>) -> bool {
        if this.told.swap(0, Ordering::Relaxed) != 0 {
            let _ = this.queue().push(7);
        }
        false
    }

    fn hear_all(this: &Arc<Self>) {
        Self::hear_some(this);
    }

    fn sleeper(&self) -> &MemorySleeper {
        let is_locked = self.queue().state.try_lock().is_err();
        self.looks_with_lock.fetch_add(is_locked.into(), Ordering::Relaxed);
        let next = self.next_look.lock().unwrap().take();
        if let Some((looks, may_go_on)) = next {
            looks.send(()).unwrap();
            let _ = may_go_on.recv_timeout(LONG);
        }
        &self.sleeper
    }
}

impl Fake {
    fn queue(&self) -> Arc<Queue<Opened, Fake>> {
        self.queue.get().and_then(Weak::upgrade).unwrap()
    }

    fn is_listened_to(&self) -> bool {
        Futex::load(self.sleeper.flag()) & LISTENING != 0
    }
}

/// A queue with one client.
fn queue() -> (Arc<Queue<Opened, Fake>>, Arc<Fake>) {
    let (peer, _socket) = peer_with_socket();
    let client = Arc::new(Fake {
        sleeper: MemorySleeper::new(Region::private(64).flag(0), &peer),
        told: AtomicU32::new(0),
        queue: OnceLock::new(),
        looks_with_lock: AtomicU32::new(0),
        next_look: Mutex::new(None),
    });
    let queue = Arc::new(Queue::new());
    client.queue.set(Arc::downgrade(&queue)).unwrap();
    queue.join(&client);
    (queue, client)
}

#[test]
fn queue_is_open_for_the_thread_of_the_domain_while_clients_are_told_to_send_packets() {
    let (queue, client) = queue();
    let event = Event::new().unwrap();
    queue.signal(Some(&event));
    assert!(client.is_listened_to());
    client.sleeper.flag().swap(crate::protocol::AWAKE);
    queue.close();
    assert!(client.is_listened_to());
    assert_eq!(client.looks_with_lock.load(Ordering::Relaxed), 0);
}

#[test]
fn second_thread_that_listens_waits_until_the_bits_that_the_first_one_sets_are_ordered() {
    let (queue, client) = queue();
    let events = [(); 2].map(|()| Event::new().unwrap());
    let ((looks, is_looking), (go_on, may_go_on)) = (channel(), channel());
    *client.next_look.lock().unwrap() = Some((looks, may_go_on));
    std::thread::scope(|scope| {
        scope.spawn(|| queue.signal(Some(&events[0])));
        is_looking.recv_timeout(LONG).unwrap();
        let (done, is_done) = channel();
        let (queue, event) = (&queue, &events[1]);
        scope.spawn(move || {
            queue.signal(Some(event));
            done.send(()).unwrap();
        });
        let is_early = is_done.recv_timeout(SHORT).is_ok();
        // Neither of them keeps the domain's thread from putting a window in.
        assert_eq!(queue.push(1), Ok(()));
        go_on.send(()).unwrap();
        assert!(!is_early, "it would look before the client is bound to send packets");
        is_done.recv_timeout(LONG).unwrap();
    });
    assert!(client.is_listened_to());
    events.iter().for_each(Event::clear);
    queue.push(2).unwrap();
    assert_eq!(events.each_ref().map(is_readable), [false, true]);
}

/// A wake-up that is lost is found a [`MAX_SLEEP`] later: once could be the machine, each time is not.
#[test]
fn window_that_is_put_in_wakes_who_sleeps_and_the_next_one_who_waits_beside() {
    const ROUNDS: u32 = 20;
    let (queue, _client) = queue();
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        std::thread::scope(|scope| {
            let take = || queue.take(Some(Instant::now() + LONG));
            let waiting: Vec<_> = (0..3).map(|_| scope.spawn(take)).collect();
            while {
                let state = queue.lock();
                !state.has_sleeper || state.beside < 2
            } {
                std::thread::yield_now();
            }
            // One at a time, so that each has to wake somebody.
            for window in 0..3 {
                queue.push(window).unwrap();
                while !queue.lock().waiting.is_empty() {
                    std::thread::yield_now();
                }
            }
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap().is_some()));
        });
    }
    assert!(begun.elapsed() < MAX_SLEEP * ROUNDS / 2, "{:?}", begun.elapsed());
}

#[test]
fn nothing_is_put_in_after_the_end_and_what_waited_comes_up() {
    let (queue, client) = queue();
    queue.push(1).unwrap();
    client.told.store(1, Ordering::Relaxed);
    queue.close();
    assert_eq!((queue.push(2), queue.try_take()), (Err(2), None));
    assert!(!client.has_told(), "it was heard");
    let late = Arc::new(Fake {
        sleeper: MemorySleeper::new(Region::private(64).flag(0), client.sleeper.peer()),
        told: AtomicU32::new(0),
        queue: client.queue.clone(),
        looks_with_lock: AtomicU32::new(0),
        next_look: Mutex::new(None),
    });
    queue.join(&late);
    queue.listen_again(&late);
    assert!(late.is_listened_to(), "whoever joins at the end sends packets, too");
}
