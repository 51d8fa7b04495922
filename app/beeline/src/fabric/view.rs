//! A fabric as it stands at one moment, for people and for programs.

use beeline_domain::{DomainError, FolderError};
use beeline_fabric::NodeId;
use beeline_fabric_process::{Survey, SurveyError};
use serde::Serialize;

use super::args::{LsArgs, SurveyArgs};
use super::held::{Held, Left, held};
use super::memory::Shared;
use super::nodes::Node;
use super::place::{Place, place_of};
use crate::failure::Failure;

/// Where a fabric is looked at.
pub enum Ground {
    /// Members of one kernel.
    Domain(Survey),
    /// Members that share a memory.
    Memory(Shared),
}

/// Everything that was seen.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The folder that the nodes meet in, or the memory that they share.
    pub domain: String,
    pub nodes: Vec<Node>,
    /// The memories of groups and shared segments, by the members that were asked.
    pub held: Vec<Held>,
    /// What dead members have left of groups.
    pub left_of_groups: Left,
}

impl View {
    /// Looks at a fabric.
    ///
    /// # Errors
    /// The domain is none, or a node that was asked for is not there. What is wrong with one node or member is said there.
    pub fn take(ground: &Ground, args: &LsArgs) -> Result<Self, Failure> {
        let wanted: Vec<_> = args.nodes.iter().copied().map(NodeId).collect();
        let survey = match ground {
            Ground::Domain(survey) => survey,
            Ground::Memory(shared) => {
                let nodes = shared.nodes(&wanted, args.survey.patience())?;
                let (held, left_of_groups) = (held(&nodes), Left::default());
                return Ok(View { domain: shared.path.display().to_string(), nodes, held, left_of_groups });
            }
        };
        let nodes = survey.nodes().map_err(cannot_look)?;
        if let Some(missing) = wanted.iter().find(|node| !nodes.contains(node)) {
            return Err(no_such_node(survey, *missing));
        }
        let shown = nodes.into_iter().filter(|node| wanted.is_empty() || wanted.contains(node));
        let nodes: Vec<_> = shown.map(|node| Node::take(survey, node, args)).collect();
        let (held, left_of_groups) = (held(&nodes), Left::of_groups(survey).map_err(cannot_look)?);
        Ok(View { domain: survey.path().display().to_string(), nodes, held, left_of_groups })
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

/// Opens what is meant: what the command line says, else the environment, else `beeline.toml`.
///
/// # Errors
/// It cannot be opened, or is not told.
pub fn open_any(args: &SurveyArgs) -> Result<Ground, Failure> {
    match place_of(args)? {
        Place::Memory { path, remedy } => {
            Shared::open(&path).map(Ground::Memory).map_err(|failure| match remedy {
                Some(remedy) => failure.remedy(remedy),
                None => failure,
            })
        }
        Place::Domain => open(args).map(Ground::Domain),
    }
}

/// Opens the domain in which a fabric is to be looked at.
fn open(args: &SurveyArgs) -> Result<Survey, Failure> {
    let domain = args.domain();
    Survey::open(&domain.config()).map_err(|error| {
        let failure = Failure::new(format!("cannot look at the fabric in domain {}", domain.name));
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
