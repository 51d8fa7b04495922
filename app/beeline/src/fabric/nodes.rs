//! Nodes, members and segments of a fabric, as their members say that they are.

use beeline_domain::{Life, Resident};
use beeline_fabric::{Holding, LinkReport, NodeId, SegmentReport, SegmentStage};
use beeline_fabric_process::{Report, Survey};
use serde::Serialize;

use super::args::LsArgs;

/// A node of which somebody has ever joined.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub node: u16,
    /// Why its members are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub members: Vec<Member>,
}

/// A process that has joined.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Sixteen hexadecimal digits.
    pub member: String,
    pub state: State,
    /// Its process; 0 outside this pid namespace, nothing once it has died.
    pub pid: Option<u32>,
    /// Names that it has, or has left.
    pub names: usize,
    /// Why it did not answer what it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub adapters: Vec<Adapter>,
    /// Connections of it to segments of others.
    pub connections: u32,
    /// Members that have come to use its segments.
    pub consumers: u32,
    pub segments: Vec<Segment>,
}

/// What a segment of a group says of who may have it.
pub const GROUP: &str = "group";

/// How a member is.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Alive,
    /// It lives, and did not answer, or not as a member does. Of members that share a memory: it was killed, or stands still.
    Silent,
    Dead,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Alive => "alive",
            State::Silent => "silent",
            State::Dead => "dead",
        }
    }
}

/// An adapter, as its member sees it.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapter {
    pub adapter: u32,
    pub is_up: bool,
    /// How often it has changed since its member joined.
    pub changes: u64,
}

/// A segment, as its member says that it is.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub id: u32,
    pub bytes: u64,
    pub holding: &'static str,
    /// Sixteen hexadecimal digits, the same for all who hold this memory; nothing if its member alone has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    pub state: &'static str,
    /// Adapters by which others may connect to it.
    pub adapters: Vec<u8>,
    pub connections: u32,
    /// Maps in its own process; 0 of members that share a memory, which do not say.
    pub maps: u32,
}

impl Node {
    /// Looks at a node. What cannot be known of it is said in it.
    pub fn take(survey: &Survey, node: NodeId, args: &LsArgs) -> Self {
        match survey.members(node) {
            Ok(mut residents) => {
                residents.sort_unstable_by_key(|resident| (resident.life == Life::Dead, resident.number));
                let members = residents.iter().map(|it| Member::take(survey, node, it, args)).collect();
                Node { node: node.0, error: None, members }
            }
            Err(error) => Node { node: node.0, error: Some(error.to_string()), members: Vec::new() },
        }
    }
}

impl Member {
    fn take(survey: &Survey, node: NodeId, resident: &Resident, args: &LsArgs) -> Self {
        let (state, pid) = match resident.life {
            Life::Alive { pid } => (State::Silent, Some(pid)),
            Life::Dead => (State::Dead, None),
        };
        let member = Member {
            member: format!("{:016x}", resident.number),
            state,
            pid,
            names: resident.entries,
            error: None,
            adapters: Vec::new(),
            connections: 0,
            consumers: 0,
            segments: Vec::new(),
        };
        if state == State::Dead {
            return member;
        }
        match survey.report(node, resident.number, args.survey.patience()) {
            Ok(report) => member.with(&report),
            Err(error) => Member { error: Some(error.to_string()), ..member },
        }
    }

    /// The member with what it has answered.
    fn with(self, report: &Report) -> Self {
        Member {
            state: State::Alive,
            pid: Some(report.pid),
            adapters: report.member.links.iter().map(Adapter::of).collect(),
            connections: report.member.connections,
            consumers: report.member.consumers,
            segments: report.segments.iter().map(Segment::of).collect(),
            ..self
        }
    }
}

impl Adapter {
    pub fn of(link: &LinkReport) -> Self {
        Adapter { adapter: link.adapter.number(), is_up: link.is_up, changes: link.epoch.saturating_sub(1) }
    }
}

impl Segment {
    fn of(report: &SegmentReport) -> Self {
        let state = match report.stage {
            _ if report.holding == Holding::Private => "private",
            SegmentStage::Empty => "empty",
            SegmentStage::NotPrepared => "not prepared",
            SegmentStage::Prepared => "prepared",
            SegmentStage::Available => "available",
        };
        Segment {
            id: report.id.0,
            bytes: report.bytes,
            holding: match report.holding {
                Holding::Private => "private",
                Holding::Alone => "alone",
                Holding::Shared => "shared",
                Holding::Group => GROUP,
            },
            memory: (report.memory != 0).then(|| format!("{:016x}", report.memory)),
            state,
            adapters: (0..16).filter(|adapter| report.available & 1 << adapter != 0).collect(),
            connections: report.connections,
            maps: report.maps,
        }
    }
}
