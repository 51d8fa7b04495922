//! Memory that several members have: groups, and segments that their node shares.

use beeline_domain::Life;
use beeline_fabric::NodeId;
use beeline_fabric_process::{Survey, SurveyError};
use serde::Serialize;

use super::nodes::{GROUP, Member, Node, Segment};

/// One memory with all who have said that they hold it.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Of a shared segment; a group is of no node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u16>,
    pub id: u32,
    pub bytes: u64,
    pub memory: String,
    pub holders: Vec<Holder>,
}

/// A member that holds it.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub node: u16,
    pub member: String,
    pub pid: Option<u32>,
}

/// Names that dead members have left.
#[derive(Serialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    pub members: usize,
    pub names: usize,
}

impl Left {
    /// What of groups is left, whose names are those of no node.
    ///
    /// # Errors
    /// The names cannot be read.
    pub fn of_groups(survey: &Survey) -> Result<Self, SurveyError> {
        let residents = match survey.members(NodeId::GROUPS) {
            Err(SurveyError::NoSuchNode { .. }) => Vec::new(),
            residents => residents?,
        };
        let dead = residents.iter().filter(|resident| resident.life == Life::Dead);
        Ok(dead.fold(Left::default(), |left, resident| Left {
            members: left.members + 1,
            names: left.names + resident.entries,
        }))
    }
}

/// Which memories several members may have, groups first.
pub fn held(nodes: &[Node]) -> Vec<Held> {
    let mut all: Vec<Held> = Vec::new();
    for node in nodes {
        for member in &node.members {
            for segment in &member.segments {
                let Some(memory) = &segment.memory else { continue };
                let of = node_of(node, segment);
                let holder = holder(node, member);
                let is_it = |it: &Held| (it.node, it.id, &it.memory) == (of, segment.id, memory);
                match all.iter_mut().find(|it| is_it(it)) {
                    Some(known) => known.holders.push(holder),
                    None => all.push(Held {
                        node: of,
                        id: segment.id,
                        bytes: segment.bytes,
                        memory: memory.clone(),
                        holders: vec![holder],
                    }),
                }
            }
        }
    }
    all.sort_by(|a, b| (a.node, a.id, &a.memory).cmp(&(b.node, b.id, &b.memory)));
    all
}

fn node_of(node: &Node, segment: &Segment) -> Option<u16> {
    (segment.holding != GROUP).then_some(node.node)
}

fn holder(node: &Node, member: &Member) -> Holder {
    Holder { node: node.node, member: member.member.clone(), pid: member.pid }
}
