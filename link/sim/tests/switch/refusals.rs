//! What a switch carries nowhere, and switches that cannot be.

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::pcie::{Generation, Group, Kind, Tlp};

use super::{GROUP_AT, SPAN_BYTES, Star, base, group, id, settings};

fn star(groups: &[Group]) -> Result<Star, String> {
    let links = vec![settings(Generation::Gen3, 4, 8); 4];
    Star::new(Picoseconds::from_ns(100), &links, groups).map_err(|error| error.to_string())
}

/// A read of a group, and one of an address that nobody has, are answered as unsupported, to who asked; writes are dropped.
#[test]
fn access_without_an_owner_is_refused_and_reads_are_answered() {
    let mut star = star(&[group(&[1, 2, 3])]).unwrap();
    let read = |address, requester| Tlp { requester, tag: 7, ..Tlp::new(Kind::MemoryRead, address, 64) };
    star.run(&[
        (0, 2, read(GROUP_AT, id(2))),
        (0, 0, read(0x1000, 5)),
        (0, 0, Tlp::new(Kind::MemoryWrite, 0x1000, 64)),
        (0, 1, Tlp::new(Kind::MemoryWrite, base(1), 64)),
    ]);
    assert_eq!(star.refused, 4);
    let mut answers: Vec<_> = star.arrived.iter().map(|one| (one.port, one.tlp.kind, one.tlp.tag)).collect();
    answers.sort_by_key(|answer| answer.0);
    assert_eq!(answers, [(0, Kind::Completion, 7), (2, Kind::Completion, 7)]);
    star.assert_at_rest();
}

/// A group whose only receiver is the sender: there is nobody to copy to.
#[test]
fn copy_without_a_receiver_is_dropped() {
    let mut star = star(&[group(&[2])]).unwrap();
    star.run(&[(0, 2, Tlp::new(Kind::MemoryWrite, GROUP_AT, 64))]);
    assert_eq!((star.copies, star.arrived.len(), star.refused), (0, 0, 0));
    star.assert_at_rest();
}

#[test]
fn settings_that_make_no_switch_are_named() {
    let refused = |groups: &[Group]| star(groups).err().unwrap_or_default();
    let changed = |change: fn(&mut Group)| {
        let mut group = group(&[1, 2]);
        change(&mut group);
        refused(&[group])
    };
    assert_eq!(refused(&[group(&[1, 2])]), "");
    assert!(refused(&[group(&[])]).contains("name at least one port"));
    assert!(refused(&[group(&[4])]).contains("receiver 4 of multicast group 0: there is no such port"));
    assert!(refused(&[group(&[1, 1])]).contains("it is named twice"));
    assert!(refused(&[group(&[1]), group(&[2])]).contains("multicast group 0 and multicast group 1"));
    assert!(changed(|group| group.addresses.end -= 64).contains("are no power of two"));
    assert!(
        changed(|group| group.addresses = base(2)..base(2) + SPAN_BYTES).contains("port 2 and multicast")
    );
    assert!(changed(|group| group.receivers[0].overlay += 64).contains("its overlay is no multiple"));
    let mut links = vec![settings(Generation::Gen3, 4, 8); 2];
    links[1].max_payload_bytes = 256;
    links[1].advertised = links[0].advertised;
    let error = Star::new(Picoseconds::ZERO, &links, &[]).err().map(|error| error.to_string());
    let expected =
        "port 1 of a switch has max_payload_bytes = 256 and its upstream port 128; use one size for all";
    assert_eq!(error.as_deref(), Some(expected));
}
