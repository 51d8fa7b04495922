//! `beeline fabric rm`.

use beeline_domain::{ConnectError, Life};
use beeline_fabric::NodeId;
use beeline_fabric_process::{AskError, SurveyError};

use super::args::{RmArgs, node_id, segment_id};
use super::view::{cannot_look, no_such_node, open};
use crate::failure::Failure;
use crate::out;

/// Runs `beeline fabric rm`.
pub fn run(args: &RmArgs) -> Result<(), Failure> {
    let survey = open(&args.survey)?;
    let node = node_id(args.node);
    let whose = whose(node);
    let residents = survey.members(node).map_err(|error| match error {
        SurveyError::NoSuchNode { .. } if node == NodeId::GROUPS => {
            Failure::new(format!("no process has ever joined a group in {}", survey.path().display()))
                .remedy("`beeline fabric ls`, which lists what there is, or another --domain or --root")
        }
        SurveyError::NoSuchNode { .. } => no_such_node(&survey, node),
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
        let failure = match node {
            NodeId::GROUPS => Failure::new(format!("no member that lives holds group {}", id.0))
                .remedy("`beeline fabric ls`, which lists the groups there are"),
            node => Failure::new(format!("no member of node {} that lives has segment {}", node.0, id.0))
                .remedy(format!("`beeline fabric ls --node {}`, which lists those there are", node.0)),
        };
        return Err(failure);
    }
    for (member, _) in owners {
        let number =
            std::num::NonZeroU64::new(member.0).ok_or_else(|| Failure::new("a member without a number"))?;
        survey
            .remove(node, number, (id, args.force), args.survey.patience())
            .map_err(|error| not_removed(args, id.0, error))?;
        match node {
            NodeId::GROUPS => {
                out::line(format_args!(
                    "groups: {} removed from a member of node {}",
                    id.0,
                    member.node().0
                ))?;
            }
            node => out::line(format_args!("node {}: segment {} removed", node.0, id.0))?,
        }
    }
    Ok(())
}

fn whose(node: NodeId) -> String {
    match node {
        NodeId::GROUPS => "groups".to_owned(),
        node => format!("node {}", node.0),
    }
}

fn not_removed(args: &RmArgs, id: u32, error: AskError) -> Failure {
    let node = args.node;
    let what = match node_id(node) {
        NodeId::GROUPS => Failure::new(format!("group {id} is not removed")),
        _ => Failure::new(format!("segment {id} of node {node} is not removed")),
    };
    let remedy = match &error {
        AskError::Connect(ConnectError::Refused { .. }) if !args.force => {
            Some(format!("`beeline fabric rm {node} {id} --force`, if others are connected to it"))
        }
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
