//! What a private NIC is told, and what both sides know of it.

use std::path::PathBuf;

use clap::Args;

/// How a private NIC is to run.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct NicOptions {
    /// Give frames back to their sender.
    #[arg(long)]
    pub loopback: bool,
    /// Wait for slow receivers instead of dropping.
    #[arg(long)]
    pub lossless: bool,
    /// Poll without pause while frames come, and sleep some milliseconds after the last one.
    #[arg(long)]
    pub spin: bool,
    /// Core to run on.
    #[arg(long)]
    pub core: Option<usize>,
    /// Capture what leaves by the up-link.
    #[arg(long)]
    pub pcap_out: Option<PathBuf>,
    /// Folder of the domains, as in [`beeline_domain::DomainConfig::root`].
    #[arg(long)]
    pub root: Option<PathBuf>,
}

/// The line a NIC prints on standard output once ports can reach it.
pub(crate) const READY: &str = "ready";

/// Name of a private NIC in its domain.
pub(crate) const SERVICE: &str = "nic";
