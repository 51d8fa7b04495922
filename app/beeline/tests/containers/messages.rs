//! Windows and calls between containers, and the death of a process in one seen in the other.

use std::time::Instant;

use crate::host::{HERE, Host, Process, THERE};
use crate::roles::WATCHDOG;

/// Messages for which a receiver sleeps, each way of sleeping. A futex's sleeper looks by itself once a second, so lost
/// wake-ups would take more time together than [`WATCHDOG`] allows.
const WAKE_UPS: u64 = 50;

pub fn windows_carry_every_byte_both_ways(host: &Host) {
    let mut here = host.container(HERE, &["talks", "to-here", "to-there"]);
    let mut there = host.container(THERE, &["talks", "to-there", "to-here"]);
    for side in [&mut here, &mut there] {
        side.expect("received 250 messages, ");
    }
    here.end();
    there.end();
}

pub fn calls_are_answered_byte_for_byte(host: &Host) {
    let mut server = host.container(HERE, &["serves", "inverter"]);
    server.expect("ready");
    let mut client = host.container(THERE, &["calls", "inverter"]);
    client.expect("300 calls, ");
    client.end();
    server.end();
}

/// A receiver that waits, and the sender of its window in the other container.
fn waiting_receiver(host: &Host, how: &str) -> (Process, Process) {
    let mut receiver = host.container(HERE, &["receives", "window", how]);
    receiver.expect("waiting");
    let mut sender = host.container(THERE, &["sends", "window"]);
    sender.expect("ready");
    (receiver, sender)
}

pub fn sleeping_receiver_is_woken_by_each_message(host: &Host) {
    for how in ["in-futex", "in-poll", "in-epoll"] {
        let (mut receiver, mut sender) = waiting_receiver(host, how);
        let begun = Instant::now();
        for number in 0..WAKE_UPS {
            receiver.wait_until_asleep();
            sender.tell(&number.to_string());
            receiver.expect(&format!("got {number}"));
            receiver.expect("waiting");
        }
        assert!(begun.elapsed() < WATCHDOG, "{how}: a receiver slept while its message was there");
        sender.end();
        receiver.expect("end: ");
        receiver.end();
    }
}

pub fn killed_sender_wakes_its_receiver_which_is_told(host: &Host) {
    for how in ["in-futex", "in-poll", "in-epoll"] {
        let (mut receiver, mut sender) = waiting_receiver(host, how);
        sender.tell("7");
        receiver.expect("got 7");
        receiver.expect("waiting");
        receiver.wait_until_asleep();
        sender.kill();
        assert_eq!(receiver.expect("end: "), "the sender is gone", "{how}");
        receiver.end();
    }
}

pub fn killed_receiver_wakes_its_sender_which_is_told(host: &Host) {
    let mut receiver = host.container(HERE, &["offers", "window"]);
    receiver.expect("offered");
    let mut sender = host.container(THERE, &["fills", "window"]);
    sender.expect("waiting");
    sender.wait_until_asleep();
    receiver.kill();
    assert_eq!(sender.expect("end: "), "the receiver is gone");
    sender.end();
}

pub fn notifications_come_from_another_container_and_end_with_its_death(host: &Host) {
    let mut owner = host.container(HERE, &["notifies", "news"]);
    owner.expect("ready");
    let mut client = host.container(THERE, &["is-notified", "news"]);
    client.expect("news 0");
    for number in 1..WAKE_UPS {
        client.wait_until_asleep();
        owner.tell(&number.to_string());
        client.expect(&format!("news {number}"));
    }
    client.kill();
    assert_eq!(owner.expect("end: "), "Died");
    let mut client = host.container(THERE, &["is-notified", "news"]);
    client.expect("news 0");
    client.wait_until_asleep();
    owner.kill();
    assert_eq!(client.expect("end: "), "OwnerDied");
    client.end();
}

pub fn killed_server_ends_an_outstanding_call(host: &Host) {
    let mut server = host.container(HERE, &["hangs", "server"]);
    server.expect("ready");
    let mut client = host.container(THERE, &["waits-for-an-answer", "server"]);
    client.expect("waiting");
    client.wait_until_asleep();
    server.kill();
    let end = client.expect("end: ");
    assert!(end.starts_with("the server died while the call was outstanding"), "{end}");
    client.end();
}
