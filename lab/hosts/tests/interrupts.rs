//! Interrupts between hosts: counts that are pushed behind stores.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use beeline_fabric::{InterruptNumber, Refusal};
use beeline_hosts::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::HostId;
use support::*;

const NUMBER: InterruptNumber = InterruptNumber(9);
const ALONE: InterruptOptions =
    InterruptOptions { number: Some(NUMBER), is_counting: false, is_shared: false };
const COUNTING: InterruptOptions = InterruptOptions { is_counting: true, ..ALONE };
const SHARED: InterruptOptions = InterruptOptions { is_shared: true, ..COUNTING };

fn us(at: u64) -> Picoseconds {
    Picoseconds::from_ns(at * 1_000)
}

fn is_taken(member: &mut HostMember, interrupt: &mut Interrupt) -> bool {
    let now = member.now();
    match member.wait_for_interrupt(interrupt, now) {
        Ok(()) => true,
        Err(refusal) => {
            assert_eq!(refusal, Refusal::Timeout);
            false
        }
    }
}

/// Stores are write-combined and leave in any order; whoever takes the interrupt behind them has them all, without a fence.
#[test]
fn interrupt_comes_behind_the_stores_before_it() {
    const ROUNDS: u32 = 40;
    let taken = AtomicU32::new(0);
    two_of(
        disordered(),
        |_| {},
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available(&mut member, 7, 1024);
            let (region, at) = member.map_local(local, part(0, 1024)).unwrap();
            let mut interrupt = member.create_interrupt(COUNTING).unwrap();
            for round in 0..ROUNDS {
                member.wait_for_interrupt(&mut interrupt, Picoseconds::from_ns(3_000_000_000)).unwrap();
                let mut bytes = vec![0; 1000];
                core.copy_out(region, at, &mut bytes);
                assert!(bytes == pattern(1000, round.into()), "round {round}");
                taken.store(round + 1, Relaxed);
            }
            rest(&mut member, 50_000);
            assert!(!is_taken(&mut member, &mut interrupt));
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected(&mut member, NODE_0, 7);
            let map = member.map(remote, part(0, 1024)).unwrap();
            let mut interrupt = member.connect_interrupt(NODE_0, NUMBER, None).unwrap();
            for round in 0..ROUNDS {
                map.copy_in(0, &pattern(1000, round.into()));
                member.trigger(&mut interrupt).unwrap();
                until(&mut member, |_| taken.load(Relaxed) > round);
            }
        },
    );
}

#[test]
fn triggers_between_two_waits_are_one_unless_they_count() {
    let met = AtomicU32::new(0);
    two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut plain = member.create_interrupt(ALONE).unwrap();
            assert_eq!(member.create_interrupt(ALONE).err(), Some(Refusal::IntnoUsed));
            assert_eq!(member.create_interrupt(SHARED).err(), Some(Refusal::IntnoUsed));
            let counting = InterruptOptions { number: None, ..COUNTING };
            let mut counting = member.create_interrupt(counting).unwrap();
            met.store(counting.number.0, Relaxed);
            until(&mut member, |_| met.load(Relaxed) == 0);
            rest(&mut member, 50_000);
            let taken =
                |member: &mut HostMember, it: &mut Interrupt| (0..9).filter(|_| is_taken(member, it)).count();
            assert_eq!((taken(&mut member, &mut plain), taken(&mut member, &mut counting)), (1, 3));
            member.remove_interrupt(plain).unwrap();
            met.store(1, Relaxed);
            rest(&mut member, 100_000);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            until(&mut member, |_| met.load(Relaxed) != 0);
            let number = InterruptNumber(met.load(Relaxed));
            let connected =
                [NUMBER, number].map(|number| member.connect_interrupt(NODE_0, number, None).unwrap());
            let [mut plain, mut counting] = connected;
            for _ in 0..3 {
                member.trigger(&mut plain).unwrap();
                member.trigger(&mut counting).unwrap();
            }
            met.store(0, Relaxed);
            until(&mut member, |_| met.load(Relaxed) == 1);
            rest(&mut member, 20_000);
            assert_eq!(member.trigger(&mut plain), Err(Refusal::NotConnected), "it is removed");
            assert_eq!(member.trigger(&mut counting), Ok(()));
            let gone = member.connect_interrupt(NODE_0, NUMBER, Some(0)).err();
            assert_eq!(gone, Some(Refusal::NoSuchIntno));
            member.disconnect_interrupt(counting).unwrap();
        },
    );
}

