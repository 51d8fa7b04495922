//! A bridge that is a device: what it translates, what it refuses and counts, whom it interrupts.

use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{
    HostId, Hosts, HostsError, Joined, LOST, NtbSettings, Region, Register,
};
use beeline_link_sim::pcie::Advertised;

use super::{NEVER, load, ns, place, row, settings, turn, two};

const WINDOW: u64 = 1 << 20;

fn ntb() -> NtbSettings {
    NtbSettings {
        windows: 2,
        window_bytes: WINDOW,
        align_bytes: 4096,
        scratchpads: 16,
        doorbells: 15,
        requesters: 2,
        passes: 0,
        interrupt: ns(500),
    }
}

/// Links whose ends have room for a few packets of each class.
fn bridged(ntb: NtbSettings) -> Hosts {
    let mut row = row(1);
    for link in [&mut row.first, &mut row.further[0].link] {
        link.advertised = [[Advertised::finite(8, 128); 3]; 2];
    }
    Hosts::with_ntb(settings(Joined::Row(row)), ntb, 1).unwrap()
}

fn write(hosts: &mut Hosts, host: u16, register: Register, value: u64) {
    let address = hosts.ntb_register(HostId(host), register);
    turn(hosts, host, |hosts, place| hosts.store_in_order(place, address, value));
}

fn read(hosts: &mut Hosts, host: u16, register: Register) -> u64 {
    let address = hosts.ntb_register(HostId(host), register);
    turn(hosts, host, |hosts, place| hosts.load_across(place, address));
    hosts.loaded(place(host))
}

/// Both sides have enabled the link and their core, and window 1 of host 0 is memory of host 1.
fn opened(ntb: NtbSettings) -> (Hosts, Region, u64) {
    let mut hosts = bridged(ntb);
    let region = hosts.add_memory(HostId(1), WINDOW as usize);
    for host in 0..2 {
        write(&mut hosts, host, Register::Link, Register::ENABLED);
        write(&mut hosts, host, Register::Requester(1), Register::VALID | u64::from(host) << 8);
    }
    write(&mut hosts, 1, Register::Translation(1), region.address);
    write(&mut hosts, 1, Register::Limit(1), 8192);
    let window = hosts.ntb_window(HostId(0), 1).unwrap();
    (hosts, region, window)
}

#[test]
fn scratchpads_have_32_bits_and_are_seen_from_both_sides() {
    let mut hosts = bridged(ntb());
    write(&mut hosts, 0, Register::PeerScratchpad(3), 0x1_2345_6789);
    assert_eq!(read(&mut hosts, 1, Register::Scratchpad(3)), 0x2345_6789);
    assert_eq!(read(&mut hosts, 0, Register::PeerScratchpad(3)), 0x2345_6789);
    assert_eq!(read(&mut hosts, 0, Register::Scratchpad(3)), 0, "each side has its own");
    assert_eq!(read(&mut hosts, 0, Register::Scratchpad(15)), 0);
    assert_eq!(read(&mut hosts, 0, Register::Scratchpad(16)), LOST, "there are 16");
    assert_eq!(hosts.ntb_counts(HostId(0)).no_register, 1);
    assert!(hosts.is_at_rest());
}

/// A read of a register goes to the bridge and back, one of memory behind it to the other root complex and back.
#[test]
fn register_is_read_in_half_the_way_of_memory_behind_the_bridge() {
    let (mut hosts, _, window) = opened(ntb());
    let register = hosts.ntb_register(HostId(0), Register::Scratchpad(0));
    let [near, far] = [register, window].map(|address| {
        let begun = hosts.now();
        turn(&mut hosts, 0, |hosts, place| hosts.load_across(place, address));
        hosts.clock(place(0)).since(begun).as_ns()
    });
    // There and back: 60 of the root complex, a link of 90 with 12 or 16 and 8 of framing (and 8 of data back) at half a nanosecond a byte, 50
    // of the bridge, 60 that the core takes.
    let link = 90 + 12;
    assert!(near.abs_diff(60 + link + 50 + 90 + 14 + 60) <= 4, "{near}");
    // To memory and back there is another link, the bridge again, and 200 of the root complex.
    assert!(far.abs_diff(near + link + 200 + 90 + 14 + 50) <= 4, "{far}");
}

#[test]
fn window_is_memory_of_the_other_host_as_far_as_that_says() {
    let (mut hosts, region, window) = opened(ntb());
    turn(&mut hosts, 0, |hosts, place| {
        hosts.store_in_order(place, window + 8184, 7);
        hosts.store_in_order(place, window + 8192, 8);
    });
    assert_eq!(load(&mut hosts, 1, region, 8184), 7);
    assert_eq!(load(&mut hosts, 1, region, 8192), 0, "the window ends before");
    turn(&mut hosts, 0, |hosts, place| hosts.load_across(place, window + 8184));
    assert_eq!(hosts.loaded(place(0)), 7);
    turn(&mut hosts, 0, |hosts, place| hosts.load_across(place, window + 8192));
    assert_eq!(hosts.loaded(place(0)), LOST);
    let first = hosts.ntb_window(HostId(0), 0).unwrap();
    turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, first, 9));
    let counts = hosts.ntb_counts(HostId(0));
    assert_eq!((counts.outside, counts.written, counts.read), (3, 1, 1), "window 0 shows nothing");
    assert_eq!((hosts.ntb_window(HostId(0), 2), hosts.faults(HostId(1))), (None, 0));
    assert!(hosts.is_at_rest());
}

