//! Notifications when one side is killed, is stopped or closes: no gap, nothing lost that was accepted, and the end says why.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;
mod teller;

use std::time::Duration;

use beeline_domain::{
    Departure, Domain, MAX_NOTIFICATION_BYTES, MAX_UNTAKEN_NOTIFICATIONS, NotificationsEnded, NotifyError,
};
use harness::held::Held;
use harness::{Role, TestFolder, WATCHDOG, listen, say, wait_for_end, wait_until};
use rustix::process::Signal;
use teller::{Order, Pair, connect, count_for, counter, fill, offer};

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let domain = role.open();
    match role.name.as_str() {
        "counter" => counter(&domain, role.argument.parse().unwrap()),
        "taker" => taker(&domain),
        "holder" => holder(&domain),
        other => panic!("unknown role {other}"),
    }
}

/// Connects and takes for ever.
fn taker(domain: &Domain) {
    let (_connection, notifications) = connect(domain);
    say("connected");
    while notifications.next_within(WATCHDOG).is_ok() {}
}

/// Connects, and takes as many as it is told to, or until the end.
fn holder(domain: &Domain) {
    let (_connection, notifications) = connect(domain);
    say("connected");
    let most: usize = listen().unwrap().parse().unwrap();
    let mut count = 0;
    let mut ended = "open".to_owned();
    while count < most && ended == "open" {
        match notifications.next_within(WATCHDOG) {
            Ok(next) => count += usize::from(next.is_some()),
            Err(error) => ended = format!("{error:?}"),
        }
    }
    say(&format!("{count} {ended}"));
    wait_for_end();
}

#[test]
fn killed_owner_leaves_no_gap_in_what_it_told() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let mut random = 1_u64;
    for _ in 0..12 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bytes = if random >> 63 == 1 { MAX_NOTIFICATION_BYTES } else { 16 };
        let mut owner = folder.helper("counter", &bytes.to_string());
        owner.expect("ready");
        let (_connection, notifications) = connect(&domain);
        let (mut order, kill_at) = (Order::default(), random >> 52 & 0xfff);
        while order.counted < kill_at {
            order.check(&notifications.next_within(WATCHDOG).unwrap().unwrap());
        }
        owner.kill();
        let ended = loop {
            match notifications.next_within(WATCHDOG) {
                Ok(next) => order.check(&next.unwrap()),
                Err(ended) => break ended,
            }
        };
        assert_eq!(ended, NotificationsEnded::OwnerDied, "killed after {kill_at}");
        assert_eq!(notifications.try_next().err(), Some(ended), "the end stays");
    }
}

#[test]
fn owner_that_is_killed_is_heard_out() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let mut owner = folder.helper("counter", "16");
    owner.expect("ready");
    let (_connection, notifications) = connect(&domain);
    // Our domain's thread reads nothing while the owner fills the socket and is killed.
    let held = Held::new(&domain, folder.open());
    let mut order = Order::default();
    while let Some(next) = notifications.try_next().unwrap() {
        order.check(&next);
    }
    let taken = order.counted;
    // It has sent all that it may, and nothing happens any more.
    std::thread::sleep(Duration::from_millis(100));
    owner.kill();
    held.go_on();
    while let Ok(next) = notifications.next_within(WATCHDOG) {
        order.check(&next.unwrap());
    }
    assert!(order.counted > taken + 100, "{taken} before the death, {} in all", order.counted);
}

#[test]
fn killed_clients_cost_the_owner_and_others_nothing() {
    let pair = Pair::new();
    let (told, good) = (&pair.told, &pair.peer);
    let notifications = pair.connection.notifications().unwrap();
    let (mut order, mut sent) = (Order::default(), 0_u64);
    for round in 0..12 {
        let mut client = pair.folder.helper("taker", "");
        client.expect("connected");
        let victim = told.client(1);
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| count_for(told, &victim, 16));
            for _ in 0..round * 37 {
                assert!(told.tell(good, &[sent.to_le_bytes(), [0; 8]].concat()));
                sent += 1;
                order.check(&notifications.next_within(WATCHDOG).unwrap().unwrap());
            }
            client.kill();
            counting.join().unwrap();
        });
        wait_until(|| victim.departure().is_some());
        assert_eq!(victim.departure(), Some(Departure::Died));
        assert_eq!(victim.notify(b"", &[]), Err(NotifyError::Gone));
    }
    assert_eq!(pair.connection.call(b"ab", &[]).unwrap().payload, b"ab");
    wait_until(|| told.departed.lock().unwrap().len() == 12);
}

#[test]
fn stopped_client_neither_blocks_its_owner_nor_loses_what_was_accepted() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (_offer, told) = offer(&domain);
    let mut client = folder.helper("holder", "");
    client.expect("connected");
    let peer = told.client(0);
    client.stop();
    assert_eq!(fill(&peer, &[7; MAX_NOTIFICATION_BYTES]), MAX_UNTAKEN_NOTIFICATIONS);
    // The owner serves others meanwhile.
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    assert_eq!(connection.call(b"ab", &[]).unwrap().payload, b"ab");
    assert!(peer.is_alive());
    client.signal(Signal::CONT);
    client.tell(&MAX_UNTAKEN_NOTIFICATIONS.to_string());
    client.expect(&format!("{MAX_UNTAKEN_NOTIFICATIONS} open"));
}

#[test]
fn owner_that_closes_with_notifications_left_says_so() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (offer, told) = offer(&domain);
    let mut client = folder.helper("holder", "");
    client.expect("connected");
    let (_connection, notifications) = connect(&domain);
    let peers = told.clients.lock().unwrap().clone();
    client.stop();
    fill(&peers[0], &[7; MAX_NOTIFICATION_BYTES]);
    fill(&peers[1], b"all of them leave");
    drop(offer);
    client.signal(Signal::CONT);
    client.tell("1000000");
    let heard = client.hear();
    let (count, ended) = heard.split_once(' ').unwrap();
    assert!(count.parse::<usize>().unwrap() < MAX_UNTAKEN_NOTIFICATIONS, "the socket had room for all");
    assert!(ended.starts_with("CutOff"), "{heard}");
    for _ in 0..MAX_UNTAKEN_NOTIFICATIONS {
        assert!(notifications.next_within(WATCHDOG).unwrap().is_some());
    }
    assert_eq!(notifications.next_within(WATCHDOG).err(), Some(NotificationsEnded::Closed));
}
