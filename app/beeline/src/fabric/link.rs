//! `beeline fabric link`.

use beeline_domain::Life;
use beeline_fabric_process::Survey;

use super::args::{LinkArgs, LinkState, node_id};
use super::memory::Shared;
use super::view::{Ground, cannot_look, no_such_node, open_any};
use crate::failure::Failure;
use crate::out;

/// Runs `beeline fabric link`.
pub fn run(args: &LinkArgs) -> Result<(), Failure> {
    let outcomes = match open_any(&args.survey)? {
        Ground::Domain(survey) => of_domain(args, &survey)?,
        Ground::Memory(shared) => of_memory(args, &shared)?,
    };
    let node = args.node;
    if outcomes.is_empty() {
        return Err(Failure::new(format!("no member of node {node} lives"))
            .remedy("start a program that joins it: each member has links of its own"));
    }
    let word = match args.to {
        LinkState::Up => "up",
        LinkState::Down => "down",
    };
    let refused: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).cloned().collect();
    let done = outcomes.len() - refused.len();
    if done > 0 {
        out::line(format_args!("node {node}: adapter {} is {word}, as {done} members see it", args.adapter))?;
    }
    match refused.is_empty() {
        true => Ok(()),
        false => {
            let what = format!("{} members of node {node} do not take it {word}", refused.len());
            Err(Failure::new(format!("{what}: {}", refused.join("; "))))
        }
    }
}

/// What each member that lives has said, or why it has not.
type Outcomes = Vec<Result<(), String>>;

fn of_domain(args: &LinkArgs, survey: &Survey) -> Result<Outcomes, Failure> {
    let (node, link) = (node_id(args.node), (args.adapter(), args.to == LinkState::Up));
    if !survey.nodes().map_err(cannot_look)?.contains(&node) {
        return Err(no_such_node(survey, node));
    }
    let residents = survey.members(node).map_err(cannot_look)?;
    let alive = residents.iter().filter(|resident| resident.life != Life::Dead);
    let ask = |number| survey.set_link(node, number, link, args.survey.patience());
    Ok(alive.map(|resident| ask(resident.number).map_err(|error| error.to_string())).collect())
}

fn of_memory(args: &LinkArgs, shared: &Shared) -> Result<Outcomes, Failure> {
    let (node, link) = (node_id(args.node), (args.adapter(), args.to == LinkState::Up));
    let mut reports = shared.reports(args.survey.patience())?;
    reports.retain(|report| report.number.node() == node);
    if reports.is_empty() {
        return Err(shared.no_such_node(node));
    }
    let alive = reports.iter().filter(|report| report.is_alive);
    let ask = |report| shared.survey.set_link(report, link, args.survey.patience());
    Ok(alive.map(|report| ask(report).map_err(|error| error.to_string())).collect())
}
