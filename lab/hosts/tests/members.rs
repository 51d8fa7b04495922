//! Members on two hosts: what they do over shared memory they do across links.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use beeline_fabric::{Call, LocalEvent, NodeId, Refusal, RemoteEvent, SequenceStatus, Told, Value};
use beeline_hosts::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts};
use beeline_platforms::Platform;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use support::*;

#[test]
fn segment_is_connected_to_stored_to_and_removed_across_links() {
    let (results, hosts) = two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available(&mut member, 7, 4096);
            let (region, at) = member.map_local(local, part(0, 4096)).unwrap();
            // Until the other one has disconnected: its claim is seen, and then it is not.
            let first = member.call(remove(local, false));
            member.call(unmap_local(local)).unwrap();
            until(&mut member, |_| core.load(region, at + 4088) == 9);
            assert_eq!(member.call(remove(local, false)), Err(Refusal::Busy), "it is connected to");
            let mut bytes = vec![0; 4088];
            core.copy_out(region, at, &mut bytes);
            assert_eq!(bytes, pattern(4088, 1));
            until(&mut member, |member| member.call(remove(local, false)).is_ok());
            first
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected(&mut member, NODE_0, 7);
            let map = member.map(remote, part(0, 4096)).unwrap();
            let (status, start) = map.start();
            assert_eq!(status, SequenceStatus::Ok);
            map.copy_in(0, &pattern(4088, 1));
            assert_eq!(map.check(&start.unwrap()), SequenceStatus::Ok);
            map.store_word(4088, 9);
            map.flush();
            rest(&mut member, 20_000);
            member.call(unmap_remote(remote)).unwrap();
            member.call(disconnect(remote))
        },
    );
    assert_eq!(results, [Err(Refusal::Busy), Ok(Value::Nothing)], "it is mapped here");
    assert_eq!(faults(&hosts), 0);
}

/// Blocks are stored in sequences while either link goes down and comes up, and write-combined stores leave in any order.
#[test]
fn transfer_is_exact_although_links_go_down() {
    const BLOCKS: usize = 64;
    const BLOCK: usize = 1024;
    let is_done = AtomicBool::new(false);
    let happens = |hosts: &mut Hosts| {
        for flap in 0..40 {
            let host = HostId(flap % 2);
            // Between them, so that a member is in all that it does.
            let at = 6_000_000 + u64::from(flap) * 61_003;
            hosts.link_will_change(host, Picoseconds::from_ns(at), false);
            hosts.link_will_change(host, Picoseconds::from_ns(at + 1_000 + u64::from(flap) * 700), true);
        }
    };
    let (results, _) = two_of(
        disordered(),
        happens,
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available(&mut member, 7, (BLOCKS * BLOCK) as u64);
            let (region, at) = member.map_local(local, part(0, (BLOCKS * BLOCK) as u64)).unwrap();
            until(&mut member, |_| is_done.load(Relaxed));
            let mut bytes = vec![0; BLOCKS * BLOCK];
            core.copy_out(region, at, &mut bytes);
            for block in 0..BLOCKS {
                let found = &bytes[block * BLOCK..][..BLOCK];
                assert!(found == pattern(BLOCK, block as u64), "block {block} is not what was stored");
            }
            0
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected(&mut member, NODE_0, 7);
            let map = member.map(remote, part(0, (BLOCKS * BLOCK) as u64)).unwrap();
            until(&mut member, |member| member.now() > Picoseconds::from_ns(5_990_000));
            let mut again = 0;
            for block in 0..BLOCKS {
                let bytes = pattern(BLOCK, block as u64);
                again += store_block(&mut member, &map, block * BLOCK, &bytes, 20_000);
            }
            is_done.store(true, Relaxed);
            again
        },
    );
    assert!(results[1] > 0, "no sequence found that a link had been down");
}

