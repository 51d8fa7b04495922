//! Data interrupts between hosts: messages that cross by stores, and are taken whole.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use beeline_fabric::{InterruptNumber, MAX_MESSAGE_BYTES, Refusal};
use beeline_hosts::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts};
use support::*;

const NUMBER: InterruptNumber = InterruptNumber(9);
const END: Picoseconds = Picoseconds::from_ns(2_000_000_000);

fn us(at: u64) -> Picoseconds {
    Picoseconds::from_ns(at * 1_000)
}

/// A message that says which one it is.
fn message(nth: u64) -> Vec<u8> {
    let mut bytes = pattern((8 + nth * 131 % (MAX_MESSAGE_BYTES as u64 - 7)) as usize, nth);
    bytes[..8].copy_from_slice(&nth.to_le_bytes());
    bytes
}

fn number_of(bytes: &[u8]) -> u64 {
    let nth = u64::from_le_bytes(*bytes.first_chunk().unwrap());
    assert!(bytes == message(nth), "message {nth} is not what was sent");
    nth
}

/// Sends as soon as there is room.
fn send(member: &mut HostMember, connected: &mut DataConnected, message: &[u8]) {
    loop {
        match member.trigger_with(connected, message) {
            Ok(()) => return,
            Err(refusal) => assert_eq!(refusal, Refusal::Nospc),
        }
        rest(member, 2_000);
    }
}

/// Stores leave in any order and in pieces, nothing is fenced, and the window is gone through many times.
#[test]
fn messages_are_whole_and_in_their_order_although_their_stores_are_not() {
    const MESSAGES: u64 = 200;
    two_of(
        disordered(),
        |_| {},
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut interrupt = member.create_data_interrupt(Some(NUMBER)).unwrap();
            for nth in 0..MESSAGES {
                let message = member.wait_for_message(&mut interrupt, END).unwrap();
                assert_eq!(number_of(&message), nth);
            }
            assert_eq!(member.wait_for_message(&mut interrupt, END), Ok(Vec::new()), "one without a byte");
            rest(&mut member, 50_000);
            let now = member.now();
            assert_eq!(member.wait_for_message(&mut interrupt, now), Err(Refusal::Timeout));
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut connected = member.connect_data_interrupt(NODE_0, NUMBER, None).unwrap();
            (0..MESSAGES).for_each(|nth| send(&mut member, &mut connected, &message(nth)));
            let too_long = vec![0; MAX_MESSAGE_BYTES + 1];
            assert_eq!(member.trigger_with(&mut connected, &too_long), Err(Refusal::IllegalParameter));
            send(&mut member, &mut connected, &[]);
            rest(&mut member, 100_000);
        },
    );
}

#[test]
fn messages_that_are_not_taken_fill_the_window_and_outlast_the_connection() {
    let sent = AtomicU32::new(0);
    two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut interrupt = member.create_data_interrupt(Some(NUMBER)).unwrap();
            until(&mut member, |_| sent.load(Relaxed) != 0);
            rest(&mut member, 100_000);
            for nth in 0..sent.load(Relaxed) {
                let message = member.wait_for_message(&mut interrupt, END).unwrap();
                assert_eq!(number_of(&message), u64::from(nth));
            }
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut connected = member.connect_data_interrupt(NODE_0, NUMBER, None).unwrap();
            let full = (0..).find(|nth| member.trigger_with(&mut connected, &message(*nth)).is_err());
            let full = full.unwrap();
            let refused = member.trigger_with(&mut connected, &message(full));
            assert_eq!(refused, Err(Refusal::Nospc));
            assert!(full >= 4, "{full}");
            member.disconnect_data_interrupt(connected).unwrap();
            sent.store(full as u32, Relaxed);
            rest(&mut member, 500_000);
        },
    );
}

/// There are fewer windows than interrupts: one is given anew when its connections are over, what was in it was taken, and the other side has left it.
#[test]
fn windows_are_given_to_one_interrupt_after_the_other() {
    const INTERRUPTS: u32 = 12;
    let is_done = AtomicBool::new(false);
    two_of(
        disordered(),
        |_| {},
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let number = |nth| Some(InterruptNumber(100 + nth));
            let mut interrupts: Vec<_> =
                (0..INTERRUPTS).map(|nth| member.create_data_interrupt(number(nth)).unwrap()).collect();
            for nth in 0..u64::from(INTERRUPTS) {
                let interrupt = &mut interrupts[nth as usize];
                for again in 0..9 {
                    let message = member.wait_for_message(interrupt, END).unwrap();
                    assert_eq!(number_of(&message), nth * 10 + again);
                }
            }
            until(&mut member, |_| is_done.load(Relaxed));
            for interrupt in &mut interrupts {
                let now = member.now();
                assert_eq!(member.wait_for_message(interrupt, now), Err(Refusal::Timeout));
            }
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let connect = |nth: u32, member: &mut HostMember| {
                member.connect_data_interrupt(NODE_0, InterruptNumber(100 + nth), None)
            };
            let held: Vec<_> = (0..4).map(|nth| connect(nth, &mut member).unwrap()).collect();
            assert_eq!(connect(4, &mut member).err(), Some(Refusal::Nospc));
            held.into_iter().for_each(|it| member.disconnect_data_interrupt(it).unwrap());
            for nth in 0..INTERRUPTS {
                let mut found = None;
                until(&mut member, |member| {
                    found = connect(nth, member).ok();
                    found.is_some()
                });
                let mut connected = found.unwrap();
                for again in 0..9 {
                    send(&mut member, &mut connected, &message(u64::from(nth) * 10 + again));
                }
                member.disconnect_data_interrupt(connected).unwrap();
            }
            rest(&mut member, 300_000);
            is_done.store(true, Relaxed);
            rest(&mut member, 100_000);
        },
    );
}

