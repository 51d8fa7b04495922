//! A fabric as it stands at one moment, for people and for programs.

use beeline_domain::{DomainError, FolderError, Life, Resident};
use beeline_fabric::{LinkReport, NodeId, SegmentReport, SegmentStage};
use beeline_fabric_process::{Report, Survey, SurveyError};
use serde::Serialize;

use super::args::{LsArgs, SurveyArgs};
use crate::failure::Failure;

/// Everything that was seen.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The folder that the nodes meet in.
    pub domain: String,
    pub nodes: Vec<Node>,
}

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

/// How a member is.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Alive,
    /// It lives, and did not answer, or not as a member does.
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
    pub state: &'static str,
    /// Adapters by which others may connect to it.
    pub adapters: Vec<u8>,
    pub connections: u32,
    /// Maps in its own process.
    pub maps: u32,
}

impl View {
    /// Looks at a fabric.
    ///
    /// # Errors
    /// The domain is none, or a node that was asked for is not there. What is wrong with one node or member is said there.
    pub fn take(survey: &Survey, args: &LsArgs) -> Result<Self, Failure> {
        let wanted: Vec<_> = args.nodes.iter().copied().map(NodeId).collect();
        let nodes = survey.nodes().map_err(cannot_look)?;
        if let Some(missing) = wanted.iter().find(|node| !nodes.contains(node)) {
            return Err(no_such_node(survey, *missing));
        }
        let shown = nodes.into_iter().filter(|node| wanted.is_empty() || wanted.contains(node));
        let nodes = shown.map(|node| Node::take(survey, node, args)).collect();
        Ok(View { domain: survey.path().display().to_string(), nodes })
    }

    /// What of it is not known, and why.
    pub fn errors(&self) -> impl Iterator<Item = String> {
        self.nodes.iter().flat_map(|node| {
            let own = node.error.iter().map(move |error| format!("node {}: {error}", node.node));
            let of_members = node.members.iter().flat_map(move |member| {
                let name = move |error| format!("node {}, member {}: {error}", node.node, member.member);
                member.error.iter().map(name)
            });
            own.chain(of_members)
        })
    }
}

/// Opens the domain in which a fabric is to be looked at.
///
/// # Errors
/// It cannot be opened.
pub fn open(args: &SurveyArgs) -> Result<Survey, Failure> {
    Survey::open(&args.domain.config()).map_err(|error| {
        let domain = &args.domain.name;
        let failure = Failure::new(format!("cannot look at the fabric in domain {domain}"));
        match &error {
            // The domain's own remedy is for offers that let other users in.
            SurveyError::Domain(DomainError::Folder(FolderError::Owner { found, .. })) => {
                let found = *found;
                let remedy =
                    format!("run this as uid {found}: a fabric is one user's, and there is no --owner");
                failure.because(error).remedy(remedy)
            }
            _ => failure.because(error),
        }
    })
}

/// The failure of a command that cannot look at a fabric.
pub fn cannot_look(error: SurveyError) -> Failure {
    Failure::new("cannot look at the fabric").because(error)
}

/// The failure of a command that is given a node of which nobody has ever joined.
pub fn no_such_node(survey: &Survey, node: NodeId) -> Failure {
    let domain = survey.path().display();
    Failure::new(format!("no process of node {} has joined in {domain}", node.0))
        .remedy("`beeline fabric ls`, which lists the nodes there are, or another --domain or --root")
}

impl Node {
    fn take(survey: &Survey, node: NodeId, args: &LsArgs) -> Self {
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
    fn of(link: &LinkReport) -> Self {
        Adapter { adapter: link.adapter.number(), is_up: link.is_up, changes: link.epoch.saturating_sub(1) }
    }
}

impl Segment {
    fn of(report: &SegmentReport) -> Self {
        let state = match report.stage {
            _ if report.is_private => "private",
            SegmentStage::Empty => "empty",
            SegmentStage::NotPrepared => "not prepared",
            SegmentStage::Prepared => "prepared",
            SegmentStage::Available => "available",
        };
        Segment {
            id: report.id.0,
            bytes: report.bytes,
            state,
            adapters: (0..16).filter(|adapter| report.available & 1 << adapter != 0).collect(),
            connections: report.connections,
            maps: report.maps,
        }
    }
}
