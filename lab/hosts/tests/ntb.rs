//! A bridge with windows, scratchpads and doorbells between two hosts: a link is agreed on, used, lost and made anew.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use beeline_hosts::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{HostId, Hosts, Region};
use beeline_platforms::Platform;
use support::{disordered, faults, pattern};

const ENDS: [HostId; 2] = [HostId(0), HostId(1)];
const MOST_BYTES: u64 = 1500;

const fn us(us: u64) -> Picoseconds {
    Picoseconds::from_ns(us * 1_000)
}

/// Runs a program on each side of a bridge that lets relaxed writes pass, between hosts whose stores leave in any order.
fn two<T: Send>(
    happens: impl FnOnce(&mut Hosts),
    first: impl FnOnce(Core, Region) -> T + Send,
    second: impl FnOnce(Core, Region) -> T + Send,
) -> (Vec<T>, Hosts) {
    let mut hosts = Hosts::with_ntb(disordered(), ntb_of(500, 16), 1).unwrap();
    let [near, far] = ENDS.map(|host| NtbLink::memory(&mut hosts, host));
    happens(&mut hosts);
    let first: Program<'_, T> = (ENDS[0], Box::new(move |core| first(core, near)));
    run(hosts, vec![first, (ENDS[1], Box::new(move |core| second(core, far)))])
}

fn message(nth: u64) -> Vec<u8> {
    let mut bytes = pattern((8 + nth * 131 % (MOST_BYTES - 7)) as usize, nth);
    bytes[..8].copy_from_slice(&nth.to_le_bytes());
    bytes
}

/// Sends messages up to `most`, takes as many, and holds each against what it is to be. Ends early when the link goes down; says how many were
/// sent and taken.
fn talk(core: &Core, link: &mut NtbLink, most: u64) -> Result<(), (NtbError, u64, u64)> {
    let (mut sent, mut taken) = (0, 0);
    while sent < most || taken < most {
        let fails = |why| (why, sent, taken);
        let is_sent = sent < most && link.send(&message(sent)).map_err(fails)?;
        let found = link.receive().map_err(fails)?;
        sent += u64::from(is_sent);
        match found {
            Some(found) => {
                assert!(found == message(taken), "message {taken} is not what was sent");
                taken += 1;
            }
            None => core.wait(if is_sent { Next::Again } else { Next::Poll }, core.now() + us(20)),
        }
    }
    Ok(())
}

#[test]
fn link_is_agreed_on_and_messages_are_whole_and_in_order_although_their_stores_are_not() {
    let side = |random| {
        move |core: Core, memory| {
            let mut link = NtbLink::open(&core, memory, random, us(10_000)).unwrap();
            talk(&core, &mut link, 300).unwrap();
            // The other side may still want credits for what it sent last.
            core.sleep_until(core.now() + us(100));
            assert_eq!((link.check(), link.send(&[0; 1 << 20])), (Ok(()), Err(NtbError::TooLong)));
            link.agreed()
        }
    };
    let (agreed, hosts) = two(|_| {}, side(0x1111_2222_3333_4444), side(0x5555_6666_7777_8888));
    assert_eq!((agreed[0].own.epoch, agreed[0].own.blank), (agreed[1].theirs.epoch, agreed[1].theirs.blank));
    assert_eq!(agreed[1].own.epoch, agreed[0].theirs.epoch);
    for host in ENDS {
        let counts = hosts.ntb_counts(host);
        assert!(counts.written > 300 && counts.read == 0, "nothing is read through a window: {counts:?}");
        assert_eq!((counts.outside, counts.strangers, counts.no_register), (0, 0, 0));
    }
    assert_eq!(faults(&hosts), 0);
}

