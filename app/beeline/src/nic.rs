//! `beeline nic`: runs the NIC process until a signal, or the end of its standard input, stops it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use beeline_ethernet::WireConfig;
use beeline_nic_process::{NicProcess, NicProcessConfig, Statistics, UplinkConfig};
use beeline_session::{Sizes, check_uplinks, end_with_stdin, process_config, run_ready};
use beeline_window::WaitPolicy;
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cores;
use crate::failure::Failure;
use crate::options::{AllowArgs, DomainArgs, Idle};
use crate::out;

/// Options of `nic`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline nic                             a switch for any number of local programs
  beeline nic --name lab --loopback       every frame returns to its sender
  beeline nic --pcap-out wire.pcap        what crosses the switch, captured
  beeline nic --allow-uid 1001            for programs of user 1001 too (SECURITY.md says what they may do)
  beeline nic --vfio-user chi0.sock --vfio-user chi1.sock   two PCI functions for guests
  sudo beeline nic --tap bee0             joined to the kernel's network
  sudo beeline nic --uplink af-xdp:eth0   joined to a wire, past the kernel")]
pub struct NicArgs {
    /// Name under which ports reach it
    #[arg(long, default_value = "nic", value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub domain: DomainArgs,
    #[command(flatten)]
    pub allow: AllowArgs,
    /// Ports at most
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub ports: u16,
    /// Queues of each port
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub queues: u16,
    /// Reorder span in lines
    #[arg(long, default_value_t = 64, value_name = "LINES")]
    pub span: u32,
    /// Window of each queue in lines
    #[arg(long, default_value_t = 4096, value_name = "LINES")]
    pub window: u32,
    /// Give every frame back to the port it came from
    #[arg(long)]
    pub loopback: bool,
    /// Wait for a slow receiver instead of dropping what it has no room for
    #[arg(long)]
    pub lossless: bool,
    /// Replay this capture into the switch
    #[arg(long, value_name = "FILE")]
    pub pcap_in: Option<PathBuf>,
    /// Capture every frame that enters the switch
    #[arg(long, value_name = "FILE")]
    pub pcap_out: Option<PathBuf>,
    /// Join a TAP device (needs CAP_NET_ADMIN)
    #[arg(long, value_name = "IFNAME")]
    pub tap: Option<String>,
    /// Join an interface past the kernel: af-xdp:IFNAME, af-packet:IFNAME or auto:IFNAME, then ,OPTION=VALUE
    ///
    /// Options: netns=NAME; type=0x88b5 or type=all (which frames are taken from the interface); for af-xdp also
    /// queue=N, copy=auto|copy|zero-copy, attach=auto|native|generic, frames=N, busy-poll=MICROSECONDS/FRAMES. Several
    /// may be given. Needs CAP_NET_RAW, af-xdp also CAP_NET_ADMIN and CAP_BPF; `beeline doctor` looks.
    #[arg(long, value_name = "UP-LINK")]
    pub uplink: Vec<WireConfig>,
    /// Serve a port as a PCI function at this socket, by vfio-user: QEMU 10.1 or later puts it into a guest
    ///
    /// May be given several times; each is one of the ports. For QEMU: -device
    /// '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"SOCKET"}}', with the guest's memory in a sealed memfd
    /// (-object memory-backend-memfd,id=ram,size=512M,share=on -M q35,memory-backend=ram).
    #[arg(long, value_name = "SOCKET")]
    pub vfio_user: Vec<PathBuf>,
    /// Core to run on
    #[arg(long, value_name = "CORE")]
    pub core: Option<usize>,
    /// What to do when nothing arrives
    #[arg(long, value_enum, default_value_t = Idle::Sleep)]
    pub idle: Idle,
    /// End when standard input does, so that a NIC started by a program ends with it
    #[arg(long, hide = true)]
    pub until_stdin_closes: bool,
}

/// Runs `beeline nic`.
pub fn run(args: &NicArgs) -> Result<(), Failure> {
    cores::check("--core", args.core)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| Failure::new("cannot catch the signals that end a NIC").because(e))?;
    }
    let mut process = NicProcess::new(config(args)).map_err(|e| {
        Failure::new(format!("cannot start NIC {} in domain {}", args.name, args.domain.name)).because(e)
    })?;
    if args.until_stdin_closes {
        end_with_stdin(&stop)?;
    } else {
        let domain = &args.domain.name;
        out::remark(format_args!("NIC {} in domain {domain}; end it with Ctrl-C", process.service()));
        if let Some(invitation) = args.allow.invitation(&args.domain) {
            out::remark(invitation);
        }
    }
    let last = run_ready(&mut process, &stop)?;
    if !args.until_stdin_closes {
        summarise(&last);
    }
    Ok(check_uplinks(&last)?)
}

fn config(args: &NicArgs) -> NicProcessConfig {
    let mut uplinks = Vec::new();
    uplinks.extend(args.pcap_in.clone().map(UplinkConfig::PcapIn));
    uplinks.extend(args.pcap_out.clone().map(UplinkConfig::PcapOut));
    uplinks.extend(args.tap.clone().map(UplinkConfig::Tap));
    uplinks.extend(args.uplink.iter().map(|wire| UplinkConfig::Wire(Box::new(wire.clone()))));
    NicProcessConfig {
        domain: args.domain.config(),
        service: args.name.clone(),
        allowed_uids: args.allow.uids.clone(),
        loop_back: args.loopback,
        is_lossless: args.lossless,
        uplinks,
        functions: args.vfio_user.clone(),
        idle: match args.idle {
            Idle::Spin => WaitPolicy::SPIN,
            Idle::Yield => WaitPolicy::new().spins(1_000).yields(0).sleep(None),
            Idle::Sleep => NicProcessConfig::default().idle,
        },
        core: args.core,
        ..process_config(sizes(args))
    }
}

fn sizes(args: &NicArgs) -> Sizes {
    Sizes {
        ports: args.ports.into(),
        queues: args.queues.into(),
        window_lines: args.window,
        span_lines: args.span,
    }
}

fn summarise(last: &Statistics) {
    let uptime = Duration::from_millis(last.uptime_ms);
    let opened = last.rounds.ports_opened;
    out::remark(format_args!("stopped after {uptime:.1?}; {opened} ports were opened"));
    for uplink in &last.uplinks {
        let (name, in_, out_) = (&uplink.name, uplink.frames_in, uplink.frames_out);
        out::remark(format_args!("  {name}: {in_} frames in, {out_} out"));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: NicArgs,
    }

    #[test]
    fn a_nic_that_is_told_nothing_is_the_one_that_is_measured() {
        let Line { args } = Line::parse_from(["nic"]);
        assert_eq!(sizes(&args), Sizes::default());
        assert_eq!(config(&args).uplinks, []);
    }

    #[test]
    fn every_up_link_on_the_command_line_is_one_of_the_nic() {
        let line = ["nic", "--tap", "bee0", "--uplink", "auto:eth0", "--uplink", "af-packet:eth1,type=all"];
        let Line { args } = Line::parse_from(line);
        let wire = |text: &str| UplinkConfig::Wire(Box::new(text.parse().unwrap()));
        let expected = [UplinkConfig::Tap("bee0".into()), wire("auto:eth0"), wire("af-packet:eth1,type=all")];
        assert_eq!(config(&args).uplinks, expected);
        let refused = Line::try_parse_from(["nic", "--uplink", "af-xdp:eth0,queue=x"]).err().unwrap();
        assert!(refused.to_string().contains("`x` is no value of queue: a number"), "{refused}");
    }
}
