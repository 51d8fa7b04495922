//! Segments of memory of devices: stored to by processors and devices of other hosts, without main memory or the host whose segment it is.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use beeline_fabric::{Call, LocalSegment, NodeId, Refusal, SegmentId, SequenceStatus, Value};
use beeline_hosts::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts, HostsSettings, Place};
use beeline_platforms::Platform;
use support::*;

const BYTES: usize = 4096;
const GROUP: SegmentId = SegmentId(0);
const OF_DEVICE: u32 = 7;

/// Hosts and devices at a switch, with a group of all hosts; write-combined stores leave in any order.
fn switched(hosts: u16, devices: u16) -> HostsSettings {
    let shape = Shape::Switch { hosts, devices, groups: vec![(0..hosts).collect()] };
    let mut settings =
        beeline_hosts::hosts(&Platform::named("vpx3-1259-gen2x4-linux").unwrap(), &shape).unwrap();
    let disordered = disordered();
    (settings.core, settings.root) = (disordered.core, disordered.root);
    settings
}

fn empty(member: &mut HostMember, id: u32) -> LocalSegment {
    let mut call = create(id, 0);
    if let Call::CreateSegment { is_empty, .. } = &mut call {
        *is_empty = true;
    }
    let Ok(Value::Local(local, _)) = member.call(call) else { panic!("no segment") };
    local
}

/// A segment of the memory of a device, that others connect to.
fn attached(member: &mut HostMember, device: Device) -> LocalSegment {
    let local = empty(member, OF_DEVICE);
    let address = device.addresses().start;
    for wrong in [address - 64, address + 64, 0, u64::MAX] {
        let refused = member.attach_physical_memory(local, wrong, BYTES as u64);
        assert_eq!(refused, Err(Refusal::IllegalParameter), "{wrong:#x} is memory of no device");
    }
    member.attach_physical_memory(local, address, BYTES as u64).unwrap();
    member.call(Call::Prepare(local, adapter())).unwrap();
    member.call(Call::SetAvailable(local, adapter())).unwrap();
    local
}

fn memory_of(hosts: &mut Hosts, device: &Device) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    hosts.copy_out(Place { host: device.at, core: 0 }, device.memory(), 0, &mut bytes);
    bytes
}

/// Stores lines as the engine of a device does, once it is told where.
fn engine<'a>(to: &'a AtomicU64, seed: u64, is_done: &'a AtomicBool) -> HostProgram<'a, Option<Device>> {
    Box::new(move |core, wiring| {
        while to.load(Relaxed) == 0 {
            core.sleep_until(core.now() + Picoseconds::from_ns(1_000));
        }
        let address = to.load(Relaxed);
        for (line, bytes) in (0_u64..).zip(pattern(BYTES, seed).as_chunks::<64>().0) {
            let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            core.store_line(address + line * 64, &words.collect::<Vec<_>>().try_into().unwrap());
        }
        core.fence();
        // An answer comes behind all of them, but from a group, which answers no reads.
        core.load_across(address);
        is_done.store(true, Relaxed);
        wiring.devices().iter().copied().find(|device| device.at == core.host())
    })
}

/// A host's program beside others that are over when it is.
fn provider<'a>(device: usize, is_done: &'a AtomicBool) -> HostProgram<'a, Option<Device>> {
    Box::new(move |core, wiring| {
        let mut member = among(&core, &wiring, 2);
        let device = wiring.devices()[device];
        let local = attached(&mut member, device);
        until(&mut member, |_| is_done.load(Relaxed));
        until(&mut member, |member| member.call(remove(local, false)).is_ok());
        Some(device)
    })
}

#[test]
fn processor_stores_into_the_device_of_another_host_although_its_link_goes_down() {
    const BLOCK: usize = 512;
    let (is_done, again) = (AtomicBool::new(false), AtomicU32::new(0));
    let writer: HostProgram<'_, Option<Device>> = Box::new(|core, wiring| {
        let mut member = among(&core, &wiring, 2);
        let remote = connected(&mut member, NodeId(4), OF_DEVICE);
        let map = member.map(remote, part(0, BYTES as u64)).unwrap();
        assert!(wiring.devices()[0].addresses().contains(&map.io_address()));
        until(&mut member, |member| member.now() > Picoseconds::from_ns(5_990_000));
        for block in 0..BYTES / BLOCK {
            loop {
                rest(&mut member, 20_000);
                let (SequenceStatus::Ok, Some(start)) = map.start() else { continue };
                map.copy_in(block * BLOCK, &pattern(BYTES, 3)[block * BLOCK..][..BLOCK]);
                match map.check(&start) {
                    SequenceStatus::Ok => break,
                    _ => again.fetch_add(1, Relaxed),
                };
            }
        }
        member.call(unmap_remote(remote)).unwrap();
        member.call(disconnect(remote)).unwrap();
        is_done.store(true, Relaxed);
        rest(&mut member, 100_000);
        None
    });
    let happens = |hosts: &mut Hosts| {
        for flap in 0..400 {
            let at = 6_000_000 + flap * 2_003 + flap * flap;
            // Of the device: nothing but loads that are not answered tells of it.
            hosts.link_will_change(HostId(2), Picoseconds::from_ns(at), false);
            hosts.link_will_change(HostId(2), Picoseconds::from_ns(at + 200 + flap), true);
        }
    };
    let idle: HostProgram<'_, Option<Device>> = Box::new(|_, _| None);
    let programs = vec![provider(0, &is_done), writer, idle];
    let (results, mut hosts) = each_beside(switched(2, 1), &[BYTES], happens, programs);
    assert!(memory_of(&mut hosts, &results[0].unwrap()) == pattern(BYTES, 3));
    assert!(again.load(Relaxed) > 0, "no sequence found that a link had been down");
    assert!(hosts.is_at_rest());
}