/// What a host says of a translation is its own affair: what is no memory of it is found by its root complex.
#[test]
fn translation_loses_the_bits_below_its_alignment() {
    let (mut hosts, region, window) = opened(NtbSettings { align_bytes: 1 << 16, ..ntb() });
    write(&mut hosts, 1, Register::Translation(1), region.address + 4096);
    write(&mut hosts, 1, Register::Limit(1), (1 << 16) + 4096);
    assert_eq!(read(&mut hosts, 1, Register::Translation(1)), region.address);
    assert_eq!(read(&mut hosts, 1, Register::Limit(1)), 1 << 16);
    turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, window, 7));
    assert_eq!(load(&mut hosts, 1, region, 0), 7);
    write(&mut hosts, 1, Register::Limit(1), u64::MAX);
    assert_eq!(read(&mut hosts, 1, Register::Limit(1)), WINDOW, "a window is no longer than it is");
    write(&mut hosts, 1, Register::Translation(1), region.address + (16 << 20));
    turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, window, 8));
    assert_eq!(hosts.faults(HostId(1)), 1);
}

#[test]
fn requester_that_is_not_in_the_table_is_refused_and_counted() {
    let (mut hosts, region, window) = opened(ntb());
    write(&mut hosts, 0, Register::Requester(1), Register::VALID | 0x77);
    turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, window, 7));
    turn(&mut hosts, 0, |hosts, place| hosts.load_across(place, window));
    assert_eq!((hosts.loaded(place(0)), load(&mut hosts, 1, region, 0)), (LOST, 0));
    assert_eq!(hosts.ntb_counts(HostId(0)).strangers, 2);
    write(&mut hosts, 0, Register::Requester(0), Register::VALID);
    turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, window, 7));
    assert_eq!(load(&mut hosts, 1, region, 0), 7);
}

fn with_doorbells() -> (Hosts, Region, u64) {
    let mut opened = opened(ntb());
    write(&mut opened.0, 1, Register::DoorbellMask, 0);
    opened
}

/// Unmasking told host 1 of the link, which it has not cleared.
#[test]
fn doorbell_interrupts_once_until_it_is_cleared_and_not_while_it_is_masked() {
    let (mut hosts, ..) = with_doorbells();
    let told = hosts.interrupts(HostId(1));
    assert_eq!(told, 1, "the link had come up");
    for _ in 0..2 {
        write(&mut hosts, 0, Register::PeerDoorbells, 1 << 3);
    }
    assert_eq!(hosts.interrupts(HostId(1)) - told, 1);
    assert_eq!(hosts.ntb_counts(HostId(1)).coalesced, 1);
    assert_eq!(read(&mut hosts, 1, Register::Doorbells), 1 << 15 | 1 << 3);
    write(&mut hosts, 1, Register::Doorbells, 1 << 3);
    write(&mut hosts, 1, Register::DoorbellMask, 1 << 3);
    write(&mut hosts, 0, Register::PeerDoorbells, 1 << 3);
    assert_eq!(hosts.interrupts(HostId(1)) - told, 1, "masked");
    write(&mut hosts, 1, Register::DoorbellMask, 0);
    assert_eq!(hosts.interrupts(HostId(1)) - told, 2, "it was set meanwhile");
    write(&mut hosts, 0, Register::PeerDoorbells, 1 << 15);
    assert_eq!(hosts.interrupts(HostId(1)) - told, 2, "the link's bit is no doorbell");
    assert!(hosts.is_at_rest());
}

/// So much is rung and read that room which is not given back, or is given back twice, is found.
#[test]
fn bridge_gives_back_the_room_of_what_ends_there_and_of_nothing_else() {
    let (mut hosts, region, window) = with_doorbells();
    for nth in 0..500 {
        write(&mut hosts, 0, Register::PeerDoorbells, 1);
        write(&mut hosts, 1, Register::Doorbells, 1);
        assert_eq!(read(&mut hosts, 0, Register::Scratchpad(0)), 0);
        turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, window + 8192, 1));
        turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, window, nth));
        // An interrupt that no packet becomes.
        write(&mut hosts, 1, Register::DoorbellMask, 1);
        write(&mut hosts, 0, Register::PeerDoorbells, 1);
        write(&mut hosts, 1, Register::DoorbellMask, 0);
        write(&mut hosts, 1, Register::Doorbells, 1);
    }
    assert_eq!((hosts.interrupts(HostId(1)), load(&mut hosts, 1, region, 0)), (1001, 499));
    assert!(hosts.is_at_rest());
}

