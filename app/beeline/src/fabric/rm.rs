//! `beeline fabric rm`.

use beeline_domain::{ConnectError, Life};
use beeline_fabric::{Name, NodeId, Refusal, SegmentId};
use beeline_fabric_bar::{BarAskError, BarReport, BarSwept};
use beeline_fabric_process::{AskError, Survey, SurveyError};

use super::args::{RmArgs, node_id, segment_id};
use super::memory::Shared;
use super::view::{Ground, cannot_look, no_such_node, open_any};
use crate::failure::Failure;
use crate::out;

/// Runs `beeline fabric rm`.
pub fn run(args: &RmArgs) -> Result<(), Failure> {
    match open_any(&args.survey)? {
        Ground::Domain(survey) => of_domain(args, &survey),
        Ground::Memory(shared) => of_memory(args, &shared),
    }
}

fn of_domain(args: &RmArgs, survey: &Survey) -> Result<(), Failure> {
    let node = node_id(args.node);
    let whose = whose(node);
    let residents = survey.members(node).map_err(|error| match error {
        SurveyError::NoSuchNode { .. } if node == NodeId::GROUPS => {
            Failure::new(format!("no process has ever joined a group in {}", survey.path().display()))
                .remedy("`beeline fabric ls`, which lists what there is, or another --domain or --root")
        }
        SurveyError::NoSuchNode { .. } => no_such_node(survey, node),
        error => cannot_look(error),
    })?;
    let dead = residents.iter().filter(|resident| resident.life == Life::Dead).count();
    let names = survey.sweep(node).map_err(|error| {
        Failure::new(format!("cannot take out what dead members have left of {whose}")).because(error)
    })?;
    let Some(id) = args.id.map(segment_id) else {
        return out::line(format_args!("{whose}: {names} names of {dead} dead members taken out"));
    };
    let owners = survey.owners(node, id).map_err(cannot_look)?;
    if owners.is_empty() {
        return Err(nobody_has(node, id));
    }
    for (member, _) in owners {
        let number =
            std::num::NonZeroU64::new(member.0).ok_or_else(|| Failure::new("a member without a number"))?;
        survey
            .remove(node, number, (id, args.force), args.survey.patience())
            .map_err(|error| not_removed(args, id, error))?;
        say_removed(node, id, member.node())?;
    }
    Ok(())
}

/// As [`of_domain`], of members that share a memory. Who is not heard is asked for nothing.
fn of_memory(args: &RmArgs, shared: &Shared) -> Result<(), Failure> {
    let (node, patience) = (node_id(args.node), args.survey.patience());
    let Some(id) = args.id.map(segment_id) else { return sweep(node, shared, args) };
    let name = Name::segment_of(node, id);
    let reports = shared.reports(patience)?;
    let is_of = |report: &&BarReport| node == NodeId::GROUPS || report.number.node() == node;
    if !reports.iter().any(|report| is_of(&report)) {
        return Err(shared.no_such_node(node));
    }
    let mut is_anybodys = false;
    for report in reports.iter().filter(is_of).filter(|report| report.is_alive) {
        for _ in report.segments.iter().filter(|it| it.entry.name == name) {
            is_anybodys = true;
            let removed = shared.survey.remove(report, (node, id, args.force), patience);
            removed.map_err(|error| {
                let what = what_is_not_removed(node, id);
                let is_refused = matches!(error, BarAskError::Refused(Refusal::Busy));
                match is_refused && !args.force {
                    true => what.because(error).remedy(with_force(args.node, id)),
                    false => what.because(error),
                }
            })?;
            say_removed(node, id, report.number.node())?;
        }
    }
    if is_anybodys { Ok(()) } else { Err(nobody_has(node, id)) }
}

/// Frees the slots of members that are not heard.
fn sweep(node: NodeId, shared: &Shared, args: &RmArgs) -> Result<(), Failure> {
    if node == NodeId::GROUPS {
        return Err(Failure::new(
            "where members share a memory, names of groups go with the member that has them",
        )
        .remedy("`beeline fabric rm NODE`, with the node of a member that was killed"));
    }
    if !shared.reports(args.survey.patience())?.iter().any(|report| report.number.node() == node) {
        return Err(shared.no_such_node(node));
    }
    let swept = shared.survey.sweep(node).map_err(|error| {
        Failure::new(format!("cannot take out what dead members have left of {}", whose(node))).because(error)
    })?;
    let (whose, BarSwept { members, names, held }) = (whose(node), swept);
    out::line(format_args!("{whose}: {names} names of {members} dead members taken out"))?;
    if held != 0 {
        out::line(format_args!(
            "{whose}: {held} dead members stay, because others have their memory mapped"
        ))?;
    }
    Ok(())
}

fn nobody_has(node: NodeId, id: SegmentId) -> Failure {
    match node {
        NodeId::GROUPS => Failure::new(format!("no member that lives holds group {}", id.0))
            .remedy("`beeline fabric ls`, which lists the groups there are"),
        node => Failure::new(format!("no member of node {} that lives has segment {}", node.0, id.0))
            .remedy(format!("`beeline fabric ls --node {}`, which lists those there are", node.0)),
    }
}

fn say_removed(node: NodeId, id: SegmentId, of: NodeId) -> Result<(), Failure> {
    match node {
        NodeId::GROUPS => out::line(format_args!("groups: {} removed from a member of node {}", id.0, of.0)),
        node => out::line(format_args!("node {}: segment {} removed", node.0, id.0)),
    }
}

fn what_is_not_removed(node: NodeId, id: SegmentId) -> Failure {
    match node {
        NodeId::GROUPS => Failure::new(format!("group {} is not removed", id.0)),
        _ => Failure::new(format!("segment {} of node {} is not removed", id.0, node.0)),
    }
}

fn with_force(node: u16, id: SegmentId) -> String {
    format!("`beeline fabric rm {node} {} --force`, if others are connected to it", id.0)
}

fn whose(node: NodeId) -> String {
    match node {
        NodeId::GROUPS => "groups".to_owned(),
        node => format!("node {}", node.0),
    }
}

fn not_removed(args: &RmArgs, id: SegmentId, error: AskError) -> Failure {
    let what = what_is_not_removed(node_id(args.node), id);
    let remedy = match &error {
        AskError::Connect(ConnectError::Refused { .. }) if !args.force => Some(with_force(args.node, id)),
        AskError::Connect(ConnectError::TimedOut { pid: Some(pid), .. }) => {
            Some(format!("let process {pid} go on (kill -CONT {pid}), or end it"))
        }
        _ => None,
    };
    let what = what.because(error);
    match remedy {
        Some(remedy) => what.remedy(remedy),
        None => what,
    }
}