/// What the scratchpads have that is no offer, or answers an epoch that is over, makes no link; what comes behind it does.
#[test]
fn stale_and_hostile_scratchpads_make_no_link() {
    let blank = 1 << 63 | 77;
    let stale = Offer { epoch: 5, answers: 3, lines: 256, blank };
    let huge = Offer { lines: 1 << 30, ..stale };
    let mut mixed = stale.words();
    mixed[1] += 1;
    for (words, why) in [
        (stale.words(), Unfit::Nothing),
        (huge.words(), Unfit::Lines(1 << 30)),
        (mixed, Unfit::Sum),
        ([4, 0, 2, 1, 1 << 20, 0, 0], Unfit::Kind(4)),
    ] {
        let is_over = AtomicBool::new(false);
        let first = |core: Core, memory| {
            let timed_out = NtbLink::open(&core, memory, 1 << 40, us(500)).err();
            is_over.store(true, Relaxed);
            let link = NtbLink::open(&core, memory, 2 << 40, us(5_000)).unwrap();
            assert_eq!(link.agreed().theirs.epoch, 9 << 8 | 1);
            timed_out
        };
        let second = |core: Core, memory| {
            let port = NtbPort::new(&core);
            port.link_enable();
            for (nth, word) in (0..).zip(words) {
                port.peer_spad_write(nth, word);
            }
            while !is_over.load(Relaxed) {
                core.sleep_until(core.now() + us(50));
            }
            NtbLink::open(&core, memory, 9 << 40, us(5_000)).unwrap();
            None
        };
        let (found, _) = two(|_| {}, first, second);
        assert_eq!(found[0], Some(NtbError::TimedOut(why)));
    }
}

/// The cable of host 1 is out from 2,000 to 2,100 us, in the middle of messages. Both sides notice, and begin anew with other epochs and
/// blanks: nothing of what was sent before comes then.
#[test]
fn link_that_goes_down_in_traffic_is_noticed_by_both_and_comes_back_with_another_epoch() {
    let pulled = |hosts: &mut Hosts| {
        hosts.link_will_change(ENDS[1], us(2_000), false);
        hosts.link_will_change(ENDS[1], us(2_100), true);
    };
    let side = |random: u64| {
        move |core: Core, memory| {
            let mut link = NtbLink::open(&core, memory, random, us(1_000)).unwrap();
            let before = link.agreed();
            let (why, sent, taken) = talk(&core, &mut link, u64::MAX).unwrap_err();
            assert_eq!((why, link.send(&[1])), (NtbError::Down, Err(NtbError::Down)), "and stays so");
            assert!(sent > 100 && taken > 100, "{sent} sent, {taken} taken");
            let mut link = NtbLink::open(&core, memory, random.rotate_left(17), us(20_000)).unwrap();
            talk(&core, &mut link, 200).unwrap();
            core.sleep_until(core.now() + us(100));
            (before, link.agreed())
        }
    };
    let (agreed, _) = two(pulled, side(0x1111_2222_3333_4444), side(0x5555_6666_7777_8889));
    for (before, after) in agreed {
        assert_ne!((before.own.epoch, before.own.blank), (after.own.epoch, after.own.blank));
        assert_ne!(before.theirs.epoch, after.theirs.epoch);
        assert_eq!(after.theirs.answers, after.own.epoch);
    }
}

/// A side that begins anew takes its window away first: what the other one still stores into it is refused and counted, and the new blanks stay.
#[test]
fn stores_of_an_epoch_that_is_over_are_refused_until_the_window_is_whole_again() {
    let refused = AtomicU64::new(0);
    let first = |core: Core, memory| {
        let mut link = NtbLink::open(&core, memory, 1 << 40, us(1_000)).unwrap();
        // It does not look whether the link is the same, as one that means ill.
        let to = link.port().peer_mw_get_addr(0).unwrap();
        for line in 0..20_000 {
            core.store_line(to + 4096 + line % 64 * 64, &[7; 8]);
            core.wait(Next::Again, Picoseconds::NEVER);
            if link.port().counts().outside > 0 {
                break;
            }
        }
        refused.store(link.port().counts().outside, Relaxed);
        while link.check().is_ok() {
            core.sleep_until(core.now() + us(5));
        }
        let mut link = NtbLink::open(&core, memory, 3 << 40, us(10_000)).unwrap();
        talk(&core, &mut link, 50).unwrap();
        core.sleep_until(core.now() + us(100));
    };
    let second = |core: Core, memory| {
        NtbLink::open(&core, memory, 2 << 40, us(1_000)).unwrap();
        core.sleep_until(core.now() + us(30));
        let mut link = NtbLink::open(&core, memory, 4 << 40, us(10_000)).unwrap();
        talk(&core, &mut link, 50).unwrap();
        core.sleep_until(core.now() + us(100));
    };
    two(|_| {}, first, second);
    assert!(refused.load(Relaxed) > 0);
}

