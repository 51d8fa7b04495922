//! Who may connect to segments of this process (the table `access` of the file), and which nodes are of other users.

use std::collections::BTreeSet;

use beeline_fabric::{Access, NodeId, SegmentId};
use serde::Deserialize;
use toml::Spanned;

use super::accounts::Accounts;
use super::named_node::{NamedNode, node_id};
use super::one_memory::Wrong;
use crate::users::Exports;

/// A node, a user or a group of users.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Named {
    Number(u32),
    Name(String),
}

type List = Option<Vec<Spanned<Named>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfAccess {
    nodes: List,
    users: List,
    groups: List,
    #[serde(default)]
    segments: Vec<OfSegments>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfSegments {
    ids: Vec<Spanned<u32>>,
    nodes: List,
    users: List,
    groups: List,
}

/// The names of the keys of one table.
struct Keys {
    nodes: &'static str,
    users: &'static str,
    groups: &'static str,
}

const OF_ALL: Keys = Keys { nodes: "access.nodes", users: "access.users", groups: "access.groups" };
const OF_SOME: Keys =
    Keys { nodes: "access.segments.nodes", users: "access.segments.users", groups: "access.segments.groups" };

/// What names in lists are looked up in.
pub(super) struct Known<'a> {
    pub(super) nodes: &'a [NamedNode],
    pub(super) accounts: &'a Accounts,
}

impl Named {
    fn text(&self) -> String {
        match self {
            Named::Number(number) => number.to_string(),
            Named::Name(name) => name.clone(),
        }
    }
}

/// What is wrong with one of a list.
pub(super) fn wrong(key: &'static str, named: &Spanned<Named>, why: &'static str) -> Wrong {
    Wrong { key, value: named.get_ref().text(), span: named.span(), why }
}

impl Known<'_> {
    fn node(&self, key: &'static str, named: &Spanned<Named>) -> Result<NodeId, Wrong> {
        let node = match named.get_ref() {
            Named::Number(number) => node_id(*number),
            Named::Name(name) => {
                self.nodes.iter().find(|node| node.name.as_ref() == Some(name)).map(|node| node.node)
            }
        };
        node.ok_or_else(|| {
            wrong(key, named, "it is neither a number from 1 to 251 nor the name of one of `nodes`")
        })
    }

    /// The user as the kernel knows it.
    pub(super) fn user(&self, key: &'static str, named: &Spanned<Named>) -> Result<u32, Wrong> {
        match named.get_ref() {
            Named::Number(number) => Ok(*number),
            Named::Name(name) => self.accounts.user(name).ok_or_else(|| {
                wrong(key, named, "no user of /etc/passwd has the name; a number is taken as it is")
            }),
        }
    }

    /// The users who are in a group.
    fn group(&self, key: &'static str, named: &Spanned<Named>) -> Result<Vec<u32>, Wrong> {
        let users = match named.get_ref() {
            Named::Number(number) => self.accounts.users_of_number(*number),
            Named::Name(name) => self.accounts.users_of_name(name),
        };
        users.ok_or_else(|| wrong(key, named, "/etc/group has no such group"))
    }

    fn access(
        &self,
        keys: &Keys,
        (nodes, users, groups): (&List, &List, &List),
    ) -> Result<Option<Access>, Wrong> {
        if nodes.is_none() && users.is_none() && groups.is_none() {
            return Ok(None);
        }
        let each = |list: &List| list.clone().unwrap_or_default();
        let of_list =
            nodes.as_ref().map(|nodes| nodes.iter().map(|node| self.node(keys.nodes, node)).collect());
        let nodes = of_list.transpose()?;
        let mut named = BTreeSet::new();
        for user in each(users) {
            named.insert(self.user(keys.users, &user)?);
        }
        for group in each(groups) {
            named.extend(self.group(keys.groups, &group)?);
        }
        Ok(Some(Access { nodes, users: named.into_iter().collect() }))
    }
}

impl OfAccess {
    /// Who may connect to which segments.
    pub(super) fn read(&self, known: &Known<'_>) -> Result<Exports, Wrong> {
        let all = known.access(&OF_ALL, (&self.nodes, &self.users, &self.groups))?;
        let mut exports = Exports { all, ..Exports::default() };
        for entry in &self.segments {
            let access = known.access(&OF_SOME, (&entry.nodes, &entry.users, &entry.groups))?;
            for id in &entry.ids {
                let was =
                    exports.segments.insert(SegmentId(*id.get_ref()), access.clone().unwrap_or_default());
                if was.is_some() {
                    let (value, why) = (id.get_ref().to_string(), "it is in two lists");
                    return Err(Wrong { key: "access.segments.ids", value, span: id.span(), why });
                }
            }
        }
        Ok(exports)
    }
}
