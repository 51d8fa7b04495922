//! Which node a process is of, and which nodes there are: from the environment and a file.
//!
//! `BEELINE_CONFIG` names the file; without it `/etc/beeline.toml` is read if it is there. `BEELINE_NODE` says which node the process is
//! of, before `node` in the file. With `polls` in the file nothing of the process sleeps (`FabricMember::set_polling`); `memory` and `sysfs` are the process's
//! [`Terms`]. `access` says who may connect to segments, and `user` of a node whose processes are its members. With `adapters.fail_over` a program's
//! adapters are any. `fabric` is the memory that members of the fabric share where they have no kernel in common (`config/one_memory.rs`), and
//! `BEELINE_FABRIC_MEMORY` its path, before that in the file. Without a file, nodes have the numbers 1 to 251 and an adapter 0, and the process is of node 4.

mod access;
mod accounts;
mod named_node;
mod one_memory;

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, NodeId};
use serde::Deserialize;
use toml::Spanned;

use self::access::{Known, Named, OfAccess, wrong};
use self::accounts::Accounts;
pub use self::named_node::NamedNode;
use self::named_node::{NODES, node_id};
pub use self::one_memory::{MEMORY_VARIABLE, OneMemory};
use self::one_memory::{OfFabric, Wrong};
use crate::member::FabricConfig;
use crate::terms::Terms;
use crate::users::{Exports, NodeOfUser, OtherUsers};

/// The environment variable that names the node of this process.
pub const NODE_VARIABLE: &str = "BEELINE_NODE";
/// The environment variable that names the file.
pub const FILE_VARIABLE: &str = "BEELINE_CONFIG";

/// Read if the environment names no file.
const FILE: &str = "/etc/beeline.toml";
const DEFAULT_NODE: u16 = 4;

/// The fabric of this process, and the names of its nodes.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub fabric: FabricConfig,
    /// The nodes of the file, in its order.
    pub named: Vec<NamedNode>,
    /// Whether who waits polls and does not sleep.
    pub polls: bool,
    /// Of what memory segments are made, and where devices are found.
    pub terms: Terms,
    /// The one memory in which members meet, in place of a domain.
    pub one_memory: Option<OneMemory>,
    /// Other users, and which nodes are theirs.
    pub users: OtherUsers,
    /// Who may connect to segments of this process.
    pub exports: Exports,
    /// Whether each adapter that a program names means any ([`AdapterNumber::ANY`]).
    pub fails_over: bool,
}

/// What is wrong with the environment or the file: which file, line and key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A variable has a value that means nothing.
    #[error("{variable} is {value:?}; nodes have numbers from 1 to 251")]
    Variable { variable: &'static str, value: OsString },
    /// [`MEMORY_VARIABLE`] is no path.
    #[error("{MEMORY_VARIABLE} is empty; it is the path of a file or a BAR")]
    NoPath,
    /// A key means nothing, or less than it says, where members share one memory.
    #[error("`{key}` is not for members that share {}: {why}", memory.display())]
    NotOfOneMemory { key: &'static str, memory: PathBuf, why: &'static str },
    /// The file is not there, or may not be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The file is not TOML, or has a key that is none.
    #[error("{}: {error}", path.display())]
    Syntax { path: PathBuf, error: Box<toml::de::Error> },
    /// A value means nothing.
    #[error("{}:{line}: {key} = {value}; {why}", path.display())]
    Value { path: PathBuf, line: usize, key: &'static str, value: String, why: &'static str },
}

/// What the environment says, before the file.
#[derive(Default)]
pub(crate) struct Said {
    /// The value of [`NODE_VARIABLE`], which is not read yet.
    pub(crate) node: Option<OsString>,
    /// The value of [`MEMORY_VARIABLE`], which is not empty.
    pub(crate) memory: Option<PathBuf>,
}