#[test]
fn segment_is_still_empty_when_too_many_are_attached() {
    let program: HostProgram<'_, ()> = Box::new(|core, wiring| {
        let mut member = HostMember::new(&core, &wiring, 5);
        let address = wiring.devices()[0].addresses().start;
        let mut attached = Vec::new();
        let refused = loop {
            let local = empty(&mut member, attached.len() as u32 + 1);
            match member.attach_physical_memory(local, address, 64) {
                Ok(()) => attached.push(local),
                Err(refusal) => {
                    assert_eq!(refusal, Refusal::MaxEntries);
                    break local;
                }
            }
        };
        assert_eq!(member.attach_physical_memory(refused, address, 64), Err(Refusal::MaxEntries));
        member.call(remove(attached[0], false)).unwrap();
        assert_eq!(member.attach_physical_memory(refused, address, 64), Ok(()));
    });
    let idle: HostProgram<'_, ()> = Box::new(|_, _| ());
    let other: HostProgram<'_, ()> = Box::new(|_, _| ());
    each_beside(switched(2, 1), &[BYTES], |_| {}, vec![program, other, idle]);
}

#[test]
fn sequence_finds_that_the_link_of_a_device_is_down_or_was() {
    let is_done = AtomicBool::new(false);
    let us = |at: u64| Picoseconds::from_ns(at * 1_000);
    let happens = |hosts: &mut Hosts| {
        for (at, is_up) in [(7_000, false), (8_000, true), (9_000, false), (9_050, true)] {
            hosts.link_will_change(HostId(2), us(at), is_up);
        }
    };
    let writer: HostProgram<'_, Option<Device>> = Box::new(|core, wiring| {
        let mut member = among(&core, &wiring, 2);
        let remote = connected(&mut member, NodeId(4), OF_DEVICE);
        let map = member.map(remote, part(0, BYTES as u64)).unwrap();
        let mut checked = Vec::new();
        for (start, store, check) in
            [(6_900, 7_010, 7_020), (7_500, 7_510, 8_400), (8_500, 9_020, 9_500), (9_600, 9_610, 9_620)]
        {
            member.serve(us(start), |_| false);
            let (status, start) = map.start();
            member.serve(us(store), |_| false);
            map.store_word(0, store);
            map.flush();
            member.serve(us(check), |_| false);
            checked.push((status, start.map(|start| map.check(&start))));
        }
        let (ok, pending) = (SequenceStatus::Ok, SequenceStatus::Pending);
        let lost = (ok, Some(SequenceStatus::Retriable));
        // It is down at the check, at the start, in between and not at all.
        assert_eq!(checked, [(ok, Some(pending)), (pending, None), lost, (ok, Some(ok))]);
        member.call(unmap_remote(remote)).unwrap();
        member.call(disconnect(remote)).unwrap();
        is_done.store(true, Relaxed);
        rest(&mut member, 100_000);
        None
    });
    let idle: HostProgram<'_, Option<Device>> = Box::new(|_, _| None);
    let programs = vec![provider(0, &is_done), writer, idle];
    each_beside(switched(2, 1), &[BYTES], happens, programs);
}

