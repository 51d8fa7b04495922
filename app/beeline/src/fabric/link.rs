//! `beeline fabric link`.

use beeline_domain::Life;

use super::args::{LinkArgs, LinkState, node_id};
use super::view::{cannot_look, no_such_node, open};
use crate::failure::Failure;
use crate::out;

/// Runs `beeline fabric link`.
pub fn run(args: &LinkArgs) -> Result<(), Failure> {
    let survey = open(&args.survey)?;
    let (node, adapter) = (node_id(args.node), args.adapter());
    if !survey.nodes().map_err(cannot_look)?.contains(&node) {
        return Err(no_such_node(&survey, node));
    }
    let residents = survey.members(node).map_err(cannot_look)?;
    let alive: Vec<_> = residents.iter().filter(|resident| resident.life != Life::Dead).collect();
    if alive.is_empty() {
        let what = format!("no member of node {} lives", node.0);
        return Err(
            Failure::new(what).remedy("start a program that joins it: each member has links of its own")
        );
    }
    let (is_up, word) = match args.to {
        LinkState::Up => (true, "up"),
        LinkState::Down => (false, "down"),
    };
    let mut refused = Vec::new();
    for resident in &alive {
        let done = survey.set_link(node, resident.number, (adapter, is_up), args.survey.patience());
        refused.extend(done.err().map(|error| error.to_string()));
    }
    let done = alive.len() - refused.len();
    if done > 0 {
        let (node, adapter) = (node.0, args.adapter);
        out::line(format_args!("node {node}: adapter {adapter} is {word}, as {done} members see it"))?;
    }
    match refused.is_empty() {
        true => Ok(()),
        false => {
            let what = format!("{} members of node {} do not take it {word}", refused.len(), node.0);
            Err(Failure::new(format!("{what}: {}", refused.join("; "))))
        }
    }
}