/// The order in which lines come to host 1, and whether all were there when its interrupt came.
fn arrivals(passes: usize) -> (Vec<usize>, usize) {
    const LINES: usize = 64;
    let (mut hosts, region, window) = opened(NtbSettings { passes, ..ntb() });
    write(&mut hosts, 1, Register::Doorbells, 1 << 15);
    write(&mut hosts, 1, Register::DoorbellMask, 0);
    let doorbells = hosts.ntb_register(HostId(0), Register::PeerDoorbells);
    let (from, to) = (place(0), place(1));
    hosts.end_turn(to, Next::Poll, NEVER);
    hosts.end_turn(from, Next::Again, NEVER);
    let (mut order, mut at_interrupt) = (Vec::new(), 0);
    while let Some(due) = hosts.advance(NEVER) {
        if due == from {
            (0..LINES as u64).for_each(|line| hosts.store_line(from, window + line * 64, &[line + 1; 8]));
            hosts.store_in_order(from, doorbells, 1);
            hosts.end_turn(from, Next::Never, NEVER);
            continue;
        }
        for line in 0..LINES {
            if hosts.load(to, region, line * 64) != 0 && !order.contains(&line) {
                order.push(line);
            }
        }
        if hosts.interrupts(HostId(1)) > 0 {
            at_interrupt = order.len();
            hosts.end_turn(to, Next::Never, NEVER);
        } else {
            hosts.end_turn(to, Next::Poll, NEVER);
        }
    }
    (order, at_interrupt)
}

#[test]
fn relaxed_writes_pass_each_other_and_a_doorbell_passes_none() {
    let in_order: Vec<usize> = (0..64).collect();
    assert_eq!(arrivals(0), (in_order.clone(), 64));
    let (mut order, at_interrupt) = arrivals(8);
    assert_ne!(order, in_order);
    assert_eq!(at_interrupt, 64);
    order.sort_unstable();
    assert_eq!(order, in_order);
}

#[test]
fn both_hosts_are_told_of_the_link_and_nothing_goes_through_while_it_is_down() {
    let (mut hosts, region, window) = with_doorbells();
    write(&mut hosts, 1, Register::Doorbells, 1 << 15);
    let told = hosts.interrupts(HostId(1));
    assert_eq!(read(&mut hosts, 1, Register::Link), Register::ENABLED | Register::UP);
    write(&mut hosts, 0, Register::Link, 0);
    assert_eq!(
        (hosts.interrupts(HostId(1)) - told, read(&mut hosts, 1, Register::Link)),
        (1, Register::ENABLED)
    );
    turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, window, 7));
    write(&mut hosts, 0, Register::PeerDoorbells, 1);
    assert_eq!((load(&mut hosts, 1, region, 0), hosts.ntb_counts(HostId(0)).link_down), (0, 1));
    assert_eq!(read(&mut hosts, 1, Register::Doorbells), 1 << 15, "rung by nobody but the link");
    write(&mut hosts, 1, Register::Doorbells, 1 << 15);
    write(&mut hosts, 0, Register::Link, Register::ENABLED);
    assert_eq!(hosts.interrupts(HostId(1)) - told, 2);
    // The cable of host 0 is pulled: host 1 is told, and host 0 reads ones.
    write(&mut hosts, 1, Register::Doorbells, 1 << 15);
    hosts.set_link(HostId(0), false);
    assert_eq!(read(&mut hosts, 0, Register::Link), LOST);
    assert_eq!(
        (hosts.interrupts(HostId(1)) - told, read(&mut hosts, 1, Register::Link)),
        (3, Register::ENABLED)
    );
}

#[test]
fn bridges_that_cannot_be_are_refused() {
    let made = |joined, ntb| Hosts::with_ntb(settings(joined), ntb, 1).err();
    let with = |change: fn(&mut NtbSettings)| {
        let mut ntb = ntb();
        change(&mut ntb);
        made(Joined::Row(row(1)), ntb)
    };
    assert!(matches!(made(Joined::Row(row(0)), ntb()), Some(HostsError::Bridge(_))));
    assert!(matches!(with(|ntb| ntb.window_bytes = 3 << 20), Some(HostsError::Bridge(_))));
    assert!(matches!(with(|ntb| ntb.window_bytes = 1 << 60), Some(HostsError::Bridge(_))));
    assert!(matches!(with(|ntb| ntb.align_bytes = 2 << 20), Some(HostsError::Bridge(_))));
    assert!(matches!(with(|ntb| ntb.doorbells = 64), Some(HostsError::Count { .. })));
    assert_eq!(with(|_| {}), None);
    assert_eq!(two(1).interrupts(HostId(0)), 0);
}