#[test]
fn one_trigger_comes_to_each_interrupt_of_a_name() {
    let named = InterruptOptions { number: Some(InterruptNumber::of_name(b"alarm")), ..SHARED };
    let step = AtomicU32::new(0);
    two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut made =
                vec![member.create_interrupt(named).unwrap(), member.create_interrupt(named).unwrap()];
            assert_eq!(
                member.create_interrupt(InterruptOptions { is_shared: false, ..named }).err(),
                Some(Refusal::IntnoUsed)
            );
            let taken = |member: &mut HostMember, made: &mut Vec<Interrupt>| {
                made.iter_mut().map(|it| (0..9).filter(|_| is_taken(member, it)).count()).collect::<Vec<_>>()
            };
            until(&mut member, |_| step.load(Relaxed) == 1);
            rest(&mut member, 20_000);
            assert_eq!(taken(&mut member, &mut made), [1, 1]);
            // One that is removed, and one that is made since.
            member.remove_interrupt(made.remove(0)).unwrap();
            made.push(member.create_interrupt(named).unwrap());
            rest(&mut member, 20_000);
            step.store(2, Relaxed);
            until(&mut member, |_| step.load(Relaxed) == 3);
            rest(&mut member, 20_000);
            assert_eq!(taken(&mut member, &mut made), [2, 2]);
            made.into_iter().for_each(|it| member.remove_interrupt(it).unwrap());
            rest(&mut member, 20_000);
            step.store(4, Relaxed);
            rest(&mut member, 100_000);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let number = InterruptNumber::of_name(b"alarm");
            let mut alarm = member.connect_interrupt(NODE_0, number, None).unwrap();
            // The names of both have come.
            rest(&mut member, 20_000);
            for (before, after) in [(0, 1), (2, 3)] {
                until(&mut member, |_| step.load(Relaxed) == before);
                member.trigger(&mut alarm).unwrap();
                if before == 2 {
                    // Who connects now finds both, too.
                    let mut another = member.connect_interrupt(NODE_0, number, None).unwrap();
                    member.trigger(&mut another).unwrap();
                }
                step.store(after, Relaxed);
            }
            until(&mut member, |_| step.load(Relaxed) == 4);
            assert_eq!(member.trigger(&mut alarm), Err(Refusal::NotConnected));
        },
    );
}

/// What is triggered while the link of the other host is down comes when that is up again; where the own link is down it is refused.
#[test]
fn trigger_outlasts_a_link_of_the_other_host_and_is_refused_by_the_own() {
    two_of(
        settings(),
        |hosts| {
            hosts.link_will_change(HostId(0), us(6_000), false);
            hosts.link_will_change(HostId(0), us(7_000), true);
            hosts.link_will_change(HostId(1), us(8_000), false);
            hosts.link_will_change(HostId(1), us(8_100), true);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut interrupt = member.create_interrupt(COUNTING).unwrap();
            assert_eq!(member.wait_for_interrupt(&mut interrupt, us(6_900)), Err(Refusal::Timeout));
            assert_eq!(member.wait_for_interrupt(&mut interrupt, us(7_900)), Ok(()));
            assert!(!is_taken(&mut member, &mut interrupt));
            rest(&mut member, 1_000_000);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut connected = member.connect_interrupt(NODE_0, NUMBER, None).unwrap();
            member.serve(us(6_500), |_| false);
            assert_eq!(member.trigger(&mut connected), Ok(()), "nothing has told of the other link");
            member.serve(us(8_050), |_| false);
            assert_eq!(member.trigger(&mut connected), Err(Refusal::NoLinkAccess));
            // The other member ends: its host is silent.
            member.serve(us(20_000), |_| false);
            assert_eq!(member.trigger(&mut connected), Err(Refusal::NotConnected));
        },
    );
}

#[test]
fn connection_of_a_session_that_is_over_triggers_nothing() {
    /// In the session that ends, after one that is taken, and in the next one.
    const TRIGGERS: [usize; 2] = [1, 3];
    let results = two_of(
        settings(),
        |hosts| {
            hosts.link_will_change(HostId(1), us(6_000), false);
            hosts.link_will_change(HostId(1), us(20_000), true);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut interrupt = member.create_interrupt(COUNTING).unwrap();
            member.wait_for_interrupt(&mut interrupt, us(5_900)).unwrap();
            // It does not look from here on until the next session has its triggers.
            member.serve(us(42_000), |_| false);
            assert!(member.is_joined(NODE_1), "it is there again");
            (0..9).filter(|_| is_taken(&mut member, &mut interrupt)).count()
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut connected = member.connect_interrupt(NODE_0, NUMBER, None).unwrap();
            assert_eq!(member.trigger(&mut connected), Ok(()));
            member.serve(us(5_950), |_| false);
            (0..TRIGGERS[0]).for_each(|_| member.trigger(&mut connected).unwrap());
            member.serve(us(40_000), |_| false);
            assert_eq!(member.trigger(&mut connected), Err(Refusal::NotConnected));
            let mut connected = member.connect_interrupt(NODE_0, NUMBER, None).unwrap();
            (0..TRIGGERS[1]).for_each(|_| member.trigger(&mut connected).unwrap());
            rest(&mut member, 5_000_000);
            TRIGGERS[0] + TRIGGERS[1]
        },
    );
    assert_eq!(results.0, [4, 4]);
}