/// Who connects and who removes at any time after each other: the barrier reads across, so their answers agree.
#[test]
fn segment_is_never_removed_under_a_connection() {
    const SEGMENTS: u32 = 60;
    let (current, held) = (AtomicU32::new(0), AtomicBool::new(false));
    let (results, _) = two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut random = SmallRng::seed_from_u64(11);
            for id in 1..=SEGMENTS {
                let local = available(&mut member, id, 64);
                current.store(id, Relaxed);
                rest(&mut member, random.random_range(1_000..9_000));
                until(&mut member, |member| member.call(remove(local, false)).is_ok());
                assert!(!held.load(Relaxed), "segment {id} is removed while it is connected to");
                current.store(0, Relaxed);
            }
            current.store(u32::MAX, Relaxed);
            0
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let mut random = SmallRng::seed_from_u64(12);
            let mut made = 0;
            while current.load(Relaxed) != u32::MAX {
                rest(&mut member, random.random_range(100..2_000));
                let id = current.load(Relaxed);
                let Ok(Value::Remote(remote, _)) = member.call(connect(NODE_0, id, Some(0))) else {
                    continue;
                };
                assert_eq!(current.load(Relaxed), id, "connected to segment {id}, which is removed");
                held.store(true, Relaxed);
                made += 1;
                rest(&mut member, random.random_range(100..3_000));
                held.store(false, Relaxed);
                member.call(disconnect(remote)).unwrap();
            }
            made
        },
    );
    assert!(results[1] > SEGMENTS / 4, "hardly any connection was made: {results:?}");
}

#[test]
fn host_that_is_silent_is_lost_within_the_declared_bound() {
    let (results, _) = two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available_by(adapter(), &mut member, create_told(7, 64, true));
            let lost_at = |wanted: LocalEvent| {
                let mut at = Picoseconds::ZERO;
                until(&mut member, |member| {
                    at = member.now();
                    std::iter::from_fn(|| member.next_told()).any(|told| told == Told::OfLocal(local, wanted))
                });
                at
            };
            let mut lost_at = lost_at;
            lost_at(LocalEvent::Connect(NODE_1));
            let at = lost_at(LocalEvent::Lost(NODE_1));
            assert_eq!(member.call(remove(local, false)), Ok(Value::Nothing), "its claim counts no more");
            at
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            connected(&mut member, NODE_0, 7);
            // A beat is due then, and it is the last one.
            core.sleep_until(member.now() + Picoseconds::from_ns(1_000_000));
            let last_beat = member.now();
            member.tend();
            last_beat
        },
    );
    let silence = results[0].since(results[1]);
    // The bound of 4 ms and a period, seen at a look each half of one.
    assert!((4_000_000..=5_500_000).contains(&silence.as_ns()), "{silence}");
}

/// A host's words come anew before it is admitted again, whichever side hears the other first.
#[test]
fn claims_of_a_session_that_is_over_are_not_told_again() {
    for down in [0, 1].map(HostId) {
        for later_us in (0..1_000).step_by(250) {
            claims_are_told_once(down, [0, later_us]);
            claims_are_told_once(down, [later_us, 0]);
        }
    }
}

fn claims_are_told_once(down: HostId, later_us: [u64; 2]) {
    let sleep = |core: &Core| {
        core.sleep_until(Picoseconds::from_ns(later_us[usize::from(core.host().0)] * 1_000));
    };
    let end = Picoseconds::from_ns(40_000_000);
    let (results, _) = two_of(
        settings(),
        |hosts| {
            hosts.link_will_change(down, Picoseconds::from_ns(6_000_000), false);
            hosts.link_will_change(down, Picoseconds::from_ns(20_000_000), true);
        },
        |core, wiring| {
            sleep(&core);
            let mut member = joined(&core, &wiring);
            // A callback is told as soon as a claim is there; a wait would look when the peer has cleared it.
            let local = available_by(adapter(), &mut member, create_told(7, 64, true));
            let mut seen = Vec::new();
            member.serve(end, |member| {
                while let Some(told) = member.next_told() {
                    let Told::OfLocal(_, event) = told else { panic!("{told:?}") };
                    seen.push(event);
                }
                false
            });
            assert!(member.is_joined(NODE_1), "it is there again");
            assert_eq!(member.call(remove(local, false)), Ok(Value::Nothing), "nobody is connected to it");
            rest(&mut member, 100_000);
            seen
        },
        |core, wiring| {
            sleep(&core);
            let mut member = joined(&core, &wiring);
            connected(&mut member, NODE_0, 7);
            member.serve(end, |_| false);
            rest(&mut member, 200_000);
            Vec::new()
        },
    );
    let told = [LocalEvent::Connect(NODE_1), LocalEvent::Lost(NODE_1)];
    let of_links = [LocalEvent::NotOperational(adapter()), LocalEvent::Operational(adapter())];
    let of_users: Vec<_> = results[0].iter().copied().filter(|told| !of_links.contains(told)).collect();
    assert_eq!(of_users, told, "{down:?} is down, hosts that are {later_us:?} us later");
}

