//! A fabric as tables for a terminal.

use beeline_fabric::NodeId;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::held::Holder;
use super::nodes::{Adapter, GROUP, Member, Node, Segment, State};
use super::view::View;

/// Tables of members, segments and memory that several hold, and what is to be done about the dead.
pub fn text(view: &View) -> String {
    if view.nodes.is_empty() {
        return format!("no node of a fabric in {}", view.domain);
    }
    let mut parts = vec![members(view)];
    if view.nodes.iter().flat_map(|node| &node.members).any(|member| !member.segments.is_empty()) {
        parts.push(segments(view));
    }
    if !view.held.is_empty() {
        parts.push(held(view));
    }
    parts.extend(view.nodes.iter().filter_map(about_the_dead));
    let left = view.left_of_groups;
    if left.members > 0 {
        let (names, count, groups) = (left.names, left.members, NodeId::GROUPS.0);
        parts.push(format!(
            "groups: {names} names of {count} dead members; `beeline fabric rm {groups}` takes them out"
        ));
    }
    parts.join("\n")
}

fn about_the_dead(node: &Node) -> Option<String> {
    let dead: Vec<_> = node.members.iter().filter(|member| member.state == State::Dead).collect();
    let names: usize = dead.iter().map(|member| member.names).sum();
    let (count, node) = (dead.len(), node.node);
    (count > 0).then(|| {
        format!(
            "node {node}: {names} names of {count} dead members; `beeline fabric rm {node}` takes them out"
        )
    })
}

fn table<const N: usize>(header: [&str; N], first_number: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    for column in table.column_iter_mut().skip(first_number) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn members(view: &View) -> String {
    let mut table = table(["node", "pid", "state", "adapters", "segments", "connects", "used by"], 4);
    for node in &view.nodes {
        if node.members.is_empty() {
            let what = if node.error.is_some() { "not to be read" } else { "nobody" };
            table.add_row([&node.node.to_string(), "", what, "", "", "", ""]);
        }
        for member in &node.members {
            let known =
                |number: u32| if member.state == State::Alive { number.to_string() } else { String::new() };
            let segments = match member.state {
                State::Alive => member.segments.len().to_string(),
                State::Silent | State::Dead => format!("{} names", member.names),
            };
            table.add_row([
                node.node.to_string(),
                pid(member),
                member.state.word().to_owned(),
                links(&member.adapters),
                segments,
                known(member.connections),
                known(member.consumers),
            ]);
        }
    }
    table.to_string()
}

fn segments(view: &View) -> String {
    let mut table = table(["node", "segment", "pid", "state", "bytes", "connections", "maps"], 4);
    for node in &view.nodes {
        for member in &node.members {
            for segment in &member.segments {
                let state = match segment.adapters.as_slice() {
                    [] => segment.state.to_owned(),
                    adapters => format!("{} on {}", segment.state, list(adapters)),
                };
                table.add_row([
                    node.node.to_string(),
                    label(segment),
                    pid(member),
                    state,
                    segment.bytes.to_string(),
                    segment.connections.to_string(),
                    segment.maps.to_string(),
                ]);
            }
        }
    }
    table.to_string()
}

/// A segment as people name it: one that several may hold is said to be so.
pub fn label(segment: &Segment) -> String {
    match (segment.holding, segment.id) {
        (GROUP, id) => format!("group {id}"),
        (_, id) if segment.memory.is_some() => format!("{id}, shared"),
        (_, id) => id.to_string(),
    }
}

fn held(view: &View) -> String {
    let mut table = table(["memory", "bytes", "holders"], 3);
    for held in &view.held {
        let what = match held.node {
            None => format!("group {}", held.id),
            Some(node) => format!("segment {} of node {node}", held.id),
        };
        let holders: Vec<_> = held.holders.iter().map(holder).collect();
        let count = holders.len();
        table.add_row([what, held.bytes.to_string(), format!("{count}: {}", holders.join(", "))]);
    }
    table.to_string()
}

fn holder(holder: &Holder) -> String {
    format!("pid {} of node {}", process(holder.pid), holder.node)
}

/// The process of a member.
pub fn pid(member: &Member) -> String {
    process(member.pid)
}

fn process(pid: Option<u32>) -> String {
    match pid {
        // The kernel's answer for a process of another pid namespace.
        Some(0) => "elsewhere".to_owned(),
        Some(pid) => pid.to_string(),
        None => String::new(),
    }
}

/// Adapters and how their links are, `0 up, 1 down`.
pub fn links(adapters: &[Adapter]) -> String {
    let link = |it: &Adapter| format!("{} {}", it.adapter, if it.is_up { "up" } else { "down" });
    adapters.iter().map(link).collect::<Vec<_>>().join(", ")
}

/// Numbers with commas between.
pub fn list(numbers: &[u8]) -> String {
    numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
}