/// Stores behind the end of what a window shows, and into one that shows nothing, change nothing of the other side, and its link stays.
#[test]
fn peer_that_stores_outside_its_window_is_refused_and_counted() {
    let first = |core: Core, memory: Region| {
        let mut link = NtbLink::open(&core, memory, 1 << 40, us(1_000)).unwrap();
        let (shown, hidden) =
            (link.port().peer_mw_get_addr(0).unwrap(), link.port().peer_mw_get_addr(1).unwrap());
        for line in 0..16 {
            core.store_line(shown + memory.bytes as u64 + line * 64, &[7; 8]);
            core.store_line(hidden + line * 64, &[7; 8]);
        }
        core.fence();
        assert_eq!(core.load_across(hidden), u64::MAX);
        talk(&core, &mut link, 50).unwrap();
        core.sleep_until(core.now() + us(100));
    };
    let second = |core: Core, memory| {
        let mut link = NtbLink::open(&core, memory, 2 << 40, us(1_000)).unwrap();
        talk(&core, &mut link, 50).unwrap();
        core.sleep_until(core.now() + us(100));
    };
    let (_, hosts) = two(|_| {}, first, second);
    let counts = hosts.ntb_counts(ENDS[0]);
    // Lines may leave in two pieces each.
    assert!((33..=65).contains(&counts.outside), "{counts:?}");
    assert_eq!((hosts.ntb_counts(ENDS[1]).outside, faults(&hosts)), (0, 0));
}

#[test]
fn memory_that_a_bridge_cannot_translate_to_is_refused() {
    let mut ntb = ntb_of(500, 0);
    ntb.align_bytes = 1 << 20;
    let mut hosts = Hosts::with_ntb(disordered(), ntb, 1).unwrap();
    let memory = NtbLink::memory(&mut hosts, ENDS[0]);
    let open = move |core: Core| NtbLink::open(&core, memory, 1 << 40, us(1_000)).err();
    let programs: Vec<Program<'_, Option<NtbError>>> = vec![(ENDS[0], Box::new(open))];
    let (found, _) = run(hosts, programs);
    assert_eq!(found, [Some(NtbError::Translation(0))], "the memory is shorter than a unit of the limit");
}

/// A doorbell interrupts behind what was stored before it, as late as a store comes and the interrupt takes.
#[test]
fn doorbell_interrupts_as_late_as_a_store_comes_and_the_handler_takes() {
    let platform = Platform::named("vpx3-1259-gen3x8").unwrap();
    let [none, some] = [0, 1_000].map(|ns| ntb_costs(&platform, &ntb_of(ns, 16), 1).unwrap());
    assert!(none.is_behind && some.is_behind);
    let handler = some.doorbell_ns - none.doorbell_ns;
    assert!((980.0..=1_020.0).contains(&handler), "{none:?} and {some:?}");
    assert!(none.memory_read_ns > none.register_read_ns, "{none:?}");
}

fn row(method: NtbMethod, passes: usize) -> NtbRow {
    let platform = Platform::named("vpx3-1259-gen3x8").unwrap();
    ntb_latencies(&platform, &ntb_of(1_000, passes), method, 40, 100, 1).unwrap()
}