#[test]
fn connection_to_a_host_that_is_silent_is_lost() {
    let (results, _) = two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            available(&mut member, 7, 64);
            rest(&mut member, 100_000);
            SequenceStatus::Ok
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected(&mut member, NODE_0, 7);
            let begun = member.call(Call::StartSequence(remote)).unwrap();
            let Value::Started(_, Some(start)) = begun else { panic!("{begun:?}") };
            let mut found = SequenceStatus::Ok;
            until(&mut member, |member| {
                let checked = member.call(Call::CheckSequence(remote, start));
                let Ok(Value::Checked(status)) = checked else { panic!("{checked:?}") };
                found = status;
                status != SequenceStatus::Ok
            });
            assert_eq!(member.call(connect(NODE_0, 7, Some(0))), Err(Refusal::NodeNotResponding));
            found
        },
    );
    assert_eq!(results[1], SequenceStatus::NotRetriable);
}

/// Both links are up all the time and nothing is lost, but a connection of a session that is over is none of the next one.
#[test]
fn sequence_of_a_session_that_is_over_is_not_retriable() {
    let (results, _) = two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            available(&mut member, 7, 64);
            rest(&mut member, 1_000_000);
            core.sleep_until(member.now() + Picoseconds::from_ns(10_000_000));
            rest(&mut member, 10_000_000);
            Vec::new()
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected(&mut member, NODE_0, 7);
            let map = member.map(remote, part(0, 64)).unwrap();
            let start = map.start().1.unwrap();
            until(&mut member, |member| !member.is_joined(NODE_0));
            until(&mut member, |member| member.is_joined(NODE_0));
            map.store_word(0, 7);
            let again = connected(&mut member, NODE_0, 7);
            let new = member.map(again, part(0, 64)).unwrap();
            let new_start = new.start().1.unwrap();
            vec![map.start().0, map.check(&start), new.check(&new_start)]
        },
    );
    use SequenceStatus::{NotRetriable, Ok};
    assert_eq!(results[1], [NotRetriable, NotRetriable, Ok]);
}

#[test]
fn removal_waits_for_a_host_whose_link_is_down_until_it_is_lost() {
    let (results, _) = two_of(
        settings(),
        |hosts| hosts.link_will_change(HostId(1), Picoseconds::from_ns(6_000_000), false),
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available(&mut member, 7, 64);
            until(&mut member, |member| member.now() > Picoseconds::from_ns(6_001_000));
            let first = member.call(remove(local, false));
            until(&mut member, |member| !member.is_joined(NODE_1));
            until(&mut member, |member| member.call(remove(local, false)).is_ok());
            first
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            until(&mut member, |member| member.now() > Picoseconds::from_ns(6_001_000));
            // Nobody knows whether a claim would arrive.
            member.call(connect(NODE_0, 7, Some(0)))
        },
    );
    assert_eq!(results[0], Err(Refusal::Busy));
    assert_eq!(results[1], Err(Refusal::NoLinkAccess));
}

