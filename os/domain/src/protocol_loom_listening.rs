//! Listening under loom: who waits by descriptor, and who sleeps, on one word.
//!
//! The model's event is a bit under a lock, as an eventfd is, and its socket a queue of packets that a thread reads, as the
//! domain's thread does: after every packet that it has read it signals the event of a listener whose bit was taken, and a full
//! socket takes none.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::loom_models::{BOTH, Fences, ModelFutex, sleep_until};
use super::*;

/// A descriptor that is readable or not.
#[derive(Default)]
struct ModelEvent {
    is_readable: Mutex<bool>,
    signalled: Condvar,
}

impl ModelEvent {
    fn signal(&self) {
        *self.is_readable.lock().unwrap() = true;
        self.signalled.notify_one();
    }

    fn clear(&self) {
        *self.is_readable.lock().unwrap() = false;
    }

    /// Waits as poll does: it leaves the event as it is.
    fn poll(&self) {
        let mut is_readable = self.is_readable.lock().unwrap();
        while !*is_readable {
            is_readable = self.signalled.wait(is_readable).unwrap();
        }
    }
}

/// A connection with room for one packet that was not read yet.
#[derive(Default)]
struct ModelSocket {
    /// Unread packets, and whether the sender has ended.
    state: Mutex<(u32, bool)>,
    arrived: Condvar,
}

impl ModelSocket {
    /// A packet that finds no room is not sent: there is an unread one.
    fn send(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 = 1;
        self.arrived.notify_one();
    }

    fn end(&self) {
        self.state.lock().unwrap().1 = true;
        self.arrived.notify_one();
    }

    /// Takes a packet; `false` at the end.
    fn receive(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        while *state == (0, false) {
            state = self.arrived.wait(state).unwrap();
        }
        std::mem::take(&mut state.0) > 0
    }
}

#[derive(Default)]
struct Shared {
    flag: ModelFutex,
    is_armed: AtomicBool,
    word: AtomicU64,
    event: ModelEvent,
    socket: ModelSocket,
}

/// What a mutant of the protocol leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    None,
    /// The look between the announcement and the wait.
    NoLastLook,
    /// The descriptor is emptied after the last look instead of before it.
    ClearsLate,
    /// The thread signals before it reads, so that a packet that found no room is forgotten.
    SignalsEarly,
    /// The listener is armed once and for all.
    ArmsOnce,
}

fn listen_until(shared: &Shared, fences: Fences, mutant: Mutant, messages: u64) {
    loop {
        let seen = shared.word.load(Ordering::Relaxed);
        if seen == messages {
            return;
        }
        if mutant != Mutant::ClearsLate {
            shared.event.clear();
        }
        if mutant == Mutant::ArmsOnce && seen > 0 {
            shared.flag.set(LISTENING);
        } else {
            announce(&shared.flag, &shared.is_armed);
        }
        // As `listen_all` does.
        fences.heavy();
        if mutant != Mutant::NoLastLook && shared.word.load(Ordering::Relaxed) != seen {
            cancel(&shared.flag, LISTENING);
            shared.event.signal();
        } else {
            if mutant == Mutant::ClearsLate {
                shared.event.clear();
            }
            shared.event.poll();
        }
    }
}

fn send(shared: &Shared, fences: Fences, messages: u64) {
    for message in 1..=messages {
        shared.word.store(message, Ordering::Relaxed);
        wake_if_asleep(&shared.flag, &fences, || shared.socket.send());
    }
}

/// A sender, the domain's thread of the receiver, and a receiver that listens.
fn no_packet_is_lost(fences: Fences, mutant: Mutant, messages: u64) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let shared = Arc::new(Shared::default());
        let threads = [
            thread::spawn({
                let shared = Arc::clone(&shared);
                move || {
                    send(&shared, fences, messages);
                    shared.socket.end();
                }
            }),
            thread::spawn({
                let shared = Arc::clone(&shared);
                move || {
                    let look = || {
                        fence(Ordering::SeqCst);
                        if is_to_be_signalled(&shared.flag, &shared.is_armed) {
                            shared.event.signal();
                        }
                    };
                    if mutant == Mutant::SignalsEarly {
                        look();
                    }
                    while shared.socket.receive() {
                        if mutant != Mutant::SignalsEarly {
                            look();
                        }
                    }
                }
            }),
        ];
        listen_until(&shared, fences, mutant, messages);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A sender, a thread that listens and one that sleeps on the same word; the sender signals the event itself.
fn both_are_woken(fences: Fences, messages: u64) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let shared = Arc::new(Shared::default());
        let sender = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for message in 1..=messages {
                    shared.word.store(message, Ordering::Relaxed);
                    wake_if_asleep(&shared.flag, &fences, || shared.event.signal());
                }
            }
        });
        let sleeper = thread::spawn({
            let shared = Arc::clone(&shared);
            move || sleep_until(&shared.flag, &shared.word, fences, messages)
        });
        listen_until(&shared, fences, Mutant::None, messages);
        sender.join().unwrap();
        sleeper.join().unwrap();
    });
}

#[test]
fn one_message_wakes_the_listener() {
    no_packet_is_lost(BOTH, Mutant::None, 1);
}

#[test]
fn two_messages_wake_the_listener_through_a_socket_with_room_for_one() {
    no_packet_is_lost(BOTH, Mutant::None, 2);
}

#[test]
fn listener_and_sleeper_of_one_word_are_both_woken() {
    both_are_woken(BOTH, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_last_look_a_listener_is_not_woken() {
    no_packet_is_lost(BOTH, Mutant::NoLastLook, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_listeners_barrier_a_listener_is_not_woken() {
    no_packet_is_lost(Fences { heavy: false, ..BOTH }, Mutant::None, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_senders_barrier_a_listener_is_not_woken() {
    no_packet_is_lost(Fences { light: false, ..BOTH }, Mutant::None, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_descriptor_emptied_after_the_last_look_loses_a_signal() {
    no_packet_is_lost(BOTH, Mutant::ClearsLate, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_signal_before_the_packet_is_read_loses_the_next_one() {
    no_packet_is_lost(BOTH, Mutant::SignalsEarly, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn listener_that_is_not_armed_again_loses_the_next_signal() {
    no_packet_is_lost(BOTH, Mutant::ArmsOnce, 2);
}

/// The domain's thread declares a peer gone, and signals whoever listens.
#[test]
fn a_departure_is_signalled() {
    loom::model(|| {
        let shared = Arc::new((Presence::new(), ModelFutex::default(), ModelEvent::default()));
        let watcher = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.0.depart(Departure::Died);
                rouse(&shared.1);
                shared.2.signal();
            }
        });
        while shared.0.is_present() {
            shared.2.clear();
            prepare(&shared.1, LISTENING, &BOTH);
            if shared.0.is_present() {
                shared.2.poll();
            } else {
                cancel(&shared.1, LISTENING);
            }
        }
        watcher.join().unwrap();
    });
}
