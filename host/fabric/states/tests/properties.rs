//! The model has its properties in every state, and each of them can fail.

use beeline_fabric_states::{Fault, Scope};
use stateright::{Checker, HasDiscoveries, Model};

#[test]
fn properties_hold_in_every_state() {
    for (name, scope) in Scope::all() {
        let checker = scope.checker().spawn_bfs().join();
        println!("{name}: {} states", checker.unique_state_count());
        checker.assert_properties();
    }
}

#[test]
fn rule_that_is_left_out_is_found_by_the_property_that_it_is_for() {
    let faults = [
        (
            Scope::lives(),
            Fault::RemovalForgetsUsers,
            "a connection ends by force, by death or by its program",
        ),
        (Scope::lives(), Fault::EntryIsUsedAgainUnderAClaim, "an entry is not used again under a claim"),
        (Scope::waits(), Fault::ConnectDoesNotRing, "an event that a program waits for is told"),
        (Scope::waits(), Fault::DisconnectDoesNotRing, "an event that a program waits for is told"),
        (Scope::waits(), Fault::ForceDoesNotRing, "an event that a program waits for is told"),
        (Scope::groups(), Fault::EntryIsUsedAgainUnderAClaim, "an entry is not used again under a claim"),
        (Scope::any(), Fault::LinkDoesNotRing, "an event that a program waits for is told"),
        (Scope::notices(), Fault::NotifyDoesNotRing, "an event that a program waits for is told"),
        (Scope::links(), Fault::LinkDoesNotRing, "an event that a program waits for is told"),
        (Scope::deaths(), Fault::DeathIsTwoEvents, "no more connections end than were made"),
        (Scope::links(), Fault::LostBeforeConnect, "a connection is told of before its end"),
    ];
    for (scope, fault, property) in faults {
        let faulty = Scope { fault: Some(fault), ..scope };
        let checker = faulty.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        assert!(checker.discoveries().contains_key(property), "{fault:?} is not found");
    }
}
