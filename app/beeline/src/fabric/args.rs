//! The command line of `beeline fabric`.

use std::path::PathBuf;
use std::time::Duration;

use beeline_fabric::{AdapterNumber, NodeId, SegmentId};
use clap::{Args, Subcommand};

use crate::options::{DomainArgs, RootArgs};

/// Options of `fabric`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline fabric ls                       every node, member and segment
  beeline fabric ls --node 4 --json       one node, for a script
  beeline fabric watch                    the same over and over, with what changes
  beeline fabric ls --memory /dev/shm/bar members that share a file or a BAR and no kernel; so with watch, rm, link and probe
  beeline fabric rm 4                     take out what dead members of node 4 have left
  beeline fabric rm 4 17                  ask the member that has segment 17 to remove it
  beeline fabric rm 4 17 --force          although others are connected to it
  beeline fabric rm 252                   take out what dead members have left of groups
  beeline fabric link down 4 0            as if the cable of adapter 0 of node 4 had been pulled
  beeline fabric probe 4                  whether node 4 answers, and by which adapters
  beeline fabric probe                    what in this machine could carry a fabric

Contents of segments are never read. Without --memory, --domain and --root it is the fabric that SISCI programs join:
the memory that BEELINE_FABRIC_MEMORY names or the table fabric of beeline.toml (BEELINE_CONFIG, or
/etc/beeline.toml), else the domain `default`.")]
pub struct FabricArgs {
    /// What to do with a fabric
    #[command(subcommand)]
    pub action: FabricAction,
}

/// What can be done with a fabric.
#[derive(Subcommand, Debug, Clone)]
pub enum FabricAction {
    /// List nodes, their members, adapters and segments, and who holds which group or shared segment
    Ls(LsArgs),
    /// Show what `ls` shows over and over, and what has changed
    Watch(WatchArgs),
    /// Take out what dead members of a node have left, or remove a segment
    Rm(RmArgs),
    /// Take the link of an adapter up or down
    Link(LinkArgs),
    /// Say whether a node answers; without one, which PCIe functions and ports could carry a fabric
    Probe(ProbeArgs),
}

/// The fabric that a command looks at.
#[derive(Args, Debug, Clone)]
pub struct SurveyArgs {
    /// Domain: the group of processes that can find each other [default: default, unless members share a memory]
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    #[command(flatten)]
    pub root: RootArgs,
    /// Members that share this file or BAR and no kernel, in place of a domain [default: $BEELINE_FABRIC_MEMORY, or `memory` in the
    /// table fabric of beeline.toml]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["domain", "root"])]
    pub memory: Option<PathBuf>,
    /// Milliseconds that a member may take to answer; one that is stopped never does
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub timeout_ms: u64,
}

impl SurveyArgs {
    /// The domain, if it is one that is meant.
    pub fn domain(&self) -> DomainArgs {
        DomainArgs {
            name: self.domain.clone().unwrap_or_else(|| "default".to_owned()),
            root: self.root.clone(),
        }
    }

