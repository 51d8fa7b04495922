//! Groups of data interrupts: one message, for each of several members or for none.
//!
//! Run over each kind of member (`host/fabric/process/tests/group_interrupts.rs`, `host/fabric/bar/tests/group_interrupts.rs`), whose `support`
//! says what members are.

use std::time::Duration;

use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal};

use super::support::{DataInterrupt, DataTrigger, Fabric, Member, Process, interrupt_options};

#[test]
fn message_to_a_group_reaches_each_of_whatever_node_also_later_ones() {
    let fabric = Fabric::new();
    let (mut one, mut other, mut user) = (fabric.member(4), fabric.member(12), fabric.member(8));
    // Nobody has joined any group.
    user.expect("data-trigger-of d 252 5 0", "NodeNotResponding");
    one.expect("data-interrupt d 5 group", "ok 5");
    user.until("data-trigger-of d 252 6 0", "NoSuchIntno");
    // Numbers of nodes are others, and a node has no interrupt of the group's.
    one.expect("data-interrupt n 5", "ok 5");
    user.expect("data-trigger-of d 252 5 0", "ok");
    user.expect("trigger-data d first 5", "ok");
    other.expect("data-interrupt d 5 group", "ok 5");
    user.expect("data-interrupt mine 5 group", "ok 5");
    // One that finds its number has one that nobody has.
    user.expect("data-interrupt found auto group", "ok 65536");
    one.expect("data-interrupt found auto group", "ok 65537");
    user.expect("trigger-data d second 6", "ok");
    one.expect("wait-data d 8 0", "5 first");
    for member in [&mut one, &mut other] {
        member.expect("wait-data d 8 0", "6 second");
    }
    user.expect("wait-data mine 8 0", "6 second");
    one.expect("wait-data n 8 0", "Timeout");
    // Who is behind a link that is down is skipped.
    other.expect("link down", "ok");
    user.expect("trigger-data d third 5", "ok");
    other.expect("link up", "ok");
    user.expect("trigger-data d fourth 6", "ok");
    other.expect("wait-data d 8 0", "6 fourth");
    one.expect("wait-data d 8 0", "5 third");
    one.expect("wait-data d 8 0", "6 fourth");
    one.finish();
    other.expect("remove-interrupt d", "ok");
    user.expect("trigger-data d x 1", "ok");
    user.expect("remove-interrupt mine", "ok");
    user.expect("trigger-data d x 1", "NotConnected");
}

/// A member with one of group 5 that leaves its messages, one that takes them, and one that sends until there is no room.
fn full(fabric: &Fabric) -> [Process; 3] {
    let (mut full, mut taker, mut user) = (fabric.member(4), fabric.member(12), fabric.member(8));
    full.expect("data-interrupt d 5 group", "ok 5");
    taker.expect("data-interrupt d 5 group", "ok 5");
    user.expect("data-trigger-of d 252 5 forever", "ok");
    let said = user.call("trigger-until-full d abcdefgh 2048");
    let sent: usize = said.strip_suffix(" Nospc").unwrap().parse().unwrap();
    for _ in 0..sent {
        taker.expect("wait-data d 2048 0", "2048 abcdefgh");
    }
    user.expect("trigger-data d more 2048", "Nospc");
    taker.expect("wait-data d 2048 0", "Timeout");
    [full, taker, user]
}

#[test]
fn message_goes_to_nobody_of_a_group_where_the_queue_of_one_is_full() {
    let fabric = Fabric::new();
    let [mut full, mut taker, mut user] = full(&fabric);
    full.expect("wait-data d 2048 0", "2048 abcdefgh");
    user.expect("trigger-data d more 2048", "ok");
    taker.expect("wait-data d 2048 0", "2048 moremore");
    user.expect("trigger-data d more 2048", "Nospc");
    full.expect("remove-interrupt d", "ok");
    user.expect("trigger-data d last 4", "ok");
    taker.expect("wait-data d 2048 0", "4 last");
}

#[test]
fn member_of_a_group_that_is_killed_with_a_full_queue_holds_up_nobody_when_that_is_known() {
    let fabric = Fabric::new();
    let [full, mut taker, mut user] = full(&fabric);
    full.kill();
    user.until("trigger-data d last 2048", "ok");
    taker.expect("wait-data d 2048 0", "2048 lastlast");
    taker.kill();
    user.until("trigger-data d x 1", "NotConnected");
}