/// No message comes twice or in pieces, and whoever sends is told if some may be lost: those behind the last time that it was told all come.
#[test]
fn sender_is_told_when_links_that_go_down_may_have_lost_messages() {
    const MESSAGES: u64 = 300;
    let (last_told, is_done) = (AtomicU32::new(0), AtomicBool::new(false));
    let happens = |hosts: &mut Hosts| {
        for flap in 0..12 {
            let at = 6_000_000 + u64::from(flap) * 101_003;
            hosts.link_will_change(HostId(flap % 2), Picoseconds::from_ns(at), false);
            let up = Picoseconds::from_ns(at + 2_000 + u64::from(flap) * 700);
            hosts.link_will_change(HostId(flap % 2), up, true);
        }
    };
    let (results, _) = two_of(
        disordered(),
        happens,
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut interrupt = member.create_data_interrupt(Some(NUMBER)).unwrap();
            let mut came = Vec::new();
            while !is_done.load(Relaxed) {
                let until = member.now() + us(20);
                let message = member.wait_for_message(&mut interrupt, until);
                came.extend(message.ok().map(|message| number_of(&message)));
            }
            assert!(came.is_sorted_by(|one, next| one < next), "{came:?}");
            let since = u64::from(last_told.load(Relaxed));
            let of_last: Vec<_> = came.iter().copied().filter(|nth| *nth >= since).collect();
            assert_eq!(of_last, (since..MESSAGES).collect::<Vec<_>>());
            MESSAGES - came.len() as u64
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut connected = member.connect_data_interrupt(NODE_0, NUMBER, None).unwrap();
            member.serve(us(5_950), |_| false);
            let mut told = 0;
            for nth in 0..MESSAGES {
                while let Err(refusal) = member.trigger_with(&mut connected, &message(nth)) {
                    if refusal == Refusal::TransferFailed {
                        told += 1;
                        last_told.store(nth as u32, Relaxed);
                    }
                    rest(&mut member, 3_000);
                }
                rest(&mut member, 3_000);
            }
            rest(&mut member, 300_000);
            is_done.store(true, Relaxed);
            rest(&mut member, 100_000);
            told
        },
    );
    assert!(results[0] > 0 && results[1] > 1, "{results:?} lost and told");
}

#[test]
fn message_to_an_interrupt_that_is_removed_is_refused_and_comes_to_no_other() {
    let step = AtomicU32::new(0);
    two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let interrupt = member.create_data_interrupt(Some(NUMBER)).unwrap();
            until(&mut member, |_| step.load(Relaxed) == 1);
            rest(&mut member, 50_000);
            member.remove_data_interrupt(interrupt).unwrap();
            let mut next = member.create_data_interrupt(Some(NUMBER)).unwrap();
            rest(&mut member, 50_000);
            step.store(2, Relaxed);
            let message = member.wait_for_message(&mut next, END).unwrap();
            assert_eq!(number_of(&message), 2);
            rest(&mut member, 100_000);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut first = member.connect_data_interrupt(NODE_0, NUMBER, None).unwrap();
            send(&mut member, &mut first, &message(1));
            step.store(1, Relaxed);
            until(&mut member, |_| step.load(Relaxed) == 2);
            assert_eq!(member.trigger_with(&mut first, &message(1)), Err(Refusal::NotConnected));
            let mut next = member.connect_data_interrupt(NODE_0, NUMBER, None).unwrap();
            send(&mut member, &mut next, &message(2));
            rest(&mut member, 200_000);
        },
    );
}

/// Nothing is lost by a link, but the other side has begun anew.
#[test]
fn connection_of_a_session_that_is_over_sends_nothing() {
    two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut interrupt = member.create_data_interrupt(Some(NUMBER)).unwrap();
            rest(&mut member, 1_000_000);
            core.sleep_until(member.now() + us(10_000));
            let came = [(); 2].map(|()| member.wait_for_message(&mut interrupt, us(60_000)));
            assert_eq!(came.map(|message| message.map(|it| number_of(&it))), [Ok(2), Err(Refusal::Timeout)]);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut first = member.connect_data_interrupt(NODE_0, NUMBER, None).unwrap();
            until(&mut member, |member| !member.is_joined(NODE_0));
            until(&mut member, |member| member.is_joined(NODE_0));
            assert_eq!(member.trigger_with(&mut first, &message(1)), Err(Refusal::NotConnected));
            let mut next = member.connect_data_interrupt(NODE_0, NUMBER, None).unwrap();
            send(&mut member, &mut next, &message(2));
            member.serve(us(60_000), |_| false);
        },
    );
}