#[test]
fn claim_is_taken_back_when_the_link_of_its_provider_is_down() {
    let (results, _) = two_of(
        settings(),
        |hosts| hosts.link_will_change(HostId(0), Picoseconds::from_ns(6_000_000), false),
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            available(&mut member, 7, 64);
            until(&mut member, |member| member.now() > Picoseconds::from_ns(6_100_000));
            Ok(Value::Nothing)
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            until(&mut member, |member| member.now() > Picoseconds::from_ns(6_001_000));
            member.call(connect(NODE_0, 7, Some(0)))
        },
    );
    assert_eq!(results[1], Err(Refusal::NoRemoteLinkAccess));
}

#[test]
fn user_of_a_segment_that_is_taken_by_force_is_told() {
    let (results, _) = two(
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available(&mut member, 7, 64);
            until(&mut member, |member| {
                member.call(Call::WaitLocal { local, timeout_nanos: Some(0) })
                    == Ok(Value::LocalEvent(LocalEvent::Connect(NODE_1)))
            });
            let removed = member.call(remove(local, true));
            rest(&mut member, 50_000);
            removed
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected(&mut member, NODE_0, 7);
            member.call(Call::WaitRemote { remote, timeout_nanos: None })
        },
    );
    assert_eq!(results, [Ok(Value::Nothing), Ok(Value::RemoteEvent(RemoteEvent::Lost))]);
}

/// Two hosts use a segment of a third behind the central switch; the one that stops is lost, and the other goes on.
#[test]
fn one_of_two_users_at_a_switch_is_lost_and_the_other_goes_on() {
    let platform = Platform::named("vpx3-1259-gen2x4-linux").unwrap();
    let mut machine =
        Hosts::new(hosts(&platform, &Shape::Switch { hosts: 3, devices: 0, groups: vec![] }).unwrap(), 1)
            .unwrap();
    let wiring = Wiring::new(&mut machine, 3);
    let is_done = AtomicBool::new(false);
    let mut programs: Vec<Program<'_, usize>> = Vec::new();
    for user in [1, 2] {
        let (wiring, is_done) = (wiring.clone(), &is_done);
        let program = move |core: Core| {
            let mut member = HostMember::new(&core, &wiring, 5);
            let remote = connected(&mut member, NODE_0, 7);
            let map = member.map(remote, part(64 * user, 64)).unwrap();
            let start = map.start().1.unwrap();
            map.copy_in(0, &pattern(64, user));
            assert_eq!(map.check(&start), SequenceStatus::Ok);
            if user == 1 {
                until(&mut member, |_| is_done.load(Relaxed));
                assert_eq!(map.check(&start), SequenceStatus::Ok, "nothing happened to it");
            }
            0
        };
        programs.push((HostId(user as u16), Box::new(program)));
    }
    let provider = |core: Core| {
        let mut member = HostMember::new(&core, &wiring, 5);
        let local = available(&mut member, 7, 256);
        let mut seen = Vec::new();
        until(&mut member, |member| {
            let waited = member.call(Call::WaitLocal { local, timeout_nanos: Some(0) });
            seen.extend(waited.ok());
            seen.contains(&Value::LocalEvent(LocalEvent::Lost(NodeId(12))))
        });
        assert!(!seen.contains(&Value::LocalEvent(LocalEvent::Lost(NODE_1))), "{seen:?}");
        assert_eq!(member.call(remove(local, false)), Err(Refusal::Busy), "the other one is connected");
        let (region, at) = member.map_local(local, part(0, 256)).unwrap();
        let mut bytes = [0; 128];
        core.copy_out(region, at + 64, &mut bytes);
        assert_eq!(bytes.to_vec(), [pattern(64, 1), pattern(64, 2)].concat());
        is_done.store(true, Relaxed);
        rest(&mut member, 100_000);
        seen.len()
    };
    programs.push((HostId(0), Box::new(provider)));
    let (results, _) = run(machine, programs);
    assert!(results[2] >= 3, "two came and one was lost: {results:?}");
}