impl Said {
    fn new(node: Option<OsString>, memory: Option<OsString>) -> Result<Self, ConfigError> {
        match memory {
            Some(path) if path.is_empty() => Err(ConfigError::NoPath),
            memory => Ok(Said { node, memory: memory.map(PathBuf::from) }),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    node: Option<Spanned<u32>>,
    domain: Option<String>,
    #[serde(default)]
    polls: bool,
    #[serde(default)]
    memory: OfMemory,
    sysfs: Option<PathBuf>,
    fabric: Option<Spanned<OfFabric>>,
    access: Option<OfAccess>,
    #[serde(default)]
    adapters: OfAdapters,
    #[serde(default, rename = "nodes")]
    entries: Vec<Entry>,
    /// Rules of who carries a program's connections, who reads them itself (`host/sockets/rules`).
    #[serde(rename = "sockets")]
    _sockets: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OfMemory {
    huge_pages: bool,
    locked: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OfAdapters {
    fail_over: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: Spanned<u32>,
    name: Option<Spanned<String>>,
    #[serde(default)]
    adapters: Vec<Spanned<u32>>,
    /// Whose processes are its members, if not this process's user's.
    user: Option<Spanned<Named>>,
    /// The folder in which that user's programs meet.
    root: Option<PathBuf>,
}

impl Configuration {
    /// Reads what the environment and the file say.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read() -> Result<Self, ConfigError> {
        let said = Said::new(std::env::var_os(NODE_VARIABLE), std::env::var_os(MEMORY_VARIABLE))?;
        match std::env::var_os(FILE_VARIABLE) {
            Some(path) => Self::read_file(Path::new(&path), said),
            None if Path::new(FILE).exists() => Self::read_file(Path::new(FILE), said),
            None => Self::of_environment(said),
        }
    }

    /// Fails for keys that would be ignored: who asks for protection must not believe that it is there.
    fn checked(self) -> Result<Self, ConfigError> {
        let Some(memory) = &self.one_memory else { return Ok(self) };
        let opens = "whoever may open it can load and store all of it, so its own permissions say who may";
        let keys = [
            ("nodes.user", !self.users.nodes.is_empty(), opens),
            ("access", self.exports != Exports::default(), opens),
            ("memory.huge_pages", self.terms.huge_pages, "it is of huge pages if its file is on hugetlbfs"),
            ("memory.locked", self.terms.locked, "its pages are those of the file"),
        ];
        match keys.into_iter().find(|(_, is_set, _)| *is_set) {
            Some((key, _, why)) => Err(ConfigError::NotOfOneMemory { key, memory: memory.path.clone(), why }),
            None => Ok(self),
        }
    }

    /// Reads a file. `node` is what the environment says of the node.
    ///
    /// # Errors
    /// As for [`Configuration::read`].
    pub fn of_file(path: &Path, node: Option<OsString>) -> Result<Self, ConfigError> {
        Self::read_file(path, Said { node, memory: None })
    }

    fn read_file(path: &Path, said: Said) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
        Self::of_text(path, &text, said)
    }

    /// What a file of this text says.
    pub(crate) fn of_text(path: &Path, text: &str, said: Said) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text)
            .map_err(|error| ConfigError::Syntax { path: path.to_owned(), error: Box::new(error) })?;
        Reader { path, text }.configuration(file, said)
    }

    fn of_environment(said: Said) -> Result<Self, ConfigError> {
        let node = of_variable(said.node)?.unwrap_or(NodeId(DEFAULT_NODE));
        let nodes = NODES.map(NodeId).collect();
        let fabric = FabricConfig { domain: DomainConfig::default(), node, adapters: first_adapter(), nodes };
        Ok(Configuration {
            fabric,
            named: Vec::new(),
            polls: false,
            terms: Terms::default(),
            one_memory: said.memory.map(OneMemory::at),
            users: OtherUsers::default(),
            exports: Exports::default(),
            fails_over: false,
        })
    }
}

/// The adapters of a node that says nothing of them.
fn first_adapter() -> Vec<AdapterNumber> {
    AdapterNumber::new(0).into_iter().collect()
}

fn of_variable(value: Option<OsString>) -> Result<Option<NodeId>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    let node = value.to_str().and_then(|text| text.trim().parse().ok()).and_then(node_id);
    match node {
        Some(node) => Ok(Some(node)),
        None => Err(ConfigError::Variable { variable: NODE_VARIABLE, value }),
    }
}

/// The nodes that are of another user than this process, which is of the node `own`.
fn of_other_users(
    entries: &[Entry],
    own: NodeId,
    known: &Known<'_>,
    domain: &str,
) -> Result<Vec<NodeOfUser>, Wrong> {
    let mut nodes = Vec::new();
    for (entry, named) in entries.iter().zip(known.nodes) {
        let Some(user) = &entry.user else { continue };
        let uid = known.user("nodes.user", user)?;
        if uid == rustix::process::geteuid().as_raw() {
            continue;
        }
        if named.node == own {
            return Err(wrong("nodes.user", user, "this process is of the node, and of another user"));
        }
        let root = entry.root.clone().unwrap_or_else(|| PathBuf::from(format!("/tmp/beeline-{uid}")));
        let domain = DomainConfig { root: Some(root), name: domain.to_owned() };
        nodes.push(NodeOfUser { node: named.node, uid, domain });
    }
    Ok(nodes)
}