#[test]
fn member_of_a_group_that_leaves_with_a_full_queue_holds_up_nobody() {
    let fabric = Fabric::new();
    let [full, mut taker, mut user] = full(&fabric);
    full.finish();
    user.until("trigger-data d last 2048", "ok");
    taker.expect("wait-data d 2048 0", "2048 lastlast");
}

/// Two send as fast as they can. Of those who take, one is killed meanwhile, and another one comes and leaves; then one who sends is killed.
#[test]
fn members_of_a_group_that_die_or_leave_amid_messages_cost_the_others_none() {
    let fabric = Fabric::new();
    let [mut taker, mut killed] = [4, 12].map(|node| fabric.member(node));
    let mut senders = [8, 8].map(|node| fabric.member(node));
    for process in [&mut taker, &mut killed] {
        process.expect("data-interrupt d 5 group", "ok 5");
    }
    for process in &mut senders {
        process.expect("data-trigger-of d 252 5 forever", "ok");
    }
    let [mut sender, mut ending] = senders;
    sender.begin("storm-data d 1 16");
    ending.begin("storm-data d 2 40");
    killed.begin("take-storm d 1 1000000000");
    taker.expect("take-storm d 1 300", "ok");
    taker.expect("take-storm d 2 300", "ok");
    killed.kill();
    taker.expect("take-storm d 1 1000", "ok");
    let mut late = fabric.member(12);
    late.expect("data-interrupt d 5 group", "ok 5");
    while late.call("wait-data d 64 0") == "Timeout" {
        taker.expect("take-storm d 1 50", "ok");
    }
    late.finish();
    taker.expect("take-storm d 2 1000", "ok");
    ending.kill();
    taker.expect("take-storm d 1 1000", "ok");
}

/// So long that few of them fill a window: who sends finds it full nearly always.
const LONG_BYTES: usize = 2048;

fn send_numbered(trigger: &DataTrigger, sender: u64, messages: std::ops::Range<u64>) {
    for message in messages {
        let mut message = [sender, message].map(u64::to_le_bytes).concat();
        message.resize(LONG_BYTES, 0);
        while let Err(refusal) = trigger.trigger(&message) {
            assert_eq!(refusal, Refusal::Nospc);
            std::thread::yield_now();
        }
    }
}

/// Takes what three have sent, from which on each of them is said.
fn take_numbered(interrupt: &DataInterrupt, mut next: [u64; 3], until: u64) {
    while next != [until; 3] {
        let mut buffer = [0; LONG_BYTES];
        assert_eq!(interrupt.wait(&mut buffer, None), Ok(LONG_BYTES));
        let [sender, message] = [0, 8].map(|at| u64::from_le_bytes(buffer[at..at + 8].try_into().unwrap()));
        assert_eq!(message, next[sender as usize]);
        next[sender as usize] += 1;
    }
}

/// Each of the messages of all goes to everybody, or to nobody: threads and processes that send at the same time divide the room between
/// them. Two of one member, which share its windows, have found those of the group in different orders.
#[test]
fn messages_of_several_to_a_group_come_whole_and_in_order_at_each() {
    const EACH: u64 = 1000;
    let fabric = Fabric::new();
    let members = [4, 8].map(|node| Member::open(fabric.config(node)).unwrap());
    let create = |member: &Member| member.create_data_interrupt(interrupt_options(&["5", "group"])).unwrap();
    let connect = |member: &Member| {
        let adapter = AdapterNumber::new(0).unwrap();
        let number = InterruptNumber(5);
        member.connect_data_interrupt(NodeId::GROUPS, number, adapter, Some(Duration::MAX)).unwrap()
    };
    let mut interrupts = vec![create(&members[1])];
    let first = connect(&members[0]);
    send_numbered(&first, 0, 0..1);
    interrupts.push(create(&members[0]));
    let triggers = [first, connect(&members[0]), connect(&members[1])];
    std::thread::scope(|scope| {
        for (sender, trigger) in triggers.iter().enumerate() {
            scope.spawn(move || send_numbered(trigger, sender as u64, u64::from(sender == 0)..EACH));
        }
        for (interrupt, sent) in interrupts.iter().zip([0, 1]) {
            scope.spawn(move || take_numbered(interrupt, [sent, 0, 0], EACH));
        }
    });
}