/// Simulated; what is asserted is who is earlier, and that nothing is lost.
#[test]
fn windows_are_earlier_than_frames_with_fences_and_flags() {
    let [interrupt, polled, window] = NtbMethod::ALL.map(|method| row(method, 0));
    assert_eq!([interrupt.whole, polled.whole, window.whole], [200; 3]);
    assert!(window.alone.p50_ns < polled.alone.p50_ns, "{window:?} and {polled:?}");
    assert!(polled.alone.p50_ns < interrupt.alone.p50_ns, "{polled:?} and {interrupt:?}");
    assert!(window.each_ns < polled.each_ns, "{window:?} and {polled:?}");
    assert_eq!(row(NtbMethod::Window, 16).whole, 200, "whatever the bridge does to the order");
}

/// A flag behind a fence says that the frame left before, not that it came before: where the bridge lets writes pass, it is seen too early.
#[test]
fn frames_whose_flag_came_first_are_not_whole_where_the_bridge_relaxes_order() {
    let platform = Platform::named("vpx3-1259-gen3x8").unwrap();
    let of = |method| ntb_latencies(&platform, &ntb_of(0, 16), method, 1000, 200, 1).unwrap();
    let [_, polled, window] = NtbMethod::ALL.map(of);
    assert!(polled.whole < polled.taken, "{polled:?}");
    assert_eq!((window.whole, window.taken), (400, 400));
}

/// A window is gone through many times while counts of free lines pass each other: an older one that comes last is neither an error nor the end.
#[test]
fn counts_of_free_lines_may_pass_each_other() {
    let platform = Platform::named("dolphin-ntb").unwrap();
    let row = ntb_latencies(&platform, &ntb_of(0, 16), NtbMethod::Window, 40, 1_500, 1).unwrap();
    assert_eq!((row.whole, row.taken), (3_000, 3_000));
}

/// An older count that lands last is all that the sender finds; the receiver, to whom nothing comes, stores the newer one again.
#[test]
fn count_that_an_older_one_hides_is_stored_again() {
    let total = AtomicU64::new(u64::MAX);
    let first = |core: Core, memory: Region| {
        let mut link = NtbLink::open(&core, memory, 1 << 40, us(1_000)).unwrap();
        let mut sent = 0;
        while link.send(&message(sent)).unwrap() {
            sent += 1;
        }
        total.store(sent, Relaxed);
        core.sleep_until(core.now() + us(2_000));
        core.store(memory, 0, 0);
        let until = core.now() + us(500);
        while !link.send(&message(sent)).unwrap() {
            assert!(core.now() < until, "the count never comes again");
            core.sleep_until(core.now() + us(5));
        }
        core.sleep_until(core.now() + us(100));
    };
    let second = |core: Core, memory| {
        let mut link = NtbLink::open(&core, memory, 2 << 40, us(1_000)).unwrap();
        let mut taken = 0;
        while total.load(Relaxed) == u64::MAX || taken <= total.load(Relaxed) {
            match link.receive().unwrap() {
                Some(found) => {
                    assert!(found == message(taken), "message {taken} is not what was sent");
                    taken += 1;
                }
                None => core.wait(Next::Poll, core.now() + us(5)),
            }
        }
    };
    two(|_| {}, first, second);
}

/// Host 1 by its own link, and host 0 by the bridge's interrupt, before either begins anew.
#[test]
fn both_sides_know_of_an_outage_while_it_lasts() {
    let side = |random| {
        move |core: Core, memory| {
            let mut link = NtbLink::open(&core, memory, random, us(1_000)).unwrap();
            core.sleep_until(us(1_990));
            let before = link.check();
            core.sleep_until(us(2_050));
            (before, link.check())
        }
    };
    let pulled = |hosts: &mut Hosts| {
        hosts.link_will_change(ENDS[1], us(2_000), false);
        hosts.link_will_change(ENDS[1], us(9_000), true);
    };
    let (found, _) = two(pulled, side(1 << 40), side(2 << 40));
    assert_eq!(found, [(Ok(()), Err(NtbError::Down)); 2]);
}
