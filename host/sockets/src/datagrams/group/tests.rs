use std::cell::RefCell;
use std::io::IoSliceMut;
use std::net::Ipv4Addr;

use beeline_mmio::Region;

use super::*;
use crate::datagrams::flow::Live;
use crate::datagrams::incoming::{Found, Incoming};
use crate::endpoint::AgreedSlot;
use crate::memory::{PairMemory, memory_bytes};

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 7, 8), 4000);
const SOURCE: Source = Source {
    namespace: 1,
    address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5000),
    device: 1,
    cookie: 2,
    number: 3,
};
const MEMBER: u64 = 4;
const WINDOW_BYTES: usize = 1 << 14;

fn bound(cookie: u64) -> Bound {
    Bound { address: Ipv4Addr::UNSPECIFIED.into(), cookie, uid: 0, inode: 0, is_open: true }
}

/// What two sockets have agreed on, as each of them has it; as the thread in the background does it.
fn agree(asking: &Asking, there: &Asking) -> (Arc<Live>, Arc<Live>) {
    let memory = Region::private(memory_bytes(1));
    let slots = [0, 1].map(|side| PairMemory::new(memory.clone(), 1, side).slot(0).unwrap());
    for (own, slot) in [(10, &slots[0]), (11, &slots[1])] {
        slot.open(own, false);
    }
    let [here, other] = slots;
    asking.agree(AgreedSlot { slot: here, other_cookie: 11, peer: None, is_kept: false });
    there.agree(AgreedSlot { slot: other, other_cookie: 10, peer: None, is_kept: false });
    (asking.live().unwrap(), there.live().unwrap())
}

/// A group with one member that has offered a window.
fn with_member() -> (Group, Incoming) {
    let mut group = Group::new(GROUP);
    group.begin(SOURCE);
    let asked = RefCell::new(Vec::new());
    group.take_members(&[bound(MEMBER)], SOURCE, &|asking, _, _| asked.borrow_mut().push(asking));
    let flow_there = Arc::new(Flow::new(SOURCE.address.into(), 9, &NO_OFFERS));
    let (_, live) = agree(&asked.borrow()[0], &flow_there.begin().unwrap());
    let incoming = Incoming::offer(&flow_there, live, WINDOW_BYTES, 77);
    assert!(group.are_ready());
    (group, incoming)
}

/// Sends one by the kernel, as a socket does.
fn send_by_kernel(group: &mut Group) {
    group.sends_by_kernel(1);
    group.has_sent_by_kernel();
}

/// Has the member answer what the sender has asked, and the group use windows.
fn go_up(group: &mut Group, incoming: &Incoming) {
    incoming.answer(incoming.question().unwrap());
    std::thread::sleep(QUIET);
    assert_eq!(group.route_to_members(|| true), GroupRoute::Windows);
}

fn receives(incoming: &mut Incoming) -> Option<Vec<u8>> {
    let mut bytes = [0; 16];
    match incoming.receive(&mut [IoSliceMut::new(&mut bytes)], false).unwrap() {
        Found::Datagram { copied, .. } => Some(bytes[..copied].to_vec()),
        Found::Nothing | Found::BehindKernel => None,
    }
}

#[test]
fn member_that_comes_back_is_met_again_once_nobody_has_its_cookie() {
    let asked = RefCell::new(Vec::new());
    let meet = |asking: Asking, _: u64, _: ConnectionEnds| asked.borrow_mut().push(asking);
    let mut group = Group::new(GROUP);
    group.take_members(&[bound(MEMBER)], SOURCE, &meet);
    assert!(group.are_all);
    let changes: [fn(&mut Group); 3] = [
        |group| group.take_members(&[bound(MEMBER + 1)], SOURCE, &|_, _, _| {}),
        Group::begins_anew,
        |group| group.forbid(Why::OtherWriter),
    ];
    for change in changes {
        assert_eq!(asked.borrow().len(), 1);
        change(&mut group);
        group.take_members(&[bound(MEMBER)], SOURCE, &meet);
        assert!(!group.are_all && group.has_former(), "it is looked for still");
        asked.borrow_mut().clear();
        group.take_members(&[bound(MEMBER)], SOURCE, &meet);
        assert!(group.are_all && !group.has_former());
    }
}

#[test]
fn place_of_a_member_is_its_own_until_everybody_has_let_go() {
    let asked = RefCell::new(Vec::new());
    let meet = |asking: Asking, _: u64, _: ConnectionEnds| asked.borrow_mut().push(asking);
    let mut group = Group::new(GROUP);
    group.take_members(&[bound(MEMBER)], SOURCE, &meet);
    let there = Arc::new(Flow::new(SOURCE.address.into(), 9, &NO_OFFERS));
    let (live, _) = agree(&asked.borrow()[0], &there.begin().unwrap());
    asked.borrow_mut().clear();
    group.begins_anew();
    group.take_members(&[bound(MEMBER)], SOURCE, &meet);
    assert!(!group.are_all && asked.borrow().is_empty());
    drop(live);
    group.take_members(&[bound(MEMBER)], SOURCE, &meet);
    assert!(group.are_all && asked.borrow().len() == 1);
}

#[test]
fn what_is_in_a_window_that_is_left_comes_before_what_the_kernel_has_next() {
    let leaves: [fn(Group); 4] = [
        |mut group| {
            group.let_go();
            // The socket goes on.
            std::mem::forget(group);
        },
        |mut group| {
            group.take_members(&[], SOURCE, &|_, _, _| {});
            std::mem::forget(group);
        },
        |mut group| {
            group.begins_anew();
            std::mem::forget(group);
        },
        drop,
    ];
    for leave in leaves {
        let (mut group, mut incoming) = with_member();
        send_by_kernel(&mut group);
        let _ = group.route_to_members(|| true);
        go_up(&mut group, &incoming);
        assert_eq!(group.send(b"first"), Put::Stored);
        assert_eq!(receives(&mut incoming), None, "it waits for what the kernel has");
        incoming.end();
        leave(group);
        assert_eq!(receives(&mut incoming), Some(b"first".to_vec()));
    }
}

#[test]
fn sender_that_never_pauses_makes_one_now_and_then_until_windows_have_begun() {
    let (mut group, incoming) = with_member();
    let until_pause = |group: &mut Group| {
        (1..).find(|_| {
            send_by_kernel(group);
            group.route_to_members(|| true) == GroupRoute::Pause(QUIET)
        })
    };
    assert_eq!(until_pause(&mut group), Some(BUSY_DATAGRAMS));
    assert_eq!(until_pause(&mut group), Some(2 * BUSY_DATAGRAMS), "the first one was in vain");
    go_up(&mut group, &incoming);
    assert_eq!(until_pause(&mut group), Some(BUSY_DATAGRAMS));
}
