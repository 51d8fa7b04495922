//! What differs between two looks at a fabric, a line for each change.

use std::collections::BTreeMap;

use super::nodes::Member;
use super::table::{label, links, list};
use super::view::View;

/// What has changed, in words.
pub fn changes(before: &View, now: &View) -> Vec<String> {
    let (old, new) = (facts(before), facts(now));
    let gone = old.iter().filter(|(what, _)| !new.contains_key(*what)).map(|(what, _)| format!("- {what}"));
    let other = new.iter().filter_map(|(what, is)| match old.get(what) {
        None => Some(format!("+ {what}: {is}")),
        Some(was) if was != is => Some(format!("~ {what}: {was} -> {is}")),
        Some(_) => None,
    });
    gone.chain(other).collect()
}

/// Each member and segment by name, and what is to be said of it: a change is one that differs.
fn facts(view: &View) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for node in &view.nodes {
        let number = node.node;
        for member in &node.members {
            let name = name(member);
            facts.insert(format!("node {number} member {name}"), of_member(member));
            // A segment that is not there any more may have had the id of one that is.
            for segment in &member.segments {
                let what = format!("node {number} segment {} of {name}", label(segment));
                let (bytes, state) = (segment.bytes, segment.state);
                let (connections, maps) = (segment.connections, segment.maps);
                let on = match segment.adapters.as_slice() {
                    [] => String::new(),
                    adapters => format!(" on {}", list(adapters)),
                };
                let is = format!("{bytes} bytes, {state}{on}, {connections} connections, {maps} maps");
                facts.insert(what, is);
            }
        }
    }
    facts
}

fn of_member(member: &Member) -> String {
    let Member { adapters, connections, consumers, .. } = member;
    let links = links(adapters);
    match &member.error {
        None if links.is_empty() => member.state.word().to_owned(),
        None => format!("alive, adapters {links}, connects {connections}, used by {consumers}"),
        Some(_) => "silent".to_owned(),
    }
}

fn name(member: &Member) -> String {
    match member.pid {
        Some(pid) if pid != 0 => format!("pid {pid}"),
        _ => member.member.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::held::Left;
    use super::super::nodes::{Adapter, Node, Segment, State};
    use super::*;

    fn view(is_up: bool, segments: &[(u32, u32)]) -> View {
        let segment = |&(id, connections)| {
            let (bytes, state, adapters) = (64, "available", vec![0]);
            let (holding, memory) = ("alone", None);
            Segment { id, bytes, holding, memory, state, adapters, connections, maps: 0 }
        };
        let member = Member {
            member: "00000000000000ff".to_owned(),
            state: State::Alive,
            pid: Some(7),
            names: segments.len(),
            error: None,
            adapters: vec![Adapter { adapter: 0, is_up, changes: 0 }],
            connections: 0,
            consumers: 1,
            segments: segments.iter().map(segment).collect(),
        };
        let nodes = vec![Node { node: 4, error: None, members: vec![member] }];
        View { domain: "/d".to_owned(), nodes, held: Vec::new(), left_of_groups: Left::default() }
    }

    #[test]
    fn what_comes_goes_and_differs_is_said_and_nothing_else() {
        let before = view(true, &[(1, 0), (2, 0)]);
        assert_eq!(changes(&before, &before), Vec::<String>::new());
        assert_eq!(
            changes(&before, &view(false, &[(2, 3), (5, 0)])),
            [
                "- node 4 segment 1 of pid 7",
                "~ node 4 member pid 7: alive, adapters 0 up, connects 0, used by 1 -> alive, adapters 0 down, \
                 connects 0, used by 1",
                "~ node 4 segment 2 of pid 7: 64 bytes, available on 0, 0 connections, 0 maps -> 64 bytes, available \
                 on 0, 3 connections, 0 maps",
                "+ node 4 segment 5 of pid 7: 64 bytes, available on 0, 0 connections, 0 maps",
            ]
        );
    }
}
