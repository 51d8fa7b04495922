//! What a program believes that goes by what it is told.

use std::collections::BTreeMap;

use beeline_fabric::*;

/// What the program believes of a connection after an event.
pub fn after(state: &'static str, event: RemoteEvent) -> &'static str {
    match (state, event) {
        ("up", RemoteEvent::NotOperational) => "down",
        ("down", RemoteEvent::Operational) => "up",
        ("up" | "down", RemoteEvent::Lost) => "lost",
        (state, event) => panic!("{event:?} comes when it is {state}"),
    }
}

/// How many connections a program counts that goes by its events.
pub fn counted(told: &[Told], local: LocalSegment) -> BTreeMap<NodeId, u32> {
    let mut count = BTreeMap::<NodeId, u32>::new();
    for told in told {
        let Told::OfLocal(of, event) = told else { continue };
        if *of != local {
            continue;
        }
        match event {
            LocalEvent::Connect(node) => *count.entry(*node).or_default() += 1,
            LocalEvent::NotOperational(_) | LocalEvent::Operational(_) => {}
            LocalEvent::Disconnect(node) | LocalEvent::Lost(node) => {
                let counted = count.get_mut(node).expect("a connection ends that was told of");
                *counted = counted.checked_sub(1).expect("a connection ends that was told of");
            }
        }
    }
    count.retain(|_, count| *count != 0);
    count
}

/// Whether a link is up, for a program that goes by the events of a segment and knew how it was.
pub fn link_after(told: &[Told], local: LocalSegment, by: u32, was_up: bool) -> bool {
    told.iter().fold(was_up, |is_up, told| match told {
        Told::OfLocal(of, LocalEvent::NotOperational(adapter)) if (*of, adapter.number()) == (local, by) => {
            assert!(is_up, "a link goes down that was told of as down");
            false
        }
        Told::OfLocal(of, LocalEvent::Operational(adapter)) if (*of, adapter.number()) == (local, by) => {
            assert!(!is_up, "a link comes up that was told of as up");
            true
        }
        _ => is_up,
    })
}
