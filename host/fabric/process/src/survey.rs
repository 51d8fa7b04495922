//! A fabric as somebody sees it who takes no part in it: which nodes there are, who is a member, and what each member says that it has.

use std::num::NonZeroU64;
use std::time::Duration;

use beeline_domain::{ConnectError, Domain, DomainConfig, DomainError, FolderError, RegistryError, Resident};
use beeline_fabric::{
    AdapterNumber, MemberNumber, MemberReport, Name, NodeId, SegmentId, SegmentReport, Slot,
};

use crate::names::{kind, node_of, offer_name, registry_name};
use crate::questions::{AnswerError, Question, SEGMENTS_AT_ONCE, report_of};

/// Why a fabric cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The domain cannot be opened.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// Its folder cannot be listed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The names of a node are not to be had.
    #[error(transparent)]
    Names(#[from] RegistryError),
    /// Nobody of the node has ever joined in this domain.
    #[error("no process of node {} has joined in {}", node.0, domain.display())]
    NoSuchNode {
        node: NodeId,
        /// Where it was looked for.
        domain: std::path::PathBuf,
    },
}

/// Why a member does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It is not reached, does not answer, or refuses.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// What it says is not what a member of this version can say.
    #[error("what process {pid} answers is no answer of a member of the fabric: {error}")]
    Answer {
        /// The member's process.
        pid: u32,
        error: AnswerError,
    },
    /// It says that it is of another node.
    #[error("process {pid} says that it is of node {}, and not of the node whose names it has", said.0)]
    Node {
        /// The member's process.
        pid: u32,
        said: NodeId,
    },
}

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its process, by the kernel's word; 0 outside this pid namespace.
    pub pid: u32,
    pub member: MemberReport,
    /// Its segments, the first that it made first.
    pub segments: Vec<SegmentReport>,
}

/// Looks at the nodes of a domain. The contents of segments are not touched, and no memory is mapped; members are asked, and stay as
/// they are unless they are asked to change something.
#[derive(Debug)]
pub struct Survey(Domain);

/// Segments of one member at most.
const MAX_SEGMENTS: usize = 1 << 16;

impl Survey {
    /// Opens the domain that the nodes of a fabric meet in.
    ///
    /// # Errors
    /// As [`Domain::open`].
    pub fn open(domain: &DomainConfig) -> Result<Self, SurveyError> {
        Ok(Survey(Domain::open(domain)?))
    }

    /// Where the domain lies.
    pub fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// The nodes of which somebody has ever joined, sorted.
    ///
    /// # Errors
    /// The domain has no folder, or it cannot be listed.
    pub fn nodes(&self) -> Result<Vec<NodeId>, SurveyError> {
        let mut nodes = self.with_names()?;
        nodes.retain(|node| *node != NodeId::GROUPS);
        nodes.sort_unstable();
        Ok(nodes)
    }

    /// The nodes that have ever had names, that of groups among them.
    fn with_names(&self) -> Result<Vec<NodeId>, SurveyError> {
        Ok(self.0.registries()?.iter().filter_map(|name| node_of(name)).collect())
    }

    /// The members of a node that live, and those that have died and left names. Of [`NodeId::GROUPS`], those of all nodes that hold a
    /// group or have held one.
    ///
    /// # Errors
    /// There is no such node, or there has never been a group; its registry cannot be read.
    pub fn members(&self, node: NodeId) -> Result<Vec<Resident>, SurveyError> {
        Ok(self.registry(node)?.residents()?)
    }

    /// The living members that have a segment of this number; of [`NodeId::GROUPS`], those that hold the group.
    ///
    /// # Errors
    /// As [`Survey::members`].
    pub fn owners(&self, node: NodeId, id: SegmentId) -> Result<Vec<(MemberNumber, Slot)>, SurveyError> {
        let name = Name::segment_of(node, id);
        let found = self.registry(node)?.find(kind(name.kind), name.number)?;
        Ok(found.iter().map(|it| (MemberNumber(it.number.get()), Slot(it.entry.slot))).collect())
    }

    /// Takes out the names that dead members of a node have left; how many those were. Whoever joins does the same.
    ///
    /// # Errors
    /// As [`Survey::members`].
    pub fn sweep(&self, node: NodeId) -> Result<usize, SurveyError> {
        Ok(self.registry(node)?.sweep()?)
    }

    fn registry(&self, node: NodeId) -> Result<beeline_domain::Registry, SurveyError> {
        // Opening it would make it.
        if !self.with_names()?.contains(&node) {
            return Err(SurveyError::NoSuchNode { node, domain: self.0.path().to_owned() });
        }
        Ok(self.0.registry(&registry_name(node))?)
    }

    /// Asks a member what it has. Waits at most `patience` for each thousand segments; a member that is stopped does not answer.
    ///
    /// # Errors
    /// It is not reached; what it answers is no report.
    pub fn report(&self, node: NodeId, member: NonZeroU64, patience: Duration) -> Result<Report, AskError> {
        let (mut segments, mut after) = (Vec::new(), 0);
        loop {
            let (pid, payload) = self.ask(node, member, Question::Report { after }, patience)?;
            let broken = |error| AskError::Answer { pid, error };
            let (report, more) = report_of(&payload, after).map_err(broken)?;
            if report.node != node {
                return Err(AskError::Node { pid, said: report.node });
            }
            // What is not full is the last, so nobody is kept by one who names a segment at a time.
            let last = more.get(SEGMENTS_AT_ONCE - 1).map(|segment| segment.number);
            segments.extend(more);
            if segments.len() > MAX_SEGMENTS {
                return Err(broken(AnswerError::Value));
            }
            match last {
                Some(last) => after = last,
                None => return Ok(Report { pid, member: report, segments }),
            }
        }
    }

    /// Asks a member to take the link of an adapter up or down, as it sees it.
    ///
    /// # Errors
    /// It is not reached, or has no such adapter.
    pub fn set_link(
        &self,
        node: NodeId,
        member: NonZeroU64,
        (adapter, is_up): (AdapterNumber, bool),
        patience: Duration,
    ) -> Result<(), AskError> {
        self.ask(node, member, Question::SetLink { adapter, is_up }, patience).map(drop)
    }

    /// Asks a member to remove a segment, or of [`NodeId::GROUPS`] its part of a group, with `is_forced` from its users too. Its program
    /// has a handle of nothing then.
    ///
    /// # Errors
    /// It is not reached; it has no such segment, or one that is in use.
    pub fn remove(
        &self,
        node: NodeId,
        member: NonZeroU64,
        (id, is_forced): (SegmentId, bool),
        patience: Duration,
    ) -> Result<(), AskError> {
        let (name, of) = (Name::segment_of(node, id), MemberNumber(member.get()));
        let home = if node == NodeId::GROUPS { of.node() } else { node };
        self.ask(home, member, Question::Remove { name, is_forced }, patience).map(drop)
    }

    fn ask(
        &self,
        node: NodeId,
        member: NonZeroU64,
        question: Question,
        patience: Duration,
    ) -> Result<(u32, Vec<u8>), AskError> {
        let name = offer_name(node, MemberNumber(member.get()));
        let (connection, reply) = self.0.connect_within(&name, &question.to_bytes(), &[], patience)?;
        // Closing what somebody passes may take as long as it likes.
        self.0.disposer().dispose(reply.fds);
        Ok((connection.peer().pid(), reply.payload))
    }
}
