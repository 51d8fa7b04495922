//! Members that share a file or a BAR: what lies in the memory says what they have. They are asked only to do something.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use beeline_fabric::{NameKind, NodeId};
use beeline_fabric_bar::{BarEntry, BarMemory, BarReport, BarSurvey};
use beeline_mmio::{FaultGuard, OnLoss};

use super::nodes::{Adapter, GROUP, Member, Node, Segment, State};
use crate::failure::Failure;

/// A memory that members share.
pub struct Shared {
    pub survey: BarSurvey,
    pub path: PathBuf,
}

impl Shared {
    /// Maps a memory that somebody has used.
    ///
    /// # Errors
    /// It is not to be had, or is no memory of members.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let failed = || Failure::new(format!("cannot look at the fabric in {}", path.display()));
        let guard = FaultGuard::install().map_err(|error| failed().because(error))?;
        let survey = BarSurvey::open(&BarMemory::of_path(path), OnLoss::Guarded(guard));
        let survey = survey.map_err(|error| failed().because(error))?;
        Ok(Shared { survey, path: path.to_owned() })
    }

    /// The nodes that have members, or those of them that are wanted. Who lives is seen in the time.
    ///
    /// # Errors
    /// A node that is wanted has none; the memory is gone.
    pub fn nodes(&self, wanted: &[NodeId], patience: Duration) -> Result<Vec<Node>, Failure> {
        let mut nodes: BTreeMap<NodeId, Vec<Member>> = BTreeMap::new();
        for report in self.reports(patience)? {
            nodes.entry(report.number.node()).or_default().push(member(&report));
        }
        if let Some(missing) = wanted.iter().find(|node| !nodes.contains_key(node)) {
            return Err(self.no_such_node(*missing));
        }
        let shown = nodes.into_iter().filter(|(node, _)| wanted.is_empty() || wanted.contains(node));
        Ok(shown.map(|(node, members)| Node { node: node.0, error: None, members }).collect())
    }

    /// Every member.
    ///
    /// # Errors
    /// The memory is gone.
    pub fn reports(&self, patience: Duration) -> Result<Vec<BarReport>, Failure> {
        let reports = self.survey.members(patience);
        if !self.survey.is_intact() {
            return Err(Failure::new(format!("memory of {} is gone", self.path.display())));
        }
        Ok(reports)
    }

    /// The failure of a command that is given a node which has nobody in the memory.
    pub fn no_such_node(&self, node: NodeId) -> Failure {
        Failure::new(format!("node {} has no member in {}", node.0, self.path.display()))
            .remedy("`beeline fabric ls --memory FILE`, which lists the nodes there are")
    }
}

fn member(report: &BarReport) -> Member {
    // Nobody can tell who was killed from who stands still: of both there is what they had.
    let (state, seen) =
        if report.is_alive { (State::Alive, report.segments.as_slice()) } else { (State::Silent, &[][..]) };
    Member {
        member: format!("{:016x}", report.number.0),
        state,
        pid: Some(0),
        names: report.names,
        error: None,
        adapters: report.links.iter().map(Adapter::of).collect(),
        connections: report.connections,
        consumers: report.consumers,
        segments: seen.iter().map(segment).collect(),
    }
}

fn segment(found: &BarEntry) -> Segment {
    let entry = &found.entry;
    Segment {
        id: entry.name.number,
        bytes: entry.bytes,
        holding: if entry.name.kind == NameKind::Group { GROUP } else { "alone" },
        memory: (entry.memory != 0).then(|| format!("{:016x}", entry.memory)),
        state: if entry.available == 0 { "not available" } else { "available" },
        adapters: (0..16).filter(|adapter| entry.available & 1 << adapter != 0).collect(),
        connections: found.connections,
        maps: 0,
    }
}
