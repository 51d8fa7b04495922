//! The commands there are: the one source of parsing, `--help`, man pages and shell completions. Each command's own
//! arguments are in its folder or file.

use clap::{Parser, Subcommand};

use crate::compare::args::CompareArgs;
use crate::doctor::args::DoctorArgs;
use crate::fabric::args::FabricArgs;
use crate::figures::FiguresArgs;
use crate::generate::GenerateArgs;
use crate::ip::args::IpArgs;
use crate::kv::args::KvArgs;
use crate::nic::NicArgs;
use crate::ping::args::PingArgs;
use crate::platforms::PlatformsArgs;
use crate::run::args::RunArgs;
use crate::send::args::SendArgs;
use crate::sim::args::SimArgs;
use crate::sockets::args::SocketsArgs;
use crate::stat::StatArgs;
use crate::trace::args::TraceArgs;

/// Move messages from program to program, and onto the wire, by plain stores.
#[derive(Parser, Debug)]
#[command(name = "beeline", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Start with `beeline doctor` (what this machine can do) and `beeline compare` (what it costs here).

Environment: BEELINE_ROOT, folder of the domains where --root names none (else /tmp/beeline-UID); BEELINE_LOG, what is logged; \
NO_COLOR. man beeline says more.")]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Say more: -v what happens, -vv every step
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// The programs in the program.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Measure every interface on this machine: goodput, latency, rate; writes a report
    Compare(CompareArgs),
    /// Send a capture through a NIC and verify what comes out, byte for byte
    Send(SendArgs),
    /// Run the NIC: a process that others reach by name, with up-links to the outside
    Nic(NicArgs),
    /// Measure round trips of small payloads through a running or a private NIC
    Ping(PingArgs),
    /// Show the live counters of a running NIC
    Stat(StatArgs),
    /// Serve a key-value store to programs of this machine, or call one
    Kv(KvArgs),
    /// Show the nodes, members and segments of a fabric, and repair what they have left
    Fabric(FabricArgs),
    /// Give the nodes of a fabric a network device, for whatever speaks IP
    Ip(IpArgs),
    /// Run a program as it is, with its connections to others that run so by plain stores
    Run(RunArgs),
    /// Show the connections of programs that `run` started: what carries them, and how much
    Sockets(SocketsArgs),
    /// Send frames in virtual time: latency, rate, link bytes, disorder and cost on the machines of platform files
    Sim(SimArgs),
    /// Show the packets on the link while a frame is sent in virtual time, as a protocol analyser does
    Trace(TraceArgs),
    /// List, describe or check platform files: the machines of virtual time
    Platforms(PlatformsArgs),
    /// Say what this machine can and cannot do, in words
    Doctor(DoctorArgs),
    /// Set the published figures beside ours, from machines in virtual time
    Figures(FiguresArgs),
    /// Write man pages or shell completions
    Generate(GenerateArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_that_people_type_has_examples() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let after = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
            assert!(
                name == "generate" || after.contains(&format!("beeline {name}")),
                "{name} has no examples"
            );
        }
    }
}