    /// How long a member may take.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// Options of `fabric ls`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline fabric ls
  beeline fabric ls --node 4 --node 8
  beeline fabric ls --json | jq '.nodes[].members[].segments[]'
  beeline fabric ls --json | jq '.held[] | select(.node == null)'     groups and their holders")]
pub struct LsArgs {
    #[command(flatten)]
    pub survey: SurveyArgs,
    /// Only this node; may be given several times
    #[arg(long = "node", value_name = "NODE", value_parser = node())]
    pub nodes: Vec<u16>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `fabric watch`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline fabric watch
  beeline fabric watch --interval-ms 200 > changes.log     a line for each change
  beeline fabric watch --json                              one object a look, for a program")]
pub struct WatchArgs {
    #[command(flatten)]
    pub ls: LsArgs,
    /// Milliseconds between looks
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub interval_ms: u64,
    /// End after so many looks [default: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

/// Options of `fabric rm`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline fabric rm 4                     names of dead members of node 4
  beeline fabric rm 4 17                  segment 17, if nobody uses it
  beeline fabric rm 4 17 --force          segment 17, from its users too
  beeline fabric rm 252                   names of groups (reflective memory) of dead members
  beeline fabric rm 252 7                 group 7, from each of its holders
  beeline fabric rm 4 --memory /dev/shm/bar   the slots of members that are not heard

Node 252 is that of groups, which belong to no other node. The memory of a group or a shared segment
is gone when no holder, map or connection of it is left: nothing of it stays behind dead members.
A member that lives removes its segment itself; calls of its program that name the segment fail then.
A segment that its own program has mapped is not removed.
Where members share a memory nobody can tell a dead one from one that is stopped: it is taken for dead
when it was silent for a second, and is a member no more if it goes on. While somebody has its memory
mapped, it stays. Its names of groups go with it, so 252 without a group is refused there.")]
pub struct RmArgs {
    #[command(flatten)]
    pub survey: SurveyArgs,
    /// The node; 252 for groups
    #[arg(value_name = "NODE", value_parser = node())]
    pub node: u16,
    /// A segment of it, or a group
    #[arg(value_name = "ID", value_parser = segment())]
    pub id: Option<u32>,
    /// Remove it although others are connected to it: they lose their connections
    #[arg(long, requires = "id")]
    pub force: bool,
}

/// Options of `fabric link`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline fabric link down 4 0            node 4 loses its adapter 0
  beeline fabric link up 4 0              and has it again
  beeline fabric link down 4 0 --memory /dev/shm/bar      of members that share a file

Every member of the node that lives is asked. One that joins later has all of its adapters up.")]
pub struct LinkArgs {
    #[command(flatten)]
    pub survey: SurveyArgs,
    /// Up or down
    #[arg(value_enum, value_name = "up|down")]
    pub to: LinkState,
    /// The node
    #[arg(value_name = "NODE", value_parser = node())]
    pub node: u16,
    /// Number of the adapter, 0 to 15
    #[arg(value_name = "ADAPTER", value_parser = clap::value_parser!(u32).range(0..16))]
    pub adapter: u32,
}

impl LinkArgs {
    /// The adapter that was given.
    ///
    /// # Panics
    /// If it is no number of an adapter, which the command line does not take.
    pub fn adapter(&self) -> AdapterNumber {
        AdapterNumber::new(self.adapter).expect("the command line takes no other numbers")
    }
}

/// What a link is taken to.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The adapter carries stores again
    Up,
    /// As if its cable had been pulled
    Down,
}

/// Options of `fabric probe`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline fabric probe 4                  exit code 0 if a member of node 4 answers, 1 if none does
  beeline fabric probe                    PCIe endpoints, bridges and ports of this machine
  beeline fabric probe --json | jq '.[] | select(.problems == [])'    those that nothing is in the way of

Shown are endpoints with a BAR of prefetchable memory, transparent ports, non-transparent bridges (by
their numbers, or by the kernel's drivers) and memory that virtual machines share (ivshmem). Below them:
what stands in the way, such as a lesser link, permission, an IOMMU, and what helps. sysfs alone is read;
that another host is behind a window only its driver can tell.")]
pub struct ProbeArgs {
    #[command(flatten)]
    pub survey: SurveyArgs,
    /// The node; without it, the PCIe functions of this machine are looked at
    #[arg(value_name = "NODE", value_parser = node())]
    pub node: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where sysfs is
    #[arg(long, value_name = "DIR", default_value = "/sys", hide = true)]
    pub sysfs: PathBuf,
}

fn node() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(0..)
}

fn segment() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..)
}

/// A node that was given.
pub fn node_id(number: u16) -> NodeId {
    NodeId(number)
}

/// A segment that was given.
pub fn segment_id(number: u32) -> SegmentId {
    SegmentId(number)
}