/// A file, for what is said of its lines.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn configuration(&self, file: File, said: Said) -> Result<Configuration, ConfigError> {
        let mut named: Vec<NamedNode> = Vec::new();
        for entry in &file.entries {
            let node = self.node("nodes.id", &entry.id)?;
            let is_twice = named.iter().any(|other| other.node == node);
            let name = entry.name.as_ref().map(|name| name.get_ref().clone());
            if is_twice || name.is_some() && named.iter().any(|other| other.name == name) {
                let why = "two nodes have it";
                return Err(match &entry.name {
                    Some(name) if !is_twice => self.wrong("nodes.name", name.get_ref(), name.span(), why),
                    _ => self.wrong("nodes.id", &node.0, entry.id.span(), why),
                });
            }
            let adapters =
                entry.adapters.iter().map(|adapter| self.adapter(adapter)).collect::<Result<Vec<_>, _>>()?;
            let adapters = if adapters.is_empty() { first_adapter() } else { adapters };
            named.push(NamedNode { node, name, adapters });
        }
        let of_file = file.node.as_ref().map(|node| self.node("node", node)).transpose()?;
        let node = of_variable(said.node)?.or(of_file).unwrap_or(NodeId(DEFAULT_NODE));
        let own = named.iter().find(|named| named.node == node);
        let (adapters, nodes) = match own {
            Some(own) => (own.adapters.clone(), named.iter().map(|named| named.node).collect()),
            None if named.is_empty() => (first_adapter(), NODES.map(NodeId).collect()),
            None => {
                let span = file.node.as_ref().map(Spanned::span).unwrap_or_default();
                return Err(self.wrong("node", &node.0, span, "it is none of `nodes`"));
            }
        };
        let refused = |Wrong { key, value, span, why }| self.wrong(key, &value, span, why);
        let accounts = Accounts::read();
        let known = Known { nodes: &named, accounts: &accounts };
        let domain = file.domain.clone().map_or_else(DomainConfig::default, DomainConfig::named);
        let foreign = of_other_users(&file.entries, node, &known, &domain.name).map_err(refused)?;
        let exports = file.access.as_ref().map(|access| access.read(&known)).transpose().map_err(refused)?;
        let exports = exports.unwrap_or_default();
        let users = OtherUsers { admitted: exports.users(), nodes: foreign };
        let one_memory = match &file.fabric {
            Some(fabric) => Some(fabric.get_ref().read(said.memory, fabric.span()).map_err(refused)?),
            None => said.memory.map(OneMemory::at),
        };
        let OfMemory { huge_pages, locked } = file.memory;
        let sysfs = file.sysfs.unwrap_or_else(|| Terms::default().sysfs);
        let terms = Terms { huge_pages, locked, sysfs };
        let fabric = FabricConfig { domain, node, adapters, nodes };
        let (polls, fails_over) = (file.polls, file.adapters.fail_over);
        Configuration { fabric, named, polls, terms, one_memory, users, exports, fails_over }.checked()
    }

    fn node(&self, key: &'static str, number: &Spanned<u32>) -> Result<NodeId, ConfigError> {
        let why = "nodes have numbers from 1 to 251";
        node_id(*number.get_ref()).ok_or_else(|| self.wrong(key, number.get_ref(), number.span(), why))
    }

    fn adapter(&self, number: &Spanned<u32>) -> Result<AdapterNumber, ConfigError> {
        let why = "adapters have numbers from 0 to 15";
        AdapterNumber::new(*number.get_ref())
            .map_err(|_| self.wrong("nodes.adapters", number.get_ref(), number.span(), why))
    }

    fn wrong(
        &self,
        key: &'static str,
        value: &impl ToString,
        span: Range<usize>,
        why: &'static str,
    ) -> ConfigError {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        ConfigError::Value { path: self.path.to_owned(), line, key, value: value.to_string(), why }
    }
}

#[cfg(test)]
mod tests;