#[test]
fn device_stores_into_the_device_of_another_host_and_into_a_group_once_it_is_registered() {
    let (to_device, to_group) = (AtomicU64::new(0), AtomicU64::new(0));
    let (refused_is_done, is_stored) = (AtomicBool::new(false), AtomicBool::new(false));
    let (is_done, met) = (AtomicBool::new(false), AtomicU32::new(0));
    let copy = |core: &Core, member: &mut HostMember, held: HeldGroup| {
        let (region, at) = member.map_local(held.local, part(0, BYTES as u64)).unwrap();
        let mut bytes = vec![0; BYTES];
        core.copy_out(region, at, &mut bytes);
        bytes
    };
    let join = |member: &mut HostMember| {
        let held = member.join_group(GROUP, BYTES as u64).unwrap();
        member.call(Call::Prepare(held.local, adapter())).unwrap();
        member.call(Call::SetAvailable(held.local, adapter())).unwrap();
        held
    };
    let first: HostProgram<'_, Option<Device>> = Box::new(|core, wiring| {
        let mut member = among(&core, &wiring, 2);
        attached(&mut member, wiring.devices()[0]);
        let held = join(&mut member);
        meet(&mut member, &met, 2);
        until(&mut member, |_| refused_is_done.load(Relaxed));
        rest(&mut member, 50_000);
        assert!(copy(&core, &mut member, held).iter().all(|byte| *byte == 0), "the device is not registered");
        meet(&mut member, &met, 4);
        until(&mut member, |_| is_done.load(Relaxed));
        // No answer says that copies have come.
        until(&mut member, |member| copy(&core, member, held) == pattern(BYTES, 6));
        Some(wiring.devices()[0])
    });
    let second: HostProgram<'_, Option<Device>> = Box::new(|core, wiring| {
        let mut member = among(&core, &wiring, 2);
        let held = join(&mut member);
        meet(&mut member, &met, 2);
        let group = support::connected(&mut member, NodeId::GROUPS, GROUP.0);
        let window = member.map_group(group, GROUP, part(0, BYTES as u64)).unwrap().io_address();
        let remote = connected(&mut member, NodeId(4), OF_DEVICE);
        let map = member.map(remote, part(0, BYTES as u64)).unwrap();
        to_group.store(window, Relaxed);
        until(&mut member, |_| refused_is_done.load(Relaxed));
        meet(&mut member, &met, 4);
        assert_eq!(member.register_requester(HostId(1)), Err(Refusal::IllegalParameter), "it is a host");
        member.register_requester(HostId(3)).unwrap();
        to_device.store(map.io_address(), Relaxed);
        until(&mut member, |_| is_stored.load(Relaxed));
        to_group.store(window, Relaxed);
        until(&mut member, |_| is_done.load(Relaxed));
        // No answer says that copies have come.
        until(&mut member, |member| copy(&core, member, held) == pattern(BYTES, 6));
        rest(&mut member, 100_000);
        None
    });
    let device: HostProgram<'_, Option<Device>> = Box::new(|core, wiring| {
        engine(&to_group, 5, &refused_is_done)(core.clone(), wiring.clone());
        to_group.store(0, Relaxed);
        engine(&to_device, 4, &is_stored)(core.clone(), wiring.clone());
        engine(&to_group, 6, &is_done)(core, wiring)
    });
    let idle: HostProgram<'_, Option<Device>> = Box::new(|_, _| None);
    let programs = vec![first, second, idle, device];
    let (results, mut hosts) = each_beside(switched(2, 2), &[BYTES, BYTES], |_| {}, programs);
    let target = results[0].unwrap();
    assert_eq!((target.at, results[3].map(|device| device.at)), (HostId(2), Some(HostId(3))));
    assert!(memory_of(&mut hosts, &target) == pattern(BYTES, 4));
    assert!(hosts.is_at_rest());
    // What was not taken is counted where it came: the lines of one block, in pieces.
    let faults = [0, 1].map(|host| hosts.faults(HostId(host)));
    assert!(faults.iter().all(|faults| *faults >= BYTES as u64 / 64), "{faults:?}");
}

#[test]
fn device_that_is_no_longer_registered_stores_nothing() {
    let (to, again) = (AtomicU64::new(0), AtomicU64::new(0));
    let (is_stored, is_refused) = (AtomicBool::new(false), AtomicBool::new(false));
    let owner: HostProgram<'_, Option<Device>> = Box::new(|core, wiring| {
        let mut member = among(&core, &wiring, 2);
        let local = available(&mut member, 7, BYTES as u64);
        let (region, at) = member.map_local(local, part(0, BYTES as u64)).unwrap();
        let stored = || {
            let mut bytes = vec![0; BYTES];
            core.copy_out(region, at, &mut bytes);
            bytes
        };
        member.register_requester(HostId(2)).unwrap();
        to.store(region.address + at as u64, Relaxed);
        until(&mut member, |_| is_stored.load(Relaxed));
        assert!(stored() == pattern(BYTES, 4));
        member.unregister_requester(HostId(2)).unwrap();
        again.store(region.address + at as u64, Relaxed);
        until(&mut member, |_| is_refused.load(Relaxed));
        rest(&mut member, 50_000);
        assert!(stored() == pattern(BYTES, 4), "it is not registered any more");
        None
    });
    let other: HostProgram<'_, Option<Device>> = Box::new(|core, wiring| {
        let mut member = among(&core, &wiring, 2);
        until(&mut member, |_| is_refused.load(Relaxed));
        None
    });
    let device: HostProgram<'_, Option<Device>> = Box::new(|core, wiring| {
        engine(&to, 4, &is_stored)(core.clone(), wiring.clone());
        engine(&again, 5, &is_refused)(core, wiring)
    });
    each_beside(switched(2, 1), &[BYTES], |_| {}, vec![owner, other, device]);
}
