//! Questions about nodes and links, which change nothing.

use beeline_contract_adapter::Adapter;

use crate::ids::{AdapterNumber, NodeId};
use crate::member::Member;
use crate::pairs::Ports;
use crate::refusal::Refusal;

impl<A: Adapter> Member<A> {
    /// Whether the link of an adapter of this node is up; of [`AdapterNumber::ANY`] whether one is.
    ///
    /// # Errors
    /// There is no such adapter.
    pub fn is_link_up(&self, adapter: AdapterNumber) -> Result<bool, Refusal> {
        self.links.best(self.links.paths(adapter)).map(|link| link.is_up).ok_or(Refusal::NoSuchAdapterno)
    }

    /// Whether the links to a node are up, as far as this member has a connection to it. Whether anybody of the node lives is what the
    /// registry knows.
    ///
    /// # Errors
    /// Why not; no such adapter or node.
    pub fn probe(&self, node: NodeId, adapter: AdapterNumber) -> Result<(), Refusal> {
        let is_up = self.is_link_up(adapter)?;
        if !self.config.nodes.contains(&node) {
            return Err(Refusal::NoSuchNodeid);
        }
        if !is_up {
            return Err(Refusal::NoLinkAccess);
        }
        let providers = self.pairs.providers.values().filter(|provider| provider.node == node);
        let mut ports =
            providers.filter_map(|provider| provider.ports.as_ref()).filter(|ports| ports.is_open());
        let paths = self.links.paths(adapter);
        let is_down = |ports: &Ports<A>| ports.are_up(paths, &self.links).is_err();
        match ports.next() {
            Some(first) if is_down(first) && ports.all(is_down) => Err(Refusal::NoRemoteLinkAccess),
            _ => Ok(()),
        }
    }
}
